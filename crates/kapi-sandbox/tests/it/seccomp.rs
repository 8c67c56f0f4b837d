//! Calls that are refused whatever their arguments, and tools that must work all the same.

use crate::workplace::{Workplace, as_each_user};

/// Checks what the kernel answers to a raw call inside.
fn check(location: &Workplace, call: &str, expected: &str) {
    let reply = location.run(&location.shell(&format!("/helper try kernel {call}")));
    assert_eq!(reply.stdout.trim_end(), expected, "{call}: {reply:?}");
}

#[test]
fn every_call_of_the_table_is_refused() {
    as_each_user(|location| {
        let reply = location.run(&location.shell("/helper try kernel each"));
        let answered: Vec<&str> = reply.stdout.lines().collect();
        assert!(answered.len() > 50, "{reply:?}");
        for line in answered {
            let expected = if line.starts_with("clone3 ") || line.starts_with("openat2 ") {
                "absent"
            } else {
                "refused"
            };
            assert!(line.ends_with(expected), "{line}");
        }
    });
}

#[test]
fn most_of_the_table_would_be_answered_without_the_filter() {
    // Without this, a table of calls that nobody may make would prove nothing about the filter.
    let location = Workplace::new(rustix::process::geteuid().as_raw());
    let reply =
        location.run(&location.bare(&format!("{} try kernel each", location.text("helper"))));
    for call in ["keyctl", "io_uring_setup", "userfaultfd", "clone3", "kcmp"] {
        let line = reply.stdout.lines().find(|line| line.starts_with(call));
        let line = line.unwrap();
        assert!(
            !line.ends_with("refused") && !line.ends_with("absent"),
            "{line}"
        );
    }
}

#[test]
fn arguments_decide_where_the_call_itself_is_ordinary() {
    as_each_user(|location| {
        location.file("work/file", "");
        for (call, expected) in [
            // Namespaces by way of a new process: user, mount, process, network, and none.
            ("clone 0x10000000", "refused"),
            ("clone 0x00020000", "refused"),
            ("clone 0x20000000", "refused"),
            ("clone 0x40000000", "refused"),
            ("clone 0", "done"),
            // Sockets: local, internet, routes; raw, other netlink, packets, virtual machines, crypto.
            ("socket 1 1 0", "done"),
            ("socket 2 1 0", "done"),
            ("socket 10 2 0", "done"),
            ("socket 16 3 0", "done"),
            ("socket 2 3 1", "refused"),
            ("socket 10 3 58", "refused"),
            ("socket 16 3 9", "refused"),
            ("socket 17 3 0", "refused"),
            ("socket 31 5 0", "refused"),
            ("socket 38 5 0", "refused"),
            ("socket 40 1 0", "refused"),
            // Typing into terminals, whatever the upper half of the argument says.
            ("control 0x5412", "refused"),
            ("control 0x541C", "refused"),
            ("control 0x100005412", "refused"),
            ("control 0x5401", "errno 25"),
            ("personality 0x0400000", "refused"),
            ("personality 0xffffffff", "done"),
            // Programs that run as their owner, and devices.
            ("mode file 0o4755", "refused"),
            ("mode2 file 0o4755", "refused"),
            ("mode file 0o755", "done"),
            ("create planted 0o4755", "refused"),
            ("create made 0o755", "done"),
            // As their group: only where a call cannot be about a directory.
            ("create planted 0o2755", "refused"),
            ("node planted 0o102755", "refused"),
            ("mode . 0o2755", "done"),
            ("node disk 0o60600", "refused"),
            ("node whiteout 0o20000", "refused"),
            ("node pipe 0o10600", "done"),
        ] {
            check(location, call, expected);
        }
        assert!(!location.path("work/planted").exists());
    });
}

#[test]
#[cfg(target_arch = "x86_64")]
fn calls_of_another_table_end_the_program() {
    as_each_user(|location| {
        for call in ["other-table", "other-instruction-set"] {
            let line = format!("/helper try kernel {call}; echo $?");
            let reply = location.run(&location.shell(&line));
            // 128 and SIGSYS.
            assert_eq!(reply.stdout, "159\n", "{call}: {reply:?}");
        }
    });
}

#[test]
fn the_filter_cannot_be_left() {
    as_each_user(|location| {
        let reply =
            location.run(&location.shell("grep -E '^(Seccomp|NoNewPrivs):' /proc/self/status"));
        assert_eq!(reply.stdout, "NoNewPrivs:\t1\nSeccomp:\t2\n", "{reply:?}");
        let line = "python3 -c 'import ctypes; libc = ctypes.CDLL(None); print([libc.prctl(22, mode, 0, 0, 0) for mode in (0, 1)])'";
        let reply = location.run(&location.shell(line));
        assert_eq!(reply.stdout, "[-1, -1]\n", "{reply:?}");
    });
}

#[test]
fn a_program_without_a_file_stays_inside() {
    let script = "import os\nfd = os.memfd_create('x', 0)\nos.write(fd, open('/usr/bin/cat', 'rb').read())\nos.execve(fd, ['cat', '/proc/self/status'], {})";
    as_each_user(|location| {
        let mut request = location.shell("");
        request.argv = ["/usr/bin/python3", "-c", script]
            .map(str::to_owned)
            .to_vec();
        let reply = location.run(&request);
        for line in [
            "NoNewPrivs:\t1\n",
            "Seccomp:\t2\n",
            "CapEff:\t0000000000000000\n",
        ] {
            assert!(reply.stdout.contains(line), "{line}: {reply:?}");
        }
    });
}

#[test]
fn devices_that_reach_the_machine_are_not_there() {
    as_each_user(|location| {
        let reply =
            location.run(&location.shell("ls /dev | tr '\\n' ' '; ls -A /dev/pts /dev/shm"));
        assert_eq!(
            reply.stdout,
            "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero /dev/pts:\nptmx\n\n/dev/shm:\n",
            "{reply:?}"
        );
        // A terminal of somebody else cannot be opened: the session has none.
        let reply = location.run(&location.shell("exec 3</dev/tty"));
        assert!(reply.stderr.contains("No such device"), "{reply:?}");
    });
}

#[test]
fn shared_memory_of_the_host_is_out_of_reach() {
    // The kernel's own key-value memory is not a file, so neither mounts nor rules for files hide it.
    let made = "import ctypes, sys; libc = ctypes.CDLL(None); print(libc.shmget(int(sys.argv[1]), 64, int(sys.argv[2], 8)) >= 0)";
    as_each_user(|location| {
        let key = (0x4B00_0000 + std::process::id()).to_string();
        let mut outside = location.bare("");
        outside.argv = ["/usr/bin/python3", "-c", made, &key, "1666"]
            .map(str::to_owned)
            .to_vec();
        assert_eq!(location.run(&outside).stdout, "True\n");
        let mut inside = location.shell("");
        inside.argv = ["/usr/bin/python3", "-c", made, &key, "0"]
            .map(str::to_owned)
            .to_vec();
        assert_eq!(location.run(&inside).stdout, "False\n");
        let mut again = outside.clone();
        again.argv[4] = "0".to_owned();
        assert_eq!(location.run(&again).stdout, "True\n");
        outside.argv = ["/usr/bin/ipcrm", "-M", &key].map(str::to_owned).to_vec();
        assert_eq!(location.run(&outside).end, "Exited(0)");
    });
}

#[test]
fn ordinary_tools_work() {
    as_each_user(|location| {
        for (line, expected) in [
            (
                "git init -q . && git config user.email a@b && git config user.name a && echo x > f && git add f && git commit -qm m && git status --porcelain | wc -l",
                "0\n",
            ),
            (
                "python3 -c 'import asyncio, multiprocessing, socket, subprocess, threading\ns = socket.socketpair()\nt = threading.Thread(target=print, args=(1,)); t.start(); t.join()\nprint(subprocess.run([\"echo\", \"2\"], capture_output=True).stdout.decode().strip())\nasync def f():\n    p = await asyncio.create_subprocess_exec(\"echo\", \"3\", stdout=-1)\n    print((await p.communicate())[0].decode().strip())\nasyncio.run(f())'",
                "1\n2\n3\n",
            ),
            (
                "tar cf - /usr/bin/env 2>/dev/null | tar xf - && cp -p usr/bin/env copy && ln copy link && mv link moved && mkdir d && mv moved d/ && echo ok",
                "ok\n",
            ),
            (
                "bash -c 'exec 3<>/dev/null; echo a | tee /dev/stderr' 2>/dev/null | cat",
                "a\n",
            ),
        ] {
            let reply = location.run(&location.shell(line));
            assert_eq!(reply.stdout, expected, "{line}: {reply:?}");
        }
    });
}

#[test]
fn node_lists_interfaces_and_runs_threads_and_servers() {
    let script = "const os = require('os'), http = require('http'), { Worker } = require('worker_threads');\
        new Worker('require(\"worker_threads\").parentPort.postMessage(1)', { eval: true }).on('message', m => {\
          const s = http.createServer((q, r) => r.end('heard')).listen(0, '127.0.0.1', () => {\
            http.get({ port: s.address().port, host: '127.0.0.1' }, r => r.on('data', d => {\
              console.log(Object.keys(os.networkInterfaces()).join(), m, String(d));\
              require('fs').promises.readFile('/etc/hosts').then(() => s.close()); })); }); });";
    as_each_user(|location| {
        let mut request = location.shell("");
        request.argv = ["/usr/bin/env", "node", "-e", script]
            .map(str::to_owned)
            .to_vec();
        let reply = location.run(&request);
        assert_eq!(reply.stdout, "lo 1 heard\n", "{reply:?}");
    });
}

#[test]
fn a_sandbox_may_hold_a_sandbox_where_the_spec_says_so() {
    as_each_user(|location| {
        let line = "unshare --user --map-root-user --mount --pid --fork sh -c 'mount -t tmpfs none /tmp && echo inner > /tmp/f && cat /tmp/f; id -u'";
        let strict = location.run(&location.shell(line));
        assert_eq!(strict.stdout, "", "{strict:?}");
        let mut request = location.shell(line);
        request.nested = true;
        let nested = location.run(&request);
        assert_eq!(nested.stdout, "inner\n0\n", "{nested:?}");
        assert!(
            nested
                .grade
                .ends_with(" for sockets and signals, seccomp but for namespaces"),
            "{nested:?}"
        );
        for (call, expected) in [("bpf", "refused"), ("keyctl", "refused")] {
            request.argv = ["/bin/bash", "-c", "/helper try kernel each"]
                .map(str::to_owned)
                .to_vec();
            let reply = location.run(&request);
            let line = format!("{call} {expected}\n");
            assert!(reply.stdout.contains(&line), "{reply:?}");
        }
    });
}
