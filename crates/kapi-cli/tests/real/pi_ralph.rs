//! Ralph, driven by Pi beside the work of its person.

use serde_json::json;

use crate::pi_host::PiVersion;
use crate::pi_package::{PiRig, system};
use crate::workflow_support::Machine;

#[test]
fn ralph_is_driven_beside_the_persons_work_to_its_completion() {
    ralph(PiVersion::Pinned);
}

pub(crate) fn ralph(version: PiVersion) {
    const BUILD: &str = "002-greet-people-name";
    let rig = PiRig::in_pi(version);
    assert_eq!(rig.machine.drafted().code, 5);
    let approve = ["deep-interview", "approve", "1", "--yes", "--accept-risks"];
    assert_eq!(rig.machine.env.kapi(&approve).code, 0);
    let Machine {
        agent, reviewer, ..
    } = &rig.machine;
    let mut host = rig.host();
    host.command(&format!(
        "/kapi-ralph \"greet people by name\" --agent {agent} --reviewer {reviewer} --judge none"
    ));
    let rows = host.choose("1. interview 001-greet-people-name");
    let rows = rows["options"].as_array().unwrap();
    assert_eq!(
        rows.last().unwrap().as_str().unwrap().split(' ').next(),
        Some("0.")
    );
    let reported = host.reported("plan.md, hash");
    assert!(reported.contains("/kapi-ralph approve 002"), "{reported}");
    let widget = host.widget();
    assert!((1..=3).contains(&widget.len()), "{widget:?}");
    assert!(
        widget[0].ends_with("plan.md is waiting for your approval"),
        "{widget:?}"
    );

    // What should change is said in conversation, and the plan is made anew meanwhile.
    host.send(&json!({ "type": "prompt", "message": "name the manual GUIDE" }));
    host.confirm(true);
    host.wait("the end", &|line| line["type"] == "agent_end");
    host.reported("plan.md, hash");
    let view = rig.machine.env.json(&["status", "2"]);
    assert_eq!(
        view["revisions"][0]["text"], "name the manual GUIDE",
        "{view:#}"
    );
    assert_eq!(view["ralph"]["cycle"], 2, "{view:#}");

    host.command("/kapi-ralph approve 2");
    let shown = host.type_text("");
    let plan = rig.machine.document("ralph", BUILD, "plan.md");
    assert_eq!(shown["prefill"], plan.as_str());
    host.choose("Approve and continue");
    // The person works on while it is built.
    host.prompt("hello");
    let reported = host.reported("002-greet-people-name (ralph): completed");
    assert!(
        reported.contains("git merge feat/ralph-greet-people-name"),
        "{reported}"
    );
    assert!(host.widget().is_empty(), "{:?}", host.widget());
    host.prompt("hello again");
    let ordinary = rig.last_request();
    assert!(!ordinary.tools.iter().any(|tool| tool.starts_with("kapi")));
    assert!(!system(&ordinary).contains(BUILD));
    host.end();
    rig.machine.env.await_no_process();
}
