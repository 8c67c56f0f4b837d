//! A step that the host refuses is an error that names the call, and the program does not run.

use crate::request::{Reply, Request};
use crate::workplace::{Workplace, as_each_user};

fn check(location: &Workplace, request: &Request, error: &str, hint: &str) {
    let reply = location.run(request);
    assert_eq!(reply.end, error, "{reply:?}");
    assert!(reply.hint.contains(hint), "{reply:?}");
    assert!(!location.path("work/ran").exists());
}

const RAN: &str = "echo > /workspace/ran";

#[test]
fn a_missing_mount_source_is_named() {
    as_each_user(|location| {
        let mut request = location.shell(RAN);
        request.mounts.push((
            "/no/such/place".to_owned(),
            "/x".to_owned(),
            "ro".to_owned(),
        ));
        let error = "set up the sandbox: open_tree on /no/such/place: No such file or directory (os error 2)";
        check(location, &request, error, "does not exist");
    });
}

#[test]
fn a_place_inside_must_be_absolute_and_makeable() {
    as_each_user(|location| {
        for (inside, error) in [
            (
                "relative",
                "set up the sandbox: resolve on relative: Invalid argument (os error 22)",
            ),
            (
                "/",
                "set up the sandbox: resolve on /: Invalid argument (os error 22)",
            ),
            (
                "/a/../b",
                "set up the sandbox: resolve on /a/../b: Invalid argument (os error 22)",
            ),
            (
                "/usr/planted/x",
                "set up the sandbox: mkdirat on /usr/planted/x: Read-only file system (os error 30)",
            ),
        ] {
            let mut request = location.shell(RAN);
            request
                .mounts
                .push((location.text("work"), inside.to_owned(), "rw".to_owned()));
            check(location, &request, error, "");
        }
    });
}

#[test]
fn a_missing_program_or_directory_is_named_at_both_levels() {
    as_each_user(|location| {
        for request in [location.shell(RAN), location.bare("true")] {
            let mut missing = request.clone();
            missing.argv = vec!["/no/such/program".to_owned()];
            let error = "set up the sandbox: execve on /no/such/program: No such file or directory (os error 2)";
            check(location, &missing, error, "not visible");
            let mut astray = request;
            astray.cwd = "/no/such/directory".to_owned();
            let error = "set up the sandbox: chdir on /no/such/directory: No such file or directory (os error 2)";
            check(location, &astray, error, "working directory");
        }
    });
}

#[test]
fn a_host_name_that_is_too_long_is_named() {
    as_each_user(|location| {
        let long = "n".repeat(65);
        let request = Request {
            hostname: long.clone(),
            ..location.shell(RAN)
        };
        let error =
            format!("set up the sandbox: sethostname on {long}: Invalid argument (os error 22)");
        check(location, &request, &error, "");
    });
}

#[test]
fn a_sandbox_inside_a_sandbox_is_refused_and_says_so() {
    as_each_user(|location| {
        let inner = Request {
            mounts: Vec::new(),
            cwd: "/".to_owned(),
            home: "/tmp".to_owned(),
            ..location.shell("true")
        };
        let mut outer = location.shell("/helper run");
        outer.stdin = serde_json::to_string(&inner).unwrap();
        let reply = location.run(&outer);
        let inner: Reply = serde_json::from_str(&reply.stdout).unwrap();
        let error = "set up the sandbox: unshare(CLONE_NEWUSER) on the launcher: Operation not permitted (os error 1)";
        assert_eq!(inner.end, error);
        assert!(inner.hint.contains("max_user_namespaces"), "{inner:?}");
    });
}

/// A shell that forbids user namespaces to what it then executes, within one of its own.
const FORBID: &[&str] = &[
    "unshare",
    "--user",
    "--map-root-user",
    "sh",
    "-c",
    "echo 0 > /proc/sys/user/max_user_namespaces; exec \"$0\" \"$@\"",
];

#[test]
fn a_host_without_user_namespaces_is_told_what_to_do_and_never_worked_around() {
    as_each_user(|location| {
        let reply = location.run_under(FORBID, &location.shell(RAN));
        let error = "set up the sandbox: unshare(CLONE_NEWUSER) on the launcher: No space left on device (os error 28)";
        assert_eq!(reply.end, error, "{reply:?}");
        assert!(reply.hint.contains("user.max_user_namespaces"), "{reply:?}");
        assert!(!location.path("work/ran").exists());
    });
}

/// A shell that forbids networks to what it then executes, within a user namespace of its own.
const FORBID_NETWORKS: &[&str] = &[
    "unshare",
    "--user",
    "--map-root-user",
    "sh",
    "-c",
    "echo 0 > /proc/sys/user/max_net_namespaces; exec \"$0\" \"$@\"",
];

#[test]
fn a_network_that_is_refused_while_the_root_is_made_is_named_and_nothing_runs() {
    as_each_user(|location| {
        let reply = location.run_under(FORBID_NETWORKS, &location.shell(RAN));
        let error = "set up the sandbox: unshare(CLONE_NEWNET) on the launcher: No space left on device (os error 28)";
        assert_eq!(reply.end, error, "{reply:?}");
        assert!(!location.path("work/ran").exists());
    });
}
