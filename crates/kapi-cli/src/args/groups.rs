//! The list of commands in `kapi --help`, under headings.
//!
//! clap has one list; this one is built from what each command says of itself.

use clap::{Command, CommandFactory as _};

use super::Args;

/// The commands of `kapi --help`, under their headings and in the order in which they are listed.
const GROUPS: [(&str, &[&str]); 4] = [
    (
        "Start work",
        &[
            "init",
            "run",
            "prove",
            "check",
            "task",
            "loop",
            "launch",
            "deep-interview",
            "ralph",
            "autoresearch",
            "integrate",
            "demo",
        ],
    ),
    (
        "Look and steer",
        &[
            "status",
            "inbox",
            "show",
            "log",
            "events",
            "diff",
            "wait",
            "budget",
            "deliver",
            "say",
            "pause",
            "resume",
            "cancel",
            "goal",
            "gate",
            "sandbox",
            "up",
            "dashboard",
            "spend",
        ],
    ),
    ("Maintain", &["audit", "doctor", "cleanup", "clear"]),
    ("For programs", &["setup", "mcp", "acp", "completion"]),
];
/// Columns of the name of a command, the longest of which is `deep-interview`.
const NAME_WIDTH: usize = 16;

/// Returns the command line with its commands listed under headings.
pub(crate) fn grouped() -> Command {
    let command = Args::command();
    let row = |name: &&str| {
        let about = command.find_subcommand(name).and_then(Command::get_about);
        let about = about.map(ToString::to_string).unwrap_or_default();
        format!("  {name:<NAME_WIDTH$}{about}\n")
    };
    let groups = GROUPS.iter().map(|(heading, names)| {
        let rows: String = names.iter().map(row).collect();
        format!("{heading}:\n{rows}")
    });
    let groups = groups.collect::<Vec<String>>().join("\n");
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}\nOptions:\n{{options}}\n\n\
         Run `kapi COMMAND --help` for the options of a command.\n"
    );
    command.help_template(template)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::{Command, CommandFactory as _};

    use super::{GROUPS, NAME_WIDTH, grouped};
    use crate::args::Args;
    use crate::command_line;

    /// Columns of a summary, so that a list of commands fits a terminal of 80 columns.
    const SUMMARY_MAX: usize = 60;

    #[test]
    fn every_listed_command_stands_under_one_heading() {
        let listed: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        let unique: BTreeSet<&str> = listed.iter().copied().collect();
        assert_eq!(listed.len(), unique.len(), "a command stands there twice");
        let root = Args::command();
        let commands = root
            .get_subcommands()
            .filter(|command| !command.is_hide_set());
        let commands: BTreeSet<&str> = commands.map(Command::get_name).collect();
        assert_eq!(unique, commands);
        assert!(listed.iter().all(|name| name.len() < NAME_WIDTH));
    }

    #[test]
    fn the_list_says_what_each_command_does() {
        let help = grouped().render_help().to_string();
        assert!(
            help.contains("\nStart work:\n  init            Set Kapi up"),
            "{help}"
        );
        assert!(!help.contains("Commands:"), "{help}");
    }

    fn summaries(command: &Command, path: &str, faults: &mut Vec<String>) {
        for sub in command.get_subcommands() {
            let path = format!("{path} {}", sub.get_name());
            let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
            let is_imperative = about.starts_with(char::is_uppercase) && !about.ends_with('.');
            if !is_imperative || about.chars().count() > SUMMARY_MAX {
                faults.push(format!("{path}: {about}"));
            }
            summaries(sub, &path, faults);
        }
    }

    #[test]
    fn every_summary_is_one_short_line() {
        let mut faults = Vec::new();
        summaries(&command_line(), "kapi", &mut faults);
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}
