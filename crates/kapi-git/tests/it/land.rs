//! Landing proved commits on a branch of ours: as they are, merged, or not at all.

use std::collections::BTreeSet;
use std::path::PathBuf;

use kapi_git::candidate::CandidatePlan;
use kapi_git::id::{CommitId, RefPart};
use kapi_git::land::bring::CheckoutOutcome;
use kapi_git::land::{Carries, LandError, LandOutcome, LandPlan};
use kapi_git::repository::Repository;
use kapi_git::workspace::{GitWorkspace, WorkspacePlan};

use crate::fixture::{AT, Fixture, author, everything, git_in, read, shell, turn, write};

/// The branch of the workflow.
pub(crate) const WORKFLOW: &str = "feat/ralph-demo";

/// A branch that tasks land on.
pub(crate) struct LandingRig {
    pub(crate) fixture: Fixture,
    repository: Repository,
    branch: GitWorkspace,
}

impl LandingRig {
    pub(crate) fn new() -> Self {
        Self::on(Fixture::new())
    }

    fn on(fixture: Fixture) -> Self {
        let repository = fixture.open();
        let plan = WorkspacePlan {
            goal: owner(),
            branch: WORKFLOW.to_owned(),
            path: fixture.root().join("kapi home/worktrees/005-demo"),
            ..fixture.plan()
        };
        let branch = repository.create_workspace(&plan).expect("workspace");
        Self {
            fixture,
            repository,
            branch,
        }
    }

    /// Returns a proved commit of a task that began at `base`.
    pub(crate) fn task(&self, number: u32, base: &CommitId, script: &str) -> CommitId {
        let name = format!("{number:03}-task");
        let plan = WorkspacePlan {
            goal: RefPart::parse(&name).expect("goal"),
            branch: format!("feat/goal-{name}"),
            base: base.clone(),
            content: base.clone(),
            path: self.fixture.root().join("kapi home/worktrees").join(&name),
        };
        let workspace = self.repository.create_workspace(&plan).expect("workspace");
        shell(&workspace.path, script);
        let made = self.repository.commit_candidate(&workspace, &turn(1));
        made.expect("candidate").commit
    }

    pub(crate) fn head(&self) -> CommitId {
        let text = self.fixture.git(&["rev-parse", WORKFLOW]);
        CommitId::parse(&text).expect("commit id")
    }

    fn land(
        &self,
        commit: &CommitId,
        at: (&CommitId, &CommitId),
    ) -> Result<LandOutcome, LandError> {
        self.land_as(Carries::One, commit, at)
    }

    pub(crate) fn land_as(
        &self,
        carries: Carries,
        commit: &CommitId,
        (base, head): (&CommitId, &CommitId),
    ) -> Result<LandOutcome, LandError> {
        self.repository.land(&LandPlan {
            owner: &owner(),
            branch: WORKFLOW,
            head,
            base,
            commit,
            carries,
            message: "T-002: second\n",
            author: &author(),
            at_unix_seconds: AT,
            scratch: &self.fixture.root().join("kapi home/land"),
        })
    }

    /// Lands and returns the branch's commit then, and whether it was merged.
    fn landed(&self, commit: &CommitId, at: (&CommitId, &CommitId)) -> (CommitId, bool) {
        match self.land(commit, at).expect("landing") {
            LandOutcome::Landed {
                head,
                tree,
                is_merged,
            } => {
                assert_eq!(head, self.head());
                let tree_there = self.fixture.git(&["rev-parse", "HEAD^{tree}"]);
                assert_ne!(tree.as_str(), tree_there, "the landing changed nothing");
                (head, is_merged)
            }
            LandOutcome::Conflicted { paths } => panic!("conflicts at {paths:?}"),
        }
    }

    fn bring(&self, from: &CommitId, to: &CommitId) -> CheckoutOutcome {
        let kept = CandidatePlan {
            name: RefPart::parse("rescue-land").expect("name"),
            ..turn(1)
        };
        self.repository
            .bring_workspace(&self.branch, from, to, &kept)
            .expect("bring")
    }
}

fn owner() -> RefPart {
    RefPart::parse("005-demo").expect("owner")
}

#[test]
fn the_first_landing_moves_the_branch_to_the_commit_itself() {
    let rig = LandingRig::new();
    let base = rig.fixture.base();
    let commit = rig.task(1, &base, "echo two > src/main.txt");
    for _ in 0..2 {
        assert_eq!(rig.landed(&commit, (&base, &base)), (commit.clone(), false));
    }
    assert_eq!(rig.bring(&base, &commit), CheckoutOutcome::InStep);
    assert_eq!(read(&rig.branch.path.join("src/main.txt")), "two\n");
    assert_eq!(git_in(&rig.branch.path, &["status", "--porcelain"]), "");
}

#[test]
fn the_second_is_merged_into_one_commit_and_always_the_same_one() {
    let rig = LandingRig::new();
    let base = rig.fixture.base();
    let first = rig.task(1, &base, "echo two > src/main.txt");
    let second = rig.task(2, &base, "echo more >> README; echo n > new");
    rig.landed(&first, (&base, &base));
    // Before the branch moves, the merged commit is already what it will be.
    let before = everything(&rig.fixture.repo().join(".git/refs"));
    let (head, is_merged) = rig.landed(&second, (&base, &first));
    assert!(is_merged);
    assert_ne!(before, everything(&rig.fixture.repo().join(".git/refs")));
    assert_eq!(rig.landed(&second, (&base, &first)), (head.clone(), true));
    let show = |what: &str| {
        let args = ["show", "-s", &format!("--format={what}"), head.as_str()];
        rig.fixture.git(&args)
    };
    assert_eq!(show("%P"), first.as_str());
    assert_eq!(show("%an <%ae> %at %cn %ct"), {
        let author = author();
        format!(
            "{} <{}> {AT} {} {AT}",
            author.name, author.email, author.name
        )
    });
    assert_eq!(show("%B").trim(), "T-002: second");
    assert_eq!(rig.bring(&first, &head), CheckoutOutcome::LeftDirty);
    assert_eq!(rig.bring(&base, &head), CheckoutOutcome::InStep);
    assert_eq!(read(&rig.branch.path.join("src/main.txt")), "two\n");
    assert_eq!(read(&rig.branch.path.join("README")), "hello\nmore\n");
}

#[test]
fn work_is_held_by_its_history_or_where_a_merge_would_change_no_file() {
    let rig = LandingRig::new();
    let git = |args: &[&str]| rig.fixture.git(args);
    let base = rig.fixture.base();
    let first = rig.task(1, &base, "echo two > src/main.txt");
    let second = rig.task(2, &base, "echo n > new");
    rig.landed(&first, (&base, &base));
    let (work, _) = rig.landed(&second, (&base, &first));
    let scratch = rig.fixture.root().join("kapi home/tried");
    let holds = || {
        let head = rig.repository.resolve_commit("HEAD").expect("head");
        let asked = BTreeSet::from([base.clone(), work.clone()]);
        let held = rig.repository.held_by(&head, &asked, &scratch);
        let held = held.expect("an answer");
        assert!(held.contains(&base), "it began there");
        held.contains(&work)
    };
    assert!(!holds(), "nothing was merged");
    // The last commit alone is not all of the work.
    git(&["cherry-pick", work.as_str()]);
    assert!(!holds(), "half of it is missing");
    git(&["reset", "--hard", "--quiet", base.as_str()]);
    git(&["merge", "--squash", WORKFLOW]);
    git(&["commit", "--quiet", "-m", "all of it in one"]);
    assert!(holds(), "as after a squash");
    git(&["reset", "--hard", "--quiet", base.as_str()]);
    git(&["merge", "--quiet", "--no-ff", "-m", "merged", WORKFLOW]);
    assert!(holds(), "as after a merge");
}

#[test]
fn what_the_branch_has_already_lands_as_it_is() {
    let rig = LandingRig::new();
    let base = rig.fixture.base();
    let first = rig.task(1, &base, "echo two > src/main.txt");
    let second = rig.task(2, &base, "echo n > new");
    rig.landed(&first, (&base, &base));
    let (head, _) = rig.landed(&second, (&base, &first));
    let again = rig.land(&first, (&base, &head)).expect("landing");
    assert!(
        matches!(&again, LandOutcome::Landed { head: found, is_merged: false, .. } if *found == head),
        "{again:?}"
    );
}

#[test]
fn a_conflict_names_its_paths_and_changes_nothing() {
    let rig = LandingRig::new();
    let base = rig.fixture.base();
    let first = rig.task(1, &base, "echo two > src/main.txt; echo x > \"o dd\"");
    let second = rig.task(2, &base, "echo three > src/main.txt; echo y > \"o dd\"");
    rig.landed(&first, (&base, &base));
    let refs = rig.fixture.git(&["for-each-ref"]);
    let conflict = rig.land(&second, (&base, &first)).expect("conflict");
    let paths = ["o dd", "src/main.txt"].map(PathBuf::from).to_vec();
    assert_eq!(conflict, LandOutcome::Conflicted { paths });
    assert_eq!(rig.fixture.git(&["for-each-ref"]), refs);
    assert_eq!(rig.head(), first);
}

#[test]
fn a_branch_that_somebody_moved_or_made_is_left_alone() {
    let rig = LandingRig::new();
    let base = rig.fixture.base();
    let commit = rig.task(1, &base, "echo two > src/main.txt");
    let other = rig
        .fixture
        .git(&["commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "mine"]);
    let name = format!("refs/heads/{WORKFLOW}");
    rig.fixture.git(&["update-ref", &name, &other]);
    let error = rig.land(&commit, (&base, &base)).expect_err("moved");
    assert!(
        matches!(&error, LandError::BranchMoved { actual: Some(at), .. } if at.as_str() == other),
        "{error}"
    );
    assert!(!error.may_pass());
    assert_eq!(rig.head().as_str(), other);
    rig.fixture.git(&["update-ref", "-d", &name]);
    let error = rig.land(&commit, (&base, &base)).expect_err("gone");
    assert!(
        matches!(error, LandError::BranchMoved { actual: None, .. }),
        "{error}"
    );
    let stranger = RefPart::parse("009-none").expect("owner");
    let error = rig
        .repository
        .land(&LandPlan {
            owner: &stranger,
            branch: "main",
            head: &base,
            base: &base,
            commit: &commit,
            carries: Carries::One,
            message: "m",
            author: &author(),
            at_unix_seconds: AT,
            scratch: &rig.fixture.root().join("kapi home/land"),
        })
        .expect_err("not ours");
    assert!(matches!(error, LandError::NotOurs { .. }), "{error}");
    assert_eq!(rig.fixture.base(), base);
}

#[test]
fn only_one_commit_on_what_the_branch_holds_can_land() {
    let rig = LandingRig::new();
    let base = rig.fixture.base();
    let first = rig.task(1, &base, "echo two > src/main.txt");
    let chain = rig.task(2, &first, "echo three > src/main.txt");
    let error = rig.land(&chain, (&base, &base)).expect_err("two commits");
    assert!(matches!(error, LandError::NotOneCommit { .. }), "{error}");
    let text = rig
        .fixture
        .git(&["commit-tree", "HEAD^{tree}", "-m", "root"]);
    let root = CommitId::parse(&text).expect("id");
    let elsewhere = rig.task(3, &root, "echo four > src/main.txt");
    rig.landed(&first, (&base, &base));
    let error = rig
        .land(&elsewhere, (&root, &first))
        .expect_err("another history");
    assert!(matches!(error, LandError::OtherHistory { .. }), "{error}");
    assert_eq!(rig.head(), first);
}

#[test]
fn no_driver_attribute_or_hook_has_a_say_in_a_merge() {
    let fixture = Fixture::new();
    let trap = fixture.trap();
    fixture.git(&["config", "merge.trap.driver", &trap]);
    fixture.git(&["config", "merge.default", "trap"]);
    fixture.git(&["config", "filter.trap.smudge", &trap]);
    fixture.git(&["config", "filter.trap.clean", &trap]);
    write(&fixture.repo().join("lines"), "1\n2\n3\n4\n5\n6\n7\n");
    write(
        &fixture.repo().join(".git/info/attributes"),
        "* merge=trap filter=trap\n",
    );
    shell(
        &fixture.repo(),
        "printf '* merge=trap filter=trap\\n' > .gitattributes",
    );
    fixture.git(&["-c", "filter.trap.clean=cat", "add", "-A"]);
    fixture.git(&["commit", "-q", "-m", "armed"]);
    drop(std::fs::remove_file(fixture.root().join("sprung")));
    write(
        &fixture.repo().join(".git/hooks/reference-transaction"),
        &format!("#!/bin/sh\n{trap}\n"),
    );
    shell(&fixture.repo(), "chmod +x .git/hooks/reference-transaction");
    let rig = LandingRig::on(fixture);
    let base = rig.fixture.base();
    let first = rig.task(1, &base, "sed -i s/1/one/ lines");
    let second = rig.task(2, &base, "sed -i s/7/seven/ lines");
    let (head, _) = rig.landed(&first, (&base, &base));
    let (head, is_merged) = rig.landed(&second, (&base, &head));
    assert!(is_merged);
    assert_eq!(rig.bring(&base, &head), CheckoutOutcome::InStep);
    assert_eq!(
        read(&rig.branch.path.join("lines")),
        "one\n2\n3\n4\n5\n6\nseven\n"
    );
    rig.fixture.assert_not_sprung();
    // The same merge by git itself springs it.
    let spring = format!(
        "git checkout -q {first} && git -c user.name=t -c user.email=t@localhost merge -q {second} \
         -m x || true"
    );
    shell(&rig.fixture.repo(), &spring);
    rig.fixture.assert_sprung();
}

#[test]
fn a_worktree_with_a_persons_changes_is_left_as_it_is() {
    let rig = LandingRig::new();
    let base = rig.fixture.base();
    let commit = rig.task(1, &base, "echo two > src/main.txt");
    write(&rig.branch.path.join("mine"), "not in any commit\n");
    let before = everything(&rig.branch.path);
    rig.landed(&commit, (&base, &base));
    assert_eq!(rig.bring(&base, &commit), CheckoutOutcome::LeftDirty);
    assert_eq!(everything(&rig.branch.path), before);
    std::fs::remove_dir_all(&rig.branch.path).expect("remove");
    assert_eq!(rig.bring(&base, &commit), CheckoutOutcome::LeftMissing);
}

#[test]
fn files_that_were_half_written_when_the_process_died_are_finished() {
    let rig = LandingRig::new();
    let base = rig.fixture.base();
    let commit = rig.task(1, &base, "echo two > src/main.txt; echo n > new");
    rig.landed(&commit, (&base, &base));
    // As a killed call leaves it: its mark, and some of the files.
    let kept_by_us = rig.fixture.repo().join(".git/worktrees/005-demo/kapi");
    assert!(kept_by_us.join("filled").exists());
    write(&kept_by_us.join("bringing"), &format!("{base} {commit}\n"));
    write(&rig.branch.path.join("new"), "n\n");
    assert_eq!(rig.bring(&base, &commit), CheckoutOutcome::InStep);
    assert_eq!(read(&rig.branch.path.join("src/main.txt")), "two\n");
    assert_eq!(git_in(&rig.branch.path, &["status", "--porcelain"]), "");
    // What stood there is kept all the same.
    let kept = rig
        .fixture
        .git(&["rev-parse", "refs/kapi/005-demo/rescue-land"]);
    assert_eq!(rig.fixture.git(&["show", &format!("{kept}:new")]), "n");
    assert_eq!(rig.bring(&base, &commit), CheckoutOutcome::InStep);
}

#[test]
fn a_lock_that_a_killed_git_left_on_the_branch_does_not_stop_it() {
    let rig = LandingRig::new();
    let base = rig.fixture.base();
    let commit = rig.task(1, &base, "echo two > src/main.txt");
    let lock = format!("refs/heads/{WORKFLOW}.lock");
    write(&rig.fixture.repo().join(".git").join(lock), "");
    assert_eq!(rig.landed(&commit, (&base, &base)).0, commit);
}
