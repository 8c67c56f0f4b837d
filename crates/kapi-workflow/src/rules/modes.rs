//! Every durable mode there is, in one list, and what the lifecycle keeps of each.
//!
//! The list is all of it. What a mode's types mean stands in the mode's own folder; the names by which
//! a log knows a mode are written out here, so that no line of a log changes with a type's name.

pub mod autoresearch;
pub mod integrate;
pub mod interview;
pub mod ralph;
#[cfg(test)]
pub mod toy;

use kapi_core::id::GoalId;
use kapi_core::link::Link;
use kapi_core::mode::Mode;
use serde::{Deserialize, Deserializer, Serialize};

use crate::rules::handover::Spec;
use crate::rules::role::RoleSpec;

/// The list, handed to a macro that makes something of it.
macro_rules! every_mode {
    ($make:ident) => {
        $make! {
            there are {
                DeepInterview,
                "Clarifies what you want by asking until it is clear.",
                as Interview "interview" in interview {
                    state: crate::rules::modes::interview::state::Interview,
                    begin: crate::rules::modes::interview::begin::InterviewBegin,
                    event: crate::rules::modes::interview::event::InterviewEvent,
                    command: crate::rules::modes::interview::command::InterviewCommand,
                    answer: crate::rules::modes::interview::step::InterviewStep,
                    carried: spec as Option<Box<crate::rules::handover::Spec>>,
                }
                Ralph,
                "Governed build: plan, approval, execution, review, closeout.",
                as Ralph "ralph" in ralph {
                    state: crate::rules::modes::ralph::state::Ralph,
                    begin: crate::rules::context_begin::ContextBegin,
                    event: crate::rules::modes::ralph::event::RalphEvent,
                    command: crate::rules::modes::ralph::command::RalphCommand,
                    answer: crate::rules::modes::ralph::answer::RalphAnswer,
                    carried: plan as Option<Box<crate::rules::modes::ralph::plan::RalphPlan>>,
                }
                Autoresearch,
                "Governed optimisation of a metric: contract, approval, experiments, finish.",
                as Autoresearch "autoresearch" in autoresearch {
                    state: crate::rules::modes::autoresearch::state::Autoresearch,
                    begin: crate::rules::context_begin::ContextBegin,
                    event: crate::rules::modes::autoresearch::event::AutoresearchEvent,
                    command: crate::rules::modes::autoresearch::command::AutoresearchCommand,
                    answer: crate::rules::modes::autoresearch::answer::AutoresearchAnswer,
                    carried: contract
                        as Option<Box<crate::rules::modes::autoresearch::contract::Contract>>,
                }
                Integrate,
                "Governed integration: inspection, plan, approval, merge, verification, consensus.",
                as Integrate "integrate" in integrate {
                    state: crate::rules::modes::integrate::state::Integrate,
                    begin: crate::rules::modes::integrate::begin::IntegrateBegin,
                    event: crate::rules::modes::integrate::event::IntegrateEvent,
                    command: crate::rules::modes::integrate::command::IntegrateCommand,
                    answer: crate::rules::modes::integrate::answer::IntegrateAnswer,
                    carried: plan as Option<Box<crate::rules::modes::integrate::plan::MergePlan>>,
                }
                #[cfg(test)]
                Toy,
                "A scale that is described, approved and carried.",
                as Toy "toy" in toy {
                    state: crate::rules::modes::toy::state::Toy,
                    begin: crate::rules::modes::toy::begin::ToyBegin,
                    event: crate::rules::modes::toy::event::ToyEvent,
                    command: crate::rules::modes::toy::command::ToyCommand,
                    answer: crate::rules::modes::toy::answer::ToyAnswer,
                    carried: draft as Option<Box<crate::rules::modes::toy::answer::ToyAnswer>>,
                }
            }
            there will be {
                #[cfg(not(test))]
                Toy;
            }
        }
    };
}

/// Makes of the list what is one of every mode's, and the way to the mode that one of them is of.
macro_rules! parts {
    (
        there are { $(
            $(#[cfg($($cfg:tt)*)])?
            $mode:ident, $about:literal, as $tag:ident $word:literal in $folder:ident {
                state: $state:ty,
                begin: $begin:ty,
                event: $event:ty,
                command: $command:ty,
                answer: $answer:ty,
                carried: $field:ident as $carried:ty,
            }
        )+ }
        there will be { $($(#[cfg($($not:tt)*)])? $later:ident;)* }
    ) => {
        /// The mode's own part of a workflow.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub enum Body {
            $($(#[cfg($($cfg)*)])? #[doc = $about] #[serde(rename = $word)] $tag(Box<$state>),)+
        }

        impl Body {
            /// Returns what an approval lets be carried out.
            #[must_use]
            pub const fn carried(&self) -> ApprovedContent<'_> {
                match self {
                    $($(#[cfg($($cfg)*)])? Self::$tag(state) => ApprovedContent::$tag(&state.$field),)+
                }
            }
        }

        /// What an approval lets be carried out, apart from how it is shown; written only, for its
        /// hash.
        #[derive(Debug, Serialize)]
        #[serde(untagged)]
        pub enum ApprovedContent<'a> {
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
                        let state = <$state>::begun(begin);
                        (Body::$tag(Box::new(state)), begin.links(at_ms))
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
                    $($(#[cfg($($not)*)])? Mode::$later => Err(serde::de::Error::custom("this mode is not available yet")),)*
                }
            }
        }
    };
}

every_mode!(parts);
