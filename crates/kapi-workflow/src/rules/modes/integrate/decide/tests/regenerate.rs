//! Files that tools write, where they do not fit: written anew once everything else is resolved, and
//! somebody's work where a tool fails.

use super::{ASKS, document};
use crate::rules::batch::mechanical::ConflictRule;
use crate::rules::command::WorkflowCommand;
use crate::rules::effect::combine::{
    CombineReport, CombineStep, FileRegeneration, RuledPath, TracedStep,
};
use crate::rules::effect::{WorkflowAction, next};
use crate::rules::modes::Begin;
use crate::rules::modes::integrate::fixture::{
    Batch, clash, foresight, left, lock_clash, regenerated, resolution, start,
};
use crate::rules::modes::integrate::role::IntegrateRole;
use crate::rules::scenario::WorkflowTestScenario;

fn wanted(batch: &Batch) -> String {
    next(batch.workflow()).remove(0).id.to_string()
}

fn step(batch: &Batch) -> CombineStep {
    match next(batch.workflow()).remove(0).action {
        WorkflowAction::Combine(step) => *step,
        other => panic!("{other:?}"),
    }
}

fn order(batch: &Batch) -> FileRegeneration {
    match step(batch) {
        CombineStep::Regenerate(order) => order,
        other => panic!("{other:?}"),
    }
}

/// Returns an integration whose second source does not fit in these paths.
fn conflict(with_code: bool) -> Batch {
    let mut batch = Batch::approved(2, ASKS);
    batch.go_on();
    let mut paths = lock_clash();
    if with_code {
        paths.extend(clash());
    }
    let at = "conflict-1".to_owned();
    batch.combined(CombineReport::Conflicted { at, paths });
    batch
}

fn prompt(batch: &Batch) -> String {
    let (workflow, state) = (batch.workflow(), batch.state());
    crate::rules::modes::integrate::prompt::question(workflow, state, IntegrateRole::Resolver)
}

fn propose(batch: &mut Batch, commit: &str) {
    let outcome = left(batch.workflow(), resolution(false), Some(commit));
    batch.perform(outcome);
}

#[test]
fn a_lock_file_alone_is_written_by_its_tool_and_nobody_is_asked() {
    let mut batch = conflict(false);
    let asked = order(&batch);
    assert_eq!(asked.commit, "conflict-1");
    let files: Vec<(&str, &str)> = asked
        .files
        .iter()
        .map(|it| (it.path.as_str(), it.line.as_str()))
        .collect();
    assert_eq!(files, [("deps.lock", "sh lock.sh")]);
    batch.combined(regenerated(Some("anew")));
    let CombineStep::Settle { resolution, .. } = step(&batch) else {
        panic!("it is settled");
    };
    assert_eq!(resolution, "anew");
    batch.until("review");
    let CombineStep::Trace { steps, .. } = step(&batch) else {
        panic!("it is traced");
    };
    let generated = |it: &TracedStep| it.generated.clone();
    let generated: Vec<Vec<String>> = steps.iter().map(generated).collect();
    assert_eq!(generated, [vec![], vec!["deps.lock".to_owned()]]);
    let matrix = document(&batch, "conflict-matrix.md");
    for part in [
        "Tools for files of 002-two",
        "`sh lock.sh` exited with 0",
        "settled as",
    ] {
        assert!(matrix.contains(part), "{part}\n{matrix}");
    }
    batch.finish();
}

#[test]
fn a_tool_runs_once_the_rest_is_resolved() {
    let mut batch = conflict(true);
    assert!(wanted(&batch).contains("resolver"));
    let asks = prompt(&batch);
    assert!(
        asks.contains("leave it: Kapi runs `sh lock.sh` once you are done"),
        "{asks}"
    );
    propose(&mut batch, "resolved");
    assert_eq!(order(&batch).commit, "resolved");
    batch.combined(regenerated(Some("anew")));
    // What was resolved wrongly goes with what was written on it.
    let paths = vec!["src/a.rs".to_owned()];
    batch.combined(CombineReport::MarkersLeft { paths });
    assert!(wanted(&batch).contains("restore"));
    batch.go_on();
    propose(&mut batch, "resolved-again");
    assert_eq!(order(&batch).commit, "resolved-again");
    batch.finish();
}

#[test]
fn where_a_tool_fails_somebody_resolves_all_of_it_and_is_told() {
    for with_code in [false, true] {
        let mut batch = conflict(with_code);
        if with_code {
            propose(&mut batch, "resolved");
        }
        batch.combined(regenerated(None));
        if with_code {
            assert!(wanted(&batch).contains("restore"));
            batch.go_on();
        }
        assert!(wanted(&batch).contains("resolver"));
        let asks = prompt(&batch);
        for part in [
            "bring it into step",
            "`sh lock.sh` for deps.lock exited with 1",
            "no",
        ] {
            assert!(asks.contains(part), "{part}\n{asks}");
        }
        propose(&mut batch, "by-hand");
        let CombineStep::Settle { resolution, .. } = step(&batch) else {
            panic!("no tool is tried again");
        };
        assert_eq!(resolution, "by-hand");
        batch.go_on();
        let state = batch.state();
        assert!(state.applied.iter().all(|it| it.generated.is_empty()));
        let matrix = document(&batch, "conflict-matrix.md");
        assert!(
            matrix.contains("Whoever resolves the conflict was told."),
            "{matrix}"
        );
        batch.finish();
    }
}

#[test]
fn files_that_no_tool_wrote_are_not_taken() {
    let mut batch = conflict(false);
    let effect = next(batch.workflow()).remove(0).id;
    batch.0.send(
        &kapi_core::actor::Actor::Engine,
        &WorkflowCommand::Intend {
            effect: effect.clone(),
        },
    );
    let report = CombineReport::Regenerated {
        commit: Some("anew".to_owned()),
        runs: Vec::new(),
    };
    let outcome = Box::new(crate::rules::modes::integrate::fixture::combined(report));
    let refused = batch.0.ask(
        &kapi_core::actor::Actor::Engine,
        &WorkflowCommand::Report { effect, outcome },
    );
    assert!(refused.is_err(), "{refused:?}");
}

#[test]
fn the_plan_shows_a_persons_own_rules_and_what_rules_say_of_foreseen_paths() {
    let rule = |text: &str| ConflictRule::parse(text).expect("a rule");
    let begun = |rules: Vec<ConflictRule>| {
        let mut command = start(2, ASKS);
        if let WorkflowCommand::Start(start) = &mut command
            && let Begin::Integrate(begin) = &mut start.begin
        {
            begin.rules = rules;
        }
        let mut batch = Batch(WorkflowTestScenario::begin(&command));
        let mut seen = foresight(batch.state(), "dev-0");
        seen.ruled = vec![RuledPath {
            path: "web/deps.lock".to_owned(),
            rule: rule("**/deps.lock: regenerate: sh lock.sh"),
        }];
        let CombineStep::Inspect { rules, .. } = step(&batch) else {
            panic!("the sources are looked at");
        };
        batch.combined(CombineReport::Inspected(Box::new(seen)));
        batch.until("plan/approval");
        (rules.len(), document(&batch, "merge-plan.md"), batch)
    };
    let (n, plan, batch) = begun(vec![rule("docs/**: ours"), rule("gen/**: theirs")]);
    assert_eq!(n, 2);
    for part in [
        "- `docs/**`: the branch's version is kept",
        "- `gen/**`: the source's version is taken",
        "- `web/deps.lock`, which is expected to conflict: ",
    ] {
        assert!(plan.contains(part), "{part}\n{plan}");
    }
    // Another rule is another plan, approved by another hash.
    let (_, other, without) = begun(Vec::new());
    assert_ne!(plan, other);
    let hash = |batch: &Batch| {
        batch
            .workflow()
            .pending
            .as_ref()
            .map(|it| it.sha256.clone())
    };
    assert_ne!(hash(&batch), hash(&without));
}
