//! What a person orders of the gate of their checkout, at a terminal or in a session of an agent, and
//! what they are told.
//!
//! Only a person orders: an agent's process is refused, and an agent's tools have no such order.

use kapi_check::rules::stop_gate::{
    GateAnswer, GateFinding, GateStatus, HOLDS_DEFAULT, HOLDS_MAX, StopGate,
};
use kapi_goal::perform::survey::RepositorySurvey;

use super::proof;
use super::record::GatedCheckout;
use crate::commands::prove;
use crate::config::Config;
use crate::context::Context;
use crate::error::Error;

/// What begins a line that says one thing of the contract, in a session.
const FIELDS: [&str; 4] = ["verify:", "protect:", "ask-before:", "holds:"];
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
    /// How often in a row it holds.
    pub(crate) holds: Option<u32>,
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
        return Ok(checkout.load()?.map_or_else(
            || "This checkout has no stop gate.".to_owned(),
            |it| shown(&it),
        ));
    }
    context.require_human("change the stop gate")?;
    match order {
        GateOrder::Set(terms) => set(context, &checkout, terms),
        GateOrder::Status => Ok(String::new()),
        GateOrder::Pause => checkout.change(|gate| {
            let mut gate = known(gate, &checkout)?;
            gate.pause();
            let text = "The stop gate is paused: a turn ends without its checks, and nothing is \
                        proved. /kapi:resume (`kapi gate resume`) lets it hold again.";
            Ok((Some(gate), text.to_owned()))
        }),
        GateOrder::Resume => checkout.change(|gate| {
            let mut gate = known(gate, &checkout)?;
            gate.resume();
            let text = format!("The stop gate holds again.\n{}", shown(&gate));
            Ok((Some(gate), text))
        }),
        GateOrder::Off => off(&checkout),
        GateOrder::Check => check(context, &checkout),
    }
}

/// Takes the gate away, also one that cannot be read.
fn off(checkout: &GatedCheckout<'_>) -> Result<String, Error> {
    let text = match checkout.load() {
        Ok(None) => return checkout.require().map(|gate| shown(&gate)),
        Ok(Some(gate)) => {
            let end = match gate.status {
                GateStatus::Proved => "It was proved.",
                GateStatus::Active
                | GateStatus::Paused
                | GateStatus::Released
                | GateStatus::Passed => "It was NOT proved.",
            };
            format!("The stop gate of \"{}\" is gone. {end}", gate.task)
        }
        Err(error) => format!("The stop gate is gone; it could not be read: {error}."),
    };
    checkout.replace(None)?;
    Ok(text)
}

fn known(gate: Option<StopGate>, checkout: &GatedCheckout<'_>) -> Result<StopGate, Error> {
    gate.map_or_else(|| checkout.require(), Ok)
}

fn set(
    context: &Context,
    checkout: &GatedCheckout<'_>,
    terms: &GateTerms,
) -> Result<String, Error> {
    if terms.task.is_empty() {
        return Err(Error::usage("no task was given")
            .with_hint("say what is to be done, and in further lines `verify: <command>`."));
    }
    let holds_max = terms.holds.unwrap_or(HOLDS_DEFAULT);
    if !(1..=HOLDS_MAX).contains(&holds_max) {
        return Err(Error::usage(format!(
            "the gate holds 1 to {HOLDS_MAX} times in a row, not {holds_max}"
        )));
    }
    let verify = if terms.verify.is_empty() {
        let tests = prove::own_tests(context, &checkout.root);
        tests.map_err(|error| {
            error.with_hint(
                "say which command proves it: `verify: <command>`, or in a terminal `kapi gate \
                 set TASK --verify CMD`.",
            )
        })?
    } else {
        terms.verify.clone()
    };
    let grants = context.grants(&Config::unconfigured());
    let base = RepositorySurvey::of(&grants, &context.cwd)
        .and_then(|survey| survey.base("HEAD"))
        .map_err(|failure| Error::world(&failure))?;
    let gate = StopGate {
        task: terms.task.clone(),
        verify,
        protect: terms.protect.clone(),
        ask_before: terms.ask_before.clone(),
        base: base.commit,
        holds_max,
        n_held: 0,
        n_held_ever: 0,
        status: GateStatus::Active,
        last: None,
    };
    checkout.replace(Some(&gate))?;
    Ok(shown(&gate))
}

fn check(context: &Context, checkout: &GatedCheckout<'_>) -> Result<String, Error> {
    let gate = checkout.require()?;
    let verdict = proof::verdict(context, checkout, &gate);
    let text = verdict.text.clone();
    let finding = verdict.finding;
    checkout.change(|now| {
        let mut now = known(now, checkout)?;
        if finding == GateFinding::Failed {
            // Nobody is held by a look.
            now.last = Some(verdict);
        } else {
            let answer = now.judge(verdict);
            debug_assert!(
                !matches!(answer, GateAnswer::Hold(_)),
                "checks that pass hold nobody"
            );
        }
        let word = match finding {
            GateFinding::Failed => "Not proved.",
            GateFinding::Passed => "The checks pass, which proves nothing.",
            GateFinding::Proved => "Proved.",
        };
        Ok((Some(now), format!("{word} {text}")))
    })
}

/// Returns a gate in words.
pub(crate) fn shown(gate: &StopGate) -> String {
    let mut lines = vec![gate.line()];
    let fields = [
        ("verify", &gate.verify),
        ("protect", &gate.protect),
        ("ask before", &gate.ask_before),
    ];
    for (name, values) in fields {
        lines.extend(values.iter().map(|value| format!("  {name:<10} {value}")));
    }
    if let Some(last) = gate
        .last
        .as_ref()
        .filter(|last| last.finding == GateFinding::Failed)
    {
        lines.push(format!("  last       {}", last.text));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::{GateOrder, GateTerms};

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
                      protect: test.sh\nholds: 3\nverify: true";
        let terms = GateTerms {
            task: "make the answer right".to_owned(),
            verify: vec!["sh test.sh".to_owned(), "true".to_owned()],
            protect: vec!["test.sh".to_owned()],
            ask_before: vec!["git push".to_owned()],
            holds: Some(3),
        };
        let typed = GateOrder::typed(prompt).unwrap().unwrap();
        assert_eq!(typed, GateOrder::Set(terms));
        let one_line = prompt.replace('\n', " ");
        assert_eq!(GateOrder::typed(&one_line).unwrap().unwrap(), typed);
        let wrong = GateOrder::typed("/kapi:goal x\nholds: often").unwrap();
        assert!(wrong.unwrap_err().to_string().contains("\"often\""));
    }
}
