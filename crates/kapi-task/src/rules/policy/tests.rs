//! Rules: what each key is about, that denials win, what holds inside a run, and what is refused.

mod broken;
mod original;
mod rules;

use std::collections::BTreeMap;

use kapi_settings::fault::Faults;
use kapi_settings::yaml;

use super::{Policy, PolicyDecision, PolicyRequest, PolicySource, RequestKind, evaluate, read};
use crate::rules::task_terms::TaskBudget;

fn source(text: &str) -> PolicySource {
    let mut faults = Faults::of("policy.yaml".to_owned());
    match yaml::parse(text, &mut faults) {
        Some(root) => read("policy.yaml", &root, faults),
        None => PolicySource::broken("policy.yaml", faults.into_list()),
    }
}

fn policy(texts: &[&str]) -> Policy {
    let sources: Vec<PolicySource> = texts.iter().map(|text| source(text)).collect();
    for source in &sources {
        assert_eq!(source.faults, [], "{texts:?}");
    }
    Policy { sources }
}

fn task() -> PolicyRequest {
    PolicyRequest {
        kind: RequestKind::Task,
        agent: Some("Sisyphus".to_owned()),
        loop_name: None,
        project: "/srv/work/shop".to_owned(),
        backend: None,
        tools: None,
        prompt: "Fix the login.".to_owned(),
        trigger_source: None,
        budget: TaskBudget::default(),
        is_unattended: false,
        network: None,
        hosts: Vec::new(),
        commands: Vec::new(),
        paths: Vec::new(),
        local_times: BTreeMap::new(),
    }
}

fn loop_run() -> PolicyRequest {
    PolicyRequest {
        kind: RequestKind::Loop,
        loop_name: Some("nightly".to_owned()),
        ..task()
    }
}

fn decide(texts: &[&str], request: &PolicyRequest) -> PolicyDecision {
    evaluate(&policy(texts), request)
}

fn said(decision: &PolicyDecision) -> Vec<String> {
    assert_eq!(decision.allowed, decision.violations.is_empty());
    let reason = (!decision.allowed).then_some("policy denied request");
    assert_eq!(decision.reason.as_deref(), reason);
    decision
        .violations
        .iter()
        .map(|violation| violation.text.clone())
        .collect()
}
