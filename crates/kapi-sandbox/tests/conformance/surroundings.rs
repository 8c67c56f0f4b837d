//! What a program finds around it.

use crate::place::Place;
use crate::{Behaviour, notify, run, say};

pub(crate) const BEHAVIOURS: &[Behaviour] = &[
    (
        "the environment is what was given",
        environment,
        "HOME PATH TWO one\nINJECTED=1",
    ),
    ("the directory", directory, "/workspace/sub"),
    (
        "the host name",
        |location| say(location, "cat /proc/sys/kernel/hostname; uname -n"),
        "kapi-suite\nkapi-suite",
    ),
    ("the home", home, "/home/agent kept"),
    (
        "temporary places",
        |location| {
            say(
                location,
                "for d in /tmp /var/tmp /dev/shm; do ls -A $d; echo x > $d/mine && cat $d/mine; stat -c %a $d; done",
            )
        },
        "x\n1777\nx\n1777\nx\n1777",
    ),
    (
        "programs can be run from temporary places",
        |location| {
            say(
                location,
                "printf '#!/bin/sh\\necho ran' > /tmp/p; chmod +x /tmp/p; /tmp/p",
            )
        },
        "ran",
    ),
    ("who the program is", who, "own"),
    (
        "privileges",
        |location| {
            say(
                location,
                "grep -E '^(CapEff|CapBnd|CapPrm|NoNewPrivs|Seccomp):' /proc/self/status | cut -f2 | tr '\\n' ' '; ulimit -Hc; umask",
            )
        },
        "0000000000000000 0000000000000000 0000000000000000 1 2 0\n0022",
    ),
    (
        "processes",
        |location| {
            say(
                location,
                "test $$ -lt 100 && set -- /proc/[0-9]*; test $# -le 4 && echo own; kill -9 1; echo alive",
            )
        },
        "own\nalive",
    ),
    (
        "no signal is blocked or ignored",
        |location| {
            say(
                location,
                "grep -E '^Sig(Blk|Ign)' /proc/self/status | cut -f2 | tr '\\n' ' '",
            )
        },
        "0000000000000000 0000000000000000",
    ),
    (
        "devices",
        |location| {
            say(
                location,
                "for d in null zero full random urandom; do test -c /dev/$d && echo $d; done; test -e /dev/ptmx && echo ptmx",
            )
        },
        "null\nzero\nfull\nrandom\nurandom\nptmx",
    ),
    (
        "the person's own files are not there",
        absent,
        "absent absent",
    ),
    (
        "local names",
        |location| {
            python(
                location,
                "import socket; print(socket.gethostbyname('localhost'))",
            )
        },
        "127.0.0.1",
    ),
    (
        "threads and children",
        |location| {
            python(
                location,
                "import subprocess, threading; t = threading.Thread(target=print, args=(1,)); t.start(); t.join(); print(subprocess.run(['echo', '2'], capture_output=True).stdout.decode().strip())",
            )
        },
        "1\n2",
    ),
];

fn python(location: &Place, script: &str) -> String {
    let mut request = location.shell("");
    request.argv = ["/usr/bin/python3", "-I", "-c", script]
        .map(str::to_owned)
        .to_vec();
    notify(&run(location, &request))
}

fn environment(location: &Place) -> String {
    let mut request = location.shell("");
    request
        .env
        .push(("TWO".to_owned(), "one\nINJECTED=1".to_owned()));
    let script = "import os; print(*sorted(name for name in os.environ if name != 'LC_CTYPE'), os.environ['TWO'])";
    request.argv = ["/usr/bin/python3", "-I", "-c", script]
        .map(str::to_owned)
        .to_vec();
    notify(&run(location, &request))
}

fn directory(location: &Place) -> String {
    location.directory("work/sub");
    let mut request = location.shell("pwd");
    request.cwd = "/workspace/sub".to_owned();
    notify(&run(location, &request))
}

fn home(location: &Place) -> String {
    let first = say(location, "echo kept > ~/mine; echo -n ~");
    let again = say(location, "cat ~/mine");
    format!("{first} {again}")
}

fn who(location: &Place) -> String {
    let seen = say(location, "id -u");
    if seen == location.user().to_string() && !location.is_root() {
        // A number that has no room in an image is another; nobody's is one of these.
        return "own".to_owned();
    }
    seen
}

fn absent(location: &Place) -> String {
    let secret = location.file("own/secret", "planted").display().to_string();
    let line = format!("test -e {secret} || echo -n 'absent '; test -e /etc/shadow || echo absent");
    say(location, &line)
}
