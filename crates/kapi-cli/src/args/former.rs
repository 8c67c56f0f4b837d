//! Spellings of commands that are no more, each with the one that does its job now.
//!
//! They are errors, not other names: one thing has one spelling.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::error::Error;

/// A spelling that is no more.
struct FormerSpelling {
    /// The words behind `kapi`.
    old: &'static str,
    /// The whole line that does it now.
    new: &'static str,
}

const fn former(old: &'static str, new: &'static str) -> FormerSpelling {
    FormerSpelling { old, new }
}

/// Every command that is no more.
const COMMANDS: [FormerSpelling; 23] = [
    former("goal status", "kapi show [REF]"),
    former("goal detail", "kapi show [REF] --all"),
    former("goal cancel", "kapi cancel [REF]"),
    former("goal resume", "kapi resume [REF]"),
    former("goal say", "kapi say [REF] TEXT"),
    former("goal pause", "kapi pause [REF]"),
    former("goal budget", "kapi budget [REF] --set-turns N"),
    former("goal wait", "kapi goal park"),
    former("goal deliver", "kapi deliver [REF]"),
    former("task status", "kapi show TASK"),
    former("task logs", "kapi log TASK"),
    former("task wait", "kapi wait TASK"),
    former("task cancel", "kapi cancel TASK"),
    former("sandbox diff", "kapi diff launch/ID"),
    former("health", "kapi doctor --agents"),
    former("explain run", "kapi run --explain"),
    former("explain launch", "kapi launch --explain"),
    former("explain profile", "kapi sandbox profile"),
    former("explain", "kapi run --explain` or `kapi launch --explain"),
    former("image", "kapi sandbox image"),
    former(
        "service",
        "kapi up --install`, `--uninstall` or `--show-unit",
    ),
    former("guardrail", "kapi loop guardrail"),
    former("policy", "kapi loop policy"),
];

/// Returns what a command line that could not be read is called now; `None` where it never was.
pub(crate) fn now(typed: &[String], error: &clap::Error) -> Option<Error> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let at = typed.iter().position(|word| word == unknown)?;
    let before = typed.iter().take(at);
    let behind = typed
        .iter()
        .skip(at + 1)
        .find(|word| !word.starts_with('-'));
    let is_typed = |former: &&FormerSpelling| match former.old.split_once(' ') {
        Some((one, two)) if one == unknown => behind.is_some_and(|word| word == two),
        Some((one, two)) => two == unknown && before.clone().any(|word| word == one),
        None => former.old == unknown,
    };
    let former = COMMANDS.iter().find(is_typed)?;
    Some(
        Error::usage(format!("`kapi {}` no longer exists", former.old))
            .with_hint(format!("use `{}`.", former.new)),
    )
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::{COMMANDS, now};
    use crate::args::Args;
    use crate::command_line;

    fn typed(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn an_old_spelling_is_an_error_that_names_the_new_one() {
        for former in &COMMANDS {
            for line in [
                format!("kapi {} 1", former.old),
                format!("kapi --json {}", former.old),
            ] {
                let typed = typed(&line);
                let error = Args::try_parse_from(&typed).unwrap_err();
                let said = now(&typed, &error).unwrap();
                assert!(said.message.contains(former.old), "{line}: {said:?}");
                let hint = said.hint.unwrap();
                assert!(hint.contains(former.new), "{line}: {hint}");
            }
        }
    }

    /// Follows a line to its command, and checks that each word and option is there.
    fn check_spelling(command: &clap::Command, line: &str) {
        let mut at = command;
        for word in line.split([' ', '`', ',']).skip(1) {
            if let Some(option) = word.strip_prefix("--") {
                let mut args = at.get_arguments();
                assert!(
                    args.any(|arg| arg.get_long() == Some(option)),
                    "{line}: --{option}"
                );
            } else if !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase()) {
                at = at.find_subcommand(word).unwrap_or(at);
                assert_eq!(at.get_name(), word, "{line}");
            }
        }
    }

    #[test]
    fn every_new_spelling_is_one() {
        let command = command_line();
        let lines = COMMANDS.iter();
        lines
            .flat_map(|former| former.new.split("` or `"))
            .for_each(|line| check_spelling(&command, line));
    }

    #[test]
    fn what_never_was_is_left_to_the_parser() {
        for line in [
            "kapi nonsense",
            "kapi goal nonsense",
            "kapi show --nonsense",
        ] {
            let typed = typed(line);
            let error = Args::try_parse_from(&typed).unwrap_err();
            assert!(now(&typed, &error).is_none(), "{line}");
        }
    }
}
