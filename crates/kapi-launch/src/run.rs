//! One launch from its first check to its last word.
//!
//! Nothing is made before everything was decided, and what is made is on record first: whatever
//! kills the launcher, the record says what there is and the next launch goes on with it.

use kapi_core::agent_end::AgentEnd;
use kapi_core::usage::Usage;
use kapi_machine::watch::{Activity, RoomQuery};
use kapi_run::host_grants::HostGrants;
use kapi_run::spending::SpendingStop;
use kapi_run::spending::usage_meter::UsageMeter;
use kapi_status::file::ErrorClass;
use kapi_status::perform::writer::{LaunchCompletion, StatusIdentity, StatusWriter};
use kapi_status::rules::phase::StatusPhase;
use kapi_sys::process::ProcessEnd;

use super::active_launch::{ActiveLaunch, LaunchAttempt};
use super::agent::AgentEnding;
use super::bounds::Bounds;
use super::context::LaunchHandlers;
use super::ending::LaunchEnding;
use super::error::{LaunchError, LaunchErrorKind};
use super::event::EndedAgent;
use super::finish::ChangedPathView;
use super::inputs::LaunchInputs;
use super::limits::LimitedUse;
use super::plan::{Conduct, LaunchPlan};
use super::record::{LaunchState, SandboxRecord, WorkspaceKind};
use super::shown::included;
use super::{agent, decide, enter, log, prepare};

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
    pub status_path: std::path::PathBuf,
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
    fn meet(&mut self, launch: &ActiveLaunch<'_>) {
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

/// Performs a launch.
///
/// # Errors
/// When it could not begin, or the agent could not be run. How an agent ended is no error.
pub fn launch(
    grants: &HostGrants,
    plan: &LaunchPlan,
    stage: &LaunchHandlers<'_>,
) -> Result<LaunchResult, LaunchError> {
    launch_within(grants, plan, &Bounds::NONE, stage)
}

/// Performs a launch that is held within bounds.
///
/// # Errors
/// As for any launch, and when nothing could hold the agent within them.
pub fn launch_within(
    grants: &HostGrants,
    plan: &LaunchPlan,
    bounds: &Bounds<'_>,
    stage: &LaunchHandlers<'_>,
) -> Result<LaunchResult, LaunchError> {
    bounds.check(plan)?;
    let scene = LaunchInputs::of(grants, plan)?;
    plan.location.make()?;
    let _held = plan.location.hold("kapi launch")?;
    // Read again: only now nobody else changes it.
    let scene = LaunchInputs {
        earlier: log::at(&plan.location).held()?,
        ..scene
    };
    let writer = status(plan, &scene, stage)?;
    let notify = |phase, percent, message: &str| reported(&writer, phase, percent, message);
    notify(StatusPhase::Initializing, 5, "Validating inputs")?;
    let result = decide::decide(grants, plan, &scene, bounds.ask()).and_then(|decided| {
        notify(StatusPhase::Initializing, 10, "Configuration read")?;
        for note in &decided.notes {
            say(stage, note);
        }
        notify(StatusPhase::Preparing, 18, "Creating the sandbox")?;
        let record = decide::settle(grants, plan, &scene, &decided, stage)?;
        let meter = UsageMeter::new(plan.limits, Usage::ZERO, stage.cancel, &|_| {});
        let limits = || log::at(&plan.location).limits();
        let used = LimitedUse::new(&meter, stage, &limits);
        let notice = |activity: Activity| used.notice(activity);
        let room = |query: &RoomQuery<'_>| used.room(query);
        let stage = LaunchHandlers {
            notice: &notice,
            room: &room,
            ..*stage
        };
        let was_cut_off = scene
            .earlier
            .as_ref()
            .is_some_and(|earlier| decided.goes_on && earlier.state == LaunchState::Running);
        let launch = ActiveLaunch {
            attempt: if was_cut_off {
                LaunchAttempt::Resumed
            } else {
                LaunchAttempt::First
            },
            grants,
            plan,
            bounds,
            stage: &stage,
            writer: &writer,
            used: &used,
        };
        perform(&launch, &scene, record)
    });
    let completed = writer.complete(&completion(&result));
    let mut launched = result?;
    completed.map_err(|error| LaunchError::failed(&error))?;
    writer.path().clone_into(&mut launched.status_path);
    Ok(launched)
}

/// Returns how the status file says that a launch ended.
pub(crate) fn completion(result: &Result<LaunchResult, LaunchError>) -> LaunchCompletion {
    match result {
        Ok(launched) => LaunchCompletion {
            exit_code: launched.exit_code,
            error: launched.error.as_ref().map(|error| error.message.clone()),
            class: launched.class(),
            advice: launched.error.as_ref().and_then(|error| error.hint.clone()),
            pr_url: launched
                .record
                .branch
                .as_ref()
                .and_then(|branch| branch.pr_url.clone()),
        },
        Err(error) => LaunchCompletion {
            exit_code: OURS_FAILED,
            error: Some(error.message.clone()),
            class: Some(ErrorClass::Kapi),
            advice: error.hint.clone(),
            pr_url: None,
        },
    }
}

pub(crate) fn status<'a>(
    plan: &LaunchPlan,
    scene: &LaunchInputs,
    stage: &LaunchHandlers<'a>,
) -> Result<StatusWriter<'a>, LaunchError> {
    let worktree = plan.location.worktree();
    let branch = plan.branch.as_ref().filter(|_| scene.chosen.has_branch);
    let identity = StatusIdentity {
        agent_id: plan.location.id().as_str(),
        project: &plan.project_name,
        project_root: &plan.project,
        branch: branch.map(|branch| branch.name.as_str()),
        sandbox_mode: scene.chosen.mode,
        // A layer has no place on the host where its files are seen.
        worktree_path: match (branch, decide::workspace(plan)) {
            (Some(_), WorkspaceKind::Checkout) => Some(&worktree),
            (_, _) => None,
        },
    };
    let dir = plan.location.sandboxes().status_dir();
    StatusWriter::create(&dir, &identity, stage.mapping.clone(), stage.clock)
        .map_err(|error| LaunchError::failed(&error))
}

pub(crate) fn reported(
    writer: &StatusWriter<'_>,
    phase: StatusPhase,
    percent: u8,
    message: &str,
) -> Result<(), LaunchError> {
    writer
        .phase(phase, percent, message)
        .map(drop)
        .map_err(|error| LaunchError::failed(&error))
}

pub(crate) fn say(stage: &LaunchHandlers<'_>, text: &str) {
    let text = text.to_owned();
    (stage.notice)(Activity::Note { text });
}

/// Makes the workspace, runs the agent and keeps its work; the record is on disk already.
fn perform(
    launch: &ActiveLaunch<'_>,
    scene: &LaunchInputs,
    mut record: SandboxRecord,
) -> Result<LaunchResult, LaunchError> {
    let ActiveLaunch {
        grants,
        plan,
        stage,
        writer,
        ..
    } = *launch;
    let repo = scene.repo.as_ref();
    let prepared = prepare::open(&plan.location, &record, repo, &grants.home);
    let ran = prepared.and_then(|ready| {
        for note in &ready.notes {
            say(stage, note);
        }
        reported(writer, StatusPhase::Preparing, 20, "The workspace is ready")?;
        reported(writer, StatusPhase::Starting, 22, "Starting the agent")?;
        let included = included::lend(&plan.location, &record, &ready)?;
        for note in &included.notes {
            say(stage, note);
        }
        let ended = match plan.conduct {
            Conduct::Headless => agent::run(launch, &record, &ready),
            Conduct::Interactive => enter::at_terminal(launch, &record, &ready),
        };
        included.withdraw()?;
        Ok((ready, ended?))
    });
    let (ready, ended) = match ran {
        Ok(ran) => ran,
        Err(error) => {
            record.exit_code = Some(OURS_FAILED);
            record.error = Some(error.message.clone());
            record.error_class = Some(ErrorClass::Kapi);
            record.advice.clone_from(&error.hint);
            log::at(&plan.location).end(record, Usage::ZERO, stage.clock.now_ms())?;
            return Err(error);
        }
    };
    reported(writer, StatusPhase::Running, 90, "The agent has finished")?;
    let mut launched = conclude(&ended, record);
    launched.meet(launch);
    let after = LaunchEnding {
        grants,
        plan,
        stage,
        writer,
        repo,
        is_again: false,
    };
    let noted = note(launch, &launched);
    let kept = noted.and_then(|()| after.keep(&ready, &mut launched));
    after.end(launched, kept)
}

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
        status_path: std::path::PathBuf::new(),
    }
}

/// Puts on record that the agent has ended, before its work is kept. What a person did at a terminal is
/// nobody's to take over.
fn note(launch: &ActiveLaunch<'_>, launched: &LaunchResult) -> Result<(), LaunchError> {
    if launch.plan.conduct == Conduct::Interactive {
        return Ok(());
    }
    let agent = EndedAgent {
        exit_code: launched.agent_exit_code,
        error: launched.error.as_ref().map(|error| error.message.clone()),
        message: launched.message.clone(),
        grade: launched.record.grade.clone(),
    };
    let now_ms = launch.stage.clock.now_ms();
    log::at(&launch.plan.location).agent_ended(&launched.record, agent, launched.usage, now_ms)
}
