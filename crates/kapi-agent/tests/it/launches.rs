//! How each agent is started: whole launches, new, resumed, as a judge, with a server of one's own.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

use kapi_agent::agent::{AgentError, AgentKind};
use kapi_agent::launch::upstream::GatewayAddress;
use kapi_agent::launch::{AgentLaunch, AgentTurn, HostEnvironment, LaunchPurpose, launch};
use kapi_agent::settings::AgentSettings;

fn environment(pairs: &[(&str, &str)]) -> BTreeMap<OsString, OsString> {
    pairs
        .iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}

fn keys() -> BTreeMap<OsString, OsString> {
    environment(&[
        ("ANTHROPIC_API_KEY", "sk-ant"),
        ("OPENAI_API_KEY", "sk-oai"),
        ("GEMINI_API_KEY", "sk-gem"),
        ("MY_KEY", "sk-mine"),
        ("SECRET", "not to be seen"),
        ("LANGUAGE_SERVER", "passed"),
    ])
}

fn turn(session: Option<&'static str>, purpose: LaunchPurpose) -> AgentTurn<'static> {
    AgentTurn {
        prompt: "-do the thing",
        prompt_file: Path::new("/home/agent/prompt.md"),
        session,
        turn: 2,
        run_id: "001-fix.t002",
        purpose,
        home: Path::new("/home/agent"),
        workspace: Path::new("/workspace"),
        gateway: GatewayAddress {
            url: "http://127.0.0.1:8377",
            placeholder: "kapi-placeholder",
        },
        tools: None,
        gate: None,
    }
}

fn started(
    reference: &str,
    settings: &AgentSettings,
    turn: &AgentTurn<'_>,
) -> Result<AgentLaunch, AgentError> {
    let env = keys();
    launch(
        &AgentKind::parse(reference).unwrap(),
        settings,
        &HostEnvironment { env: &env },
        turn,
    )
}

fn described(launch: &AgentLaunch) -> String {
    let AgentLaunch {
        program,
        args,
        env,
        stdin,
        files,
        login_files,
        notes,
        idle_ms,
        reports_usd,
        upstream,
        hosts,
    } = launch;
    let mut text = program.clone();
    for arg in args {
        write!(text, " {arg:?}").unwrap();
    }
    writeln!(text, "\nstdin {:?}", String::from_utf8_lossy(stdin)).unwrap();
    for (name, value) in env {
        writeln!(text, "env {name}={value}").unwrap();
    }
    for file in files {
        let content = String::from_utf8_lossy(&file.content);
        writeln!(
            text,
            "file {} {:o}\n{content}",
            file.path.display(),
            file.mode
        )
        .unwrap();
    }
    writeln!(
        text,
        "login {login_files:?}\nnotes {notes:?}\nidle {idle_ms:?} usd {reports_usd}"
    )
    .unwrap();
    writeln!(text, "upstream {upstream:?}\nhosts {hosts:?}").unwrap();
    text
}

/// Returns the key that the gateway would put in.
fn key(launch: &AgentLaunch) -> Option<&str> {
    launch.upstream.as_ref()?.key.as_deref()
}

const AGENTS: &[&str] = &["claude", "codex", "gemini", "pi"];

#[test]
fn a_new_session_with_the_vendors_key() {
    for agent in AGENTS {
        let launch = started(
            agent,
            &AgentSettings::default(),
            &turn(None, LaunchPurpose::Work),
        )
        .unwrap();
        assert!(key(&launch).is_some_and(|key| key.starts_with("sk-")));
        assert!(
            !described(&launch).contains("sk-"),
            "{agent}: the key stays outside"
        );
        insta::assert_snapshot!(format!("{agent}-new"), described(&launch));
    }
}

#[test]
fn a_resumed_session_on_a_server_of_ones_own() {
    for agent in AGENTS {
        let settings = AgentSettings {
            command: Some("/opt/bin/agent".to_owned()),
            model: Some("tiny".to_owned()),
            base_url: Some("http://127.0.0.1:8080/".to_owned()),
            api_key_env: Some("MY_KEY".to_owned()),
            args: vec!["--more".to_owned()],
            env: [("EXTRA".to_owned(), "1".to_owned())].into(),
            pass_env: vec!["LANGUAGE_SERVER".to_owned(), "ABSENT".to_owned()],
            login: false,
            ..AgentSettings::default()
        };
        let turn = turn(Some("5e55-10n+700/30"), LaunchPurpose::Work);
        let launch = started(agent, &settings, &turn).unwrap();
        insta::assert_snapshot!(format!("{agent}-resumed"), described(&launch));
    }
}

#[test]
fn a_judge_resumes_nothing_and_keeps_nothing() {
    for agent in AGENTS {
        let turn = turn(Some("5e55-10n"), LaunchPurpose::Judge);
        let launch = started(agent, &AgentSettings::default(), &turn).unwrap();
        assert!(!described(&launch).contains("5e55-10n"));
        insta::assert_snapshot!(format!("{agent}-judge"), described(&launch));
    }
}

#[test]
fn one_who_is_asked_again_reads_as_a_judge_does_and_goes_on_with_its_session() {
    for agent in AGENTS {
        let started = |purpose| {
            let turn = turn(Some("5e55-10n"), purpose);
            started(agent, &AgentSettings::default(), &turn).unwrap()
        };
        let (asked, judge) = (
            started(LaunchPurpose::Converse),
            started(LaunchPurpose::Judge),
        );
        assert!(asked.args.contains(&"5e55-10n".to_owned()), "{asked:?}");
        let not_kept = ["--no-session-persistence", "--ephemeral", "--no-session"];
        let keeps = |arg: &String| !not_kept.contains(&arg.as_str());
        assert!(asked.args.iter().all(keeps), "{:?}", asked.args);
        // What it may use and what it is kept from reading is a judge's.
        let rest = judge.args.iter().filter(|arg| keeps(arg));
        for arg in rest {
            assert!(asked.args.contains(arg), "{agent}: {arg}");
        }
        assert_eq!(
            (asked.env, asked.files),
            (judge.env, judge.files),
            "{agent}"
        );
    }
}

#[test]
fn a_login_is_lent_only_when_asked() {
    for agent in AGENTS {
        let settings = AgentSettings {
            login: true,
            ..AgentSettings::default()
        };
        let launch = started(agent, &settings, &turn(None, LaunchPurpose::Work)).unwrap();
        assert!(!described(&launch).contains("sk-"), "{agent}");
        insta::assert_snapshot!(format!("{agent}-login"), described(&launch));
    }
}

#[test]
fn a_server_of_ones_own_never_gets_a_vendors_key_unasked() {
    for agent in AGENTS {
        let base_url = Some("http://127.0.0.1:8080".to_owned());
        let settings = AgentSettings {
            base_url,
            ..AgentSettings::default()
        };
        let launch = started(agent, &settings, &turn(None, LaunchPurpose::Work)).unwrap();
        let text = described(&launch);
        assert!(text.contains("kapi-placeholder"), "{text}");
        assert_eq!(key(&launch), None);
        assert!(!text.contains("sk-"), "{text}");
    }
}

#[test]
fn nothing_of_the_host_is_passed_unasked() {
    for agent in AGENTS {
        let launch = started(
            agent,
            &AgentSettings::default(),
            &turn(None, LaunchPurpose::Work),
        )
        .unwrap();
        assert!(!described(&launch).contains("not to be seen"), "{agent}");
    }
}

#[test]
fn versions_are_added_only_to_urls_without_a_path() {
    for (agent, url, expected) in [
        ("codex", "http://h:1", "http://h:1/v1"),
        ("codex", "http://h:1/v1/", "http://h:1/v1"),
        ("pi", "http://h:1/", "http://h:1/v1"),
        ("pi", "http://h:1/api/v2", "http://h:1/api/v2"),
        ("claude", "http://h:1/", "http://h:1"),
        ("gemini", "http://h:1/", "http://h:1"),
    ] {
        let settings = AgentSettings {
            base_url: Some(url.to_owned()),
            ..AgentSettings::default()
        };
        let launch = started(agent, &settings, &turn(None, LaunchPurpose::Work)).unwrap();
        let upstream = launch.upstream.unwrap();
        assert_eq!(upstream.base_url, expected, "{agent} {url}");
    }
}

#[test]
fn pi_takes_its_provider_from_the_model() {
    for (model, variable, expected_args, expected_upstream) in [
        (
            "openai/gpt-5.5",
            None,
            "--provider openai --model gpt-5.5",
            "https://api.openai.com/v1 sk-oai",
        ),
        (
            "google/gemini-2.5-pro",
            Some("MY_KEY"),
            "--provider google --model gemini-2.5-pro",
            "https://generativelanguage.googleapis.com/v1beta sk-mine",
        ),
        (
            "sonnet",
            None,
            "--provider anthropic --model sonnet",
            "https://api.anthropic.com sk-ant",
        ),
        (
            "openrouter/a/b",
            Some("MY_KEY"),
            "--provider openrouter --model a/b",
            "https://openrouter.ai/api/v1 sk-mine",
        ),
    ] {
        let settings = AgentSettings {
            model: Some(model.to_owned()),
            api_key_env: variable.map(ToOwned::to_owned),
            ..AgentSettings::default()
        };
        let launch = started("pi", &settings, &turn(None, LaunchPurpose::Work)).unwrap();
        assert!(
            launch.args.join(" ").contains(expected_args),
            "{:?}",
            launch.args
        );
        let upstream = launch.upstream.unwrap();
        let found = format!("{} {}", upstream.base_url, upstream.key.unwrap());
        assert_eq!(found, expected_upstream, "{model}");
    }
}

#[test]
fn a_provider_that_the_gateway_does_not_speak_to_is_said_to_get_its_key() {
    let settings = AgentSettings {
        model: Some("new-one/m".to_owned()),
        api_key_env: Some("MY_KEY".to_owned()),
        ..AgentSettings::default()
    };
    let launch = started("pi", &settings, &turn(None, LaunchPurpose::Work)).unwrap();
    assert_eq!(launch.env.get("MY_KEY").unwrap(), "sk-mine");
    assert_eq!(launch.upstream, None);
    assert!(
        launch
            .notes
            .iter()
            .any(|note| note.contains("its key is inside"))
    );
}

#[test]
fn what_cannot_start_says_why_and_what_to_do() {
    let set = |change: fn(&mut AgentSettings)| {
        let mut settings = AgentSettings::default();
        change(&mut settings);
        settings
    };
    let url = |text: &str| AgentSettings {
        base_url: Some(text.to_owned()),
        ..AgentSettings::default()
    };
    let cases = [
        (
            "claude",
            set(|settings| settings.api_key_env = Some("UNSET".to_owned())),
        ),
        (
            "pi",
            set(|settings| settings.model = Some("new-one/m".to_owned())),
        ),
        ("gemini", url("localhost:8080")),
        (
            "codex",
            AgentSettings {
                login: true,
                ..url("http://h")
            },
        ),
        (
            "claude",
            set(|settings| settings.pass_env = vec!["ANTHROPIC_API_KEY".to_owned()]),
        ),
        (
            "codex",
            set(|settings| {
                settings
                    .env
                    .insert("HTTPS_PROXY".to_owned(), "http://p".to_owned());
            }),
        ),
        ("script:/nonexistent/s.yaml", AgentSettings::default()),
    ];
    let texts: Vec<String> = cases
        .iter()
        .map(|(agent, settings)| {
            let error = started(agent, settings, &turn(None, LaunchPurpose::Work)).unwrap_err();
            format!("{error}\n  hint: {}", error.hint().unwrap_or_default())
        })
        .collect();
    insta::assert_snapshot!(texts.join("\n"));
}

#[test]
fn no_key_at_all_names_the_variable_of_each_vendor() {
    let env = environment(&[("ANTHROPIC_API_KEY", "")]);
    let variables: Vec<String> = AGENTS
        .iter()
        .map(|agent| {
            let kind = AgentKind::parse(agent).unwrap();
            let turn = turn(None, LaunchPurpose::Work);
            match launch(
                &kind,
                &AgentSettings::default(),
                &HostEnvironment { env: &env },
                &turn,
            )
            .unwrap_err()
            {
                AgentError::NoCredentials { variable, .. } => variable,
                other => panic!("{other}"),
            }
        })
        .collect();
    let expected = [
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "GEMINI_API_KEY",
        "ANTHROPIC_API_KEY",
    ];
    assert_eq!(variables, expected);
}

#[test]
fn a_command_gets_the_prompt_and_the_turn() {
    let settings = AgentSettings {
        model: Some("ignored".to_owned()),
        env: [("A".to_owned(), "1".to_owned())].into(),
        pass_env: vec!["LANGUAGE_SERVER".to_owned()],
        ..AgentSettings::default()
    };
    let launch = started(
        "command:cat; exit 3",
        &settings,
        &turn(None, LaunchPurpose::Work),
    )
    .unwrap();
    insta::assert_snapshot!(described(&launch));
}
