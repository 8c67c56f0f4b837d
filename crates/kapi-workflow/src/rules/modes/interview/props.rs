//! What holds for every sequence of requests, however foolish.
//!
//! Requests are drawn from the alphabets of the model check, which know what fits.

use proptest::prelude::{any, prop, proptest};
use proptest::test_runner::Config;

use crate::rules::decide::decide;
use crate::rules::event::WorkflowEvent;
use crate::rules::evolve::evolve;
use crate::rules::modes::interview::model::everything;
use crate::rules::modes::interview::scenario::interview;
use crate::rules::scenario::given;
use crate::rules::state::Workflow;

fn replayed(events: &[WorkflowEvent]) -> Option<Workflow> {
    let mut workflow = None;
    for event in events {
        let line = serde_json::to_string(event).unwrap();
        evolve(&mut workflow, &serde_json::from_str(&line).unwrap());
    }
    workflow
}

proptest! {
    #![proptest_config(Config { cases: 48, ..Config::default() })]
    #[test]
    fn a_replay_of_the_log_is_the_state_and_a_denial_is_nothing(
        choices in prop::collection::vec(any::<prop::sample::Index>(), 1..60),
    ) {
        let mut scenario = interview();
        for choice in choices {
            let all = everything(scenario.workflow());
            let (actor, command) = choice.get(&all);
            let before = scenario.clone();
            match scenario.ask(actor, command) {
                Ok(events) => {
                    let again = decide(before.workflow.as_ref(), actor, command, &given());
                    assert_eq!(again, Ok(events), "a decision is not the same twice");
                }
                Err(_) => {
                    assert_eq!(scenario.workflow, before.workflow);
                    assert_eq!(scenario.events, before.events);
                }
            }
        }
        assert_eq!(replayed(&scenario.events), scenario.workflow);
    }

    #[test]
    fn events_in_any_order_fold_without_harm(
        choices in prop::collection::vec(any::<prop::sample::Index>(), 1..40),
        order in prop::collection::vec(any::<prop::sample::Index>(), 1..80),
    ) {
        let mut scenario = interview();
        for choice in choices {
            let all = everything(scenario.workflow());
            let (actor, command) = choice.get(&all);
            drop(scenario.ask(actor, command));
        }
        let mut workflow = scenario.workflow.clone();
        for location in order {
            evolve(&mut workflow, location.get(&scenario.events));
        }
        assert!(workflow.is_some());
    }
}
