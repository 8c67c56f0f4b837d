//! Our own rules: each key alone, in company, and against each other.

use kapi_core::isolation::NetworkMode;
use proptest::prelude::{any, prop, proptest};

use super::{PolicyRequest, decide, evaluate, loop_run, policy, said, source, task};
use crate::rules::condition::window::{LocalTime, Weekday};
use crate::rules::policy::{Constraints, Policy, PolicyLimit, PolicyViolation};
use crate::rules::task_terms::TaskBudget;

/// A rule that denies when `when` is so: these requests, and not those.
fn check(when: &str, denied: &[PolicyRequest], passed: &[PolicyRequest]) {
    let deny = format!("rules: [{{name: r, effect: deny, when: {{{when}}}}}]");
    for request in denied {
        let decision = decide(&[&deny], request);
        assert_eq!(said(&decision), ["denied by r"], "{when} {request:?}");
    }
    for request in passed {
        assert!(decide(&[&deny], request).allowed, "{when} {request:?}");
    }
}

fn named(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn who_and_what() {
    let other = |agent: &str| PolicyRequest {
        agent: named(agent),
        ..task()
    };
    check("kind: loop", &[loop_run()], &[task()]);
    check("kind: [task, loop]", &[loop_run(), task()], &[]);
    check(
        "agent: [oracle, \"@SISY*\"]",
        &[task(), other("@sisyphus"), other("Oracle ")],
        &[other("x")],
    );
    // What a rule asks and nobody knows counts against the request.
    check(
        "agent: oracle",
        &[PolicyRequest {
            agent: None,
            ..task()
        }],
        &[task()],
    );
    check(
        "loop: night*",
        &[
            loop_run(),
            PolicyRequest {
                loop_name: None,
                ..loop_run()
            },
        ],
        &[task()],
    );
    check(
        "project: sh?p",
        &[task()],
        &[PolicyRequest {
            project: "/srv/shop/x".to_owned(),
            ..task()
        }],
    );
    check(
        "project: /srv/*",
        &[task()],
        &[PolicyRequest {
            project: "/home/user/shop".to_owned(),
            ..task()
        }],
    );
    let backend = |name: &str| PolicyRequest {
        backend: named(name),
        ..task()
    };
    check(
        "backend: claude",
        &[backend("Claude"), task()],
        &[backend("pi")],
    );
    let tools = |tools: &[&str]| PolicyRequest {
        tools: Some(tools.iter().map(|tool| (*tool).to_owned()).collect()),
        ..task()
    };
    check(
        "tool: [bash, mcp__*]",
        &[tools(&["Read", "Bash"]), tools(&["mcp__x"]), task()],
        &[tools(&["Read"]), tools(&[])],
    );
    let set_off = |source: &str| PolicyRequest {
        trigger_source: named(source),
        ..loop_run()
    };
    check(
        "trigger_source: webhook*",
        &[set_off("webhook:ci"), loop_run()],
        &[set_off("cron"), task()],
    );
    let unattended = PolicyRequest {
        is_unattended: true,
        ..task()
    };
    check(
        "unattended: true",
        std::slice::from_ref(&unattended),
        &[task()],
    );
    check("unattended: false", &[task()], &[unattended]);
}

#[test]
fn prompts_and_budgets() {
    let prompt = |prompt: &str| PolicyRequest {
        prompt: prompt.to_owned(),
        ..task()
    };
    check(
        "prompt_contains: [\"DROP table\"]",
        &[prompt("now drop Table x")],
        &[task()],
    );
    check(
        "prompt_chars_over: 3",
        &[prompt("äöüß")],
        &[prompt("äöü"), prompt("😀😀😀")],
    );
    let budget = |tokens, usd_micros, time_ms| PolicyRequest {
        budget: TaskBudget {
            tokens,
            usd_micros,
            time_ms,
        },
        ..task()
    };
    check(
        "budget_over: {tokens: 1000}",
        &[
            task(),
            budget(Some(1_001), None, None),
            budget(None, Some(1), Some(1)),
        ],
        &[budget(Some(1_000), None, None)],
    );
    check(
        "budget_over: {usd: 2.50, seconds: 60}",
        &[
            budget(None, Some(2_500_001), Some(1)),
            budget(None, Some(1), Some(60_001)),
            task(),
        ],
        &[budget(None, Some(2_500_000), Some(60_000))],
    );
}

#[test]
fn times_of_day() {
    let at = |day, hour: u16| {
        let time = LocalTime {
            day,
            minute: hour * 60,
        };
        PolicyRequest {
            local_times: [("Europe/Berlin".to_owned(), time)].into(),
            ..task()
        }
    };
    let when = "hours: \"22:00-06:00\", days: mon-fri, zone: Europe/Berlin";
    check(
        when,
        &[at(Weekday::Mon, 22), at(Weekday::Sat, 5), task()],
        &[
            at(Weekday::Mon, 5),
            at(Weekday::Mon, 6),
            at(Weekday::Sat, 22),
        ],
    );
    let policy = policy(&[&format!("rules: [{{effect: deny, when: {{{when}}}}}]")]);
    assert_eq!(
        policy.zones().into_iter().collect::<Vec<_>>(),
        ["Europe/Berlin"]
    );
}

#[test]
fn everything_that_a_rule_asks_must_be_so() {
    let night = PolicyRequest {
        prompt: "deploy".to_owned(),
        ..loop_run()
    };
    check(
        "kind: loop, prompt_contains: deploy",
        &[night],
        &[
            loop_run(),
            PolicyRequest {
                prompt: "deploy".to_owned(),
                ..task()
            },
        ],
    );
    // One thing that is certainly not so settles it, whatever else is unknown.
    check("kind: loop, backend: claude", &[loop_run()], &[task()]);
}

#[test]
fn what_no_rule_allows_is_denied() {
    let only_oracle = "rules: [{effect: allow, when: {kind: task, agent: oracle}}]";
    let oracle = PolicyRequest {
        agent: named("oracle"),
        ..task()
    };
    assert_eq!(
        said(&decide(&[only_oracle], &task())),
        ["no rule allows it"]
    );
    assert!(decide(&[only_oracle], &oracle).allowed);
    assert!(
        decide(&[only_oracle], &loop_run()).allowed,
        "of another kind"
    );
    assert_eq!(
        said(&decide(&["default: deny"], &task())),
        ["no rule allows it"]
    );
    assert!(decide(&["default: allow"], &task()).allowed);
    // What is not known does not allow.
    let backend = "rules: [{effect: allow, when: {backend: pi}}]";
    assert_eq!(said(&decide(&[backend], &task())), ["no rule allows it"]);
    // Each file must allow.
    assert_eq!(
        said(&decide(&[only_oracle, "default: deny"], &oracle)),
        ["no rule allows it"]
    );
    assert!(decide(&[only_oracle, "{}"], &oracle).allowed);
}

#[test]
fn a_denial_wins() {
    let rules = "rules:\n- {effect: allow}\n- {name: nay, effect: deny, when: {agent: sisyphus}, reason: not here}\n- {effect: allow, when: {agent: sisyphus}}\n";
    let decision = decide(&[rules], &task());
    assert_eq!(said(&decision), ["not here"]);
    let violation = PolicyViolation {
        rule: "nay".to_owned(),
        file: "policy.yaml".to_owned(),
        line: 3,
        text: "not here".to_owned(),
    };
    assert_eq!(decision.violations, [violation]);
}

fn patterns(limits: &[PolicyLimit]) -> Vec<&str> {
    limits.iter().map(|limit| limit.pattern.as_str()).collect()
}

#[test]
fn commands_are_denied_by_name_and_inside_the_run() {
    let rules = "rules:\n- {effect: deny, when: {command: [git push, terraform]}}\n- {effect: ask, when: {command: npm publish}}\n";
    let decision = decide(&[rules], &task());
    assert!(decision.allowed);
    assert_eq!(
        patterns(&decision.constraints.forbidden_commands),
        ["git push", "terraform"]
    );
    assert_eq!(patterns(&decision.constraints.ask_before), ["npm publish"]);
    let request = PolicyRequest {
        commands: [
            "cargo test",
            "cd x && git -C y push",
            "sh -c 'terraform apply'",
        ]
        .map(ToOwned::to_owned)
        .to_vec(),
        ..task()
    };
    assert_eq!(
        said(&decide(&[rules], &request)),
        [
            "command denied: cd x && git -C y push falls under git push",
            "command denied: sh -c 'terraform apply' falls under terraform",
        ]
    );
    let others = "rules: [{effect: deny, when: {agent: oracle, command: git push}}]";
    assert_eq!(
        decide(&[others], &request).constraints,
        Constraints::default()
    );
}

#[test]
fn paths_are_denied_by_name_and_inside_the_run() {
    let rules = "rules: [{effect: deny, reason: they are generated, when: {path: [\"./gen/\", \"**/*.lock\"]}}]";
    let decision = decide(&[rules], &task());
    assert!(decision.allowed);
    assert_eq!(
        patterns(&decision.constraints.read_only),
        ["gen", "**/*.lock"]
    );
    let request = PolicyRequest {
        paths: [
            "src/a.rs",
            "gen/x/y",
            "./a/Cargo.lock",
            "../x",
            "/etc/passwd",
            "a/../gen",
        ]
        .map(ToOwned::to_owned)
        .to_vec(),
        ..task()
    };
    let said = said(&decide(&[rules], &request));
    assert_eq!(said.len(), 5);
    assert_eq!(said[0], "path denied: gen/x/y: they are generated");
}

#[test]
fn networks_are_capped() {
    let open = "rules: [{effect: deny, when: {network: open}}]";
    let any = "rules: [{effect: deny, when: {network: filtered}}]";
    let hosts = "rules: [{effect: deny, when: {network: [\"*.example.com\", 10.0.0.1]}}]";
    let max = |texts: &[&str], asked: Option<NetworkMode>| {
        let decision = decide(
            texts,
            &PolicyRequest {
                network: asked,
                ..task()
            },
        );
        let max = decision.constraints.network_max.map(|max| max.mode);
        (decision.allowed, max)
    };
    let (none, filtered, all) = (NetworkMode::None, NetworkMode::Filtered, NetworkMode::Open);
    assert_eq!(max(&[open], None), (true, Some(filtered)));
    assert_eq!(max(&[open], Some(filtered)), (true, Some(filtered)));
    assert_eq!(max(&[open], Some(all)), (false, Some(filtered)));
    assert_eq!(max(&[any], Some(filtered)), (false, Some(none)));
    assert_eq!(max(&[any], Some(none)), (true, Some(none)));
    assert_eq!(max(&[open, any], None), (true, Some(none)));
    assert_eq!(max(&[hosts], Some(all)), (true, Some(filtered)));
    let request = PolicyRequest {
        hosts: [
            "EXAMPLE.com:443",
            "a.b.example.com.",
            "10.0.0.1",
            "badexample.com",
        ]
        .map(ToOwned::to_owned)
        .to_vec(),
        ..task()
    };
    let decision = decide(&[hosts], &request);
    assert_eq!(said(&decision).len(), 3, "{decision:?}");
    assert_eq!(
        patterns(&decision.constraints.forbidden_hosts),
        ["*.example.com", "10.0.0.1"]
    );
    // A permission is up to its level, and the widest permission counts.
    let up_to = "rules: [{effect: allow, when: {network: filtered}}]";
    assert_eq!(max(&[up_to], None), (true, Some(filtered)));
    assert_eq!(max(&[up_to], Some(none)), (true, Some(filtered)));
    assert_eq!(max(&[up_to], Some(all)), (false, None));
    let two =
        "rules: [{effect: allow, when: {network: none}}, {effect: allow, when: {agent: sisyphus}}]";
    assert_eq!(max(&[two], Some(all)), (true, None));
}

#[test]
fn a_decision_is_kept_as_this_line() {
    let rules = "\n\nrules: [{name: p, effect: deny, when: {command: git push}}, {effect: deny}]";
    let line = serde_json::to_string(&decide(&[rules], &task())).unwrap();
    assert_eq!(
        line,
        concat!(
            r#"{"allowed":false,"reason":"policy denied request","violations":[{"rule":"rule 2","#,
            r#""file":"policy.yaml","line":3,"text":"denied by rule 2"}],"constraints":{"#,
            r#""forbidden_commands":[{"pattern":"git push","set_by":{"rule":"p","#,
            r#""file":"policy.yaml","line":3,"text":"denied by p"}}],"ask_before":[],"#,
            r#""read_only":[],"forbidden_hosts":[]}}"#
        )
    );
}

const RULES: &[&str] = &[
    "{effect: allow}",
    "{effect: allow, when: {agent: sisyphus}}",
    "{effect: allow, when: {network: open}}",
    "{effect: allow, when: {kind: loop}}",
    "{effect: ask, when: {command: make}}",
    "{effect: deny, when: {command: make}}",
    "{effect: deny, when: {network: open}}",
    "{effect: deny, when: {path: gen}}",
    "{effect: deny, when: {agent: oracle}}",
    "{effect: deny, when: {kind: loop}}",
];

proptest! {
    /// Whatever else is allowed, and wherever it stands, one denial decides.
    #[test]
    fn a_denial_always_wins(
        before in prop::collection::vec(0..RULES.len(), 0..6),
        after in prop::collection::vec(0..RULES.len(), 0..6),
        other in prop::collection::vec(0..RULES.len(), 0..6),
        is_first in any::<bool>(),
    ) {
        let list = |locations: &[usize]| -> Vec<&str> { locations.iter().map(|at| RULES[*at]).collect() };
        let text = |rules: &[&str]| format!("rules: [{}]", rules.join(", ")).replace("[]", "[{effect: allow}]");
        let denying = text(&[list(&before), vec!["{name: last word, effect: deny, when: {prompt_contains: login}}"], list(&after)].concat());
        let other = text(&list(&other));
        let sources = if is_first { [denying, other] } else { [other, denying] };
        let policy = Policy { sources: sources.iter().map(|text| source(text)).collect() };
        assert_eq!(policy.faults().count(), 0);
        let decision = evaluate(&policy, &task());
        assert!(!decision.allowed);
        assert!(decision.violations.iter().any(|violation| violation.rule == "last word"));
    }

    /// A further rule that denies never lets more through, inside a run neither.
    #[test]
    fn a_further_denial_only_narrows(
        locations in prop::collection::vec(0..RULES.len(), 1..6),
        further in 5..RULES.len(),
    ) {
        let rules: Vec<&str> = locations.iter().map(|at| RULES[*at]).collect();
        let more = [rules.clone(), vec![RULES[further]]].concat();
        for request in [task(), loop_run(), PolicyRequest { network: Some(NetworkMode::Open), ..task() }] {
            let before = decide(&[&format!("rules: [{}]", rules.join(", "))], &request);
            let after = decide(&[&format!("rules: [{}]", more.join(", "))], &request);
            assert!(before.allowed || !after.allowed);
            let has = |all: &[PolicyLimit], limit: &PolicyLimit| all.iter().any(|one| one.pattern == limit.pattern);
            let (old, new) = (&before.constraints, &after.constraints);
            assert!(old.forbidden_commands.iter().all(|limit| has(&new.forbidden_commands, limit)));
            assert!(old.read_only.iter().all(|limit| has(&new.read_only, limit)));
            assert!(old.network_max.is_none() || new.network_max.is_some());
        }
    }
}
