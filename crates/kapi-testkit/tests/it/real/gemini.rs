//! Google Gemini CLI.

use kapi_testkit::agent_tools::Cli;
use serde_json::json;

use crate::real::Launches;
use crate::real::session::{Ended, KEY, Session};

const SESSION: &str = "7d0f7d0c-50d7-4bb4-a4a3-3f1f6f0e5a12";
const LAUNCHES: Launches = Launches {
    cli: Cli::Gemini,
    first: |session, prompt| run(session, &["--session-id", SESSION, "-p", prompt]),
    resume: |session, _, prompt| run(session, &["--resume", SESSION, "-p", prompt]),
    judge: |session, prompt| run(session, &["-p", prompt]),
    last_text,
};

fn run(session: &Session, args: &[&str]) -> Ended {
    let settings = json!({
        "security": {
            "auth": { "selectedType": "gemini-api-key" },
            "folderTrust": { "enabled": false },
        },
        "privacy": { "usageStatisticsEnabled": false },
        "telemetry": { "enabled": false },
        "general": { "enableAutoUpdate": false, "enableAutoUpdateNotification": false },
    });
    session.configure(".gemini/settings.json", &settings.to_string());
    let base = [
        "-y",
        "--skip-trust",
        "-m",
        "gemini-2.5-pro",
        "-o",
        "stream-json",
    ];
    let url = session.url();
    let environment = [
        ("GEMINI_API_KEY", KEY),
        ("GOOGLE_GEMINI_BASE_URL", url.as_str()),
        ("GEMINI_CLI_NO_RELAUNCH", "true"),
    ];
    session.run(&[&base[..], args].concat(), &environment)
}

/// Joins the pieces that the assistant said after its last tool.
fn last_text(ended: &Ended) -> String {
    let mut text = String::new();
    for event in &ended.events {
        if event["type"] == "tool_use" {
            text.clear();
        } else if event["type"] == "message" && event["role"] == "assistant" {
            text.push_str(event["content"].as_str().unwrap_or_default());
        }
    }
    text
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
    // The status modulo 256.
    assert_eq!(ended.code, Some(145), "{ended:?}");
    assert_eq!(ended.last_of_type("result")["status"], "error", "{ended:?}");
}
