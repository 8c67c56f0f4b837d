//! From what a person wrote to a condition.
//!
//! A text is an expression; everything else is a table with one key that says what is asked.

use crate::kernel::condition::expression::{EXPRESSION_BYTES_MAX, Expression};
use crate::kernel::condition::window::Window;
use crate::kernel::condition::{
    COMMAND_MS, COMMAND_MS_MAX, CONDITION_DEPTH_MAX, Condition, FileIs, GitIs, LEAVES_MAX,
    RunResult,
};
use crate::kernel::id::LoopName;
use crate::kernel::value::Value;
use crate::kernel::value::place::{Place, PlaceFault};

/// The most patterns of one condition.
const GLOBS_MAX: usize = 32;
/// The longest pattern or name in bytes.
const NAME_BYTES_MAX: usize = 256;
/// The longest command in bytes.
const COMMAND_BYTES_MAX: usize = 4 * 1024;

const KEYS: &[&str] = &[
    "all",
    "any",
    "not",
    "expr",
    "file",
    "command",
    "git",
    "time",
    "last_result",
    "changed",
];

/// Reads a condition.
pub(super) fn condition(place: &Place<'_>) -> Result<Condition, PlaceFault> {
    let mut reader = Reader {
        leaves_left: LEAVES_MAX,
    };
    reader.condition(place, 1)
}

struct Reader {
    leaves_left: usize,
}

impl Reader {
    fn condition(&mut self, place: &Place<'_>, depth: usize) -> Result<Condition, PlaceFault> {
        if depth > CONDITION_DEPTH_MAX {
            let what = format!("conditions lie more than {CONDITION_DEPTH_MAX} deep");
            return Err(place.fault(what, "write fewer levels of all, any and not"));
        }
        if let Value::Text(text) = place.value {
            self.count(place)?;
            return expression(place, text);
        }
        if let Value::List(_) = place.value {
            let what = "a list does not say whether all or any of it must hold";
            return Err(place.fault(what, "put `all:` or `any:` before it"));
        }
        let (key, inner) = one_entry(place, KEYS)?;
        match key {
            "all" => Ok(Condition::All {
                of: self.each(&inner, depth)?,
            }),
            "any" => Ok(Condition::Any {
                of: self.each(&inner, depth)?,
            }),
            "not" => Ok(Condition::Not {
                of: Box::new(self.condition(&inner, depth + 1)?),
            }),
            leaf => {
                self.count(&inner)?;
                read_leaf(leaf, &inner)
            }
        }
    }

    fn each(&mut self, place: &Place<'_>, depth: usize) -> Result<Vec<Condition>, PlaceFault> {
        let items = place.list(LEAVES_MAX)?;
        let each = items.iter().map(|item| self.condition(item, depth + 1));
        each.collect()
    }

    fn count(&mut self, place: &Place<'_>) -> Result<(), PlaceFault> {
        let Some(left) = self.leaves_left.checked_sub(1) else {
            let what = format!("there are more than {LEAVES_MAX} conditions");
            return Err(place.fault(what, "join some, or put them into one command"));
        };
        self.leaves_left = left;
        Ok(())
    }
}

/// Returns the only entry of a table.
fn one_entry<'a>(place: &Place<'a>, keys: &[&str]) -> Result<(&'a str, Place<'a>), PlaceFault> {
    let mut entries = place.table(keys)?.into_iter();
    match (entries.next(), entries.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(place.fault(
            "nothing is asked",
            format!("write one of: {}", keys.join(", ")),
        )),
        (Some((first, _)), Some((second, _))) => Err(place.fault(
            format!("`{first}` and `{second}` stand in one table"),
            "write one key in each, as a list under `all:` or `any:`",
        )),
    }
}

fn read_leaf(key: &str, place: &Place<'_>) -> Result<Condition, PlaceFault> {
    match key {
        "expr" => expression(place, place.text(EXPRESSION_BYTES_MAX)?),
        "file" => file(place),
        "command" => command(place),
        "git" => git(place).map(|is| Condition::Git { is }),
        "time" => Window::read(place).map(|window| Condition::Time { window }),
        "last_result" => last_result(place),
        _ => {
            let globs = place.one_or_list(GLOBS_MAX)?;
            let globs: Result<Vec<String>, PlaceFault> = globs.iter().map(path_glob).collect();
            globs.map(|globs| Condition::Changed { globs })
        }
    }
}

fn expression(place: &Place<'_>, text: &str) -> Result<Condition, PlaceFault> {
    let wrong = |column: usize, reason: &str| {
        let what = format!("{reason} (column {column} of the expression)");
        place.fault(what, "write it like inputs.market == 'ETH' && !payload.dry")
    };
    let parsed = Expression::parse(text);
    let expr = parsed.map_err(|error| wrong(error.column, &error.reason))?;
    let is_known = |path: &&str| {
        let root = path.split('.').next().unwrap_or_default();
        ["inputs", "payload", "state"].contains(&root)
    };
    if let Some(path) = expr.paths().into_iter().find(|path| !is_known(path)) {
        let what = format!("`{path}` is never there, so it would never hold");
        return Err(place.fault(what, "paths begin with inputs., payload. or state."));
    }
    Ok(Condition::Expr { expr })
}

/// Reads a pattern for paths of the project.
fn path_glob(place: &Place<'_>) -> Result<String, PlaceFault> {
    let text = place.text(NAME_BYTES_MAX)?;
    if text.starts_with('/') || text.split('/').any(|part| part == "..") {
        let what = format!("{text:?} leads out of the project");
        return Err(place.fault(what, "write it relative to the project, without `..`"));
    }
    Ok(text.to_owned())
}

fn file(place: &Place<'_>) -> Result<Condition, PlaceFault> {
    let (key, inner) = one_entry(place, &["exists", "gone", "changed"])?;
    let is = match key {
        "exists" => FileIs::Exists,
        "gone" => FileIs::Gone,
        _ => FileIs::Changed,
    };
    Ok(Condition::File {
        glob: path_glob(&inner)?,
        is,
    })
}

fn command(place: &Place<'_>) -> Result<Condition, PlaceFault> {
    let (run, timeout_ms) = match place.value {
        Value::Map(_) => {
            let entries = place.table(&["run", "timeout"])?;
            let Some(run) = entries.get("run") else {
                return Err(place.fault("no command is named", "add `run: …`"));
            };
            let seconds = entries.get("timeout");
            let seconds = seconds.map(|place| place.count(COMMAND_MS_MAX / 1_000));
            let timeout_ms = seconds
                .transpose()?
                .map_or(COMMAND_MS, |count| count * 1_000);
            (run.text(COMMAND_BYTES_MAX)?, timeout_ms)
        }
        Value::Null
        | Value::Bool(_)
        | Value::Integer(_)
        | Value::Decimal(_)
        | Value::Text(_)
        | Value::List(_) => (place.text(COMMAND_BYTES_MAX)?, COMMAND_MS),
    };
    Ok(Condition::Command {
        run: run.to_owned(),
        timeout_ms,
    })
}

fn git(place: &Place<'_>) -> Result<GitIs, PlaceFault> {
    if let Value::Text(_) = place.value {
        return place
            .word(&[("clean", false), ("dirty", true)])
            .map(
                |is_dirty| {
                    if is_dirty { GitIs::Dirty } else { GitIs::Clean }
                },
            );
    }
    let (key, inner) = one_entry(place, &["branch", "ahead_of", "ref_changed"])?;
    let name = reference(&inner)?;
    Ok(match key {
        "branch" => GitIs::Branch { name },
        "ahead_of" => GitIs::AheadOf { reference: name },
        _ => GitIs::RefChanged { reference: name },
    })
}

/// Reads what git is asked about; what it would take for an option or a range is refused.
fn reference(place: &Place<'_>) -> Result<String, PlaceFault> {
    let text = place.text(NAME_BYTES_MAX)?;
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || "~^:\\[".contains(c);
    if text.starts_with('-') || text.contains("..") || text.contains(is_odd) {
        let what = format!("{text:?} is no name of a branch, tag or ref");
        return Err(place.fault(what, "write a name like main or refs/tags/v1"));
    }
    Ok(text.to_owned())
}

const RESULTS: &[(&str, RunResult)] = &[
    ("completed", RunResult::Completed),
    ("failed", RunResult::Failed),
    ("skipped", RunResult::Skipped),
    ("none", RunResult::None),
];

fn last_result(place: &Place<'_>) -> Result<Condition, PlaceFault> {
    let results = |place: &Place<'_>| {
        let items = place.one_or_list(RESULTS.len())?;
        let words: Result<Vec<RunResult>, PlaceFault> =
            items.iter().map(|item| item.word(RESULTS)).collect();
        words
    };
    let Value::Map(_) = place.value else {
        return Ok(Condition::LastResult {
            loop_name: None,
            is: results(place)?,
        });
    };
    let entries = place.table(&["loop", "is"])?;
    let Some(is) = entries.get("is") else {
        let advice = "add `is:` with completed, failed, skipped or none";
        return Err(place.fault("no result is named", advice));
    };
    let name = entries.get("loop").map(|place| {
        let name = LoopName::parse(place.text(NAME_BYTES_MAX)?);
        name.map_err(|error| place.fault(error.rule, "write the loop's name as its file has it"))
    });
    Ok(Condition::LastResult {
        loop_name: name.transpose()?,
        is: results(is)?,
    })
}
