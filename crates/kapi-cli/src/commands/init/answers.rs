//! What a person chooses at the terminal: an empty line takes what is proposed.
//!
//! The end of the input chooses nothing, and nothing is written then.

use kapi_core::text::counted;
use kapi_goal::rules::contract::TURNS_DEFAULT;

use super::agents::AgentAccess;
use super::{Proposals, WALL_DEFAULT, verify};
use crate::amount;
use crate::context::Context;
use crate::contract::judge::JudgeName;
use crate::error::Error;
use crate::exit_code::Exit;

/// Everything that is chosen; what is open is `None`.
#[derive(Debug, Clone)]
pub(super) struct InitAnswers {
    pub(super) agent: Option<String>,
    pub(super) login: Option<bool>,
    pub(super) verify: Option<Vec<String>>,
    pub(super) judge: Option<String>,
    pub(super) limits: Option<InitLimits>,
}

/// The limits of each goal.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct InitLimits {
    pub(super) turns: Option<u32>,
    pub(super) wall: Option<String>,
    pub(super) usd: Option<f64>,
}

impl InitAnswers {
    pub(super) fn agent(&self) -> &str {
        self.agent.as_deref().unwrap_or_default()
    }

    pub(super) fn judge(&self) -> &str {
        self.judge.as_deref().unwrap_or("same")
    }
}

impl InitLimits {
    pub(super) fn usual() -> Self {
        Self {
            turns: Some(TURNS_DEFAULT),
            wall: Some(WALL_DEFAULT.to_owned()),
            usd: None,
        }
    }

    fn words(&self) -> String {
        let turns = self.turns.map(|turns| counted(turns, "turn"));
        let usd = self.usd.map(|usd| format!("${usd}"));
        let all = turns.into_iter().chain(self.wall.clone()).chain(usd);
        all.collect::<Vec<_>>().join(", ")
    }

    /// Reads limits as a person types them: `10 turns, 1h, $5`.
    fn parse(text: &str) -> Result<Self, String> {
        let mut limits = Self::default();
        for part in text.split(',').map(str::trim) {
            if let Some(dollars) = part.strip_prefix('$') {
                limits.usd = Some(usd(dollars)?);
            } else if let Some(turns) = part.strip_suffix("turns") {
                let turns = turns.trim().parse().ok().filter(|turns| *turns > 0);
                limits.turns =
                    Some(turns.ok_or_else(|| format!("{part:?} is not a number of turns"))?);
            } else {
                limits.wall = Some(duration(part)?);
            }
        }
        Ok(limits)
    }
}

/// Checks a duration, which stays as it was written.
pub(super) fn duration(text: &str) -> Result<String, String> {
    amount::parse_duration_ms(text).map(|_| text.to_owned())
}

/// Reads an amount of US dollars.
pub(super) fn usd(text: &str) -> Result<f64, String> {
    amount::parse_usd_micros(text)?;
    text.parse()
        .map_err(|_| format!("{text:?} is not an amount of US dollars"))
}

/// Asks for what is open.
pub(super) fn asked(
    context: &Context,
    proposals: &Proposals,
    mut answers: InitAnswers,
) -> Result<InitAnswers, Error> {
    let agents = &proposals.agents;
    if answers.agent.is_none() {
        let names: Vec<&str> = agents.usable.iter().map(|agent| agent.name).collect();
        let question = format!("Agent: {} [{}] ", names.join(", "), agents.first());
        answers.agent = Some(ask(context, &question, agents.first(), |text| {
            let is_known = names.contains(&text);
            is_known
                .then(|| text.to_owned())
                .ok_or_else(|| format!("{text:?} is not one of {}", names.join(", ")))
        })?);
    }
    let agent = answers.agent().to_owned();
    if answers.login.is_none() && agents.access(&agent) == Some(AgentAccess::Login) {
        let question = format!(
            "Lend your own {agent} login to its runs? A copy is made for each; there is no key. [Y/n] "
        );
        let is_lent = ask(context, &question, "y", |text| match text {
            "y" | "Y" | "yes" => Ok(true),
            "n" | "N" | "no" => Ok(false),
            _ => Err("type y or n".to_owned()),
        })?;
        if !is_lent {
            return Err(Error::new(
                Exit::Denied,
                format!(
                    "{agent} has neither a key nor a login that it may use; nothing was written"
                ),
            ));
        }
        answers.login = Some(true);
    }
    if answers.verify.is_none() {
        let passing = verify::passing(&proposals.tried);
        let shown = if passing.is_empty() {
            "none".to_owned()
        } else {
            passing.join("; ")
        };
        let question = format!("Verify commands, `;` between them [{shown}] ");
        answers.verify = Some(ask(context, &question, "", |text| {
            Ok(match text {
                "" => passing.clone(),
                "none" => Vec::new(),
                text => text.split(';').map(|one| one.trim().to_owned()).collect(),
            })
        })?);
    }
    if answers.judge.is_none() {
        let proposed = agents.judge_of(&agent);
        let question = format!(
            "Judge: another agent, provider/model, same ({agent} in a fresh session) or none [{proposed}] "
        );
        answers.judge = Some(ask(context, &question, &proposed, |text| {
            let parsed = JudgeName::parse(text);
            parsed
                .map(|_| text.to_owned())
                .map_err(|error| error.message)
        })?);
    }
    if answers.limits.is_none() {
        let usual = InitLimits::usual().words();
        let question = format!("Limits of each goal, such as 10 turns, 1h, $5 [{usual}] ");
        answers.limits = Some(ask(context, &question, &usual, InitLimits::parse)?);
    }
    Ok(answers)
}

/// Asks until the answer can be read; an empty line is the proposal.
fn ask<T>(
    context: &Context,
    question: &str,
    proposed: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<T, Error> {
    let unanswered = || {
        Error::new(
            Exit::Denied,
            "not every question was answered; nothing was written",
        )
        .with_hint("`kapi init --yes` accepts every proposal.")
    };
    loop {
        let line = context.ui.ask(question).ok_or_else(unanswered)?;
        if line.is_empty() {
            return Err(unanswered());
        }
        let text = match line.trim() {
            "" => proposed,
            text => text,
        };
        match read(text) {
            Ok(answer) => return Ok(answer),
            Err(why) => context.ui.say(&format!("{why}.")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::InitLimits;

    #[test]
    fn limits_are_read_as_they_are_typed() {
        for (text, turns, wall, usd) in [
            ("20 turns, 2h", Some(20), Some("2h"), None),
            ("$1.5", None, None, Some(1.5)),
            ("5turns,90s, $2", Some(5), Some("90s"), Some(2.0)),
        ] {
            let wall = wall.map(str::to_owned);
            assert_eq!(
                InitLimits::parse(text).unwrap(),
                InitLimits { turns, wall, usd }
            );
        }
        for text in ["", "0 turns", "x turns", "soon", "$", "$-1"] {
            assert!(InitLimits::parse(text).is_err(), "{text}");
        }
        let usual = InitLimits::usual();
        assert_eq!(InitLimits::parse(&usual.words()).unwrap(), usual);
    }
}
