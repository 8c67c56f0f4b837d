//! Who judges: never nobody by accident, another model by default, and the same one only by name.

use std::os::unix::fs::PermissionsExt as _;

use kapi_testkit::model_server::ModelServer;
use kapi_testkit::model_server::scenario::ModelScenario;
use serde_json::json;

use crate::dialogs::at_terminal;
use crate::environment::{Environment, TASK, write};

const HONEST: &str = "command:echo 42 > answer.txt";

/// Makes a machine on which only these CLIs are installed, as programs that are never run.
pub(crate) fn with_clis(names: &[&str]) -> Environment {
    let mut env = Environment::new();
    let bin = env.root().join("bin");
    for name in names {
        let path = bin.join(name);
        write(
            &path,
            "#!/bin/sh\n[ \"$1\" = --version ] && echo 9.9 && exit\nexit 7\n",
        );
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:/usr/bin:/bin", bin.display());
    env.set("PATH", &path);
    // No test asks a vendor: nobody listens there.
    env.set("https_proxy", "http://127.0.0.1:9");
    env
}

fn propose(env: &Environment, options: &[&str]) -> crate::program::Output {
    let usual = ["goal", "new", TASK, "--verify", "sh test.sh"];
    env.kapi(&[&usual[..], options].concat())
}

#[test]
fn judge_unspecified_is_refused_and_lists_what_is_possible() {
    let mut env = with_clis(&["claude"]);
    env.set("ANTHROPIC_API_KEY", "not-a-key");
    for command in [
        &[
            "goal",
            "new",
            TASK,
            "--verify",
            "sh test.sh",
            "--agent",
            "claude",
        ][..],
        &[
            "run",
            TASK,
            "--verify",
            "sh test.sh",
            "--agent",
            "claude",
            "--yes",
        ],
        &["goal", "new", TASK, "--draft", "--agent", "claude"],
    ] {
        env.kapi(command).assert_error(
            3,
            &[
                "judge_unspecified",
                "--judge provider/model",
                "--judge same",
                "--judge none",
                "kapi goal judge",
            ],
        );
    }
    assert!(
        !env.repository().join(".ilchul/goals").exists(),
        "no goal was made"
    );
    // Each of the ways out is one.
    for judge in ["same", "none", HONEST] {
        let output = propose(&env, &["--agent", "claude", "--judge", judge]);
        assert_eq!(output.code, 5, "{judge}: {output:?}");
    }
}

#[test]
fn the_only_agent_that_is_ready_works_without_being_named() {
    let mut env = with_clis(&["claude", "codex"]);
    let nobody = propose(&env, &[]);
    nobody.assert_error(
        2,
        &[
            "none can start here",
            "claude  ",
            "ANTHROPIC_API_KEY",
            "codex   ",
            "gemini  not installed: `npm install",
            "pi      not installed",
            "--agent 'command:<shell>'",
        ],
    );
    env.set("ANTHROPIC_API_KEY", "not-a-key");
    // What is missing still is shown with the whole command that would do.
    let without_judge = propose(&env, &[]);
    let command = format!("`kapi goal new '{TASK}' --verify 'sh test.sh' --judge same`");
    without_judge.assert_error(3, &["judge_unspecified", &command]);
    let output = propose(&env, &["--judge", "none"]);
    assert_eq!(output.code, 5, "{output:?}");
    assert!(output.stderr.contains("so claude works"), "{output:?}");
    assert!(
        output.stderr.contains("\n  agent     claude\n"),
        "{output:?}"
    );
    env.set("OPENAI_API_KEY", "not-a-key");
    let command = format!("`kapi goal new '{TASK}' --verify 'sh test.sh' --agent claude`");
    propose(&env, &[]).assert_error(2, &["several are ready: claude, codex", &command]);
    let interview = env.kapi(&["deep-interview", "Keep sessions"]);
    interview.assert_error(2, &["several are ready: claude, codex"]);
}

#[test]
fn who_judges_is_asked_once_at_a_terminal_and_remembered() {
    let mut env = with_clis(&["claude"]);
    env.set("ANTHROPIC_API_KEY", "not-a-key");
    let args = ["goal", "new", TASK, "--verify", "sh test.sh"];
    let silent = at_terminal(&env, &args, &[("Judge: ", "\n")]);
    assert_eq!(silent.code, 3, "{silent:?}");
    assert!(silent.stdout.contains("judge_unspecified"), "{silent:?}");
    let answers = [
        ("Judge: ", "gpt\n"),
        ("Judge: ", "same\n"),
        ("[y/N] ", "n\n"),
    ];
    let asked = at_terminal(&env, &args, &answers);
    assert!(asked.stdout.contains("remembered"), "{asked:?}");
    assert!(asked.stdout.contains("SAME MODEL"), "{asked:?}");
    let shown = env.json(&["goal", "judge"]);
    assert_eq!(shown["judge"], "same");
    let again = at_terminal(&env, &args, &[("[y/N] ", "n\n")]);
    assert!(!again.stdout.contains("Judge: "), "{again:?}");
}

#[test]
fn another_installed_agent_judges_by_default_and_that_is_said() {
    let mut env = with_clis(&["claude", "codex"]);
    env.set("ANTHROPIC_API_KEY", "not-a-key");
    // Without credentials it is no judge.
    propose(&env, &["--agent", "claude"]).assert_error(3, &["judge_unspecified"]);
    env.set("OPENAI_API_KEY", "not-a-key");
    let output = propose(&env, &["--agent", "claude"]);
    assert_eq!(output.code, 5, "{output:?}");
    assert!(
        output.stderr.contains("so codex judges: it is installed"),
        "{output:?}"
    );
    assert!(
        output.stderr.contains("\n  judge     codex\n"),
        "{output:?}"
    );
    let detail = env.json(&["show", "1", "--all"]);
    assert_eq!(
        detail["contract"]["judge"],
        json!({"by": "agent", "agent": "codex"})
    );
    assert_eq!(detail["standing"]["same_model"], false);
    let output = propose(&env, &["--agent", "codex"]);
    assert!(output.stderr.contains("so claude judges"), "{output:?}");
}

#[test]
fn a_judge_equal_to_the_executor_is_named_as_such_everywhere() {
    let env = Environment::new();
    for judge in ["same", HONEST] {
        let output = env.kapi(&[
            "goal",
            "new",
            TASK,
            "--verify",
            "sh test.sh",
            "--agent",
            HONEST,
            "--judge",
            judge,
            "--keep",
        ]);
        assert!(output.stderr.contains("SAME MODEL"), "{output:?}");
        assert!(
            output.stderr.contains("\n  judge     same model: command:"),
            "{output:?}"
        );
    }
    assert_eq!(env.json(&["show", "1"])["standing"]["same_model"], true);
    for args in [&["goal", "slash", "status"][..], &["show", "1", "--all"]] {
        let shown = env.kapi(args).stdout;
        assert!(shown.contains("same model"), "{args:?}: {shown}");
    }
    let star = env.kapi(&["goal", "approve", "1", "--yes", "--no-run"]);
    assert_eq!(star.code, 0, "{star:?}");
    let star = env.kapi(&["goal", "northstar", "1"]).stdout;
    assert!(star.contains("\n  sameModelJudge: true\n"), "{star}");
}

#[test]
fn a_program_is_judged_by_its_checks_unless_somebody_is_named() {
    let env = Environment::new();
    let output = propose(&env, &["--agent", HONEST]);
    assert!(output.stderr.contains("No judge"), "{output:?}");
    let detail = env.json(&["show", "1", "--all"]);
    assert_eq!(detail["contract"]["judge"], json!({"by": "none"}));
}

#[test]
fn the_preference_holds_over_files_and_under_flags_and_variables() {
    let mut env = Environment::new();
    env.configure("[goal]\njudge = \"command:exit 1\"\n");
    let judge = |env: &Environment, reference: &str| {
        env.json(&["show", reference, "--all"])["contract"]["judge"]["agent"].clone()
    };
    propose(&env, &["--agent", HONEST, "--keep"]);
    assert_eq!(judge(&env, "1"), "command:exit 1");
    let set = env.json(&["goal", "judge", "command:exit 2"]);
    assert_eq!(set["judge"], "command:exit 2");
    propose(&env, &["--agent", HONEST, "--keep"]);
    assert_eq!(judge(&env, "2"), "command:exit 2");
    env.set("KAPI_JUDGE", "command:exit 3");
    propose(&env, &["--agent", HONEST, "--keep"]);
    assert_eq!(judge(&env, "3"), "command:exit 3");
    propose(
        &env,
        &["--agent", HONEST, "--keep", "--judge", "command:exit 4"],
    );
    assert_eq!(judge(&env, "4"), "command:exit 4");
    env.set("KAPI_JUDGE", "");
    assert_eq!(env.json(&["goal", "judge", "clear"])["judge"], json!(null));
    propose(&env, &["--agent", HONEST, "--keep"]);
    assert_eq!(judge(&env, "5"), "command:exit 1");
}

#[test]
fn what_names_no_judge_is_refused() {
    let env = Environment::new();
    for judge in ["gpt-5", "/x", "x/", "Claude"] {
        propose(&env, &["--agent", HONEST, "--judge", judge]).assert_error(2, &[judge]);
        env.kapi(&["goal", "judge", judge])
            .assert_error(2, &[judge]);
    }
    assert!(!env.home().join(".ilchul/projects").exists());
}

/// A judge that is there only by name is found when the goal is set up, not when it judges.
#[test]
fn judge_unavailable_is_found_at_setup_by_asking_for_the_model() {
    let mut env = Environment::new();
    propose(&env, &["--agent", HONEST, "--judge", "nobody/model"])
        .assert_error_among_talk(4, &["judge_unavailable", "nobody", "hint: "]);
    propose(
        &env,
        &["--agent", HONEST, "--judge", "anthropic/claude-opus-4-7"],
    )
    .assert_error_among_talk(4, &["judge_unavailable", "ANTHROPIC_API_KEY", "hint: "]);
    env.set("ANTHROPIC_API_KEY", "not-a-key");
    // Nobody listens there.
    env.configure("[judges.mine]\nbase_url = \"http://127.0.0.1:9\"\n");
    propose(&env, &["--agent", HONEST, "--judge", "mine/model"])
        .assert_error_among_talk(4, &["judge_unavailable", "127.0.0.1:9", "hint: "]);
    assert!(
        !env.repository().join(".ilchul/goals").exists(),
        "no goal was made"
    );
}

#[test]
fn a_model_that_answers_may_judge_and_one_that_lets_nobody_in_may_not() {
    let mut env = Environment::new();
    let mut scenario = ModelScenario::new(Vec::new());
    scenario.require_key = Some("right".to_owned());
    let server = ModelServer::start(scenario).unwrap();
    env.configure(&format!(
        "[judges.mine]\napi = \"anthropic\"\nbase_url = {:?}\napi_key_env = \"JUDGE_KEY\"\n",
        server.base_url()
    ));
    env.set("JUDGE_KEY", "wrong");
    propose(&env, &["--agent", HONEST, "--judge", "mine/judge-1"])
        .assert_error_among_talk(4, &["judge_unavailable: mine/judge-1", "hint: "]);
    assert!(!server.requests().is_empty(), "it was really asked");
    env.set("JUDGE_KEY", "right");
    let output = propose(&env, &["--agent", HONEST, "--judge", "mine/judge-1"]);
    assert_eq!(output.code, 5, "{output:?}");
    let judge = env.json(&["show", "1", "--all"])["contract"]["judge"].clone();
    assert_eq!(judge, json!({"by": "agent", "agent": "mine/judge-1"}));
    // What could judge then is asked again when the contract is approved.
    env.set("JUDGE_KEY", "wrong");
    let refused = env.kapi(&["goal", "approve", "1", "--yes"]);
    refused.assert_error_among_talk(4, &["judge_unavailable: mine/judge-1"]);
    assert_eq!(env.json(&["show", "1"])["status"], "proposed");
}

/// Specification, the judge's first mode: two vendors, or two sizes of one family.
#[test]
fn two_sizes_of_one_family_are_two_models() {
    let mut env = with_clis(&["claude"]);
    env.set("ANTHROPIC_API_KEY", "not-a-key");
    env.set("JUDGE_KEY", "right");
    let mut scenario = ModelScenario::new(Vec::new());
    scenario.require_key = Some("right".to_owned());
    let server = ModelServer::start(scenario).unwrap();
    env.configure(&format!(
        "[agents.claude]\nmodel = \"claude-sonnet-4-5\"\n\
         [judges.mine]\napi = \"anthropic\"\nbase_url = {:?}\napi_key_env = \"JUDGE_KEY\"\n",
        server.base_url()
    ));
    for (judge, is_same) in [
        ("mine/claude-opus-4-7", false),
        ("mine/claude-sonnet-4-5-mini", false),
        ("mine/claude-sonnet-4-5", true),
    ] {
        let output = propose(&env, &["--agent", "claude", "--judge", judge, "--keep"]);
        assert_eq!(output.code, 5, "{judge}: {output:?}");
        assert_eq!(
            output.stderr.contains("SAME MODEL"),
            is_same,
            "{judge}: {output:?}"
        );
    }
    let judge = env.json(&["show", "1", "--all"])["contract"]["judge"].clone();
    assert_eq!(
        judge,
        json!({"by": "agent", "agent": "mine/claude-opus-4-7"})
    );
    assert_eq!(env.json(&["show", "1"])["standing"]["same_model"], false);
}
