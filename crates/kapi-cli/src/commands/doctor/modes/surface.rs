//! The command surface: the modes' commands with exactly three verbs, two global ones, and none of
//! the names that were removed.
//!
//! Walks the tree of commands as it is parsed with.

use kapi_core::mode::Mode;
use kapi_workflow::rules::mode_spec::ModeSpec;

use crate::command_line;
use crate::commands::doctor::modes::{Class, Probe};

/// The modes that this version has.
pub(super) fn modes() -> impl Iterator<Item = Mode> {
    ModeSpec::all().map(|spec| spec.mode)
}
/// What every mode understands, and nothing else.
const VERBS: [&str; 3] = ["approve", "resume", "status"];
/// Global commands beside the modes.
const GLOBAL: [&str; 2] = ["clear", "status"];
/// Names of commands that there were once, and of which not even an alias may be left. The
/// eleventh, `resume`, is a verb of goals here; no workflow answers to it.
const REMOVED: [&str; 10] = [
    "autopilot",
    "autoresearch-loop",
    "autoresearch-plan",
    "clarify",
    "execute",
    "plan",
    "ralplan",
    "review",
    "tdd",
    "ultrawork",
];

/// Looks at the commands.
pub(super) fn probes() -> Vec<Probe> {
    of(&command_line())
}

fn of(root: &clap::Command) -> Vec<Probe> {
    let mut probes: Vec<Probe> = modes().map(|mode| of_mode(root, mode)).collect();
    let missing: Vec<&str> = GLOBAL
        .into_iter()
        .filter(|name| root.find_subcommand(name).is_none())
        .collect();
    probes.push(reported("kapi status, clear", &missing, "missing"));
    let is_left = |name: &&str| {
        let mut modes = modes().filter_map(|mode| root.find_subcommand(mode.as_str()));
        root.find_subcommand(name).is_some()
            || modes.any(|mode| mode.find_subcommand(name).is_some())
    };
    let left: Vec<&str> = REMOVED.into_iter().filter(is_left).collect();
    probes.push(reported("removed commands", &left, "still there"));
    probes
}

fn of_mode(root: &clap::Command, mode: Mode) -> Probe {
    let name = format!("kapi {mode}");
    let Some(command) = root.find_subcommand(mode.as_str()) else {
        return Probe::bad(Class::CommandSurface, &name, "there is no such command");
    };
    let mut verbs: Vec<&str> = command
        .get_subcommands()
        .flat_map(|verb| std::iter::once(verb.get_name()).chain(verb.get_all_aliases()))
        .collect();
    verbs.sort_unstable();
    let aliases: Vec<&str> = command.get_all_aliases().collect();
    if verbs != VERBS || !aliases.is_empty() {
        let detail = format!(
            "its subcommands are {}, not {}; its aliases: {}",
            verbs.join(", "),
            VERBS.join(", "),
            aliases.join(", ")
        );
        return Probe::bad(Class::CommandSurface, &name, detail);
    }
    Probe::good(Class::CommandSurface, &name, verbs.join(", "))
}

fn reported(name: &str, wrong: &[&str], what: &str) -> Probe {
    if wrong.is_empty() {
        Probe::good(Class::CommandSurface, name, "as expected")
    } else {
        let detail = format!("{what}: {}", wrong.join(", "));
        Probe::bad(Class::CommandSurface, name, detail)
    }
}

#[cfg(test)]
mod tests {
    use clap::{Command, Parser as _};

    use super::{REMOVED, of};
    use crate::args::Args;
    use crate::command_line;

    fn wrong(root: &Command) -> Vec<String> {
        let bad = of(root).into_iter().filter(|probe| !probe.ok);
        bad.map(|probe| format!("{}: {}", probe.name, probe.detail))
            .collect()
    }

    #[test]
    fn the_commands_are_exactly_those_of_the_specification() {
        assert_eq!(wrong(&command_line()), Vec::<String>::new());
    }

    #[test]
    fn ten_removed_names_are_gone_and_resume_is_the_goals() {
        let root = command_line();
        let names = [
            "autopilot",
            "autoresearch-loop",
            "autoresearch-plan",
            "clarify",
            "execute",
            "plan",
            "ralplan",
            "review",
            "tdd",
            "ultrawork",
        ];
        assert_eq!(names, REMOVED);
        for name in names {
            assert!(root.find_subcommand(name).is_none(), "{name}");
            let parsed = Args::try_parse_from(["kapi", name, "001"]);
            assert!(parsed.is_err(), "{name} is understood");
        }
        // The eleventh name resumed a workflow of any mode. Goals have a verb of that name from
        // before there were workflows; it is kept for them, and finds no workflow.
        let resume = root.find_subcommand("resume").unwrap();
        let about = resume.get_about().unwrap().to_string();
        assert_eq!(about, "Resume a goal or a launch");
    }

    #[test]
    fn whatever_is_too_much_or_missing_is_found() {
        let mode = |name: &'static str, verbs: &[&'static str]| {
            Command::new(name).subcommands(verbs.iter().map(|&verb| Command::new(verb)))
        };
        let three = ["status", "resume", "approve"];
        let good = || {
            Command::new("kapi")
                .subcommand(mode("deep-interview", &three))
                .subcommand(mode("autoresearch", &three))
                .subcommand(mode("integrate", &three))
                .subcommand(Command::new("status"))
        };
        let root = good()
            .subcommand(mode("ralph", &["status", "resume"]))
            .subcommand(Command::new("start").alias("ralplan"));
        assert_eq!(
            wrong(&root),
            [
                "kapi ralph: its subcommands are resume, status, not approve, resume, status; \
                 its aliases: ",
                "kapi status, clear: missing: clear",
                "removed commands: still there: ralplan",
            ]
        );
        let root = good()
            .subcommand(mode("ralph", &three).alias("autopilot"))
            .subcommand(Command::new("clear"));
        assert_eq!(
            wrong(&root),
            [
                "kapi ralph: its subcommands are approve, resume, status, not approve, resume, status; \
                 its aliases: autopilot",
                "removed commands: still there: autopilot",
            ]
        );
    }
}
