//! The original's form: its checks, its order, its words.

use super::{PolicyRequest, RequestKind, decide, loop_run, said, task};

const ALL: &str = r#"
backgroundTask:
  allowedAgents: [Oracle, " prometheus "]
  deniedAgents: [SISYPHUS]
  deniedTools: [bash, Task]
  maxPromptChars: 10
  deniedPatterns: ["Login", "drop table", "the"]
  requireTriggerSource: true
loopTrigger:
  requireTriggerSource: true
"#;

#[test]
fn every_check_in_its_order() {
    let request = PolicyRequest {
        agent: Some(" Sisyphus ".to_owned()),
        tools: Some(vec![
            "Read".to_owned(),
            " Bash".to_owned(),
            "TASK".to_owned(),
        ]),
        prompt: "Fix the LOGIN 😀".to_owned(),
        ..task()
    };
    assert_eq!(
        said(&decide(&[ALL], &request)),
        [
            "agent not allowed: sisyphus",
            "agent denied: sisyphus",
            "tool denied: bash",
            "tool denied: task",
            "prompt too long: 16 > 10",
            "prompt matched denied pattern: Login",
            "prompt matched denied pattern: the",
        ]
    );
    let violation = &decide(&[ALL], &request).violations[0];
    assert_eq!(
        violation.to_string(),
        "agent not allowed: sisyphus (backgroundTask, policy.yaml, line 2)"
    );
}

#[test]
fn what_is_in_order_passes() {
    let request = PolicyRequest {
        agent: Some("ORACLE".to_owned()),
        tools: Some(vec!["Read".to_owned()]),
        prompt: "0123456789".to_owned(),
        ..task()
    };
    assert!(decide(&[ALL], &request).allowed);
    // Without an agent there is none to allow or deny, and without a rule all is allowed.
    let nobody = PolicyRequest {
        agent: None,
        ..request
    };
    assert!(decide(&[ALL], &nobody).allowed);
    let rule = "backgroundTask: {allowedAgents: [], deniedPatterns: []}";
    assert!(decide(&[rule], &task()).allowed);
    assert!(decide(&[], &task()).allowed);
    assert!(decide(&["loopTrigger: {deniedAgents: [sisyphus]}"], &task()).allowed);
}

#[test]
fn a_loop_says_what_set_it_off() {
    let required = ["trigger source required by policy"];
    for source in [None, Some(""), Some("  ")] {
        let request = PolicyRequest {
            trigger_source: source.map(ToOwned::to_owned),
            ..loop_run()
        };
        assert_eq!(said(&decide(&[ALL], &request)), required, "{source:?}");
    }
    let request = PolicyRequest {
        trigger_source: Some("cron".to_owned()),
        ..loop_run()
    };
    assert!(decide(&[ALL], &request).allowed);
    let only_tasks = "backgroundTask: {requireTriggerSource: true}";
    assert!(decide(&[only_tasks], &task()).allowed);
    assert_eq!(task().kind, RequestKind::Task);
}
