//! `kapi up` on a disk that fills up: it says so, and goes on as soon as there is room.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use rustix::process::Signal;

use crate::environment::{Environment, await_some};
use crate::kernel_loop::define;
use crate::program::{Running, parse};

const EVERY_SECOND: &str = "trigger:\n  type: cron\n  schedule: \"* * * * * *\"";

#[test]
fn a_supervisor_waits_for_room_on_the_disk_and_resumes() {
    let env = Environment::new();
    define(&env, "tick", EVERY_SECOND);
    let kernel = env.repository().join(".ilchul/kernel");
    fs::create_dir_all(&kernel).unwrap();
    // A disk of its own for the queue, which only this supervisor sees.
    let mut command = env.command("unshare", &env.repository());
    let mount = format!(
        "mount -t tmpfs -o size=1m none {} && exec \"$0\" \"$@\"",
        kernel.display()
    );
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &mount]);
    command.args([env!("CARGO_BIN_EXE_kapi"), "up", "--json"]);
    let mut up = Running::spawn(command);
    let seen = PathBuf::from(format!("/proc/{}/root{}", up.id(), kernel.display()));
    let n_ended = || {
        let text = fs::read_to_string(seen.join("events.jsonl")).unwrap_or_default();
        text.matches("\"type\":\"ended\"").count()
    };
    await_some("a run", || (n_ended() > 0).then_some(()));
    let filler = seen.join("filler");
    let mut file = fs::File::create(&filler).unwrap();
    for size in [4096, 1] {
        while file.write_all(&vec![b'x'; size]).is_ok() {}
    }
    let said = up.await_notice(&|line| line.contains("No space left on device"));
    assert!(said.starts_with("warning: failed to "), "{said}");
    assert!(
        said.contains("Nothing is lost; trying again every 5 seconds"),
        "{said}"
    );
    // Its room is free as soon as nobody has it open, too.
    drop(file);
    fs::remove_file(&filler).unwrap();
    let before = n_ended();
    await_some("a run after that", || (n_ended() > before).then_some(()));
    up.signal(Signal::INT);
    let output = up.finish();
    assert_eq!(output.code, 130, "{output:?}");
    // What was done before that is told as well.
    let result = parse(output.stdout.lines().last().unwrap());
    assert_eq!(result["tasks"][0]["id"], "task_1", "{result:#}");
    assert_eq!(result["tasks"][0]["state"], "completed", "{result:#}");
}
