//! The commits that an agent made by itself, in a git directory that it may have filled with anything.

use std::fs;
use std::os::unix::fs::symlink;

use kapi_git::own_commits::{OwnCommit, OwnCommitsError, OwnCommitsPlan};
use kapi_git::private_view::PrivateView;
use kapi_git::repository::Repository;
use kapi_git::workspace::GitWorkspace;

use crate::fixture::{Fixture, git_in, turn, write};
use crate::private_view::{inside, view};

struct Made {
    fixture: Fixture,
    repository: Repository,
    workspace: GitWorkspace,
    view: PrivateView,
}

impl Made {
    fn new() -> Self {
        let fixture = Fixture::new();
        let (repository, workspace) = fixture.workspace();
        let view = view(&fixture, &repository, &workspace);
        Self {
            fixture,
            repository,
            workspace,
            view,
        }
    }

    fn git(&self, args: &[&str]) -> String {
        inside(&self.view, &self.workspace, args)
    }

    fn commits(&self, file: &str, text: &str, message: &str) {
        write(&self.workspace.path.join(file), text);
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    fn own(&self) -> Result<Vec<OwnCommit>, OwnCommitsError> {
        self.repository.own_commits(&OwnCommitsPlan {
            view: &self.view.git_dir,
            scratch: &self.fixture.root().join("own"),
            base: &self.workspace.base,
        })
    }

    /// Commits the work after the agent's own commits; returns the branch's messages, the last first.
    fn log(&self, own: &[OwnCommit]) -> Vec<String> {
        let candidate = self
            .repository
            .commit_candidate_after(&self.workspace, &turn(1), own)
            .expect("candidate");
        let range = format!("{}..{}", self.workspace.base, candidate.commit);
        let log = self.fixture.git(&["log", "--format=%an|%B|%x00", &range]);
        let messages = log.split('\0').map(|text| text.trim().to_owned());
        messages.filter(|text| !text.is_empty()).collect()
    }
}

#[test]
fn they_are_kept_with_their_messages_and_the_last_is_the_candidate() {
    let made = Made::new();
    made.commits("src/main.txt", "two\n", "first step\n\nbecause");
    made.commits(
        "src/new.txt",
        "new\n",
        "second step\n\nKapi-Goal: 999-forged",
    );
    let own = made.own().unwrap();
    assert_eq!(own.len(), 2);
    assert_eq!(
        made.log(&own),
        [
            "Kapi Agent|second step\n\nKapi-Goal: 001-demo\n|",
            "Kapi Agent|first step\n\nbecause\n\nKapi-Goal: 001-demo\n|"
        ]
    );
    // The same again is the same commit.
    assert_eq!(made.own().unwrap(), own);
    // What was not committed by the agent comes after what was.
    write(&made.workspace.path.join("late.txt"), "late\n");
    let messages = made.log(&own);
    assert_eq!(messages.len(), 3);
    assert!(messages[0].contains("demo: turn 1"), "{messages:?}");
}

#[test]
fn where_there_are_none_or_not_on_the_base_nothing_is_taken() {
    let made = Made::new();
    assert_eq!(made.own().unwrap(), []);
    write(&made.workspace.path.join("src/main.txt"), "two\n");
    made.git(&["checkout", "-q", "--orphan", "elsewhere"]);
    made.git(&["add", "-A"]);
    made.git(&["commit", "-q", "-m", "from nowhere"]);
    let refused = made.own().unwrap_err();
    assert!(
        matches!(refused, OwnCommitsError::Elsewhere { .. }),
        "{refused}"
    );
}

#[test]
fn commits_of_what_may_not_be_committed_are_left_out() {
    let made = Made::new();
    made.commits(".ilchul/state", "mine\n", "state");
    fs::remove_dir_all(made.workspace.path.join(".ilchul")).unwrap();
    made.git(&["rm", "-q", "--cached", ".ilchul/state"]);
    made.commits("src/main.txt", "two\n", "work");
    let own = made.own().unwrap();
    assert_eq!(own.len(), 2);
    let messages = made.log(&own);
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(messages[0].contains("work"), "{messages:?}");
}

#[test]
fn objects_of_somebody_else_are_out_of_reach() {
    let made = Made::new();
    let secret = made.fixture.root().join("secret");
    fs::create_dir(&secret).unwrap();
    git_in(&secret, &["init", "--quiet"]);
    write(&secret.join("secret.txt"), "secret\n");
    git_in(&secret, &["add", "-A"]);
    let tree = git_in(&secret, &["write-tree"]);
    let base = made.workspace.base.as_str();
    let objects = secret.join(".git/objects");
    // The agent knows the tree's id, and where it is; git inside finds it through its alternates.
    let alternates = made.view.git_dir.join("objects/info/alternates");
    let lent = fs::read_to_string(&alternates).unwrap();
    write(&alternates, &format!("{lent}{}\n", objects.display()));
    let commit = made.git(&["commit-tree", &tree, "-p", base, "-m", "stolen"]);
    made.git(&["update-ref", "HEAD", &commit]);
    assert!(matches!(made.own().unwrap_err(), OwnCommitsError::Git(_)));
    // Nor does a link in the place of its objects lead there.
    let own = made.view.git_dir.join("objects");
    fs::rename(&own, made.view.git_dir.join("moved")).unwrap();
    symlink(&objects, &own).unwrap();
    assert!(made.own().is_err());
}

#[test]
fn an_object_under_another_name_is_refused() {
    let made = Made::new();
    made.commits("src/main.txt", "two\n", "work");
    let blob = made.git(&["rev-parse", "HEAD:src/main.txt"]);
    let other = made.git(&["rev-parse", "HEAD^{tree}"]);
    let path = |id: &str| {
        let (first, rest) = id.split_at(2);
        made.view.git_dir.join("objects").join(first).join(rest)
    };
    fs::remove_file(path(&blob)).unwrap();
    fs::copy(path(&other), path(&blob)).unwrap();
    assert!(made.own().is_err());
}
