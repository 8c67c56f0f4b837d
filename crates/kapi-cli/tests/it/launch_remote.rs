//! Launches on branches that a remote has, too.

use std::fs;
use std::path::PathBuf;

use crate::environment::{Environment, await_some, write};
use crate::launch::{TASK, launch, review};

/// Makes a bare remote called origin with what the repository has.
fn remote(env: &Environment) -> PathBuf {
    let bare = env.root().join("remote.git");
    let path = bare.display().to_string();
    env.git(&[
        "init",
        "--quiet",
        "--bare",
        "--initial-branch",
        "main",
        &path,
    ]);
    env.git(&["remote", "add", "origin", &path]);
    env.git(&["push", "--quiet", "origin", "main"]);
    bare
}

/// Returns what a branch of the bare remote points at.
fn remote_commit(env: &Environment, branch: &str) -> String {
    let bare = env.root().join("remote.git").display().to_string();
    env.git(&["--git-dir", &bare, "rev-parse", branch])
}

#[test]
fn a_branch_goes_on_from_here_and_from_the_remote() {
    let env = Environment::new();
    remote(&env);
    let push = &["--branch", "feature/x", "--push"][..];
    let first = launch(&env, "1", "echo 1 > one.txt", push).document();
    let commit = first["branch"]["commit"].as_str().unwrap().to_owned();
    assert_eq!(first["branch"]["pushed"], commit.as_str(), "{first:#}");
    assert_eq!(remote_commit(&env, "feature/x"), commit);
    // Somebody else pushed; the next launch begins there.
    let reviewed = review(&env, "feature/x", false);
    let second = launch(&env, "1", "ls; echo 2 > two.txt", push).document();
    assert_eq!(second["branch"]["start"], reviewed.as_str(), "{second:#}");
    assert_eq!(
        second["workspace"], "layer",
        "whatever commit is checked out"
    );
    assert!(second["message"].as_str().unwrap().contains("review.txt"));
    let tip = env.commit_of("feature/x");
    assert_eq!(second["branch"]["commit"], tip.as_str());
    assert_eq!(remote_commit(&env, "feature/x"), tip);
    assert_eq!(env.git(&["rev-list", "--count", "main..feature/x"]), "3");
}

#[test]
fn a_rewritten_remote_wins_over_our_own_commit_and_never_over_the_persons() {
    let env = Environment::new();
    remote(&env);
    let push = &["--branch", "x", "--push"][..];
    let first = launch(&env, "1", "echo 1 > one.txt", push).document();
    let ours = first["branch"]["commit"].as_str().unwrap().to_owned();
    let rewritten = review(&env, "x", true);
    let second = launch(&env, "1", "echo 2 > two.txt", push).document();
    assert_eq!(second["branch"]["start"], rewritten.as_str(), "{second:#}");
    let kept = env.git(&["for-each-ref", "--format=%(objectname)", "refs/kapi/rescue"]);
    assert!(
        kept.contains(&ours),
        "the commit that was left behind is kept: {kept}"
    );
    // A commit of the person's that the remote does not have is not left behind.
    env.git(&["branch", "--force", "x", "main"]);
    let tree = env.git(&["rev-parse", "main^{tree}"]);
    let mine = env.git(&["commit-tree", &tree, "-p", "main", "-m", "mine"]);
    env.git(&["branch", "--force", "x", &mine]);
    let output = launch(&env, "2", "echo 3 > three.txt", push);
    output.assert_error(3, &["hold different work", "another"]);
    assert_eq!(env.commit_of("x"), mine);
}

#[test]
fn a_push_that_fails_keeps_the_commit_and_names_the_line() {
    let env = Environment::new();
    let bare = remote(&env);
    let hook = bare.join("hooks/pre-receive");
    write(&hook, "#!/bin/sh\necho no entry >&2\nexit 1\n");
    fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let output = launch(
        &env,
        "1",
        "echo 42 > answer.txt",
        &["--branch", "x", "--push"],
    );
    let document = output.document();
    assert_eq!(
        (output.code, &document["agent_exit_code"]),
        (4, &0.into()),
        "{output:?}"
    );
    assert!(
        document["hint"]
            .as_str()
            .unwrap()
            .contains("push origin x:x"),
        "{document:#}"
    );
    assert_eq!(env.show("x", "answer.txt"), "42");
    // The remote took it later; the same launch goes on and pushes.
    fs::remove_file(hook).unwrap();
    let again = launch(&env, "1", "true", &["--branch", "x", "--push"]);
    assert_eq!(again.code, 0, "{again:?}");
    assert_eq!(remote_commit(&env, "x"), env.commit_of("x"));
}

#[test]
fn a_remote_that_moved_while_the_agent_worked_is_not_overwritten() {
    let env = Environment::new();
    remote(&env);
    let push = ["--branch", "x", "--push", "--sandbox", "none"];
    assert_eq!(launch(&env, "1", "echo 1 > one.txt", &push).code, 0);
    let go = env.root().join("go");
    let began = env.root().join("began");
    let agent = format!(
        "command:touch {}; while [ ! -e {} ]; do sleep 0.05; done; echo 2 > two.txt",
        began.display(),
        go.display()
    );
    let project = env.repository().display().to_string();
    let fixed = [
        "launch", "1", &project, "--task", TASK, "--agent", &agent, "--json",
    ];
    let running = env.start(&[&fixed[..], &push].concat());
    await_some("the agent", || began.exists().then_some(()));
    let reviewed = review(&env, "x", false);
    write(&go, "");
    let output = running.finish();
    let document = output.document();
    assert_eq!(output.code, 4, "{output:?}");
    assert!(
        document["error"].as_str().unwrap().contains(&reviewed),
        "{document:#}"
    );
    assert_eq!(remote_commit(&env, "x"), reviewed, "nothing was forced");
    assert_eq!(env.show("x", "two.txt"), "2", "the work is on the branch");
}
