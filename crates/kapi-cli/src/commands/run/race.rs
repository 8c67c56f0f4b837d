//! `kapi run --race`: the same contract to several agents at once, approved once.
//!
//! Draws the lanes up, shows them, has them approved and lets them go. How lanes are driven and
//! shown is in the files beside this one; who won is the engine's business.

use std::collections::{BTreeMap, BTreeSet};

use kapi_core::id::GoalId;
use kapi_core::text::{agent_name, counted, holds_command};
use kapi_goal::record::project::Project;
use kapi_goal::rules::contract::{Contract, LANES_MAX, Race, RaceEnd};
use kapi_goal::rules::event::GoalEvent;
use kapi_goal::rules::state::{Goal, GoalStatus};
use kapi_machine::logged::EventRecord;

use crate::commands::run::DRAFTS_MAX;
use crate::commands::run::race::field::RaceField;
use crate::config::Config;
use crate::context::Context;
use crate::contract::flags::{Args, RaceFlags};
use crate::contract::{self, ContractDraft, approval, isolation, judge, words};
use crate::driving::WhenParked;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::{amount, driving, naming};

mod field;
mod lanes;
pub(crate) mod view;

/// How many names are tried for a lane's branch.
const BRANCH_TRIES_MAX: u32 = 99;

/// Runs a race.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let lanes = lane_args(args)?;
    for _ in 0..DRAFTS_MAX {
        let mut drafts = draw_up(context, &lanes, args.race.ends())?;
        let Some(first) = drafts.first() else { break };
        show(context, &drafts);
        let project = context.project(&first.root, "kapi run");
        let means = match approval::in_advance(context, &project, args.yes)? {
            Some(means) => means,
            None => driving::approval(context, &first.contract, false)?,
        };
        let interrupts = driving::interrupts()?;
        let Some(ids) = create(context, &project, &mut drafts)? else {
            context
                .ui
                .say("note: another run has just taken one of the branches; trying again.");
            continue;
        };
        if let (Some(jobs), Some(first)) = (args.race.jobs, ids.first()) {
            let kept = kapi_goal::record::race::keep_jobs(&project, first, jobs);
            kept.map_err(|error| failed(&error, first))?;
        }
        let mut begun = BTreeMap::new();
        for (id, draft) in ids.iter().zip(&drafts) {
            approval::approve(context, &project, id, &draft.contract, means)?;
            let log = project.log(id);
            begun.insert(id.clone(), log.map_err(|error| failed(&error, id))?);
        }
        let (Some(first), Some(id)) = (drafts.first(), ids.first()) else {
            break;
        };
        let field = RaceField {
            context,
            project: &project,
            config: &first.config,
            of: id.index(),
            jobs: args.race.jobs.unwrap_or(LANES_MAX),
            interrupts: &interrupts,
            when_parked: WhenParked::asked(args.park),
        };
        return lanes::run(&field, &begun);
    }
    Err(
        Error::new(Exit::Busy, "other runs keep taking these branches")
            .with_hint("reword the task."),
    )
}

/// How a race goes on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RaceMode {
    /// The index of its first goal.
    pub(crate) of: u32,
    /// Whether contracts that nobody approved yet are approved without being asked.
    pub(crate) yes: bool,
    /// What becomes of a lane that is parked.
    pub(crate) when_parked: WhenParked,
}

/// Lets a race go on that was interrupted, cut off or stopped.
pub(crate) fn resume(
    context: &Context,
    project: &Project<'_>,
    config: &Config,
    going: RaceMode,
) -> Result<Exit, Error> {
    let of = going.of;
    let state = |error| Error::engine(&error, &format!("{of:03}"));
    let lanes = kapi_goal::record::race::lanes(project, of).map_err(state)?;
    for lane in &lanes {
        let goal = &lane.goal;
        if goal.status != GoalStatus::Proposed && !goal.status.is_terminal() {
            driving::require_approved(project, &goal.id)?;
        }
    }
    if let Some(lane) = lanes.first() {
        // What was decided before everything was cut off is carried out first.
        let goal = &lane.goal;
        kapi_goal::record::race::settle(project, &context.actor, goal).map_err(state)?;
    }
    let lanes = kapi_goal::record::race::lanes(project, of).map_err(state)?;
    let expected = lanes.first().map_or(0, |lane| lane.race.lanes);
    if u32::try_from(lanes.len()) != Ok(expected) {
        context.ui.say(&format!(
            "note: only {} of the {expected} lanes exist; the race continues with them.",
            lanes.len()
        ));
    }
    let goals: Vec<Goal> = lanes.into_iter().map(|lane| lane.goal).collect();
    let mut begun = approve_rest(context, project, &goals, going.yes)?;
    for goal in &goals {
        begun
            .entry(goal.id.clone())
            .or_insert(go_on(context, project, goal)?);
    }
    let interrupts = driving::interrupts()?;
    let field = RaceField {
        context,
        project,
        config,
        of,
        jobs: kapi_goal::record::race::kept_jobs(project, of)
            .map_err(state)?
            .unwrap_or(LANES_MAX),
        interrupts: &interrupts,
        when_parked: going.when_parked,
    };
    lanes::run(&field, &begun)
}

/// Approves the lanes that were proposed when everything was cut off; shown and asked once.
fn approve_rest(
    context: &Context,
    project: &Project<'_>,
    goals: &[Goal],
    yes: bool,
) -> Result<BTreeMap<GoalId, Vec<EventRecord<GoalEvent>>>, Error> {
    let is_proposed = |goal: &&Goal| goal.status == GoalStatus::Proposed;
    let proposed: Vec<&Goal> = goals.iter().filter(is_proposed).collect();
    let Some(first) = proposed.first() else {
        return Ok(BTreeMap::new());
    };
    let contracts: Vec<&Contract> = proposed.iter().map(|goal| &goal.contract).collect();
    show_contracts(
        context,
        &contracts,
        &isolation::isolation_note(&first.contract),
    );
    let means = driving::approval(context, &first.contract, yes)?;
    let approve = |goal: &&Goal| {
        approval::approve(context, project, &goal.id, &goal.contract, means)
            .map(|recorded| (goal.id.clone(), recorded))
    };
    proposed.iter().map(approve).collect()
}

/// Resumes one lane. One that cannot go on does not keep the others.
fn go_on(
    context: &Context,
    project: &Project<'_>,
    goal: &Goal,
) -> Result<Vec<EventRecord<GoalEvent>>, Error> {
    match goal.status {
        GoalStatus::Paused | GoalStatus::Blocked | GoalStatus::Stalled => {}
        // Whoever looks whether its wait is over is a lane's own thread.
        GoalStatus::Waiting
        | GoalStatus::Setup
        | GoalStatus::Proposed
        | GoalStatus::Active
        | GoalStatus::Impossible
        | GoalStatus::Cancelled
        | GoalStatus::Unverified
        | GoalStatus::Done => return Ok(Vec::new()),
    }
    let resume = kapi_goal::rules::command::GoalCommand::Resume;
    match project.submit(&goal.id, &context.actor, &resume) {
        Ok(submitted) => Ok(submitted.recorded),
        Err(kapi_goal::record::error::EngineError::Denied(denied)) => {
            context
                .ui
                .say(&format!("note: {} is unchanged: {denied}", goal.id));
            Ok(Vec::new())
        }
        Err(error) => Err(failed(&error, &goal.id)),
    }
}

/// Returns the flags of each lane's own contract.
fn lane_args(args: &Args) -> Result<Vec<Args>, Error> {
    let mut agents: Vec<Option<String>> = Vec::new();
    for said in &args.race.race {
        // A command or a path may hold commas of its own.
        let is_one = holds_command(said);
        let names: Vec<&str> = if is_one {
            vec![said]
        } else {
            said.split(',').map(str::trim).collect()
        };
        if names.iter().any(|name| name.is_empty()) {
            return Err(Error::usage(format!(
                "{said:?} contains an empty agent name"
            )));
        }
        agents.extend(names.into_iter().map(|name| Some(name.to_owned())));
    }
    if agents.is_empty() {
        agents.push(args.agent.clone());
    }
    if args.model.is_some() && agents.iter().any(|agent| Some(agent) != agents.first()) {
        return Err(
            Error::usage("one model was named for a race of several agents").with_hint(
                "leave out `--model`, and set `model` under `[agents.<name>]` for each of them.",
            ),
        );
    }
    let mut lanes = Vec::new();
    for agent in agents {
        for _ in 0..args.race.attempts.unwrap_or(1) {
            lanes.push(Args {
                agent: agent.clone(),
                race: RaceFlags::default(),
                ..args.clone()
            });
        }
    }
    if !(2..=LANES_MAX as usize).contains(&lanes.len()) {
        return Err(Error::usage(format!(
            "a race has 2 to {LANES_MAX} lanes, but this one would have {}",
            lanes.len()
        ))
        .with_hint("name several agents with `--race`, or add `--attempts <N>`."));
    }
    Ok(lanes)
}

/// Draws the contract up for each lane. A lane that could not begin is left out and told; one
/// that was asked for wrongly ends it all.
fn draw_up(context: &Context, lanes: &[Args], ends: RaceEnd) -> Result<Vec<ContractDraft>, Error> {
    let mut drafts: Vec<ContractDraft> = Vec::new();
    let mut left_out = Vec::new();
    for args in lanes {
        match contract::draft(context, args) {
            Ok(draft) => drafts.push(draft),
            Err(error) if error.exit == Exit::Usage => return Err(error),
            Err(error) => left_out.push((args.agent.clone().unwrap_or_default(), error)),
        }
    }
    let reported: BTreeSet<String> = left_out
        .iter()
        .map(|(agent, error)| format!("{} is left out: {error}", agent_name(agent)))
        .collect();
    if drafts.is_empty() {
        let reported: Vec<String> = reported.into_iter().collect();
        let hint = left_out.into_iter().find_map(|(_, error)| error.hint);
        let text = format!("no lane can start: {}", reported.join("; "));
        return Err(Error {
            hint,
            ..Error::new(Exit::Failed, text)
        });
    }
    let count = u32::try_from(drafts.len()).unwrap_or(u32::MAX);
    let shared = drafts.first().map(|first| {
        let slug = first.slug.clone();
        (
            slug,
            first.contract.base.clone(),
            first.contract.branch.clone(),
        )
    });
    let mut taken = BTreeSet::new();
    for (lane, draft) in (1..).zip(&mut drafts) {
        if let Some((slug, base, branch)) = &shared {
            draft.slug = slug.clone();
            draft.contract.base = base.clone();
            draft.contract.branch = lane_branch(draft, lane, branch, &taken)?;
        }
        taken.insert(draft.contract.branch.clone());
        draft.contract.race = Some(Race {
            // The index is only known once it is claimed.
            of: 0,
            lane,
            lanes: count,
            ends,
        });
        if let Some((field, rule)) = draft.contract.fault() {
            return Err(Error::usage(format!(
                "the contract's {field} is not valid: {rule}"
            )));
        }
    }
    if let Some(first) = drafts.first_mut() {
        first.notes.extend(reported);
    }
    Ok(drafts)
}

fn lane_branch(
    draft: &ContractDraft,
    lane: u32,
    plain: &str,
    taken: &BTreeSet<String>,
) -> Result<String, Error> {
    if lane == 1 {
        return Ok(plain.to_owned());
    }
    for number in 1..=BRANCH_TRIES_MAX {
        let suffix = if number == 1 {
            String::new()
        } else {
            format!("-{number}")
        };
        let branch = format!("{plain}-lane-{lane}{suffix}");
        if naming::is_free(&branch, &draft.survey, taken)? {
            return Ok(branch);
        }
    }
    Err(Error::usage(format!(
        "every branch name of the form {plain}-lane-{lane} is taken"
    ))
    .with_hint("reword the task."))
}

fn show(context: &Context, drafts: &[ContractDraft]) {
    let contracts: Vec<&Contract> = drafts.iter().map(|draft| &draft.contract).collect();
    let mut notes: Vec<String> = Vec::new();
    for note in drafts.iter().flat_map(|draft| &draft.notes) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    show_contracts(context, &contracts, &notes);
}

/// Shows what the lanes have in common, each lane, and what they may use together.
fn show_contracts(context: &Context, contracts: &[&Contract], notes: &[String]) {
    const OWN: [&str; 4] = ["agent", "models", "judge", "branch"];
    let ui = context.ui;
    let Some(first) = contracts.first() else {
        return;
    };
    ui.say("Contract of every lane");
    let mut rows = words::rows(first);
    rows.retain(|(name, _)| !OWN.contains(name));
    for line in words::lines(&rows) {
        ui.say(&line);
    }
    let rule = match first.race.as_ref().map(|race| race.ends) {
        Some(RaceEnd::Compare) => "all lanes finish and are ranked",
        Some(RaceEnd::FirstProved) | None => "the first proved lane wins, and the others stop",
    };
    ui.say(&format!("Race of {} lanes: {rule}", contracts.len()));
    for contract in contracts {
        let lane = contract.race.as_ref().map_or(0, |race| race.lane);
        let agent = agent_name(&contract.agent);
        let judge = judge::words(contract);
        ui.say(&format!(
            "  lane {lane:<4} {agent}, judge {judge}, branch {}",
            contract.branch
        ));
        for models in &contract.models {
            ui.say(&format!("            {}", models.words()));
        }
    }
    ui.say(&format!("  together  at most {}", together(contracts)));
    for note in notes {
        ui.say(&format!("note: {note}"));
    }
}

/// Returns what all lanes may use together, at worst.
fn together(contracts: &[&Contract]) -> String {
    let turns: u64 = contracts
        .iter()
        .map(|contract| u64::from(contract.budget.turns))
        .sum();
    let mut parts = vec![counted(turns, "turn")];
    let sum = |limit: &dyn Fn(&Contract) -> Option<u64>| {
        let limits: Option<Vec<u64>> = contracts.iter().map(|contract| limit(contract)).collect();
        limits.map(|limits| {
            limits
                .iter()
                .fold(0_u64, |sum, limit| sum.saturating_add(*limit))
        })
    };
    match sum(&|contract| contract.budget.tokens) {
        Some(tokens) => parts.push(format!("{} tokens", amount::tokens(tokens))),
        None => parts.push("tokens without a limit".to_owned()),
    }
    parts.extend(sum(&|contract| contract.budget.usd_micros).map(amount::usd));
    parts.extend(sum(&|contract| contract.budget.wall_ms).map(amount::duration));
    parts.join(", ")
}

/// Creates every lane, unless another run took a branch since they were drawn up. All are
/// proposed before any is approved: what a crash leaves is not under way.
fn create(
    context: &Context,
    project: &Project<'_>,
    drafts: &mut [ContractDraft],
) -> Result<Option<Vec<GoalId>>, Error> {
    let _held = naming::hold(project)?;
    let reserved = naming::reserved(project)?;
    for draft in &*drafts {
        if !naming::is_free(&draft.contract.branch, &draft.survey, &reserved)? {
            return Ok(None);
        }
    }
    let engine = |error| Error::engine(&error, "");
    let mut ids: Vec<GoalId> = Vec::new();
    for draft in drafts {
        let id = project
            .claim_goal(&context.actor, &draft.slug, &draft.contract)
            .map_err(engine)?;
        if let Some(race) = &mut draft.contract.race {
            race.of = ids.first().unwrap_or(&id).index();
        }
        project
            .create_claimed(&context.actor, &id, &draft.contract)
            .map_err(engine)?;
        ids.push(id);
    }
    Ok(Some(ids))
}

fn failed(error: &kapi_goal::record::error::EngineError, id: &GoalId) -> Error {
    Error::engine(error, &id.to_string())
}
