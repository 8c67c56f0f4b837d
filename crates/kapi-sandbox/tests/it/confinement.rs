//! What a confined program can and cannot see, write, reach and call.

use std::fs;
use std::net::TcpListener;

use crate::workplace::{Workplace, as_each_user};

/// Checks the output of a shell line in a native sandbox; its errors come with it.
fn check(location: &Workplace, line: &str, expected: &str) {
    let reply = location.run(&location.shell(&format!("exec 2>&1; {line}")));
    assert_eq!(reply.stdout.trim_end(), expected, "{line}: {reply:?}");
}

/// Checks that a shell line fails and says a text.
fn check_refused(location: &Workplace, line: &str, expected: &str) {
    let reply = location.run(&location.shell(&format!("exec 2>&1; {line}")));
    assert!(
        reply.end.starts_with("Exited(") && reply.end != "Exited(0)",
        "{line}: {reply:?}"
    );
    assert!(reply.stdout.contains(expected), "{line}: {reply:?}");
}

#[test]
fn only_the_workspace_the_home_and_temporary_places_can_be_written() {
    as_each_user(|location| {
        check(
            location,
            "echo a > /workspace/made && echo b > ~/kept && echo c > /tmp/t && echo d > /dev/null && echo ok",
            "ok",
        );
        assert_eq!(
            fs::read_to_string(location.path("work/made")).unwrap(),
            "a\n"
        );
        assert_eq!(
            fs::read_to_string(location.path("home/kept")).unwrap(),
            "b\n"
        );
        check(
            location,
            "echo /tmp/* /var/tmp/* /run/* /dev/shm/*",
            "/tmp/* /var/tmp/* /run/* /dev/shm/*",
        );
        for directory in [
            "/",
            "/etc",
            "/usr",
            "/usr/bin",
            "/opt",
            "/dev",
            "/home",
            "/var",
            "/etc/ssl/certs",
        ] {
            check_refused(
                location,
                &format!("echo x > {directory}/planted"),
                "Read-only file system",
            );
        }
        for file in ["/etc/passwd", "/etc/hosts"] {
            check_refused(
                location,
                &format!("echo x >> {file}"),
                "Read-only file system",
            );
        }
    });
}

#[test]
fn a_read_only_mount_refuses_writes_and_changes_of_mode() {
    as_each_user(|location| {
        location.directory("input");
        location.file("input/data", "kept");
        let mut request = location.shell(
            "cat /input/data; echo x > /input/new; echo x > /input/data; chmod 777 /input/data",
        );
        request
            .mounts
            .push((location.text("input"), "/input".to_owned(), "ro".to_owned()));
        let reply = location.run(&request);
        assert_eq!(reply.stdout, "kept", "{reply:?}");
        assert_eq!(
            reply.stderr.matches("Read-only file system").count(),
            3,
            "{reply:?}"
        );
        assert_eq!(fs::read_dir(location.path("input")).unwrap().count(), 1);
    });
}

#[test]
fn a_file_can_be_mounted_over_a_file_and_a_given_file_is_read_only() {
    as_each_user(|location| {
        location.file("work/config", "the project's");
        location.file("other", "the mount's");
        let line = "cat config ~/.tool/settings; cmp ~/.tool/settings /run/second; ls -A / | grep -F .staged; echo x > config; echo x > ~/.tool/settings; echo y > ~/.tool/more; \
                    mv ~/.tool/settings ~/.tool/gone";
        let mut request = location.shell(line);
        request.mounts.push((
            location.text("other"),
            "/workspace/config".to_owned(),
            "ro".to_owned(),
        ));
        for path in ["/home/agent/.tool/settings", "/run/second"] {
            let content = " and the file's".to_owned();
            request.files.push((path.to_owned(), content));
        }
        let reply = location.run(&request);
        assert_eq!(reply.stdout, "the mount's and the file's", "{reply:?}");
        assert_eq!(
            reply.stderr.matches("Read-only file system").count(),
            2,
            "{reply:?}"
        );
        assert!(
            reply.stderr.contains("Device or resource busy"),
            "{reply:?}"
        );
        assert_eq!(
            fs::read_to_string(location.path("work/config")).unwrap(),
            "the project's"
        );
        assert_eq!(
            fs::read_to_string(location.path("home/.tool/settings")).unwrap(),
            ""
        );
        assert_eq!(
            fs::read_to_string(location.path("home/.tool/more")).unwrap(),
            "y\n"
        );
    });
}

#[test]
fn a_mount_never_follows_a_link_that_an_earlier_run_left() {
    as_each_user(|location| {
        location.directory("secret");
        check(location, "ln -s /workspace ~/trap && echo set", "set");
        let mut request = location.shell("true");
        request.mounts.push((
            location.text("secret"),
            "/home/agent/trap/inner".to_owned(),
            "rw".to_owned(),
        ));
        let reply = location.run(&request);
        assert!(
            reply.end.contains("openat2 on /home/agent/trap"),
            "{reply:?}"
        );
        assert!(reply.hint.contains("symbolic link"), "{reply:?}");
        assert_eq!(fs::read_dir(location.path("work")).unwrap().count(), 0);
    });
}

#[test]
fn secrets_of_the_host_are_not_there() {
    as_each_user(|location| {
        let secret = location.file("secret-file", "planted");
        let home = std::env::var("HOME").unwrap();
        for path in [
            secret.display().to_string(),
            "/etc/shadow".to_owned(),
            "/etc/npmrc".to_owned(),
            "/etc/gitconfig".to_owned(),
            home,
        ] {
            check_refused(
                location,
                &format!("cat {path}"),
                "No such file or directory",
            );
        }
        check(
            location,
            "ls -A / | tr '\\n' ' '; ls -A /home /var /root",
            concat!(
                "bin dev etc helper home lib lib64 opt proc run sbin tmp usr var workspace ",
                "ls: cannot access '/root': No such file or directory\n/home:\nagent\n\n/var:\nempty\nrun\ntmp"
            ),
        );
        check(location, "ls -A /etc/ssl", "certs\nopenssl.cnf");
    });
}

#[test]
fn the_host_environment_is_not_in_any_process() {
    as_each_user(|location| {
        check(
            location,
            "env | cut -d= -f1 | sort | tr '\\n' ' '",
            "HOME PATH PWD SHLVL _",
        );
        check(
            location,
            "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep -c planted",
            "cat: /proc/1/environ: Permission denied\n0",
        );
        check(location, "tr -d '\\0' < /proc/1/cmdline | wc -c", "0");
        check_refused(location, "ls /proc/1/root/", "Permission denied");
        check_refused(location, "readlink /proc/1/root", "");
        check_refused(location, "cat /proc/1/fd/3", "Permission denied");
        check_refused(location, "cat /proc/1/maps", "Permission denied");
        check_refused(location, "dd if=/proc/1/mem count=1", "Permission denied");
    });
}

#[test]
fn the_payload_sees_only_its_own_processes() {
    as_each_user(|location| {
        check(
            location,
            "echo $$; set -- /proc/[0-9]*; echo $#; kill -9 1; echo alive",
            "2\n2\nalive",
        );
        check(
            location,
            "hostname; grep agent /etc/passwd | cut -d: -f1,6; whoami",
            "kapi-test\nagent:/home/agent\nagent",
        );
        check(
            location,
            "test $(id -u) != 0 && cut -c1-40 /proc/self/uid_map | wc -l",
            "1",
        );
    });
}

#[test]
fn privileges_are_gone_for_good() {
    as_each_user(|location| {
        let none = "0000000000000000";
        let caps = format!("{none} {none} {none} {none} {none} 1 1");
        check(
            location,
            "grep -E '^(Cap|NoNewPrivs)' /proc/self/status | awk '{printf \"%s \", $2}'; grep -c '^Max core file size  *0 ' /proc/self/limits",
            &caps,
        );
        for (call, expected) in [
            ("mount", "PermissionDenied"),
            ("remount /usr", "PermissionDenied"),
            ("umount /workspace", "PermissionDenied"),
            ("umount /proc/keys", "PermissionDenied"),
            ("unshare-mount", "PermissionDenied"),
            ("unshare-user", "PermissionDenied"),
            ("hostname", "PermissionDenied"),
            ("chroot", "PermissionDenied"),
            ("chmod /dev/null", "ReadOnlyFilesystem"),
        ] {
            check(location, &format!("/helper try {call}"), expected);
        }
    });
}

#[test]
fn the_kernel_cannot_be_changed_through_proc() {
    as_each_user(|location| {
        for file in [
            "sys/kernel/core_pattern",
            "sys/user/max_user_namespaces",
            "sys/kernel/hostname",
            "self/oom_score_adj",
        ] {
            check_refused(
                location,
                &format!("echo 1 > /proc/{file}"),
                "Read-only file system",
            );
        }
        check(
            location,
            "for name in kcore keys timer_list sysrq-trigger vmallocinfo kallsyms; do \
             test ! -e /proc/$name || cat /proc/$name; done | wc -c",
            "0",
        );
    });
}

#[test]
fn loopback_is_private_or_the_hosts_as_asked() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    as_each_user(|location| {
        let mut request =
            location.shell(&format!("/helper try connect {port}; /helper try loopback"));
        let apart = location.run(&request);
        assert_eq!(apart.stdout, "connection refused\nheard\n", "{apart:?}");
        request.network = "host".to_owned();
        let joined = location.run(&request);
        assert_eq!(joined.stdout, "connected\nheard\n", "{joined:?}");
    });
}

#[test]
fn without_isolation_the_program_sees_the_host_and_exactly_its_environment() {
    as_each_user(|location| {
        let line =
            "pwd; env | cut -d= -f1 | sort | tr '\\n' ' '; test -e /etc/shadow && readlink -f .";
        let reply = location.run(&location.bare(line));
        let work = location.text("work");
        assert_eq!(
            reply.stdout,
            format!("{work}\nHOME PATH PWD SHLVL _ {work}\n"),
            "{reply:?}"
        );
    });
}
