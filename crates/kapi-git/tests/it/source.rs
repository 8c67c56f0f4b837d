//! Applying a source without a working tree: the same as git's own, or a conflict with its three
//! contents, and nothing else changed.

use kapi_git::author::Author;
use kapi_git::changed_file::FileMode;
use kapi_git::id::CommitId;
use kapi_git::land::LandError;
use kapi_git::land::merge::{ConflictKind, ConflictPath};
use kapi_git::land::source::{
    AppliedSource, ApplyMethod, SettlePlan, SettledContent, SettledFile, SourceConflict,
    SourceOutcome, SourcePlan,
};
use kapi_git::repository::range::CommitRange;

use crate::fixture::{AT, Fixture, shell};

pub(crate) struct SourceRig {
    pub(crate) fixture: Fixture,
    base: CommitId,
}

impl SourceRig {
    /// Makes a repository whose base has what a command makes.
    pub(crate) fn new(command: &str) -> Self {
        let fixture = Fixture::new();
        shell(&fixture.repo(), command);
        fixture.commit("base");
        let base = fixture.base();
        Self { fixture, base }
    }

    /// Commits what a command does on a commit, and returns the commit.
    pub(crate) fn on(&self, at: &CommitId, command: &str) -> CommitId {
        self.fixture
            .git(&["checkout", "-q", "--detach", at.as_str()]);
        shell(&self.fixture.repo(), command);
        self.fixture.commit(command);
        self.fixture.base()
    }

    pub(crate) fn side(&self, command: &str) -> CommitId {
        self.on(&self.base, command)
    }

    pub(crate) fn author(&self) -> Author {
        let name = "Kapi".to_owned();
        let email = "kapi@example.invalid".to_owned();
        Author { name, email }
    }

    fn apply(
        &self,
        head: &CommitId,
        commit: &CommitId,
        method: ApplyMethod,
    ) -> Result<SourceOutcome, LandError> {
        let source = CommitRange {
            base: self.base.clone(),
            commit: commit.clone(),
        };
        self.with_plan(head, &source, method, |repository, plan| {
            repository.apply_source(plan)
        })
    }

    fn with_plan<T>(
        &self,
        head: &CommitId,
        source: &CommitRange,
        method: ApplyMethod,
        done: impl Fn(&kapi_git::repository::Repository, &SourcePlan<'_>) -> T,
    ) -> T {
        let author = self.author();
        let scratch = self.fixture.root().join("scratch");
        let plan = SourcePlan {
            head,
            source,
            method,
            commits_max: 10,
            message: "apply\n",
            author: &author,
            at_unix_seconds: AT,
            scratch: &scratch,
        };
        done(&self.fixture.open(), &plan)
    }

    #[track_caller]
    fn applied(&self, head: &CommitId, commit: &CommitId, method: ApplyMethod) -> AppliedSource {
        match self.apply(head, commit, method).expect("applying") {
            SourceOutcome::Applied(applied) => applied,
            SourceOutcome::Conflicted(conflict) => panic!("it fits: {conflict:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn conflict(
        &self,
        head: &CommitId,
        commit: &CommitId,
        method: ApplyMethod,
    ) -> SourceConflict {
        match self.apply(head, commit, method).expect("applying") {
            SourceOutcome::Conflicted(conflict) => *conflict,
            SourceOutcome::Applied(applied) => panic!("it does not fit: {applied:?}"),
        }
    }

    fn tree(&self, commit: &CommitId) -> String {
        self.fixture
            .git(&["rev-parse", &format!("{commit}^{{tree}}")])
    }

    fn text(&self, spec: &str) -> String {
        self.fixture.git(&["show", spec])
    }
}

fn state(fixture: &Fixture) -> [String; 4] {
    [
        fixture.git(&["for-each-ref"]),
        fixture.git(&["status", "--porcelain", "--ignored"]),
        fixture.git(&["stash", "list"]),
        fixture.git(&["rev-parse", "HEAD"]),
    ]
}

#[test]
fn each_method_comes_to_what_git_makes_and_changes_nothing_else() {
    let rig = SourceRig::new("seq 1 20 > n");
    let first = rig.side("sed -i 's/^5$/five/' n");
    let last = rig.on(&first, "sed -i 's/^6$/six/' n; echo new > new");
    let head = rig.side("sed -i 's/^15$/fifteen/' n");
    rig.fixture.git(&["checkout", "-q", "main"]);
    let before = state(&rig.fixture);
    let merged = rig.applied(&head, &last, ApplyMethod::Merge);
    let rebased = rig.applied(&head, &last, ApplyMethod::Rebase);
    let picked = rig.applied(&head, &last, ApplyMethod::CherryPick);
    assert_eq!(state(&rig.fixture), before);
    assert_eq!(
        (merged.made.len(), rebased.made.len(), picked.made.len()),
        (1, 2, 2)
    );
    rig.fixture
        .git(&["checkout", "-q", "--detach", head.as_str()]);
    rig.fixture
        .git(&["cherry-pick", first.as_str(), last.as_str()]);
    let by_git = rig.fixture.base();
    for applied in [&merged, &rebased, &picked] {
        assert_eq!(rig.tree(&applied.head), rig.tree(&by_git));
        assert_eq!(rig.tree(&applied.head), applied.tree.as_str());
    }
    let log = |commit: &CommitId| {
        let format = "--format=%an <%ae> %ad %cn: %B";
        rig.fixture.git(&["log", "-1", format, commit.as_str()])
    };
    let parents = |commit: &CommitId| {
        let spec = ["log", "-1", "--format=%P", commit.as_str()];
        rig.fixture.git(&spec)
    };
    assert_eq!(parents(&merged.head), format!("{head} {last}"));
    assert_eq!(parents(&rebased.head), rebased.made[0].as_str());
    assert!(log(&picked.head).contains(&format!("(cherry picked from commit {last})")));
    let author = |commit: &CommitId| {
        let format = ["log", "-1", "--format=%an %ae %ad", commit.as_str()];
        rig.fixture.git(&format)
    };
    assert_eq!(author(&rebased.head), author(&last));
    assert_eq!(rig.applied(&head, &last, ApplyMethod::Rebase), rebased);
}

#[test]
fn what_the_head_has_already_is_left_out() {
    let rig = SourceRig::new("seq 1 20 > n");
    let first = rig.side("sed -i 's/^5$/five/' n");
    let last = rig.on(&first, "sed -i 's/^15$/fifteen/' n");
    let head = rig.on(&rig.side("echo o > other"), "sed -i 's/^5$/five/' n");
    let rebased = rig.applied(&head, &last, ApplyMethod::Rebase);
    assert_eq!((rebased.made.len(), &rebased.left_out), (1, &vec![first]));
    let again = rig.applied(&rebased.head, &last, ApplyMethod::Rebase);
    assert_eq!((again.head, again.made.len()), (rebased.head, 0));
    let merged = rig.applied(&head, &last, ApplyMethod::Merge);
    let again = rig.applied(&merged.head, &last, ApplyMethod::Merge);
    assert_eq!((again.head, again.left_out), (merged.head, vec![last]));
}

#[test]
fn a_range_with_a_merge_of_its_own_is_merged_or_refused() {
    let rig = SourceRig::new("seq 1 20 > n");
    let one = rig.side("sed -i 's/^5$/five/' n");
    let other = rig.side("sed -i 's/^15$/fifteen/' n");
    let own = rig.applied(&one, &other, ApplyMethod::Merge).head;
    let head = rig.side("echo o > other");
    assert!(rig.applied(&head, &own, ApplyMethod::Merge).made.len() == 1);
    let error = rig.apply(&head, &own, ApplyMethod::Rebase);
    let error = error.expect_err("refused").to_string();
    assert!(error.contains("is a merge"), "{error}");
    let elsewhere = rig.apply(&rig.base.clone(), &rig.base, ApplyMethod::Merge);
    assert!(matches!(elsewhere, Ok(SourceOutcome::Applied(_))));
}

#[test]
fn a_conflict_names_each_path_with_its_kind_and_contents() {
    let rig = SourceRig::new(
        r"seq 1 20 > text; seq 1 30 > both; printf 'a\0b' > binary; seq 1 9 > gone
          seq 1 15 > moved; seq 21 40 > lost",
    );
    let ours = rig.side(
        r"sed -i 's/^5$/five/' text; printf 'a\0c' > binary; git rm -q gone; git mv moved there
          sed -i 's/^3$/III/' there; echo n > added; git mv both one; git mv lost found; ln -s a type",
    );
    let theirs = rig.side(
        r"sed -i 's/^5$/FIVE/' text; printf 'a\0d' > binary; sed -i 's/^4$/iv/' gone
          sed -i 's/^3$/3 3/' moved; echo nn > added; git mv both other; git rm -q lost; echo a > type",
    );
    let conflict = rig.conflict(&ours, &theirs, ApplyMethod::Merge);
    let told = |one: &ConflictPath| {
        let side = |side: &Option<kapi_git::land::merge::ConflictSide>| {
            let path = side.as_ref().map(|side| side.path.display().to_string());
            path.unwrap_or_else(|| "-".to_owned())
        };
        let sides = [side(&one.base), side(&one.ours), side(&one.theirs)];
        format!("{} {:?} {}", one.path.display(), one.kind, sides.join(" "))
    };
    let paths: Vec<String> = conflict.conflict.paths.iter().map(told).collect();
    assert_told(
        &paths,
        &[
            "added AddAdd - added added",
            "binary Binary binary binary binary",
            "both RenameRename both one other",
            "found RenameDelete found found -",
            "gone DeleteEdit gone - gone",
            "one RenameRename both one other",
            "other RenameRename both one other",
            "text Content text text text",
            "there RenameEdit there there there",
        ],
    );
    let text = paths_of(&conflict, ConflictKind::Content);
    let object = text[0].theirs.as_ref().expect("theirs").object.clone();
    assert_eq!(rig.text(&object), rig.text(&format!("{theirs}:text")));
}

/// Compares what is told, without the type change whose wording differs between versions of git.
#[track_caller]
fn assert_told(found: &[String], expected: &[&str]) {
    let found: Vec<&str> = found
        .iter()
        .map(String::as_str)
        .filter(|line| !line.starts_with("type"))
        .collect();
    assert_eq!(found, expected);
}

fn paths_of(conflict: &SourceConflict, kind: ConflictKind) -> Vec<&ConflictPath> {
    let paths = conflict.conflict.paths.iter();
    paths.filter(|one| one.kind == kind).collect()
}

#[test]
fn a_settled_conflict_goes_on_with_the_rest() {
    let rig = SourceRig::new("seq 1 20 > n; seq 1 5 > m");
    let first = rig.side("sed -i 's/^5$/five/' n");
    let last = rig.on(&first, "sed -i 's/^3$/three/' m");
    let head = rig.side("sed -i 's/^5$/FIVE/' n");
    let file = SettledFile {
        path: "n".into(),
        content: Some(SettledContent {
            mode: FileMode::Plain,
            bytes: b"both\n".to_vec(),
        }),
    };
    for method in [ApplyMethod::Merge, ApplyMethod::Rebase] {
        let conflict = rig.conflict(&head, &last, method);
        let source = CommitRange {
            base: rig.base.clone(),
            commit: last.clone(),
        };
        let settled = |files: &[SettledFile]| {
            rig.with_plan(&head, &source, method, |repository, plan| {
                repository.settle(&SettlePlan {
                    source: *plan,
                    conflict: &conflict,
                    files,
                })
            })
        };
        let error = settled(&[]).expect_err("a path is open").to_string();
        assert!(error.contains("there is no resolution for n"), "{error}");
        let mut done = settled(std::slice::from_ref(&file)).expect("settled");
        if let Some(rest) = &conflict.rest {
            assert_eq!(rest.base, first);
            done = rig.with_plan(&done, rest, method, |repository, plan| {
                match repository.apply_source(plan).expect("the rest") {
                    SourceOutcome::Applied(applied) => applied.head,
                    SourceOutcome::Conflicted(conflict) => panic!("{conflict:?}"),
                }
            });
        }
        assert_eq!(rig.text(&format!("{done}:n")), "both");
        assert_eq!(rig.text(&format!("{done}:m")), "1\n2\nthree\n4\n5");
    }
}
