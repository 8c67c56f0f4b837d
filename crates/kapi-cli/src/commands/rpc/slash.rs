//! What is typed behind `/until-done` in a session, carried out.
//!
//! What a line means is decided in the core, by the specification's rules.

use kapi_core::text::counted;
use kapi_goal::record::preferences::PreferenceValues;
use kapi_goal::rules::command::{GoalCommand, PersonCommand};
use kapi_goal::rules::contract::TURNS_MAX;
use kapi_goal::rules::plan::Plan;
use kapi_goal::rules::plan::task_list::task_list;
use kapi_goal::rules::prompt::session;
use kapi_goal::rules::slash::subcommand::help;
use kapi_goal::rules::slash::{Slash, SlashJudgeForm, parse_arguments};
use kapi_goal::rules::state::{Goal, GoalStatus};
use kapi_wire::rpc::{PersonReply, ReplyLevel};

use crate::commands::goal::{answer, autopilot, detail, judge, look, resume};
use crate::commands::rpc::dialog::{self, PendingDialog};
use crate::commands::rpc::host::Host;
use crate::commands::rpc::view::told;
use crate::commands::rpc::{begin, view};
use crate::error::Error;
use crate::exit_code::Exit;

/// The most turns that are set without being asked (pi-until-done: 500).
const TURNS_ASKED_ABOVE: u32 = 500;

/// Names of models that a message lists.
const NAMES_SHOWN_MAX: usize = 6;

/// Carries out a line.
pub(super) fn perform(host: &Host<'_>, line: &str) -> Result<PersonReply, Error> {
    match parse_arguments(line) {
        Slash::Help => Ok(told(&help())),
        Slash::Status => shown(host, |goal| Ok(answer::line(goal))),
        Slash::Detail => shown(host, |goal| {
            Ok(format!(
                "{}\n{}",
                answer::line(goal),
                detail::lines(goal).join("\n")
            ))
        }),
        Slash::Tasks => shown(host, |goal| {
            let plan = goal.journey.plan.as_ref();
            Ok(plan.map_or_else(|| format!("Goal {} has no tasks yet.", goal.id), task_list))
        }),
        Slash::Plan => plan_path(host),
        Slash::Northstar => shown(host, |goal| {
            Ok(if goal.approval.is_some() {
                look::northstar_text(&goal.contract)
            } else {
                format!("Goal {} has no approved contract yet.", goal.id)
            })
        }),
        Slash::ReplanLog => shown(host, replans),
        Slash::Pause => pause(host),
        Slash::Resume => resume(host),
        Slash::Cancel => ask_cancel(host),
        Slash::Approve => approve(host),
        Slash::Autopilot => {
            let preferred = autopilot::switch(host.context, None)?;
            Ok(told(if preferred.autopilot.is_some() {
                "Autopilot is on: contracts of new goals here are approved without asking."
            } else {
                "Autopilot is off: you are asked before a contract is approved."
            }))
        }
        Slash::Budget { turns } => budget(host, turns),
        Slash::Ask { question } => aside(host, &question),
        Slash::Judge(form) => judge(host, form),
        Slash::Intent(intent) => begin::begin(host, &intent),
    }
}

fn about(goal: &Goal, text: &str) -> PersonReply {
    PersonReply {
        goal: Some(view::of(goal)),
        ..told(text)
    }
}

/// Shows something of the session's goal.
fn shown(
    host: &Host<'_>,
    words: impl FnOnce(&Goal) -> Result<String, Error>,
) -> Result<PersonReply, Error> {
    let Some(attached) = host.attached() else {
        return Ok(told(
            "No active goal. Set one up with /until-done <intent>.",
        ));
    };
    let goal = attached.goal()?;
    let text = words(&goal)?;
    Ok(about(&goal, &text))
}

fn plan_path(host: &Host<'_>) -> Result<PersonReply, Error> {
    let attached = host.require_attached()?;
    let path = attached.project.layout.goal(&attached.id).tasks();
    Ok(told(&if path.is_file() {
        path.display().to_string()
    } else {
        format!("Goal {} has no plan yet.", attached.id)
    }))
}

fn replans(goal: &Goal) -> Result<String, Error> {
    let replans = goal.journey.plan.as_ref().map_or(&[][..], Plan::replan_log);
    if replans.is_empty() {
        return Ok(format!("The plan of goal {} has not changed.", goal.id));
    }
    let lines: Vec<String> = replans.iter().map(look::replan_line).collect();
    Ok(lines.join("\n"))
}

fn pause(host: &Host<'_>) -> Result<PersonReply, Error> {
    let attached = host.require_attached()?;
    let goal = attached.goal()?;
    if goal.status == GoalStatus::Paused {
        return Ok(about(
            &goal,
            &format!("Goal {} is paused already.", goal.id),
        ));
    }
    let goal = attached.submit(host.context, &GoalCommand::Interrupt)?;
    Ok(about(
        &goal,
        &format!(
            "Goal {} is paused. Continue with /until-done resume.",
            goal.id
        ),
    ))
}

/// Lets the goal go on. Nothing that nobody approved is made active by it.
fn resume(host: &Host<'_>) -> Result<PersonReply, Error> {
    let attached = host.require_attached()?;
    let mut goal = attached.goal()?;
    match goal.status {
        GoalStatus::Proposed => return approve(host),
        GoalStatus::Done | GoalStatus::Unverified => {
            if !host.has_ui() {
                return Err(
                    Error::new(Exit::Denied, format!("goal {} is done", goal.id))
                        .with_hint("reopen it with `kapi goal reopen`, and a reason."),
                );
            }
            let (title, message) = (
                format!("Goal {} is done. Reopen it?", goal.id),
                "Its result is not accepted; it has to be proved again.".to_owned(),
            );
            let dialog = host.ask(PendingDialog::Reopen, dialog::confirm(title, message));
            return Ok(PersonReply {
                dialog: Some(dialog),
                ..PersonReply::default()
            });
        }
        GoalStatus::Setup
        | GoalStatus::Active
        | GoalStatus::Waiting
        | GoalStatus::Blocked
        | GoalStatus::Stalled
        | GoalStatus::Paused
        | GoalStatus::Impossible
        | GoalStatus::Cancelled => {}
    }
    let mut text = format!("Goal {} continues.", goal.id);
    if let Some(turns) = resume::turns_anew(&goal) {
        let added = turns - goal.budget.turns;
        attached.submit(
            host.context,
            &GoalCommand::Person(PersonCommand::SetTurns { turns }),
        )?;
        let added = counted(added, "turn");
        text = format!("Goal {} continues, with {added} more.", goal.id);
    }
    if !goal.is_driven() {
        goal = attached.submit(host.context, &GoalCommand::Resume)?;
    }
    host.seat.release();
    host.drive();
    Ok(about(&goal, &text))
}

/// Does not accept a result.
pub(super) fn reopen(host: &Host<'_>) -> Result<PersonReply, Error> {
    let attached = host.require_attached()?;
    let reason = "the user reopened it in their session".to_owned();
    let command = GoalCommand::Person(PersonCommand::Reopen { reason });
    let goal = attached.submit(host.context, &command)?;
    host.seat.release();
    host.drive();
    Ok(about(&goal, &format!("Goal {} is reopened.", goal.id)))
}

fn ask_cancel(host: &Host<'_>) -> Result<PersonReply, Error> {
    let attached = host.require_attached()?;
    if let Err(error) = attached.goal() {
        // What cannot be read cannot be cancelled, and no session may be held by it for good.
        host.detach();
        return Ok(PersonReply {
            level: ReplyLevel::Warning,
            goal: Some(view::lost(&attached.id)),
            ..told(&format!(
                "This session lets go of goal {}, which it cannot read: {}",
                attached.id, error.message
            ))
        });
    }
    if !host.has_ui() {
        return cancel(host);
    }
    let (title, message) = (
        format!("Cancel goal {} for good?", attached.id),
        "Your files stay as they are.".to_owned(),
    );
    Ok(PersonReply {
        dialog: Some(host.ask(PendingDialog::Cancel, dialog::confirm(title, message))),
        ..PersonReply::default()
    })
}

/// Ends the goal for good.
pub(super) fn cancel(host: &Host<'_>) -> Result<PersonReply, Error> {
    let attached = host.require_attached()?;
    let goal = attached.submit(host.context, &GoalCommand::Cancel { reason: None })?;
    Ok(about(&goal, &format!("Goal {} is cancelled.", goal.id)))
}

/// Approves the contract that waits: where there is a person to look at it, it is shown first.
fn approve(host: &Host<'_>) -> Result<PersonReply, Error> {
    let attached = host.require_attached()?;
    let goal = attached.goal()?;
    if goal.status != GoalStatus::Proposed {
        return Err(Error::new(
            Exit::Denied,
            format!(
                "goal {} is {}, and no contract waits for approval",
                goal.id, goal.status
            ),
        ));
    }
    if host.has_ui() {
        return Ok(PersonReply {
            dialog: Some(host.ask_approval(&goal)),
            ..PersonReply::default()
        });
    }
    begin::approve(host, &goal.contract)
}

fn budget(host: &Host<'_>, turns: u64) -> Result<PersonReply, Error> {
    let within = u32::try_from(turns)
        .ok()
        .filter(|turns| (1..=TURNS_MAX).contains(turns));
    let Some(turns) = within else {
        let text = format!("the turn budget must be 1 to {TURNS_MAX}");
        return Err(Error::usage(text));
    };
    if turns <= TURNS_ASKED_ABOVE {
        return set_turns(host, turns);
    }
    if !host.has_ui() {
        let text = format!("more than {TURNS_ASKED_ABOVE} turns need confirmation");
        return Err(
            Error::new(Exit::Denied, text).with_hint("confirm them with `kapi budget --turns`.")
        );
    }
    let (title, message) = (
        format!("Allow {}?", counted(turns, "turn")),
        "They may cost much time and money.".to_owned(),
    );
    let dialog = host.ask(PendingDialog::Turns(turns), dialog::confirm(title, message));
    Ok(PersonReply {
        dialog: Some(dialog),
        ..PersonReply::default()
    })
}

/// Sets the number of turns.
pub(super) fn set_turns(host: &Host<'_>, turns: u32) -> Result<PersonReply, Error> {
    let attached = host.require_attached()?;
    let goal = attached.submit(
        host.context,
        &GoalCommand::Person(PersonCommand::SetTurns { turns }),
    )?;
    let text = format!(
        "Goal {} may take {}; it has taken {}.",
        goal.id,
        counted(turns, "turn"),
        goal.spent.turns
    );
    Ok(about(&goal, &text))
}

/// Puts a question to the model that is no turn of the goal's.
fn aside(host: &Host<'_>, question: &str) -> Result<PersonReply, Error> {
    let goal = host.require_attached()?.goal()?;
    if goal.status.is_terminal() {
        return Err(
            Error::new(Exit::Denied, format!("goal {} is {}", goal.id, goal.status))
                .with_hint("ask the model directly."),
        );
    }
    if !host.seat.is_running() {
        host.seat.set_aside();
    }
    Ok(PersonReply {
        message: Some(session::aside(question)),
        ..PersonReply::default()
    })
}

fn judge(host: &Host<'_>, form: SlashJudgeForm) -> Result<PersonReply, Error> {
    let context = host.context;
    let chosen = match form {
        SlashJudgeForm::Show => {
            let root = judge::project_of(context)?;
            let preferred = context.preferred(&root)?.judge;
            let configured = context.config(Some(&root))?.judge().cloned();
            return Ok(told(&match preferred.or(configured) {
                Some(judge) => format!("Judge of new goals here: {judge}."),
                None => "No judge is set here: the contract of each goal names one.".to_owned(),
            }));
        }
        SlashJudgeForm::Same => judge::choose(context, Some("same"))?,
        SlashJudgeForm::Clear => judge::choose(context, None)?,
        SlashJudgeForm::Model { provider, model } => {
            choose_model(host, &format!("{provider}/{model}"))?
        }
        SlashJudgeForm::Malformed(text) => {
            return Err(Error::usage(format!("{text:?} is not a judge"))
                .with_hint("use `provider/model`, `same` or `clear`; nothing was changed."));
        }
    };
    let mut reply = told(&match &chosen.judge {
        Some(judge) => format!("Judge of new goals here: {judge}."),
        None => "No judge is set here any more; name one for each goal.".to_owned(),
    });
    if chosen.judge.as_deref() == Some("same") {
        // The model judges its own work, which is weaker.
        reply.level = ReplyLevel::Warning;
    }
    Ok(reply)
}

/// Has a model judge new goals here: one of the host's, or one that Kapi can ask itself.
fn choose_model(host: &Host<'_>, name: &str) -> Result<PreferenceValues, Error> {
    let context = host.context;
    let root = judge::project_of(context)?;
    if host.asks(name, &context.config(Some(&root))?) {
        return judge::prefer(context, &root, Some(name.to_owned()));
    }
    judge::choose(context, Some(name)).map_err(|error| {
        let names = host.models.some_names(NAMES_SHOWN_MAX);
        if names.is_empty() {
            return error;
        }
        let first = error.hint.clone().unwrap_or_default();
        let hint = format!(
            "{first} Models of this session can judge, too, such as {}.",
            names.join(", ")
        );
        error.with_hint(hint.trim_start())
    })
}
