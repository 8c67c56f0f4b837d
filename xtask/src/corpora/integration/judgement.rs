//! Whether what came of a repository is right, by what is true of it.
//!
//! Pure, but for the files that are read through a function.

use kapi_git::coverage::{CoverageFinding, FindingKind};

use super::case::{FileText, Truth, WrongResult};
use super::pipeline::PipelineResult;
use super::rivals::{LandedFiles, RivalResult};

/// What a way came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Score {
    /// It landed, and is right.
    Right,
    /// It is wrong, and was stopped with its name.
    Named,
    /// It did not go on where something is the matter, and said where git did not fit.
    Stopped,
    /// It did not go on, and nothing is the matter.
    StoppedForNothing,
    /// It landed and is wrong, which the checks tell whoever runs them afterwards.
    WrongByChecks,
    /// It landed and is wrong, and no check tells.
    WrongSilently,
}

impl Score {
    /// Every one, in the order of a table.
    pub(super) const ALL: [Self; 6] = [
        Self::Right,
        Self::Named,
        Self::Stopped,
        Self::StoppedForNothing,
        Self::WrongByChecks,
        Self::WrongSilently,
    ];

    /// Returns what is said of it in a table.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Named => "stopped and named",
            Self::Stopped => "stopped",
            Self::StoppedForNothing => "stopped for nothing",
            Self::WrongByChecks => "**wrong**, checks would tell",
            Self::WrongSilently => "**wrong**, silent",
        }
    }
}

/// Judges what the product came to; `text` reads a file of what landed.
pub(super) fn of_pipeline(
    truth: &Truth,
    result: &PipelineResult,
    text: impl Fn(&str) -> Option<String>,
) -> Score {
    let has_landed = result.landed.is_some();
    let is_named = match truth {
        Truth::Clean { holds } => {
            return match (
                has_landed && result.culprits.is_empty(),
                has_all(holds, text),
            ) {
                (true, true) => Score::Right,
                (true, false) => Score::WrongSilently,
                (false, _) => Score::StoppedForNothing,
            };
        }
        Truth::Conflict { path } => result.conflict.as_ref().is_some_and(|conflict| {
            let mut paths = conflict.paths.iter();
            paths.any(|one| one.path.display().to_string() == *path)
        }),
        Truth::Culprits { sources } => result.culprits.first().is_some_and(|found| {
            let mut named: Vec<usize> = found.with.iter().copied().chain([found.source]).collect();
            named.sort_unstable();
            // The rest lands without the one that went.
            named == *sources && result.culprits.len() == 1 && has_landed
        }),
        Truth::Wrong(wrong) => {
            let is_blamed =
                wrong.kinds.contains(&FindingKind::Duplicated) && !result.culprits.is_empty();
            is_blamed
                || result
                    .findings
                    .iter()
                    .any(|finding| is_planted(wrong, finding))
        }
        Truth::Markers { path } => {
            let mut markers = result.markers.iter();
            markers.any(|marker| marker.path.display().to_string() == *path)
        }
    };
    match (is_named, has_landed) {
        (true, _) => Score::Named,
        (false, true) => Score::WrongSilently,
        (false, false) => Score::Stopped,
    }
}

fn is_planted(wrong: &WrongResult, finding: &CoverageFinding) -> bool {
    let lines = [finding.lost.as_slice(), finding.found.as_slice()].concat();
    let told = String::from_utf8_lossy(&lines.concat()).into_owned();
    wrong.kinds.contains(&finding.kind)
        && finding.path.display().to_string() == wrong.path
        && wrong.texts.iter().any(|text| told.contains(text.trim()))
}

/// Judges what git alone came to.
pub(super) fn of_rival(truth: &Truth, result: &RivalResult) -> Score {
    let landed = match (result, truth) {
        (RivalResult::Stopped, Truth::Clean { .. }) => return Score::StoppedForNothing,
        (RivalResult::Stopped, _) => return Score::Stopped,
        (RivalResult::Landed(landed), _) => landed,
    };
    let is_right = landed.new_failures.is_empty()
        && match truth {
            Truth::Clean { holds } => has_all(holds, |path| landed.text(path)),
            Truth::Conflict { .. } => false,
            Truth::Culprits { .. } => true,
            Truth::Wrong(wrong) => !is_wrong(wrong, landed),
            Truth::Markers { path } => {
                let text = landed.text(path).unwrap_or_default();
                !text.contains("\n<<<<<<<")
            }
        };
    match (is_right, landed.new_failures.is_empty()) {
        (true, _) => Score::Right,
        (false, false) => Score::WrongByChecks,
        (false, true) => Score::WrongSilently,
    }
}

fn is_wrong(wrong: &WrongResult, landed: &LandedFiles) -> bool {
    let text = landed.text(&wrong.path).unwrap_or_default();
    let mut texts = wrong.texts.iter();
    if wrong.kinds.contains(&FindingKind::Duplicated) {
        texts.any(|own| text.matches(own.as_str()).count() > 1)
    } else if wrong.kinds.contains(&FindingKind::Unexpected) {
        texts.any(|own| text.contains(own.as_str()))
    } else {
        texts.any(|own| !text.contains(own.as_str()))
    }
}

fn has_all(holds: &[FileText], text: impl Fn(&str) -> Option<String>) -> bool {
    holds.iter().all(|it| {
        let found = text(&it.path);
        found.is_some_and(|found| found.contains(&it.text))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use kapi_git::id::CommitId;
    use kapi_workflow::rules::batch::bisection::Culprits;

    use super::{FileText, FindingKind, Score, Truth, WrongResult, of_pipeline, of_rival};
    use crate::corpora::integration::pipeline::PipelineResult;
    use crate::corpora::integration::rivals::RivalResult;

    fn landed() -> PipelineResult {
        PipelineResult {
            landed: CommitId::parse(&"a".repeat(40)).ok(),
            ..PipelineResult::default()
        }
    }

    fn culprits(source: usize, with: &[usize]) -> Culprits {
        Culprits {
            source,
            with: with.iter().copied().collect(),
            shown_by: BTreeSet::new(),
            checks: BTreeSet::new(),
        }
    }

    fn truths() -> [Truth; 4] {
        let path = "a".to_owned();
        [
            Truth::Conflict { path: path.clone() },
            Truth::Culprits {
                sources: vec![0, 2],
            },
            Truth::Wrong(WrongResult {
                kinds: &[FindingKind::Missed],
                path: path.clone(),
                texts: vec!["lost".to_owned()],
            }),
            Truth::Markers { path },
        ]
    }

    #[test]
    fn what_lands_in_spite_of_a_fault_is_wrong_and_a_stop_without_its_name_is_no_finding() {
        for truth in truths() {
            let judged = |result: &PipelineResult| of_pipeline(&truth, result, |_| None);
            assert_eq!(judged(&landed()), Score::WrongSilently, "{truth:?}");
            assert_eq!(
                judged(&PipelineResult::default()),
                Score::Stopped,
                "{truth:?}"
            );
            assert_eq!(of_rival(&truth, &RivalResult::Stopped), Score::Stopped);
        }
    }

    #[test]
    fn culprits_are_named_where_they_are_those_and_the_rest_lands() {
        let [_, truth, ..] = truths();
        let judged = |culprits: Vec<Culprits>| {
            let result = PipelineResult {
                culprits,
                ..landed()
            };
            of_pipeline(&truth, &result, |_| None)
        };
        assert_eq!(judged(vec![culprits(2, &[0])]), Score::Named);
        assert_eq!(judged(vec![culprits(2, &[1])]), Score::WrongSilently);
        assert_eq!(judged(vec![culprits(2, &[])]), Score::WrongSilently);
    }

    #[test]
    fn what_is_clean_must_land_whole() {
        let truth = Truth::Clean {
            holds: vec![FileText {
                path: "a".to_owned(),
                text: "there".to_owned(),
            }],
        };
        let with = |text: &str| of_pipeline(&truth, &landed(), |_| Some(text.to_owned()));
        assert_eq!(with("all is there"), Score::Right);
        assert_eq!(with("nothing is"), Score::WrongSilently);
        let stopped = of_pipeline(&truth, &PipelineResult::default(), |_| None);
        assert_eq!(stopped, Score::StoppedForNothing);
        let rival = of_rival(&truth, &RivalResult::Stopped);
        assert_eq!(rival, Score::StoppedForNothing);
    }
}
