//! Which rule a path has, and how rules are written.

use kapi_check::perform::ecosystems;

use super::{ConflictRule, ConflictWay, defaults, rule_for};

fn way(path: &str, declared: &[&str]) -> Option<String> {
    let declared: Vec<ConflictRule> = declared
        .iter()
        .map(|text| ConflictRule::parse(text).expect("a rule"))
        .collect();
    let defaults = defaults(ecosystems::table().expect("the table"));
    rule_for(path, &declared, &defaults).map(|rule| match &rule.way {
        ConflictWay::Union => "union".to_owned(),
        ConflictWay::Regenerate { run } => run.clone(),
    })
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
    let declared = ["gen/**: run make gen", "**/*.lock: union"];
    assert_eq!(way("gen/a/b.rs", &declared).as_deref(), Some("make gen"));
    assert_eq!(way("Cargo.lock", &declared).as_deref(), Some("union"));
    assert!(way("go.sum", &declared).is_some());
}

#[test]
fn a_rule_is_read_as_it_is_written() {
    for text in ["gen/**: run make gen", "**/NEWS: union"] {
        assert_eq!(ConflictRule::parse(text).expect("a rule").to_string(), text);
    }
    for text in ["gen/**", "gen: ours", "gen: run ", ": union", "gen: run"] {
        let error = ConflictRule::parse(text).expect_err(text).to_string();
        assert!(error.starts_with("read the rule"), "{error}");
    }
}
