//! A turn with an agent whose messages are written out here.

use serde_json::{Value, json};

use super::{Conversation, Reaction};
use crate::acp::turn::{AcpAccess, AcpTurn};

fn turn() -> AcpTurn {
    AcpTurn {
        command: "agent".to_owned(),
        prompt: "Fix it.".to_owned(),
        session: None,
        workspace: "/workspace".to_owned(),
        tools: None,
        gate: None,
        access: AcpAccess::Work,
    }
}

fn take(conversation: &mut Conversation, message: &Value) -> Reaction {
    conversation.take(message, &mut |_| Ok(()))
}

fn initialized(load: bool) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "result": {
        "protocolVersion": 1, "agentCapabilities": {"loadSession": load}}})
}

/// Leads a turn to where the agent works.
fn at_work(turn: AcpTurn) -> Conversation {
    let mut conversation = Conversation::new(turn);
    assert_eq!(conversation.begin()["method"], "initialize");
    let opened = take(&mut conversation, &initialized(true));
    assert_eq!(opened.send[0]["id"], 2);
    let answer = json!({"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "s-1"}});
    let prompted = take(&mut conversation, &answer);
    assert_eq!(prompted.send[0]["method"], "session/prompt");
    conversation
}

fn permission(kind: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": "p", "method": "session/request_permission", "params": {
    "sessionId": "s-1",
    "toolCall": {"toolCallId": "c", "title": "git push", "kind": kind},
    "options": [
        {"optionId": "always", "name": "", "kind": "allow_always"},
        {"optionId": "once", "name": "", "kind": "allow_once"},
        {"optionId": "no", "name": "", "kind": "reject_once"},
    ]}})
}

#[test]
fn a_turn_is_opened_asked_and_over() {
    let mut conversation = at_work(turn());
    let update = json!({"jsonrpc": "2.0", "method": "session/update", "params": {
        "sessionId": "s-1", "update": {"sessionUpdate": "agent_message_chunk",
            "content": {"type": "text", "text": "Hello"}}}});
    assert_eq!(take(&mut conversation, &update).print, [update]);
    let cancel = conversation.cancel().unwrap();
    assert_eq!(cancel["params"]["sessionId"], "s-1");
    let end = json!({"jsonrpc": "2.0", "id": 3, "result": {"stopReason": "end_turn"}});
    let ended = take(&mut conversation, &end);
    assert_eq!((ended.over, ended.print), (Some(Ok(())), vec![end]));
    assert_eq!(conversation.cancel(), None);
}

#[test]
fn a_session_is_loaded_where_that_is_offered_and_its_past_is_not_told_again() {
    let resumed = AcpTurn {
        session: Some("old".to_owned()),
        ..turn()
    };
    let mut conversation = Conversation::new(resumed.clone());
    let opened = take(&mut conversation, &initialized(true));
    assert_eq!(opened.send[0]["method"], "session/load");
    assert_eq!(opened.send[0]["params"]["sessionId"], "old");
    let past = json!({"jsonrpc": "2.0", "method": "session/update", "params": {"update": {
        "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Past"}}}});
    assert_eq!(take(&mut conversation, &past), Reaction::default());
    let answer = json!({"jsonrpc": "2.0", "id": 2, "result": null});
    let prompted = take(&mut conversation, &answer);
    assert_eq!(prompted.send[1]["params"]["sessionId"], "old");
    assert_eq!(prompted.print[0]["session"], "old");
    // Some repeat it after they have answered: until they refuse what no agent can.
    assert_eq!(take(&mut conversation, &past), Reaction::default());
    let refused =
        json!({"jsonrpc": "2.0", "id": prompted.send[0]["id"], "error": {"code": -32601}});
    assert_eq!(take(&mut conversation, &refused), Reaction::default());
    assert_eq!(
        take(&mut conversation, &past).print,
        std::slice::from_ref(&past)
    );
    // Whoever never refuses loses nothing of what it said.
    let mut conversation = Conversation::new(resumed.clone());
    take(&mut conversation, &initialized(true));
    take(&mut conversation, &answer);
    take(&mut conversation, &past);
    let end = json!({"jsonrpc": "2.0", "id": 3, "result": {"stopReason": "end_turn"}});
    assert_eq!(take(&mut conversation, &end).print, [past, end]);
    // Where it is not offered, a new one is begun, and is not promised to anybody.
    let mut conversation = Conversation::new(resumed.clone());
    let opened = take(&mut conversation, &initialized(false));
    assert_eq!(opened.send[0]["method"], "session/new");
    let answer = json!({"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "new"}});
    assert_eq!(take(&mut conversation, &answer).print, Vec::<Value>::new());
    // One that is gone is told in the words by which a new one is begun.
    let mut conversation = Conversation::new(resumed);
    take(&mut conversation, &initialized(true));
    let gone = json!({"jsonrpc": "2.0", "id": 2, "error": {"code": -32603, "message": "no"}});
    let why = take(&mut conversation, &gone).over.unwrap().unwrap_err();
    assert!(why.contains("No session found matching old"), "{why}");
}

#[test]
fn what_asks_for_permission_gets_it_once_or_not() {
    let outcome = |reaction: &Reaction| reaction.send[0]["result"]["outcome"].clone();
    let mut conversation = at_work(turn());
    let asked = permission("execute");
    let allowed = take(&mut conversation, &asked);
    assert_eq!(
        outcome(&allowed),
        json!({"outcome": "selected", "optionId": "once"})
    );
    assert_eq!(allowed.print, std::slice::from_ref(&asked));
    let mut seen = Value::Null;
    let denied = conversation.take(&asked, &mut |call| {
        seen = call.clone();
        Err("it is not allowed".to_owned())
    });
    assert_eq!(seen["title"], "git push");
    assert_eq!(
        outcome(&denied),
        json!({"outcome": "selected", "optionId": "no"})
    );
    assert_eq!(denied.print[1]["reason"], "it is not allowed");
    // Without an option that fits, the answer is no.
    let mut bare = asked;
    bare["params"]["options"] = json!([{"optionId": "x", "kind": "reject_once"}]);
    let nothing = take(&mut conversation, &bare);
    assert_eq!(outcome(&nothing), json!({"outcome": "cancelled"}));
}

#[test]
fn a_judge_only_looks() {
    let mut conversation = at_work(AcpTurn {
        access: AcpAccess::Look,
        ..turn()
    });
    for (kind, option) in [("execute", "no"), ("edit", "no"), ("read", "once")] {
        let answer = take(&mut conversation, &permission(kind));
        assert_eq!(
            answer.send[0]["result"]["outcome"]["optionId"], option,
            "{kind}"
        );
    }
}

#[test]
fn what_cannot_be_spoken_with_is_left_with_a_reason() {
    let mut conversation = Conversation::new(turn());
    let other = json!({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": 2}});
    let why = take(&mut conversation, &other).over.unwrap().unwrap_err();
    assert!(why.contains("version 2"), "{why}");
    let mut conversation = Conversation::new(turn());
    take(&mut conversation, &initialized(true));
    let refused = json!({"jsonrpc": "2.0", "id": 2, "error": {
        "code": -32000, "message": "Authentication required"}});
    let why = take(&mut conversation, &refused).over.unwrap().unwrap_err();
    assert!(why.contains("Authentication required"), "{why}");
}

#[test]
fn what_is_not_offered_or_means_nothing_disturbs_no_turn() {
    let mut conversation = at_work(turn());
    let read = json!({"jsonrpc": "2.0", "id": 9, "method": "fs/read_text_file", "params": {}});
    assert_eq!(
        take(&mut conversation, &read).send[0]["error"]["code"],
        -32601
    );
    for nothing in [
        json!({}),
        json!([1]),
        json!({"jsonrpc": "2.0", "id": 7, "result": {}}),
        json!({"jsonrpc": "2.0", "method": "_vendor/notice"}),
    ] {
        assert_eq!(take(&mut conversation, &nothing), Reaction::default());
    }
}
