//! The schedule: small cases, and every order in which random plans can be worked off.

use kapi_goal::rules::plan::task::PlanTaskId;
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, proptest};

use crate::rules::context_begin::ContextBegin;
use crate::rules::modes::ralph::event::RalphEvent;
use crate::rules::modes::ralph::evolve::{approved, evolve};
use crate::rules::modes::ralph::fixture::{goal_id, plan, task, terms};
use crate::rules::modes::ralph::graph::{collide, in_order, left, may_begin, overlap, proved};
use crate::rules::modes::ralph::plan::sound::sound;
use crate::rules::modes::ralph::plan::{Isolation, PlanTask, RalphPlan};
use crate::rules::modes::ralph::state::{Ralph, Stand};

#[test]
fn paths_meet_where_one_leads_into_the_other() {
    for (one, other) in [
        ("src/a.rs", "src/a.rs"),
        ("src", "src/a.rs"),
        ("./src/", "src/a.rs"),
        ("src/**", "src/a/b.rs"),
        ("src/a*", "src/ab/c.rs"),
        ("**/*.rs", "docs/x.md"),
        ("src/*/x", "src/y/**"),
        (".", "anything"),
    ] {
        assert!(overlap(one, other) && overlap(other, one), "{one} {other}");
    }
    for (one, other) in [
        ("src/a.rs", "src/b.rs"),
        ("src/a", "src/ab"),
        ("src/a/**", "src/b/**"),
        ("src/a*", "src/b"),
        ("docs", "src/docs"),
    ] {
        assert!(
            !overlap(one, other) && !overlap(other, one),
            "{one} {other}"
        );
    }
}

#[test]
fn who_names_no_paths_or_wants_to_be_alone_is_alone() {
    let own = task("T-001", &[], &["a"]);
    let blind = task("T-002", &[], &[]);
    let mut alone = task("T-003", &[], &["b"]);
    alone.isolation = Isolation::Alone;
    assert!(collide(&own, &blind) && collide(&blind, &own));
    assert!(collide(&own, &alone) && collide(&alone, &own));
    assert!(!collide(&own, &task("T-004", &[], &["b"])));
}

fn build(plan: RalphPlan) -> Ralph {
    let begin = ContextBegin {
        base: "base".to_owned(),
        interview: None,
        spec: None,
    };
    let mut ralph = Ralph::begun(&begin);
    let plan = Box::new(plan);
    evolve(&mut ralph, &RalphEvent::PlanProposed { cycle: 1, plan });
    approved(&mut ralph);
    ralph
}

fn names(ids: &[PlanTaskId]) -> Vec<&str> {
    ids.iter().map(PlanTaskId::as_str).collect()
}

#[test]
fn places_are_given_in_the_order_of_the_plan() {
    let ralph = build(plan(vec![
        task("T-003", &[], &["c"]),
        task("T-001", &[], &["a"]),
        task("T-002", &["T-001"], &["b"]),
        task("T-004", &[], &["c/d"]),
    ]));
    assert_eq!(names(&may_begin(&ralph, 8)), ["T-003", "T-001"]);
    assert_eq!(names(&may_begin(&ralph, 1)), ["T-003"]);
    assert_eq!(names(&may_begin(&ralph, 0)), ["T-003"]);
}

fn set_to_work(ralph: &mut Ralph, id: &PlanTaskId) {
    let event = RalphEvent::TaskBegun {
        task: id.clone(),
        attempt: 1,
        base: "base".to_owned(),
        allowance: None,
    };
    evolve(ralph, &event);
}

fn prove(ralph: &mut Ralph, id: &PlanTaskId) {
    let event = RalphEvent::TaskRested {
        task: id.clone(),
        attempt: 1,
        goal: goal_id("012-goal"),
        status: kapi_goal::rules::state::GoalStatus::Done,
        commit: Some(format!("commit-{id}")),
        reason: None,
        at_ms: 1,
    };
    evolve(ralph, &event);
}

fn land(ralph: &mut Ralph, id: &PlanTaskId) {
    let event = RalphEvent::TaskLanded {
        task: id.clone(),
        head: format!("head-{id}"),
        tree: "tree".to_owned(),
        merged: false,
        changed: None,
    };
    evolve(ralph, &event);
}

#[test]
fn what_is_proved_keeps_its_paths_until_it_has_landed() {
    let mut ralph = build(plan(vec![
        task("T-001", &[], &["a"]),
        task("T-002", &[], &["a/b"]),
    ]));
    let first = may_begin(&ralph, 8).remove(0);
    set_to_work(&mut ralph, &first);
    prove(&mut ralph, &first);
    assert!(may_begin(&ralph, 8).is_empty());
    land(&mut ralph, &first);
    assert_eq!(names(&may_begin(&ralph, 8)), ["T-002"]);
}

fn plans() -> impl Strategy<Value = RalphPlan> {
    let kind = (any::<bool>(), vec(0..6_usize, 0..3), any::<u16>());
    (vec(kind, 1..9), Just(())).prop_map(|(kinds, ())| {
        let paths = ["a", "b", "c", "a/x", "b/**", "**/y"];
        let tasks: Vec<PlanTask> = kinds
            .iter()
            .enumerate()
            .map(|(at, (alone, touches, edges))| {
                let after: Vec<String> = (0..at)
                    .filter(|earlier| edges & (1 << earlier) != 0)
                    .map(|earlier| format!("T-{:03}", earlier + 1))
                    .collect();
                let after: Vec<&str> = after.iter().map(String::as_str).collect();
                let touches: Vec<&str> = touches.iter().map(|at| paths[*at]).collect();
                let mut task = task(&format!("T-{:03}", at + 1), &after, &touches);
                if *alone && touches.len() > 1 {
                    task.isolation = Isolation::Alone;
                }
                task
            })
            .collect();
        plan(tasks)
    })
}

proptest! {
    #[test]
    fn every_plan_is_worked_off_in_any_order(
        found in plans(),
        jobs in 1..4_u32,
        picks in vec(any::<u8>(), 64),
    ) {
        prop_assert_eq!(sound(&found, None, &terms(), None), Ok(()));
        let mut ralph = build(found);
        let mut picks = picks.into_iter().cycle();
        for _ in 0..1_000 {
            if left(&ralph).is_empty() {
                break;
            }
            let begin = may_begin(&ralph, jobs);
            prop_assert_eq!(&begin, &may_begin(&ralph.clone(), jobs));
            for id in &begin {
                set_to_work(&mut ralph, id);
            }
            let working: Vec<PlanTask> = in_order(&ralph)
                .into_iter()
                .filter(|state| state.is_working)
                .map(|state| state.task.clone())
                .collect();
            prop_assert!(working.len() <= usize::try_from(jobs).unwrap());
            for (at, one) in working.iter().enumerate() {
                prop_assert!(working[at + 1..].iter().all(|other| !collide(one, other)));
                let has_landed = |id: &PlanTaskId| {
                    matches!(ralph.tasks[id].stand, Stand::Landed { .. })
                };
                prop_assert!(one.depends_on.iter().all(has_landed));
            }
            let pick = usize::from(picks.next().unwrap_or(0));
            let landing = proved(&ralph).next().map(|state| state.task.id.clone());
            match (landing, working.len()) {
                (Some(id), n) if n == 0 || pick % 2 == 0 => land(&mut ralph, &id),
                (_, n) => {
                    prop_assert!(n > 0, "nothing is under way and something is left");
                    let id = working[pick % n].id.clone();
                    prove(&mut ralph, &id);
                }
            }
        }
        prop_assert!(left(&ralph).is_empty());
    }
}
