//! Every durable mode there is, in one list: what the lifecycle keeps of each, and whose rules are
//! asked.
//!
//! Knows no mode but by its types; what they mean stands in the mode's own folder.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::id::GoalId;
use crate::workflow::command::Command;
use crate::workflow::event::Event;
use crate::workflow::handover::Spec;
use crate::workflow::interview::begin::InterviewBegin;
use crate::workflow::interview::command::InterviewCommand;
use crate::workflow::interview::event::InterviewEvent;
use crate::workflow::interview::step::Step;
use crate::workflow::link::Link;
use crate::workflow::mode::Mode;
use crate::workflow::mode_spec::ModeSpec;
use crate::workflow::ralph::answer::RalphAnswer;
use crate::workflow::ralph::begin::RalphBegin;
use crate::workflow::ralph::command::RalphCommand;
use crate::workflow::ralph::event::RalphEvent;
use crate::workflow::ralph::plan::Plan;
use crate::workflow::role::RoleSpec;
use crate::workflow::state::Body;
use crate::workflow::{interview, ralph};

/// A fact that only its mode knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    content = "data",
    rename_all = "snake_case",
    deny_unknown_fields
)]
pub enum ModeEvent {
    /// Something happened in an interview.
    Interview(InterviewEvent),
    /// Something happened in a Ralph workflow.
    Ralph(RalphEvent),
}

impl ModeEvent {
    /// The names by which a log tells whose fact it is.
    pub(crate) const KINDS: &[&str] = &["interview", "ralph"];
}

impl From<InterviewEvent> for Event {
    fn from(event: InterviewEvent) -> Self {
        Self::Mode(ModeEvent::Interview(event))
    }
}

impl From<RalphEvent> for Event {
    fn from(event: RalphEvent) -> Self {
        Self::Mode(ModeEvent::Ralph(event))
    }
}

/// A request that only its mode knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModeCommand {
    /// Ask something of an interview.
    Interview(InterviewCommand),
    /// Ask something of a Ralph workflow.
    Ralph(RalphCommand),
}

impl ModeCommand {
    /// Returns the table of the mode that it is of.
    #[must_use]
    pub(crate) const fn spec(&self) -> &'static ModeSpec {
        match self {
            Self::Interview(_) => &interview::spec::SPEC,
            Self::Ralph(_) => &ralph::spec::SPEC,
        }
    }
}

impl From<InterviewCommand> for Command {
    fn from(command: InterviewCommand) -> Self {
        Self::Mode(ModeCommand::Interview(command))
    }
}

impl From<RalphCommand> for Command {
    fn from(command: RalphCommand) -> Self {
        Self::Mode(ModeCommand::Ralph(command))
    }
}

/// What an agent answered, in the shape it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModeAnswer {
    /// The next step of an interview.
    Interview(Step),
    /// An answer in a role of a build.
    Ralph(RalphAnswer),
}

impl ModeAnswer {
    /// Reads an answer in a role.
    ///
    /// # Errors
    /// When it has not the shape that was asked for.
    pub fn read<'de, D: Deserializer<'de>>(role: &RoleSpec, from: D) -> Result<Self, D::Error> {
        match role.mode {
            Mode::DeepInterview => Step::deserialize(from).map(Self::Interview),
            Mode::Ralph => RalphAnswer::read(role, from).map(Self::Ralph),
            Mode::Autoresearch | Mode::Integrate => Err(D::Error::custom(format!(
                "nobody is asked as {}",
                role.name
            ))),
        }
    }
}

/// What an approval of a mode lets be carried out, apart from how it is shown; written only, for its
/// hash.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Carried<'a> {
    /// The spec of an interview.
    Interview(&'a Option<Box<Spec>>),
    /// The plan of a build.
    Ralph(&'a Option<Box<Plan>>),
}

impl Body {
    /// Returns what an approval lets be carried out.
    #[must_use]
    pub const fn carried(&self) -> Carried<'_> {
        match self {
            Self::Interview(interview) => Carried::Interview(&interview.spec),
            Self::Ralph(ralph) => Carried::Ralph(&ralph.plan),
        }
    }
}

/// How a mode begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Begin {
    /// A Deep Interview.
    Interview(InterviewBegin),
    /// A Ralph workflow.
    Ralph(RalphBegin),
}

impl Begin {
    /// Returns which mode begins.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        match self {
            Self::Interview(_) => Mode::DeepInterview,
            Self::Ralph(_) => Mode::Ralph,
        }
    }

    /// Returns what is wrong with it.
    #[must_use]
    pub const fn fault(&self) -> Option<&'static str> {
        match self {
            Self::Interview(begin) => begin.fault(),
            Self::Ralph(begin) => begin.fault(),
        }
    }

    /// Returns the workflow that gives it its context.
    #[must_use]
    pub const fn context(&self) -> Option<&GoalId> {
        match self {
            Self::Interview(begin) => begin.context(),
            Self::Ralph(begin) => begin.context(),
        }
    }

    /// Returns what that workflow handed over.
    #[must_use]
    pub fn handover(&self) -> Option<&Spec> {
        match self {
            Self::Interview(begin) => begin.handover(),
            Self::Ralph(begin) => begin.handover(),
        }
    }

    /// Takes what that workflow handed over.
    #[must_use]
    pub fn with_handover(self, handover: Option<Box<Spec>>) -> Self {
        match self {
            Self::Interview(begin) => Self::Interview(begin.with_handover(handover)),
            Self::Ralph(begin) => Self::Ralph(begin.with_handover(handover)),
        }
    }

    /// Returns the mode's part of the workflow, and the links that it begins with.
    pub(crate) fn body(&self, at_ms: i64) -> (Body, Vec<Link>) {
        match self {
            Self::Interview(begin) => {
                let (state, links) = begin.body(at_ms);
                (Body::Interview(Box::new(state)), links)
            }
            Self::Ralph(begin) => {
                let (state, links) = begin.body(at_ms);
                (Body::Ralph(Box::new(state)), links)
            }
        }
    }
}
