//! One prompt of an editor: a goal is created or goes on, and is followed until it rests.
//!
//! What the rules refuse is told as a message, with what to do; the turn of the conversation is over
//! then as it is when the goal rests.

use kapi_core::id::GoalId;
use kapi_goal::record::drive::{self, DriveControl};
use kapi_goal::record::project::Project;
use kapi_goal::rules::command::{GoalCommand, PersonCommand};
use kapi_goal::rules::event::ApprovalMeans;
use kapi_goal::rules::state::{Goal, GoalStatus};
use kapi_machine::pace::Pace;
use kapi_sys::clock::monotonic_ms;
use kapi_sys::signal::Interrupts;
use kapi_wire::result::ResultView;
use serde_json::{Value, json};

use crate::commands::acp::OWNER;
use crate::commands::acp::contract_question::{self, ContractAnswer};
use crate::commands::acp::editor::Editor;
use crate::commands::acp::session::EditorSession;
use crate::commands::acp::session_report::SessionReport;
use crate::commands::run::{self, DRAFTS_MAX};
use crate::config::Config;
use crate::context::Context;
use crate::contract::{self, approval, flags};
use crate::error::Error;
use crate::exit_code::Exit;
use crate::{delivering, driving, notification};

/// The word that takes up a goal that is there already.
const RESUME: &str = "/resume ";

/// A prompt and everything that it stands on.
pub(super) struct EditorPrompt<'a> {
    pub(super) context: &'a Context,
    pub(super) editor: &'a Editor,
    pub(super) session: &'a EditorSession,
    /// Options of `kapi run`.
    pub(super) options: &'a [String],
    pub(super) interrupts: &'a Interrupts,
}

/// A goal that a prompt is about.
struct PromptGoal<'a> {
    project: Project<'a>,
    id: GoalId,
    config: Config,
}

impl EditorPrompt<'_> {
    /// Follows a prompt to its end and returns what the editor is answered.
    pub(super) fn follow(&self, params: &Value) -> Value {
        let context = Context {
            cwd: self.session.cwd().to_path_buf(),
            ..self.context.clone()
        };
        let report = SessionReport::new(self.editor, self.session);
        match self.work(&context, &report, &text_of(params)) {
            Ok(Some(goal)) => {
                let stop = if self.is_over() {
                    "cancelled"
                } else {
                    "end_turn"
                };
                json!({"stopReason": stop, "_meta": {"kapi": ResultView::from(&goal)}})
            }
            Ok(None) => json!({"stopReason": "cancelled"}),
            Err(error) => {
                report.say(&format!("**Error:** {error}"));
                if let Some(hint) = &error.hint {
                    report.say(&format!("Hint: {hint}"));
                }
                json!({"stopReason": "end_turn", "_meta": {"kapi": error.view()}})
            }
        }
    }

    /// Tells whether nobody waits for the prompt any more.
    fn is_over(&self) -> bool {
        self.session.is_cancelled() || self.interrupts.is_raised()
    }

    /// Does what a prompt asks; nothing where the person approved nothing.
    fn work(
        &self,
        context: &Context,
        report: &SessionReport<'_>,
        text: &str,
    ) -> Result<Option<Goal>, Error> {
        if text.trim().is_empty() {
            return Err(Error::usage("the prompt has no text").with_hint("say what to do."));
        }
        let found = match text.strip_prefix(RESUME) {
            Some(reference) => Some(take_up(context, reference.trim(), None)?),
            None => self.continued(context, text)?,
        };
        let goal = match found {
            Some(goal) => goal,
            None => match self.create(context, report, text)? {
                Some(goal) => goal,
                None => return Ok(None),
            },
        };
        self.session.attach(&goal.id);
        self.drive(context, report, &goal).map(Some)
    }

    /// Lets the session's goal go on with what was said; nothing where it has none that could.
    fn continued<'c>(
        &self,
        context: &'c Context,
        text: &str,
    ) -> Result<Option<PromptGoal<'c>>, Error> {
        let Some(id) = self.session.goal() else {
            return Ok(None);
        };
        let (_, goal) = load(context, &id.to_string())?;
        let has_ended = goal.status.is_terminal()
            || matches!(goal.status, GoalStatus::Done | GoalStatus::Unverified);
        if has_ended {
            return Ok(None);
        }
        take_up(context, &id.to_string(), Some(text)).map(Some)
    }

    /// Draws up the contract of a new goal, and has it approved.
    fn create<'c>(
        &self,
        context: &'c Context,
        report: &SessionReport<'_>,
        text: &str,
    ) -> Result<Option<PromptGoal<'c>>, Error> {
        let flags = self.flags(text)?;
        for _ in 0..DRAFTS_MAX {
            let draft = contract::draft(context, &flags)?;
            let project = context.project(&draft.root, OWNER);
            let Some(id) = run::create(context, &project, &draft)? else {
                continue;
            };
            let answer =
                contract_question::ask(self.editor, self.session, &draft, &|| !self.is_over());
            if answer != ContractAnswer::Approved {
                let reason = Some("the contract was rejected".to_owned());
                submit(context, &project, &id, &GoalCommand::Cancel { reason })?;
                report.say(&format!(
                    "The contract of goal {id} was not approved; the goal has ended."
                ));
                return Ok(None);
            }
            approval::approve(
                context,
                &project,
                &id,
                &draft.contract,
                ApprovalMeans::Client,
            )?;
            report.say(&format!(
                "Goal {id} works on branch `{}`.",
                draft.contract.branch
            ));
            return Ok(Some(PromptGoal {
                project,
                id,
                config: draft.config,
            }));
        }
        Err(Error::new(Exit::Busy, "other runs keep taking this branch")
            .with_hint("reword the task."))
    }

    /// Reads the options of the goals of this editor.
    fn flags(&self, text: &str) -> Result<Box<flags::Args>, Error> {
        let options = self.options.iter().map(String::as_str);
        crate::run_flags(options.chain(["--", text])).map_err(|error| {
            error.with_hint("correct the options after `kapi acp --` in the editor's settings.")
        })
    }

    /// Follows a goal until it rests, and says how it came out.
    fn drive(
        &self,
        context: &Context,
        report: &SessionReport<'_>,
        found: &PromptGoal<'_>,
    ) -> Result<Goal, Error> {
        let PromptGoal {
            project,
            id,
            config,
        } = found;
        let world = driving::world(context, project, id, config)?;
        let control = DriveControl {
            person: context.actor.clone(),
            interrupted: &|| self.is_over(),
            monotonic_ms: &monotonic_ms,
            pace: Pace::STANDARD,
        };
        let load = || project.load(id).ok();
        let driven = drive::drive(project, id, &world, &control, &mut |seen| {
            report.show(&seen, &load);
        });
        let goal = driven.map_err(|error| Error::drive(&error, &id.reference()))?;
        if let Some(text) = driving::clear_homes(&world, &goal) {
            report.say(&format!("Note: {text}"));
        }
        let delivered = delivering::of_goal(context, config, project, &goal);
        report.outcome(&goal);
        if !self.is_over() {
            let root = project.layout.root().to_path_buf();
            notification::of_goal(context, config, &goal, root);
        }
        delivered.map(|()| goal)
    }
}

fn load<'c>(context: &'c Context, reference: &str) -> Result<(Project<'c>, Goal), Error> {
    let (project, id) = context.find_sound_goal(reference, OWNER)?;
    let goal = project.load(&id);
    let goal = goal.map_err(|error| Error::engine(&error, reference))?;
    Ok((project, goal))
}

/// Lets a goal go on, with what the person has to say to it.
fn take_up<'c>(
    context: &'c Context,
    reference: &str,
    text: Option<&str>,
) -> Result<PromptGoal<'c>, Error> {
    let (project, goal) = load(context, reference)?;
    let id = goal.id.clone();
    if let Some(text) = text {
        let text = text.to_owned();
        let command = GoalCommand::Person(PersonCommand::Say { text });
        submit(context, &project, &id, &command)?;
    }
    if !goal.is_driven() {
        submit(context, &project, &id, &GoalCommand::Resume)?;
    }
    let config = context.config(Some(project.layout.root()))?;
    Ok(PromptGoal {
        project,
        id,
        config,
    })
}

fn submit(
    context: &Context,
    project: &Project<'_>,
    id: &GoalId,
    command: &GoalCommand,
) -> Result<(), Error> {
    let submitted = project.submit(id, &context.actor, command);
    submitted.map_err(|error| Error::engine(&error, &id.reference()))?;
    Ok(())
}

/// Returns the text of a prompt: what was typed, and what of files stands in it.
fn text_of(params: &Value) -> String {
    let blocks = params.get("prompt").and_then(Value::as_array);
    let texts = blocks.into_iter().flatten().filter_map(|block| {
        let text = |pointer: &str| block.pointer(pointer).and_then(Value::as_str);
        match text("/type")? {
            "text" => Some(text("/text")?.to_owned()),
            "resource_link" => Some(text("/uri")?.to_owned()),
            "resource" => {
                let (uri, content) = (text("/resource/uri")?, text("/resource/text"));
                let content = content.unwrap_or_default();
                Some(format!("{uri}\n```\n{content}\n```"))
            }
            _ => None,
        }
    });
    texts.collect::<Vec<String>>().join("\n")
}
