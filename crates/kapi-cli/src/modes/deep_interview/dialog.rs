//! The dialog of an interview: a question with its proposed answer, and the reply to it.
//!
//! Whether a reply may be given is the core's rule; a person who is refused is asked again.

use kapi_workflow::rules::command::WorkflowCommand;
use kapi_workflow::rules::modes::ModeCommand;
use kapi_workflow::rules::modes::interview::command::InterviewCommand;
use kapi_workflow::rules::modes::interview::round::{InterviewQuestion, Provenance};
use kapi_workflow::rules::modes::interview::state::Interview;

use crate::context::Context;
use crate::error::Error;
use crate::event_words::first_line;
use crate::exit_code::Exit;
use crate::modes::deep_interview::answers::Answers;
use crate::modes::deep_interview::question::{PersonPrompt, asked};
use crate::modes::deep_interview::reply::DialogReply;
use crate::ui::{Format, Ui};
use crate::workflow::driving::DecisionOutcome;
use crate::workflow::event_words::describe;
use crate::workflow::keyboard::{Keyboard, KeyboardInput};
use crate::workflow::located::LocatedWorkflow;
use crate::workflow::words;

/// Who replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replier {
    /// The person themselves.
    Person,
    /// Their file of answers.
    File,
}

/// Answers the open question from the file, else at the keyboard; `Left` where neither can.
pub(crate) fn settle(
    context: &Context,
    found: &mut LocatedWorkflow<'_>,
    answers: Option<&Answers>,
    keyboard: Option<&mut Keyboard<'_>>,
) -> Result<DecisionOutcome, Error> {
    let Some((interview, asked)) = asked(&found.workflow) else {
        return Ok(DecisionOutcome::Left);
    };
    let written = answers.and_then(|answers| match asked {
        PersonPrompt::Question(round) => answers.reply(round, &interview.rounds),
        PersonPrompt::Goal { .. } => answers.confirms(),
    });
    if let Some(reply) = written {
        if keyboard.is_some() {
            // The answer from the file follows; whoever looks on should know to what.
            question_line(context.ui, asked);
        }
        return answer(context, found, reply, Replier::File);
    }
    match keyboard {
        Some(keyboard) => at_keyboard(context, found, keyboard),
        None => Ok(DecisionOutcome::Left),
    }
}

fn question_line(ui: Ui, asked: PersonPrompt<'_>) {
    let text = match asked {
        PersonPrompt::Question(round) => {
            format!("question {}: {}", round.number, round.question.text)
        }
        PersonPrompt::Goal { goal, .. } => format!("the goal as understood: {goal}"),
    };
    ui.say(&format!("  {}", first_line(&text)));
}

fn at_keyboard(
    context: &Context,
    found: &mut LocatedWorkflow<'_>,
    keyboard: &mut Keyboard<'_>,
) -> Result<DecisionOutcome, Error> {
    let ui = context.ui;
    keyboard.drop_typed_ahead();
    if let Some((interview, asked)) = asked(&found.workflow) {
        show(ui, interview, asked);
    }
    loop {
        ui.prompt("> ");
        let reply = match keyboard.answer() {
            KeyboardInput::Text(text) => DialogReply::read(&text),
            KeyboardInput::End | KeyboardInput::Interrupted => {
                ui.say("");
                return Ok(DecisionOutcome::Left);
            }
        };
        match answer(context, found, reply, Replier::Person) {
            Ok(settled) => return Ok(settled),
            Err(error) if matches!(error.exit, Exit::Denied | Exit::Usage) => {
                keyboard.drop_typed_ahead();
                ui.say(&format!("not recorded: {error}"));
                if let Some(hint) = &error.hint {
                    ui.say(&format!("hint: {hint}"));
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// Records a reply to the open question.
pub(crate) fn answer(
    context: &Context,
    found: &mut LocatedWorkflow<'_>,
    reply: DialogReply,
    by: Replier,
) -> Result<DecisionOutcome, Error> {
    let Some((_, asked)) = asked(&found.workflow) else {
        return Err(Error::new(
            Exit::Denied,
            format!("workflow {} is not asking you anything now", found.key.id),
        )
        .with_hint(format!(
            "it is in phase {}; see `kapi status {:03}`.",
            words::state(&found.workflow),
            found.key.id.index()
        )));
    };
    let round = asked.round();
    let provenance = match by {
        Replier::Person => Provenance::Person,
        Replier::File => Provenance::AnswersFile,
    };
    let command = match reply {
        DialogReply::Quit => return Ok(DecisionOutcome::Left),
        DialogReply::Unknown(word) => {
            return Err(Error::usage(format!("{word} is not a known command")).with_hint(WORDS));
        }
        DialogReply::Accept if is_empty(asked) => {
            return Err(Error::usage("there is no proposed answer to accept").with_hint(WORDS));
        }
        DialogReply::Accept => InterviewCommand::Answer {
            round,
            text: String::new(),
            provenance,
        },
        DialogReply::Answer(text) => InterviewCommand::Answer {
            round,
            text,
            provenance,
        },
        DialogReply::Later(reason) => InterviewCommand::Defer { round, reason },
        DialogReply::Back(reason) => InterviewCommand::Withdraw {
            round,
            reason: reason.unwrap_or_else(|| "the user took it back".to_owned()),
        },
        DialogReply::Enough => InterviewCommand::Enough {},
    };
    let submitted = found.submit(
        context,
        &WorkflowCommand::Mode(ModeCommand::Interview(command)),
    )?;
    if context.ui.format == Format::Human {
        let lines = submitted.recorded.iter();
        for line in lines.filter_map(|logged| describe(&logged.event)) {
            context.ui.say(&format!("  {line}"));
        }
    }
    Ok(DecisionOutcome::Replied)
}

const fn is_empty(asked: PersonPrompt<'_>) -> bool {
    match asked {
        PersonPrompt::Question(round) => round.question.proposed.is_none(),
        PersonPrompt::Goal { .. } => false,
    }
}

/// What can be typed besides an answer.
const WORDS: &str = "type an answer, Enter for the proposed one, /later, /back, /enough or /quit.";

fn show(ui: Ui, interview: &Interview, asked: PersonPrompt<'_>) {
    score(ui, interview);
    match asked {
        PersonPrompt::Question(round) => question(ui, round.number, &round.question),
        PersonPrompt::Goal { goal, .. } => {
            ui.say("");
            ui.say("This is the goal as Kapi understands it:");
            ui.say(&format!("  {goal}"));
            ui.say("Press Enter if it is right; otherwise type what is wrong or missing.");
        }
    }
    ui.say("  (/later leaves it open, /back takes it back, /enough drafts from what is known,");
    ui.say("   /quit continues another day; end a line with \\ to continue on the next)");
}

fn question(ui: Ui, number: u32, question: &InterviewQuestion) {
    ui.say("");
    ui.say(&format!("Question {number}: {}", question.text));
    if let Some(proposed) = &question.proposed {
        ui.say(&format!("  proposed (press Enter to accept): {proposed}"));
    }
}

/// Shows how clear it is, and says that this is advice.
fn score(ui: Ui, interview: &Interview) {
    let Some(score) = &interview.score else {
        return;
    };
    ui.say("");
    ui.say(&format!("Clarity: {}", score.words()));
    for reason in &score.reasons {
        ui.say(&format!("  {reason}"));
    }
    ui.say("  (advice only: /enough drafts at any clarity and lists what is unclear as a risk)");
}
