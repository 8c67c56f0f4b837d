//! The Pi package in the real Pi: nothing of it while nothing is attached, an interview and a Ralph
//! over Pi's own dialogs, words of the person passed on, and what a model may never do.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use kapi_testkit::model_server::ModelServer;
use kapi_testkit::model_server::record::RecordedRequest;
use kapi_testkit::model_server::scenario::{AssistantTurn, ModelScenario, Route, ToolUse};
use serde_json::{Value, json};

use crate::environment::write;
use crate::pi_host::{Host, Options, PiVersion};
use crate::workflow_support::Machine;

pub(crate) const INTERVIEW: &str = "001-greet-people-name";

/// Returns what the model does: what each prompt asks for by its first words.
pub(crate) fn scenario() -> ModelScenario {
    let mut scenario = ModelScenario::new(vec![AssistantTurn::text("Hello.")]);
    let call = |name: &str, arguments: Value| {
        AssistantTurn::tools(vec![ToolUse::Named {
            name: name.to_owned(),
            arguments,
        }])
    };
    let pass_on =
        |kind: &str, text: &str| call("kapi_pass_on", json!({ "kind": kind, "text": text }));
    let approve = format!(
        "{0} deep-interview approve 1 --yes --accept-risks; env -u KAPI_RUN_ID {0} deep-interview \
         approve 1 --yes --accept-risks; {0} clear",
        env!("CARGO_BIN_EXE_kapi")
    );
    let route = |words: &str, step: AssistantTurn| {
        Route::new(words, vec![step, AssistantTurn::text("So it is.")])
    };
    scenario.routes = vec![
        route("read it", AssistantTurn::bash("cat answer.txt")),
        route("approve it yourself", AssistantTurn::bash(&approve)),
        route("where are we", call("kapi_status", json!({}))),
        route("whoever comes in", pass_on("answer", "whoever comes in")),
        route("guess my answer", pass_on("answer", "nobody at all")),
        route(
            "name the manual GUIDE",
            pass_on("revision", "name the manual GUIDE"),
        ),
    ];
    scenario
}

/// A machine with scripted agents, and the model that Pi asks.
pub(crate) struct PiRig {
    pub(crate) machine: Machine,
    server: ModelServer,
    pub(crate) version: PiVersion,
}

impl PiRig {
    pub(crate) fn new() -> Self {
        Self::in_pi(PiVersion::Pinned)
    }

    /// Returns one whose person uses that Pi.
    pub(crate) fn in_pi(version: PiVersion) -> Self {
        Self {
            machine: Machine::new(),
            server: ModelServer::start(scenario()).unwrap(),
            version,
        }
    }

    pub(crate) fn options(&self) -> Options<'static> {
        Options {
            version: self.version,
            base_url: self.server.base_url(),
            ..Options::default()
        }
    }

    pub(crate) fn host(&self) -> Host {
        Host::start(&self.machine.env, &self.options())
    }

    pub(crate) fn snapshot(&self, mode: &str, id: &str) -> Value {
        serde_json::from_str(&self.machine.document(mode, id, "snapshot.json")).unwrap()
    }

    /// Starts an interview in a Pi, up to its first question, and leaves that open.
    pub(crate) fn begun(&self, host: &mut Host) {
        let agent = &self.machine.agent;
        host.command(&format!(
            "/kapi-deep-interview greet people by name --agent {agent}"
        ));
        host.escape("select");
        host.reported("The question stays open.");
    }

    pub(crate) fn last_request(&self) -> RecordedRequest {
        let mut asked = self.server.requests();
        asked.retain(|request| request.api.is_some());
        asked.pop().unwrap()
    }
}

/// Returns the system prompt of a request.
pub(crate) fn system(request: &RecordedRequest) -> String {
    let messages = request.body["messages"].as_array().unwrap();
    let system = messages.iter().find(|message| message["role"] == "system");
    system.unwrap()["content"].to_string()
}

/// Returns a stand-in for the binary that notes every start beside it.
pub(crate) fn noted_binary(rig: &PiRig) -> (PathBuf, PathBuf) {
    let (script, starts) = (
        rig.machine.env.root().join("noted-kapi"),
        rig.machine.env.root().join("starts"),
    );
    let text = format!(
        "#!/bin/sh\necho \"$*\" >> '{}'\nexec '{}' \"$@\"\n",
        starts.display(),
        env!("CARGO_BIN_EXE_kapi")
    );
    write(&script, text);
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    (script, starts)
}

#[test]
fn exactly_these_commands_are_there() {
    const REMOVED: [&str; 11] = [
        "clarify",
        "plan",
        "execute",
        "review",
        "tdd",
        "ultrawork",
        "autopilot",
        "ralplan",
        "autoresearch-plan",
        "autoresearch-loop",
        "resume",
    ];
    let rig = PiRig::new();
    let listed = |options: &Options<'_>| {
        let mut host = Host::start(&rig.machine.env, options);
        let data = host.ask(&json!({ "type": "get_commands" }));
        host.end();
        let commands = data["commands"].as_array().unwrap().iter();
        let names = commands.map(|command| command["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<String>>()
    };
    // Some versions of Pi have commands of their own.
    let bare = Options {
        is_bare: true,
        ..rig.options()
    };
    let before = listed(&bare);
    let mut names = listed(&rig.options());
    names.retain(|name| !before.contains(name));
    let expected = [
        "kapi-autoresearch",
        "kapi-deep-interview",
        "kapi-integrate",
        "kapi-ralph",
        "kapi-status",
        "kapi-clear",
        "kapi-inbox",
        "kapi-run",
        "until-done",
        "creampi",
        "creampi-loops",
        "creampi-health",
        "skill:until-done",
    ];
    assert_eq!(names, expected);
    for name in REMOVED {
        assert!(!names.contains(&format!("kapi-{name}")), "{name}");
    }
}

/// Checks that the answer is recorded as it was typed, and the approval of what was shown.
fn check_recorded(rig: &PiRig, id: &str, hash: &str) {
    let events = rig.machine.events("deep-interview", id);
    let answers: Vec<&Value> = events
        .iter()
        // The spec that is drafted later quotes it, too.
        .filter(|event| event["actor"]["kind"] == "human")
        .filter(|event| {
            event
                .to_string()
                .contains("Don't touch answer.txt,\\nwhatever happens.")
        })
        .collect();
    assert_eq!(answers.len(), 1, "{events:#?}");
    let approved = events
        .iter()
        .find(|event| event["type"] == "approved")
        .unwrap();
    assert_eq!(
        approved["data"]["approval"]["means"], "named_hash",
        "{approved:#}"
    );
    assert_eq!(approved["data"]["approval"]["sha256"], hash, "{approved:#}");
}

#[test]
fn an_interview_is_answered_in_dialogs_up_to_the_approved_spec() {
    let rig = PiRig::new();
    let mut host = rig.host();
    let agent = &rig.machine.agent;
    // An apostrophe needs no quotes, and the session's person is asked, not its model.
    host.command(&format!(
        "/kapi-deep-interview greet people by name, don't shout --agent {agent}"
    ));
    let asked = host.choose("Accept: whoever is named");
    let title = asked["title"].as_str().unwrap();
    for words in [
        "question 2: Whom does it greet?",
        "proposed: whoever is named",
        "why: it",
    ] {
        assert!(title.contains(words), "{words}: {asked:#}");
    }
    // What the binary refuses is said, and the question is put again.
    host.choose("Answer in my own words");
    host.type_text("/quti");
    host.reported("/quti is not a known command");
    host.choose("Answer in my own words");
    host.type_text("Don't touch answer.txt,\nwhatever happens.");
    host.escape("select");
    host.reported("Continue with /kapi-deep-interview resume 001");
    let id = "001-greet-people-name-shout";
    let left = rig.snapshot("deep-interview", id);
    assert_eq!(left["openQuestion"]["round"], 4, "{left:#}");
    host.end();

    // Tomorrow, in another Pi.
    let mut host = rig.host();
    host.command("/kapi-deep-interview resume 001");
    host.choose("Accept: sh greet.sh Ada");
    let goal = host.choose("Yes, that is the goal");
    assert!(
        goal["title"].as_str().unwrap().contains("clarity: "),
        "{goal:#}"
    );
    let spec = host.type_text("whatever was typed here");
    let read = rig.machine.document("deep-interview", id, "spec.md");
    assert_eq!(spec["prefill"], read.as_str());
    let decision = host.choose("Approve");
    let snapshot = rig.snapshot("deep-interview", id);
    let hash = snapshot["pendingDecision"]["sha256"]
        .as_str()
        .unwrap()
        .to_owned();
    let title = decision["title"].as_str().unwrap();
    assert!(
        title.contains(&hash) && title.contains("on yes: the spec becomes final"),
        "{decision:#}"
    );
    host.reported("is approved");
    check_recorded(&rig, id, &hash);
    host.end();
    rig.machine.env.await_no_process();
}

/// Has a spec drafted before its goal was confirmed.
fn drafted_early(host: &mut Host, agent: &str) {
    host.command(&format!(
        "/kapi-deep-interview greet people by name --agent {agent}"
    ));
    for _ in 0..3 {
        host.choose("Accept: ");
    }
    host.choose("Enough");
}

#[test]
fn what_waits_is_changed_instead_of_its_risks_being_accepted() {
    const AGENT: &str = include_str!("../fixtures/workflows/agent.yaml");
    const DRAFT: &str = "    - steps: [{answer: *draft}]\n";
    // Once something has changed the goal is said back again.
    const RESTATE: &str = "    - steps: [{answer: {clarity: {goal: 950, constraints: 900, success: \
         950, context: 900}, next: {do: restate, goal: greet.sh greets whoever is named.}}}]\n";
    let rig = PiRig::new();
    let text = AGENT.replace(DRAFT, &[RESTATE, DRAFT].concat());
    assert_ne!(text, AGENT);
    let agent = rig.machine.env.script("restating.yaml", &text);
    let mut host = rig.host();
    drafted_early(&mut host, &agent);
    host.type_text("");
    let decision = host.choose("Approve");
    let title = decision["title"].as_str().unwrap();
    assert!(
        title.contains("\nrisk: the restated goal was not confirmed"),
        "{decision:#}"
    );
    let risks = host.confirm(false);
    let message = risks["message"].as_str().unwrap();
    assert!(message.starts_with("1. the restated goal"), "{risks:#}");
    let waits = rig.snapshot("deep-interview", INTERVIEW);
    assert_ne!(waits["pendingDecision"], Value::Null, "{waits:#}");
    // Esc in the second dialog leads back to the decision.
    host.choose("Request changes");
    host.escape("editor");
    host.choose("Request changes");
    host.type_text("say what the manual is for");
    host.choose("Yes, that is the goal");
    host.escape("editor");
    host.reported("Review it with /kapi-deep-interview approve 001");
    let view = rig.machine.env.json(&["status", "1"]);
    let revision = &view["revisions"][0]["text"];
    assert_eq!(revision, "say what the manual is for", "{view:#}");
    host.end();
}

#[test]
fn risks_are_accepted_with_the_approval() {
    let rig = PiRig::new();
    let mut host = rig.host();
    drafted_early(&mut host, &rig.machine.agent);
    host.type_text("");
    host.choose("Approve");
    host.confirm(true);
    host.reported("is approved");
    let view = rig.machine.env.json(&["status", "1"]);
    let accepted = view["approvals"][0]["accepted"].to_string();
    assert!(accepted.contains("was not confirmed"), "{view:#}");
    host.end();
}

#[test]
fn what_is_typed_needs_no_syntax() {
    let rig = PiRig::new();
    let agent = format!("[goal]\nagent = {:?}\n", rig.machine.agent);
    rig.machine.env.configure(&agent);
    let mut host = rig.host();
    let mut count = 0;
    for (typed, purpose) in [
        (
            "don't shout at \"anybody\" --no-drive",
            "don't shout at \"anybody\"",
        ),
        (
            "\"status page of --every shop\" --no-drive",
            "status page of --every shop",
        ),
        (
            "two lines,\nthe second  one   --no-drive",
            "two lines,\nthe second  one",
        ),
        ("'a quote' and more --no-drive", "'a quote' and more"),
    ] {
        host.command(&format!("/kapi-deep-interview {typed}"));
        host.reported("(deep-interview): interview/asking");
        count += 1;
        let view = rig.machine.env.json(&["status", &count.to_string()]);
        assert_eq!(view["purpose"], purpose, "{typed:?}");
    }
    // What is wrong is said as on the command line, with what to type here.
    for (typed, reported) in [
        ("resume of the shop", "/kapi-deep-interview"),
        ("resume 77", "unknown_workflow"),
        ("approve 1", "has nothing to approve"),
        (
            "a purpose --agent \"half",
            "a quote \" is opened and not closed",
        ),
        ("a purpose --no-such-option", "--no-such-option"),
        ("status", "004-"),
    ] {
        host.command(&format!("/kapi-deep-interview {typed}"));
        host.reported(reported);
    }
    // Without words an editor opens, and Esc starts nothing.
    host.command("/kapi-deep-interview");
    host.escape("editor");
    host.reported("Nothing was started");
    // Without a name it is asked which one.
    host.command("/kapi-deep-interview resume");
    let rows = host.escape("select");
    assert_eq!(rows["options"].as_array().unwrap().len(), 4, "{rows:#}");
    host.end();
}

#[test]
fn the_end_of_a_session_leaves_a_workflow_where_it_stands() {
    let rig = PiRig::new();
    let Machine {
        agent, reviewer, ..
    } = &rig.machine;
    let mut host = rig.host();
    host.command(&format!(
        "/kapi-ralph greet people by name --unlinked --agent {agent} --reviewer {reviewer} \
         --judge none --approve-plan auto"
    ));
    host.wait("work on a task", &|line| {
        let text = line["statusText"].as_str().unwrap_or_default();
        line["method"] == "setStatus" && text.contains("working on T-00")
    });
    host.end();
    rig.machine.env.await_no_process();
    let env = &rig.machine.env;
    let view = env.json(&["status", "1"]);
    assert_eq!(
        (&view["status"], &view["phase"]),
        (&json!("active"), &json!("run")),
        "{view:#}"
    );
    assert_eq!(env.kapi(&["audit"]).code, 0);
    // It goes on from anywhere, in another Pi too.
    let mut host = rig.host();
    host.command("/kapi-ralph resume 1");
    host.reported("(ralph): completed");
    host.end();
    env.await_no_process();
}

#[test]
fn a_missing_or_old_binary_is_said_plainly() {
    let rig = PiRig::new();
    let old = rig.machine.env.root().join("old-kapi");
    write(
        &old,
        "#!/bin/sh\necho \"error: unrecognized subcommand '__session'\" >&2\nexit 2\n",
    );
    fs::set_permissions(&old, fs::Permissions::from_mode(0o755)).unwrap();
    let check = |vars: &[(&str, &str)], command: &str, text: &str| {
        let options = Options {
            vars,
            ..rig.options()
        };
        let mut host = Host::start(&rig.machine.env, &options);
        host.command(command);
        host.reported(text);
        host.prompt("hello");
        host.end();
    };
    check(
        &[("KAPI_BIN", "")],
        "/kapi-status",
        "kapi is not installed here: put it on PATH, or set KAPI_BIN",
    );
    check(
        &[("KAPI_BIN", "/nowhere/kapi")],
        "/kapi-status",
        "KAPI_BIN is /nowhere/kapi",
    );
    let old = old.to_str().unwrap();
    check(
        &[("KAPI_BIN", old)],
        "/kapi-ralph greet people",
        "is too old for this package",
    );
}
