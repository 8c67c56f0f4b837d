//! The keys of a contract file, whole and short form, and what each of them is.
//!
//! One table; how a value is read is not known here.

/// Tables of the whole form.
const TABLES: &[&str] = &["hidden", "budget", "judge", "base", "working", "checks"];

/// Every key as it is written, and the one thing it says. The short form leaves `budget` and
/// `working` out and names things as a person would.
const KEYS: &[(&str, &str)] = &[
    ("version", "version"),
    ("intent", "intent"),
    ("goal", "intent"),
    ("done_criteria", "done_criteria"),
    ("criteria", "done_criteria"),
    ("verify", "verify"),
    ("verify_timeout", "verify_timeout"),
    ("verify_timeout_ms", "verify_timeout_ms"),
    ("verify_network", "verify_network"),
    ("protect", "protect"),
    ("checks.tests", "tests"),
    ("checks.already_green", "already_green"),
    ("checks.changed_steering", "changed_steering"),
    ("checks.strength", "strength"),
    ("tests", "tests"),
    ("already_green", "already_green"),
    ("allow_changed_setup", "changed_steering"),
    ("prove_diff", "strength"),
    ("attribution", "attribution"),
    ("hidden", "hidden"),
    ("hidden.source", "hidden"),
    ("hidden.sha256", "hidden.sha256"),
    ("hidden.files", "hidden.files"),
    ("budget.turns", "turns"),
    ("budget.tokens", "tokens"),
    ("budget.usd", "usd"),
    ("budget.usd_micros", "usd_micros"),
    ("budget.wall", "wall"),
    ("budget.wall_ms", "wall_ms"),
    ("turns", "turns"),
    ("tokens", "tokens"),
    ("usd", "usd"),
    ("wall", "wall"),
    ("stall_after", "stall_after"),
    ("turn_timeout", "turn_timeout"),
    ("turn_timeout_ms", "turn_timeout_ms"),
    ("agent", "agent"),
    ("judge", "judge"),
    ("judge.by", "judge.by"),
    ("judge.agent", "judge.agent"),
    ("judge_unavailable", "judge_unavailable"),
    ("base", "base"),
    ("base.revision", "base.revision"),
    ("base.commit", "base.commit"),
    ("base.tree", "base.tree"),
    ("branch", "branch"),
    ("type", "type"),
    ("sandbox", "sandbox"),
    ("network", "network"),
    ("working.goal_type", "goal_type"),
    ("working.surfaces", "surfaces"),
    ("working.ask_before", "ask_before"),
    ("working.decision_style", "decision_style"),
    ("working.start_phase", "start_phase"),
    ("working.mise", "mise"),
    ("working.reminders", "reminders"),
    ("working.distill", "distill"),
    ("goal_type", "goal_type"),
    ("surfaces", "surfaces"),
    ("ask_before", "ask_before"),
    ("decision_style", "decision_style"),
    ("start_phase", "start_phase"),
    ("mise", "mise"),
    ("reminders", "reminders"),
    ("distill", "distill"),
    ("race", "race"),
];

/// Two ways of saying one thing; a file uses one of them.
const ONE_THING: &[(&str, &str)] = &[
    ("verify_timeout_ms", "verify_timeout"),
    ("turn_timeout_ms", "turn_timeout"),
    ("wall_ms", "wall"),
    ("usd_micros", "usd"),
];

/// Tells whether a key may hold a table.
pub(super) fn is_table(key: &str) -> bool {
    TABLES.contains(&key)
}

/// Tells whether a key may stand in a file at all.
pub(super) fn is_known(key: &str) -> bool {
    is_table(key) || name(key).is_some()
}

/// Returns what a key says, by one name for all its ways of being written.
pub(super) fn name(key: &str) -> Option<&'static str> {
    let found = KEYS.iter().find(|(written, _)| *written == key);
    found.map(|(_, name)| *name)
}

/// Returns the thing that a name is about, for which a file has one line.
pub(super) fn thing(name: &'static str) -> &'static str {
    let found = ONE_THING.iter().find(|(one, _)| *one == name);
    found.map_or(name, |(_, other)| *other)
}

/// Returns the keys that may stand where this one stands.
pub(super) fn beside(key: &str) -> String {
    let prefix = key.rsplit_once('.').map(|(prefix, _)| prefix);
    let mut names: Vec<&str> = KEYS
        .iter()
        .filter_map(|(written, _)| match (prefix, written.split_once('.')) {
            (None, Some((table, _))) => Some(table),
            (None, None) => Some(*written),
            (Some(prefix), Some((table, field))) if table == prefix => Some(field),
            (Some(_), _) => None,
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}
