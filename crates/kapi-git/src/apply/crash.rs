//! Stops an apply after every one of its steps, and looks at what the next call makes of it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use kapi_sys::cancel::Cancel;
use kapi_sys::process::find_in_path;
use tempfile::TempDir;

use super::beneath::OpenTree;
use super::journal::Journal;
use super::judge::ApplyJudge;
use super::perform::{ApplyStep, Site};
use super::stage::stage;
use super::{
    ApplyError, ApplyOffer, ApplyPlan, BaseState, ByteSource, OnConflict, SandboxState, apply,
    recover,
};
use crate::command::Git;
use crate::owned_dir;

struct Scene {
    temp: TempDir,
    git: Git,
    offers: Vec<ApplyOffer>,
}

impl Scene {
    /// A project and one change of every kind.
    fn new() -> Self {
        let temp = TempDir::new().expect("a temporary directory");
        let path = std::env::var_os("PATH").expect("PATH");
        let git = find_in_path(OsStr::new("git"), &path).expect("git is installed");
        let git = Git::open(&git, &Cancel::new()).expect("git");
        let at = |path: &str| temp.path().join(path);
        for path in [
            "project/dir/sub/deep",
            "project/dir/a",
            "project/edit",
            "project/gone",
            "project/turn",
        ] {
            fs::create_dir_all(at(path).parent().expect("a parent")).expect("create");
            owned_dir::write(&at(path), path.as_bytes()).expect("write");
        }
        fs::create_dir_all(at("upper")).expect("create");
        fs::create_dir_all(at("work")).expect("create");
        for name in ["edit", "new", "inside", "replaced"] {
            owned_dir::write(&at("upper").join(name), b"agent").expect("write");
        }
        let source = |root: &str, path: &str| ByteSource::File {
            root: at(root),
            path: path.into(),
        };
        let was = |path: &str| BaseState::File {
            source: source("before", path),
            is_executable: false,
        };
        let file = |name: &str| SandboxState::File {
            source: source("upper", name),
            mode: 0o644,
        };
        // What was before is a copy, because the project's own files are about to change.
        copy(&at("project"), &at("before"));
        let offer = |path: &str, old, new| ApplyOffer {
            path: path.into(),
            old,
            new,
        };
        let link = SandboxState::Link {
            target: "edit".into(),
        };
        let offers = vec![
            offer("edit", was("edit"), file("edit")),
            offer("gone", was("gone"), SandboxState::Absent),
            offer("far/away/new", BaseState::Absent, file("new")),
            offer("link", BaseState::Absent, link),
            offer("turn", was("turn"), SandboxState::Directory),
            offer("turn/inside", BaseState::Absent, file("inside")),
            offer("dir/a", was("dir/a"), SandboxState::Absent),
            offer("dir/sub/deep", was("dir/sub/deep"), SandboxState::Absent),
            offer("dir", BaseState::Absent, file("replaced")),
        ];
        Self { temp, git, offers }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.temp.path().join(path)
    }

    fn with<T>(&self, act: impl FnOnce(&ApplyPlan<'_>) -> T) -> T {
        let (project, work) = (self.at("project"), self.at("work"));
        act(&ApplyPlan {
            git: &self.git,
            repository: None,
            project: &project,
            work: &work,
            offers: &self.offers,
            select: &[],
            links_out: &std::collections::BTreeSet::new(),
            on_conflict: OnConflict::Refuse,
        })
    }

    /// Does what `apply` does, up to `n_steps` steps; returns how many there are.
    fn apply_until(&self, n_steps: usize, spoil: Option<ApplyStep>) -> usize {
        self.with(|plan| {
            let project = OpenTree::open(plan.project).expect("project");
            let work = OpenTree::open(plan.work).expect("work");
            let judge = ApplyJudge::new(plan, &project).expect("judge");
            let judged = judge.judge().expect("judged");
            assert_eq!(judged.preview.n_obstacles(), 0, "{:?}", judged.preview);
            let mut steps = stage(&judge, &work, &judged).expect("steps");
            if let Some(spoil) = spoil {
                steps.push(spoil);
                let error = Journal::of(plan.work).run(&project, &work, &steps);
                let error = error.expect_err("the last step cannot be made");
                assert!(matches!(error, ApplyError::Raced { .. }), "{error}");
                return steps.len();
            }
            Journal::of(plan.work).begin(&steps).expect("journal");
            let site = Site {
                project: &project,
                work: &work,
            };
            for step in steps.iter().take(n_steps) {
                site.perform(step).expect("step");
            }
            steps.len()
        })
    }

    fn recover(&self) -> super::Recovery {
        recover(&self.at("project"), &self.at("work")).expect("recover")
    }

    fn project(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        everything(&self.at("project"))
    }

    #[track_caller]
    fn assert_work_is_empty(&self) {
        let mut names: Vec<PathBuf> = everything(&self.at("work")).into_keys().collect();
        names.retain(|name| name != Path::new("lock"));
        assert_eq!(names, Vec::<PathBuf>::new());
    }
}

fn everything(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut dirs = vec![dir.to_path_buf()];
    while let Some(at) = dirs.pop() {
        for entry in fs::read_dir(&at).expect("list") {
            let path = entry.expect("entry").path();
            let kind = fs::symlink_metadata(&path).expect("inspect").file_type();
            let bytes = if kind.is_dir() {
                dirs.push(path.clone());
                b"directory".to_vec()
            } else if kind.is_symlink() {
                b"link".to_vec()
            } else {
                fs::read(&path).expect("read")
            };
            found.insert(path.strip_prefix(dir).expect("below").to_path_buf(), bytes);
        }
    }
    found
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("create");
    for (path, bytes) in everything(from) {
        if bytes == b"directory" {
            fs::create_dir_all(to.join(path)).expect("create");
            continue;
        }
        let to = to.join(path);
        fs::create_dir_all(to.parent().expect("a parent")).expect("create");
        owned_dir::write(&to, &bytes).expect("write");
    }
}

#[test]
fn an_apply_that_stops_anywhere_is_undone_by_the_next_call() {
    let n_all = Scene::new().apply_until(0, None);
    assert!(n_all >= 12, "{n_all} steps");
    for n_steps in 0..=n_all {
        let scene = Scene::new();
        let before = scene.project();
        scene.apply_until(n_steps, None);
        if n_steps > 0 {
            assert_ne!(scene.project(), before, "step {n_steps} did something");
        }
        let recovery = scene.recover();
        assert!(recovery.was_interrupted);
        assert_eq!(recovery.left, []);
        assert_eq!(scene.project(), before, "after {n_steps} of {n_all} steps");
        scene.assert_work_is_empty();
        // And then it goes through.
        scene.with(apply).expect("apply");
        assert_eq!(
            scene.project().get(Path::new("dir")),
            Some(&b"agent".to_vec())
        );
        assert!(!scene.recover().was_interrupted);
        scene.assert_work_is_empty();
    }
}

#[test]
fn undoing_that_stops_anywhere_goes_on() {
    let n_all = Scene::new().apply_until(0, None);
    for n_undone in 0..n_all {
        let scene = Scene::new();
        let before = scene.project();
        scene.apply_until(n_all, None);
        let journal = fs::read(scene.at("work/journal")).expect("journal");
        scene.with(|plan| {
            let project = OpenTree::open(plan.project).expect("project");
            let work = OpenTree::open(plan.work).expect("work");
            let steps = super::journal::decode(&journal).expect("steps");
            let site = Site {
                project: &project,
                work: &work,
            };
            for step in steps.iter().rev().take(n_undone) {
                site.undo(step).expect("undo");
            }
        });
        scene.recover();
        assert_eq!(scene.project(), before, "after {n_undone} undone");
    }
}

#[test]
fn a_step_that_cannot_be_made_takes_all_others_back() {
    let scene = Scene::new();
    let before = scene.project();
    let spoil = ApplyStep::MakeDir {
        path: "link".into(),
    };
    scene.apply_until(0, Some(spoil));
    assert_eq!(scene.project(), before);
    scene.assert_work_is_empty();
}

#[test]
fn a_file_that_changes_between_the_look_and_the_step_stays() {
    // One is replaced and one removed; each alone, for the first to be found ends the apply.
    for name in ["edit", "gone"] {
        let scene = Scene::new();
        scene.with(|plan| {
            let project = OpenTree::open(plan.project).expect("project");
            let work = OpenTree::open(plan.work).expect("work");
            let judge = ApplyJudge::new(plan, &project).expect("judge");
            let steps = stage(&judge, &work, &judge.judge().expect("judged")).expect("steps");
            // The person saves, as editors do: a new file in the old one's place.
            let saved = scene.at("saved");
            owned_dir::write(&saved, b"person").expect("write");
            fs::rename(&saved, scene.at("project").join(name)).expect("save");
            let error = Journal::of(plan.work).run(&project, &work, &steps);
            assert!(matches!(error, Err(ApplyError::Raced { .. })), "{error:?}");
        });
        let found = scene.project();
        assert_eq!(found.get(Path::new(name)), Some(&b"person".to_vec()));
        assert_eq!(
            found.get(Path::new("turn")),
            Some(&b"project/turn".to_vec())
        );
        scene.assert_work_is_empty();
    }
}

#[test]
fn what_a_person_does_after_the_crash_is_left_and_the_old_content_kept() {
    let scene = Scene::new();
    let n_all = scene.apply_until(0, None);
    let scene = Scene::new();
    scene.apply_until(n_all, None);
    for name in ["edit", "gone", "link"] {
        let path = scene.at("project").join(name);
        owned_dir::wipe(&path).expect("remove");
        owned_dir::write(&path, b"person").expect("write");
    }
    symlink("/nonexistent", scene.at("project/unrelated")).expect("link");
    let recovery = scene.recover();
    let mut left = recovery.left;
    left.sort();
    let names: Vec<&Path> = left.iter().map(|(path, _)| path.as_path()).collect();
    assert_eq!(
        names,
        [Path::new("edit"), Path::new("gone"), Path::new("link")]
    );
    for (path, kept) in left {
        assert_eq!(scene.project().get(&path), Some(&b"person".to_vec()));
        let kept = kept.map(|kept| fs::read(kept).expect("kept"));
        let before = Path::new("project").join(&path);
        let before = before.to_string_lossy().into_owned().into_bytes();
        assert_eq!(kept, (path != Path::new("link")).then_some(before));
    }
    assert_eq!(
        scene.project().get(Path::new("dir/sub/deep")),
        Some(&b"project/dir/sub/deep".to_vec())
    );
}
