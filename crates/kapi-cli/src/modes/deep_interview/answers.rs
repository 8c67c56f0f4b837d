//! A file of answers: what a person wrote down before the questions were asked.
//!
//! Answers are taken for what a question is about first, then in order; what was used before is
//! not used again. Asks nobody and decides nothing else.

use std::collections::BTreeMap;
use std::path::Path;

use kapi_workflow::rules::modes::interview::round::{Provenance, QuestionReply, Round};
use kapi_workflow::rules::modes::interview::score::Dimension;
use serde::Deserialize;

use crate::context::Context;
use crate::error::Error;
use crate::modes::deep_interview::reply::DialogReply;

/// Bytes of a file of answers.
const FILE_BYTES_MAX: u64 = 256 * 1024;

/// What a person wrote down.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answers {
    /// Taken in order, by questions that nothing below fits.
    #[serde(default)]
    answers: Vec<String>,
    /// Taken by questions about this.
    #[serde(default)]
    by: ByDimension,
    /// What becomes of a question without an answer here.
    #[serde(default)]
    otherwise: UnansweredRule,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct ByDimension {
    #[serde(default)]
    goal: Vec<String>,
    #[serde(default)]
    constraints: Vec<String>,
    #[serde(default)]
    success: Vec<String>,
    #[serde(default)]
    context: Vec<String>,
}

/// What becomes of a question without an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum UnansweredRule {
    /// What is proposed is accepted.
    Accept,
    /// It waits for the person.
    #[default]
    Stop,
}

impl Answers {
    /// Reads a file of answers.
    pub(crate) fn read(context: &Context, path: &Path) -> Result<Self, Error> {
        let path = context.cwd.join(path);
        let shown = path.display();
        let unread = |error: std::io::Error| {
            Error::usage(format!("failed to read {shown}: {error}"))
                .with_hint("name a YAML file of answers with `--answers`.")
        };
        let wrong = |what: String| {
            Error::usage(format!("{shown}: {what}")).with_hint(
                "it holds `answers:` (a list), `by:` (goal, constraints, success, context: a list \
                 each) and `otherwise: accept` or `stop`.",
            )
        };
        let len = std::fs::metadata(&path).map_err(unread)?.len();
        if len > FILE_BYTES_MAX {
            return Err(wrong(format!(
                "the file is longer than {} KiB",
                FILE_BYTES_MAX / 1024
            )));
        }
        let text = std::fs::read_to_string(&path).map_err(unread)?;
        Self::parse(&text).map_err(wrong)
    }

    fn parse(text: &str) -> Result<Self, String> {
        serde_saphyr::from_str(text).map_err(|error| error.without_snippet().to_string())
    }

    /// Returns the reply to a question, given every round so far; `None` where the person has to
    /// be asked.
    pub(crate) fn reply(&self, open: &Round, rounds: &[Round]) -> Option<DialogReply> {
        let about = open.question.dimension;
        let by = self.about(about);
        let said = unused(by, used(rounds, |dimension| dimension == about));
        // What a question took from its own list was not taken from the common one.
        let mut common = used(rounds, |_| true);
        for dimension in [
            Dimension::Goal,
            Dimension::Constraints,
            Dimension::Success,
            Dimension::Context,
        ] {
            let mut own = used(rounds, |other| other == dimension);
            let texts = self.about(dimension).iter();
            for text in texts.filter(|text| take(&mut own, text)) {
                take(&mut common, text);
            }
        }
        let said = said.or_else(|| unused(&self.answers, common));
        match said.map(|text| DialogReply::read(&text)) {
            Some(DialogReply::Quit | DialogReply::Unknown(_)) => None,
            Some(reply) => Some(reply),
            None => self.otherwise(open.question.proposed.is_some()),
        }
    }

    fn about(&self, dimension: Dimension) -> &[String] {
        match dimension {
            Dimension::Goal => &self.by.goal,
            Dimension::Constraints => &self.by.constraints,
            Dimension::Success => &self.by.success,
            Dimension::Context => &self.by.context,
        }
    }

    /// Returns the reply to the goal as it was said back.
    pub(crate) fn confirms(&self) -> Option<DialogReply> {
        self.otherwise(true)
    }

    fn otherwise(&self, is_proposed: bool) -> Option<DialogReply> {
        match self.otherwise {
            UnansweredRule::Accept if is_proposed => Some(DialogReply::Accept),
            // Without a proposal there is nothing to accept, and later counts neither way.
            UnansweredRule::Accept => Some(DialogReply::Later(Some(
                "the answers file does not answer it".to_owned(),
            ))),
            UnansweredRule::Stop => None,
        }
    }
}

/// Returns the first text of a list that was not used.
fn unused(list: &[String], mut used: BTreeMap<String, u32>) -> Option<String> {
    let mut left = list.iter().filter(|text| !take(&mut used, text));
    left.next().cloned()
}

/// Tells whether a text was used once more, and counts that use off.
fn take(used: &mut BTreeMap<String, u32>, text: &str) -> bool {
    match used.get_mut(text.trim()) {
        Some(times) if *times > 0 => {
            *times -= 1;
            true
        }
        Some(_) | None => false,
    }
}

/// How often each text of the file was recorded as an answer, or as the reason of another reply, to
/// questions about some dimensions.
fn used(rounds: &[Round], is_about: impl Fn(Dimension) -> bool) -> BTreeMap<String, u32> {
    let mut used = BTreeMap::new();
    for round in rounds {
        if !is_about(round.question.dimension) {
            continue;
        }
        let text = match &round.reply {
            QuestionReply::Answered(answer) if answer.provenance == Provenance::AnswersFile => {
                answer.text.trim().to_owned()
            }
            QuestionReply::Deferred {
                reason: Some(reason),
            } => format!("/later {reason}"),
            QuestionReply::Deferred { reason: None } => "/later".to_owned(),
            QuestionReply::Withdrawn { reason } => format!("/back {reason}"),
            QuestionReply::Answered(_) | QuestionReply::Open => continue,
        };
        *used.entry(text).or_insert(0) += 1;
    }
    used
}

#[cfg(test)]
mod tests {
    use kapi_workflow::rules::modes::interview::round::{
        InterviewAnswer, InterviewQuestion, Perspective, Provenance, QuestionReply, Round,
    };
    use kapi_workflow::rules::modes::interview::score::Dimension;

    use super::Answers;
    use crate::modes::deep_interview::reply::DialogReply;

    const FILE: &str = "\
answers:
  - first
  - |
    two
    lines
  - yes
by:
  success: [the tests pass, yes]
otherwise: accept
";

    fn round(number: u32, dimension: Dimension, proposed: Option<&str>) -> Round {
        Round {
            number,
            question: InterviewQuestion {
                text: "what?".to_owned(),
                dimension,
                perspective: Perspective::Breadth,
                proposed: proposed.map(str::to_owned),
            },
            reply: QuestionReply::Open,
            settles: Vec::new(),
        }
    }

    fn answered(mut round: Round, reply: &DialogReply) -> Round {
        round.reply = match reply {
            DialogReply::Answer(text) => QuestionReply::Answered(InterviewAnswer {
                text: text.clone(),
                provenance: Provenance::AnswersFile,
                refs: Vec::new(),
                at_ms: 0,
            }),
            DialogReply::Accept => QuestionReply::Answered(InterviewAnswer {
                text: round.question.proposed.clone().unwrap(),
                provenance: Provenance::PersonAccepted,
                refs: Vec::new(),
                at_ms: 0,
            }),
            DialogReply::Later(reason) => QuestionReply::Deferred {
                reason: reason.clone(),
            },
            other => panic!("{other:?} is no answer"),
        };
        round
    }

    /// Asks one question after another and returns the replies, until the person is needed.
    fn replies(file: &str, asked: &[(Dimension, Option<&str>)]) -> Vec<DialogReply> {
        let answers = Answers::parse(file).unwrap();
        let mut rounds = Vec::new();
        let mut replies = Vec::new();
        for (number, (dimension, proposed)) in (1..).zip(asked) {
            let open = round(number, *dimension, *proposed);
            rounds.push(open.clone());
            let Some(reply) = answers.reply(&open, &rounds) else {
                break;
            };
            // The same is asked again after a crash, and answered the same.
            assert_eq!(answers.reply(&open, &rounds), Some(reply.clone()));
            *rounds.last_mut().unwrap() = answered(open, &reply);
            replies.push(reply);
        }
        replies
    }

    fn said(text: &str) -> DialogReply {
        DialogReply::Answer(text.to_owned())
    }

    #[test]
    fn answers_are_taken_by_what_they_are_about_then_in_order_then_accepted() {
        let (goal, success) = (Dimension::Goal, Dimension::Success);
        let asked = [
            (goal, Some("p")),
            (success, Some("p")),
            (success, Some("p")),
            (success, Some("p")),
            (goal, Some("p")),
            (goal, Some("p")),
            (goal, None),
        ];
        let expected = [
            said("first"),
            said("the tests pass"),
            said("yes"),
            said("two\nlines"),
            said("yes"),
            DialogReply::Accept,
            DialogReply::Later(Some("the answers file does not answer it".to_owned())),
        ];
        assert_eq!(replies(FILE, &asked), expected);
    }

    #[test]
    fn without_otherwise_the_person_is_asked() {
        let goal = (Dimension::Goal, Some("p"));
        assert_eq!(replies("answers: [one]", &[goal, goal]), [said("one")]);
        assert_eq!(replies("{}", &[goal]), []);
        let later = "answers: [/later ask Ada, two]";
        let expected = [DialogReply::Later(Some("ask Ada".to_owned())), said("two")];
        assert_eq!(replies(later, &[goal, goal, goal]), expected);
    }

    #[test]
    fn a_key_nobody_knows_is_an_error() {
        for file in ["answer: [a]", "by: {scope: [a]}", "otherwise: maybe", "- a"] {
            assert!(Answers::parse(file).is_err(), "{file}");
        }
    }
}
