//! From the content of a policy file to its rules, strictly: a key that is not known, a pattern that
//! could never match and a rule that could not be kept are faults, and a fault denies everything.

use crate::goal::contract::NetworkMode;
use crate::kernel::condition::window::Window;
use crate::kernel::policy::classic::{Classic, plain_name};
use crate::kernel::policy::{
    Effect, Part, PolicyFault, PolicySource, RULES_MAX, RequestKind, Rule, When,
};
use crate::kernel::request::TaskBudget;
use crate::kernel::value::Value;
use crate::kernel::value::place::{Place, PlaceFault};

/// The most entries of one list.
const LIST_MAX: usize = 128;
/// The longest text in bytes.
const TEXT_BYTES_MAX: usize = 512;
/// The largest number of tokens, characters or seconds.
const COUNT_MAX: u64 = 1_000_000_000_000;

type Read<T> = Result<T, PlaceFault>;
type LineOf<'a> = &'a dyn Fn(&[String]) -> usize;

/// Reads a file.
pub(super) fn source(file: &str, value: &Value, line_of: LineOf<'_>) -> PolicySource {
    let mut source = PolicySource::empty(file);
    let mut faults = Vec::new();
    if let Err(fault) = table(&mut source, &mut faults, value, line_of) {
        faults.push(fault);
    }
    source.faults = faults
        .into_iter()
        .map(|fault| PolicyFault {
            file: file.to_owned(),
            line: line_of(&fault.at),
            key: fault.at.join("."),
            what: fault.what,
            remedy: fault.remedy,
        })
        .collect();
    source
}

fn table(
    source: &mut PolicySource,
    faults: &mut Vec<PlaceFault>,
    value: &Value,
    line_of: LineOf<'_>,
) -> Read<()> {
    let root = Place::root(value);
    let entries = root.table(&["default", "rules", "backgroundTask", "loopTrigger"])?;
    for (key, place) in &entries {
        let read = match *key {
            "default" => default(place).map(|effect| {
                source.default = effect;
                source.default_line = line_of(&place.at);
            }),
            "rules" => rules(place, line_of, faults).map(|rules| source.rules = rules),
            "backgroundTask" => {
                classic(place, line_of).map(|rule| source.background_task = Some(rule))
            }
            _ => classic(place, line_of).map(|rule| source.loop_trigger = Some(rule)),
        };
        faults.extend(read.err());
    }
    let is_allowing = source.rules.iter().any(|rule| rule.effect == Effect::Allow);
    if let Some(place) = entries.get("default")
        && source.default == Effect::Allow
        && is_allowing
    {
        let what = "what no rule allows is denied as soon as one rule allows something";
        return Err(place.fault(what, "leave `default` out, or write deny"));
    }
    Ok(())
}

fn default(place: &Place<'_>) -> Read<Effect> {
    place.word(&[("deny", Effect::Deny), ("allow", Effect::Allow)])
}

fn rules(place: &Place<'_>, line_of: LineOf<'_>, faults: &mut Vec<PlaceFault>) -> Read<Vec<Rule>> {
    let mut found: Vec<Rule> = Vec::new();
    for (at, item) in place.list(RULES_MAX)?.iter().enumerate() {
        match rule(item, at, line_of) {
            Ok(rule) => {
                if let Some(first) = found.iter().find(|other| other.name == rule.name) {
                    let what = format!("the rule of line {} has the same name", first.line);
                    faults.push(item.fault(what, "give each rule a name of its own"));
                }
                found.push(rule);
            }
            Err(fault) => faults.push(fault),
        }
    }
    Ok(found)
}

fn rule(place: &Place<'_>, at: usize, line_of: LineOf<'_>) -> Read<Rule> {
    let entries = place.table(&["name", "effect", "when", "reason"])?;
    let Some(effect) = entries.get("effect") else {
        return Err(place.fault("the rule does not say what it does", "add `effect: deny`"));
    };
    let words = [
        ("deny", Effect::Deny),
        ("allow", Effect::Allow),
        ("ask", Effect::Ask),
    ];
    let kind = effect.word(&words)?;
    let text = |key: &str| {
        let text = entries.get(key).map(|place| place.text(TEXT_BYTES_MAX));
        text.transpose().map(|text| text.map(ToOwned::to_owned))
    };
    let (when, part) = match entries.get("when") {
        Some(place) => when(place)?,
        None => (When::default(), None),
    };
    match (kind, &part) {
        (Effect::Deny, Some(Part::Network(NetworkMode::None))) => {
            let what = "whoever denies even no network denies every run";
            return Err(effect.fault(what, "write filtered or open, or leave `network` out"));
        }
        (Effect::Deny, _)
        | (Effect::Allow, None | Some(Part::Network(_)))
        | (Effect::Ask, Some(Part::Commands(_))) => {}
        (Effect::Allow, Some(Part::Commands(_) | Part::Paths(_) | Part::Hosts(_))) => {
            let what = "commands, paths and hosts can be denied, but not be the only ones allowed";
            return Err(effect.fault(
                what,
                "deny what should not be, or name the level of network",
            ));
        }
        (Effect::Ask, Some(Part::Paths(_) | Part::Network(_) | Part::Hosts(_)) | None) => {
            let what = "a person can be asked about commands only";
            return Err(effect.fault(what, "add `command:` under `when`, or write deny"));
        }
    }
    Ok(Rule {
        name: text("name")?.unwrap_or_else(|| format!("rule {}", at + 1)),
        line: line_of(&place.at),
        effect: kind,
        when,
        part,
        reason: text("reason")?,
    })
}

const WHEN_KEYS: &[&str] = &[
    "kind",
    "agent",
    "loop",
    "project",
    "path",
    "command",
    "network",
    "backend",
    "tool",
    "trigger_source",
    "hours",
    "days",
    "zone",
    "prompt_contains",
    "prompt_chars_over",
    "budget_over",
    "unattended",
];

fn when(place: &Place<'_>) -> Read<(When, Option<Part>)> {
    let entries = place.table(WHEN_KEYS)?;
    let get = |key: &str| entries.get(key);
    let texts = |key: &str| get(key).map_or(Ok(Vec::new()), texts);
    let names = |key: &str| get(key).map_or(Ok(Vec::new()), names);
    let is_timed = ["hours", "days", "zone"]
        .iter()
        .any(|key| get(key).is_some());
    let window =
        is_timed.then(|| Window::from_hours(place, get("days"), get("hours"), get("zone")));
    let kinds = [("task", RequestKind::Task), ("loop", RequestKind::Loop)];
    let kinds = get("kind").map_or(Ok(Vec::new()), |place| {
        let items = place.one_or_list(kinds.len())?;
        items.iter().map(|item| item.word(&kinds)).collect()
    });
    let when = When {
        kinds: kinds?,
        agents: names("agent")?,
        loops: names("loop")?,
        projects: texts("project")?,
        backends: names("backend")?,
        tools: names("tool")?,
        trigger_sources: names("trigger_source")?,
        prompt_contains: texts("prompt_contains")?,
        prompt_chars_over: get("prompt_chars_over")
            .map(|place| place.count(COUNT_MAX))
            .transpose()?,
        budget_over: get("budget_over").map_or(Ok(TaskBudget::default()), budget)?,
        unattended: get("unattended").map(Place::truth).transpose()?,
        window: window.transpose()?,
    };
    let mut parts = Vec::new();
    for (key, read) in [
        ("command", commands as fn(&Place<'_>) -> Read<Part>),
        ("path", paths),
        ("network", network),
    ] {
        if let Some(place) = get(key) {
            parts.push((place, read(place)?));
        }
    }
    match parts.as_slice() {
        [_, (second, _), ..] => Err(second.fault(
            "a rule speaks of one of command, path and network",
            "write a rule of its own for each",
        )),
        [(_, part)] => Ok((when, Some(part.clone()))),
        [] => Ok((when, None)),
    }
}

fn texts(place: &Place<'_>) -> Read<Vec<String>> {
    place.texts(LIST_MAX, TEXT_BYTES_MAX)
}

fn names(place: &Place<'_>) -> Read<Vec<String>> {
    let plain = |name: &String| {
        let name = plain_name(name);
        name.strip_prefix('@').unwrap_or(&name).to_owned()
    };
    texts(place).map(|names| names.iter().map(plain).collect())
}

fn commands(place: &Place<'_>) -> Read<Part> {
    texts(place).map(Part::Commands)
}

fn paths(place: &Place<'_>) -> Read<Part> {
    let mut patterns = texts(place)?;
    for pattern in &mut patterns {
        if pattern.starts_with('/') || pattern.split('/').any(|part| part == "..") {
            let what = format!("{pattern:?} leads out of the project");
            return Err(place.fault(what, "write it relative to the project, without `..`"));
        }
        *pattern = pattern
            .trim_start_matches("./")
            .trim_end_matches('/')
            .to_owned();
    }
    Ok(Part::Paths(patterns))
}

fn network(place: &Place<'_>) -> Read<Part> {
    let words = texts(place)?;
    let mode = match words.as_slice() {
        [only] => match only.as_str() {
            "none" => Some(NetworkMode::None),
            "filtered" => Some(NetworkMode::Filtered),
            "open" => Some(NetworkMode::Open),
            _ => None,
        },
        _ => None,
    };
    match mode {
        Some(mode) => Ok(Part::Network(mode)),
        None => hosts(place, &words).map(Part::Hosts),
    }
}

fn hosts(place: &Place<'_>, words: &[String]) -> Read<Vec<String>> {
    let is_host = |word: &String| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "-._*".contains(c);
        word.contains(['.', '*']) && word.chars().all(is_part) || word == "localhost"
    };
    match words.iter().find(|word| !is_host(word)) {
        Some(word) => Err(place.fault(
            format!("{word:?} is neither a host nor none, filtered or open"),
            "write a host like example.com or *.example.com, without a port",
        )),
        None => Ok(words.iter().map(|word| word.to_lowercase()).collect()),
    }
}

fn budget(place: &Place<'_>) -> Read<TaskBudget> {
    let entries = place.table(&["tokens", "usd", "seconds"])?;
    if entries.is_empty() {
        return Err(place.fault("no limit is named", "add tokens, usd or seconds"));
    }
    let count = |key: &str| {
        let place = entries.get(key);
        place.map(|place| place.count(COUNT_MAX)).transpose()
    };
    Ok(TaskBudget {
        tokens: count("tokens")?,
        usd_micros: entries.get("usd").map(usd_micros).transpose()?,
        time_ms: count("seconds")?.map(|seconds| seconds * 1_000),
    })
}

/// Reads dollars with at most six decimals.
fn usd_micros(place: &Place<'_>) -> Read<u64> {
    let text = match place.value {
        Value::Integer(number) => Some(number.to_string()),
        Value::Decimal(number) => Some(number.as_str().to_owned()),
        Value::Null | Value::Bool(_) | Value::Text(_) | Value::List(_) | Value::Map(_) => None,
    };
    let micros = text.and_then(|text| {
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let whole: u64 = whole.parse().ok().filter(|dollars| *dollars <= 1_000_000)?;
        let fraction: u64 = format!("{fraction:0<6}")
            .parse()
            .ok()
            .filter(|_| fraction.len() <= 6)?;
        Some(whole * 1_000_000 + fraction)
    });
    micros.ok_or_else(|| {
        let what = "it is no amount of dollars from 0 to 1000000 with at most six decimals";
        place.fault(what, "write it like 2.50")
    })
}

const CLASSIC_KEYS: &[&str] = &[
    "allowedAgents",
    "deniedAgents",
    "deniedTools",
    "maxPromptChars",
    "deniedPatterns",
    "requireTriggerSource",
];

fn classic(place: &Place<'_>, line_of: LineOf<'_>) -> Read<Classic> {
    let entries = place.table(CLASSIC_KEYS)?;
    let get = |key: &str| entries.get(key);
    let texts = |key: &str| match get(key) {
        // An empty list says nothing, as in the original.
        Some(place) if *place.value == Value::List(Vec::new()) => Ok(Vec::new()),
        Some(place) => texts(place),
        None => Ok(Vec::new()),
    };
    let names = |key: &str| {
        let names = texts(key)?;
        Ok(names.iter().map(|name| plain_name(name)).collect())
    };
    Ok(Classic {
        line: line_of(&place.at),
        allowed_agents: names("allowedAgents")?,
        denied_agents: names("deniedAgents")?,
        denied_tools: names("deniedTools")?,
        prompt_units_max: get("maxPromptChars")
            .map(|place| place.count(COUNT_MAX))
            .transpose()?,
        denied_patterns: texts("deniedPatterns")?,
        is_source_required: get("requireTriggerSource")
            .map(Place::truth)
            .transpose()?
            .unwrap_or(false),
    })
}
