//! Conditions that are refused, and what to do about each.

use super::{parsed, refused};

/// What is written, what is wrong with it, and what to do.
const REFUSED: &[(&str, &str, &str)] = &[
    (
        "fiel: {exists: a}",
        "f:2: `c.fiel`: unknown key",
        "did you mean `c.file`?",
    ),
    (
        "all: [{git: cleen}]",
        "f:2: `c.all[0].git`: unknown value \"cleen\"",
        "did you mean `clean`?",
    ),
    (
        "{file: {exists: a}, git: clean}",
        "f:1: `c`: `file` and `git` are in one table",
        "write each in a separate table",
    ),
    (
        "[\"true\"]",
        "f:1: `c`: it is a list",
        "give text, or a table with one of all, any, not, expr, file, command, git, time, last_result, changed",
    ),
    ("all: []", "f:2: `c.all`: it has 0 entries", "give 1 to 64"),
    (
        "any: [inputs.a ==]",
        "f:2: `c.any[0]`: unexpected token at 11 (column 12 of the expression)",
        "write it like inputs.market == 'ETH' && !payload.dry",
    ),
    (
        "expr: market == 'ETH'",
        "f:2: `c.expr`: `market` never exists, so the condition would never hold",
        "start paths with inputs., payload. or state.",
    ),
    (
        "file: {exists: ../x}",
        "f:2: `c.file.exists`: \"../x\" points outside the project",
        "write it relative to the project, without `..`",
    ),
    (
        "changed: [a, /etc/passwd]",
        "f:2: `c.changed[1]`: \"/etc/passwd\" points outside the project",
        "write it relative to the project, without `..`",
    ),
    (
        "command: {run: make, timeout: 601}",
        "f:2: `c.command.timeout`: 601 is out of range",
        "give 1 to 600 seconds, or a duration such as 90s, 15m, 2h or 1d",
    ),
    (
        "git: {ahead_of: --all}",
        "f:2: `c.git.ahead_of`: \"--all\" is not a branch, tag or ref name",
        "write a name like main or refs/tags/v1",
    ),
    (
        "time: {from: 9:00, to: \"17:00\"}",
        "f:2: `c.time`: it has no `zone`",
        "add `zone`",
    ),
    (
        "time: {from: \"25:00\", zone: UTC}",
        "f:2: `c.time.from`: \"25:00\" is not a time of day",
        "write it in quotes, from \"00:00\" to \"24:00\"",
    ),
    (
        "time: {days: mon-fry, zone: UTC}",
        "f:2: `c.time.days`: \"mon-fry\" is not a day of the week",
        "write days as mon-fri or sat, sun",
    ),
    (
        "time: {from: \"9:00\", to: \"09:00\", zone: UTC}",
        "f:2: `c.time`: the window starts when it ends",
        "omit both times for the whole day",
    ),
    (
        "time: {zone: ../../etc/localtime}",
        "f:2: `c.time.zone`: \"../../etc/localtime\" is not a time zone name",
        "write a name like Europe/Berlin, UTC or local",
    ),
    (
        "last_result: {loop: A B, is: failed}",
        "f:2: `c.last_result.loop`: \"A B\" is not a loop name",
        "it must be 1 to 64 characters of a-z, 0-9, '.', '-' and '_', and start with a letter or digit",
    ),
    (
        "true",
        "f:1: `c`: it is true or false",
        "give text, or a table with one of all, any, not, expr, file, command, git, time, last_result, changed",
    ),
];

#[test]
fn what_is_refused_and_what_to_do() {
    for (text, fault, remedy) in REFUSED {
        assert_eq!(
            refused(text),
            ((*fault).to_owned(), (*remedy).to_owned()),
            "{text}"
        );
    }
}

#[test]
fn depth_and_count_have_a_limit() {
    let nested =
        |depth: usize| format!("{}\"true\"{}", "{all: [".repeat(depth), "]}".repeat(depth));
    parsed(&nested(7));
    let (fault, _) = refused(&nested(8));
    assert!(fault.contains("conditions lie more than 8 deep"), "{fault}");
    let wide = |count: usize| format!("all: [{}]", vec!["\"true\""; count].join(", "));
    parsed(&wide(64));
    let (fault, _) = refused(&wide(65));
    assert_eq!(fault, "f:2: `c.all`: it has 65 entries");
    let split = format!(
        "any: [{}, {{{}}}]",
        wide(40).replace("all", "{all") + "}",
        wide(40)
    );
    let (fault, _) = refused(&split);
    assert!(
        fault.contains("there are more than 64 conditions"),
        "{fault}"
    );
}
