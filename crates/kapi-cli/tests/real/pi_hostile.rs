//! Texts between Pi and Kapi that a careless reader of lines loses: ends of lines that are none to JSON,
//! and halves of characters.

use kapi_testkit::model_server::scenario::{AssistantTurn, Route};
use serde_json::json;

use crate::machine::VERIFY_FAILED;
use crate::pi_goal_rig::{accepted, complete, done, says, tool, working};

#[test]
fn a_check_that_prints_other_ends_of_lines_is_passed_on_whole() {
    let rig = accepted(vec![
        working(vec![
            AssistantTurn::bash("true"),
            complete(),
            says("It is done."),
        ]),
        Route::new(VERIFY_FAILED, done()),
    ]);
    let env = &rig.env;
    env.write(
        "test.sh",
        "grep -q 42 answer.txt || { printf 'one\\342\\200\\250two\\342\\200\\251three\\n'; exit 1; }\n",
    );
    env.commit_all("a check that separates lines and paragraphs");
    let mut host = rig.begun();
    host.reported("is done");
    assert_eq!(rig.verdicts(), ["verify_failed"]);
    let asked = rig.asked();
    let told = |text: &str| asked.iter().any(|it| it.last_user.contains(text));
    assert!(told("one\u{2028}two\u{2029}three"), "{asked:#?}");
    host.end();
    env.await_no_process();
}

#[test]
fn half_a_character_does_not_silence_kapi() {
    let ask = json!({"question": "Which answer?", "reason": "there are several"});
    let rig = accepted(vec![
        working(vec![tool("block", ask), says("I have to ask.")]),
        Route::new("is that", vec![says("That is the answer.")]),
    ]);
    let mut host = rig.begun();
    host.reported("the agent is blocked");
    host.send_line(r#"{"type": "prompt", "message": "what \ud83d is that?"}"#);
    // The lines that repeat it are none that we can read.
    host.wait("the answer", &|line| {
        let text = &line["message"]["content"][0]["text"];
        line["type"] == "turn_end" && text == "That is the answer."
    });
    host.command("/until-done status");
    host.reported("001-make-answer-right blocked");
    host.end();
    rig.env.await_no_process();
}
