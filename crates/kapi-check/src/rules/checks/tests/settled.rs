//! Which checks run once it is known which tools are there.

use std::collections::BTreeMap;

use super::super::settle::{Mise, RootProbes, needs, settle};
use super::super::{CheckDisposition, CheckVerb};
use super::{directory, only_root};

#[test]
fn a_missing_tool_is_skipped_and_told() {
    let root = only_root(directory("", &[("Cargo.toml", "")]));
    assert_eq!(
        needs(&root),
        ["cargo", "cargo clippy --version", "cargo fmt --version"]
    );
    let found = RootProbes {
        missing: BTreeMap::from([("cargo clippy --version".to_owned(), "no clippy".to_owned())]),
        ..RootProbes::default()
    };
    let planned = settle(&root, &found);
    for one in &planned {
        let expected = if one.check.verb == CheckVerb::Lint {
            CheckDisposition::Skip {
                reason: "no clippy".to_owned(),
            }
        } else {
            CheckDisposition::Run
        };
        assert_eq!(one.disposition, expected, "{}", one.check.verb);
    }
    assert_eq!(planned.len(), 6);
    assert_eq!(
        planned[0].check.command,
        "cargo check --quiet --all-targets"
    );
}

#[test]
fn tasks_of_mise_come_first_and_the_rest_is_routed() {
    let root = only_root(directory("", &[("go.mod", "")]));
    let tasks = ["test", "deploy", "lint"].map(str::to_owned).to_vec();
    let missing = BTreeMap::from([("golangci-lint".to_owned(), "not there".to_owned())]);
    let found = RootProbes {
        missing,
        mise: Mise::Yes,
        tasks: tasks.clone(),
    };
    let planned = settle(&root, &found);
    let lines: Vec<String> = planned
        .iter()
        .map(|one| format!("{}: {}", one.check.provider, one.check.command))
        .collect();
    assert_eq!(lines[0], "go: mise exec -- go vet ./...");
    assert_eq!(lines[1], "mise: mise run lint");
    assert!(
        lines[2].starts_with("go: mise exec -- sh -c 'found=$(gofmt"),
        "{lines:?}"
    );
    assert_eq!(lines[4], "mise: mise run test");
    assert!(
        planned
            .iter()
            .all(|one| one.disposition == CheckDisposition::Run)
    );
    // Where mise does not work, its tasks are nobody's.
    let found = RootProbes {
        mise: Mise::No,
        ..found
    };
    assert_eq!(settle(&root, &found)[4].check.provider, "go");
    // A directory without any profile has its tasks all the same.
    let bare = only_root(directory("", &[("mise.toml", "")]));
    let found = RootProbes {
        mise: Mise::Yes,
        tasks,
        ..RootProbes::default()
    };
    let verbs: Vec<CheckVerb> = settle(&bare, &found)
        .iter()
        .map(|one| one.check.verb)
        .collect();
    assert_eq!(verbs, [CheckVerb::Lint, CheckVerb::Test]);
}

#[test]
fn what_a_check_needs_and_lacks_is_replaced_where_there_is_something_else() {
    let root = only_root(directory("", &[("test_a.py", "")]));
    let needs = needs(&root);
    assert!(needs.contains(&"pytest".to_owned()) && needs.contains(&"python3".to_owned()));
    let test_without = |missing: &[&str]| {
        let reasons = missing
            .iter()
            .map(|need| ((*need).to_owned(), format!("{need} is missing")));
        let found = RootProbes {
            missing: reasons.collect(),
            ..RootProbes::default()
        };
        let planned = settle(&root, &found).into_iter();
        let test = planned
            .into_iter()
            .find(|one| one.check.verb == CheckVerb::Test);
        test.map(|one| (one.check.command, one.disposition))
            .unwrap()
    };
    assert_eq!(
        test_without(&[]),
        ("pytest -q".to_owned(), CheckDisposition::Run)
    );
    let (command, disposition) = test_without(&["pytest"]);
    assert!(command.contains("unittest discover"), "{command}");
    assert_eq!(disposition, CheckDisposition::Run);
    let reason = "pytest is missing".to_owned();
    let skip = CheckDisposition::Skip { reason };
    assert_eq!(test_without(&["pytest", "python3"]).1, skip);
}
