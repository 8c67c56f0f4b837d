//! `[goal]`: what a goal gets when a flag does not say otherwise.
//!
//! A project's values hold within the person's: limits only get smaller, checks and protection only
//! grow, and it chooses no judge. Whose word counts is decided by the core.

use kapi_check::rules::proof::precedence::CheckSettings;
use kapi_goal::rules::contract::TURNS_DEFAULT;

use crate::amount;
use crate::config::GoalTable;
use crate::error::Error;

/// The keys of a project that stand beside the person's and not in their place.
pub(crate) const ADDED: &[&str] = &["goal.verify", "goal.judge"];

/// Returns what a table says of checks and limits; verify commands and judge are read by others.
pub(crate) fn settings(table: &GoalTable) -> Result<CheckSettings, Error> {
    let usd_micros = table
        .usd
        .map(|usd| amount::parse_usd_micros(&usd.to_string()).map_err(Error::usage))
        .transpose()?;
    let wall = table.wall.as_deref();
    let wall_ms = wall
        .map(|text| amount::parse_duration_ms(text).map_err(Error::usage))
        .transpose()?;
    Ok(CheckSettings {
        verify: None,
        protect: table.protect.clone().unwrap_or_default(),
        judge: None,
        tests: table.tests,
        already_green: table.already_green,
        changed_steering: table.allow_changed_setup,
        flagged_code: table.allow_flagged_code,
        strength: table.prove_diff,
        turns: table.turns,
        tokens: table.tokens,
        usd_micros,
        wall_ms,
    })
}

/// The project's values within the person's: limits only get smaller, checks and protection only
/// grow, and who works is the person's choice where they made one.
pub(crate) fn within(project: GoalTable, person: GoalTable) -> Result<GoalTable, Error> {
    let agent = person.agent.or(project.agent);
    let mut verify = person.verify.unwrap_or_default();
    for command in project.verify.unwrap_or_default() {
        if !verify.contains(&command) {
            verify.push(command);
        }
    }
    let mut protect = person.protect.unwrap_or_default();
    protect.extend(project.protect.unwrap_or_default());
    Ok(GoalTable {
        agent,
        judge: person.judge,
        verify: Some(verify).filter(|commands| !commands.is_empty()),
        protect: Some(protect).filter(|globs| !globs.is_empty()),
        base: project.base.or(person.base),
        branch_type: project.branch_type.or(person.branch_type),
        turns: smaller(project.turns, Some(person.turns.unwrap_or(TURNS_DEFAULT))),
        tokens: smaller(project.tokens, person.tokens),
        usd: smaller(project.usd, person.usd),
        wall: shorter(project.wall, person.wall)?,
        turn_timeout: shorter(project.turn_timeout, person.turn_timeout)?,
        verify_timeout: shorter(project.verify_timeout, person.verify_timeout)?,
        stall_after: smaller(project.stall_after, person.stall_after),
        tests: person.tests,
        already_green: person.already_green,
        allow_changed_setup: person.allow_changed_setup,
        allow_flagged_code: person.allow_flagged_code,
        prove_diff: person.prove_diff,
    })
}

/// Returns the keys whose values are the project's and not the person's.
pub(crate) fn taken(
    project: &GoalTable,
    person: &GoalTable,
    merged: &GoalTable,
) -> Vec<&'static str> {
    let all = [
        (
            "goal.agent",
            takes(&[&project.agent, &person.agent, &merged.agent]),
        ),
        (
            "goal.base",
            takes(&[&project.base, &person.base, &merged.base]),
        ),
        (
            "goal.type",
            takes(&[
                &project.branch_type,
                &person.branch_type,
                &merged.branch_type,
            ]),
        ),
        (
            "goal.turns",
            takes(&[&project.turns, &person.turns, &merged.turns]),
        ),
        (
            "goal.tokens",
            takes(&[&project.tokens, &person.tokens, &merged.tokens]),
        ),
        ("goal.usd", takes(&[&project.usd, &person.usd, &merged.usd])),
        (
            "goal.wall",
            takes(&[&project.wall, &person.wall, &merged.wall]),
        ),
        (
            "goal.turn_timeout",
            takes(&[
                &project.turn_timeout,
                &person.turn_timeout,
                &merged.turn_timeout,
            ]),
        ),
        (
            "goal.verify_timeout",
            takes(&[
                &project.verify_timeout,
                &person.verify_timeout,
                &merged.verify_timeout,
            ]),
        ),
        (
            "goal.stall_after",
            takes(&[
                &project.stall_after,
                &person.stall_after,
                &merged.stall_after,
            ]),
        ),
    ];
    all.into_iter()
        .filter(|(_, is_taken)| *is_taken)
        .map(|(key, _)| key)
        .collect()
}

/// Tells whether the third value is the first one, and not the second one anyway.
fn takes<T: PartialEq>([project, person, merged]: &[&Option<T>; 3]) -> bool {
    project.is_some() && merged == project && person != project
}

fn smaller<T: PartialOrd>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if one < other { one } else { other }),
        (one, other) => one.or(other),
    }
}

fn shorter(one: Option<String>, other: Option<String>) -> Result<Option<String>, Error> {
    let (Some(one), Some(other)) = (&one, &other) else {
        return Ok(one.or(other));
    };
    let ms = |text: &str| amount::parse_duration_ms(text).map_err(Error::usage);
    Ok(Some(if ms(one)? < ms(other)? {
        one.clone()
    } else {
        other.clone()
    }))
}
