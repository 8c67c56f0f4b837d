//! `[goal]`: what a goal gets when a flag does not say otherwise.
//!
//! A project's values hold within the person's: limits only get smaller, checks and protection only
//! grow, and it chooses no judge. Whose word counts is decided by the core.

use kapi_check::rules::proof::policy::TestPolicy;
use kapi_check::rules::proof::precedence::CheckSettings;
use kapi_goal::rules::contract::{TURNS_DEFAULT, TURNS_MAX};
use serde::Deserialize;

use crate::amount;
use crate::config::source::SettingsText;
use crate::error::Error;

/// The keys of a project that stand beside the person's and not in their place.
pub(crate) const ADDED: &[&str] = &["goal.verify", "goal.judge"];

/// `[goal]`: what a goal gets when a flag does not say otherwise.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct GoalTable {
    /// The agent.
    pub(crate) agent: Option<String>,
    /// The judge: an agent, `same` or `none`.
    pub(crate) judge: Option<String>,
    /// Verify commands.
    pub(crate) verify: Option<Vec<String>>,
    /// Protected pathspecs.
    pub(crate) protect: Option<Vec<String>>,
    /// The base revision.
    pub(crate) base: Option<String>,
    /// The branch type.
    #[serde(rename = "type")]
    pub(crate) branch_type: Option<String>,
    /// The turn budget.
    pub(crate) turns: Option<u32>,
    /// The token budget.
    pub(crate) tokens: Option<u64>,
    /// The money budget in US dollars.
    pub(crate) usd: Option<f64>,
    /// The time budget, such as `"2h"`.
    pub(crate) wall: Option<String>,
    /// The time limit of one turn.
    pub(crate) turn_timeout: Option<String>,
    /// The time limit of one verify command.
    pub(crate) verify_timeout: Option<String>,
    /// Turns without progress before the goal is stalled.
    pub(crate) stall_after: Option<u32>,
    /// What may happen to the project's tests.
    pub(crate) tests: Option<TestPolicy>,
    /// Whether checks that pass on the base are proof enough.
    pub(crate) already_green: Option<bool>,
    /// Whether the proof may rest on scripts and settings that the change itself edits.
    pub(crate) allow_changed_setup: Option<bool>,
    /// Whether the proof may rest on code that looks like faking a pass.
    pub(crate) allow_flagged_code: Option<bool>,
    /// Whether each hunk of the change is taken back in turn.
    pub(crate) prove_diff: Option<bool>,
}

/// Refuses values that no goal could have, each at its key.
pub(crate) fn check(said: &mut SettingsText<'_>, table: &GoalTable) {
    let is_empty = |text: &str| text.trim().is_empty();
    for (key, text) in [("goal.agent", &table.agent), ("goal.judge", &table.judge)] {
        if text.as_deref().is_some_and(is_empty) {
            said.wrong(key, "it is empty", "name one, or remove the key");
        }
    }
    let mut commands = table.verify.iter().flatten();
    if commands.any(|command| is_empty(command)) {
        said.wrong("goal.verify", "a command is empty", "remove it");
    }
    if let Some(turns) = table.turns.filter(|turns| !(1..=TURNS_MAX).contains(turns)) {
        let remedy = format!("give a whole number from 1 to {TURNS_MAX}");
        said.wrong("goal.turns", format!("{turns} is out of range"), remedy);
    }
    if let Some(turns) = table.stall_after.filter(|turns| *turns < 2) {
        let what = format!("{turns} is out of range");
        said.wrong("goal.stall_after", what, "give a whole number from 2 on");
    }
    if let Some(usd) = table.usd
        && amount::parse_usd_micros(&usd.to_string()).is_err()
    {
        let remedy = "give an amount such as 5 or 0.25, with at most six decimals";
        said.wrong(
            "goal.usd",
            format!("{usd} is no amount of US dollars"),
            remedy,
        );
    }
    for (key, text) in [
        ("goal.wall", &table.wall),
        ("goal.turn_timeout", &table.turn_timeout),
        ("goal.verify_timeout", &table.verify_timeout),
    ] {
        let text = text.as_deref().unwrap_or("1s");
        if amount::parse_duration_ms(text).is_err() {
            let remedy = "give one such as 90s, 15m, 2h or 1d";
            said.wrong(key, format!("{text:?} is not a duration"), remedy);
        }
    }
}

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
