//! Who judges: what was said, or another model than the executor's, and never nobody by accident.
//!
//! A judge is another agent, a model of a provider, the executor's own model, or by name nobody.

use std::path::Path;

use kapi_agent::agent::AgentKind;
use kapi_core::isolation::SandboxLevel;
use kapi_core::judge::Judge;
use kapi_core::text::holds_command;
use kapi_goal::record::preferences::{PreferenceChange, PreferenceValues};
use kapi_goal::rules::contract::Contract;
use kapi_run::asking;
use kapi_run::host_grants::HostGrants;

use crate::command_line;
use crate::config::Config;
use crate::context::Context;
use crate::contract::agent_name;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::Ui;

/// How a note begins that nobody judges.
pub(crate) const NOBODY: &str = "No judge";

/// What names a judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JudgeName {
    /// Nobody.
    None,
    /// The executor's own agent.
    Same,
    /// An agent.
    Agent(AgentKind),
    /// A model, asked directly.
    Model {
        /// Whose it is.
        provider: String,
        /// What they call it; it may hold slashes.
        model: String,
    },
}

impl JudgeName {
    /// Reads what is written after `--judge`.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        match text {
            "none" => return Ok(Self::None),
            "same" => return Ok(Self::Same),
            _ => {}
        }
        let is_program = holds_command(text);
        match text.split_once('/') {
            Some((provider, model)) if !is_program => {
                let is_plain = |part: &str| !part.is_empty() && !part.contains(char::is_whitespace);
                if is_plain(provider) && is_plain(model) && !model.ends_with('/') {
                    let (provider, model) = (provider.to_owned(), model.to_owned());
                    return Ok(Self::Model { provider, model });
                }
                Err(
                    Error::usage(format!("{text:?} is not of the form provider/model")).with_hint(
                        "write the provider, a slash, and the model's name: anthropic/claude-opus-4-7.",
                    ),
                )
            }
            Some(_) | None => agent_name::kind(text).map(Self::Agent),
        }
    }
}

/// What is known when a judge is chosen.
#[derive(Clone, Copy)]
pub(super) struct JudgeParticipants<'a> {
    /// Who asks, and from where.
    pub(super) context: &'a Context,
    /// The configuration.
    pub(super) config: &'a Config,
    /// The project.
    pub(super) root: &'a Path,
    /// What the person prefers in this project.
    pub(super) preferred: &'a PreferenceValues,
    /// The executor, as it stands in the contract.
    pub(super) agent: &'a str,
    /// Where both run.
    pub(super) level: SandboxLevel,
}

/// Returns the judge that the person chose. A flag holds over the environment, that over their
/// preference for this project, and that over their file.
pub(super) fn of_person(
    parties: JudgeParticipants<'_>,
    flag: Option<&str>,
) -> Result<Option<Judge>, Error> {
    let variable = parties.context.variable("KAPI_JUDGE");
    let said = flag
        .or(variable.filter(|text| !text.is_empty()))
        .or(parties.preferred.judge.as_deref())
        .or(parties.config.person_goal.judge.as_deref());
    said.map(|text| named(parties, text)).transpose()
}

/// Returns the judge that a text names.
pub(super) fn named(parties: JudgeParticipants<'_>, text: &str) -> Result<Judge, Error> {
    Ok(match JudgeName::parse(text)? {
        JudgeName::None => Judge::None,
        JudgeName::Same => Judge::Same,
        JudgeName::Model { provider, model } => Judge::Agent(format!("{provider}/{model}")),
        JudgeName::Agent(_) => match agent_name::absolute(parties.context, text)? {
            judge if judge == parties.agent => Judge::Same,
            judge => Judge::Agent(judge),
        },
    })
}

/// Returns who judges where the person named nobody: a model is judged by another one that is
/// there; a program is judged by its checks.
pub(super) fn unnamed(
    parties: JudgeParticipants<'_>,
    notes: &mut Vec<String>,
) -> Result<Option<Judge>, Error> {
    let executor = agent_name::kind(parties.agent)?;
    if !is_model(&executor) {
        return Ok(None);
    }
    let grants = parties.context.grants(parties.config);
    // An executor that cannot even begin is the nearer trouble.
    asking::check_agent(&grants, parties.agent, parties.level)
        .map_err(|failure| Error::world(&failure))?;
    match usable(&grants, &executor, parties.level).first() {
        Some(other) => {
            notes.push(format!(
                "No judge was named, so {other} judges: it is installed and is not {}. Choose \
                 another with `--judge` or `kapi goal judge`.",
                executor.name()
            ));
            Ok(Some(Judge::Agent((*other).to_owned())))
        }
        None => Ok(None),
    }
}

/// Asks the person who judges a model that nobody judges; nobody judges a program unasked.
///
/// # Errors
/// When it is a model, and nobody is there to say who judges it.
pub(super) fn required(parties: JudgeParticipants<'_>) -> Result<Judge, Error> {
    let executor = agent_name::kind(parties.agent)?;
    if !is_model(&executor) {
        return Ok(Judge::None);
    }
    match asked(parties, executor.name())? {
        Some(judge) => Ok(judge),
        None => Err(unspecified(parties.context.ui, &executor)),
    }
}

/// Asks at the keyboard who judges, and remembers the answer for the project; `None` where nobody
/// answers.
fn asked(parties: JudgeParticipants<'_>, executor: &str) -> Result<Option<Judge>, Error> {
    let (context, ui) = (parties.context, parties.context.ui);
    if !ui.is_at_keyboard() || context.require_human("choose a judge").is_err() {
        return Ok(None);
    }
    ui.say(&format!(
        "Who judges the work of {executor}? No other agent is installed and logged in.\n  \
         same            {executor} itself, in a fresh session; another model is stronger\n  \
         none            nobody: only the verify commands decide\n  \
         provider/model  a model by its API, such as anthropic/claude-opus-4-7"
    ));
    loop {
        let Some(answer) = ui.ask("Judge: ") else {
            return Ok(None);
        };
        let answer = answer.trim();
        if answer.is_empty() {
            return Ok(None);
        }
        match able_to_judge(parties, answer) {
            Ok(judge) => {
                remember(parties, answer)?;
                return Ok(Some(judge));
            }
            Err(error) => {
                let hint = error
                    .hint
                    .map_or_else(String::new, |hint| format!(" {hint}"));
                ui.say(&format!("{}.{hint}", error.message));
            }
        }
    }
}

/// Returns the judge that an answer names, if it could judge now.
fn able_to_judge(parties: JudgeParticipants<'_>, answer: &str) -> Result<Judge, Error> {
    let judge = named(parties, answer)?;
    let grants = parties.context.grants(parties.config);
    let is_ready = match JudgeName::parse(answer)? {
        JudgeName::None | JudgeName::Same => Ok(()),
        JudgeName::Model { .. } => kapi_check::perform::judge::check(&grants, answer),
        JudgeName::Agent(_) => asking::check_agent(&grants, answer, parties.level).map(|_| ()),
    };
    is_ready.map_err(|failure| Error::world(&failure))?;
    Ok(judge)
}

/// Keeps who judges in this project where nothing else is said.
fn remember(parties: JudgeParticipants<'_>, answer: &str) -> Result<(), Error> {
    let context = parties.context;
    let judge = match JudgeName::parse(answer)? {
        JudgeName::Agent(_) => agent_name::absolute(context, answer)?,
        JudgeName::None | JudgeName::Same | JudgeName::Model { .. } => answer.to_owned(),
    };
    let change = PreferenceChange::JudgeSet { judge: Some(judge) };
    context
        .preferences(parties.root)?
        .change(&context.actor, &change)
        .map_err(|error| Error::engine(&error, ""))?;
    context
        .ui
        .say("This is remembered for the project; change it with `kapi goal judge`.");
    Ok(())
}

/// Tells whether an agent is one of the models' own, and no program of somebody's.
pub(crate) const fn is_model(kind: &AgentKind) -> bool {
    match kind {
        AgentKind::Claude
        | AgentKind::Codex
        | AgentKind::Gemini
        | AgentKind::Pi
        | AgentKind::Acp(_) => true,
        AgentKind::Command(_) | AgentKind::Script(_) => false,
    }
}

/// Returns the agents that could judge this executor: installed, and with credentials.
pub(crate) fn usable(
    grants: &HostGrants,
    executor: &AgentKind,
    level: SandboxLevel,
) -> Vec<&'static str> {
    let mut others = asking::able(grants, level);
    others.retain(|name| *name != executor.name());
    others
}

fn unspecified(ui: Ui, executor: &AgentKind) -> Error {
    let text = format!(
        "judge_unspecified: no judge was named, and {} must not judge its own work unasked",
        executor.name()
    );
    Error::new(Exit::Denied, text).with_hint(format!(
        "no other agent is installed with credentials (`kapi doctor` explains why). Let the \
             same model judge in a fresh session: `{}`. Or name a judge with \
             `--judge provider/model` (anthropic/…, openai/…, gemini/…), or nobody with \
             `--judge none`; `kapi goal judge` sets a default for this project.",
        command_line::unattended(ui, &["--judge", "same"])
    ))
}

/// Says what a person should know of who judges.
pub(super) fn note(parties: JudgeParticipants<'_>, judge: &Judge, notes: &mut Vec<String>) {
    match judge {
        Judge::Same => notes.push(
            "SAME MODEL: the judge is the agent's own model in a fresh session; another model \
             (`--judge codex`, `--judge provider/model`) is stronger."
                .to_owned(),
        ),
        Judge::None => notes.push(format!("{NOBODY}: no model reviews the result.")),
        Judge::Agent(name) => {
            if is_executors_model(parties, name) {
                notes.push(format!(
                    "SAME MODEL: {name} is the model that {} uses.",
                    parties.agent
                ));
            }
        }
    }
}

/// Tells whether a model that judges is the one that the executor is configured with.
fn is_executors_model(parties: JudgeParticipants<'_>, judge: &str) -> bool {
    let Ok(JudgeName::Model { model, .. }) = JudgeName::parse(judge) else {
        return false;
    };
    let Ok(executor) = agent_name::kind(parties.agent) else {
        return false;
    };
    let settings = parties.config.agents.get(executor.name());
    let configured = settings.and_then(|settings| settings.model.as_deref());
    configured.is_some_and(|configured| {
        configured == model || configured.rsplit('/').next() == Some(model.as_str())
    })
}

/// Returns who judges, in words that name a judge which is the executor itself.
pub(crate) fn words(contract: &Contract) -> String {
    match &contract.judge {
        Judge::None => "none".to_owned(),
        Judge::Same => own_work(&contract.agent),
        Judge::Agent(name) => name.clone(),
    }
}

/// Returns that an agent judges what it did itself.
pub(crate) fn own_work(agent: &str) -> String {
    format!(
        "same model: {} judges its own work in a fresh session",
        kapi_core::text::agent_name(agent)
    )
}

#[cfg(test)]
mod tests {
    use kapi_agent::agent::AgentKind;

    use super::JudgeName;

    fn model(provider: &str, model: &str) -> JudgeName {
        let (provider, model) = (provider.to_owned(), model.to_owned());
        JudgeName::Model { provider, model }
    }

    #[test]
    fn judges_are_told_apart_by_how_they_are_written() {
        for (text, expected) in [
            ("none", JudgeName::None),
            ("same", JudgeName::Same),
            ("codex", JudgeName::Agent(AgentKind::Codex)),
            (
                "command:/usr/bin/judge",
                JudgeName::Agent(AgentKind::Command("/usr/bin/judge".to_owned())),
            ),
            (
                "script:a/b.yaml",
                JudgeName::Agent(AgentKind::Script("a/b.yaml".into())),
            ),
            (
                "anthropic/claude-opus-4-7",
                model("anthropic", "claude-opus-4-7"),
            ),
            ("openrouter/meta/llama", model("openrouter", "meta/llama")),
        ] {
            assert_eq!(JudgeName::parse(text).unwrap(), expected, "{text}");
        }
        for text in ["", "gpt-5", "/x", "x/", "a b/c", "openai/gpt 5", "Claude"] {
            assert!(JudgeName::parse(text).is_err(), "{text}");
        }
    }
}
