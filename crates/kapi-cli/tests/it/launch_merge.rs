//! A launch that merges another branch first, and whose agent resolves the conflicts.

use serde_json::Value;

use crate::environment::Environment;
use crate::launch::launch;

/// Makes a branch `b` and a `main` that changed the same line.
fn conflicting() -> Environment {
    let env = Environment::new();
    env.write("a.txt", "one\ntwo\n");
    env.write("gone.txt", "text\n");
    env.commit_all("both begin here");
    env.git(&["checkout", "--quiet", "-b", "b"]);
    env.write("a.txt", "ours\ntwo\n");
    env.commit_all("ours");
    env.git(&["checkout", "--quiet", "main"]);
    env.write("a.txt", "theirs\ntwo\n");
    env.write("new.txt", "new\n");
    env.commit_all("theirs");
    env
}

const MERGE: [&str; 4] = ["--branch", "b", "--merge", "main"];

fn parents(env: &Environment, revision: &str) -> Vec<String> {
    let listed = env.git(&["rev-list", "--parents", "-n", "1", revision]);
    listed.split(' ').skip(1).map(str::to_owned).collect()
}

#[test]
fn an_agent_brings_main_in_and_resolves_what_conflicts() {
    let env = conflicting();
    let (ours, theirs) = (env.commit_of("b"), env.commit_of("main"));
    let agent = "git log -1 --format=%s HEAD^2; \
                 grep -c '^<<<<<<<' a.txt; cat new.txt; printf 'both\\ntwo\\n' > a.txt";
    let document = launch(&env, "1", agent, &MERGE).document();
    assert_eq!(document["message"], "theirs\n1\nnew", "{document:#}");
    assert_eq!(document["exit_code"], 0, "{document:#}");
    assert_eq!(env.show("b", "a.txt"), "both\ntwo");
    assert_eq!(env.show("b", "new.txt"), "new");
    // One merge, and nothing in the history has the markers.
    assert_eq!(parents(&env, "b"), [ours, theirs.clone()]);
    let changed: Vec<&Value> = document["changed"].as_array().unwrap().iter().collect();
    assert_eq!(changed.len(), 2, "{document:#}");
    let diff = env.json(&["diff", "launch/1"]);
    assert!(
        diff["patch"].as_str().unwrap().contains("+both"),
        "{diff:#}"
    );
    // There is nothing to bring in any more.
    let again = launch(&env, "1", "echo x > x.txt", &MERGE).document();
    assert!(
        again["notes"].to_string().contains("already contains main"),
        "{again:#}"
    );
    assert_eq!(parents(&env, "b").len(), 1);
    assert_eq!(env.commit_of("main"), theirs);
}

#[test]
fn what_is_not_resolved_moves_no_branch_and_is_gone_on_with() {
    let env = conflicting();
    let ours = env.commit_of("b");
    let agent = "if [ -e tried ]; then rm tried; echo both > a.txt; else echo resolved everything; \
                 touch tried; fi";
    let refused = launch(&env, "1", agent, &MERGE);
    assert_eq!(refused.code, 4, "{refused:?}");
    let document = refused.document();
    let error = document["error"].as_str().unwrap();
    assert!(
        error.contains("conflict markers are left at a.txt:1"),
        "{error}"
    );
    assert_eq!(env.commit_of("b"), ours);
    let inbox = env.json(&["inbox"]);
    assert_eq!(
        inbox["items"][0]["yes"], "kapi resume launch/1",
        "{inbox:#}"
    );
    let resumed = env.kapi(&["resume", "launch/1", "--json"]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert_eq!(env.show("b", "a.txt"), "both");
    assert_eq!(parents(&env, "b"), [ours, env.commit_of("main")]);
    assert!(!env.git(&["ls-tree", "--name-only", "b"]).contains("tried"));
}

#[test]
fn a_conflict_without_markers_is_named_where_nobody_decided_it() {
    let env = conflicting();
    env.git(&["rm", "--quiet", "gone.txt"]);
    env.commit_all("theirs deletes it");
    env.git(&["checkout", "--quiet", "b"]);
    env.write("gone.txt", "changed\n");
    env.commit_all("ours changes it");
    env.git(&["checkout", "--quiet", "main"]);
    let document = launch(&env, "1", "printf 'both\\ntwo\\n' > a.txt", &MERGE).document();
    assert_eq!(document["exit_code"], 0, "{document:#}");
    let notes = document["notes"].to_string();
    assert!(notes.contains("Check gone.txt"), "{document:#}");
}

#[test]
fn a_merge_into_nothing_is_refused() {
    let env = conflicting();
    let none = launch(&env, "1", "true", &["--branch", "none", "--merge", "main"]);
    none.assert_error(2, &["no branch none", "--base-branch main"]);
    let unknown = launch(&env, "2", "true", &["--branch", "b", "--merge", "nowhere"]);
    unknown.assert_error(2, &["find commit \"nowhere\" to merge", "git fetch"]);
}
