//! What a person orders of the gate of their checkout, at a terminal or in a session of an agent, and
//! what they are told.
//!
//! Only a person orders: an agent's process is refused, and an agent's tools have no such order.

use kapi_agent::hook::HookAgent;
use kapi_goal::rules::command::{GoalCommand, PersonCommand};
use kapi_goal::rules::state::GoalStatus;

use super::goal::{self, GateTerms, shown};
use super::record::GatedCheckout;
use super::turn_end::{self, TurnEnd};
use crate::commands::goal::resume::turns_anew;
use crate::commands::rpc::attached::AttachedGoal;
use crate::context::Context;
use crate::error::Error;

/// What begins a line that says one thing of the contract, in a session.
const FIELDS: [&str; 5] = ["verify:", "protect:", "ask-before:", "judge:", "holds:"];
/// What stands before the word of an order, in a session.
const PREFIX: &str = "kapi:";

/// What a person orders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GateOrder {
    /// Hold until this is proved.
    Set(GateTerms),
    /// Say where it stands.
    Status,
    /// Do not hold for now.
    Pause,
    /// Hold again.
    Resume,
    /// Hold no more.
    Off,
    /// Run the checks now.
    Check,
}

impl GateOrder {
    /// Reads what a person typed in a session; `None` where it is no order.
    pub(crate) fn typed(prompt: &str) -> Option<Result<Self, Error>> {
        let prompt = prompt.trim_start();
        // Not every client takes a slash that it does not know.
        let rest = prompt.strip_prefix('/').unwrap_or(prompt);
        let rest = rest.strip_prefix(PREFIX)?;
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        Some(Ok(match word {
            "goal" => return Some(terms(rest).map(Self::Set)),
            "status" => Self::Status,
            "pause" => Self::Pause,
            "resume" => Self::Resume,
            "off" => Self::Off,
            "check" => Self::Check,
            _ => return None,
        }))
    }
}

impl GateOrder {
    /// Returns the order as it is given in a client.
    pub(super) fn in_client(self, agent: HookAgent) -> Self {
        let name = match agent {
            HookAgent::Claude => "claude",
            HookAgent::Codex => "codex",
            HookAgent::Gemini => "gemini",
        };
        match self {
            Self::Set(terms) => Self::Set(GateTerms {
                agent: Some(name.to_owned()),
                ..terms
            }),
            other => other,
        }
    }
}

/// Reads a contract: the task, and fields, each behind its name up to the end of the line or to the next
/// field. Some clients make one line of several.
fn terms(text: &str) -> Result<GateTerms, Error> {
    let mut terms = GateTerms::default();
    let mut task = Vec::new();
    for line in text.lines() {
        let mut rest = line;
        while let Some((before, field, value)) = next_field(rest) {
            task.push(before.trim());
            let end = next_field(value).map_or(value.len(), |(before, _, _)| before.len());
            let (value, more) = value.split_at(end);
            note(&mut terms, field, value.trim())?;
            rest = more;
        }
        task.push(rest.trim());
    }
    task.retain(|part| !part.is_empty());
    terms.task = task.join(" ");
    Ok(terms)
}

/// Returns what stands before the next field of a line, its name, and what stands behind it.
fn next_field(line: &str) -> Option<(&str, &'static str, &str)> {
    let begins = |at: usize| {
        line.get(..at)
            .is_some_and(|it| it.is_empty() || it.ends_with(' '))
    };
    let found = FIELDS.iter().filter_map(|field| {
        let mut places = line.match_indices(field);
        let (at, _) = places.find(|(at, _)| begins(*at))?;
        Some((at, *field))
    });
    let (at, field) = found.min()?;
    let (before, rest) = line.split_at(at);
    Some((before, field, rest.strip_prefix(field)?))
}

fn note(terms: &mut GateTerms, field: &str, value: &str) -> Result<(), Error> {
    match field {
        "verify:" => terms.verify.push(value.to_owned()),
        "protect:" => terms.protect.push(value.to_owned()),
        "ask-before:" => terms.ask_before.push(value.to_owned()),
        "judge:" => terms.judge = Some(value.to_owned()),
        _ => {
            let holds = value.parse();
            terms.holds =
                Some(holds.map_err(|_| {
                    Error::usage(format!("{value:?} is not how often the gate holds"))
                })?);
        }
    }
    Ok(())
}

/// Carries an order out and returns what the person is told.
pub(crate) fn carry_out(context: &Context, order: &GateOrder) -> Result<String, Error> {
    let checkout = GatedCheckout::find(context)?;
    if *order == GateOrder::Status {
        return Ok(match checkout.goal()? {
            None => "This checkout has no stop gate.".to_owned(),
            Some(gated) => shown(&gated.goal()?),
        });
    }
    context.require_human("change the stop gate")?;
    match order {
        GateOrder::Set(terms) => goal::set(context, &checkout, terms),
        GateOrder::Status => Ok(String::new()),
        GateOrder::Pause => {
            checkout
                .require()?
                .submit(context, &GoalCommand::Interrupt)?;
            let text = "The stop gate is paused: a turn ends without its checks, and nothing is \
                        proved. /kapi:resume (`kapi gate resume`) lets it hold again.";
            Ok(text.to_owned())
        }
        GateOrder::Resume => resume(context, &checkout.require()?),
        GateOrder::Off => off(context, &checkout),
        GateOrder::Check => check(context, &checkout),
    }
}

/// Lets the gate hold again; whatever was held so far is not counted against the limit.
fn resume(context: &Context, gated: &AttachedGoal<'_>) -> Result<String, Error> {
    let goal = gated.goal()?;
    if let Some(turns) = turns_anew(&goal) {
        let command = GoalCommand::Person(PersonCommand::SetTurns { turns });
        gated.submit(context, &command)?;
    }
    if goal.status != GoalStatus::Active {
        gated.submit(context, &GoalCommand::Resume)?;
    }
    turn_end::spoken(context, gated)?;
    Ok(format!(
        "The stop gate holds again.\n{}",
        shown(&gated.goal()?)
    ))
}

/// Takes the gate away, also one that cannot be read; a goal that is not over is cancelled with it.
fn off(context: &Context, checkout: &GatedCheckout<'_>) -> Result<String, Error> {
    let text = match checkout.goal() {
        Ok(None) => return checkout.require().map(|_| String::new()),
        Ok(Some(gated)) => {
            let goal = gated.goal()?;
            if !goal.status.is_terminal() {
                gated.submit(context, &GoalCommand::Cancel { reason: None })?;
            }
            let end = if goal.status == GoalStatus::Done {
                "It was proved."
            } else {
                "It was NOT proved."
            };
            format!(
                "The stop gate of \"{}\" is gone. {end}",
                goal.contract.intent
            )
        }
        Err(error) => format!("The stop gate is gone; it could not be read: {error}."),
    };
    checkout.point_at(None)?;
    Ok(text)
}

/// Ends a turn by hand; a person who looks uses up none.
fn check(context: &Context, checkout: &GatedCheckout<'_>) -> Result<String, Error> {
    let gated = checkout.require()?;
    let text = match turn_end::at_stop(&gated)? {
        TurnEnd::Open => shown(&gated.goal()?),
        TurnEnd::Hold(text) | TurnEnd::LetGo(text) => text,
    };
    turn_end::spoken(context, &gated)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::GateOrder;
    use crate::gate::goal::GateTerms;

    #[test]
    fn what_a_person_types_is_an_order_or_a_prompt() {
        for (prompt, order) in [
            ("/kapi:pause", Some(GateOrder::Pause)),
            ("  /kapi:off now", Some(GateOrder::Off)),
            ("kapi:resume", Some(GateOrder::Resume)),
            ("/kapi:ralph build it", None),
            ("please /kapi:pause", None),
            ("/kapi:pausen", None),
        ] {
            let typed = GateOrder::typed(prompt).map(Result::unwrap);
            assert_eq!(typed, order, "{prompt}");
        }
    }

    #[test]
    fn a_contract_is_a_task_and_lines_of_fields() {
        let prompt = "/kapi:goal make the\nanswer right\nverify: sh test.sh\nask-before: git push\n\
                      protect: test.sh\nholds: 3\njudge: same\nverify: true";
        let terms = GateTerms {
            task: "make the answer right".to_owned(),
            verify: vec!["sh test.sh".to_owned(), "true".to_owned()],
            protect: vec!["test.sh".to_owned()],
            ask_before: vec!["git push".to_owned()],
            judge: Some("same".to_owned()),
            holds: Some(3),
            agent: None,
        };
        let typed = GateOrder::typed(prompt).unwrap().unwrap();
        assert_eq!(typed, GateOrder::Set(terms));
        let one_line = prompt.replace('\n', " ");
        assert_eq!(GateOrder::typed(&one_line).unwrap().unwrap(), typed);
        let wrong = GateOrder::typed("/kapi:goal x\nholds: often").unwrap();
        assert!(wrong.unwrap_err().to_string().contains("\"often\""));
    }
}
