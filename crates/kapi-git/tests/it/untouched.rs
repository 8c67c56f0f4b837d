//! Nothing of the person's changes: the whole repository, byte by byte, over a full cycle.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use kapi_git::checkout::CheckoutPlan;
use kapi_git::private_view::PrivateViewPlan;
use kapi_git::repository::Repository;

use crate::fixture::{
    Fixture, author, changed, commit, everything, git, git_in, read, shell, turn, write,
};

/// Returns all files but new objects, our worktree, our branch and our refs.
fn theirs(fixture: &Fixture) -> BTreeMap<PathBuf, Vec<u8>> {
    let ours = [
        ".git/objects",
        ".git/worktrees/001-demo",
        ".git/refs/kapi",
        ".git/refs/heads/feat",
    ];
    let mut found = everything(&fixture.repo());
    found.retain(|path, _| !ours.iter().any(|ours| path.starts_with(ours)));
    // With the first worktree git makes the directory for all of them.
    found.remove(&PathBuf::from(".git/worktrees"));
    found
}

fn cycle(fixture: &Fixture) {
    let (repository, workspace) = fixture.workspace();
    let base = workspace.base.clone();
    repository.dirt().expect("dirt");
    let view = fixture.root().join("view");
    let store = fixture.store(&repository, &base);
    let plan = PrivateViewPlan {
        to: &view,
        inside: &view,
        objects_inside: &store.object_dirs,
        shown: &workspace.shown(),
        commit: &base,
        author: &author(),
    };
    repository.private_view(&plan, &store).expect("view");
    write(&workspace.path.join("new"), "n");
    let tree = repository.tree_of(&base).expect("tree");
    let mut rescue = turn(1);
    rescue.name = kapi_git::id::RefPart::parse("rescue-1").expect("name");
    repository
        .rescue(&workspace, &rescue, &tree)
        .expect("rescue")
        .expect("work");
    repository
        .reset_workspace(&workspace, &base)
        .expect("reset");
    write(&workspace.path.join("other"), "n");
    let candidate = commit(&repository, &workspace);
    assert_eq!(changed(&candidate), ["other Added"]);
    let to = fixture.root().join("clean");
    let protect = ["tests/**".to_owned()];
    let plan = CheckoutPlan {
        commit: &candidate.commit,
        base: &base,
        protect: &protect,
        to: &to,
    };
    repository.checkout(&plan).expect("checkout");
    repository
        .diff(&base, &candidate.commit, 1 << 20)
        .expect("diff");
    repository
        .publish(&workspace, &candidate.commit)
        .expect("publish");
}

#[test]
fn a_full_cycle_leaves_the_persons_repository_byte_for_byte() {
    let fixture = Fixture::new();
    shell(
        &fixture.repo(),
        "echo stash > README; git stash -q; echo staged > staged; git add staged
         echo dirty > src/main.txt; echo untracked > untracked; git tag t; git branch other
         git config core.autocrlf input; git config branch.autoSetupMerge always
         git config core.untrackedCache true; git config core.splitIndex true; git update-index -q --refresh || true
         git pack-refs --all",
    );
    let before = theirs(&fixture);
    cycle(&fixture);
    let after = theirs(&fixture);
    for (path, content) in &after {
        assert_eq!(before.get(path), Some(content), "{}", path.display());
    }
    assert_eq!(before.len(), after.len());
    assert_eq!(fixture.git(&["fsck", "--no-dangling"]), "");
}

#[test]
fn a_sparse_checkout_stays_sparse_and_the_workspace_is_whole() {
    let fixture = Fixture::new();
    fixture.git(&["sparse-checkout", "set", "--cone", "src"]);
    assert!(!fixture.repo().join("tests").exists());
    let before = theirs(&fixture);
    cycle(&fixture);
    assert_eq!(theirs(&fixture), before);
    assert!(fixture.plan().path.join("tests/check.sh").exists());
    let turn = "refs/kapi/001-demo/turn-1";
    let names = fixture.git(&["diff-tree", "-r", "--name-only", "main", turn]);
    assert_eq!(names, "other");
}

#[test]
fn shallow_borrowed_and_sha256_repositories_work() {
    let fixture = Fixture::with_format("sha256");
    write(&fixture.repo().join("second"), "2");
    fixture.commit("second");
    cycle(&fixture);
    let shallow = fixture.root().join("shallow");
    let url = format!("file://{}", fixture.repo().display());
    git_in(
        fixture.root(),
        &[
            "clone",
            "-q",
            "--depth=1",
            &url,
            &shallow.display().to_string(),
        ],
    );
    let borrowed = fixture.root().join("borrowed");
    let from = fixture.repo().display().to_string();
    git_in(
        fixture.root(),
        &[
            "clone",
            "-q",
            "--shared",
            &from,
            &borrowed.display().to_string(),
        ],
    );
    for (dir, n_object_dirs) in [(&shallow, 1), (&borrowed, 2)] {
        let repository = Repository::discover(&git(), dir).expect("discover");
        assert_eq!(repository.object_dirs().len(), n_object_dirs);
        check_elsewhere(&fixture, &repository, dir);
    }
}

#[test]
fn a_person_in_a_submodule_can_have_a_goal_there() {
    let fixture = Fixture::new();
    let outer = fixture.root().join("outer");
    git_in(fixture.root(), &["init", "-q", "outer"]);
    let from = fixture.repo().display().to_string();
    let allow = "protocol.file.allow=always";
    git_in(
        &outer,
        &["-c", allow, "submodule", "--quiet", "add", &from, "inner"],
    );
    let inner = outer.join("inner");
    let repository = Repository::discover(&git(), &inner).expect("discover");
    assert_eq!(repository.top_level(), inner.canonicalize().expect("inner"));
    check_elsewhere(&fixture, &repository, &inner);
    assert_eq!(git_in(&inner, &["status", "--porcelain"]), "");
}

/// Takes a goal from base to branch in a repository that is not the fixture's own.
#[track_caller]
fn check_elsewhere(fixture: &Fixture, repository: &Repository, dir: &Path) {
    let mut plan = fixture.plan();
    plan.path = fixture
        .root()
        .join("elsewhere")
        .join(dir.file_name().expect("name"));
    let workspace = repository.create_workspace(&plan).expect("workspace");
    write(&workspace.path.join("third"), "3");
    let candidate = commit(repository, &workspace);
    assert_eq!(changed(&candidate), ["third Added"]);
    let view = plan.path.with_extension("view");
    let store = fixture.store(repository, &workspace.base);
    let view_plan = PrivateViewPlan {
        to: &view,
        inside: &view,
        objects_inside: &store.object_dirs,
        shown: &workspace.shown(),
        commit: &workspace.base,
        author: &author(),
    };
    repository.private_view(&view_plan, &store).expect("view");
    let git_dir = view.display().to_string();
    let log = git_in(
        &workspace.path,
        &["--git-dir", &git_dir, "log", "--format=%H"],
    );
    assert!(log.starts_with(workspace.base.as_str()), "{log}");
    repository
        .publish(&workspace, &candidate.commit)
        .expect("publish");
    assert_eq!(git_in(&workspace.path, &["status", "--porcelain"]), "");
    let to = plan.path.with_extension("clean");
    let base = &workspace.base;
    let checkout = CheckoutPlan {
        commit: &candidate.commit,
        base,
        protect: &[],
        to: &to,
    };
    repository.checkout(&checkout).expect("checkout");
    assert_eq!(read(&to.join("third")), "3");
}

#[test]
fn a_person_in_a_linked_worktree_keeps_it_as_it_is() {
    let fixture = Fixture::new();
    fixture.git(&["worktree", "add", "-q", "-b", "side", "../side"]);
    let side = fixture.root().join("side");
    write(&side.join("README"), "dirty\n");
    let before = everything(&side);
    let admin = everything(&fixture.repo().join(".git/worktrees/side"));
    let head = fs::read(fixture.repo().join(".git/HEAD")).expect("HEAD");
    let repository = Repository::discover(&git(), &side).expect("discover");
    let workspace = repository
        .create_workspace(&fixture.plan())
        .expect("workspace");
    write(&workspace.path.join("new"), "n");
    let candidate = commit(&repository, &workspace);
    repository
        .publish(&workspace, &candidate.commit)
        .expect("publish");
    assert_eq!(git_in(&workspace.path, &["status", "--porcelain"]), "");
    assert_eq!(everything(&side), before);
    assert_eq!(
        everything(&fixture.repo().join(".git/worktrees/side")),
        admin
    );
    assert_eq!(
        fs::read(fixture.repo().join(".git/HEAD")).expect("HEAD"),
        head
    );
}
