//! Files that are wrong: what is said of them, and that they deny everything.

use kapi_settings::fault::SettingsFault;
use proptest::prelude::{any, proptest};

use super::{loop_run, source, task};
use crate::rules::policy::{Policy, PolicySource, evaluate};

/// What is wrong, and that it denies everything.
fn faults(text: &str) -> Vec<(String, String, String)> {
    let source = source(text);
    assert_ne!(source.faults, [], "{text}");
    let reported = source.faults.iter().map(|fault| {
        (
            fault.key.clone().unwrap_or_default(),
            fault.what.clone(),
            fault.remedy.clone(),
        )
    });
    let reported = reported.collect();
    let policy = Policy {
        sources: vec![source],
    };
    for request in [task(), loop_run()] {
        let decision = evaluate(&policy, &request);
        assert!(!decision.allowed, "{text}");
        assert_eq!(decision.reason.as_deref(), Some("policy denied request"));
    }
    reported
}

/// What is written, the key that is wrong, why, and what to do.
const WRONG: &[(&str, &str, &str, &str)] = &[
    ("rulse: []", "rulse", "unknown key", "did you mean `rules`?"),
    (
        "[a]",
        "",
        "it must be a table of settings, not a list",
        "fix the YAML",
    ),
    (
        "default: maybe",
        "default",
        "unknown value \"maybe\"",
        "use deny, allow",
    ),
    ("rules: []", "rules", "it has 0 entries", "give 1 to 256"),
    (
        "rules: deny",
        "rules",
        "it is text",
        "give a table of settings",
    ),
    (
        "rules: [{when: {}}]",
        "rules[0]",
        "it has no `effect`",
        "add `effect`",
    ),
    (
        "rules: [{effect: denny}]",
        "rules[0].effect",
        "unknown value \"denny\"",
        "did you mean `deny`?",
    ),
    (
        "rules: [{effect: deny, wenn: {}}]",
        "rules[0].wenn",
        "unknown key",
        "did you mean `rules[0].when`?",
    ),
    (
        "rules: [{effect: deny, when: {agents: x}}]",
        "rules[0].when.agents",
        "unknown key",
        "did you mean `rules[0].when.agent`?",
    ),
    (
        "rules: [{effect: deny, when: {agent: [1]}}]",
        "rules[0].when.agent[0]",
        "it is a whole number",
        "give text (in quotes if it looks like a number)",
    ),
    (
        "rules: [{effect: deny, when: {agent: []}}]",
        "rules[0].when.agent",
        "it has 0 entries",
        "give 1 to 128",
    ),
    (
        "rules: [{effect: deny, when: {agent: \" \"}}]",
        "rules[0].when.agent",
        "it is empty",
        "give a short text, or remove the key",
    ),
    (
        "rules: [{effect: deny, when: {kind: goal}}]",
        "rules[0].when.kind",
        "unknown value \"goal\"",
        "use task, loop",
    ),
    (
        "rules: [{effect: deny, when: {hours: \"9-17\", zone: UTC}}]",
        "rules[0].when.hours",
        "\"9-17\" is not a time window",
        "write it as \"22:00-06:00\"",
    ),
    (
        "rules: [{effect: deny, when: {days: mon}}]",
        "rules[0].when",
        "a time needs its zone",
        "add `zone: Europe/Berlin` with your own, `zone: local` or `zone: UTC`",
    ),
    (
        "rules: [{effect: deny, when: {budget_over: {usd: 0.0000001}}}]",
        "rules[0].when.budget_over.usd",
        "\"0.0000001\" is not an amount of money",
        "give US dollars such as 5 or 0.25, with at most six decimals",
    ),
    (
        "rules: [{effect: deny, when: {budget_over: {}}}]",
        "rules[0].when.budget_over",
        "no limit is named",
        "add tokens, usd or seconds",
    ),
    (
        "rules: [{effect: deny, when: {prompt_chars_over: -1}}]",
        "rules[0].when.prompt_chars_over",
        "-1 is out of range",
        "give a whole number from 1 to 1000000000000",
    ),
    (
        "rules: [{effect: deny, when: {unattended: \"yes\"}}]",
        "rules[0].when.unattended",
        "it is text",
        "give true or false",
    ),
    (
        "rules: [{effect: deny, when: {network: opne}}]",
        "rules[0].when.network",
        "\"opne\" is neither a host nor none, filtered or open",
        "write a host like example.com or *.example.com, without a port",
    ),
    (
        "rules: [{effect: deny, when: {network: none}}]",
        "rules[0].effect",
        "denying `network: none` denies every run",
        "write filtered or open, or remove `network`",
    ),
    (
        "rules: [{effect: deny, when: {path: ../x}}]",
        "rules[0].when.path",
        "\"../x\" points outside the project",
        "write it relative to the project, without `..`",
    ),
    (
        "rules: [{effect: deny, when: {path: a, command: b}}]",
        "rules[0].when.path",
        "a rule can have only one of command, path and network",
        "write a separate rule for each",
    ),
    (
        "rules: [{effect: allow, when: {command: make}}]",
        "rules[0].effect",
        "commands, paths and hosts can only be denied, not allowed",
        "use deny, or give a network level",
    ),
    (
        "rules: [{effect: ask, when: {agent: x}}]",
        "rules[0].effect",
        "only commands can ask for approval",
        "add `command:` under `when`, or write deny",
    ),
    (
        "{default: allow, rules: [{effect: allow}]}",
        "default",
        "once a rule allows something, everything that no rule allows is denied",
        "remove `default`, or set it to deny",
    ),
    (
        "rules: [{name: a, effect: deny}, {name: a, effect: deny}]",
        "rules[1]",
        "the rule of line 1 has the same name",
        "give each rule a unique name",
    ),
    (
        "backgroundTask: {maxPromptChars: 0}",
        "backgroundTask.maxPromptChars",
        "0 is out of range",
        "give a whole number from 1 to 1000000000000",
    ),
    (
        "backgroundTask: {deniedAgent: x}",
        "backgroundTask.deniedAgent",
        "unknown key",
        "did you mean `backgroundTask.deniedAgents`?",
    ),
    (
        "loopTrigger: {requireTriggerSource: 1}",
        "loopTrigger.requireTriggerSource",
        "it is a whole number",
        "give true or false",
    ),
];

#[test]
fn what_is_wrong_and_what_to_do() {
    for (text, key, what, remedy) in WRONG {
        let reported = faults(text);
        let (key, what, remedy) = ((*key).to_owned(), (*what).to_owned(), (*remedy).to_owned());
        assert_eq!(reported, [(key, what, remedy)], "{text}");
    }
}

#[test]
fn every_fault_is_told_at_once() {
    let text =
        "rules: [{effect: x1}, {effect: deny}, {effect: deny, when: {}, bad: 1}]\nloopTrigger: 3\n";
    assert_eq!(faults(text).len(), 3);
}

#[test]
fn a_broken_file_denies_what_another_allows() {
    let fault = SettingsFault {
        file: ".ilchul/policy.yaml".to_owned(),
        line: 4,
        key: Some("rules[0]".to_owned()),
        what: "it is odd".to_owned(),
        remedy: "mend it".to_owned(),
    };
    assert_eq!(
        fault.to_string(),
        ".ilchul/policy.yaml:4: `rules[0]`: it is odd; mend it"
    );
    let policy = Policy {
        sources: vec![
            source("rules: [{effect: allow}]"),
            PolicySource::broken(".ilchul/policy.yaml", vec![fault]),
        ],
    };
    let decision = evaluate(&policy, &task());
    assert_eq!(
        decision
            .violations
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        [
            "the policy cannot be used: `rules[0]`: it is odd; mend it (policy file, .ilchul/policy.yaml, line 4)"
        ]
    );
}

proptest! {
    #[test]
    fn no_text_makes_reading_panic(text in r"((rules|default|effect|when|deny|allow|agent|network|hours|[-:{}\[\], \n]|\PC){0,3}){0,30}") {
        let _decision = evaluate(&Policy { sources: vec![source(&text)] }, &task());
    }

    #[test]
    fn a_wrong_value_anywhere_denies(number in any::<i64>(), at in 0..8_usize) {
        let key = ["default", "rules", "backgroundTask", "loopTrigger", "rules: [{effect", "rules: [{when", "rules: [{name", "rules: [{reason"][at];
        let close = if at > 3 { "}]" } else { "" };
        assert!(!faults(&format!("{key}: {number}{close}")).is_empty());
    }
}
