//! What came of a launch, and the exit code of the whole.
//!
//! Says whose failure it is. Does nothing to the sandbox or the record.

use std::path::PathBuf;

use kapi_core::agent_end::AgentEnd;
use kapi_core::usage::Usage;
use kapi_run::spending::SpendingStop;
use kapi_status::file::ErrorClass;
use kapi_sys::process::ProcessEnd;

use super::active_launch::ActiveLaunch;
use super::agent::AgentEnding;
use super::error::{LaunchError, LaunchErrorKind};
use super::finish::ChangedPathView;
use super::record::SandboxRecord;

/// The exit code of a launch whose agent did well and whose work could not be kept or pushed.
pub(crate) const OURS_FAILED: i32 = 4;
/// The exit code of a launch that a limit of its own ended.
const NOT_DONE: i32 = 5;
/// What is added to an agent's exit code that is one of Kapi's own.
const APART: i32 = 100;

/// A launch that came to its end, well or not.
#[derive(Debug)]
pub struct LaunchResult {
    /// The sandbox as it is now.
    pub record: SandboxRecord,
    /// The exit code of the whole: the agent's own, unless it did well and we did not.
    pub exit_code: i32,
    /// The agent's own.
    pub agent_exit_code: i32,
    /// What the agent made of its turn; none where nobody reads what it says.
    pub agent_end: Option<AgentEnd>,
    /// How the agent's process ended.
    pub process_end: ProcessEnd,
    /// What went wrong.
    pub error: Option<LaunchError>,
    /// Whether a limit ended it.
    pub limit: LimitOutcome,
    /// The agent's last message.
    pub message: String,
    /// What the agent used.
    pub usage: Usage,
    /// The commit of this launch, unless nothing was changed or there is no branch.
    pub commit: Option<String>,
    /// What differs from the start.
    pub changed: Vec<ChangedPathView>,
    /// What was not taken, and why.
    pub left_out: Vec<String>,
    /// Where the status file is.
    pub status_path: PathBuf,
}

/// Whether a launch stayed within its own limits, and the caps on spending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitOutcome {
    /// It did.
    Within,
    /// A limit on tokens or money, or a cap, ended it.
    Met,
    /// Nobody can tell: what it used cannot be booked, and that ended it.
    Unbooked,
}

impl LaunchResult {
    /// Returns whose failure it ended with.
    #[must_use]
    pub fn class(&self) -> Option<ErrorClass> {
        match self.limit {
            LimitOutcome::Within => {}
            LimitOutcome::Met => return Some(ErrorClass::Limit),
            LimitOutcome::Unbooked => return Some(ErrorClass::Kapi),
        }
        match (self.agent_exit_code, self.process_end) {
            (0, _) => self.error.as_ref().map(|_| ErrorClass::Kapi),
            (_, ProcessEnd::DeadlinePassed | ProcessEnd::IdlePassed) => Some(ErrorClass::Timeout),
            (_, ProcessEnd::Cancelled) => Some(ErrorClass::Stopped),
            (_, _) => Some(ErrorClass::Agent),
        }
    }

    /// Notes which limit or cap ended it, if one did.
    pub(crate) fn meet(&mut self, launch: &ActiveLaunch<'_>) {
        if let Some(met) = launch.used.met(&self.usage) {
            self.met_limit(&met);
        } else if let Some(stopped) = (launch.stage.stopped)() {
            self.met_cap(stopped);
        }
    }

    /// Notes why whoever books it has ended it.
    fn met_cap(&mut self, stopped: SpendingStop) {
        match stopped {
            SpendingStop::Cap(cap) => {
                self.error = Some(LaunchError::new(
                    LaunchErrorKind::Denied,
                    format!("the launch was ended at a spending cap: {cap}"),
                    "its work is kept; see `kapi spend`, and set caps under [spend].",
                ));
                self.exit_code = NOT_DONE;
                self.limit = LimitOutcome::Met;
            }
            SpendingStop::Ledger(failure) => {
                self.error = Some(failure.into());
                self.exit_code = OURS_FAILED;
                self.limit = LimitOutcome::Unbooked;
            }
        }
    }

    /// Notes which limit ended it.
    fn met_limit(&mut self, met: &str) {
        let (what, advice) = met.split_once("; ").unwrap_or((met, ""));
        let hint = if advice.is_empty() || advice.contains("kapi budget") {
            "its work is kept; launch it again with a higher `--tokens` or `--usd`.".to_owned()
        } else {
            format!("{advice}.")
        };
        let message = format!("the launch was ended at its limit: {what}");
        self.error = Some(LaunchError::new(LaunchErrorKind::Denied, message, hint));
        self.exit_code = NOT_DONE;
        self.limit = LimitOutcome::Met;
    }
}

/// Returns an agent's exit code apart from those of Kapi itself, so that whoever started the launch
/// can tell them: 2 to 7 are 102 to 107.
const fn apart(code: i32) -> i32 {
    match code {
        2..=7 => APART + code,
        code => code,
    }
}

/// Returns what came of a launch whose agent has ended, before its work is kept.
pub(crate) fn conclude(ended: &AgentEnding, mut record: SandboxRecord) -> LaunchResult {
    record.grade.clone_from(&ended.grade);
    let error = ended.error.as_ref().map(|message| LaunchError {
        kind: LaunchErrorKind::Failed,
        message: message.clone(),
        hint: None,
    });
    LaunchResult {
        record,
        exit_code: apart(ended.exit_code),
        agent_exit_code: ended.exit_code,
        agent_end: ended.agent_end.clone(),
        process_end: ended.process_end,
        error,
        limit: LimitOutcome::Within,
        message: ended.message.clone(),
        usage: ended.usage,
        commit: None,
        changed: Vec::new(),
        left_out: Vec::new(),
        status_path: PathBuf::new(),
    }
}
