//! An interview as it stands.

use serde::{Deserialize, Serialize};

use crate::rules::handover::Spec;
use crate::rules::modes::interview::round::{Contradiction, InterviewAnswer, QuestionReply, Round};
use crate::rules::modes::interview::score::Score;

/// An interview.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interview {
    /// The commit that facts are looked up in; `None` where there is no repository.
    pub commit: Option<String>,
    /// Where it stands.
    pub phase: InterviewPhase,
    /// Every question so far.
    pub rounds: Vec<Round>,
    /// The goal as it was said back, and whether the person confirmed it.
    pub restated: Option<GoalRestatement>,
    /// How clear it is; `None` until three rounds were answered, and after every new answer.
    pub score: Option<Score>,
    /// How often in a row the score was good enough.
    pub streak: u32,
    /// Answers that do not fit together.
    pub contradictions: Vec<Contradiction>,
    /// The person says that it is enough: the next step is a draft.
    pub is_enough: bool,
    /// What was wrong with the interviewer's last proposals, in a row.
    pub refused: Vec<String>,
    /// The spec.
    pub spec: Option<Box<Spec>>,
    /// How many steps the interviewer took; part of the next effect's name.
    pub steps: u32,
    /// How often a person made the step that was being thought of unwanted; part of that name, too.
    pub restarts: u32,
}

/// The goal as it was said back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoalRestatement {
    /// The goal.
    pub goal: String,
    /// The round in which the person is asked about it.
    pub round: u32,
    /// Whether they said yes.
    pub is_confirmed: bool,
    /// How often it was said back.
    pub times: u32,
}

/// Where an interview stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterviewPhase {
    /// The interviewer thinks of the next step.
    Asking,
    /// A question waits for the person.
    Awaiting,
    /// The goal was said back and waits for the person.
    Restating,
    /// The spec waits for its approval.
    Spec,
    /// The spec is approved; the next mode is chosen by starting it.
    Branch,
    /// It goes on in another workflow.
    Linked,
}

impl Interview {
    /// Returns a round by its number.
    #[must_use]
    pub fn round(&self, number: u32) -> Option<&Round> {
        self.rounds.iter().find(|round| round.number == number)
    }

    /// Returns the question that waits for the person.
    #[must_use]
    pub fn open(&self) -> Option<&Round> {
        self.rounds
            .iter()
            .rev()
            .find(|round| matches!(round.reply, QuestionReply::Open))
    }

    /// Returns the answered rounds with their answers, oldest first.
    pub fn answered(&self) -> impl DoubleEndedIterator<Item = (&Round, &InterviewAnswer)> {
        self.rounds.iter().filter_map(|round| match &round.reply {
            QuestionReply::Answered(answer) => Some((round, answer)),
            QuestionReply::Open
            | QuestionReply::Deferred { .. }
            | QuestionReply::Withdrawn { .. } => None,
        })
    }

    /// Returns how many answers in a row, up to now, are nobody's own.
    #[must_use]
    pub fn without_a_person(&self) -> usize {
        self.answered()
            .rev()
            .take_while(|(_, answer)| !answer.provenance.is_persons())
            .count()
    }

    /// Returns the contradictions that nobody settled, with their numbers.
    pub fn unsettled(&self) -> impl Iterator<Item = (u32, &Contradiction)> {
        (1..)
            .zip(&self.contradictions)
            .filter(|(_, contradiction)| contradiction.settled_by.is_none())
    }

    /// Returns the number of the next round.
    #[must_use]
    pub fn next_round(&self) -> u32 {
        u32::try_from(self.rounds.len()).map_or(u32::MAX, |rounds| rounds.saturating_add(1))
    }

    /// Returns the goal that the person confirmed.
    #[must_use]
    pub fn confirmed_goal(&self) -> Option<&str> {
        let restated = self.restated.as_ref()?;
        restated.is_confirmed.then_some(restated.goal.as_str())
    }
}
