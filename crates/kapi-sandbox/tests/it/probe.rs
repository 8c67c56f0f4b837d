//! The levels of isolation that this host supports, reported truly, with nothing left behind.

use std::fs;

use crate::workplace::{Workplace, as_each_user};

/// A shell that forbids user namespaces to what it then executes, within one of its own.
const FORBID: &[&str] = &[
    "unshare",
    "--user",
    "--map-root-user",
    "sh",
    "-c",
    "echo 0 > /proc/sys/user/max_user_namespaces; exec \"$0\" \"$@\"",
];

fn report(location: &Workplace, wrapper: &[&str]) -> String {
    let sandboxes = location.text("home/not/yet/there");
    let probed = location.helper(wrapper, &["ladder", &sandboxes]);
    let left = fs::read_dir(location.path("home")).unwrap().flatten();
    let left = left.filter(|entry| entry.file_name().to_string_lossy().contains("trial"));
    assert_eq!(left.count(), 0);
    probed.stdout.text()
}

fn line<'a>(text: &'a str, start: &str) -> &'a str {
    text.lines()
        .find(|line| line.starts_with(start))
        .unwrap_or_else(|| panic!("no {start} in {text}"))
}

#[test]
fn the_native_level_works_and_says_what_it_gives() {
    as_each_user(|location| {
        let text = report(location, &[]);
        let native = line(&text, "Native works: ");
        for given in [
            "true",
            "copy-on-write workspaces",
            "Landlock ",
            "memory limit by ",
            "processes limit by ",
        ] {
            assert!(native.contains(given), "{given}: {text}");
        }
        assert!(!text.contains("Native misses user namespace"), "{text}");
        line(&text, "None works: true");
        line(&text, "kernel: ");
        line(&text, "sandboxes are on: ");
        // What is said of a limit is what a run then has.
        let mut request = location.shell("true");
        request.resources = vec![("cpu".to_owned(), 500)];
        let run = location.run(&request);
        assert_eq!(
            native.contains("cpu limit by cgroup"),
            run.grade.contains("cpu by cgroup"),
            "{run:?} {text}"
        );
    });
}

#[test]
fn a_level_that_does_not_work_names_the_call_and_the_way_out() {
    as_each_user(|location| {
        let text = report(location, FORBID);
        line(&text, "Native works: false: ");
        let user = line(&text, "Native misses user namespace (necessary: true): ");
        assert!(
            user.contains("unshare(CLONE_NEWUSER) on the launcher: Some(28)")
                && user.contains("user.max_user_namespaces=10000"),
            "{text}"
        );
        line(
            &text,
            "Native misses copy-on-write mount (necessary: false): ",
        );
        assert!(!text.contains("misses filter of system calls"), "{text}");
    });
}

#[test]
fn layers_that_could_not_lie_there_are_told() {
    as_each_user(|location| {
        let probed = location.helper(&[], &["ladder", "/proc/nowhere"]);
        let text = probed.stdout.text();
        line(&text, "Native works: true: ");
        line(
            &text,
            "Native misses copy-on-write mount (necessary: false): mkdir on /proc/.kapi-trial-",
        );
    });
}

#[test]
fn podman_is_asked_or_said_to_be_missing() {
    as_each_user(|location| {
        let hidden = ["env", "PATH=/nowhere"];
        let text = report(location, &hidden);
        line(&text, "Podman works: false: ");
        let missing = line(
            &text,
            "Podman misses podman (necessary: true): find on podman on PATH",
        );
        assert!(missing.contains("install podman"), "{text}");
    });
}
