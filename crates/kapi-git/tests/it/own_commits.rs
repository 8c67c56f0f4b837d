//! The commits that an agent made by itself, in a git directory that it may have filled with anything.

use std::fs;
use std::os::unix::fs::symlink;

use kapi_git::own_commits::{OwnCommit, OwnCommitsError, OwnCommitsPlan};
use kapi_git::private_view::PrivateView;
use kapi_git::repository::Repository;
use kapi_git::workspace::GitWorkspace;

use crate::fixture::{Fixture, git_in, turn, write};
use crate::layer_fixture::LayerFixture;
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

/// Puts something into a workspace.
type Put<'a> = &'a dyn Fn(&Made);

#[test]
fn what_no_candidate_may_hold_is_in_no_commit_of_the_agents_either() {
    let escapes = |made: &Made| symlink("/etc/passwd", made.workspace.path.join("link")).unwrap();
    let ignored = |made: &Made| write(&made.workspace.path.join("secret.env"), "key\n");
    let submodule = |made: &Made| {
        let base = made.workspace.base.to_string();
        let entry = format!("160000,{base},module");
        made.git(&["update-index", "--add", "--cacheinfo", &entry]);
        fs::create_dir(made.workspace.path.join("module")).unwrap();
    };
    let of_lfs = |made: &Made| {
        write(&made.workspace.path.join("big.bin"), "whole\n");
        write(
            &made.workspace.path.join(".gitattributes"),
            "*.bin filter=lfs\n",
        );
    };
    let cases: [(&str, Put<'_>); 4] = [
        ("link", &escapes),
        ("secret.env", &ignored),
        ("module", &submodule),
        ("big.bin", &of_lfs),
    ];
    for (path, put) in cases {
        let made = Made::new();
        write(&made.workspace.path.join(".gitignore"), "*.env\n");
        made.commits("src/main.txt", "two\n", "first");
        put(&made);
        // The file of a submodule's directory is none.
        if path != "module" {
            made.git(&["add", "--force", path]);
        }
        made.git(&["commit", "--quiet", "--message", "with it"]);
        made.git(&["rm", "--quiet", "--cached", path]);
        fs::remove_file(made.workspace.path.join(path))
            .or_else(|_| fs::remove_dir(made.workspace.path.join(path)))
            .unwrap();
        made.commits("src/main.txt", "three\n", "without it");
        let own = made.own().unwrap();
        assert_eq!(own.len(), 3, "{path}");
        let candidate = made
            .repository
            .commit_candidate_after(&made.workspace, &turn(1), &own)
            .unwrap();
        assert_eq!(candidate.own_left_out, 1, "{path}");
        let range = format!("{}..{}", made.workspace.base, candidate.commit);
        let log = made.fixture.git(&["log", "--format=%s", &range]);
        assert_eq!(log, "without it\nfirst", "{path}");
        let everything = made
            .fixture
            .git(&["log", "--format=", "--name-only", &range]);
        assert!(
            !everything.lines().any(|line| line == path),
            "{path}: {everything}"
        );
    }
}

/// Makes a commit of the agent's with this line about its author, whatever git thinks of that.
fn commit_by(made: &Made, author: &str) {
    write(&made.workspace.path.join("src/main.txt"), "two\n");
    made.git(&["add", "-A"]);
    let (tree, base) = (made.git(&["write-tree"]), &made.workspace.base);
    let text = format!(
        "tree {tree}\nparent {base}\nauthor {author}\ncommitter A <a@b.example> 1700000000 +0000\n\nfar\n"
    );
    let file = made.fixture.root().join("commit");
    write(&file, &text);
    let file = file.display().to_string();
    let commit = made.git(&["hash-object", "-t", "commit", "-w", "--literally", &file]);
    made.git(&["update-ref", "HEAD", &commit]);
}

#[test]
fn a_commit_that_git_finds_unsound_is_not_taken() {
    for author in [
        "A <a@b.example> 99999999999999999999 +0000",
        "A <a@b.example> later +0000",
        "nobody",
    ] {
        let made = Made::new();
        commit_by(&made, author);
        let refused = made.own().unwrap_err();
        assert!(
            matches!(refused, OwnCommitsError::Git(_)),
            "{author}: {refused}"
        );
        // Nothing of it is left, and the next is taken.
        assert!(!made.fixture.root().join("own").exists(), "{author}");
        made.git(&["update-ref", "HEAD", made.workspace.base.as_str()]);
        made.commits("src/main.txt", "three\n", "sound");
        assert_eq!(made.log(&made.own().unwrap()).len(), 1, "{author}");
    }
}

#[test]
fn a_moment_far_away_does_not_stop_the_work() {
    for seconds in ["0", "4102444800", "99999999999", "999999999999999"] {
        let made = Made::new();
        commit_by(&made, &format!("A <a@b.example> {seconds} +0000"));
        let own = made.own().unwrap_or_default();
        assert_eq!(made.log(&own).len(), 1, "{seconds}");
        write(&made.workspace.path.join("late.txt"), "late\n");
        assert_eq!(made.log(&own).len(), 1 + own.len(), "{seconds}");
        // What the repository has of it, git can read.
        made.fixture.git(&["fsck", "--strict"]);
    }
}

#[test]
fn those_of_a_layer_are_the_same_as_those_of_a_worktree() {
    let made = LayerFixture::new();
    let mut seen = made.workspace.clone();
    seen.path = made.lower();
    let view = view(&made.fixture, &made.repository, &seen);
    let git = format!(
        "export GIT_DIR='{}' GIT_WORK_TREE=$PWD GIT_CONFIG_GLOBAL=/dev/null; git config safe.directory '*'; \
         git read-tree HEAD; git add -A; git update-index --refresh -q || true;",
        view.git_dir.display()
    );
    made.inside(&format!(
        "{git} echo two > src/main.txt; mkdir new; echo '*.log' > new/.gitignore; echo n > new/n.txt; \
         git add -A; git commit -qm 'first step'; \
         echo l > new/a.log; git add -f new/a.log; git commit -qm 'with a log'; git rm -q new/a.log; \
         ln -s /etc/passwd link; git add -A; git commit -qm 'with a link'; rm link; \
         echo three > src/main.txt; git add -A; git commit -qm 'last step'; echo later > late.txt"
    ));
    let own = made
        .repository
        .own_commits(&OwnCommitsPlan {
            view: &view.git_dir,
            scratch: &made.fixture.root().join("own"),
            base: &made.workspace.base,
        })
        .unwrap();
    assert_eq!(own.len(), 4);
    let found = made.commit_after(&own, &turn(1)).unwrap();
    assert_eq!(found.candidate.own_left_out, 2);
    let range = format!("{}..{}", made.workspace.base, found.candidate.commit);
    let log = made.fixture.git(&["log", "--format=%s", &range]);
    assert_eq!(log, "demo: turn 1\nlast step\nfirst step");
    assert_eq!(
        made.fixture.git(&["diff", "--name-only", &range]),
        "late.txt\nnew/.gitignore\nnew/n.txt\nsrc/main.txt"
    );
    // The same again is the same commit, and its name is kept.
    let again = made.commit_after(&own, &turn(1)).unwrap();
    assert_eq!(again, found);
}
