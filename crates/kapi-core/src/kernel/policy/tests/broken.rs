//! Files that are wrong: what is said of them, and that they deny everything.

use proptest::prelude::{any, proptest};

use super::{loop_run, source, task};
use crate::kernel::policy::{Policy, PolicyFault, PolicySource, evaluate, read};
use crate::kernel::value::Value;

/// What is wrong, and that it denies everything.
fn faults(text: &str) -> Vec<(String, String, String)> {
    let source = source(text);
    assert_ne!(source.faults, [], "{text}");
    let told = source
        .faults
        .iter()
        .map(|fault| (fault.key.clone(), fault.what.clone(), fault.remedy.clone()));
    let told = told.collect();
    let policy = Policy {
        sources: vec![source],
    };
    for request in [task(), loop_run()] {
        let decision = evaluate(&policy, &request);
        assert!(!decision.allowed, "{text}");
        assert_eq!(decision.reason.as_deref(), Some("policy denied request"));
    }
    told
}

/// What is written, the key that is wrong, why, and what to do.
const WRONG: &[(&str, &str, &str, &str)] = &[
    (
        "rulse: []",
        "rulse",
        "there is no key `rulse`",
        "did you mean `rules`?",
    ),
    (
        "[a]",
        "",
        "it must be a table, not a list",
        "write a table here",
    ),
    (
        "default: maybe",
        "default",
        "\"maybe\" is none of its words",
        "there are: deny, allow",
    ),
    (
        "rules: []",
        "rules",
        "the list is empty",
        "name something, or leave the key out",
    ),
    (
        "rules: deny",
        "rules",
        "it must be a list, not text",
        "write a list here",
    ),
    (
        "rules: [{when: {}}]",
        "rules.0",
        "the rule does not say what it does",
        "add `effect: deny`",
    ),
    (
        "rules: [{effect: denny}]",
        "rules.0.effect",
        "\"denny\" is none of its words",
        "did you mean `deny`?",
    ),
    (
        "rules: [{effect: deny, wenn: {}}]",
        "rules.0.wenn",
        "there is no key `wenn`",
        "did you mean `when`?",
    ),
    (
        "rules: [{effect: deny, when: {agents: x}}]",
        "rules.0.when.agents",
        "there is no key `agents`",
        "did you mean `agent`?",
    ),
    (
        "rules: [{effect: deny, when: {agent: [1]}}]",
        "rules.0.when.agent.0",
        "it must be text, not a whole number",
        "put it in quotes",
    ),
    (
        "rules: [{effect: deny, when: {agent: []}}]",
        "rules.0.when.agent",
        "the list is empty",
        "name something, or leave the key out",
    ),
    (
        "rules: [{effect: deny, when: {agent: \" \"}}]",
        "rules.0.when.agent",
        "the text is empty",
        "write something, or leave the key out",
    ),
    (
        "rules: [{effect: deny, when: {kind: goal}}]",
        "rules.0.when.kind",
        "\"goal\" is none of its words",
        "there are: task, loop",
    ),
    (
        "rules: [{effect: deny, when: {hours: \"9-17\", zone: UTC}}]",
        "rules.0.when.hours",
        "\"9-17\" is no span of a day",
        "write it as \"22:00-06:00\"",
    ),
    (
        "rules: [{effect: deny, when: {days: mon}}]",
        "rules.0.when",
        "a time needs its zone",
        "add `zone: Europe/Berlin` with your own, or `zone: UTC`",
    ),
    (
        "rules: [{effect: deny, when: {budget_over: {usd: 0.0000001}}}]",
        "rules.0.when.budget_over.usd",
        "it is no amount of dollars from 0 to 1000000 with at most six decimals",
        "write it like 2.50",
    ),
    (
        "rules: [{effect: deny, when: {budget_over: {}}}]",
        "rules.0.when.budget_over",
        "no limit is named",
        "add tokens, usd or seconds",
    ),
    (
        "rules: [{effect: deny, when: {prompt_chars_over: -1}}]",
        "rules.0.when.prompt_chars_over",
        "-1 is not from 1 to 1000000000000",
        "write a number from 1 to 1000000000000",
    ),
    (
        "rules: [{effect: deny, when: {unattended: \"yes\"}}]",
        "rules.0.when.unattended",
        "it must be true or false, not text",
        "write true or false here",
    ),
    (
        "rules: [{effect: deny, when: {network: opne}}]",
        "rules.0.when.network",
        "\"opne\" is neither a host nor none, filtered or open",
        "write a host like example.com or *.example.com, without a port",
    ),
    (
        "rules: [{effect: deny, when: {network: none}}]",
        "rules.0.effect",
        "whoever denies even no network denies every run",
        "write filtered or open, or leave `network` out",
    ),
    (
        "rules: [{effect: deny, when: {path: ../x}}]",
        "rules.0.when.path",
        "\"../x\" leads out of the project",
        "write it relative to the project, without `..`",
    ),
    (
        "rules: [{effect: deny, when: {path: a, command: b}}]",
        "rules.0.when.path",
        "a rule speaks of one of command, path and network",
        "write a rule of its own for each",
    ),
    (
        "rules: [{effect: allow, when: {command: make}}]",
        "rules.0.effect",
        "commands, paths and hosts can be denied, but not be the only ones allowed",
        "deny what should not be, or name the level of network",
    ),
    (
        "rules: [{effect: ask, when: {agent: x}}]",
        "rules.0.effect",
        "a person can be asked about commands only",
        "add `command:` under `when`, or write deny",
    ),
    (
        "{default: allow, rules: [{effect: allow}]}",
        "default",
        "what no rule allows is denied as soon as one rule allows something",
        "leave `default` out, or write deny",
    ),
    (
        "rules: [{name: a, effect: deny}, {name: a, effect: deny}]",
        "rules.1",
        "the rule of line 3 has the same name",
        "give each rule a name of its own",
    ),
    (
        "backgroundTask: {maxPromptChars: 0}",
        "backgroundTask.maxPromptChars",
        "0 is not from 1 to 1000000000000",
        "write a number from 1 to 1000000000000",
    ),
    (
        "backgroundTask: {deniedAgent: x}",
        "backgroundTask.deniedAgent",
        "there is no key `deniedAgent`",
        "did you mean `deniedAgents`?",
    ),
    (
        "loopTrigger: {requireTriggerSource: 1}",
        "loopTrigger.requireTriggerSource",
        "it must be true or false, not a whole number",
        "write true or false here",
    ),
];

#[test]
fn what_is_wrong_and_what_to_do() {
    for (text, key, what, remedy) in WRONG {
        let told = faults(text);
        let (key, what, remedy) = ((*key).to_owned(), (*what).to_owned(), (*remedy).to_owned());
        assert_eq!(told, [(key, what, remedy)], "{text}");
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
    let fault = PolicyFault {
        file: ".ilchul/policy.yaml".to_owned(),
        line: 4,
        key: "rules.0".to_owned(),
        what: "it is odd".to_owned(),
        remedy: "mend it".to_owned(),
    };
    assert_eq!(
        fault.to_string(),
        "read .ilchul/policy.yaml, line 4: it is odd"
    );
    let policy = Policy {
        sources: vec![
            source("rules: [{effect: allow}]"),
            PolicySource::broken(fault),
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
            "the policy cannot be used: `rules.0`: it is odd; mend it (policy file, .ilchul/policy.yaml, line 4)"
        ]
    );
}

proptest! {
    #[test]
    fn no_text_makes_reading_panic(text in r"((rules|default|effect|when|deny|allow|agent|network|hours|[-:{}\[\], \n]|\PC){0,3}){0,30}") {
        if let Ok(value) = serde_saphyr::from_str::<Value>(&text) {
            let source = read("f", &value, &|_| 1);
            let is_table = matches!(value, Value::Map(_));
            assert!(is_table || !source.faults.is_empty());
            let _decision = evaluate(&Policy { sources: vec![source] }, &task());
        }
    }

    #[test]
    fn a_wrong_value_anywhere_denies(number in any::<i64>(), at in 0..8_usize) {
        let key = ["default", "rules", "backgroundTask", "loopTrigger", "rules: [{effect", "rules: [{when", "rules: [{name", "rules: [{reason"][at];
        let close = if at > 3 { "}]" } else { "" };
        assert!(!faults(&format!("{key}: {number}{close}")).is_empty());
    }
}
