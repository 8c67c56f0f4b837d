//! What dead launchers left is found by label and owner; what anybody may still use is not.

use std::fs;

use super::yard::{IMAGE, Yard, as_each_user};

/// Makes a container that nobody starts, with labels.
fn make(yard: &Yard, name: &str, labels: &[String]) {
    let mut args = vec!["create".to_owned(), format!("--name={name}")];
    args.extend(labels.iter().map(|label| format!("--label={label}")));
    args.extend([IMAGE.to_owned(), "/bin/true".to_owned()]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let made = yard.podman(&args);
    assert!(made.stderr.text().is_empty(), "{made:?}");
}

/// Returns the labels of ours for a run with this owner.
fn ours(run: &str, owner: &str) -> Vec<String> {
    let mut labels = vec![
        "kapi.managed=true".to_owned(),
        format!("kapi.run={run}"),
        format!("kapi.room=00{run}"),
    ];
    if !owner.is_empty() {
        labels.push(format!("kapi.owner={owner}"));
    }
    labels
}

/// Returns this process as an owner, in this run of the machine or another.
fn owner(boot: &str, began: u64) -> String {
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap();
    let namespace = namespace.to_string_lossy();
    let digits: String = namespace.chars().filter(char::is_ascii_digit).collect();
    format!("{boot}/{digits}/{}/{began}", std::process::id())
}

fn began() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let (_, rest) = stat.rsplit_once(')').unwrap();
    rest.split_whitespace().nth(19).unwrap().parse().unwrap()
}

fn names(yard: &Yard) -> Vec<String> {
    let listed = yard.podman(&["ps", "--all", "--format", "{{.Names}}"]);
    let mut names: Vec<String> = listed.stdout.text().lines().map(str::to_owned).collect();
    names.sort();
    names
}

#[test]
fn only_containers_of_dead_launchers_are_collected() {
    as_each_user(|yard| {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let boot = boot.trim();
        make(yard, "kapi-alive", &ours("alive", &owner(boot, began())));
        make(yard, "kapi-dead", &ours("dead", &owner(boot, began() + 1)));
        make(
            yard,
            "kapi-earlier",
            &ours("earlier", &owner("before", began())),
        );
        make(yard, "kapi-nobody", &ours("nobody", ""));
        // Named like ours, and not ours.
        make(yard, "kapi-somebodys", &["kapi.run=somebodys".to_owned()]);
        let mut left: Vec<String> = yard.notify("left").lines().map(str::to_owned).collect();
        left.sort();
        let expected = ["dead Deserted", "earlier Deserted", "nobody Unknown"];
        assert_eq!(left, expected);
        let refused = yard.notify("collect");
        assert!(refused.contains("may still be running"), "{refused}");
        assert_eq!(refused.lines().count(), 1, "{refused}");
        assert_eq!(names(yard), ["kapi-alive", "kapi-nobody", "kapi-somebodys"]);
        assert_eq!(yard.notify("left"), "nobody Unknown\n");
        yard.podman(&["rm", "--all", "--force", "--time", "0"]);
    });
}

#[test]
fn a_container_at_work_is_not_left() {
    as_each_user(|yard| {
        let ask = yard.shell("touch up; until test -e go; do sleep 0.05; done; echo over");
        std::thread::scope(|scope| {
            let running = scope.spawn(|| yard.run(&ask));
            let up = yard.path("work/up");
            crate::workplace::await_condition("the container is up", || up.exists());
            assert_eq!(
                (yard.notify("left"), yard.notify("collect")),
                Default::default()
            );
            yard.file("work/go", "");
            assert_eq!(running.join().unwrap().stdout, "over\n");
        });
        assert_eq!(yard.remains(), "");
    });
}
