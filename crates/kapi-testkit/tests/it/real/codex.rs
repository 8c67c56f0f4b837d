//! OpenAI Codex CLI.

use kapi_testkit::agent_tools::Cli;
use kapi_testkit::model_server::scenario::{AssistantTurn, ModelScenario};

use crate::real::session::{Ended, KEY, Session};
use crate::real::{Launches, VERDICT_SCHEMA};

/// A model that codex does not know: it offers `exec_command` and no patch tool.
const UNKNOWN: &str = "scripted";
/// A model for which codex offers `apply_patch` as a free-form tool.
const PATCHING: &str = "gpt-5.5";
/// A model for which codex offers one tool that runs JavaScript.
const CODING: &str = "gpt-6-sol";

const LAUNCHES: Launches = Launches {
    cli: Cli::Codex,
    first: |session, prompt| run(session, UNKNOWN, &[prompt]),
    resume: |session, first, prompt| resume(session, UNKNOWN, first, prompt),
    judge: |session, prompt| {
        let schema = session.configure("verdict.json", VERDICT_SCHEMA);
        let schema = schema.to_str().expect("a plain path");
        run(
            session,
            UNKNOWN,
            &["--ephemeral", "--output-schema", schema, prompt],
        )
    },
    last_text,
};

fn run(session: &Session, model: &str, args: &[&str]) -> Ended {
    let url = session.url();
    session.configure(
        ".codex/config.toml",
        &format!(
            "model_provider = \"scripted\"\ncheck_for_update_on_startup = false\n\
             [analytics]\nenabled = false\n\
             [features]\nplugins = false\napps = false\nunbounded_connection_retries = false\n\
             [model_providers.scripted]\nname = \"scripted\"\nbase_url = \"{url}/v1\"\n\
             env_key = \"SCRIPTED_KEY\"\nwire_api = \"responses\"\n\
             request_max_retries = 2\nstream_max_retries = 2\n"
        ),
    );
    let base = [
        "exec",
        "--json",
        "--dangerously-bypass-approvals-and-sandbox",
        "--skip-git-repo-check",
        "-m",
        model,
    ];
    session.run(&[&base[..], args].concat(), &[("SCRIPTED_KEY", KEY)])
}

fn resume(session: &Session, model: &str, first: &Ended, prompt: &str) -> Ended {
    let thread = &first.last_of_type("thread.started")["thread_id"];
    run(
        session,
        model,
        &["resume", thread.as_str().expect("an id"), prompt],
    )
}

/// Returns the tools that codex offers when asked to use this model.
fn offered(model: &'static str) -> Vec<String> {
    let scenario = ModelScenario::new(vec![AssistantTurn::text("Hello.")]);
    let session = Session::start(Cli::Codex, scenario);
    let ended = run(&session, model, &["hello"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let request = session
        .requests()
        .into_iter()
        .find(|request| request.step == Some(0));
    request.expect("a request with tools").tools
}

fn last_text(ended: &Ended) -> String {
    let item = ended
        .of_type("item.completed")
        .into_iter()
        .map(|event| &event["item"])
        .rfind(|item| item["type"] == "agent_message");
    let item = item.unwrap_or_else(|| panic!("no message: {ended:#?}"));
    item["text"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn tools_and_resume() {
    super::check_tools_and_resume(&LAUNCHES);
}

#[test]
fn tools_and_resume_with_patches() {
    super::check_tools_and_resume(&Launches {
        first: |session, prompt| run(session, PATCHING, &[prompt]),
        resume: |session, first, prompt| resume(session, PATCHING, first, prompt),
        ..LAUNCHES
    });
}

#[test]
fn tools_and_resume_with_javascript() {
    super::check_tools_and_resume(&Launches {
        first: |session, prompt| run(session, CODING, &[prompt]),
        resume: |session, first, prompt| resume(session, CODING, first, prompt),
        ..LAUNCHES
    });
}

/// The model decides the tools: what the tests above rest on.
#[test]
fn tools_offered_for_each_kind_of_model() {
    let has = |model, tool: &str| offered(model).iter().any(|name| name == tool);
    assert!(has(UNKNOWN, "exec_command") && !has(UNKNOWN, "apply_patch"));
    assert!(has(PATCHING, "exec_command") && has(PATCHING, "apply_patch"));
    assert!(has(CODING, "exec") && !has(CODING, "exec_command"));
}

#[test]
fn judge() {
    super::check_judge(&LAUNCHES);
}

#[test]
fn rate_limit() {
    super::check_rate_limit(&LAUNCHES);
}

#[test]
fn refused_key() {
    let ended = super::check_refused_key(&LAUNCHES);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let failed = ended.last_of_type("turn.failed").to_string();
    assert!(failed.contains("401"), "{failed}");
}
