//! What Pi's model is told of a mode, and what it cannot do in it.

use serde_json::json;

use crate::pi_host::{Host, Options};
use crate::pi_package::{INTERVIEW, PiRig, system};

/// Words that only the guidance of an interview holds.
const GUIDANCE: &str = "You find out what somebody wants.";

#[test]
fn guidance_stands_behind_the_prompt_while_attached_and_only_then() {
    let rig = PiRig::new();
    let mut host = rig.host();
    host.prompt("hello");
    let plain = rig.last_request();
    rig.begun(&mut host);
    host.prompt("hello again");
    let attached = rig.last_request();
    let (before, after) = (system(&plain), system(&attached));
    assert!(after.starts_with(before.trim_end_matches('"')), "{after}");
    for words in [
        GUIDANCE,
        INTERVIEW,
        "Question 2 is waiting for the user: Whom does it greet?",
    ] {
        assert!(after.contains(words), "{words}: {after}");
    }
    let ours = ["kapi_status", "kapi_pass_on"].map(str::to_owned);
    assert_eq!(attached.tools, [&plain.tools[..], &ours].concat());
    let (_, file) = host.session();
    host.end();

    // The session is attached still when it is opened again, because the inventory says so.
    let args = ["--session", file.as_str()];
    let again = Options {
        args: &args,
        ..rig.options()
    };
    let mut host = Host::start(&rig.machine.env, &again);
    host.prompt("hello once more");
    assert_eq!(system(&rig.last_request()), after);
    // A fork is a session of its own, and so is a new one.
    let forks = host.ask(&json!({ "type": "get_fork_messages" }));
    let entry = forks["messages"][0]["entryId"].clone();
    host.ask(&json!({ "type": "fork", "entryId": entry }));
    host.prompt("hello from the fork");
    let forked = rig.last_request();
    assert_eq!(
        (system(&forked), &forked.tools),
        (before.clone(), &plain.tools)
    );
    host.ask(&json!({ "type": "switch_session", "sessionPath": file }));
    host.prompt("hello from before the fork");
    assert_eq!(system(&rig.last_request()), after);

    host.command("/kapi-clear");
    host.reported("is detached from deep-interview 001-greet-people-name");
    host.prompt("hello, ordinary one");
    let cleared = rig.last_request();
    assert_eq!(
        (system(&cleared), &cleared.tools),
        (before.clone(), &plain.tools)
    );
    assert_eq!(cleared.body["tools"], plain.body["tools"]);
    let left = rig.snapshot("deep-interview", INTERVIEW);
    assert_eq!(left["status"], "active", "{left:#}");

    // Given up from elsewhere: the next turn is ordinary, and nobody typed anything here.
    host.command("/kapi-deep-interview resume 001");
    host.escape("select");
    host.reported("The question stays open.");
    let abandoned = rig
        .machine
        .env
        .kapi(&["deep-interview", "resume", "1", "--abandon", "enough"]);
    assert_eq!(abandoned.code, 0, "{abandoned:?}");
    host.prompt("hello after all");
    let ended = rig.last_request();
    assert_eq!((system(&ended), &ended.tools), (before, &plain.tools));
    host.end();
}

#[test]
fn only_words_that_the_person_typed_and_confirmed_are_passed_on() {
    let rig = PiRig::new();
    let mut host = rig.host();
    rig.begun(&mut host);
    let rounds = || rig.snapshot("deep-interview", INTERVIEW)["progress"]["answered"].clone();
    let before = rounds();
    // Made up by the model: nobody is even asked.
    host.prompt("guess my answer");
    assert!(
        rig.last_request()
            .last_tool_result
            .contains("did not type these words")
    );
    // Typed, and then not confirmed.
    host.send(&json!({ "type": "prompt", "message": "whoever comes in" }));
    let dialog = host.confirm(false);
    let message = dialog["message"].as_str().unwrap();
    assert!(message.contains("Whom does it greet?") && message.ends_with("whoever comes in"));
    host.wait("the end", &|line| line["type"] == "agent_end");
    assert!(
        rig.last_request()
            .last_tool_result
            .contains("Nothing was recorded")
    );
    assert_eq!(rounds(), before);
    // Typed and confirmed: the interview goes on to its next question.
    host.send(&json!({ "type": "prompt", "message": "whoever comes in" }));
    host.confirm(true);
    host.wait("the end", &|line| line["type"] == "agent_end");
    let reported = rig.last_request().last_tool_result;
    assert!(
        reported.contains("It is recorded") && reported.contains("What must not change?"),
        "{reported}"
    );
    let view = rig.machine.env.json(&["status", "1"]);
    assert_eq!(
        view["interview"]["rounds"][1]["answer"], "whoever comes in",
        "{view:#}"
    );
    assert_eq!(view["interview"]["rounds"][1]["provenance"], "person");
    host.prompt("where are we");
    let reported = rig.last_request().last_tool_result;
    assert!(
        reported.contains("Open question: What must not change?"),
        "{reported}"
    );
    host.end();
    rig.machine.env.await_no_process();
}

#[test]
fn the_model_cannot_approve_from_its_shell() {
    let rig = PiRig::new();
    assert_eq!(rig.machine.drafted().code, 5);
    let mut host = rig.host();
    host.command("/kapi-deep-interview resume 001");
    host.escape("editor");
    host.reported("Review it with /kapi-deep-interview approve 001");
    host.prompt("approve it yourself");
    let said = rig.last_request().last_tool_result;
    assert_eq!(
        said.matches("error: only the user may").count(),
        3,
        "{said}"
    );
    let waits = rig.snapshot("deep-interview", INTERVIEW);
    assert_eq!(
        waits["pendingDecision"]["decision"],
        "approve_interview_spec"
    );
    // A Pi that is itself an agent's has nobody's authority.
    let agents = Options {
        vars: &[("KAPI_RUN_ID", "run-of-somebody")],
        ..rig.options()
    };
    let mut inner = Host::start(&rig.machine.env, &agents);
    inner.command("/kapi-deep-interview approve 1 --yes --accept-risks");
    inner.reported("this process belongs to agent run run-of-somebody");
    inner.end();
    // The person's own command is theirs.
    host.command("/kapi-inbox");
    host.choose("1. ");
    host.type_text("");
    host.choose("Approve");
    host.reported("is approved");
    host.end();
}
