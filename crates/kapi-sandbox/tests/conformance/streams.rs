//! What goes in and out of runs.

use crate::place::Place;
use crate::{Behaviour, run, say};

pub(crate) const BEHAVIOURS: &[Behaviour] = &[
    ("input and both outputs", whole, "true error\n"),
    ("no input", |location| say(location, "cat; echo end"), "end"),
    ("a flood of output", flood, "Exited(0) 50000000"),
    (
        "a closed pipe ends its writer",
        |location| say(location, "yes | head -1; echo ${PIPESTATUS[0]}"),
        "y\n141",
    ),
    (
        "descriptors",
        |location| {
            say(
                location,
                "for n in 0 1 2 3 4 5 6 7 8 9; do test -e /proc/$$/fd/$n && echo -n $n; done; test -t 0 || echo no terminal",
            )
        },
        "012no terminal",
    ),
    ("a given descriptor", given, "of the host"),
    (
        "arguments are passed as they are",
        arguments,
        "[a b] [] [$x] [\n] [\"']",
    ),
];

fn whole(location: &Place) -> String {
    let mut request = location.shell("tr a-z A-Z; echo error >&2");
    request.stdin = "words\n".repeat(50_000);
    let reply = run(location, &request);
    format!(
        "{} {}",
        reply.stdout == "WORDS\n".repeat(50_000),
        reply.stderr
    )
}

fn flood(location: &Place) -> String {
    let reply = run(
        location,
        &location.shell("head -c 50000000 /dev/zero | tr '\\0' '\\n'"),
    );
    format!("{} {}", reply.end, reply.stdout_bytes)
}

fn given(location: &Place) -> String {
    location.file("given", "of the host");
    let mut request = location.shell("cat <&3");
    request.passed = location.text("given");
    run(location, &request).stdout
}

fn arguments(location: &Place) -> String {
    let mut request = location.shell("printf '[%s] [%s] [%s] [%s] [%s]' \"$@\"");
    request
        .argv
        .extend(["x", "a b", "", "$x", "\n", "\"'"].map(str::to_owned));
    run(location, &request).stdout
}
