//! Every durable mode there is, in one list: what the lifecycle keeps of each, and whose rules are
//! asked.
//!
//! The list is all of it. What a mode's types mean stands in the mode's own folder; the names by which
//! a log knows a mode are written out here, so that no line of a log changes with a type's name.

pub mod interview;
pub mod ralph;

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::id::GoalId;
use crate::workflow::command::Command;
use crate::workflow::event::Event;
use crate::workflow::handover::Spec;
use crate::workflow::link::Link;
use crate::workflow::mode_rules::ModeRules;
use crate::workflow::mode_spec::{ContextRule, ModeSpec};
use crate::workflow::role::RoleSpec;

/// Makes of the list what is one of every mode's: the enumerations, and the way to the mode that one of
/// their values is of.
macro_rules! modes {
    (
        there are { $(
            $(#[cfg($($cfg:tt)*)])?
            $mode:ident $name:literal, $about:literal, as $tag:ident $word:literal {
                spec: $spec:path,
                state: $state:ty,
                begin: $begin:ty,
                event: $event:ty,
                command: $command:ty,
                answer: $answer:ty,
                carried: $field:ident as $carried:ty,
            }
        )+ }
        there will be { $($later:ident $later_name:literal, $later_about:literal;)* }
    ) => {
        /// A durable mode.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Mode {
            $($(#[cfg($($cfg)*)])? #[doc = $about] #[serde(rename = $name)] $mode,)+
            $(#[doc = $later_about] #[serde(rename = $later_name)] $later,)*
        }

        impl Mode {
            /// Every mode there is, those included that there are only by name yet.
            pub const ALL: [Self; [
                $($(#[cfg($($cfg)*)])? $name,)+ $($later_name,)*
            ].len()] = [
                $($(#[cfg($($cfg)*)])? Self::$mode,)+ $(Self::$later,)*
            ];

            /// Returns the name, which is also the name of its directory and its command.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($(#[cfg($($cfg)*)])? Self::$mode => $name,)+
                    $(Self::$later => $later_name,)*
                }
            }

            /// Returns the table; `None` for a mode that there is only by name yet.
            #[must_use]
            pub const fn spec(self) -> Option<&'static ModeSpec> {
                match self {
                    $($(#[cfg($($cfg)*)])? Self::$mode => Some(&$spec),)+
                    $(Self::$later => None,)*
                }
            }
        }

        /// The mode's own part of a workflow.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub enum Body {
            $($(#[cfg($($cfg)*)])? #[doc = $about] #[serde(rename = $word)] $tag(Box<$state>),)+
        }

        impl Body {
            /// Returns what the mode decides, wants and shows.
            #[must_use]
            pub fn rules(&self) -> &dyn ModeRules {
                match self {
                    $($(#[cfg($($cfg)*)])? Self::$tag(state) => &**state,)+
                }
            }

            /// Returns how the mode folds.
            pub fn rules_mut(&mut self) -> &mut dyn ModeRules {
                match self {
                    $($(#[cfg($($cfg)*)])? Self::$tag(state) => &mut **state,)+
                }
            }

            /// Returns what an approval lets be carried out.
            #[must_use]
            pub const fn carried(&self) -> Carried<'_> {
                match self {
                    $($(#[cfg($($cfg)*)])? Self::$tag(state) => Carried::$tag(&state.$field),)+
                }
            }
        }

        /// What an approval lets be carried out, apart from how it is shown; written only, for its
        /// hash.
        #[derive(Debug, Serialize)]
        #[serde(untagged)]
        pub enum Carried<'a> {
            $($(#[cfg($($cfg)*)])? #[doc = $about] $tag(&'a $carried),)+
        }

        /// How a mode begins.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Begin {
            $($(#[cfg($($cfg)*)])? #[doc = $about] #[serde(rename = $word)] $tag($begin),)+
        }

        impl Begin {
            /// Returns which mode begins.
            #[must_use]
            pub const fn mode(&self) -> Mode {
                match self {
                    $($(#[cfg($($cfg)*)])? Self::$tag(_) => Mode::$mode,)+
                }
            }

            /// Returns what is wrong with it.
            #[must_use]
            pub const fn fault(&self) -> Option<&'static str> {
                match self {
                    $($(#[cfg($($cfg)*)])? Self::$tag(begin) => begin.fault(),)+
                }
            }

            /// Returns the workflow that gives it its context.
            #[must_use]
            pub const fn context(&self) -> Option<&GoalId> {
                match self {
                    $($(#[cfg($($cfg)*)])? Self::$tag(begin) => begin.context(),)+
                }
            }

            /// Returns what that workflow handed over.
            #[must_use]
            pub fn handover(&self) -> Option<&Spec> {
                match self {
                    $($(#[cfg($($cfg)*)])? Self::$tag(begin) => begin.handover(),)+
                }
            }

            /// Takes what that workflow handed over.
            #[must_use]
            pub fn with_handover(self, handover: Option<Box<Spec>>) -> Self {
                match self {
                    $($(#[cfg($($cfg)*)])? Self::$tag(begin) => {
                        Self::$tag(begin.with_handover(handover))
                    })+
                }
            }

            /// Returns the mode's part of the workflow, and the links that it begins with.
            pub(crate) fn body(&self, at_ms: i64) -> (Body, Vec<Link>) {
                match self {
                    $($(#[cfg($($cfg)*)])? Self::$tag(begin) => {
                        let (state, links) = begin.body(at_ms);
                        (Body::$tag(Box::new(state)), links)
                    })+
                }
            }
        }

        /// A fact that only its mode knows.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(tag = "type", content = "data", deny_unknown_fields)]
        pub enum ModeEvent {
            $($(#[cfg($($cfg)*)])? #[doc = $about] #[serde(rename = $word)] $tag($event),)+
        }

        impl ModeEvent {
            /// Returns which mode it is of.
            #[must_use]
            pub const fn mode(&self) -> Mode {
                match self {
                    $($(#[cfg($($cfg)*)])? Self::$tag(_) => Mode::$mode,)+
                }
            }

            /// The names by which a log tells whose fact it is.
            pub(crate) const KINDS: &[&str] = &[$($(#[cfg($($cfg)*)])? $word,)+];
        }

        /// A request that only its mode knows.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum ModeCommand {
            $($(#[cfg($($cfg)*)])? #[doc = $about] $tag($command),)+
        }

        impl ModeCommand {
            /// Returns the table of the mode that it is of.
            pub(crate) const fn spec(&self) -> &'static ModeSpec {
                match self {
                    $($(#[cfg($($cfg)*)])? Self::$tag(_) => &$spec,)+
                }
            }
        }

        /// What an agent answered, in the shape it was asked for.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum ModeAnswer {
            $($(#[cfg($($cfg)*)])? #[doc = $about] $tag($answer),)+
        }

        impl ModeAnswer {
            /// Reads an answer in a role.
            ///
            /// # Errors
            /// When it has not the shape that was asked for.
            pub fn read<'de, D: Deserializer<'de>>(
                role: &RoleSpec,
                from: D,
            ) -> Result<Self, D::Error> {
                match role.mode {
                    $($(#[cfg($($cfg)*)])? Mode::$mode => {
                        <$answer>::read(role, from).map(Self::$tag)
                    })+
                    $(Mode::$later => Err(D::Error::custom("there is no such mode yet")),)*
                }
            }
        }

        $(
            $(#[cfg($($cfg)*)])?
            impl From<$event> for Event {
                fn from(event: $event) -> Self {
                    Self::Mode(ModeEvent::$tag(event))
                }
            }

            $(#[cfg($($cfg)*)])?
            impl From<$command> for Command {
                fn from(command: $command) -> Self {
                    Self::Mode(ModeCommand::$tag(command))
                }
            }
        )+
    };
}

modes! {
    there are {
        DeepInterview "deep-interview",
        "Context creation: what a person wants, asked until it is clear.",
        as Interview "interview" {
            spec: interview::spec::SPEC,
            state: interview::state::Interview,
            begin: interview::begin::InterviewBegin,
            event: interview::event::InterviewEvent,
            command: interview::command::InterviewCommand,
            answer: interview::step::Step,
            carried: spec as Option<Box<Spec>>,
        }
        Ralph "ralph",
        "Governed build: plan, approval, execution, review, closeout.",
        as Ralph "ralph" {
            spec: ralph::spec::SPEC,
            state: ralph::state::Ralph,
            begin: ralph::begin::RalphBegin,
            event: ralph::event::RalphEvent,
            command: ralph::command::RalphCommand,
            answer: ralph::answer::RalphAnswer,
            carried: plan as Option<Box<ralph::plan::Plan>>,
        }
    }
    there will be {
        Autoresearch "autoresearch", "Governed optimisation of a metric.";
        Integrate "integrate", "Governed integration of branches.";
    }
}

impl Mode {
    /// The mode that others take their context from.
    pub const CONTEXT: Self = Self::DeepInterview;
    /// The mode that takes the work of others over.
    pub const INTEGRATOR: Self = Self::Integrate;

    /// Returns what one of its workflows is called.
    #[must_use]
    pub fn noun(self) -> &'static str {
        self.spec().map_or(self.as_str(), |spec| spec.noun)
    }

    /// Reads a name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == name)
    }

    /// Returns the modes that may begin with what another one hands over.
    pub fn takers() -> impl Iterator<Item = Self> {
        let takers = Self::specs().filter(|spec| spec.context == ContextRule::Takes);
        takers.map(|spec| spec.mode)
    }

    /// Returns the tables of the modes that there are.
    pub fn specs() -> impl Iterator<Item = &'static ModeSpec> {
        Self::ALL.into_iter().filter_map(Self::spec)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}
