//! What leaves for a remote, what does not, and what the remote's answers may do.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use kapi_git::push::{
    PushError, PushPlan, PushReceipt, PushStart, Remote, RemoteChange, StartOrigin,
};
use kapi_git::repository::Repository;

use crate::fixture::{Fixture, everything, git_in, write};

const TIMEOUT: Duration = Duration::from_secs(60);

/// A person's environment with a home of their own.
pub(crate) fn environment(fixture: &Fixture) -> BTreeMap<OsString, OsString> {
    let home = fixture.root().join("home");
    fs::create_dir_all(&home).expect("create");
    let path = "/usr/local/bin:/usr/bin:/bin".into();
    BTreeMap::from([("HOME".into(), home.into()), ("PATH".into(), path)])
}

/// A remote called `origin`, empty but for the branch `main`.
pub(crate) fn add_origin(fixture: &Fixture) -> PathBuf {
    let origin = fixture.root().join("origin.git");
    git_in(
        fixture.root(),
        &["init", "-q", "--bare", "-b", "main", "origin.git"],
    );
    let address = origin.display().to_string();
    fixture.git(&["remote", "add", "origin", &address]);
    fixture.git(&["push", "-q", "origin", "main"]);
    origin
}

/// Somebody else's commit on a branch of the remote.
fn advance(fixture: &Fixture, branch: &str, file: &str) -> String {
    let other = fixture.root().join("other");
    if !other.exists() {
        git_in(fixture.root(), &["clone", "-q", "origin.git", "other"]);
    }
    git_in(&other, &["fetch", "-q"]);
    git_in(
        &other,
        &["checkout", "-q", "-B", "work", &format!("origin/{branch}")],
    );
    write(&other.join(file), "x");
    git_in(&other, &["add", "-A"]);
    git_in(&other, &["commit", "-q", "-m", file]);
    git_in(&other, &["push", "-q", "origin", &format!("work:{branch}")]);
    git_in(&other, &["rev-parse", "HEAD"])
}

fn hook(origin: &std::path::Path, name: &str, script: &str) {
    let hook = origin.join("hooks").join(name);
    write(&hook, &format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&hook, Permissions::from_mode(0o755)).expect("chmod");
}

fn push(
    fixture: &Fixture,
    repository: &Repository,
    timeout: Duration,
) -> Result<PushReceipt, PushError> {
    let environment = environment(fixture);
    repository.push(&PushPlan {
        remote: Remote {
            name: "origin",
            environment: &environment,
            timeout,
        },
        branch: "feat/x",
        remote_branch: "feat/x",
    })
}

fn start(fixture: &Fixture, repository: &Repository) -> PushStart {
    let environment = environment(fixture);
    let remote = Remote {
        name: "origin",
        environment: &environment,
        timeout: TIMEOUT,
    };
    repository
        .continue_from(&remote, "feat/x", &fixture.base())
        .expect("start")
}

#[test]
fn a_branch_arrives_and_the_remotes_page_is_read() {
    let fixture = Fixture::new();
    let origin = add_origin(&fixture);
    hook(
        &origin,
        "post-receive",
        "echo; echo 'Create a pull request:'; echo '  https://forge.example/u/r/pull/new/feat/x'; printf '\\033[2J'",
    );
    fixture.git(&["checkout", "-q", "-b", "feat/x"]);
    write(&fixture.repo().join("new"), "n");
    fixture.commit("one");
    let repository = fixture.open();
    let config = fs::read(fixture.repo().join(".git/config")).expect("config");
    let pushed = push(&fixture, &repository, TIMEOUT).expect("push");
    assert_eq!(pushed.commit, fixture.base());
    assert_eq!(pushed.change, RemoteChange::Created);
    assert_eq!(
        pushed.pull_request_url.as_deref(),
        Some("https://forge.example/u/r/pull/new/feat/x")
    );
    assert_eq!(
        git_in(&origin, &["rev-parse", "feat/x"]),
        pushed.commit.as_str()
    );
    let again = push(&fixture, &repository, TIMEOUT).expect("push");
    assert_eq!(again.change, RemoteChange::Unchanged);
    let from = fixture.base();
    write(&fixture.repo().join("new"), "m");
    fixture.commit("two");
    let third = push(&fixture, &repository, TIMEOUT).expect("push");
    assert_eq!(third.change, RemoteChange::Advanced { from });
    assert_eq!(
        fs::read(fixture.repo().join(".git/config")).expect("config"),
        config
    );
}

#[test]
fn a_remote_that_went_another_way_is_never_overwritten() {
    let fixture = Fixture::new();
    let origin = add_origin(&fixture);
    fixture.git(&["checkout", "-q", "-b", "feat/x"]);
    fixture.git(&["push", "-q", "origin", "feat/x"]);
    let theirs = advance(&fixture, "feat/x", "theirs");
    write(&fixture.repo().join("ours"), "n");
    fixture.commit("ours");
    // The person's settings may ask for force; ours do not.
    fixture.git(&["config", "remote.origin.push", "+refs/heads/*:refs/heads/*"]);
    let repository = fixture.open();
    let error = push(&fixture, &repository, TIMEOUT).expect_err("diverged");
    let PushError::Diverged { remote_commit, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(remote_commit.as_str(), theirs);
    assert_eq!(git_in(&origin, &["rev-parse", "feat/x"]), theirs);
    // Looking at the remote changed no ref of the person's.
    let known = fixture.git(&["rev-parse", "origin/feat/x"]);
    assert_ne!(known, theirs);
}

#[test]
fn a_remote_that_moves_between_the_look_and_the_push_refuses() {
    let fixture = Fixture::new();
    let origin = add_origin(&fixture);
    fixture.git(&["checkout", "-q", "-b", "feat/x"]);
    fixture.git(&["push", "-q", "origin", "feat/x"]);
    let theirs = advance(&fixture, "main", "theirs");
    write(&fixture.repo().join("ours"), "n");
    fixture.commit("ours");
    // While our push is being received, somebody else's has just been.
    hook(
        &origin,
        "pre-receive",
        &format!("env -u GIT_QUARANTINE_PATH git update-ref refs/heads/feat/x {theirs}"),
    );
    let repository = fixture.open();
    let error = push(&fixture, &repository, TIMEOUT).expect_err("refused");
    assert!(matches!(error, PushError::Remote { .. }), "{error}");
    assert_eq!(git_in(&origin, &["rev-parse", "feat/x"]), theirs);
}

#[test]
fn a_remote_that_only_says_yes_is_not_believed() {
    let fixture = Fixture::new();
    let origin = add_origin(&fixture);
    fixture.git(&["checkout", "-q", "-b", "feat/x"]);
    hook(
        &origin,
        "post-receive",
        "git update-ref -d refs/heads/feat/x",
    );
    let repository = fixture.open();
    let error = push(&fixture, &repository, TIMEOUT).expect_err("gone again");
    assert!(
        matches!(
            &error,
            PushError::Unverified {
                remote_commit: None,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_remote_that_does_not_answer_costs_its_time_and_no_more() {
    let fixture = Fixture::new();
    add_origin(&fixture);
    fixture.git(&["checkout", "-q", "-b", "feat/x"]);
    let silent = fixture.root().join("silent.sh");
    write(&silent, "#!/bin/sh\nexec sleep 600\n");
    fs::set_permissions(&silent, Permissions::from_mode(0o755)).expect("chmod");
    fixture.git(&[
        "config",
        "remote.origin.uploadpack",
        &silent.display().to_string(),
    ]);
    let repository = fixture.open();
    let began = Instant::now();
    let error = push(&fixture, &repository, Duration::from_secs(1)).expect_err("no answer");
    assert!(matches!(error, PushError::TimedOut { .. }), "{error}");
    assert!(began.elapsed() < Duration::from_secs(120));
}

#[test]
fn nobody_is_asked_for_a_password_and_none_is_repeated() {
    let fixture = Fixture::new();
    let trap = fixture.trap();
    fixture.git(&[
        "remote",
        "add",
        "origin",
        "https://user:hunter2@127.0.0.1:9/x.git",
    ]);
    fixture.git(&["config", "core.askPass", &trap]);
    fixture.git(&["checkout", "-q", "-b", "feat/x"]);
    let repository = fixture.open();
    let error = push(&fixture, &repository, TIMEOUT).expect_err("nobody there");
    let text = error.to_string();
    assert!(matches!(error, PushError::Remote { .. }), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
    fixture.assert_not_sprung();
}

#[test]
fn the_persons_own_addresses_and_helpers_work() {
    let fixture = Fixture::new();
    let origin = add_origin(&fixture);
    let person = environment(&fixture);
    let home = PathBuf::from(person.get(&OsString::from("HOME")).expect("home"));
    write(
        &home.join(".gitconfig"),
        &format!("[url \"{}\"]\n\tinsteadOf = mine:x\n", origin.display()),
    );
    fixture.git(&["config", "remote.origin.url", "mine:x"]);
    fixture.git(&["checkout", "-q", "-b", "feat/x"]);
    push(&fixture, &fixture.open(), TIMEOUT).expect("push");
    git_in(&origin, &["rev-parse", "feat/x"]);
}

#[test]
fn only_remotes_and_branches_are_named() {
    let fixture = Fixture::new();
    let origin = add_origin(&fixture);
    let repository = fixture.open();
    let environment = environment(&fixture);
    let attempt = |name: &str, branch: &str, remote_branch: &str| {
        let remote = Remote {
            name,
            environment: &environment,
            timeout: TIMEOUT,
        };
        let plan = PushPlan {
            remote,
            branch,
            remote_branch,
        };
        repository.push(&plan).expect_err("a bad name")
    };
    for name in [
        "",
        "nowhere",
        "--upload-pack=x",
        "ext::sh -c x",
        "a\nb",
        &origin.display().to_string(),
    ] {
        let error = attempt(name, "main", "main");
        assert!(
            matches!(error, PushError::NoSuchRemote { .. }),
            "{name}: {error}"
        );
    }
    for branch in ["", "-f", "a:b", "a b", "a\u{7}b", "a..b", "x.lock"] {
        let error = attempt("origin", branch, "main");
        assert!(
            matches!(error, PushError::InvalidBranch { .. }),
            "{branch}: {error}"
        );
        let error = attempt("origin", "main", branch);
        assert!(
            matches!(error, PushError::InvalidBranch { .. }),
            "{branch}: {error}"
        );
    }
    let error = attempt("origin", "none", "none");
    assert!(matches!(error, PushError::NoSuchBranch { .. }), "{error}");
}

#[test]
fn the_line_to_push_by_hand_is_safe_to_paste() {
    let fixture = Fixture::new();
    let environment = environment(&fixture);
    let plan = PushPlan {
        remote: Remote {
            name: "origin",
            environment: &environment,
            timeout: TIMEOUT,
        },
        branch: "it's;x",
        remote_branch: "feat/x",
    };
    let line = plan.command_line(&fixture.open());
    assert_eq!(
        line,
        format!(
            "git -C '{}' push origin 'it'\\''s;x:feat/x'",
            fixture.repo().display()
        )
    );
}

#[test]
fn work_goes_on_from_the_remote_then_from_here_then_from_the_base() {
    let fixture = Fixture::new();
    add_origin(&fixture);
    let repository = fixture.open();
    let base = fixture.base();
    assert_eq!(
        start(&fixture, &repository),
        PushStart {
            commit: base.clone(),
            origin: StartOrigin::Base,
            left_behind: None,
            unreached: None,
        }
    );
    fixture.git(&["branch", "feat/x"]);
    assert_eq!(start(&fixture, &repository).origin, StartOrigin::Local);
    fixture.git(&["push", "-q", "origin", "feat/x"]);
    let theirs = advance(&fixture, "feat/x", "review");
    let found = start(&fixture, &repository);
    assert_eq!(
        (found.commit.as_str(), found.origin),
        (theirs.as_str(), StartOrigin::Remote)
    );
    assert_eq!(found.left_behind, None);
    fixture.git(&["cat-file", "-e", &theirs]);
    // Work of our own that was never pushed.
    fixture.git(&["checkout", "-q", "feat/x"]);
    write(&fixture.repo().join("ours"), "n");
    fixture.commit("ours");
    let ours = fixture.base();
    let found = start(&fixture, &repository);
    assert_eq!(
        (found.commit.as_str(), found.left_behind),
        (theirs.as_str(), Some(ours.clone()))
    );
    fixture.git(&["merge", "-q", "-m", "both", &theirs]);
    let found = start(&fixture, &repository);
    assert_eq!(
        (found.commit, found.origin),
        (fixture.base(), StartOrigin::Local)
    );
    // Nobody there: what was known goes on, and that is said.
    fixture.git(&["fetch", "-q", "origin"]);
    fixture.git(&["checkout", "-q", "main"]);
    fixture.git(&["branch", "-q", "-D", "feat/x"]);
    fixture.git(&["config", "remote.origin.url", "/nonexistent"]);
    let found = start(&fixture, &repository);
    assert_eq!(
        (found.commit.as_str(), found.origin),
        (theirs.as_str(), StartOrigin::LastKnownRemote)
    );
    assert!(found.unreached.is_some());
    let before = everything(&fixture.repo());
    start(&fixture, &repository);
    assert_eq!(everything(&fixture.repo()), before);
}

#[test]
fn an_address_that_is_a_path_means_what_it_means_in_the_working_tree() {
    for (url, pushurl) in [
        ("../origin.git", None),
        ("/nonexistent", Some("../origin.git")),
    ] {
        let fixture = Fixture::new();
        let origin = add_origin(&fixture);
        fixture.git(&["remote", "set-url", "origin", url]);
        if let Some(pushurl) = pushurl {
            fixture.git(&["remote", "set-url", "--push", "origin", pushurl]);
            fixture.git(&["remote", "set-url", "origin", "../origin.git"]);
        }
        fixture.git(&["branch", "feat/x"]);
        let pushed = push(&fixture, &fixture.open(), TIMEOUT).expect("push");
        assert_eq!(pushed.change, RemoteChange::Created, "{url}");
        let there = git_in(&origin, &["rev-parse", "feat/x"]);
        assert_eq!(there, pushed.commit.to_string());
        // What others did there is seen, too.
        let advanced = advance(&fixture, "feat/x", "theirs");
        let start = start(&fixture, &fixture.open());
        assert_eq!(start.commit.as_str(), advanced, "{url}");
    }
}
