//! The goal of a stop gate: a goal of a session, whose turns the person's own agent takes in their checkout.
//!
//! The contract is the person's own words, so that giving them approves it.

use clap::FromArgMatches as _;
use kapi_core::id::GoalId;
use kapi_goal::record::project::Project;
use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::contract::TURNS_MAX;
use kapi_goal::rules::event::ApprovalMeans;
use kapi_goal::rules::state::Goal;
use kapi_goal::rules::words;

use super::record::{GatedCheckout, OWNER};
use crate::commands::goal::answer;
use crate::commands::prove;
use crate::commands::run::{self, DRAFTS_MAX};
use crate::context::Context;
use crate::contract::flags::Args;
use crate::contract::{self, ContractDraft, approval};
use crate::error::Error;
use crate::exit_code::Exit;
use crate::subdirectory::Subdirectory;

/// How often an agent is held in a row when nothing else was said. Claude Code lets go by itself after
/// eight.
pub(crate) const HOLDS_DEFAULT: u32 = 7;
/// The most that can be said.
const HOLDS_MAX: u32 = 1_000;
/// The client when nothing else was said.
pub(crate) const AGENT_DEFAULT: &str = "claude";
/// The judge when nothing else was said: nobody.
pub(crate) const JUDGE_DEFAULT: &str = "none";

/// The contract of a gate, as a person writes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct GateTerms {
    /// What is to be done.
    pub(crate) task: String,
    /// The commands that must pass; the project's own tests if there are none.
    pub(crate) verify: Vec<String>,
    /// Files that must stay as they are.
    pub(crate) protect: Vec<String>,
    /// What the person is asked about first.
    pub(crate) ask_before: Vec<String>,
    /// Who judges what passes; nobody if it is not said.
    pub(crate) judge: Option<String>,
    /// How often in a row it holds.
    pub(crate) holds: Option<u32>,
    /// The client whose sessions it holds.
    pub(crate) agent: Option<String>,
}

/// Sets a gate in the place of one that is there.
pub(crate) fn set(
    context: &Context,
    checkout: &GatedCheckout<'_>,
    terms: &GateTerms,
) -> Result<String, Error> {
    let args = arguments(context, checkout, terms)?;
    for _ in 0..DRAFTS_MAX {
        let draft = contract::draft_for_gate(context, &args)?;
        let project = context.project(&draft.root, OWNER);
        let Some(id) = run::create(context, &project, &draft)? else {
            continue;
        };
        return begin(context, checkout, NewGate { project, id, draft });
    }
    Err(Error::new(Exit::Busy, "other runs keep taking this branch").with_hint("reword the task."))
}

/// A goal that was created and does not hold yet.
struct NewGate<'a> {
    project: Project<'a>,
    id: GoalId,
    draft: ContractDraft,
}

fn begin(
    context: &Context,
    checkout: &GatedCheckout<'_>,
    gate: NewGate<'_>,
) -> Result<String, Error> {
    // One that cannot be read has nothing to be cancelled.
    if let Ok(Some(earlier)) = checkout.goal()
        && !earlier.goal()?.status.is_terminal()
    {
        let reason = Some("replaced by another goal".to_owned());
        earlier.submit(context, &GoalCommand::Cancel { reason })?;
    }
    let NewGate { project, id, draft } = gate;
    let means = ApprovalMeans::Terminal;
    approval::approve(context, &project, &id, &draft.contract, means)?;
    checkout.point_at(Some(&id))?;
    let mut lines = vec![shown(&checkout.require()?.goal()?)];
    lines.extend(
        draft
            .notes
            .iter()
            .map(|note| format!("  note       {note}")),
    );
    Ok(lines.join("\n"))
}

/// Returns the terms as options of `kapi run`.
fn arguments(
    context: &Context,
    checkout: &GatedCheckout<'_>,
    terms: &GateTerms,
) -> Result<Args, Error> {
    if terms.task.is_empty() {
        return Err(Error::usage("no task was given")
            .with_hint("say what is to be done, and in further lines `verify: <command>`."));
    }
    let holds = terms.holds.unwrap_or(HOLDS_DEFAULT);
    if !(1..=HOLDS_MAX).contains(&holds) {
        return Err(Error::usage(format!(
            "the gate holds 1 to {HOLDS_MAX} times in a row, not {holds}"
        )));
    }
    let command = <Args as clap::Args>::augment_args(clap::Command::new("kapi"));
    let matches = command.try_get_matches_from(["kapi", "--", &terms.task]);
    let args = matches.and_then(|matches| Args::from_arg_matches(&matches));
    let mut args = args.map_err(|error| Error::usage(error.to_string()))?;
    let here = Subdirectory::of(&context.cwd, &checkout.root);
    args.verify = if terms.verify.is_empty() {
        let tests = prove::own_tests(context, &checkout.root);
        tests.map_err(|error| {
            error.with_hint(
                "say which command proves it: `verify: <command>`, or in a terminal `kapi gate \
                 set TASK --verify COMMAND`.",
            )
        })?
    } else {
        here.commands(&terms.verify)
    };
    args.protect = here.patterns(&terms.protect);
    args.ask_before.clone_from(&terms.ask_before);
    args.agent = Some(terms.agent.as_deref().unwrap_or(AGENT_DEFAULT).to_owned());
    args.judge = Some(terms.judge.as_deref().unwrap_or(JUDGE_DEFAULT).to_owned());
    // The last turn is the one at whose end it lets go.
    args.turns = Some(holds.saturating_add(1));
    // The person looks on and says what else to try: the limit alone lets go.
    args.stall_after = Some(TURNS_MAX);
    Ok(args)
}

/// Returns a gate in words.
pub(crate) fn shown(goal: &Goal) -> String {
    let contract = &goal.contract;
    let mut lines = vec![answer::line(goal)];
    let fields = [
        ("verify", &contract.verify),
        ("protect", &contract.protect),
        ("ask before", &contract.working.ask_before),
    ];
    for (name, values) in fields {
        lines.extend(values.iter().map(|value| format!("  {name:<10} {value}")));
    }
    lines.extend(words::reason(goal).map(|reason| format!("  {:<10} {reason}", "reason")));
    lines.join("\n")
}
