//! What a program in a container can and cannot see, write, reach and call.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;

use super::yard::{HELPER, as_each_user};

#[test]
fn only_the_workspace_the_home_and_temporary_places_can_be_written() {
    as_each_user(|yard| {
        yard.check(
            "echo a > /workspace/made && echo b > ~/kept && echo c > /tmp/t && echo d > /dev/null && echo e > /dev/shm/s && echo ok",
            "ok",
        );
        assert_eq!(fs::read_to_string(yard.path("work/made")).unwrap(), "a\n");
        assert_eq!(fs::read_to_string(yard.path("home/kept")).unwrap(), "b\n");
        yard.check(
            "echo /tmp/* /var/tmp/* /run/* /dev/shm/*",
            "/tmp/* /var/tmp/* /run/* /dev/shm/*",
        );
        let locations = "/ /etc /bin /var /home /proc /sys /proc/sys/kernel /sys/fs/cgroup";
        yard.check(
            &format!(
                "for d in {locations}; do (echo x > $d/planted) 2>/dev/null && echo $d; done; echo end"
            ),
            "end",
        );
        let files = "/etc/passwd /etc/hosts /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname \
                     /proc/sysrq-trigger /sys/kernel/uevent_helper";
        yard.check(
            &format!("for f in {files}; do (echo x >> $f) 2>/dev/null && echo $f; done; echo end"),
            "end",
        );
    });
}

#[test]
fn a_read_only_mount_refuses_writes_and_a_given_file_too() {
    as_each_user(|yard| {
        yard.directory("input");
        yard.file("input/data", "kept");
        let mut ask = yard.shell(
            "cat /input/data ~/.tool/settings; echo x > /input/new; echo x > /input/data; chmod 777 /input/data; \
             echo x > ~/.tool/settings; mv ~/.tool/settings ~/.tool/gone; echo y > ~/.tool/more",
        );
        ask.mounts
            .push((yard.text("input"), "/input".to_owned(), "ro".to_owned()));
        ask.files = vec![(
            "/home/agent/.tool/settings".to_owned(),
            " and, \"this\"".to_owned(),
        )];
        let reported = yard.run(&ask);
        assert_eq!(reported.stdout, "kept and, \"this\"", "{reported:?}");
        assert_eq!(
            reported.stderr.matches("Read-only file system").count(),
            4,
            "{reported:?}"
        );
        assert!(reported.stderr.contains("busy"), "{reported:?}");
        assert_eq!(fs::read_dir(yard.path("input")).unwrap().count(), 1);
        assert_eq!(
            fs::read_to_string(yard.path("home/.tool/settings")).unwrap(),
            ""
        );
        assert_eq!(
            fs::read_to_string(yard.path("home/.tool/more")).unwrap(),
            "y\n"
        );
        for made in ["home/.tool", "home/.tool/settings", "home/.tool/more"] {
            assert_eq!(super::yard::owner(&yard.path(made)), yard.user(), "{made}");
        }
    });
}

#[test]
fn nothing_of_the_host_is_there_but_what_was_mounted() {
    as_each_user(|yard| {
        let secret = yard.file("secret-file", "planted").display().to_string();
        let own_home = std::env::var("HOME").unwrap();
        for path in [secret.as_str(), "/etc/shadow", "/usr/bin/podman", &own_home] {
            yard.check(&format!("test -e {path} && echo {path}; echo end"), "end");
        }
        yard.check(
            "env | cut -d= -f1 | sort | tr '\\n' ' '",
            "HOME PATH PWD SHLVL",
        );
        yard.check(
            "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c -e planted -e podman",
            "0",
        );
        yard.check(
            "tr '\\0' ' ' < /proc/1/cmdline | grep -c -e env -e planted -e /tmp/",
            "0",
        );
        for file in [
            "environ",
            "maps",
            "mem",
            "fd/3",
            "fd/4",
            "root/etc/passwd",
            "exe",
            "cwd/etc",
        ] {
            yard.check(
                &format!("head -c 1 /proc/1/{file} 2>/dev/null; echo end"),
                "end",
            );
        }
        yard.check(
            "cat /proc/kcore /proc/keys /proc/timer_list 2>/dev/null | wc -c",
            "0",
        );
    });
}

#[test]
fn the_payload_sees_only_its_own_processes_and_cannot_end_the_first() {
    as_each_user(|yard| {
        yard.check(
            "set -- /proc/[0-9]*; echo $#; kill -9 1; kill -STOP 1; echo alive",
            "2\nalive",
        );
        let user = if yard.is_root() { 0 } else { yard.user() };
        yard.check("hostname; id -u", &format!("kapi-test\n{user}"));
    });
}

#[test]
fn privileges_are_gone_for_good() {
    as_each_user(|yard| {
        let none = "0000000000000000";
        yard.check(
            "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status | cut -f2 | tr '\\n' ' '; \
             grep -c '^Max core file size  *0 ' /proc/self/limits",
            &format!("{none} {none} {none} {none} {none} 1 2 1"),
        );
        for call in [
            "mount",
            "umount",
            "unshare-mount",
            "unshare-user",
            "hostname",
            "chroot",
        ] {
            yard.check(&format!("{HELPER} try {call}"), "PermissionDenied");
        }
    });
}

#[test]
fn loopback_is_private_or_the_hosts_as_asked() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // Whoever gets through is told so; the thread ends with the test's process.
    std::thread::spawn(move || {
        while let Ok((mut client, _)) = listener.accept() {
            client.write_all(b"reached\n").unwrap();
        }
    });
    as_each_user(|yard| {
        yard.check(&format!("{HELPER} fetch {address}"), "connection refused");
        yard.check("ls /sys/class/net", "lo");
        let mut ask = yard.shell(&format!("{HELPER} fetch {address}"));
        ask.network = "host".to_owned();
        let reported = yard.run(&ask);
        assert_eq!(reported.stdout, "reached\n", "{reported:?}");
        assert!(reported.grade.contains("private network"), "{reported:?}");
    });
}

#[test]
fn listeners_inside_are_served_by_the_host_side() {
    as_each_user(|yard| {
        let line = format!(
            "{HELPER} fetch 127.0.0.1:8080; {HELPER} fetch 127.0.0.1:8081; {HELPER} fetch 127.0.0.1:8082"
        );
        let mut ask = yard.shell(&line);
        ask.listeners = vec!["127.0.0.1:8080".to_owned(), "127.0.0.1:8081".to_owned()];
        let reported = yard.run(&ask);
        assert_eq!(
            reported.stdout, "hello\nhello\nconnection refused\n",
            "{reported:?}"
        );
    });
}

#[test]
fn secrets_of_the_payload_are_in_no_command_line_and_no_inspection() {
    as_each_user(|yard| {
        // The payload asks the host through a file and waits for the answer.
        // Its own, because the processes of other tests are looked at, too.
        let secret = format!("s3cret-value-{}", std::process::id());
        let secret = secret.as_str();
        let mut ask = yard.shell("touch up; until test -e go; do sleep 0.01; done; echo \"$KEY\"");
        ask.env
            .push(("KEY".to_owned(), format!("{secret}\nINJECTED=1")));
        ask.argv.push(secret.to_owned());
        let reported = std::thread::scope(|scope| {
            let running = scope.spawn(|| yard.run(&ask));
            let up = yard.path("work/up");
            crate::workplace::await_condition("the container is up", || up.exists());
            let inspected = yard
                .podman(&["inspect", &format!("kapi-{}", ask.name)])
                .stdout
                .text();
            assert!(inspected.contains("kapi.managed"), "{inspected}");
            assert!(!inspected.contains(secret), "{inspected}");
            assert_eq!(outside_command_lines(secret), 0);
            yard.file("work/go", "");
            running.join().unwrap()
        });
        assert_eq!(
            reported.stdout,
            format!("{secret}\nINJECTED=1\n"),
            "{reported:?}"
        );
    });
}

/// Counts the command lines and environments with a text, leaving out the payload and its driver.
fn outside_command_lines(text: &str) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let holds = |path: std::path::PathBuf| {
        let bytes = fs::read(path).unwrap_or_default();
        bytes
            .windows(text.len())
            .any(|window| window == text.as_bytes())
    };
    let is_podmans = |path: &std::path::Path| {
        fs::read_to_string(path.join("comm")).is_ok_and(|name| {
            ["podman", "conmon", "runc", "exe", "loader", "kapi"].contains(&name.trim())
        })
    };
    let paths = entries
        .map(|entry| entry.path())
        .filter(|path| is_podmans(path));
    paths
        .filter(|path| holds(path.join("cmdline")) || holds(path.join("environ")))
        .count()
}

#[test]
fn limits_are_in_force_or_told_as_missing() {
    as_each_user(|yard| {
        let mut ask = yard.shell(
            "grep -E 'open files|file size' /proc/self/limits | grep -v core | tr -s ' ' | cut -d' ' -f4; \
             head -c 2000000 /dev/zero > big; stat -c %s big",
        );
        ask.open_files = Some(64);
        ask.file_bytes = Some(1_000_000);
        ask.memory_bytes = Some(64 << 20);
        ask.processes = Some(40);
        let reported = yard.run(&ask);
        assert_eq!(reported.stdout, "1000000\n64\n1000000\n", "{reported:?}");
        if yard.is_root() {
            assert!(
                reported.grade.contains("memory 64 MiB, 40 processes"),
                "{reported:?}"
            );
        } else if reported.grade.contains("without") {
            assert!(
                reported.grade.contains("memory 64 MiB for each process"),
                "{reported:?}"
            );
            assert!(
                reported.grade.contains("delegate the controllers"),
                "{reported:?}"
            );
        }
        ask.argv[2] = "for i in $(seq 100); do sleep 5 & done; wait".to_owned();
        let reported = yard.run(&ask);
        assert!(reported.stderr.contains("fork"), "{reported:?}");
        ask.argv[2] = "x=$(head -c 200000000 /dev/zero | tr '\\0' a); echo ${#x}".to_owned();
        let reported = yard.run(&ask);
        assert!(!reported.stdout.contains("200000000"), "{reported:?}");
        if yard.is_root() {
            assert_eq!(reported.exceeded, "memory 64 MiB", "{reported:?}");
        }
    });
}
