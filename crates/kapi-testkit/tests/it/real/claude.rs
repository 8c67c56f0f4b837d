//! Claude Code.

use kapi_testkit::agent_tools::Cli;

use crate::real::session::{Ended, KEY, Session};
use crate::real::{Launches, VERDICT_SCHEMA};

const SESSION: &str = "7d0f7d0c-50d7-4bb4-a4a3-3f1f6f0e5a11";
const LAUNCHES: Launches = Launches {
    cli: Cli::Claude,
    first: |session, prompt| run(session, &["--session-id", SESSION, prompt]),
    resume: |session, _, prompt| run(session, &["--resume", SESSION, prompt]),
    judge: |session, prompt| {
        let lean = [
            "--tools",
            "",
            "--no-session-persistence",
            "--json-schema",
            VERDICT_SCHEMA,
        ];
        run(session, &[&lean[..], &[prompt]].concat())
    },
    last_text,
};

fn run(session: &Session, args: &[&str]) -> Ended {
    let base = [
        "-p",
        "--output-format",
        "stream-json",
        "--verbose",
        "--dangerously-skip-permissions",
        "--setting-sources",
        "user",
        "--strict-mcp-config",
    ];
    let environment = [
        ("ANTHROPIC_BASE_URL", session.url()),
        ("ANTHROPIC_API_KEY", KEY.to_owned()),
        ("IS_SANDBOX", "1".to_owned()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
        ("DISABLE_AUTOUPDATER", "1".to_owned()),
        ("CLAUDE_CODE_MAX_RETRIES", "2".to_owned()),
    ];
    let environment: Vec<(&str, &str)> = environment
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    session.run(&[&base[..], args].concat(), &environment)
}

fn last_text(ended: &Ended) -> String {
    let result = ended.last_of_type("result");
    match result.get("structured_output") {
        Some(verdict) => verdict.to_string(),
        None => result["result"].as_str().unwrap_or_default().to_owned(),
    }
}

#[test]
fn tools_and_resume() {
    super::check_tools_and_resume(&LAUNCHES);
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
    let result = ended.last_of_type("result");
    assert_eq!(result["is_error"], true, "{result}");
    assert_eq!(result["api_error_status"], 401, "{result}");
}
