//! A throw-away repository, and the tools to set it up and look at it.
//!
//! Set-up uses plain git with an environment of its own, never the code under test.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kapi_git::author::Author;
use kapi_git::candidate::{Candidate, CandidatePlan};
use kapi_git::command::Git;
use kapi_git::id::{CommitId, RefPart};
use kapi_git::reachable::{HistoryDepth, ReachablePlan, ReachableStore};
use kapi_git::repository::Repository;
use kapi_git::workspace::{GitWorkspace, WorkspacePlan};
use kapi_sys::cancel::Cancel;
use kapi_sys::process::{self, ProcessEnd, ProcessLimits, Program};
use tempfile::TempDir;

/// The moment every candidate of the tests is from.
pub(crate) const AT: i64 = 1_700_000_000;

/// The branch of the goal.
pub(crate) const BRANCH: &str = "feat/goal-demo";

pub(crate) struct Fixture {
    temp: TempDir,
}

impl Fixture {
    /// Makes a repository with a few committed files.
    pub(crate) fn new() -> Self {
        Self::with_format("sha1")
    }

    /// Makes the directory of a repository, and no repository in it.
    pub(crate) fn empty() -> Self {
        let fixture = Self {
            temp: TempDir::new().expect("a temporary directory"),
        };
        fs::create_dir_all(fixture.repo()).expect("create repo");
        fixture
    }

    pub(crate) fn with_format(format: &str) -> Self {
        let fixture = Self::empty();
        let repo = fixture.repo();
        fixture.git(&[
            "init",
            "-q",
            "-b",
            "main",
            &format!("--object-format={format}"),
        ]);
        write(&repo.join("README"), "hello\n");
        write(&repo.join("src/main.txt"), "one\n");
        write(&repo.join("tests/check.sh"), "exit 1\n");
        write(&repo.join(".gitignore"), "build/\n*.tmp\n");
        fixture.commit("first");
        fixture
    }

    pub(crate) fn root(&self) -> &Path {
        self.temp.path()
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.root().join("my repo")
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        git_in(&self.repo(), args)
    }

    /// Commits everything in the person's checkout.
    pub(crate) fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    pub(crate) fn open(&self) -> Repository {
        Repository::discover(&git(), &self.repo()).expect("discover")
    }

    pub(crate) fn base(&self) -> CommitId {
        CommitId::parse(&self.git(&["rev-parse", "HEAD"])).expect("commit id")
    }

    pub(crate) fn plan(&self) -> WorkspacePlan {
        WorkspacePlan {
            goal: RefPart::parse("001-demo").expect("goal"),
            branch: BRANCH.to_owned(),
            base: self.base(),
            content: self.base(),
            path: self.root().join("kapi home/worktrees/001-demo"),
        }
    }

    pub(crate) fn workspace(&self) -> (Repository, GitWorkspace) {
        let repository = self.open();
        let workspace = repository
            .create_workspace(&self.plan())
            .expect("workspace");
        (repository, workspace)
    }

    /// Makes or finds the objects that a sandbox of this base is lent.
    pub(crate) fn store(&self, repository: &Repository, base: &CommitId) -> ReachableStore {
        let stores = self.root().join("stores");
        let plan = ReachablePlan {
            stores: &stores,
            base,
            history: HistoryDepth::Full,
            wait_ms: 10_000,
        };
        repository.reachable_store(&plan).expect("store")
    }

    /// Returns a script that leaves a trace when anybody runs it.
    pub(crate) fn trap(&self) -> String {
        let script = self.root().join("trap.sh");
        let trace = self.root().join("sprung");
        write(
            &script,
            &format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\ncat\n", trace.display()),
        );
        fs::set_permissions(&script, Permissions::from_mode(0o755)).expect("chmod");
        script.display().to_string()
    }

    /// Checks that the trap works at all, after something that must spring it.
    #[track_caller]
    pub(crate) fn assert_sprung(&self) {
        assert!(
            self.root().join("sprung").exists(),
            "the trap of this test is no trap"
        );
    }

    #[track_caller]
    pub(crate) fn assert_not_sprung(&self) {
        let trace = fs::read_to_string(self.root().join("sprung"));
        assert!(trace.is_err(), "a program of the agent's ran: {trace:?}");
    }
}

pub(crate) fn git_binary() -> PathBuf {
    let path = std::env::var_os("PATH").expect("PATH");
    process::find_in_path(OsStr::new("git"), &path).expect("git is installed")
}

pub(crate) fn git() -> Git {
    Git::open(&git_binary(), &Cancel::new()).expect("a git that is new enough")
}

/// Returns a git that notes which commands it is asked for, and where.
pub(crate) fn counting(fixture: &Fixture) -> (Git, PathBuf) {
    let (real, reported) = (git_binary(), fixture.root().join("told"));
    let script = format!(
        "#!/bin/sh\necho \"$2\" >> '{}'\nexec '{}' \"$@\"\n",
        reported.display(),
        real.display()
    );
    let path = fixture.root().join("counting-git");
    write(&path, &script);
    shell(fixture.root(), "chmod +x counting-git");
    (Git::open(&path, &Cancel::new()).expect("git"), reported)
}

/// Returns what was asked for since the last time.
pub(crate) fn reported(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    drop(fs::remove_file(path));
    text.lines().map(str::to_owned).collect()
}

pub(crate) fn author() -> Author {
    Author {
        name: "Kapi Agent".to_owned(),
        email: "agent@kapi.invalid".to_owned(),
    }
}

pub(crate) fn turn(number: u32) -> CandidatePlan {
    CandidatePlan {
        name: RefPart::parse(&format!("turn-{number}")).expect("name"),
        message: format!("demo: turn {number}\n\nKapi-Goal: 001-demo\n"),
        author: author(),
        at_unix_seconds: AT,
    }
}

pub(crate) fn commit(repository: &Repository, workspace: &GitWorkspace) -> Candidate {
    repository
        .commit_candidate(workspace, &turn(1))
        .expect("candidate")
}

/// Runs a program in `dir` and returns its exit code and output.
pub(crate) fn run(path: &Path, dir: &Path, args: &[&OsStr]) -> (i32, Vec<u8>) {
    let person = [
        ("GIT_AUTHOR_NAME", "Person"),
        ("GIT_AUTHOR_EMAIL", "person@example.invalid"),
        ("GIT_COMMITTER_NAME", "Person"),
        ("GIT_COMMITTER_EMAIL", "person@example.invalid"),
    ];
    run_with(
        path,
        dir,
        args,
        &person.map(|(name, value)| (name.into(), value.into())),
    )
}

pub(crate) fn run_with(
    path: &Path,
    dir: &Path,
    args: &[&OsStr],
    env: &[(OsString, OsString)],
) -> (i32, Vec<u8>) {
    let mut all: BTreeMap<OsString, OsString> = BTreeMap::new();
    for (name, value) in [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("HOME", "/nonexistent"),
        ("LC_ALL", "C"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
    ] {
        all.insert(name.into(), value.into());
    }
    all.extend(env.iter().cloned());
    let program = Program {
        path: path.to_path_buf(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: all,
        cwd: dir.to_path_buf(),
        stdin: Vec::new(),
        pass_fds: Vec::new(),
        limits: ProcessLimits {
            deadline: Duration::from_secs(120),
            idle: None,
            tail_bytes_max: 64 << 20,
            line_bytes_max: 4096,
        },
    };
    let finished = process::run(program, &Cancel::new(), &mut |_line| {}).expect("run");
    let ProcessEnd::Exited(code) = finished.end else {
        panic!("ended {:?}", finished.end)
    };
    let mut output = finished.stdout.tail;
    if code != 0 {
        output.extend_from_slice(&finished.stderr.tail);
    }
    (code, output)
}

#[track_caller]
pub(crate) fn git_in(dir: &Path, args: &[&str]) -> String {
    let args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
    let (code, output) = run(&git_binary(), dir, &args);
    let text = String::from_utf8_lossy(&output).trim_end().to_owned();
    assert_eq!(code, 0, "git {args:?}: {text}");
    text
}

#[track_caller]
pub(crate) fn shell(dir: &Path, script: &str) -> String {
    let args = [OsStr::new("-euc"), OsStr::new(script)];
    let (code, output) = run(Path::new("/bin/sh"), dir, &args);
    let text = String::from_utf8_lossy(&output).trim_end().to_owned();
    assert_eq!(code, 0, "{script}: {text}");
    text
}

pub(crate) fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a parent")).expect("create parent");
    let mut file = File::create(path).expect("create file");
    file.write_all(text.as_bytes()).expect("write file");
}

pub(crate) fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).expect("read file")).into_owned()
}

/// Returns what a commit holds: "mode path" a line, by path.
pub(crate) fn listing(fixture: &Fixture, treeish: &str) -> Vec<String> {
    let text = fixture.git(&["ls-tree", "-r", "--format=%(objectmode) %(path)", treeish]);
    text.lines().map(str::to_owned).collect()
}

/// Returns every file below `dir` with its content, links and directories included.
pub(crate) fn everything(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut dirs = vec![dir.to_path_buf()];
    while let Some(at) = dirs.pop() {
        for entry in fs::read_dir(&at).expect("list") {
            let path = entry.expect("entry").path();
            let kind = fs::symlink_metadata(&path).expect("inspect").file_type();
            let relative = path.strip_prefix(dir).expect("below").to_path_buf();
            let content = if kind.is_symlink() {
                fs::read_link(&path)
                    .expect("link")
                    .as_os_str()
                    .as_bytes()
                    .to_vec()
            } else if kind.is_dir() {
                dirs.push(path);
                b"directory".to_vec()
            } else {
                fs::read(&path).expect("read")
            };
            found.insert(relative, content);
        }
    }
    found
}

/// Returns "path why" for each refused path.
pub(crate) fn refused(candidate: &Candidate) -> Vec<String> {
    let line = |found: &kapi_git::refused_path::RefusedPath| {
        format!("{} {:?}", found.path.display(), found.why)
    };
    candidate.refused.iter().map(line).collect()
}

/// Returns "path kind" for each changed path.
pub(crate) fn changed(candidate: &Candidate) -> Vec<String> {
    let line =
        |found: &kapi_git::change::PathChange| format!("{} {:?}", found.path.display(), found.kind);
    candidate.changed.iter().map(line).collect()
}
