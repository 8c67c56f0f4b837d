//! Commits travel: from the machine that asks to the one that works, and back.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kapi_fleet::log::NetLog;
use kapi_fleet::objects::FleetObjects;
use kapi_git::bundle::BundleError;
use kapi_git::command::Git;
use kapi_git::id::{CommitId, RefPart};
use kapi_git::repository::Repository;
use kapi_sys::cancel::Cancel;
use kapi_sys::process::{self, ProcessEnd, ProcessLimits, Program};
use tempfile::TempDir;

use crate::cluster::Cluster;

/// A machine with its own repository.
struct Machine {
    dir: TempDir,
}

impl Machine {
    fn new() -> Self {
        let machine = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        machine.git(&["init", "-q", "-b", "main"]);
        machine
    }

    fn git(&self, args: &[&str]) -> String {
        let env = [
            ("HOME", "/nonexistent"),
            ("PATH", "/usr/bin:/bin"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_AUTHOR_NAME", "somebody"),
            ("GIT_AUTHOR_EMAIL", "somebody@example.invalid"),
            ("GIT_COMMITTER_NAME", "somebody"),
            ("GIT_COMMITTER_EMAIL", "somebody@example.invalid"),
        ];
        let program = Program {
            path: git_path(),
            args: args.iter().map(OsString::from).collect(),
            env: BTreeMap::from(env.map(|(name, value)| (name.into(), value.into()))),
            cwd: self.dir.path().to_path_buf(),
            stdin: Vec::new(),
            pass_fds: Vec::new(),
            limits: ProcessLimits {
                deadline: Duration::from_secs(60),
                idle: None,
                tail_bytes_max: 1 << 20,
                line_bytes_max: 4096,
            },
        };
        let finished = process::run(program, &Cancel::new(), &mut |_| {}).unwrap();
        assert_eq!(
            finished.end,
            ProcessEnd::Exited(0),
            "{args:?}: {}",
            finished.stderr.text()
        );
        finished.stdout.text().trim().to_owned()
    }

    /// Commits a file and returns the commit.
    fn commit(&self, name: &str, content: &str) -> CommitId {
        let file = std::fs::File::create(self.dir.path().join(name)).unwrap();
        std::io::Write::write_all(&mut &file, content.as_bytes()).unwrap();
        self.git(&["add", "."]);
        self.git(&["commit", "-q", "-m", name]);
        CommitId::parse(&self.git(&["rev-parse", "HEAD"])).unwrap()
    }

    fn repository(&self) -> Repository {
        let git = Git::open(&git_path(), &Cancel::new()).unwrap();
        Repository::discover(&git, self.dir.path()).unwrap()
    }
}

fn git_path() -> PathBuf {
    process::find_in_path(
        OsStr::new("git"),
        OsStr::new("/usr/local/bin:/usr/bin:/bin"),
    )
    .unwrap()
}

/// Offers a commit, on top of what the others have.
fn send(machine: &Machine, objects: &FleetObjects, tip: &CommitId, parents: &[CommitId]) {
    let bytes = machine.repository().bundle(tip, parents).unwrap();
    let names: Vec<String> = parents
        .iter()
        .map(|commit| commit.as_str().to_owned())
        .collect();
    objects.put(tip.as_str(), &names, &bytes).unwrap();
}

/// Takes a commit and what it builds on, and returns the ref that keeps it.
fn receive(machine: &Machine, objects: &FleetObjects, tip: &CommitId, task: &str) -> String {
    let repository = machine.repository();
    let head = objects.head(tip.as_str()).unwrap().unwrap();
    for name in &head.parents {
        let parents = CommitId::parse(name).unwrap();
        let parents = std::slice::from_ref(&parents);
        if repository.present(parents).unwrap().is_empty() {
            receive(machine, objects, &parents[0], "basis");
        }
    }
    let bytes = objects.get(tip.as_str()).unwrap().unwrap();
    let task = RefPart::parse(task).unwrap();
    repository.unbundle(tip, &bytes, &task).unwrap()
}

#[test]
fn a_commit_travels_there_and_its_result_comes_back() {
    let cluster = Cluster::three();
    let here = Machine::new();
    let base = here.commit("a", &"one\n".repeat(1000));
    let ask = NetLog::open(cluster.settings(), "shop", "kernel")
        .unwrap()
        .objects();
    send(&here, &ask, &base, &[]);
    let changed = here.commit("b", "two\n");
    send(&here, &ask, &changed, std::slice::from_ref(&base));

    let there = Machine::new();
    there.commit("z", "not related\n");
    let work = NetLog::open(cluster.settings(), "shop", "kernel")
        .unwrap()
        .objects();
    let name = receive(&there, &work, &changed, "task_7");
    assert_eq!(name, "refs/kapi/fleet/task_7");
    assert_eq!(there.git(&["show", &format!("{name}:b")]), "two");
    there.git(&["checkout", "-q", &name]);
    let result = there.commit("c", "three\n");
    send(&there, &work, &result, std::slice::from_ref(&changed));

    let name = receive(&here, &ask, &result, "task_7");
    assert_eq!(here.git(&["rev-parse", &name]), result.as_str());
    assert_eq!(here.git(&["log", "--format=%s", &name]), "c\nb\na");
    here.git(&["fsck", "--strict"]);
    // Taking it twice changes nothing, and what is removed is gone.
    assert_eq!(receive(&here, &ask, &result, "task_7"), name);
    let mut names = ask.names().unwrap();
    names.sort();
    let mut expected = [&base, &changed, &result].map(|commit| commit.as_str().to_owned());
    expected.sort();
    assert_eq!(names, expected);
    ask.remove(base.as_str()).unwrap();
    assert_eq!(ask.head(base.as_str()).unwrap(), None);
    assert_eq!(ask.get(base.as_str()).unwrap(), None);
    assert!(ask.get(changed.as_str()).unwrap().is_some());
}

#[test]
fn what_is_offered_twice_is_there_once_and_names_are_checked() {
    let cluster = Cluster::one();
    let objects = NetLog::open(cluster.settings(), "shop", "kernel")
        .unwrap()
        .objects();
    let large: Vec<u8> = (0..3_000_000_u32)
        .map(|at| at.to_le_bytes()[0] ^ 0x5a)
        .collect();
    objects.put("one", &[], &large).unwrap();
    objects.put("one", &[], b"other").unwrap();
    assert_eq!(objects.get("one").unwrap().unwrap(), large);
    assert_eq!(objects.head("one").unwrap().unwrap().bytes, 3_000_000);
    for name in ["", "a.b", "*", "a b", ">"] {
        assert!(objects.put(name, &[], b"x").is_err(), "{name}");
        assert!(objects.get(name).is_err(), "{name}");
    }
    assert!(objects.put("empty", &[], b"").is_err());
}

#[test]
fn a_bundle_that_brings_something_else_leaves_nothing_behind() {
    let here = Machine::new();
    let base = here.commit("a", "one\n");
    let tip = here.commit("b", "two\n");
    let bytes = here
        .repository()
        .bundle(&tip, std::slice::from_ref(&base))
        .unwrap();
    let there = Machine::new();
    let own = there.commit("z", "z\n");
    let repository = there.repository();
    let task = RefPart::parse("task_1").unwrap();
    let lacks = repository.unbundle(&tip, &bytes, &task).unwrap_err();
    assert!(matches!(lacks, BundleError::Lacks { .. }), "{lacks:?}");
    let other = repository.unbundle(&own, &bytes, &task).unwrap_err();
    assert!(matches!(other, BundleError::Malformed { .. }), "{other:?}");
    let whole = here.repository().bundle(&tip, &[]).unwrap();
    let cut = repository
        .unbundle(&tip, &whole[..whole.len() - 30], &task)
        .unwrap_err();
    assert!(matches!(cut, BundleError::Git(_)), "{cut:?}");
    // The objects of the tip alone: what is below them is nowhere.
    let text = format!("# v2 git bundle\n{tip} refs/kapi/fleet/tip\n\n");
    let head_bytes = bytes.windows(2).position(|pair| pair == b"\n\n").unwrap() + 2;
    let mut alone = text.into_bytes();
    alone.extend_from_slice(&bytes[head_bytes..]);
    let error = repository.unbundle(&tip, &alone, &task).unwrap_err();
    assert!(matches!(error, BundleError::Git(_)), "{error:?}");
    assert_eq!(there.git(&["for-each-ref", "refs/kapi"]), "");
    // Git itself can read what we make.
    let path = Path::new(there.dir.path()).join("whole.bundle");
    std::io::Write::write_all(&mut std::fs::File::create(&path).unwrap(), &whole).unwrap();
    there.git(&["bundle", "verify", "-q", "whole.bundle"]);
    repository.unbundle(&tip, &whole, &task).unwrap();
    assert_eq!(
        there.git(&["rev-parse", "refs/kapi/fleet/task_1"]),
        tip.as_str()
    );
}
