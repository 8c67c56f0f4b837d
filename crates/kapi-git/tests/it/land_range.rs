//! Landing everything between two commits: one merge of both, the same as git's own, or nothing.

use std::path::PathBuf;

use kapi_git::id::CommitId;
use kapi_git::land::{Carries, LandError, LandOutcome};

use crate::fixture::{git_in, shell, write};
use crate::land::{LandingRig, WORKFLOW};

const RANGE: Carries = Carries::Range { commits_max: 3 };

/// How many histories are compared with git's own merges.
const HISTORIES: u64 = 12;

fn id(text: &str) -> CommitId {
    CommitId::parse(text.trim()).expect("commit id")
}

#[test]
fn a_range_becomes_one_merge_of_both_wherever_the_branch_is() {
    let rig = LandingRig::new();
    let base = rig.fixture.base();
    let first = rig.task(1, &base, "echo two > src/main.txt");
    let second = rig.task(2, &first, "echo more >> README");
    let third = rig.task(3, &base, "echo n > new");
    let parents = |commit: &CommitId| {
        let format = ["show", "-s", "--format=%P", commit.as_str()];
        rig.fixture.git(&format)
    };
    let landed = |commit: &CommitId, at: (&CommitId, &CommitId)| {
        let LandOutcome::Landed {
            head, is_merged, ..
        } = rig.land_as(RANGE, commit, at).expect("landing")
        else {
            panic!("it fits");
        };
        assert!(is_merged);
        assert_eq!(head, rig.head());
        head
    };
    // Also where the branch could simply be moved on: each landing is one step of it.
    let head = landed(&second, (&base, &base));
    assert_eq!(parents(&head), format!("{base} {second}"));
    assert_eq!(
        landed(&second, (&base, &base)),
        head,
        "once more is the same"
    );
    let both = landed(&third, (&base, &head));
    assert_eq!(parents(&both), format!("{head} {third}"));
    let names = ["ls-tree", "-r", "--name-only", both.as_str()];
    assert!(rig.fixture.git(&names).lines().any(|name| name == "new"));
    let again = rig.land_as(RANGE, &first, (&base, &both)).expect("landing");
    assert!(
        matches!(&again, LandOutcome::Landed { head, is_merged: false, .. } if *head == both),
        "the branch has it already: {again:?}"
    );
}

#[test]
fn what_is_more_than_agreed_or_no_range_changes_nothing() {
    let rig = LandingRig::new();
    let base = rig.fixture.base();
    let mut tip = base.clone();
    let mut chain = Vec::new();
    for number in 1..=4 {
        tip = rig.task(number, &tip, &format!("echo {number} > src/main.txt"));
        chain.push(tip.clone());
    }
    let refs = rig.fixture.git(&["for-each-ref"]);
    let error = rig.land_as(RANGE, &tip, (&base, &base));
    let error = error.expect_err("four commits");
    assert!(
        matches!(error, LandError::TooManyCommits { commits_max: 3, .. }),
        "{error}"
    );
    assert!(!error.may_pass());
    let error = rig.land_as(RANGE, &chain[0], (&tip, &base));
    let error = error.expect_err("the wrong way round");
    assert!(matches!(error, LandError::NotOnBase { .. }), "{error}");
    let error = rig.land_as(RANGE, &chain[3], (&chain[0], &base));
    let error = error.expect_err("the branch lacks the base");
    assert!(matches!(error, LandError::OtherHistory { .. }), "{error}");
    assert_eq!(rig.fixture.git(&["for-each-ref"]), refs);
}

/// A small generator whose numbers depend on the seed alone.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    /// Returns commands that change a few lines or files.
    fn changes(&mut self, side: &str) -> String {
        let n_changes = 1 + self.below(2);
        let change = |_| {
            let (file, line) = (self.below(3), 1 + self.below(9));
            match self.below(6) {
                0 => format!("git mv -k f{file} moved-{side}-{file} || true"),
                1 => format!("rm -f f{file}"),
                2 => format!("echo {side} > new{file}"),
                _ => format!("test ! -e f{file} || sed -i '{line}s/.*/{side} {line}/' f{file}"),
            }
        };
        (0..n_changes).map(change).collect::<Vec<_>>().join("\n")
    }
}

#[test]
fn ranges_are_merged_as_git_merges_them() {
    let rig = LandingRig::new();
    let repo = rig.fixture.repo();
    for name in ["f0", "f1", "f2"] {
        let lines: String = (1..=9).map(|n| format!("{name} {n}\n")).collect();
        write(&repo.join(name), &lines);
    }
    rig.fixture.commit("lines");
    let base = id(&rig.fixture.git(&["rev-parse", "HEAD"]));
    let (mut n_clean, mut n_conflicts) = (0, 0);
    for seed in 1..=HISTORIES {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut side = |name: &str| {
            rig.fixture
                .git(&["checkout", "-q", "--detach", base.as_str()]);
            for _ in 0..=random.below(2) {
                shell(&repo, &random.changes(name));
                let all = "git add -A && git -c user.name=t -c user.email=t@localhost commit -q \
                           --allow-empty -m x";
                shell(&repo, all);
            }
            id(&rig.fixture.git(&["rev-parse", "HEAD"]))
        };
        let (head, commit) = (side("ours"), side("theirs"));
        let name = format!("refs/heads/{WORKFLOW}");
        rig.fixture.git(&["update-ref", &name, head.as_str()]);
        let landed = rig
            .land_as(RANGE, &commit, (&base, &head))
            .expect("landing");
        rig.fixture
            .git(&["checkout", "-q", "--detach", head.as_str()]);
        let merge = format!(
            "git -c user.name=t -c user.email=t@localhost -c merge.directoryRenames=conflict \
             merge -q --no-ff -m x {commit} >/dev/null 2>&1 || true"
        );
        shell(&repo, &merge);
        let unmerged = git_in(&repo, &["diff", "--name-only", "--diff-filter=U"]);
        let mut unmerged: Vec<PathBuf> = unmerged.lines().map(PathBuf::from).collect();
        unmerged.sort();
        match landed {
            LandOutcome::Landed { tree, .. } => {
                n_clean += 1;
                assert!(unmerged.is_empty(), "seed {seed}: {unmerged:?}");
                let theirs = rig.fixture.git(&["rev-parse", "HEAD^{tree}"]);
                assert_eq!(tree.as_str(), theirs.trim(), "seed {seed}");
            }
            LandOutcome::Conflicted { paths } => {
                n_conflicts += 1;
                assert_eq!(paths, unmerged, "seed {seed}");
                assert_eq!(rig.head(), head, "seed {seed}");
            }
        }
        rig.fixture.git(&["reset", "-q", "--hard"]);
    }
    assert!(
        n_clean > 0 && n_conflicts > 0,
        "{n_clean} and {n_conflicts}"
    );
}
