//! A build's state as it stands in `state.json`.

use crate::rules::modes::ralph::fixture::{Build, GIVEN, finding, findings, in_a_row, terms};
use crate::rules::modes::ralph::review::FindingCategory;
use crate::rules::modes::ralph::state::Ralph;
use crate::rules::state::Workflow;

#[test]
fn a_fresh_build_in_a_line() {
    let build = Build::start(terms());
    assert_eq!(
        serde_json::to_string(build.ralph()).unwrap(),
        r#"{"base":"base","spec":null,"phase":"thesis","cycle":1,"attempts":[],"plan":null,"baseline":null,"reopened":null,"branch":null,"tasks":{},"landed":[],"changes":[],"earlier":[],"unverified":null,"verified":null,"verifications":0,"reviews":[],"refused":{},"answers":{},"mends":0,"must_ask":false,"account":null}"#
    );
}

#[test]
fn tasks_in_every_stand_in_a_line() {
    let mut build = Build::run(terms(), &in_a_row());
    build.prove("T-001", "c1");
    let tasks = || serde_json::to_string(&build.ralph().tasks).unwrap();
    let task = |id: &str, after: &str, path: &str| {
        format!(
            r#"{{"id":"{id}","title":"Title of {id}","description":"What {id} does.","depends_on":[{after}],"touches":["{path}"],"isolation":"own","verify":["sh {id}.sh"],"criteria":["AC-1"]}}"#
        )
    };
    let one = task("T-001", "", "src/a/**");
    let two = task("T-002", r#""T-001""#, "src/b/**");
    let at_ms = GIVEN.now_ms;
    assert_eq!(
        tasks(),
        format!(
            r#"{{"T-001":{{"task":{one},"cycle":1,"attempt":1,"base":"base","goal":"001-goal","stand":{{"stand":"proved","commit":"c1"}},"is_working":false,"drives":1,"sent_back":0,"rested_at_ms":{at_ms},"because":null,"allowance":null,"verified_with":0,"strayed":null,"may_stray":false}},"T-002":{{"task":{two},"cycle":1,"attempt":1,"base":null,"goal":null,"stand":{{"stand":"waiting"}},"is_working":false,"drives":0,"sent_back":0,"rested_at_ms":0,"because":null,"allowance":null,"verified_with":0,"strayed":null,"may_stray":false}}}}"#
        )
    );
}

#[test]
fn every_state_on_the_way_reads_back_as_written() {
    let mut build = Build::run(terms(), &in_a_row());
    let check = |workflow: &Workflow| {
        let json = serde_json::to_string(workflow).unwrap();
        assert_eq!(serde_json::from_str::<Workflow>(&json).unwrap(), *workflow);
    };
    check(&build.workflow);
    build.prove("T-001", "c1");
    build.land("T-001", "h1", true);
    check(&build.workflow);
    build.verify(&[]);
    build.prove("T-002", "c2");
    build.land("T-002", "h2", false);
    build.review(findings(vec![finding(FindingCategory::Correctness, true)]));
    check(&build.workflow);
}

#[test]
fn a_state_with_something_unknown_is_refused() {
    let build = Build::start(terms());
    let mut json = serde_json::to_value(build.ralph()).unwrap();
    assert!(serde_json::from_value::<Ralph>(json.clone()).is_ok());
    json["more"] = serde_json::Value::Bool(true);
    assert!(serde_json::from_value::<Ralph>(json).is_err());
}
