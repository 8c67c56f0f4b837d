//! What a result has of its sources: nothing is said of clean merges, and each fault is found and named.

use std::collections::BTreeSet;

use kapi_git::coverage::{
    Coverage, CoverageFinding, CoveragePlan, FindingKind, HunkCount, IntegratedSource,
};
use kapi_git::id::CommitId;
use kapi_git::repository::range::CommitRange;

use crate::fixture::{Fixture, git_in, shell, write};

/// A repository, where its target was, and sources that begin at one base.
pub(crate) struct CoverageRig {
    pub(crate) fixture: Fixture,
    pub(crate) base: CommitId,
}

impl CoverageRig {
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
            .git(&["checkout", "-q", "-f", "--detach", at.as_str()]);
        shell(&self.fixture.repo(), command);
        self.fixture.commit(command);
        self.fixture.base()
    }

    fn side(&self, command: &str) -> CommitId {
        self.on(&self.base, command)
    }

    /// Merges a commit by git; a conflict is settled by a command.
    pub(crate) fn merge(&self, head: &CommitId, commit: &CommitId, command: &str) -> CommitId {
        self.fixture
            .git(&["checkout", "-q", "-f", "--detach", head.as_str()]);
        let repo = self.fixture.repo();
        shell(
            &repo,
            &format!("git merge -q --no-ff --no-commit {commit} > /dev/null || true"),
        );
        shell(&repo, command);
        git_in(&repo, &["add", "-A"]);
        git_in(&repo, &["commit", "-q", "--allow-empty", "-m", "merge"]);
        self.fixture.base()
    }

    /// Merges each of the sources, and returns them with the heads.
    pub(crate) fn merged(&self, dev: &CommitId, commits: &[&CommitId]) -> Vec<IntegratedSource> {
        let mut head = dev.clone();
        let sources = commits.iter().map(|commit| {
            head = self.merge(&head, commit, ":");
            self.source(commit, &head)
        });
        sources.collect()
    }

    /// Makes commits of a stream of `fast-import`.
    pub(crate) fn import(&self, stream: &str) {
        let file = self.fixture.root().join("stream");
        write(&file, stream);
        let import = format!("git fast-import --quiet --force < '{}'", file.display());
        shell(&self.fixture.repo(), &import);
    }

    pub(crate) fn source(&self, commit: &CommitId, after: &CommitId) -> IntegratedSource {
        IntegratedSource {
            range: CommitRange {
                base: self.base.clone(),
                commit: commit.clone(),
            },
            after: after.clone(),
        }
    }

    pub(crate) fn coverage(
        &self,
        dev: &CommitId,
        head: &CommitId,
        sources: &[IntegratedSource],
    ) -> Coverage {
        let scratch = self.fixture.root().join("scratch");
        let plan = CoveragePlan {
            dev,
            head,
            sources,
            generated: &BTreeSet::new(),
            scratch: &scratch,
        };
        let coverage = self.fixture.open().coverage(&plan).expect("coverage");
        assert!(!scratch.exists(), "nothing is left");
        coverage
    }
}

/// Says a finding in one line.
pub(crate) fn told(finding: &CoverageFinding) -> String {
    let text = |lines: &[Vec<u8>]| String::from_utf8_lossy(&lines.concat()).into_owned();
    let CoverageFinding {
        kind,
        path,
        line,
        source,
        lost,
        found,
        ..
    } = finding;
    let source = source.map_or_else(|| "-".to_owned(), |source| source.to_string());
    let mark = if finding.is_settled { " settled" } else { "" };
    format!(
        "{kind:?} {source} {}:{line} {:?} {:?}{mark}",
        path.display(),
        text(lost),
        text(found)
    )
}

fn all_told(coverage: &Coverage) -> Vec<String> {
    coverage.findings.iter().map(told).collect()
}

fn count(covered: u64, total: u64) -> HunkCount {
    HunkCount { covered, total }
}

const FILES: &str = "for n in $(seq 1 40); do echo \"line $n\"; done > a; seq 101 130 > b";

#[test]
fn nothing_is_said_of_a_clean_merge_and_everything_is_counted() {
    let rig = CoverageRig::new(FILES);
    let dev = rig.side("sed -i '40a on dev' a");
    let one = rig.side("sed -i -e '5s/.*/five/' -e '20d' a; git mv b c; sed -i '3a new' c");
    let other = rig.side("sed -i '7s/.*/seven/' a; sed -i '20s/.*/hundred/' b; echo n > n");
    let sources = rig.merged(&dev, &[&one, &other]);
    let coverage = rig.coverage(&dev, &sources[1].after, &sources);
    assert_eq!(all_told(&coverage), [] as [&str; 0]);
    assert_eq!(coverage.sources, [count(4, 4), count(3, 3)]);
    assert_eq!(coverage.result, count(7, 7));
}

/// What is done to the head of a clean merge, and what is said of it.
fn fault(command: &str) -> (Vec<String>, Coverage) {
    let rig = CoverageRig::new(FILES);
    let one = rig.side("sed -i -e '5s/.*/five/' -e '20,21d' -e '30a first\\nsecond\\nthird' a");
    let other = rig.side("sed -i '10a a whole sentence of the other' a; git mv b c");
    let sources = rig.merged(&rig.base, &[&one, &other]);
    let head = rig.on(&sources[1].after, command);
    let alone: Vec<IntegratedSource> = sources
        .iter()
        .map(|source| IntegratedSource {
            after: head.clone(),
            ..source.clone()
        })
        .collect();
    let coverage = rig.coverage(&rig.base, &head, &alone);
    (all_told(&coverage), coverage)
}

#[test]
fn what_is_lost_is_told_with_whose_it_was() {
    let (told, coverage) = fault("sed -i 's/^five$/line 5/' a");
    assert_eq!(told, [r#"Missed 0 a:5 "five\n" "line 5\n""#]);
    assert_eq!(coverage.sources, [count(2, 3), count(2, 2)]);
    let (told, _) = fault("sed -i '/^first$/,/^third$/d' a");
    assert_eq!(told, [r#"Missed 0 a:29 "first\nsecond\nthird\n" """#]);
    let (told, _) = fault("sed -i -e '/^second$/d' a");
    assert_eq!(told, [r#"Altered 0 a:30 "second\n" """#]);
    let (told, coverage) = fault("sed -i -e 's/^second$/2nd/' a");
    assert_eq!(told, [r#"Altered 0 a:31 "second\n" "2nd\n""#]);
    assert_eq!(coverage.result.covered + 1, coverage.result.total);
    let (told, _) = fault("sed -i '/^line 19$/a line 20\\nline 21' a");
    assert_eq!(told, [r#"Missed 0 a:21 "" "line 20\nline 21\n""#]);
    let (told, _) = fault("sed -i '/^line 19$/a line 20' a");
    assert_eq!(told, [r#"Altered 0 a:21 "" "line 20\n""#]);
    let (told, _) = fault("git mv c b");
    assert_eq!(told, [r#"Missed 1 b:0 "" """#]);
}

#[test]
fn what_nobody_brought_and_what_went_by_itself_is_told() {
    let (told, coverage) = fault("sed -i '/^line 35$/d' a");
    assert_eq!(told, [r#"Reverted - a:36 "line 35\n" """#]);
    assert_eq!(coverage.sources, [count(3, 3), count(2, 2)]);
    let (told, coverage) = fault("sed -i '3a something' a; echo x > new");
    assert_eq!(
        told,
        [
            r#"Unexpected - a:4 "" "something\n""#,
            r#"Unexpected - new:1 "" "x\n""#
        ]
    );
    assert_eq!(coverage.result.covered + 2, coverage.result.total);
    let (told, _) = fault("sed -i '38a a whole  sentence of the other' a");
    assert_eq!(
        told,
        [r#"Duplicated 1 a:39 "" "a whole  sentence of the other\n""#]
    );
    let (told, _) = fault("git mv README READ.me; chmod +x src/main.txt");
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("Unexpected - READ.me:0"), "{told:?}");
    assert!(told[1].starts_with("Reverted - src/main.txt:0"), "{told:?}");
}

#[test]
fn what_was_there_once_was_reverted() {
    let rig = CoverageRig::new(FILES);
    let one = rig.side("sed -i '5a mine' a");
    let other = rig.side("sed -i '25a other' a");
    let first = rig.merge(&rig.base, &one, ":");
    let head = rig.merge(&first, &other, "sed -i '/^mine$/d' a");
    let sources = [rig.source(&one, &first), rig.source(&other, &head)];
    let coverage = rig.coverage(&rig.base, &head, &sources);
    assert_eq!(all_told(&coverage), [r#"Reverted 0 a:5 "mine\n" """#]);
}

#[test]
fn a_merge_within_a_source_that_did_more_is_told() {
    let rig = CoverageRig::new(FILES);
    let dev = rig.side("sed -i '10a a test of dev' a");
    let own = rig.side("sed -i '30s/.*/own/' a");
    let merge = rig.merge(
        &own,
        &dev,
        "sed -i -e '/^a test of dev$/d' -e '20a smuggled' a",
    );
    let last = rig.on(&merge, "echo l > l");
    let head = rig.merge(&dev, &last, ":");
    let source = IntegratedSource {
        range: CommitRange {
            base: dev.clone(),
            commit: last,
        },
        after: head.clone(),
    };
    let coverage = rig.coverage(&dev, &head, &[source]);
    assert_eq!(
        all_told(&coverage),
        [
            r#"Reverted 0 a:10 "a test of dev\n" """#,
            r#"Unexpected 0 a:20 "" "smuggled\n""#
        ]
    );
    let merges = coverage.findings.iter().map(|one| one.merge.as_ref());
    assert!(merges.into_iter().all(|one| one == Some(&merge)));
}

#[test]
fn what_is_lost_in_a_conflict_is_told_as_settled() {
    let rig = CoverageRig::new(FILES);
    let one = rig.side("sed -i -e '5s/.*/five/' -e '30a mine' a");
    let other = rig.side("sed -i -e '5s/.*/FIVE/' -e '25a other' a");
    let first = rig.merge(&rig.base, &one, ":");
    let settled = |command: &str| {
        let head = rig.merge(&first, &other, command);
        let sources = [rig.source(&one, &first), rig.source(&other, &head)];
        all_told(&rig.coverage(&rig.base, &head, &sources))
    };
    let both = settled("sed -i '/^<<<<<<<\\|^=======\\|^>>>>>>>/d' a");
    assert_eq!(both, [] as [&str; 0]);
    let ours = settled("git checkout -q --ours a; sed -i '25a other' a");
    assert_eq!(ours, [r#"Missed 1 a:5 "FIVE\n" "" settled"#]);
    let wholesale = settled("git checkout -q --ours a");
    assert_eq!(
        wholesale,
        [
            r#"Missed 1 a:5 "FIVE\n" "" settled"#,
            r#"Missed 1 a:25 "other\n" """#
        ]
    );
    let theirs = settled("git checkout -q --theirs a; sed -i '31a mine' a");
    assert_eq!(theirs, [r#"Reverted 0 a:5 "five\n" "" settled"#]);
    let new = settled("git checkout -q --ours a; sed -i -e '25a other' -e 's/^five$/5/' a");
    assert_eq!(
        new,
        [
            r#"Altered 0 a:5 "five\n" "5\n" settled"#,
            r#"Altered 1 a:5 "FIVE\n" "5\n" settled"#
        ]
    );
}

#[test]
fn what_is_lost_in_a_file_that_the_other_moved_keeps_its_name() {
    let rig = CoverageRig::new(FILES);
    let one = rig.side("sed -i '5s/.*/five/' a");
    let other = rig.side("git mv a moved; sed -i '5s/.*/FIVE/' moved");
    let head = rig.merge(&one, &other, "git checkout -q --theirs moved");
    let sources = [rig.source(&one, &one), rig.source(&other, &head)];
    let told = all_told(&rig.coverage(&rig.base, &head, &sources));
    assert_eq!(told, [r#"Reverted 0 moved:5 "five\n" "" settled"#]);
}

#[test]
fn what_is_lost_keeps_its_name_though_another_moved_the_file_since() {
    let rig = CoverageRig::new(FILES);
    let one = rig.side("sed -i '5s/.*/five/' a");
    let mover = rig.side("git mv a moved");
    let other = rig.side("sed -i '5s/.*/FIVE/' a");
    let moved = rig.merge(&one, &mover, "true");
    let head = rig.merge(&moved, &other, "git checkout -q --theirs moved");
    let sources = [
        rig.source(&one, &one),
        rig.source(&mover, &moved),
        rig.source(&other, &head),
    ];
    let told = all_told(&rig.coverage(&rig.base, &head, &sources));
    assert_eq!(told, [r#"Reverted 0 moved:5 "five\n" "" settled"#]);
}

#[test]
fn what_is_lost_is_whose_lines_it_is_and_not_of_who_has_one_that_is_alike() {
    let rig = CoverageRig::new(FILES);
    let one = rig.side("sed -i '5s/.*/five\\n}\\nmore/' a");
    let alike = rig.side("sed -i '15s/.*/fifteen\\n}/' a");
    let other = rig.side("sed -i '5s/.*/FIVE/' a");
    let both = rig.merge(&one, &alike, "true");
    let head = rig.merge(
        &both,
        &other,
        "sed -i -e '/^<<<<<<</,/^=======/d' -e '/^>>>>>>>/d' a",
    );
    let sources = [
        rig.source(&one, &one),
        rig.source(&alike, &both),
        rig.source(&other, &head),
    ];
    let told = all_told(&rig.coverage(&rig.base, &head, &sources));
    assert_eq!(told, [r#"Reverted 0 a:5 "five\n}\nmore\n" "" settled"#]);
}

#[test]
fn a_delete_against_an_edit_loses_one_of_them() {
    let rig = CoverageRig::new(FILES);
    let one = rig.side("git rm -q b");
    let other = rig.side("sed -i '5s/.*/five/' b");
    let settled = |command: &str| {
        let head = rig.merge(&one, &other, command);
        let sources = [rig.source(&one, &one), rig.source(&other, &head)];
        all_told(&rig.coverage(&rig.base, &head, &sources))
    };
    let gone = settled("git rm -q --cached b; rm -f b");
    assert_eq!(gone, [r#"Missed 1 b:0 "" "" settled"#]);
    let kept = settled("git add b");
    assert_eq!(kept, [r#"Reverted 0 b:0 "" "" settled"#]);
}

#[test]
fn the_same_change_in_two_sources_is_told_once_or_twice() {
    let rig = CoverageRig::new(FILES);
    let same = "sed -i '10a the same sentence in both' a";
    let one = rig.side(&format!("{same}; echo one > one"));
    let other = rig.side(&format!("{same}; echo other > other"));
    let sources = rig.merged(&rig.base, &[&one, &other]);
    let coverage = rig.coverage(&rig.base, &sources[1].after, &sources);
    let [shared] = coverage.findings.as_slice() else {
        panic!("{:?}", all_told(&coverage));
    };
    assert_eq!((shared.kind, shared.source), (FindingKind::Shared, Some(1)));
    assert_eq!(shared.other, Some(0));
    assert!(!shared.kind.needs_justification());
    assert_eq!(coverage.sources, [count(2, 2), count(2, 2)]);
    let elsewhere = rig.side("sed -i '30a the same  sentence in both' a");
    let sources = rig.merged(&rig.base, &[&one, &elsewhere]);
    let coverage = rig.coverage(&rig.base, &sources[1].after, &sources);
    let kinds: Vec<FindingKind> = coverage.findings.iter().map(|one| one.kind).collect();
    assert_eq!(
        kinds,
        [FindingKind::Duplicated],
        "{:?}",
        all_told(&coverage)
    );
}

#[test]
fn what_the_target_took_back_is_missed() {
    let rig = CoverageRig::new(FILES);
    let one = rig.side("sed -i '10a brought and taken back' a");
    let landed = rig.merge(&rig.base, &one, ":");
    let dev = rig.on(&landed, "sed -i '11d' a");
    let more = rig.on(&one, "echo more > more");
    let head = rig.merge(&dev, &more, ":");
    let sources = [rig.source(&more, &head)];
    let coverage = rig.coverage(&dev, &head, &sources);
    assert_eq!(
        all_told(&coverage),
        [r#"Missed 0 a:11 "brought and taken back\n" """#]
    );
    assert_eq!(coverage.sources, [count(1, 2)]);
}

#[test]
fn a_source_that_builds_on_another_may_change_its_lines() {
    let rig = CoverageRig::new(FILES);
    let one = rig.side("sed -i '10a first try\\nsecond line' a");
    let on_it = rig.on(&one, "sed -i 's/first try/better/' a; git mv a moved");
    let sources = rig.merged(&rig.base, &[&one, &on_it]);
    let coverage = rig.coverage(&rig.base, &sources[1].after, &sources);
    assert_eq!(all_told(&coverage), [] as [&str; 0]);
}

#[test]
fn nothing_of_a_tree_or_a_configuration_is_run_and_nothing_is_left() {
    let rig = CoverageRig::new(FILES);
    let trap = rig.fixture.trap();
    let attributes = "* merge=evil diff=evil filter=evil";
    let one = rig.side(&format!(
        "sed -i 5d a; echo '{attributes}' > .gitattributes"
    ));
    let other = rig.side("sed -i 's/^line 5$/five/' a; sed -i 5d b");
    let first = rig.merge(&rig.base, &one, ":");
    let head = rig.merge(&first, &other, "git checkout -q --ours a");
    for (key, value) in [
        ("merge.evil.driver", trap.as_str()),
        ("diff.evil.command", trap.as_str()),
        ("diff.evil.textconv", trap.as_str()),
        ("filter.evil.clean", trap.as_str()),
        ("core.fsmonitor", trap.as_str()),
    ] {
        rig.fixture.git(&["config", key, value]);
    }
    let state = || {
        let objects = rig
            .fixture
            .git(&["-c", "core.fsmonitor=", "count-objects", "-v"]);
        let refs = rig.fixture.git(&["for-each-ref"]);
        (objects, refs)
    };
    let before = state();
    let sources = [rig.source(&one, &first), rig.source(&other, &head)];
    let coverage = rig.coverage(&rig.base, &head, &sources);
    assert!(
        !coverage.findings.is_empty(),
        "a side is lost in the conflict"
    );
    let repository = rig.fixture.open();
    let markers = repository.leftover_markers(&[one, other], &head);
    assert_eq!(markers.expect("hunks"), []);
    assert_eq!(state(), before);
    rig.fixture.assert_not_sprung();
    shell(
        &rig.fixture.repo(),
        "git checkout -q -f --detach HEAD~1; git diff HEAD~1 > /dev/null || true",
    );
    rig.fixture.assert_sprung();
}
