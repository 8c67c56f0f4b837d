//! How lines are read: every row of the table, and the goals that begin like one.

use proptest::prelude::{any, proptest};
use proptest::test_runner::Config;

use super::subcommand::{SUBCOMMANDS, help};
use super::{Slash, SlashJudgeForm, completions, parse, parse_arguments};

fn intent(text: &str) -> Slash {
    Slash::Intent(text.to_owned())
}

fn model(provider: &str, model: &str) -> Slash {
    Slash::Judge(SlashJudgeForm::Model {
        provider: provider.to_owned(),
        model: model.to_owned(),
    })
}

fn malformed(text: &str) -> Slash {
    Slash::Judge(SlashJudgeForm::Malformed(text.to_owned()))
}

#[test]
fn every_subcommand_alone_is_itself() {
    for (text, meant) in [
        ("", Slash::Help),
        ("help", Slash::Help),
        ("status", Slash::Status),
        ("detail", Slash::Detail),
        ("tasks", Slash::Tasks),
        ("plan", Slash::Plan),
        ("northstar", Slash::Northstar),
        ("replan-log", Slash::ReplanLog),
        ("pause", Slash::Pause),
        ("resume", Slash::Resume),
        ("cancel", Slash::Cancel),
        ("approve", Slash::Approve),
        ("autopilot", Slash::Autopilot),
        ("judge", Slash::Judge(SlashJudgeForm::Show)),
    ] {
        assert_eq!(parse_arguments(text), meant, "{text}");
        assert_eq!(parse_arguments(&format!(" \t{text}\n")), meant, "{text}");
        assert_eq!(parse(&format!("/until-done {text}")), Some(meant), "{text}");
    }
}

#[test]
fn a_subcommand_with_more_behind_it_is_an_intent() {
    for text in [
        "help me fix x",
        "status report on the migration",
        "detail the plan",
        "tasks need a scheduler",
        "plan the migration",
        "northstar metric dashboard",
        "replan-log viewer",
        "pause-menu bug",
        "pause the build when idle",
        "resume parser",
        "cancel stale orders",
        "approve button is missing",
        "autopilot mode",
        "judge my code",
        "budget for x",
        "ask",
        "budget",
    ] {
        assert_eq!(parse_arguments(text), intent(text), "{text}");
    }
}

#[test]
fn an_intent_keeps_its_words_as_they_were_typed() {
    assert_eq!(
        parse("/until-done  fix   the\n  login  "),
        Some(intent("fix   the\n  login"))
    );
}

#[test]
fn upper_case_is_another_word() {
    for text in ["Status", "HELP", "Judge same", "Budget 5", "Ask why"] {
        assert_eq!(parse_arguments(text), intent(text));
    }
}

#[test]
fn budget_takes_one_word_of_digits() {
    for (text, turns) in [
        ("budget 20", 20),
        ("budget  0", 0),
        ("budget 007", 7),
        ("budget 20001", 20_001),
        ("budget 99999999999999999999999", u64::MAX),
    ] {
        assert_eq!(parse_arguments(text), Slash::Budget { turns }, "{text}");
    }
    for text in [
        "budget -5",
        "budget 5 now",
        "budget +5",
        "budget 5.0",
        "budget ٥",
        "budget 1e3",
    ] {
        assert_eq!(parse_arguments(text), intent(text), "{text}");
    }
}

#[test]
fn ask_takes_a_question() {
    for question in ["why is it  slow?", "ask whom?", "what is\n  this:\n    x"] {
        let typed = format!("ask  {question}\n");
        let question = question.to_owned();
        assert_eq!(parse_arguments(&typed), Slash::Ask { question });
    }
}

#[test]
fn judge_is_set_by_a_word_of_its_own_or_a_model() {
    for (text, form) in [
        ("judge same", Slash::Judge(SlashJudgeForm::Same)),
        ("judge clear", Slash::Judge(SlashJudgeForm::Clear)),
        ("judge off", Slash::Judge(SlashJudgeForm::Clear)),
        ("judge none", Slash::Judge(SlashJudgeForm::Clear)),
        (
            "judge anthropic/claude-opus-4-7",
            model("anthropic", "claude-opus-4-7"),
        ),
        (
            "judge openrouter/meta/llama",
            model("openrouter", "meta/llama"),
        ),
        ("judge a//b", model("a", "/b")),
    ] {
        assert_eq!(parse_arguments(text), form, "{text}");
    }
}

#[test]
fn judge_that_names_no_model_is_an_error_and_no_goal() {
    for text in [
        "/x",
        "x/",
        "/",
        "//",
        "a/b and c",
        "same as before",
        "clear it",
    ] {
        assert_eq!(
            parse_arguments(&format!("judge {text}")),
            malformed(text),
            "{text}"
        );
    }
    for text in ["judge Same", "judge the code", "judge me/not"] {
        let is_goal = matches!(parse_arguments(text), Slash::Intent(_));
        assert_eq!(is_goal, !text.contains('/'), "{text}");
    }
}

#[test]
fn other_commands_are_not_ours() {
    for line in [
        "",
        "until-done status",
        "/until",
        "/until-donestatus",
        "/until-done-x",
        "hello",
    ] {
        assert_eq!(parse(line), None, "{line}");
    }
    assert_eq!(parse("/until-done"), Some(Slash::Help));
}

#[test]
fn completions_are_subcommands_by_prefix() {
    assert_eq!(completions("re"), ["replan-log", "resume"]);
    assert_eq!(completions("P"), ["plan", "pause"]);
    assert_eq!(completions("status report"), [""; 0]);
    let all = completions("");
    assert_eq!(all.len(), 15, "{all:?}");
    for name in all {
        assert_ne!(parse_arguments(&format!("{name} 5")), Slash::Help, "{name}");
    }
}

#[test]
fn the_table_has_every_row_of_the_specification() {
    let usages: Vec<&str> = SUBCOMMANDS.iter().map(|row| row.usage).collect();
    assert_eq!(
        usages,
        [
            "<intent>",
            "approve",
            "status",
            "detail",
            "tasks",
            "plan",
            "northstar",
            "replan-log",
            "pause",
            "resume",
            "cancel",
            "budget <n>",
            "ask <question>",
            "autopilot",
            "judge",
            "judge <provider>/<modelId>",
            "judge same",
            "judge clear",
            "help",
        ]
    );
    let table = help();
    assert_eq!(table.lines().count(), SUBCOMMANDS.len());
    assert!(
        table.contains("\n/until-done pause                       Pause the goal\n"),
        "{table}"
    );
}

#[test]
fn every_row_of_the_table_is_read_as_what_it_says() {
    for row in SUBCOMMANDS {
        let typed = row
            .usage
            .replace("<n>", "30")
            .replace("<question>", "why?")
            .replace("<provider>/<modelId>", "openai/gpt-5")
            .replace("<intent>", "fix it");
        let is_intent = matches!(parse_arguments(&typed), Slash::Intent(_));
        assert_eq!(is_intent, row.usage == "<intent>", "{typed}");
    }
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::default() })]

    #[test]
    fn every_line_means_something_and_an_intent_is_never_lost(text in any::<String>()) {
        let read = parse_arguments(&text);
        if let Slash::Intent(intent) = read {
            assert_eq!(intent, text.trim());
        } else if read == Slash::Help {
            assert!(matches!(text.trim(), "" | "help"));
        } else {
            assert!(text.trim().starts_with(|char: char| char.is_ascii_lowercase()));
        }
    }
}
