//! The agent's own git directory: everything works in it, and nothing comes out of it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::PathBuf;

use kapi_git::command::Git;
use kapi_git::private_view::{PrivateView, PrivateViewError, PrivateViewPlan};
use kapi_git::repository::Repository;
use kapi_git::workspace::GitWorkspace;

use crate::fixture::{
    BRANCH, Fixture, author, commit, counting, everything, git, git_binary, git_in, read, reported,
    run_with, shell, write,
};
use crate::layer_fixture::LayerFixture;

/// Makes a workspace that shows the person's own files, as one over them does.
fn over_checkout(fixture: Fixture, git: &Git) -> (LayerFixture, Repository, GitWorkspace) {
    let made = LayerFixture::on(fixture);
    let repository = Repository::discover(git, &made.fixture.repo()).expect("discover");
    let mut workspace = made.workspace.clone();
    workspace.path = repository.top_level().to_path_buf();
    (made, repository, workspace)
}

pub(crate) fn view(
    fixture: &Fixture,
    repository: &Repository,
    workspace: &GitWorkspace,
) -> PrivateView {
    let to = fixture.root().join("views/one");
    let store = fixture.store(repository, &workspace.base);
    let plan = PrivateViewPlan {
        to: &to,
        inside: &to,
        objects_inside: &store.object_dirs,
        shown: &workspace.shown(),
        commit: &workspace.base,
        author: &author(),
    };
    repository.private_view(&plan, &store).expect("view")
}

/// Runs git in the workspace as an agent would whose `.git` is the view's link.
#[track_caller]
pub(crate) fn inside(view: &PrivateView, workspace: &GitWorkspace, args: &[&str]) -> String {
    let mut env = view.environment.clone();
    env.push(("GIT_DIR".into(), OsString::from(&view.git_dir)));
    env.push(("GIT_WORK_TREE".into(), OsString::from(&workspace.path)));
    let args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
    let (code, output) = run_with(&git_binary(), &workspace.path, &args, &env);
    let text = String::from_utf8_lossy(&output).trim_end().to_owned();
    assert_eq!(code, 0, "git {args:?}: {text}");
    text
}

#[test]
fn git_works_inside_and_nothing_reaches_the_repository() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    let view = view(&fixture, &repository, &workspace);
    let before = everything(&fixture.repo());
    assert_eq!(inside(&view, &workspace, &["status", "--porcelain"]), "");
    assert_eq!(
        inside(&view, &workspace, &["rev-parse", "--abbrev-ref", "HEAD"]),
        BRANCH
    );
    assert_eq!(inside(&view, &workspace, &["log", "--format=%s"]), "first");
    assert_eq!(
        inside(&view, &workspace, &["rev-parse", "kapi/base"]),
        workspace.base.as_str()
    );
    write(&workspace.path.join("src/main.txt"), "two\n");
    assert!(inside(&view, &workspace, &["diff"]).contains("+two"));
    inside(&view, &workspace, &["add", "-A"]);
    inside(&view, &workspace, &["commit", "-q", "-m", "agent"]);
    inside(&view, &workspace, &["tag", "mine"]);
    // Only the view's configuration says who commits.
    let by = inside(&view, &workspace, &["log", "-1", "--format=%an %ae %cn"]);
    assert_eq!(by, "Kapi Agent agent@kapi.invalid Kapi Agent");
    inside(&view, &workspace, &["config", "core.fsmonitor", "false"]);
    assert_eq!(
        inside(&view, &workspace, &["log", "--format=%s"]),
        "agent\nfirst"
    );
    assert_eq!(everything(&fixture.repo()), before);
    let candidate = commit(&repository, &workspace);
    assert_eq!(candidate.changed.len(), 1);
    assert_eq!(
        fixture.git(&["rev-parse", &format!("{}^", candidate.commit)]),
        workspace.base.as_str()
    );
}

#[test]
fn a_view_shows_no_configuration_remote_or_other_branch() {
    let fixture = Fixture::new();
    fixture.git(&[
        "remote",
        "add",
        "origin",
        "https://user:secret@example.invalid/x",
    ]);
    fixture.git(&["config", "http.extraHeader", "secret"]);
    fixture.git(&["branch", "secret-branch"]);
    fixture.git(&["update-ref", "refs/remotes/origin/secret-branch", "HEAD"]);
    let (repository, workspace) = fixture.workspace();
    let view = view(&fixture, &repository, &workspace);
    for (path, content) in everything(&view.git_dir) {
        let text = String::from_utf8_lossy(&content).into_owned();
        assert!(!text.contains("secret"), "{}: {text}", path.display());
    }
    assert_eq!(
        inside(&view, &workspace, &["for-each-ref", "--format=%(refname)"]),
        format!("refs/heads/{BRANCH}\nrefs/kapi/base")
    );
    assert_eq!(
        read(&view.link),
        format!("gitdir: {}\n", view.git_dir.display())
    );
    assert_eq!(shell(&view.git_dir, "stat -c %a ../.one.kapi/link"), "444");
}

#[test]
fn a_link_file_alone_is_enough_to_find_the_view() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    let view = view(&fixture, &repository, &workspace);
    let elsewhere = fixture.root().join("elsewhere");
    fs::create_dir(&elsewhere).expect("create");
    fs::copy(&view.link, elsewhere.join(".git")).expect("copy");
    fs::copy(workspace.path.join("README"), elsewhere.join("README")).expect("copy");
    assert_eq!(
        git_in(&elsewhere, &["status", "--porcelain"]),
        " D .gitignore\n D src/main.txt\n D tests/check.sh"
    );
}

#[test]
fn a_view_is_made_anew_and_only_over_a_view() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    let first = view(&fixture, &repository, &workspace);
    let fresh = everything(&first.git_dir);
    let trap = fixture.trap();
    shell(
        &first.git_dir,
        &format!(
            "echo '[core]fsmonitor={trap}' >> config; rm -r objects HEAD; ln -s /etc objects; chmod 0 hooks"
        ),
    );
    let second = view(&fixture, &repository, &workspace);
    assert_eq!(everything(&second.git_dir), fresh);
    assert!(PathBuf::from("/etc/passwd").exists());
    fixture.assert_not_sprung();
    let foreign = fixture.root().join("foreign");
    write(&foreign.join("x"), "x");
    let mut bad = author();
    bad.name = "a\"\n[core]".to_owned();
    let plan = PrivateViewPlan {
        to: &foreign,
        inside: &foreign,
        objects_inside: &[],
        shown: &workspace.shown(),
        commit: &workspace.base,
        author: &author(),
    };
    let store = fixture.store(&repository, &workspace.base);
    let error = repository.private_view(&plan, &store).expect_err("foreign");
    assert!(matches!(error, PrivateViewError::Dir(_)), "{error}");
    let error = repository
        .private_view(
            &PrivateViewPlan {
                author: &bad,
                ..plan
            },
            &store,
        )
        .expect_err("bad");
    assert!(matches!(error, PrivateViewError::Author { .. }), "{error}");
    assert!(foreign.join("x").exists());
}

#[test]
fn the_first_status_inside_reads_no_file_of_a_clean_checkout() {
    let fixture = Fixture::new();
    shell(
        &fixture.repo(),
        "touch -d 2001-02-03 README .gitignore src/main.txt tests/check.sh; git update-index --refresh",
    );
    let (git, path) = counting(&fixture);
    let (made, repository, workspace) = over_checkout(fixture, &git);
    assert_eq!(reported(&path), Vec::<String>::new());
    let view = view(&made.fixture, &repository, &workspace);
    // Objects are packed once for a commit; of the view, git is asked for the commit's tree alone.
    assert_eq!(reported(&path), ["version", "pack-objects", "rev-parse"]);
    let index = fs::read(view.git_dir.join("index")).expect("index");
    let theirs = fs::read(made.fixture.repo().join(".git/index")).expect("index");
    assert_eq!(index, theirs);
    // As in a sandbox, the same files have other numbers, owners and times of their inodes.
    let mut seen = workspace;
    seen.path = made.fixture.root().join("seen");
    shell(made.fixture.root(), "cp -a 'my repo' seen; rm -r seen/.git");
    let stale = |args: &[&str]| inside(&view, &seen, args);
    assert_eq!(stale(&["diff-files", "--name-only"]), "");
    let strict = ["-c", "core.checkStat=default", "-c", "core.trustctime=true"];
    let strict = [&strict[..], &["diff-files", "--name-only"]].concat();
    assert_eq!(stale(&strict).lines().count(), 4);
    // A change is a change.
    write(&seen.path.join("README"), "jello\n");
    assert_eq!(stale(&["status", "--porcelain"]), " M README");
    assert_eq!(
        fs::read(made.fixture.repo().join(".git/index")).expect("index"),
        theirs
    );
}

#[test]
fn an_index_that_holds_more_than_the_commit_is_not_lent() {
    for script in [
        "echo x > secret; git add secret",
        "git update-index --assume-unchanged README",
        "git update-index --skip-worktree README",
        "git update-index --force-untracked-cache; git status -s",
        "git update-index --split-index",
        "git update-index --index-version 4",
        "rm .git/index",
    ] {
        let fixture = Fixture::new();
        shell(&fixture.repo(), script);
        let (made, repository, workspace) = over_checkout(fixture, &git());
        let view = view(&made.fixture, &repository, &workspace);
        let listed = inside(&view, &workspace, &["ls-files", "-v"]);
        assert_eq!(
            listed, "H .gitignore\nH README\nH src/main.txt\nH tests/check.sh",
            "{script}"
        );
        assert_eq!(
            inside(&view, &workspace, &["diff", "--cached"]),
            "",
            "{script}"
        );
    }
}
