//! Refs that are read and changed without git: always what git would have read and done.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

use kapi_git::id::{CommitId, RefPart};
use kapi_git::repository::Repository;
use kapi_git::workspace::{GitWorkspace, WorkspaceError, WorkspacePlan};

use crate::fixture::{Fixture, counting, git, git_in, reported, shell, turn, write};
use crate::layer_fixture::{LayerFixture, open};

fn plan(fixture: &Fixture, branch: &str) -> WorkspacePlan {
    WorkspacePlan {
        goal: RefPart::parse("002-layer").expect("goal"),
        branch: branch.to_owned(),
        ..fixture.plan()
    }
}

fn claim(fixture: &Fixture, branch: &str) -> Result<GitWorkspace, WorkspaceError> {
    let layer = open(fixture);
    let repository = fixture.open();
    repository.claim_layer(&layer, &plan(fixture, branch))
}

#[track_caller]
fn check_refs(fixture: &Fixture, names: &[&str]) {
    let repository = fixture.open();
    for name in names {
        let expected = shell(
            &fixture.repo(),
            &format!("git rev-parse --verify --quiet '{name}^{{commit}}' || true"),
        );
        let found = repository.resolve_commit(name).ok();
        let found = found.as_ref().map_or("", CommitId::as_str);
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn every_way_of_keeping_a_ref_is_read_as_git_reads_it() {
    let fixture = Fixture::new();
    fixture.git(&["branch", "packed/one"]);
    fixture.git(&["branch", "packed/two"]);
    fixture.git(&["update-ref", "refs/kapi/x/base", "HEAD"]);
    fixture.git(&["tag", "-a", "-m", "t", "note"]);
    fixture.git(&["pack-refs", "--all"]);
    write(&fixture.repo().join("README"), "next\n");
    fixture.commit("next");
    fixture.git(&["branch", "-f", "packed/two"]);
    fixture.git(&["branch", "loose"]);
    fixture.git(&["symbolic-ref", "refs/heads/other", "refs/heads/packed/one"]);
    fixture.git(&["update-ref", "refs/heads/gone", "HEAD"]);
    fixture.git(&["update-ref", "-d", "refs/heads/gone"]);
    let names = [
        "HEAD",
        "refs/heads/main",
        "refs/heads/packed/one",
        "refs/heads/packed/two",
        "refs/heads/packed",
        "refs/heads/packed/one/more",
        "refs/heads/loose",
        "refs/heads/other",
        "refs/heads/gone",
        "refs/heads/Main",
        "refs/kapi/x/base",
        "refs/kapi/x",
        "refs/tags/note",
        "note",
        "main",
        "refs/heads/../heads/main",
        "refs/heads//main",
        "refs/heads/main.lock",
    ];
    check_refs(&fixture, &names);
    fixture.git(&["checkout", "-q", "--detach", "HEAD^"]);
    check_refs(&fixture, &names);
    // A ref that is torn is no ref, and no reason to believe the packed one.
    write(&fixture.repo().join(".git/refs/heads/packed/one"), "");
    let torn = fixture.open().resolve_commit("refs/heads/packed/one");
    assert!(torn.is_err(), "{torn:?}");
}

#[test]
fn an_ordinary_repository_is_found_as_git_finds_it() {
    let fixture = Fixture::new();
    let repo = fixture.repo();
    shell(
        &repo,
        "mkdir -p deep/er; ln -s deep link; git init -q inner; git -C inner commit -q --allow-empty -m x",
    );
    for dir in [".", "deep/er", "link/er", "inner"] {
        let dir = repo.join(dir);
        let found = Repository::discover(&git(), &dir).expect("discover");
        let asked =
            |question: &str| git_in(&dir, &["rev-parse", "--path-format=absolute", question]);
        let path = |text: String| PathBuf::from(text);
        assert_eq!(found.top_level(), path(asked("--show-toplevel")));
        assert_eq!(found.common_dir(), path(asked("--git-common-dir")));
        let objects = git_in(
            &dir,
            &[
                "rev-parse",
                "--path-format=absolute",
                "--git-path",
                "objects",
            ],
        );
        assert_eq!(found.object_dirs(), [path(objects)]);
    }
    // Each of these makes it one that only git understands.
    for (key, value) in [
        ("core.worktree", ".."),
        ("include.path", "more"),
        ("extensions.worktreeConfig", "true"),
        ("user.name", "a # \"b\""),
    ] {
        fixture.git(&["config", key, value]);
        let found = fixture.open();
        let top_level = fixture.git(&["rev-parse", "--show-toplevel"]);
        assert_eq!(found.top_level(), PathBuf::from(top_level), "{key}");
        fixture.git(&["config", "--unset", key]);
    }
    fixture.git(&["config", "core.bare", "true"]);
    assert!(Repository::discover(&git(), &repo).is_err());
}

#[test]
fn a_driver_in_an_included_file_is_switched_off() {
    let fixture = Fixture::new();
    let trap = fixture.trap();
    let more = format!("[filter \"evil\"]\n\tclean = {trap}\n");
    write(&fixture.repo().join(".git/more"), &more);
    fixture.git(&["config", "include.path", "more"]);
    write(
        &fixture.repo().join(".git/info/attributes"),
        "* filter=evil\n",
    );
    shell(&fixture.repo(), "touch README src/main.txt");
    let dirt = fixture.open().dirt().expect("dirt");
    assert!(dirt.is_clean(), "{dirt:?}");
    fixture.assert_not_sprung();
    shell(&fixture.repo(), "echo x > README; git add README");
    fixture.assert_sprung();
}

#[test]
fn a_branch_of_a_layer_is_made_and_moved_without_a_git_command() {
    let fixture = Fixture::new();
    let (git, path) = counting(&fixture);
    let repository = Repository::discover(&git, &fixture.repo()).expect("discover");
    let layer = open(&fixture);
    let plan = plan(&fixture, "feat/layer");
    let workspace = repository.claim_layer(&layer, &plan).expect("claim");
    // Doing it again is fine.
    let again = repository.claim_layer(&layer, &plan).expect("claim");
    assert_eq!(again, workspace);
    assert_eq!(reported(&path), Vec::<String>::new());
    drop(layer);
    let made = LayerFixture::on(fixture);
    made.inside("echo changed > README");
    let candidate = made.commit().candidate;
    repository
        .publish(&made.workspace, &candidate.commit)
        .expect("publish");
    assert_eq!(reported(&path), Vec::<String>::new());
    let fixture = &made.fixture;
    assert_eq!(
        fixture.git(&["rev-parse", "feat/layer"]),
        candidate.commit.as_str()
    );
    let refs = fixture.git(&["for-each-ref", "--format=%(refname)"]);
    let expected = "refs/heads/feat/layer\nrefs/heads/main\nrefs/kapi/002-layer/base\nrefs/kapi/002-layer/turn-1";
    assert_eq!(refs, expected);
    assert_eq!(fixture.git(&["fsck", "--no-dangling"]), "");
    assert_eq!(shell(&fixture.repo(), "find .git -name '*.lock'"), "");
}

/// Claims a branch for a goal and returns the files of its two refs.
fn claimed(fixture: &Fixture, goal: &str) -> [PathBuf; 2] {
    let branch = format!("feat/{goal}");
    let plan = WorkspacePlan {
        goal: RefPart::parse(goal).expect("goal"),
        base: fixture.base(),
        content: fixture.base(),
        ..plan(fixture, &branch)
    };
    let layer = open(fixture);
    fixture.open().claim_layer(&layer, &plan).expect("claim");
    let refs = fixture.repo().join(".git/refs");
    [
        refs.join("kapi").join(goal).join("base"),
        refs.join("heads").join(branch),
    ]
}

fn seed(fixture: &Fixture) -> PathBuf {
    let name = format!("kapi-base-{}", fixture.base());
    fixture.repo().join(".git/objects/info").join(name)
}

fn file_number(path: &Path) -> u64 {
    fs::symlink_metadata(path).expect("metadata").ino()
}

#[test]
fn branches_on_one_commit_are_names_of_one_file_that_nobody_can_write() {
    let fixture = Fixture::new();
    let first = claimed(&fixture, "010-first");
    let second = claimed(&fixture, "011-second");
    let seed = seed(&fixture);
    for path in first.iter().chain(&second) {
        assert_eq!(file_number(path), file_number(&seed), "{}", path.display());
    }
    let mode = fs::metadata(&seed).expect("metadata").mode();
    assert_eq!(mode & 0o222, 0, "{mode:o}");
    // Git replaces a ref and never writes into one: the others stay.
    let base = fixture.base();
    write(&fixture.repo().join("README"), "next\n");
    fixture.commit("next");
    fixture.git(&["update-ref", "refs/heads/feat/010-first", "HEAD"]);
    for name in ["refs/kapi/010-first/base", "feat/011-second"] {
        assert_eq!(fixture.git(&["rev-parse", name]), base.as_str(), "{name}");
    }
    // Another commit has another file, and the names of the first stay what they were.
    let third = claimed(&fixture, "012-third");
    assert_ne!(file_number(&third[1]), file_number(&second[1]));
    let left = shell(&fixture.repo(), "cd .git/objects/info; ls -A | grep kapi");
    assert_eq!(left, format!("kapi-base-{}", fixture.base()));
    assert_eq!(
        fixture.git(&["rev-parse", "feat/011-second", "feat/012-third"]),
        format!("{base}\n{}", fixture.base())
    );
    assert_eq!(fixture.git(&["fsck", "--no-dangling"]), "");
    assert_eq!(shell(&fixture.repo(), "find .git -name '*.lock'"), "");
}

#[test]
fn whatever_stands_where_the_file_of_a_commit_should_be_is_replaced() {
    let seeds: [fn(&Path); 4] = [
        |path| write(path, ""),
        |path| write(path, &format!("{}\n", "1".repeat(40))),
        |path| symlink("/dev/null", path).expect("link"),
        |path| fs::create_dir_all(path.join("x")).expect("create"),
    ];
    for make in seeds {
        let fixture = Fixture::new();
        make(&seed(&fixture));
        let refs = claimed(&fixture, "010-first");
        assert_eq!(
            fixture.git(&["rev-parse", "feat/010-first", "refs/kapi/010-first/base"]),
            format!("{base}\n{base}", base = fixture.base())
        );
        let n_names = fs::metadata(&refs[0]).expect("metadata").nlink();
        assert_eq!(n_names, 3);
        assert_eq!(shell(&fixture.repo(), "find .git -name '*.lock'"), "");
    }
}

#[test]
fn what_is_in_the_way_of_a_branch_is_named() {
    for (there, branch) in [
        ("feat", "feat/layer"),
        ("feat/layer/x", "feat/layer"),
        ("a/b", "a/b/c/d"),
    ] {
        for pack in [false, true] {
            let fixture = Fixture::new();
            fixture.git(&["branch", there]);
            if pack {
                fixture.git(&["pack-refs", "--all"]);
            }
            let error = claim(&fixture, branch).expect_err("in the way");
            let is_named =
                matches!(&error, WorkspaceError::BranchBlocked { by, .. } if by == there);
            assert!(is_named, "{there} {pack}: {error}");
            let refs = fixture.git(&["for-each-ref", "--format=%(refname:short)"]);
            assert_eq!(refs.lines().count(), 2, "{refs}");
        }
    }
    let fixture = Fixture::new();
    fixture.git(&["branch", "feat/layer"]);
    fixture.git(&["pack-refs", "--all"]);
    let error = claim(&fixture, "feat/layer").expect_err("exists");
    assert!(
        matches!(error, WorkspaceError::BranchExists { .. }),
        "{error}"
    );
}

#[test]
fn directories_that_git_left_behind_are_in_nobodys_way() {
    let fixture = Fixture::new();
    fs::create_dir_all(fixture.repo().join(".git/refs/heads/feat/layer/x")).expect("create");
    claim(&fixture, "feat/layer").expect("claim");
    assert_eq!(
        fixture.git(&["rev-parse", "feat/layer"]),
        fixture.base().as_str()
    );
}

#[test]
fn a_lock_that_a_killed_process_left_on_a_ref_of_ours_goes() {
    let fixture = Fixture::new();
    write(&fixture.repo().join(".git/refs/heads/feat/layer.lock"), "");
    claim(&fixture, "feat/layer").expect("claim");
    assert_eq!(
        fixture.git(&["rev-parse", "feat/layer"]),
        fixture.base().as_str()
    );
    assert_eq!(shell(&fixture.repo(), "find .git -name '*.lock'"), "");
}

#[test]
fn a_log_of_a_branch_is_kept_by_git() {
    let made = LayerFixture::new();
    let log = made.fixture.repo().join(".git/logs/refs/heads/feat/layer");
    write(&log, "");
    made.inside("echo changed > README");
    let candidate = made.commit().candidate;
    made.repository
        .publish(&made.workspace, &candidate.commit)
        .expect("publish");
    let text = fs::read_to_string(&log).expect("log");
    assert!(text.contains(candidate.commit.as_str()), "{text}");
}

#[test]
fn refs_that_are_no_files_are_left_to_git() {
    let fixture = Fixture::empty();
    fixture.git(&["init", "-q", "-b", "main", "--ref-format=reftable"]);
    write(&fixture.repo().join("README"), "hello\n");
    fixture.commit("first");
    let made = LayerFixture::on(fixture);
    made.inside("echo changed > README");
    let candidate = made.commit_as(&turn(1)).expect("candidate").candidate;
    made.repository
        .publish(&made.workspace, &candidate.commit)
        .expect("publish");
    assert_eq!(
        made.fixture.git(&["rev-parse", "feat/layer"]),
        candidate.commit.as_str()
    );
    assert!(made.fixture.open().dirt().expect("dirt").is_clean());
}
