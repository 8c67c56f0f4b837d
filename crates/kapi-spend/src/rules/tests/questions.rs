//! When a person is asked before money is spent.

use kapi_core::actor::Actor;

use super::{Case, DAY_MS, NOW, caps, granted, person, refusal, request, used};
use crate::rules::caps::Caps;
use crate::rules::day::Day;
use crate::rules::decide::{Amount, SpendAnswer, SpendDenied, SpendRequest, allow, settle};
use crate::rules::event::{SpendPermit, TurnUsage};
use crate::rules::report::{SpendGrouping, SpendSelection, report};

#[test]
fn near_a_cap_a_person_is_asked_once_a_day() {
    let mut case = Case::new();
    let caps = Caps {
        ask_at_percent: 80,
        ..caps(Some(1_000), None)
    };
    let first = request("shop", "001-a", "t1", 800);
    assert_eq!(case.reserve(&first, &caps), granted(800));
    case.settle(&first.id, 800);
    let next = request("shop", "001-a", "t2", 100);
    let asked = case.reserve(&next, &caps);
    assert!(
        matches!(
            asked,
            SpendAnswer::AskPerson {
                question: SpendPermit::Threshold,
                ..
            }
        ),
        "{asked:?}"
    );
    for actor in [
        Actor::Engine,
        Actor::Agent {
            run: "r".to_owned(),
        },
    ] {
        let refused = allow(&actor, &case.totals, SpendPermit::Threshold, NOW);
        assert_eq!(refused, Err(SpendDenied::OnlyHuman));
    }
    let events = allow(&person(), &case.totals, SpendPermit::Threshold, NOW).unwrap();
    case.take(&events);
    assert_eq!(
        allow(&person(), &case.totals, SpendPermit::Threshold, NOW),
        Ok(vec![])
    );
    assert_eq!(case.reserve(&next, &caps), granted(100));
    // The hard cap holds all the same.
    let refused = case.reserve(&request("shop", "001-a", "t3", 101), &caps);
    assert_eq!(refused, granted(100));
    assert_eq!(
        refusal(&case.reserve(&request("x", "1", "t", 1), &caps)).3,
        1_000
    );
    case.now_ms += DAY_MS;
    assert!(
        !case
            .totals
            .is_allowed(SpendPermit::Threshold, Day::of_ms(case.now_ms))
    );
}

#[test]
fn an_unknown_price_under_a_cap_is_a_question_and_never_nought() {
    let mut case = Case::new();
    let wish = SpendRequest {
        amount: Amount::Unknown,
        ..request("shop", "001-a", "t1", 0)
    };
    let unlimited = case.reserve(&wish, &Caps::none());
    assert_eq!(unlimited, SpendAnswer::Granted { usd_micros: None });
    let caps = caps(Some(1_000), None);
    let allowed = Caps {
        allows_unpriced: true,
        ..caps
    };
    assert_eq!(
        Case::new().reserve(&wish, &allowed),
        SpendAnswer::Granted { usd_micros: None },
        "whoever allows it for good is not asked each day"
    );
    let asked = case.reserve(&wish, &caps);
    assert!(matches!(
        asked,
        SpendAnswer::AskPerson {
            question: SpendPermit::UnknownPrice,
            ..
        }
    ));
    let events = allow(&person(), &case.totals, SpendPermit::UnknownPrice, NOW).unwrap();
    case.take(&events);
    assert_eq!(
        case.reserve(&wish, &caps),
        SpendAnswer::Granted { usd_micros: None }
    );
    let ended = TurnUsage {
        usd_micros: None,
        ..used(7)
    };
    let events = settle(&case.totals, &wish.id, &ended);
    case.take(&events);
    let selection = SpendSelection {
        project: None,
        since: None,
    };
    let found = report(&case.totals, SpendGrouping::Model, &selection);
    assert_eq!((found.total.usd_micros, found.total.unknown_turns), (0, 1));
    assert_eq!(found.total.tokens.input, 7);
    assert_eq!(found.unknown_models, ["anthropic/m"]);
}
