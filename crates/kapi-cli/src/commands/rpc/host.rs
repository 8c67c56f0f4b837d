//! The host of a session, as this process sees it: what it is told, and what it says of its model.
//!
//! Shared by the thread that hears it and the one that drives the goal.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kapi_agent::failure::reported;
use kapi_check::perform::judge::host_model::is_asked_by_host;
use kapi_core::agent_end::AgentEnd;
use kapi_core::judge::Judge;
use kapi_core::usage::{Doubt, Usage};
use kapi_goal::perform::session::changed_since;
use kapi_goal::perform::session::seat::{SessionRun, SessionSeat};
use kapi_goal::rules::command::{GoalCommand, PersonCommand};
use kapi_goal::rules::contract::Contract;
use kapi_goal::rules::prompt::session;
use kapi_goal::rules::state::{Goal, GoalStatus};
use kapi_goal::tools::GoalTool;
use kapi_goal::tools::short_schema::{short_description, short_schema};
use kapi_wire::kernel_tools::KernelTool;
use kapi_wire::kernel_tools::schema::kernel_schema;
use kapi_wire::rpc::{
    CompactionReply, DialogView, HostGreeting, HostHello, NoteNotice, PersonReply, RPC_VERSION,
    ReplyLevel, RestNotice, RpcNotice, RunEnd, RunOutcome, RunPrompt, ToolText,
};
use serde_json::{Value, json};

use crate::commands::rpc::attached::AttachedGoal;
use crate::commands::rpc::dialog::{self, PendingDialog, PendingDialogs};
use crate::commands::rpc::host_models::HostModelDesk;
use crate::commands::rpc::view::{self, CheckoutFiles};
use crate::config::Config;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::workflow::session as session_name;

/// Bytes of the person's words, and of the model's last, that are recorded.
const WORDS_BYTES_MAX: usize = 16 * 1024;

/// How long a request waits for the turn that it belongs to, which is begun anew when the person
/// speaks.
pub(super) const TURN_WAIT: Duration = Duration::from_secs(5);

/// One session's host.
pub(super) struct Host<'a> {
    /// What every command stands on.
    pub(super) context: &'a Context,
    /// Where the session and the drive meet.
    pub(super) seat: SessionSeat,
    /// The models that it can ask.
    pub(super) models: HostModelDesk,
    /// What the person was asked and has not answered.
    dialogs: Mutex<PendingDialogs>,
    has_ui: AtomicBool,
    is_leaving: AtomicBool,
    output: Mutex<io::Stdout>,
    desk: Mutex<Desk<'a>>,
    changed: Condvar,
}

/// What the two threads pass on to each other.
#[derive(Default)]
struct Desk<'a> {
    attached: Option<Arc<AttachedGoal<'a>>>,
    /// The goal has to be driven, once more if it is being driven.
    is_due: bool,
    /// It is being driven.
    is_driven: bool,
}

impl<'a> Host<'a> {
    pub(super) fn new(context: &'a Context) -> Self {
        Self {
            context,
            seat: SessionSeat::default(),
            models: HostModelDesk::default(),
            dialogs: Mutex::default(),
            has_ui: AtomicBool::new(false),
            is_leaving: AtomicBool::new(false),
            output: Mutex::new(io::stdout()),
            desk: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Takes note of who the host is.
    pub(super) fn greet(&self, hello: &HostHello) -> Result<HostGreeting, Error> {
        if hello.v != RPC_VERSION {
            return Err(Error::usage(format!(
                "the package uses layout {}, but this kapi uses {RPC_VERSION}",
                hello.v
            ))
            .with_hint("install matching versions."));
        }
        self.has_ui.store(hello.ui, Ordering::SeqCst);
        let tools = GoalTool::ALL.into_iter().map(|tool| ToolText {
            name: tool.name().to_owned(),
            description: short_description(tool).to_owned(),
            parameters: short_schema(tool),
        });
        let kernel_tools = KernelTool::ALL.into_iter().map(|tool| ToolText {
            name: tool.name().to_owned(),
            description: tool.description().to_owned(),
            parameters: kernel_schema(tool),
        });
        Ok(HostGreeting {
            v: RPC_VERSION,
            tools: tools.collect(),
            kernel_tools: kernel_tools.collect(),
        })
    }

    /// Tells whether there is a person who can be asked.
    pub(super) fn has_ui(&self) -> bool {
        self.has_ui.load(Ordering::SeqCst)
    }

    /// Tells whether the host asks a model that judges, `provider/model`.
    pub(super) fn asks(&self, judge: &str, config: &Config) -> bool {
        let grants = self.context.grants(config);
        is_asked_by_host(&grants, judge, &|name| self.models.has(name))
    }

    /// Tells whether the host asks the judge of a contract.
    pub(super) fn asks_judge_of(&self, contract: &Contract, config: &Config) -> bool {
        match &contract.judge {
            Judge::None => false,
            Judge::Same => self.models.own().is_some(),
            Judge::Agent(judge) => self.asks(judge, config),
        }
    }

    /// Sends a message. A host that has gone hears nothing more, and its input ends.
    pub(super) fn send(&self, message: &Value) {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        drop(writeln!(output, "{message}").and_then(|()| output.flush()));
    }

    /// Tells something that was not asked.
    pub(super) fn notify(&self, notice: &RpcNotice) {
        if let Ok(mut message) = serde_json::to_value(notice) {
            message["jsonrpc"] = json!("2.0");
            self.send(&message);
        }
    }

    /// Tells the person something.
    pub(super) fn note(&self, text: String, level: ReplyLevel) {
        self.notify(&RpcNotice::Note(NoteNotice { text, level }));
    }

    /// Tells the person what was refused or failed.
    pub(super) fn fail(&self, error: &Error) {
        self.note(view::error_text(error), ReplyLevel::Error);
    }

    /// Attaches to a goal that this session has worked on; it goes on when the person says so.
    pub(super) fn open(&self, name: &str) -> Result<PersonReply, Error> {
        let attached = Arc::new(AttachedGoal::find(self.context, name)?);
        let goal = attached.goal()?;
        self.seat.hold();
        self.attach(&attached);
        if goal.is_driven() {
            self.drive();
        }
        Ok(PersonReply {
            goal: Some(view::of(&goal)),
            ..PersonReply::default()
        })
    }

    /// Makes a goal the session's.
    pub(super) fn attach(&self, attached: &Arc<AttachedGoal<'a>>) {
        self.desk().attached = Some(Arc::clone(attached));
    }

    /// Lets go of the session's goal, whatever becomes of it.
    pub(super) fn detach(&self) {
        self.desk().attached = None;
    }

    /// Returns the session's goal, if it has one.
    pub(super) fn attached(&self) -> Option<Arc<AttachedGoal<'a>>> {
        self.desk().attached.clone()
    }

    /// Returns the session's goal.
    pub(super) fn require_attached(&self) -> Result<Arc<AttachedGoal<'a>>, Error> {
        self.attached().ok_or_else(|| {
            Error::new(Exit::NotFound, "this session has no goal")
                .with_hint("set one up with `/until-done <intent>`.")
        })
    }

    /// Has the session's goal driven until it rests.
    pub(super) fn drive(&self) {
        self.desk().is_due = true;
        self.changed.notify_all();
    }

    /// Waits until a goal has to be driven, and returns it; nothing when the host has gone.
    pub(super) fn next_drive(&self) -> Option<Arc<AttachedGoal<'a>>> {
        let mut desk = self.desk();
        desk.is_driven = false;
        loop {
            if self.is_leaving() {
                return None;
            }
            if std::mem::take(&mut desk.is_due)
                && let Some(attached) = desk.attached.clone()
            {
                desk.is_driven = true;
                return Some(attached);
            }
            desk = self
                .changed
                .wait(desk)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Tells whether the goal has to be driven once more, and takes note that it is.
    pub(super) fn is_due_again(&self) -> bool {
        std::mem::take(&mut self.desk().is_due)
    }

    /// Waits for a while, or until a drive is wanted or the host has gone.
    pub(super) fn pause(&self, longest: Duration) {
        let desk = self.desk();
        let is_idle = !desk.is_due && !self.is_leaving();
        if is_idle {
            drop(self.changed.wait_timeout(desk, longest));
        }
    }

    /// Ends everything: the host has gone, and the goal stays as it is.
    pub(super) fn leave(&self) {
        self.is_leaving.store(true, Ordering::SeqCst);
        drop(self.desk());
        self.changed.notify_all();
    }

    /// Tells whether the host has gone.
    pub(super) fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::SeqCst)
    }

    /// Takes note of what the person typed to the model: the turn is theirs.
    pub(super) fn said(&self, text: &str) -> Result<(), Error> {
        let Some(attached) = self.attached() else {
            return Ok(());
        };
        if attached.goal()?.status != GoalStatus::Active || text.trim().is_empty() {
            return Ok(());
        }
        self.seat.hold();
        let awaited = self.seat.awaited(Duration::ZERO);
        let end = text.floor_char_boundary(WORDS_BYTES_MAX);
        let text = text.get(..end).unwrap_or_default().to_owned();
        let command = GoalCommand::Person(PersonCommand::Say { text });
        attached.submit(self.context, &command)?;
        if let Some(effect) = awaited {
            self.seat.await_after(&effect, TURN_WAIT);
        }
        Ok(())
    }

    /// Takes note that the model begins, and returns what it is told.
    pub(super) fn run_started(&self) -> Result<RunPrompt, Error> {
        self.seat.begins();
        let goal = self
            .attached()
            .map(|attached| attached.goal())
            .transpose()?;
        Ok(RunPrompt {
            block: goal.as_ref().and_then(session::block),
        })
    }

    /// Takes note that the model has come to rest. What follows is told as a notice.
    pub(super) fn run_ended(&self, end: &RunEnd) -> Result<(), Error> {
        let attached = self.attached();
        if end.outcome == RunOutcome::Aborted
            && let Some(attached) = &attached
            && attached.goal()?.is_driven()
        {
            attached.submit(self.context, &GoalCommand::Interrupt)?;
        }
        let kept = end.message.floor_char_boundary(WORDS_BYTES_MAX);
        self.seat.ends(SessionRun {
            end: match end.outcome {
                RunOutcome::Finished | RunOutcome::Aborted => AgentEnd::Finished,
                RunOutcome::Failed => AgentEnd::Provider(reported(None, &end.message)),
            },
            claim: None,
            message: end.message.get(..kept).unwrap_or_default().to_owned(),
            usage: Usage {
                input_tokens: end.input_tokens,
                output_tokens: end.output_tokens,
                usd_micros: None,
                doubt: Doubt::NONE,
            },
            session: session_name::session(self.context),
        });
        if let Some(attached) = attached {
            self.settle(&attached.goal()?);
        }
        Ok(())
    }

    /// Returns what the model has to be told once more.
    pub(super) fn compacted(&self) -> Result<CompactionReply, Error> {
        let goal = self
            .attached()
            .map(|attached| attached.goal())
            .transpose()?;
        let goal = goal.filter(|goal| goal.status == GoalStatus::Active);
        Ok(CompactionReply {
            message: goal.as_ref().map(session::reminder_after_compaction),
        })
    }

    /// Tells the person where a goal has come to rest, once neither it nor the model goes on.
    pub(super) fn settle(&self, goal: &Goal) {
        let is_under_way = {
            let desk = self.desk();
            desk.is_driven || desk.is_due
        };
        if is_under_way || self.seat.is_running() {
            return;
        }
        if goal.status == GoalStatus::Proposed && self.has_ui() {
            self.notify(&RpcNotice::Dialog(self.ask_approval(goal)));
        } else {
            self.rest(goal);
        }
    }

    /// Opens a question to the person.
    pub(super) fn ask(&self, pending: PendingDialog, view: DialogView) -> DialogView {
        let mut dialogs = self.dialogs.lock().unwrap_or_else(PoisonError::into_inner);
        dialogs.open(pending, view)
    }

    /// Opens the question whether the contract of a goal is approved.
    pub(super) fn ask_approval(&self, goal: &Goal) -> DialogView {
        let hash = goal.contract_hash.clone();
        self.ask(PendingDialog::Contract { hash }, dialog::approval(goal))
    }

    /// Closes a question, and returns what was asked.
    pub(super) fn asked(&self, id: u32) -> Option<PendingDialog> {
        let mut dialogs = self.dialogs.lock().unwrap_or_else(PoisonError::into_inner);
        dialogs.close(id)
    }

    /// Says that a goal goes no further by itself.
    pub(super) fn rest(&self, goal: &Goal) {
        let (text, level) = view::rest(goal, &self.checkout_files(goal));
        self.notify(&RpcNotice::Rest(RestNotice {
            goal: view::of(goal),
            text,
            level,
        }));
    }

    /// Looks how the person's files stand to what was proved.
    fn checkout_files(&self, goal: &Goal) -> CheckoutFiles {
        let (Some(attached), Some(commit)) = (self.attached(), &goal.result) else {
            return CheckoutFiles::Unknown;
        };
        match changed_since(&attached.real, &goal.contract.base.commit, commit) {
            Ok(changed) if changed.is_empty() => CheckoutFiles::Same,
            Ok(changed) => CheckoutFiles::Others(changed),
            Err(_) => CheckoutFiles::Unknown,
        }
    }

    /// Says that the goal is not driven any more.
    pub(super) fn drive_ended(&self) {
        self.desk().is_driven = false;
    }

    fn desk(&self) -> MutexGuard<'_, Desk<'a>> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
