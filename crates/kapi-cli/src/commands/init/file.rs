//! Writing a configuration that people read: new with comments, or a few lines added to what is there.
//!
//! What a file says already stays. A file whose tables are written in another way than this can add
//! to is not touched, and what is missing in it is told.

use std::path::Path;
use std::{fs, io};

use kapi_sys::disk;
use kapi_sys::disk::Disk as _;
use toml::{Table, Value};

use super::answers::InitAnswers;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// Where a person's file begins.
pub(super) const PERSON_HEAD: &str = "\
# Kapi's settings for you, in every project. `kapi init` wrote this; change it as you like.
# Every key is explained in docs/configuration.md.
";
/// Where a project's file begins.
pub(super) const PROJECT_HEAD: &str = "\
# Kapi's settings for this project. `kapi init` wrote this; change it as you like.
# Every key is explained in docs/configuration.md.
";

/// A key that a file is to have.
#[derive(Debug)]
pub(super) struct ConfigKey {
    /// The table, as it stands between brackets.
    table: String,
    /// What the key means, as a comment.
    comment: &'static str,
    key: &'static str,
    value: Value,
}

/// Returns what the person's file is to say.
pub(super) fn person_keys(answers: &InitAnswers) -> Vec<ConfigKey> {
    let goal = |key, comment, value| ConfigKey {
        table: "goal".to_owned(),
        comment,
        key,
        value,
    };
    let mut keys = vec![
        goal(
            "agent",
            "Who works: claude, codex, gemini, pi, or a program: \"command:…\".",
            answers.agent().into(),
        ),
        goal(
            "judge",
            "Who judges the result: another agent, \"provider/model\", \"same\" or \"none\".",
            answers.judge().into(),
        ),
    ];
    let limits = answers.limits.clone().unwrap_or_default();
    keys.extend(limits.turns.map(|turns| {
        goal(
            "turns",
            "The most turns of a goal.",
            i64::from(turns).into(),
        )
    }));
    keys.extend(
        limits
            .wall
            .map(|wall| goal("wall", "The longest a goal may take.", wall.into())),
    );
    keys.extend(limits.usd.map(|usd| {
        goal(
            "usd",
            "The most a goal may cost, in US dollars.",
            usd.into(),
        )
    }));
    if answers.login == Some(true) {
        keys.push(ConfigKey {
            table: format!("agents.{}", answers.agent()),
            comment: "Use your own login: each run gets a copy of its files. Without it, set the key's variable.",
            key: "login",
            value: true.into(),
        });
    }
    keys
}

/// Returns what the project's file is to say.
pub(super) fn project_keys(answers: &InitAnswers) -> Vec<ConfigKey> {
    let commands = answers.verify.clone().unwrap_or_default();
    if commands.is_empty() {
        return Vec::new();
    }
    vec![ConfigKey {
        table: "goal".to_owned(),
        comment: "Each of these must exit 0 in a clean checkout of the result.",
        key: "verify",
        value: Value::Array(commands.into_iter().map(Value::String).collect()),
    }]
}

/// Writes a new file, or adds to one what it does not say; returns whether there was anything to
/// write.
pub(super) fn write(
    context: &Context,
    path: &Path,
    keys: &[ConfigKey],
    head: &str,
) -> Result<bool, Error> {
    let failed = |error: &io::Error| {
        Error::new(
            Exit::Failed,
            format!("failed to write {}: {error}", path.display()),
        )
    };
    let before = match fs::read_to_string(path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed(&error)),
    };
    let text = before.as_deref().unwrap_or(head);
    let Some(after) = with_keys(text, keys).map_err(|missing| cannot_add(path, &missing))? else {
        return Ok(false);
    };
    // A file behind a link stays where its owner keeps it.
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    if let Some(directory) = real.parent() {
        context
            .disk
            .create_dir(directory)
            .map_err(|error| Error::failed(&error))?;
    }
    disk::replace_durably(&context.disk, &real, after.as_bytes())
        .map_err(|error| Error::failed(&error))?;
    Ok(true)
}

fn cannot_add(path: &Path, missing: &str) -> Error {
    Error::new(
        Exit::Usage,
        format!(
            "{} is not written in a way that Kapi can add to",
            path.display()
        ),
    )
    .with_hint(format!("add this yourself: {missing}."))
}

/// Returns a text with the keys that it does not have; `None` where it has all of them.
///
/// # Errors
/// With the lines that could not be added.
fn with_keys(text: &str, keys: &[ConfigKey]) -> Result<Option<String>, String> {
    let said: Table = toml::from_str(text).map_err(|_| lines(&keys.iter().collect::<Vec<_>>()))?;
    let missing: Vec<&ConfigKey> = keys
        .iter()
        .filter(|key| value(&said, key).is_none())
        .collect();
    if missing.is_empty() {
        return Ok(None);
    }
    let mut after = text.to_owned();
    let mut tables: Vec<&str> = missing.iter().map(|key| key.table.as_str()).collect();
    tables.dedup();
    for table in tables {
        let own = missing.iter().filter(|key| key.table == table);
        let entries: String = own
            .map(|key| format!("# {}\n{} = {}\n", key.comment, key.key, key.value))
            .collect();
        match end_of_header(&after, table) {
            Some(end) => after.insert_str(end, &entries),
            None => after = format!("{after}\n[{table}]\n{entries}"),
        }
    }
    let is_right = toml::from_str(&after).is_ok_and(|read: Table| {
        missing
            .iter()
            .all(|key| value(&read, key) == Some(&key.value))
    });
    is_right
        .then_some(Some(after))
        .ok_or_else(|| lines(&missing))
}

fn value<'a>(said: &'a Table, key: &ConfigKey) -> Option<&'a Value> {
    let table = key
        .table
        .split('.')
        .try_fold(said, |table, name| table.get(name)?.as_table())?;
    table.get(key.key)
}

/// Returns where the line after a table's header begins.
fn end_of_header(text: &str, table: &str) -> Option<usize> {
    let header = format!("[{table}]");
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        end += line.len();
        let without_comment = line.split('#').next().unwrap_or_default();
        if without_comment.trim() == header && line.ends_with('\n') {
            return Some(end);
        }
    }
    None
}

/// Returns keys as a person would write them.
fn lines(keys: &[&ConfigKey]) -> String {
    let all = keys
        .iter()
        .map(|key| format!("{} = {} under [{}]", key.key, key.value, key.table));
    all.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::{ConfigKey, with_keys};

    fn keys() -> Vec<ConfigKey> {
        let key = |table: &str, key, value: toml::Value| ConfigKey {
            table: table.to_owned(),
            comment: "What it means.",
            key,
            value,
        };
        vec![
            key("goal", "agent", "claude".into()),
            key("goal", "turns", 20.into()),
            key("agents.claude", "login", true.into()),
        ]
    }

    #[test]
    fn a_new_file_has_tables_and_comments() {
        let text = with_keys("# Head.\n", &keys()).unwrap().unwrap();
        assert_eq!(
            text,
            "# Head.\n\n[goal]\n# What it means.\nagent = \"claude\"\n# What it means.\nturns = 20\n\
             \n[agents.claude]\n# What it means.\nlogin = true\n"
        );
        assert_eq!(with_keys(&text, &keys()), Ok(None));
    }

    #[test]
    fn what_a_file_says_stays_and_the_rest_is_added() {
        let before = "# mine\n[goal] # here\nagent = \"pi\" # best\n\n[sandbox]\nmemory = \"4g\"\n";
        let text = with_keys(before, &keys()).unwrap().unwrap();
        assert_eq!(
            text,
            "# mine\n[goal] # here\n# What it means.\nturns = 20\nagent = \"pi\" # best\n\n[sandbox]\n\
             memory = \"4g\"\n\n[agents.claude]\n# What it means.\nlogin = true\n"
        );
    }

    #[test]
    fn a_file_that_cannot_be_added_to_is_refused_with_what_is_missing() {
        for before in [
            "goal = { agent = \"pi\" }\n",
            "goal.agent = \"pi\"\n",
            "not toml",
        ] {
            let missing = with_keys(before, &keys()).unwrap_err();
            assert!(
                missing.contains("turns = 20 under [goal]"),
                "{before}: {missing}"
            );
        }
    }
}
