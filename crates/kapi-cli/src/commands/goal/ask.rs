//! `kapi goal ask`: a side question. Another run of the agent looks at the work so far and answers.
//!
//! The loop is not touched: nothing is stopped, said to the agent or decided by it. What it used is
//! on record.

use kapi_core::actor::Actor;
use kapi_core::agent_end::AgentEnd;
use kapi_goal::perform::side_question;
use kapi_goal::perform::side_question::{SideAnswer, SideQuestion};
use kapi_goal::rules::command::GoalCommand;
use kapi_machine::watch::{Activity, EffectWatch, unlimited};
use kapi_sys::clock::Clock as _;
use serde_json::json;

use crate::commands::goal::pick::{self, GoalChoice};
use crate::context::Context;
use crate::driving;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::Format;

/// The longest answer that is recorded, in bytes.
const ANSWER_BYTES_MAX: usize = 16 * 1024;

/// Options of `kapi goal ask`.
#[derive(Debug, clap::Args)]
#[command(allow_missing_positional = true)]
pub(crate) struct Args {
    /// Goal [default: the only unfinished one]
    #[arg(value_name = "GOAL")]
    reference: Option<String>,
    /// The question
    #[arg(value_name = "QUESTION", required = true)]
    question: String,
}

/// Asks a side question.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    put(context, args.reference.as_deref(), &args.question)
}

/// Asks a side question about a goal.
pub(super) fn put(
    context: &Context,
    reference: Option<&str>,
    question: &str,
) -> Result<Exit, Error> {
    context.require_human("ask a side question")?;
    if question.trim().is_empty() {
        return Err(Error::usage("the question is empty"));
    }
    let picked = pick::to_look_at(context, reference)?;
    let (project, id) = context.find_sound_goal(&picked.id.to_string(), pick::OWNER)?;
    let picked = GoalChoice {
        project,
        id,
        goal: picked.goal,
    };
    driving::require_approved(&picked.project, &picked.id)?;
    let interrupts = driving::interrupts()?;
    let config = context.config(Some(picked.project.layout.root()))?;
    let (grants, location) = (
        context
            .grants(&config)
            .with_models(&picked.goal.contract.models),
        context.location(&picked.project, &picked.id)?,
    );
    let name = format!("aside-{}-{}", std::process::id(), context.clock.now_ms());
    let notice = |activity: Activity| match activity {
        Activity::Tool { name, detail } => context.ui.live(&format!("{name} {detail}")),
        Activity::Note { text } => context.ui.say(&format!("note: {text}")),
        Activity::Text { .. } | Activity::Used(_) | Activity::Verifying { .. } => {}
    };
    let cancel = interrupts.cancel();
    let watch = EffectWatch {
        cancel: &cancel,
        notice: &notice,
        room: &unlimited,
    };
    let asked = SideQuestion {
        goal: &picked.goal,
        text: question.trim(),
        name: &name,
    };
    let spending = context.spending(picked.project.layout.root(), &config)?;
    let answered = side_question::answer(&grants, &spending, &location, asked, &watch);
    context.ui.clear_live();
    match answered.map_err(|failure| Error::world(&failure))? {
        None => Ok(Exit::Interrupted),
        Some(answered) => record(context, &picked, question.trim(), &answered),
    }
}

fn record(
    context: &Context,
    picked: &GoalChoice<'_>,
    question: &str,
    answered: &SideAnswer,
) -> Result<Exit, Error> {
    let is_answer = answered.end == AgentEnd::Finished && !answered.text.trim().is_empty();
    let end = answered.text.floor_char_boundary(ANSWER_BYTES_MAX);
    let kept = answered.text.get(..end).unwrap_or_default();
    if is_answer || !answered.usage.is_zero() {
        let command = GoalCommand::AnswerSideQuestion {
            question: question.to_owned(),
            answer: kept.to_owned(),
            usage: answered.usage,
        };
        picked
            .project
            .submit(&picked.id, &Actor::Engine, &command)
            .map_err(|error| Error::engine(&error, &picked.id.to_string()))?;
    }
    if !is_answer {
        return Err(Error::new(
            Exit::Failed,
            format!("failed to get an answer: {}", end_words(&answered.end)),
        )
        .with_hint("the goal is unchanged; ask again."));
    }
    match context.ui.format {
        Format::Json => context.ui.json(&json!({
            "type": "answer",
            "goal": picked.id.to_string(),
            "question": question,
            "answer": answered.text,
            "usage": answered.usage,
        })),
        Format::Human => context.ui.line(answered.text.trim_end()),
    }
    Ok(Exit::Success)
}

fn end_words(end: &AgentEnd) -> String {
    match end {
        AgentEnd::Finished => "the agent gave no answer".to_owned(),
        AgentEnd::Refused => "the agent's model refused".to_owned(),
        AgentEnd::LimitReached => "the agent stopped at its own limit".to_owned(),
        AgentEnd::Crashed { code } => format!("the agent exited with {code}"),
        AgentEnd::OutOfResources { resource, limit } => {
            format!("the agent hit its limit of {limit} of {resource}")
        }
        AgentEnd::DeadlinePassed => "the agent took too long".to_owned(),
        AgentEnd::IdlePassed => "the agent was silent for too long".to_owned(),
        AgentEnd::Provider(failure) => {
            format!(
                "its provider failed ({}): {}",
                failure.kind.words(),
                failure.message
            )
        }
    }
}
