//! Generated merges that are clean, of which nothing is said, and one fault in each, which alone is
//! found.
//!
//! A file is a row of places with a line between them that is often the same; the target and each source
//! change places of their own.

use std::cell::Cell;
use std::fmt::Write as _;

use kapi_git::author::Author;
use kapi_git::changed_file::FileMode;
use kapi_git::coverage::{CoverageFinding, FindingKind, IntegratedSource};
use kapi_git::id::CommitId;
use kapi_git::land::merge::ConflictKind;
use kapi_git::land::source::{
    ApplyMethod, SettlePlan, SettledContent, SettledFile, SourceOutcome, SourcePlan,
};
use kapi_git::repository::range::CommitRange;
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::test_runner::{Config, TestRunner};
use proptest::{prop_assert, prop_assert_eq};

use crate::coverage::{CoverageRig, told};
use crate::fixture::AT;

/// How many merges are tried.
const CASES: u32 = 8;
/// How many sources there are; the number after them stands for the target.
const SOURCES: usize = 3;

/// One place of the file.
#[derive(Debug, Clone)]
struct FilePlace {
    /// Who changes it: a source, the target, or nobody.
    actor: usize,
    change: PlaceChange,
    /// Whether the line behind it is like many others.
    has_common_end: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlaceChange {
    Replace(usize),
    Insert(usize),
    /// As an insertion, with a last line like many others.
    InsertBlock(usize),
    Delete,
}

/// What is done to the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Nothing: for the files as they are meant.
    None,
    Lose(usize),
    Alter(usize),
    DropLine(usize),
    Smuggle(usize),
    Repeat(usize),
}

#[derive(Debug, Clone)]
struct MergeCase {
    places: Vec<FilePlace>,
    /// The place that the second source changes as well as the first, if there is one.
    contested: Option<usize>,
    /// Whether a source moves the file, and which.
    mover: Option<usize>,
    fault: Fault,
    methods: [ApplyMethod; SOURCES],
}

fn places() -> impl Strategy<Value = Vec<FilePlace>> {
    let change = prop_oneof![
        (1_usize..4).prop_map(PlaceChange::Replace),
        (1_usize..4).prop_map(PlaceChange::Insert),
        (1_usize..3).prop_map(PlaceChange::InsertBlock),
        Just(PlaceChange::Delete),
    ];
    let place =
        (0..SOURCES + 3, change, any::<bool>()).prop_map(|(actor, change, common)| FilePlace {
            actor,
            change,
            has_common_end: common,
        });
    vec(place, 6..16)
}

fn cases() -> impl Strategy<Value = MergeCase> {
    let fault = (0_usize..6, any::<proptest::sample::Index>());
    let method = prop_oneof![
        Just(ApplyMethod::Merge),
        Just(ApplyMethod::Rebase),
        Just(ApplyMethod::CherryPick)
    ];
    let methods = [method.clone(), method.clone(), method];
    let mover = prop_oneof![Just(None), (0..SOURCES).prop_map(Some)];
    (places(), mover, fault, methods).prop_map(|(places, mover, (kind, at), methods)| {
        let at = at.index(places.len());
        let fault = match kind {
            0 => Fault::Lose(at),
            1 => Fault::Alter(at),
            2 => Fault::DropLine(at),
            3 => Fault::Smuggle(at),
            4 => Fault::Repeat(at),
            _ => Fault::None,
        };
        MergeCase {
            places,
            contested: None,
            mover,
            fault,
            methods,
        }
    })
}

impl MergeCase {
    /// Returns the file with the changes of some, and a fault.
    fn text(&self, actors: &[usize], fault: Fault) -> String {
        let mut text = String::new();
        for (at, place) in self.places.iter().enumerate() {
            let is_lost = fault == Fault::Lose(at);
            let is_done = actors.contains(&place.actor) && !is_lost;
            let mut lines = self.place_lines(at, is_done);
            if self.contested == Some(at) && actors == [1] {
                lines = self.contested_lines(at, &rival(at));
            }
            match fault {
                Fault::Alter(altered) if altered == at => {
                    let brought = lines.iter_mut().find(|line| line.contains("brought"));
                    brought
                        .into_iter()
                        .for_each(|line| line.push_str(" otherwise"));
                }
                Fault::DropLine(dropped) if dropped == at => {
                    lines.retain(|line| !line.starts_with("first of"));
                }
                Fault::Smuggle(behind) if behind == at => {
                    lines.push("nobody knows whence this came".to_owned());
                }
                _ => {}
            }
            for line in lines {
                let _written = writeln!(text, "{line}");
            }
        }
        if let Fault::Repeat(at) = fault {
            let lines = self.place_lines(at, true).into_iter();
            for line in lines.filter(|line| line.contains("brought")) {
                let _written = writeln!(text, "{line}");
            }
        }
        text
    }

    /// Returns a place with other lines before its end.
    fn contested_lines(&self, at: usize, lines: &[String]) -> Vec<String> {
        let end = self.place_lines(at, false).split_off(2);
        [lines, &end].concat()
    }

    fn place_lines(&self, at: usize, is_done: bool) -> Vec<String> {
        let place = &self.places[at];
        let own = [format!("first of {at}"), format!("second of {at}")];
        let new = |n: usize| (0..n).map(move |n| format!("brought to place {at} as line {n}"));
        let mut lines = match (is_done, place.change) {
            (false, _) => own.to_vec(),
            (true, PlaceChange::Replace(n)) => new(n).collect(),
            (true, PlaceChange::Insert(n)) => own.iter().cloned().chain(new(n)).collect(),
            (true, PlaceChange::InsertBlock(n)) => {
                let block = new(n).chain(["}".to_owned()]);
                own.iter().cloned().chain(block).collect()
            }
            (true, PlaceChange::Delete) => Vec::new(),
        };
        lines.push(if place.has_common_end {
            "}".to_owned()
        } else {
            format!("end of {at}")
        });
        lines
    }

    /// Returns the file with what the target and the first two sources bring, and an ending of the
    /// contested place.
    fn settled(&self, ending: Ending) -> String {
        let Some(at) = self.contested else {
            return String::new();
        };
        let own: Vec<String> = (0..2)
            .map(|n| format!("brought to place {at} as line {n}"))
            .collect();
        let lines = match ending {
            Ending::BothLines => [own.clone(), rival(at)].concat(),
            Ending::Ours => own.clone(),
            Ending::Theirs => rival(at),
            Ending::Otherwise => vec!["settled in other words".to_owned()],
        };
        let text = self.text(&[0, 1, SOURCES], Fault::None);
        text.replacen(
            &format!("{}\n", own.join("\n")),
            &format!("{}\n", lines.join("\n")),
            1,
        )
    }

    /// Tells what must be found, if the fault is one here.
    fn expected(&self) -> Option<(FindingKind, Option<usize>)> {
        let of_source = |at: usize| {
            let place = &self.places[at];
            (place.actor < SOURCES).then_some(place)
        };
        match self.fault {
            Fault::None | Fault::Smuggle(_) => None,
            Fault::Lose(at) => of_source(at).map(|place| (FindingKind::Missed, Some(place.actor))),
            Fault::Alter(at) => {
                let place = of_source(at)?;
                let brings = place.change != PlaceChange::Delete;
                brings.then_some((FindingKind::Altered, Some(place.actor)))
            }
            Fault::DropLine(at) => {
                let is_free = self.places[at].actor > SOURCES;
                is_free.then_some((FindingKind::Reverted, None))
            }
            Fault::Repeat(at) => {
                let place = of_source(at)?;
                let brings = place.change != PlaceChange::Delete;
                brings.then_some((FindingKind::Duplicated, Some(place.actor)))
            }
        }
        .or((matches!(self.fault, Fault::Smuggle(_))).then_some((FindingKind::Unexpected, None)))
    }
}

/// What the second source has in a contested place.
fn rival(at: usize) -> Vec<String> {
    (0..2)
        .map(|n| format!("rival in place {at}, line {n}"))
        .collect()
}

/// How a contested place ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    BothLines,
    Ours,
    Theirs,
    Otherwise,
}

/// What was made of a case.
struct MergeResult {
    dev: CommitId,
    sources: Vec<IntegratedSource>,
    head: CommitId,
    path: &'static str,
}

/// Makes the commits of a case in one go: the base, the target, and the sources.
fn commits(rig: &CoverageRig, case: &MergeCase) -> Vec<CommitId> {
    let mut stream = String::new();
    let mut commit = |mark: usize, from: usize, path: &str, text: &str| {
        let _written = write!(
            stream,
            "commit refs/cases/{mark}\nmark :{mark}\nauthor A <a@example.invalid> 1700000000 +0000\n\
             committer A <a@example.invalid> 1700000000 +0000\ndata 1\nc\n"
        );
        if from > 0 {
            let _written = writeln!(stream, "from :{from}");
        }
        let _written = write!(
            stream,
            "deleteall\nM 100644 inline {path}\ndata {}\n{text}\n",
            text.len()
        );
    };
    commit(1, 0, "file", &case.text(&[], Fault::None));
    commit(2, 1, "file", &case.text(&[SOURCES], Fault::None));
    for source in 0..SOURCES {
        let path = if case.mover == Some(source) {
            "moved"
        } else {
            "file"
        };
        commit(source + 3, 1, path, &case.text(&[source], Fault::None));
    }
    rig.import(&stream);
    (1..=SOURCES + 2)
        .map(|mark| {
            let id = rig
                .fixture
                .git(&["rev-parse", &format!("refs/cases/{mark}")]);
            CommitId::parse(&id).expect("a commit")
        })
        .collect()
}

/// Applies the sources; nothing where they do not fit, but for a contested place, which gets an ending.
fn integrated(rig: &CoverageRig, case: &MergeCase, ending: Ending) -> Option<MergeResult> {
    let commits = commits(rig, case);
    let (base, dev) = (&commits[0], &commits[1]);
    let author = Author {
        name: "Kapi".to_owned(),
        email: "kapi@example.invalid".to_owned(),
    };
    let scratch = rig.fixture.root().join("applying");
    let repository = rig.fixture.open();
    let mut head = dev.clone();
    let mut sources = Vec::new();
    for (place, (commit, method)) in commits[2..].iter().zip(case.methods).enumerate() {
        let range = CommitRange {
            base: base.clone(),
            commit: commit.clone(),
        };
        let plan = SourcePlan {
            head: &head,
            source: &range,
            method,
            commits_max: 10,
            message: "apply",
            author: &author,
            at_unix_seconds: AT,
            scratch: &scratch,
        };
        let next = match repository.apply_source(&plan).expect("applying") {
            SourceOutcome::Applied(applied) => applied.head,
            SourceOutcome::Conflicted(conflict) => {
                let [path] = conflict.conflict.paths.as_slice() else {
                    return None;
                };
                // A file that was moved and changed too much is one that is gone and one that is new.
                let has_lines =
                    matches!(path.kind, ConflictKind::Content | ConflictKind::RenameEdit);
                if case.contested.is_none() || place != 1 || !has_lines {
                    return None;
                }
                let content = SettledContent {
                    mode: FileMode::Plain,
                    bytes: case.settled(ending).into_bytes(),
                };
                let file = SettledFile {
                    path: path.path.clone(),
                    content: Some(content),
                };
                let settle = SettlePlan {
                    source: plan,
                    conflict: &conflict,
                    files: &[file],
                };
                repository.settle(&settle).expect("settling")
            }
        };
        head = next;
        sources.push(IntegratedSource {
            range,
            after: head.clone(),
        });
    }
    Some(MergeResult {
        dev: dev.clone(),
        sources,
        head,
        path: if case.mover.is_some() {
            "moved"
        } else {
            "file"
        },
    })
}

/// Returns the head with a fault on it.
fn spoilt(rig: &CoverageRig, case: &MergeCase, result: &MergeResult) -> CommitId {
    let everybody: Vec<usize> = (0..=SOURCES).collect();
    let text = case.text(&everybody, case.fault);
    let MergeResult { head, path, .. } = result;
    let stream = format!(
        "commit refs/cases/spoilt\nmark :1\ncommitter A <a@example.invalid> 1700000000 +0000\n\
         data 1\ns\nfrom {head}\nM 100644 inline {path}\ndata {}\n{text}\n",
        text.len()
    );
    rig.fixture.git(&["update-ref", "-d", "refs/cases/spoilt"]);
    rig.import(&stream);
    CommitId::parse(&rig.fixture.git(&["rev-parse", "refs/cases/spoilt"])).expect("a commit")
}

fn all(findings: &[CoverageFinding]) -> Vec<String> {
    findings.iter().map(told).collect()
}

#[test]
fn a_clean_merge_is_silent_and_one_fault_is_one_finding() {
    let rig = CoverageRig::new("echo b > b");
    let n_fitting = Cell::new(0);
    let config = Config {
        cases: CASES,
        failure_persistence: None,
        ..Config::default()
    };
    let run = TestRunner::new(config).run(&cases(), |case| {
        let Some(result) = integrated(&rig, &case, Ending::Ours) else {
            return Ok(());
        };
        n_fitting.set(n_fitting.get() + 1);
        let MergeResult { dev, head, .. } = &result;
        let clean = rig.coverage(dev, head, &result.sources);
        prop_assert_eq!(all(&clean.findings), Vec::<String>::new());
        prop_assert!(
            clean
                .sources
                .iter()
                .all(|count| count.covered == count.total)
        );
        prop_assert_eq!(clean.result.covered, clean.result.total);
        // Where a fault would be none, there is another one that always is.
        let case = if case.expected().is_some() {
            case
        } else {
            MergeCase {
                fault: Fault::Smuggle(0),
                ..case
            }
        };
        let Some((kind, source)) = case.expected() else {
            panic!("{case:?} has a fault");
        };
        let head = spoilt(&rig, &case, &result);
        let sources: Vec<IntegratedSource> = result
            .sources
            .iter()
            .map(|one| IntegratedSource {
                after: head.clone(),
                ..one.clone()
            })
            .collect();
        let coverage = rig.coverage(dev, &head, &sources);
        let found = coverage.findings.iter();
        let found: Vec<_> = found.map(|one| (one.kind, one.source)).collect();
        prop_assert_eq!(found, vec![(kind, source)], "{:?}", all(&coverage.findings));
        Ok(())
    });
    if let Err(error) = run {
        panic!("{error}");
    }
    assert!(n_fitting.get() > 0, "no merge is clean");
}

#[test]
fn a_settled_conflict_loses_what_its_ending_leaves_out_and_nothing_else() {
    let rig = CoverageRig::new("echo b > b");
    let n_settled = Cell::new(0);
    let config = Config {
        cases: CASES,
        failure_persistence: None,
        ..Config::default()
    };
    let endings = prop_oneof![
        Just(Ending::BothLines),
        Just(Ending::Ours),
        Just(Ending::Theirs),
        Just(Ending::Otherwise)
    ];
    let contested = (cases(), any::<proptest::sample::Index>(), endings);
    let run = TestRunner::new(config).run(&contested, |(mut case, at, ending)| {
        let at = at.index(case.places.len());
        case.places[at].actor = 0;
        case.places[at].change = PlaceChange::Replace(2);
        case.contested = Some(at);
        // What touches the place would be part of its conflict.
        for (beside, place) in case.places.iter_mut().enumerate() {
            if beside.abs_diff(at) == 1 {
                place.actor = SOURCES + 1;
            }
        }
        let Some(result) = integrated(&rig, &case, ending) else {
            return Ok(());
        };
        n_settled.set(n_settled.get() + 1);
        let coverage = rig.coverage(&result.dev, &result.head, &result.sources);
        let found = coverage.findings.iter();
        let found: Vec<_> = found
            .map(|one| (one.kind, one.source, one.is_settled))
            .collect();
        let lost = |kind, source| (kind, Some(source), true);
        let expected = match ending {
            Ending::BothLines => vec![],
            Ending::Ours => vec![lost(FindingKind::Missed, 1)],
            Ending::Theirs => vec![lost(FindingKind::Reverted, 0)],
            Ending::Otherwise => vec![lost(FindingKind::Altered, 0), lost(FindingKind::Altered, 1)],
        };
        prop_assert_eq!(found, expected, "{:?}", all(&coverage.findings));
        Ok(())
    });
    if let Err(error) = run {
        panic!("{error}");
    }
    assert!(n_settled.get() > 0, "no conflict is settled");
}
