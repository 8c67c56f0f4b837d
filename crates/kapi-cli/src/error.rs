//! Errors as a person meets them: a kind that chooses the exit code, a text, and a hint.
//!
//! Kinds are decided here, once, for every error type below the command line.

use std::fmt;

use kapi_core::failure::{Failure, chain};
use kapi_goal::record::drive::GoalDriveError;
use kapi_goal::record::error::EngineError;
use kapi_goal::record::reference::ResolveError;
use kapi_goal::rules::denied::GoalDenial;
use kapi_launch::error::{LaunchError, LaunchErrorKind};
use kapi_settings::fault::SettingsFault;
use kapi_sys::shortage::is_shortage;
use kapi_wire::error::{ErrorView, FaultView, PlaceView};
use kapi_workflow::record::drive::WorkflowDriveError;
use kapi_workflow::record::error::WorkflowError;
use kapi_workflow::rules::denied::{WorkflowDenial, WorkflowRule};
use kapi_workflow::rules::target::TargetError;

use crate::exit_code::Exit;

/// An error that ends a command.
#[derive(Debug)]
pub(crate) struct Error {
    /// What the process exits with.
    pub(crate) exit: Exit,
    /// What is wrong.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) hint: Option<String>,
    /// What is wrong with files that a person wrote, each at its place.
    pub(crate) faults: Vec<SettingsFault>,
    /// Whether the machine is only short of something for now, such as room on its disk.
    pub(crate) is_shortage: bool,
}

impl Error {
    /// Builds an error of a kind.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            hint: None,
            faults: Vec::new(),
            is_shortage: false,
        }
    }

    /// Builds an error of the command line or the configuration.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Adds what to do about it.
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Builds an error from what is wrong with a file of settings: one fault with what to do, or all
    /// of them.
    pub(crate) fn settings(faults: &[SettingsFault]) -> Self {
        let mut error = match faults {
            [only] => {
                let end = if only.remedy.ends_with('?') { "" } else { "." };
                Self::usage(only.location_and_what()).with_hint(format!("{}{end}", only.remedy))
            }
            several => {
                let lines: Vec<String> =
                    several.iter().map(|fault| format!("\n  {fault}")).collect();
                Self::usage(format!("found {} errors:{}", lines.len(), lines.concat()))
                    .with_hint("fix each of them.")
            }
        };
        error.faults = faults.to_vec();
        error
    }

    /// Returns it as a program reads it.
    pub(crate) fn view(&self) -> ErrorView {
        let faults: Vec<FaultView> = self.faults.iter().map(fault_view).collect();
        ErrorView {
            kind: "error",
            code: self.exit.word(),
            exit_code: self.exit.code(),
            message: self.message.clone(),
            hint: self.hint.clone(),
            place: faults.first().map(|fault| fault.place.clone()),
            faults,
        }
    }

    /// Builds an error of the world from an error and its causes.
    pub(crate) fn failed(error: &(dyn std::error::Error + 'static)) -> Self {
        let failed = Self::new(Exit::Failed, format!("failed to {}", chain(error)));
        failed.with_shortage_of(error)
    }

    /// Notes whether the error that it is built from is a shortage that passes.
    pub(crate) fn with_shortage_of(mut self, error: &(dyn std::error::Error + 'static)) -> Self {
        self.is_shortage = is_shortage(error);
        self
    }

    /// Builds an error from what an adapter reports.
    pub(crate) fn world(failure: &Failure) -> Self {
        let mut error = Self::new(Exit::Failed, format!("failed to {}", failure.message));
        error.hint.clone_from(&failure.hint);
        error
    }

    /// Builds an error from what a launch or a command on a sandbox reports.
    pub(crate) fn launch(error: &LaunchError) -> Self {
        let (exit, message) = match error.kind {
            LaunchErrorKind::Usage => (Exit::Usage, error.message.clone()),
            LaunchErrorKind::Denied => (Exit::Denied, error.message.clone()),
            LaunchErrorKind::NotFound => (Exit::NotFound, error.message.clone()),
            LaunchErrorKind::Busy => (Exit::Busy, error.message.clone()),
            LaunchErrorKind::Failed => (Exit::Failed, format!("failed to {}", error.message)),
        };
        Self {
            exit,
            message,
            hint: error.hint.clone(),
            faults: Vec::new(),
            is_shortage: false,
        }
    }

    /// Builds an error from the engine's; `reference` names the goal in hints.
    pub(crate) fn engine(error: &EngineError, reference: &str) -> Self {
        let (exit, message) = match error {
            EngineError::Denied(denied) => (denied_exit(denied), denied.to_string()),
            EngineError::NotFound { .. } => (Exit::NotFound, format!("failed to {}", chain(error))),
            EngineError::Busy { .. } => (Exit::Busy, format!("failed to {}", chain(error))),
            EngineError::Corrupt(_)
            | EngineError::UnknownEvent { .. }
            | EngineError::Store(_)
            | EngineError::NotDerived(_) => (Exit::Failed, format!("failed to {}", chain(error))),
            EngineError::Encode { .. } => (Exit::Internal, format!("failed to {}", chain(error))),
        };
        Self {
            exit,
            message,
            hint: error.hint(reference),
            faults: Vec::new(),
            is_shortage: is_shortage(error),
        }
    }

    /// Builds an error from a drive that could not go on.
    pub(crate) fn drive(error: &GoalDriveError, reference: &str) -> Self {
        match error {
            GoalDriveError::Driven { .. } => {
                Self::new(Exit::Busy, format!("failed to {}", chain(error)))
                    .with_hint(format!("watch it with `kapi log {reference} -f`."))
            }
            GoalDriveError::Engine(error) => Self::engine(error, reference),
        }
    }

    /// Builds an error from a workflow's: what a rule refused says what it refused and where that
    /// stands.
    pub(crate) fn workflow(error: &WorkflowError) -> Self {
        let exit = match error {
            WorkflowError::Denied(denied) => match denied.why {
                WorkflowRule::Malformed { .. } => Exit::Usage,
                WorkflowRule::NotStarted => Exit::NotFound,
                WorkflowRule::AlreadyStarted { .. }
                | WorkflowRule::AlreadyTerminal { .. }
                | WorkflowRule::NoPendingDecision
                | WorkflowRule::SubjectChanged { .. }
                | WorkflowRule::RisksNotAccepted { .. }
                | WorkflowRule::WrongPhase { .. }
                | WorkflowRule::WrongMode { .. }
                | WorkflowRule::NotReady { .. }
                | WorkflowRule::WeakEvidence { .. }
                | WorkflowRule::NotInFlight { .. }
                | WorkflowRule::OnlyHuman { .. }
                | WorkflowRule::OnlyEngine { .. } => Exit::Denied,
            },
            WorkflowError::NotApprovedHere { .. } => Exit::Denied,
            WorkflowError::NotFound { .. } => Exit::NotFound,
            WorkflowError::Target(error) => match error {
                TargetError::Unknown { .. } => Exit::NotFound,
                TargetError::Ambiguous { .. } => Exit::Usage,
                TargetError::WrongMode { .. }
                | TargetError::AlreadyTerminal { .. }
                | TargetError::NotLinked { .. }
                | TargetError::NotApproved { .. } => Exit::Denied,
            },
            WorkflowError::Name(_) => Exit::Usage,
            WorkflowError::Engine(error) => return Self::engine(error, ""),
        };
        let code = error
            .denied_code()
            .map_or_else(String::new, |code| format!("{code}: "));
        let location = match error {
            WorkflowError::Denied(denied) => phase(denied),
            WorkflowError::NotApprovedHere { .. }
            | WorkflowError::NotFound { .. }
            | WorkflowError::Target(_)
            | WorkflowError::Name(_)
            | WorkflowError::Engine(_) => String::new(),
        };
        Self {
            exit,
            message: format!("{code}failed to {}{location}", chain(error)),
            hint: error.hint(),
            faults: Vec::new(),
            is_shortage: is_shortage(error),
        }
    }

    /// Builds an error from the drive of a workflow that could not go on.
    pub(crate) fn workflow_drive(error: &WorkflowDriveError) -> Self {
        match error {
            WorkflowDriveError::Driven { workflow, .. } => {
                Self::new(Exit::Busy, format!("failed to {}", chain(error)))
                    .with_hint(format!("`kapi status {:03}` shows it.", workflow.index()))
            }
            WorkflowDriveError::Workflow(error) => Self::workflow(error),
        }
    }

    /// Builds an error from a reference that does not name one goal.
    pub(crate) fn resolve(error: &ResolveError) -> Self {
        let exit = match error {
            ResolveError::Unknown { .. }
            | ResolveError::Workflow { .. }
            | ResolveError::OtherKind { .. } => Exit::NotFound,
            ResolveError::Ambiguous { .. } => Exit::Usage,
            ResolveError::Store(_) => Exit::Failed,
        };
        Self {
            exit,
            message: format!("failed to {}", chain(error)),
            hint: error.hint(),
            faults: Vec::new(),
            is_shortage: is_shortage(error),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

fn fault_view(fault: &SettingsFault) -> FaultView {
    FaultView {
        place: PlaceView {
            file: fault.file.clone(),
            line: Some(fault.line).filter(|line| *line > 0),
            key: fault.key.clone(),
        },
        what: fault.what.clone(),
        remedy: fault.remedy.clone(),
    }
}

/// Returns where a workflow stands that refused, and what waits there.
fn phase(denied: &WorkflowDenial) -> String {
    let Some((phase, subphase)) = denied.phase else {
        return String::new();
    };
    let location = subphase.map_or_else(|| phase.to_owned(), |sub| format!("{phase}/{sub}"));
    match denied.pending {
        Some(decision) => format!(" (in {location}; {} waits)", decision.words()),
        None => format!(" (in {location})"),
    }
}

/// A contract or a raise that breaks a rule was typed wrong; everything else was refused.
const fn denied_exit(denied: &GoalDenial) -> Exit {
    match denied {
        GoalDenial::BadContract { .. } | GoalDenial::BadRaise { .. } => Exit::Usage,
        GoalDenial::NoGoal => Exit::NotFound,
        GoalDenial::GoalExists
        | GoalDenial::OnlyHuman { .. }
        | GoalDenial::OnlyEngine { .. }
        | GoalDenial::OnlyAgent { .. }
        | GoalDenial::Refused { .. }
        | GoalDenial::WrongHash { .. }
        | GoalDenial::WrongStatus { .. }
        | GoalDenial::BudgetUsedUp { .. }
        | GoalDenial::NoLimit { .. }
        | GoalDenial::NotUnderWay { .. }
        | GoalDenial::WrongOutcome { .. } => Exit::Denied,
    }
}

/// Returns nothing where what was looked for does not exist.
pub(crate) fn optional<T>(found: Result<T, Error>) -> Result<Option<T>, Error> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.exit == Exit::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
