//! Several agents that propose from the same parent at once, each in a workspace of its own.

use super::{BRANCH, Machine, decided};

/// The first round: doubling by one addition, summing by a formula, and a loop that does not end its
/// work in time; the second: another way to sum, which does not fit, and nothing.
const THREE: &str = r#"turns: []
roles:
  researcher:
    - steps:
        - write: {path: src/twice.sh, content: "twice() { add \"$1\" \"$1\"; }\n"}
        - bash: "mkdir -p build; echo x > build/cache"
        - answer: {hypothesis: One addition doubles., description: double by adding once}
    - steps:
        - write: {path: src/sum.sh, content: "sum() { add \"$1\" 1; mul \"$1\" \"$r\"; half \"$r\"; }\n"}
        - bash: "git add -A; git -c user.name=a -c user.email=a@b commit -qm mine"
        - answer: {hypothesis: A formula needs no loop., description: sum by a formula}
    - steps:
        - bash: "sed -i 's/i=1/i=0/' src/sum.sh"
        - answer: {hypothesis: It begins earlier., description: begin at nothing}
    - steps: [{answer: {exhausted: true}}]
    - steps: [{answer: {exhausted: true}}]
    - steps: [{answer: {exhausted: true}}]
"#;

#[test]
fn independent_gains_of_one_round_are_combined_and_measured_again() {
    let machine = Machine::with_agent(THREE);
    let env = &machine.env;
    let proposed = machine.contracted(&["--parallel", "3"]);
    assert_eq!(proposed.code, 5, "{proposed:?}");
    machine.approve();
    let done = machine.resume(&[]);
    assert_eq!(done.code, 0, "{done:?}");
    let runs = machine.runs();
    let found = decided(&runs);
    assert_eq!(
        found,
        [
            ("keep", Some(44.0)),
            ("discard", Some(46.0)),
            ("keep", Some(7.0)),
            ("keep", Some(4.0)),
        ],
        "{runs:#?}"
    );
    let log = env.git(&["log", "--format=%s", &format!("main..{BRANCH}")]);
    let subjects: Vec<&str> = log.lines().collect();
    assert_eq!(
        subjects,
        ["perf: double by adding once", "perf: sum by a formula"]
    );
    // Nothing is left of the workspaces that were made for a turn.
    let branches = env.git(&["branch", "--format=%(refname:short)"]);
    assert!(!branches.contains("-try-"), "{branches}");
    let worktrees = env.git(&["worktree", "list"]);
    assert_eq!(worktrees.lines().count(), 2, "{worktrees}");
    for part in [1, 2] {
        env.commit_of(&format!("{BRANCH}-part-{part}"));
    }
}
