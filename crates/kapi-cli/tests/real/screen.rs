//! Real CLIs on their own screen: their own hooks move the status of the launch.
//!
//! Nobody looks at what they draw; the status file says what they do. Codex is not among them: it
//! asks a person about news and trust before it takes its task.

use kapi_testkit::agent_tools::Cli;
use kapi_testkit::model_server::scenario::{AssistantTurn, ModelScenario};

use crate::machine::Machine;
use crate::program::finish;

/// What ends each of them, sooner or later.
const WATCHER: &str = r"
import glob, json, os, pty, select, sys, time
pid, fd = pty.fork()
if pid == 0: os.execv('/bin/sh', ['sh', '-c', 'stty rows 40 cols 120; ' + sys.argv[1]])
drawn, seen, end, ending = b'', [], time.monotonic() + 90, 0
while True:
    if select.select([fd], [], [], 0.05)[0]:
        try: more = os.read(fd, 65536)
        except OSError: break
        if not more: break
        drawn += more
    for path in glob.glob(sys.argv[2]):
        now = json.load(open(path))
        now = now['phase'] + ' ' + now['message']
        if seen[-1:] != [now]:
            seen.append(now)
            print('STATUS', now, flush=True)
    is_over = any('ended its turn' in now for now in seen) or time.monotonic() > end
    if is_over and time.monotonic() > ending:
        ending = time.monotonic() + 0.4
        os.write(fd, b'\x03')
    if time.monotonic() > end + 60: break
os.close(fd)
print(drawn.decode(errors='replace')[-4000:])
os.waitpid(pid, 0)
";

fn check(cli: Cli) {
    let machine = Machine::new(ModelScenario::new(vec![
        AssistantTurn::bash("cat answer.txt"),
        AssistantTurn::bash("echo 42 > answer.txt"),
        AssistantTurn::text("Done."),
    ]));
    let env = &machine.env;
    let line = format!(
        "exec {} launch screen {} --interactive --agent {} --branch screen --task 'make it right'",
        env!("CARGO_BIN_EXE_kapi"),
        env.repository().display(),
        cli.name(),
    );
    let status = env.home().join(".ilchul/status/kapi-*.json");
    let mut command = env.command("python3", &env.repository());
    command.env("TERM", "xterm-256color");
    command.args(["-c", WATCHER, &line, &status.display().to_string()]);
    let output = finish(command);
    let lines = output.stdout.lines();
    let seen: Vec<&str> = lines
        .filter_map(|line| line.strip_prefix("STATUS "))
        .collect();
    let at = |begin: &str| seen.iter().position(|now| now.starts_with(begin));
    let order = [
        at("starting "),
        at("exploring Exploring: cat answer.txt"),
        at("implementing Implementing: echo 42 > answer.txt"),
        at("implementing The agent ended its turn"),
        at("complete "),
    ];
    assert!(order.iter().all(Option::is_some), "{seen:#?}\n{output:?}");
    assert!(order.is_sorted(), "{seen:#?}");
    assert_eq!(env.show("screen", "answer.txt"), "42");
    env.await_no_process();
    machine.assert_key_is_in_no_file();
}

#[test]
fn claude_on_its_screen_tells_what_it_does() {
    check(Cli::Claude);
}

#[test]
fn gemini_on_its_screen_tells_what_it_does() {
    check(Cli::Gemini);
}
