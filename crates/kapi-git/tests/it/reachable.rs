//! What an agent can read of a repository's objects: what its commit reaches and not one more.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use kapi_git::id::CommitId;
use kapi_git::private_view::{PrivateView, PrivateViewPlan};
use kapi_git::reachable::vanished::{remove_vanished, vanished_stores};
use kapi_git::reachable::{HistoryDepth, ReachablePlan, ReachableStore};
use kapi_git::repository::Repository;
use kapi_git::workspace::GitWorkspace;

use crate::fixture::{
    Fixture, author, commit, everything, git, git_binary, git_in, run_with, write,
};

fn stores(fixture: &Fixture) -> PathBuf {
    fixture.root().join("kapi home/objects")
}

fn store(fixture: &Fixture, base: &CommitId, history: HistoryDepth) -> ReachableStore {
    let plan = ReachablePlan {
        stores: &stores(fixture),
        base,
        history,
        wait_ms: 10_000,
    };
    fixture.open().reachable_store(&plan).expect("store")
}

fn view(
    fixture: &Fixture,
    repository: &Repository,
    workspace: &GitWorkspace,
    (at, store): (&CommitId, &ReachableStore),
) -> PrivateView {
    let to = fixture.root().join("views/one");
    let plan = PrivateViewPlan {
        to: &to,
        inside: &to,
        objects_inside: &store.object_dirs,
        shown: &workspace.shown(),
        commit: at,
        author: &author(),
    };
    repository.private_view(&plan, store).expect("view")
}

fn try_inside(view: &PrivateView, workspace: &GitWorkspace, args: &[&str]) -> (i32, String) {
    let mut env = view.environment.clone();
    env.push(("GIT_DIR".into(), OsString::from(&view.git_dir)));
    env.push(("GIT_WORK_TREE".into(), OsString::from(&workspace.path)));
    let args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
    let (code, output) = run_with(&git_binary(), &workspace.path, &args, &env);
    (code, String::from_utf8_lossy(&output).trim_end().to_owned())
}

#[track_caller]
fn inside(view: &PrivateView, workspace: &GitWorkspace, args: &[&str]) -> String {
    let (code, text) = try_inside(view, workspace, args);
    assert_eq!(code, 0, "git {args:?}: {text}");
    text
}

/// Returns every object that git can read in a view.
fn readable(view: &PrivateView, workspace: &GitWorkspace) -> BTreeSet<String> {
    let listed = inside(
        view,
        workspace,
        &[
            "cat-file",
            "--batch-all-objects",
            "--batch-check=%(objectname)",
        ],
    );
    listed.lines().map(str::to_owned).collect()
}

fn reached(fixture: &Fixture, revs: &[&str]) -> BTreeSet<String> {
    let mut args = vec!["rev-list", "--objects", "--no-object-names"];
    args.extend(revs);
    fixture.git(&args).lines().map(str::to_owned).collect()
}

/// A repository with a secret of every kind: branch, stash, tag, dropped commit, staged file.
fn with_secrets() -> Fixture {
    let fixture = Fixture::new();
    let secret = fixture.repo().join("secret");
    for (n, keep) in [
        "git branch secret-branch",
        "git tag secret-tag",
        "git update-ref refs/remotes/origin/secret HEAD",
        "true",
    ]
    .iter()
    .enumerate()
    {
        write(&secret, &format!("secret {n}"));
        fixture.commit("secret");
        crate::fixture::shell(&fixture.repo(), keep);
        fixture.git(&["reset", "-q", "--hard", "HEAD~1"]);
    }
    write(&fixture.repo().join("README"), "secret stash\n");
    fixture.git(&["stash", "-q"]);
    write(&secret, "secret staged");
    fixture.git(&["add", "secret"]);
    fixture
}

#[test]
fn an_agent_reads_what_the_base_reaches_and_nothing_else() {
    let fixture = with_secrets();
    write(&fixture.repo().join("src/main.txt"), "two\n");
    fixture.git(&["commit", "-q", "-m", "second", "src/main.txt"]);
    fixture.git(&[
        "remote",
        "add",
        "origin",
        "https://user:secret@example.invalid/x",
    ]);
    let (repository, workspace) = fixture.workspace();
    let base = workspace.base.clone();
    // The way it was: everything is readable. Without this the test proves nothing.
    let everything_there = fixture.git(&[
        "cat-file",
        "--batch-all-objects",
        "--batch-check=%(objectname)",
    ]);
    let store = store(&fixture, &base, HistoryDepth::Full);
    let view = view(&fixture, &repository, &workspace, (&base, &store));
    let found = readable(&view, &workspace);
    assert_eq!(found, reached(&fixture, &[base.as_str()]));
    assert!(everything_there.lines().count() > found.len() + 8);
    for dir in store.object_dirs.iter().chain([&view.git_dir]) {
        for (path, bytes) in everything(dir) {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            assert!(!text.contains("secret"), "{}", path.display());
            assert!(
                !text.contains(&fixture.repo().display().to_string()),
                "{}",
                path.display()
            );
        }
    }
    assert_eq!(inside(&view, &workspace, &["status", "--porcelain"]), "");
    assert_eq!(
        inside(&view, &workspace, &["log", "--format=%s"]),
        "second\nfirst"
    );
    inside(&view, &workspace, &["fsck", "--full", "--strict"]);
    write(&workspace.path.join("src/main.txt"), "three\n");
    inside(&view, &workspace, &["commit", "-q", "-a", "-m", "agent"]);
    assert_eq!(
        inside(&view, &workspace, &["blame", "-s", "src/main.txt"])
            .lines()
            .count(),
        1
    );
}

#[test]
fn a_later_turns_commit_is_in_the_view_itself() {
    let fixture = with_secrets();
    let (repository, workspace) = fixture.workspace();
    write(&workspace.path.join("new"), "n");
    let candidate = commit(&repository, &workspace);
    for history in [HistoryDepth::Full, HistoryDepth::CommitOnly] {
        let store = store(&fixture, &workspace.base, history);
        let view = view(
            &fixture,
            &repository,
            &workspace,
            (&candidate.commit, &store),
        );
        assert_eq!(
            readable(&view, &workspace),
            reached(&fixture, &[candidate.commit.as_str()]),
            "{history:?}"
        );
        assert_eq!(inside(&view, &workspace, &["status", "--porcelain"]), "");
        assert_eq!(
            inside(
                &view,
                &workspace,
                &["diff", "--name-only", "kapi/base", "HEAD"]
            ),
            "new"
        );
    }
}

#[test]
fn of_a_commit_alone_there_is_no_past() {
    let fixture = with_secrets();
    for n in 0..3 {
        write(&fixture.repo().join("src/main.txt"), &format!("{n}\n"));
        fixture.git(&["commit", "-q", "-m", &format!("change {n}"), "src/main.txt"]);
    }
    let (repository, workspace) = fixture.workspace();
    let base = workspace.base.clone();
    let only = store(&fixture, &base, HistoryDepth::CommitOnly);
    assert_eq!(only.shallow, std::slice::from_ref(&base));
    let view = view(&fixture, &repository, &workspace, (&base, &only));
    let tree = fixture.git(&["rev-parse", &format!("{base}^{{tree}}")]);
    let mut expected = reached(&fixture, &[&tree]);
    expected.insert(base.to_string());
    assert_eq!(readable(&view, &workspace), expected);
    assert_eq!(
        inside(&view, &workspace, &["log", "--format=%s"]),
        "change 2"
    );
    assert_eq!(inside(&view, &workspace, &["status", "--porcelain"]), "");
    inside(&view, &workspace, &["fsck", "--full"]);
    let (code, _) = try_inside(
        &view,
        &workspace,
        &["rev-parse", "--verify", "-q", "HEAD~1"],
    );
    assert_ne!(code, 0);
    // Both kinds of one base live side by side.
    let full = store(&fixture, &base, HistoryDepth::Full);
    assert_eq!(full.shallow, []);
    assert!(full.is_new);
    assert!(!store(&fixture, &base, HistoryDepth::CommitOnly).is_new);
}

/// A repository and a home are often on different file systems, and no file is renamed across.
#[test]
fn a_store_may_be_on_another_file_system() {
    let fixture = Fixture::new();
    let other = tempfile::tempdir_in("/dev/shm").expect("a directory in memory");
    let device = |path: &Path| fs::metadata(path).expect("a directory").dev();
    assert_ne!(
        device(other.path()),
        device(fixture.root()),
        "the test needs two"
    );
    let base = fixture.base();
    for history in [HistoryDepth::CommitOnly, HistoryDepth::Full] {
        let plan = ReachablePlan {
            stores: &other.path().join(format!("{history:?}")),
            base: &base,
            history,
            wait_ms: 10_000,
        };
        let made = fixture.open().reachable_store(&plan).expect("store");
        assert!(made.is_new);
    }
}

#[test]
fn the_next_base_costs_what_is_new_and_a_chain_ends() {
    let fixture = Fixture::new();
    let first = store(&fixture, &fixture.base(), HistoryDepth::Full);
    assert!(first.is_new);
    assert!(!store(&fixture, &fixture.base(), HistoryDepth::Full).is_new);
    let mut longest = 1;
    for n in 0..20 {
        write(&fixture.repo().join("src/main.txt"), &format!("{n}\n"));
        fixture.commit(&format!("change {n}"));
        let next = store(&fixture, &fixture.base(), HistoryDepth::Full);
        assert!(next.is_new);
        longest = longest.max(next.object_dirs.len());
        if n == 0 {
            assert_eq!(next.object_dirs.get(1), first.object_dirs.first());
            let held = fixture.git(&["verify-pack", "-v", &pack_of(&next)]);
            let n_held = held
                .lines()
                .filter(|line| line.len() > 40 && line.contains(" commit "))
                .count();
            assert_eq!(n_held, 1, "{held}");
        }
    }
    // Times of use have the grain of the kernel's clock, so two stores may look equally recent and
    // the chain may begin at the older one.
    assert!((2..=8).contains(&longest), "{longest}");
    let (repository, workspace) = fixture.workspace();
    let store = store(&fixture, &workspace.base, HistoryDepth::Full);
    let view = view(&fixture, &repository, &workspace, (&workspace.base, &store));
    assert_eq!(
        readable(&view, &workspace),
        reached(&fixture, &[workspace.base.as_str()])
    );
}

#[test]
fn a_store_of_a_branch_is_no_part_of_another_branchs() {
    let fixture = Fixture::new();
    let main = fixture.base();
    write(&fixture.repo().join("secret"), "s");
    fixture.commit("secret");
    store(&fixture, &fixture.base(), HistoryDepth::Full);
    let older = store(&fixture, &main, HistoryDepth::Full);
    assert_eq!(older.object_dirs.len(), 1);
    fixture.git(&["checkout", "-q", "-b", "side", main.as_str()]);
    write(&fixture.repo().join("side"), "s");
    fixture.commit("side");
    let side = store(&fixture, &fixture.base(), HistoryDepth::Full);
    assert_eq!(side.object_dirs.get(1), older.object_dirs.first());
}

#[test]
fn what_a_killed_process_left_is_made_anew() {
    let fixture = Fixture::new();
    let base = fixture.base();
    let made = store(&fixture, &base, HistoryDepth::Full);
    let objects = made.object_dirs.first().expect("a directory");
    let entry = objects.parent().expect("the store");
    // Killed before the rename, with half a pack.
    let making = entry.with_file_name(format!("making-{base}"));
    fs::rename(entry, &making).expect("rename");
    fs::remove_dir_all(making.join("objects/pack")).expect("remove");
    write(&making.join("objects/pack/tmp_pack_x"), "half");
    let again = store(&fixture, &base, HistoryDepth::Full);
    assert!(again.is_new);
    assert!(!making.exists());
    git_in(&fixture.repo(), &["verify-pack", &pack_of(&again)]);
    // A store whose ground was taken away is not whole.
    write(&fixture.repo().join("new"), "n");
    fixture.commit("second");
    let second = store(&fixture, &fixture.base(), HistoryDepth::Full);
    assert_eq!(second.object_dirs.len(), 2);
    fs::remove_dir_all(entry).expect("remove");
    let whole = store(&fixture, &fixture.base(), HistoryDepth::Full);
    assert!(whole.is_new);
    assert_eq!(whole.object_dirs.len(), 1);
}

fn pack_of(store: &ReachableStore) -> String {
    let dir = store.object_dirs.first().expect("a directory").join("pack");
    let packs = fs::read_dir(dir).expect("list");
    let mut packs = packs.map(|entry| entry.expect("entry").path());
    let pack = packs.find(|path| path.extension() == Some(OsStr::new("idx")));
    pack.expect("a pack").display().to_string()
}

#[test]
fn pruning_removes_what_nobody_used_and_nobody_needs() {
    let fixture = Fixture::new();
    let first = fixture.base();
    store(&fixture, &first, HistoryDepth::Full);
    write(&fixture.repo().join("new"), "n");
    fixture.commit("second");
    let second = fixture.base();
    let kept = store(&fixture, &second, HistoryDepth::Full);
    store(&fixture, &second, HistoryDepth::CommitOnly);
    let repository = fixture.open();
    let prune = |used_before: i64, kept: &[CommitId]| {
        repository
            .prune_stores(&stores(&fixture), used_before, kept)
            .expect("prune")
    };
    assert_eq!(prune(0, &[]), 0);
    // Old by any measure, but a run still uses the second, which is made of the first.
    assert_eq!(prune(i64::MAX, std::slice::from_ref(&second)), 0);
    assert!(kept.object_dirs.iter().all(|dir| dir.is_dir()));
    let stale = repository.stale_stores(&stores(&fixture), i64::MAX, &[]);
    assert_eq!(stale.expect("look").len(), 3);
    assert!(kept.object_dirs.iter().all(|dir| dir.is_dir()), "only told");
    assert_eq!(prune(i64::MAX, &[]), 3);
    assert!(!kept.object_dirs.iter().any(|dir| dir.exists()));
    assert!(store(&fixture, &second, HistoryDepth::Full).is_new);
}

#[test]
fn what_was_lent_of_a_repository_that_is_gone_goes() {
    let fixture = Fixture::new();
    let shared_in = store(&fixture, &fixture.base(), HistoryDepth::Full);
    let objects = shared_in.object_dirs.first().expect("a directory");
    let dir = objects.ancestors().nth(2).expect("its repository's");
    let vanished = |used_before| {
        let found = vanished_stores(&stores(&fixture), used_before);
        found.expect("look")
    };
    assert_eq!(
        vanished(i64::MAX),
        [] as [&Path; 0],
        "its repository is there"
    );
    remove_vanished(dir, i64::MAX).expect("look again");
    assert!(objects.is_dir(), "nothing goes that has a repository");
    let away = fixture.repo().with_extension("away");
    fs::rename(fixture.repo(), &away).expect("move the repository away");
    assert_eq!(vanished(0), [] as [&Path; 0], "it was used a moment ago");
    assert_eq!(vanished(i64::MAX), [dir]);
    remove_vanished(dir, 0).expect("look again");
    assert!(objects.is_dir(), "nothing goes that was used meanwhile");
    remove_vanished(dir, i64::MAX).expect("remove");
    assert!(!dir.exists());
    fs::rename(&away, fixture.repo()).expect("bring it back");
    assert!(store(&fixture, &fixture.base(), HistoryDepth::Full).is_new);
}

#[test]
fn clones_that_lack_objects_are_shown_as_far_as_they_go() {
    let fixture = with_secrets();
    write(&fixture.repo().join("src/main.txt"), "two\n");
    fixture.git(&["commit", "-q", "-m", "second", "src/main.txt"]);
    fixture.git(&["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", fixture.repo().display());
    for (name, option) in [("shallow", "--depth=1"), ("partial", "--filter=blob:none")] {
        git_in(
            fixture.root(),
            &["clone", "-q", option, "-b", "main", &url, name],
        );
        let repository = Repository::discover(&git(), &fixture.root().join(name)).expect("clone");
        let base = repository.resolve_commit("HEAD").expect("base");
        let plan = ReachablePlan {
            stores: &stores(&fixture),
            base: &base,
            history: HistoryDepth::Full,
            wait_ms: 10_000,
        };
        let store = repository.reachable_store(&plan).expect("store");
        let is_shallow = name == "shallow";
        assert_eq!(
            store.shallow,
            if is_shallow {
                vec![base.clone()]
            } else {
                vec![]
            }
        );
        let listed = git_in(&fixture.repo(), &["verify-pack", "-v", &pack_of(&store)]);
        let n_commits = listed
            .lines()
            .filter(|line| line.contains(" commit "))
            .count();
        assert_eq!(n_commits, if is_shallow { 1 } else { 2 }, "{listed}");
        // Each file that is checked out is there.
        let here = git_in(
            &fixture.root().join(name),
            &["ls-files", "-s", "src/main.txt"],
        );
        let blob = here.split(' ').nth(1).expect("an id");
        assert!(listed.contains(blob), "{name}: {listed}");
    }
}

#[test]
fn objects_borrowed_from_elsewhere_are_held_by_the_store_itself() {
    let fixture = with_secrets();
    git_in(
        fixture.root(),
        &[
            "clone", "-q", "--shared", "-b", "main", "my repo", "borrower",
        ],
    );
    let repository = Repository::discover(&git(), &fixture.root().join("borrower")).expect("clone");
    let base = repository.resolve_commit("HEAD").expect("base");
    let plan = ReachablePlan {
        stores: &stores(&fixture),
        base: &base,
        history: HistoryDepth::Full,
        wait_ms: 10_000,
    };
    let store = repository.reachable_store(&plan).expect("store");
    let dir = store.object_dirs.first().expect("a directory");
    assert!(!dir.join("info/alternates").exists());
    let listed = git_in(Path::new("/"), &["verify-pack", "-v", &pack_of(&store)]);
    for object in reached(&fixture, &[base.as_str()]) {
        assert!(listed.contains(&object), "{object}");
    }
    assert!(repository.packed_bytes().is_ok());
}

#[test]
fn two_repositories_and_two_processes_do_not_meet() {
    let fixture = Fixture::new();
    let base = fixture.base();
    let made = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| store(&fixture, &base, HistoryDepth::Full)))
            .collect();
        let stores = threads
            .into_iter()
            .map(|thread| thread.join().expect("thread"));
        stores.collect::<Vec<_>>()
    });
    assert_eq!(made.iter().filter(|store| store.is_new).count(), 1);
    git_in(fixture.root(), &["clone", "-q", "my repo", "copy"]);
    let copy = Repository::discover(&git(), &fixture.root().join("copy")).expect("clone");
    let plan = ReachablePlan {
        stores: &stores(&fixture),
        base: &base,
        history: HistoryDepth::Full,
        wait_ms: 10_000,
    };
    let other = copy.reachable_store(&plan).expect("store");
    assert!(other.is_new);
    assert_ne!(Some(&other), made.first());
}
