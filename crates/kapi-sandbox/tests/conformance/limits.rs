//! Limits, and what a run that met one says.

use crate::place::Place;
use crate::{Behaviour, run};

const MIB: u64 = 1 << 20;

pub(crate) const BEHAVIOURS: &[Behaviour] = &[
    (
        "open files are bounded",
        |location| {
            limited(
                location,
                "ulimit -n; ulimit -n 65 2>/dev/null || echo kept",
                "files",
                64,
            )
            .0
        },
        "64\nkept\n",
    ),
    (
        "a large file is named",
        large_file,
        "file size 1 MiB, 1048576",
    ),
    ("used up memory is named", memory, "memory 64 MiB"),
    (
        "used up processes are named",
        |location| processes(location, 3),
        "processes 40",
    ),
    (
        "a limit that a program survives does not explain its end",
        |location| processes(location, 0),
        "",
    ),
    ("a full disk is named", disk, "Signaled(9) disk 16 MiB"),
    (
        "within the limits nothing is named",
        |location| {
            let (said, exceeded) =
                limited(location, "sleep 0 & wait; echo fine", "memory", 512 * MIB);
            format!("{said}{exceeded}")
        },
        "fine\n",
    ),
];

fn limited(location: &Place, line: &str, name: &str, limit: u64) -> (String, String) {
    let mut request = location.shell(line);
    request.resources = vec![(name.to_owned(), limit)];
    let reply = run(location, &request);
    (reply.stdout, reply.exceeded)
}

fn large_file(location: &Place) -> String {
    let line = "head -c 2097152 /dev/zero > big; code=$?; stat -c %s big; exit $code";
    let (said, exceeded) = limited(location, line, "size", MIB);
    format!("{exceeded}, {}", said.trim_end())
}

fn memory(location: &Place) -> String {
    let line = "/usr/bin/python3 -I -c 'import time; x = [bytearray(b\"x\" * (1 << 20)) for _ in range(300)]; time.sleep(5)'";
    limited(location, line, "memory", 64 * MIB).1
}

fn processes(location: &Place, code: u8) -> String {
    let script = "import os, sys, time\nfor _ in range(100):\n    try:\n        pid = os.fork()\n    except OSError:\n        break\n    if pid == 0:\n        time.sleep(3)\n        os._exit(0)\ntime.sleep(1)\nos._exit(int(sys.argv[1]))";
    let mut request = location.shell("");
    request.argv = ["/usr/bin/python3", "-I", "-c", script, &code.to_string()]
        .map(str::to_owned)
        .to_vec();
    request.resources = vec![("processes".to_owned(), 40)];
    run(location, &request).exceeded
}

fn disk(location: &Place) -> String {
    // The disk is looked at at least once a minute, whatever the rest of the machine does.
    let line = "head -c 40000000 /dev/zero > fill; sleep 80; rm fill";
    let mut request = location.shell(line);
    request.resources = vec![("disk".to_owned(), 16 * MIB)];
    let reply = run(location, &request);
    std::fs::remove_file(location.path("work/fill")).ok();
    format!("{} {}", reply.end, reply.exceeded)
}
