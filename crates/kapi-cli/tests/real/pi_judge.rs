//! A model of Pi's own registry judges the goal of a session: Pi asks it with its key, beside the
//! conversation, and Kapi reads the verdict. Kapi itself knows no provider here and has no key.

use kapi_testkit::model_server::fault::{FaultKind, FaultTarget, InjectedFault, Times};
use kapi_testkit::model_server::record::{KeyFingerprint, RecordedRequest};
use kapi_testkit::model_server::scenario::{AssistantTurn, ModelScenario, Route};
use serde_json::{Value, json};

use crate::environment::{TASK, await_some};
use crate::machine::{JUDGE_MARK, JUDGE_REFUSED};
use crate::pi_goal_rig::{GoalRig, complete, done, drafting_by, says, scenario, verdict, working};
use crate::pi_host::{OTHER_KEY, OWN_KEY, PiVersion};

/// A draft that names the model of the other provider.
fn named() -> Route {
    drafting_by(&json!({"judgeModel": {"provider": "other", "modelId": "judge"}}))
}

/// A machine on which only Pi can ask models.
fn rig(scenario: ModelScenario, version: PiVersion) -> GoalRig {
    let rig = GoalRig::new(scenario).in_pi(version);
    rig.env.configure("");
    rig
}

fn judged(rig: &GoalRig) -> Vec<RecordedRequest> {
    let mut asked = rig.asked();
    asked.retain(|request| request.body.to_string().contains(JUDGE_MARK));
    asked
}

/// Checks who was asked for the verdicts, with which key, and that it is told of nothing but the work.
fn check_asked(rig: &GoalRig, model: &str, key: &str, n: usize) {
    let judged = judged(rig);
    assert_eq!(judged.len(), n, "{judged:#?}");
    for request in &judged {
        assert_eq!(request.model, model);
        assert_eq!(request.key_fingerprint, Some(KeyFingerprint::of(key)));
        assert_eq!(request.tools, Vec::<String>::new());
        let body = request.body.to_string();
        assert!(body.contains("answer.txt"), "the change is shown: {body}");
        assert!(
            !body.contains("It is drafted."),
            "and not the conversation: {body}"
        );
    }
}

#[test]
fn a_model_of_pi_s_registry_refuses_and_is_asked_again_after_the_next_turn() {
    refuses_once(PiVersion::Pinned);
}

pub(crate) fn refuses_once(version: PiVersion) {
    let explains = vec![
        AssistantTurn::bash("echo why > reason.txt"),
        complete(),
        says("Now it is explained, too."),
    ];
    let routes = vec![
        named(),
        working(done()),
        Route::new(JUDGE_REFUSED, explains),
    ];
    let verdicts = vec![
        verdict("continue", "the reason is not written down"),
        verdict("done", "now it is"),
    ];
    let rig = rig(scenario(routes, verdicts), version);
    let mut host = rig.begun();
    host.reported("is done");
    let goal = rig.goal();
    assert_eq!(goal["status"], "done", "{goal:#}");
    assert_eq!(rig.verdicts(), ["judge_continue"]);
    check_asked(&rig, "judge", OTHER_KEY, 2);
    let events = rig.env.events(crate::environment::FIRST);
    let mut judgements = events.iter().filter(|event| event["type"] == "judge_ended");
    let first = judgements.next().unwrap();
    assert_eq!(first["data"]["run"]["by"], "other/judge", "{first:#}");
    assert_ne!(
        first["data"]["run"]["usage"]["input_tokens"], 0,
        "{first:#}"
    );
    host.end();
    rig.env.await_no_process();
}

#[test]
fn the_person_names_one_for_new_goals_and_a_name_that_nobody_has_is_refused() {
    let routes = vec![drafting_by(&json!({})), working(done())];
    let rig = rig(
        scenario(routes, vec![verdict("done", "it says 42")]),
        PiVersion::Pinned,
    );
    let mut host = rig.host();
    host.command("/until-done judge nobody/at-all");
    let refused = host.reported("unknown judge provider");
    assert!(refused.contains("other/judge"), "{refused}");
    host.command("/until-done judge other/judge");
    host.reported("Judge of new goals here: other/judge.");
    host.command(&format!("/until-done {TASK}"));
    let shown = host.confirm(true);
    assert!(shown["message"].as_str().unwrap().contains("other/judge"));
    host.reported("is done");
    check_asked(&rig, "judge", OTHER_KEY, 1);
    host.end();
}

#[test]
fn the_same_model_judges_in_a_conversation_of_its_own() {
    let routes = vec![
        drafting_by(&json!({"sameModelJudge": true})),
        working(done()),
    ];
    let rig = rig(
        scenario(routes, vec![verdict("done", "it says 42")]),
        PiVersion::Pinned,
    );
    let mut host = rig.begun();
    host.reported("is done");
    check_asked(&rig, "scripted", OWN_KEY, 1);
    host.end();
}

#[test]
fn without_a_verdict_of_the_judge_the_goal_is_not_done() {
    let cases: [(Vec<Value>, Option<FaultKind>); 3] = [
        (vec![json!("It looks fine, done.")], None),
        // Right but for the token of the question, which a text in the checkout cannot know.
        (
            vec![json!({"verdict": "done", "reason": "x", "token": "guessed"})],
            None,
        ),
        (
            vec![verdict("done", "it says 42")],
            Some(FaultKind::Status {
                code: 401,
                retry_after_s: None,
            }),
        ),
    ];
    for (verdicts, fault) in cases {
        let mut scenario = scenario(vec![named(), working(done())], verdicts.clone());
        let fault = fault.map(|kind| InjectedFault::new(FaultTarget::Judge, Times::Always, kind));
        scenario.faults.extend(fault);
        let rig = rig(scenario, PiVersion::Pinned);
        let mut host = rig.begun();
        host.reported("no verdict from the judge");
        let goal = rig.goal();
        assert_eq!(goal["status"], "blocked", "{verdicts:?}: {goal:#}");
        assert_eq!(goal["commit"], Value::Null, "{goal:#}");
        host.end();
    }
}

#[test]
fn a_pause_withdraws_the_question_and_the_judge_is_asked_anew() {
    let mut scenario = scenario(
        vec![named(), working(done())],
        vec![verdict("done", "it says 42")],
    );
    scenario.faults = vec![InjectedFault::new(
        FaultTarget::Judge,
        Times::First(1),
        FaultKind::Hang,
    )];
    let rig = rig(scenario, PiVersion::Pinned);
    let mut host = rig.begun();
    await_some("the question", || (!judged(&rig).is_empty()).then_some(()));
    host.command("/until-done pause");
    host.reported("is paused");
    host.command("/until-done resume");
    host.reported("is done");
    check_asked(&rig, "judge", OTHER_KEY, 2);
    host.end();
    rig.env.await_no_process();
}
