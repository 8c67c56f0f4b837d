//! Which rule a path has, and how rules are written.

use kapi_check::perform::ecosystems;

use super::{ConflictRule, defaults, rule_for};

fn way(path: &str, declared: &[&str]) -> Option<String> {
    let declared: Vec<ConflictRule> = declared
        .iter()
        .map(|text| ConflictRule::parse(text).expect("a rule"))
        .collect();
    let defaults = defaults(ecosystems::table().expect("the table"));
    rule_for(path, &declared, &defaults).map(|rule| rule.way.to_string())
}

#[test]
fn lock_files_are_written_by_their_own_tools_and_changelogs_take_both() {
    for (path, expected) in [
        ("Cargo.lock", "cargo update --workspace"),
        ("web/package-lock.json", "npm install --package-lock-only"),
        ("pnpm-lock.yaml", "pnpm install --lockfile-only"),
        ("yarn.lock", "yarn install"),
        ("poetry.lock", "poetry lock"),
        ("a/b/uv.lock", "uv lock"),
        ("go.sum", "go mod tidy"),
        ("Gemfile.lock", "bundle lock"),
        ("composer.lock", "composer update"),
        ("CHANGELOG.md", "union"),
        ("crates/a/CHANGES", "union"),
    ] {
        let found = way(path, &[]).expect(path);
        assert!(found.contains(expected), "{path}: {found}");
    }
    for path in [
        "src/lock.rs",
        "requirements.txt",
        "pom.xml",
        "changes.rs",
        "README.md",
    ] {
        assert_eq!(way(path, &[]), None, "{path}");
    }
}

#[test]
fn what_is_declared_comes_first() {
    let declared = [
        "gen/**: regenerate: make gen",
        "**/*.lock: union",
        "docs/**: ours",
        "**/*.md: theirs",
    ];
    let found = |path: &str| way(path, &declared).unwrap_or_default();
    assert_eq!(found("gen/a/b.rs"), "regenerate: make gen");
    assert_eq!(found("Cargo.lock"), "union");
    assert_eq!(found("docs/a.md"), "ours");
    assert_eq!(found("CHANGELOG.md"), "theirs");
    assert_eq!(found("go.sum"), "regenerate: go mod tidy");
}

#[test]
fn a_rule_is_read_as_it_is_written() {
    for text in [
        "gen/**: regenerate: make gen",
        "**/NEWS: union",
        "a: ours",
        "b: theirs",
    ] {
        assert_eq!(ConflictRule::parse(text).expect("a rule").to_string(), text);
    }
    for text in [
        "gen/**",
        "gen: mine",
        "gen: regenerate: ",
        ": union",
        "gen: regenerate",
    ] {
        let error = ConflictRule::parse(text).expect_err(text).to_string();
        assert!(error.ends_with("settles no conflict"), "{error}");
    }
}
