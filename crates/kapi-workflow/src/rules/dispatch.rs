//! From a value of one mode to what the mode brings with it: its table, its rules, and the shared log
//! and request that its own facts and requests are part of.
//!
//! The second reading of the list of modes. Everything may ask for this by a method; nothing here is a
//! type, so that no type depends on what is done with it.

use kapi_core::actor::Actor;
use kapi_core::mode::Mode;

use crate::rules::command::WorkflowCommand;
use crate::rules::decide::{going_on, wrong_mode};
use crate::rules::decision_context::DecisionContext;
use crate::rules::denied::WorkflowRule;
use crate::rules::event::WorkflowEvent;
use crate::rules::mode_rules::ModeRules;
use crate::rules::mode_spec::{ContextRule, ModeSpec};
use crate::rules::modes;
use crate::rules::modes::{Body, ModeCommand, ModeEvent};
use crate::rules::state::Workflow;

/// Makes of the list the ways to each mode.
macro_rules! ways {
    (
        there are { $(
            $(#[cfg($($cfg:tt)*)])?
            $mode:ident, $about:literal, as $tag:ident $word:literal in $folder:ident {
                state: $state:ty,
                begin: $begin:ty,
                event: $event:ty,
                command: $command:ty,
                $($part:tt)*
            }
        )+ }
        there will be { $($(#[cfg($($not:tt)*)])? $later:ident;)* }
    ) => {
        impl ModeSpec {
            /// Returns a mode's table; `None` for a mode that there is only by name yet.
            #[must_use]
            pub const fn of(mode: Mode) -> Option<&'static Self> {
                match mode {
                    $($(#[cfg($($cfg)*)])? Mode::$mode => Some(&modes::$folder::spec::SPEC),)+
                    $($(#[cfg($($not)*)])? Mode::$later => None,)*
                }
            }
        }

        impl ModeSpec {
            /// The tables of the modes that there are.
            const ALL: &[&Self] = &[
                $($(#[cfg($($cfg)*)])? &modes::$folder::spec::SPEC,)+
            ];
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
        }

        impl Body {
            /// Decides a request that only one mode knows.
            ///
            /// # Errors
            /// When a rule refuses; when the request is another mode's.
            pub(crate) fn ask(
                &self,
                workflow: &Workflow,
                actor: &Actor,
                command: &ModeCommand,
                given: &DecisionContext,
            ) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
                match (self, command) {
                    $($(#[cfg($($cfg)*)])? (Self::$tag(state), ModeCommand::$tag(command)) => {
                        going_on(workflow, modes::$folder::spec::SPEC.goes_on)?;
                        modes::$folder::decide::ask(workflow, state, actor, command, given)
                    })+
                    (_, command) => Err(wrong_mode(workflow, command.spec().asks)),
                }
            }
        }

        impl ModeCommand {
            /// Returns the table of the mode that it is of.
            pub(crate) const fn spec(&self) -> &'static ModeSpec {
                match self {
                    $($(#[cfg($($cfg)*)])? Self::$tag(_) => &modes::$folder::spec::SPEC,)+
                }
            }
        }

        $(
            $(#[cfg($($cfg)*)])?
            impl From<$event> for WorkflowEvent {
                fn from(event: $event) -> Self {
                    Self::Mode(ModeEvent::$tag(event))
                }
            }

            $(#[cfg($($cfg)*)])?
            impl From<$command> for WorkflowCommand {
                fn from(command: $command) -> Self {
                    Self::Mode(ModeCommand::$tag(command))
                }
            }
        )+
    };
}

every_mode!(ways);

impl ModeSpec {
    /// Returns what one of a mode's workflows is called.
    #[must_use]
    pub fn noun_of(mode: Mode) -> &'static str {
        Self::of(mode).map_or(mode.as_str(), |spec| spec.noun)
    }

    /// Returns the modes that may begin with what another one hands over.
    pub fn takers() -> impl Iterator<Item = Mode> {
        let takers = Self::all().filter(|spec| spec.context == ContextRule::Takes);
        takers.map(|spec| spec.mode)
    }

    /// Returns the tables of the modes that there are.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        Self::ALL.iter().copied()
    }
}
