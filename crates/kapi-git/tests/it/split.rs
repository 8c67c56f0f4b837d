//! Branches with no file in common that together are the branch they come from.

use std::fs;

use kapi_git::candidate::CandidatePlan;
use kapi_git::id::{CommitId, RefPart};
use kapi_git::repository::Repository;
use kapi_git::split::{PartBranch, PartPlan, SplitError, SplitPlan};

use crate::fixture::{AT, Fixture, author, write};

struct History {
    fixture: Fixture,
    base: CommitId,
    commits: Vec<CommitId>,
}

impl History {
    /// A change, a rename, a removal and a second look at the change.
    fn new() -> Self {
        let fixture = Fixture::new();
        write(&fixture.repo().join("old.txt"), "to be renamed\n");
        write(&fixture.repo().join("gone.txt"), "to be removed\n");
        fixture.commit("files");
        let base = fixture.base();
        let mut commits = Vec::new();
        let steps: [fn(&std::path::Path); 4] = [
            |at| write(&at.join("src/main.txt"), "two\n"),
            |at| fs::rename(at.join("old.txt"), at.join("new.txt")).expect("as prepared"),
            |at| fs::remove_file(at.join("gone.txt")).expect("as prepared"),
            |at| write(&at.join("src/main.txt"), "three\n"),
        ];
        for (n, step) in steps.into_iter().enumerate() {
            step(&fixture.repo());
            fixture.commit(&format!("step {n}"));
            commits.push(fixture.base());
        }
        Self {
            fixture,
            base,
            commits,
        }
    }

    fn part(&self, branch: &str, commits: &[usize]) -> PartPlan {
        PartPlan {
            branch: branch.to_owned(),
            commit: CandidatePlan {
                name: RefPart::parse(&branch.replace('/', "-")).expect("a name"),
                message: format!("{branch}\n"),
                author: author(),
                at_unix_seconds: AT,
            },
            commits: commits.iter().map(|&n| self.commits[n].clone()).collect(),
        }
    }

    fn split(
        &self,
        repository: &Repository,
        parts: &[PartPlan],
    ) -> Result<Vec<PartBranch>, SplitError> {
        repository.split(&SplitPlan {
            owner: &RefPart::parse("003-sort").expect("a name"),
            base: &self.base,
            head: &self.commits[3],
            parts,
            scratch: &self.fixture.root().join("split"),
        })
    }
}

#[test]
fn parts_with_renames_and_removals_are_together_the_whole() {
    let history = History::new();
    let repository = history.fixture.open();
    let parts = [
        history.part("perf/x-part-1", &[0, 3]),
        history.part("perf/x-part-2", &[1]),
        history.part("perf/x-part-3", &[2]),
    ];
    let made = history.split(&repository, &parts).expect("branches");
    let paths = |n: usize| -> Vec<String> {
        let changes = repository
            .changes(&history.base, &made[n].commit)
            .expect("as prepared");
        changes
            .iter()
            .map(|it| it.path.display().to_string())
            .collect()
    };
    assert_eq!(paths(0), ["src/main.txt"]);
    assert_eq!(paths(1), ["new.txt", "old.txt"]);
    assert_eq!(paths(2), ["gone.txt"]);
    let shown = history.fixture.git(&["show", "perf/x-part-1:src/main.txt"]);
    assert_eq!(shown, "three");
    assert_eq!(
        history.split(&repository, &parts).expect("branches"),
        made,
        "it may be repeated"
    );
    // Merged, they are the head, and git finds nothing to ask about.
    history
        .fixture
        .git(&["checkout", "-q", "--detach", history.base.as_str()]);
    for part in &made {
        history
            .fixture
            .git(&["merge", "-q", "--no-edit", &part.branch]);
    }
    let merged = history.fixture.git(&["rev-parse", "HEAD^{tree}"]);
    assert_eq!(
        merged,
        repository
            .tree_of(&history.commits[3])
            .expect("its tree")
            .as_str()
    );
}

#[test]
fn parts_that_are_not_the_whole_or_share_a_file_make_no_branch() {
    let history = History::new();
    let repository = history.fixture.open();
    let lacking = [history.part("perf/x-part-1", &[0, 3])];
    let error = history.split(&repository, &lacking).unwrap_err();
    assert!(matches!(error, SplitError::Uncovered { .. }), "{error}");
    let shared = [
        history.part("perf/x-part-1", &[0]),
        history.part("perf/x-part-2", &[1, 2, 3]),
    ];
    let error = history.split(&repository, &shared).unwrap_err();
    assert!(matches!(error, SplitError::Shared { .. }), "{error}");
    let branches = history.fixture.git(&["branch", "--list", "perf/*"]);
    assert_eq!(branches, "");
}

#[test]
fn a_branch_of_somebody_else_is_not_touched() {
    let history = History::new();
    let repository = history.fixture.open();
    history
        .fixture
        .git(&["branch", "perf/x-part-1", history.base.as_str()]);
    let parts = [history.part("perf/x-part-1", &[0, 1, 2, 3])];
    let error = history.split(&repository, &parts).unwrap_err();
    assert!(matches!(error, SplitError::BranchExists { .. }), "{error}");
    let at = history.fixture.git(&["rev-parse", "perf/x-part-1"]);
    assert_eq!(at, history.base.as_str());
}
