//! Spend events as they stand in a log.

use kapi_core::room::CallClaim;
use kapi_core::usage::Doubt;

use crate::rules::account::{Account, ModelRole, ReservationId};
use crate::rules::day::Day;
use crate::rules::event::{EndedBy, SpendEvent, SpendPermit, TurnUsage};
use crate::rules::tokens::TokenCounts;

fn golden(event: &SpendEvent, line: &str) {
    assert_eq!(serde_json::to_string(event).unwrap(), line);
    assert_eq!(&serde_json::from_str::<SpendEvent>(line).unwrap(), event);
}

#[test]
fn golden_lines() {
    let id = ReservationId::new("shop-1", "001-a", "t001-agent-a1");
    let used = TurnUsage {
        tokens: TokenCounts {
            input: 1,
            output: 2,
            cache_read: 3,
            cache_write: 0,
        },
        usd_micros: Some(4),
        doubt: Doubt::NONE,
    };
    let account = Account {
        project: "shop-1".to_owned(),
        goal: "001-a".to_owned(),
        agent: "claude".to_owned(),
        role: ModelRole::Executor,
        provider: "anthropic".to_owned(),
        model: "m".to_owned(),
    };
    golden(
        &SpendEvent::Reserved {
            id: id.clone(),
            account,
            usd_micros: None,
            holder: 1,
        },
        r#"{"type":"reserved","data":{"id":"shop-1/001-a/t001-agent-a1","account":{"project":"shop-1","goal":"001-a","agent":"claude","role":"executor","provider":"anthropic","model":"m"},"usd_micros":null,"holder":1}}"#,
    );
    golden(
        &SpendEvent::Metered {
            id: id.clone(),
            used,
        },
        r#"{"type":"metered","data":{"id":"shop-1/001-a/t001-agent-a1","used":{"tokens":{"input":1,"output":2,"cache_read":3},"usd_micros":4}}}"#,
    );
    golden(
        &SpendEvent::Claimed {
            id: id.clone(),
            claim: CallClaim {
                tokens: 5,
                usd_micros: 6,
            },
        },
        r#"{"type":"claimed","data":{"id":"shop-1/001-a/t001-agent-a1","claim":{"tokens":5,"usd_micros":6}}}"#,
    );
    golden(
        &SpendEvent::Settled {
            id: id.clone(),
            used,
            by: EndedBy::Recovery,
        },
        r#"{"type":"settled","data":{"id":"shop-1/001-a/t001-agent-a1","used":{"tokens":{"input":1,"output":2,"cache_read":3},"usd_micros":4},"by":"recovery"}}"#,
    );
    golden(
        &SpendEvent::Released {
            id,
            by: EndedBy::Holder,
        },
        r#"{"type":"released","data":{"id":"shop-1/001-a/t001-agent-a1","by":"holder"}}"#,
    );
    golden(
        &SpendEvent::Allowed {
            question: SpendPermit::UnknownPrice,
            day: Day::of_date(2026, 11, 22),
        },
        r#"{"type":"allowed","data":{"question":"unknown_price","day":"2026-11-22"}}"#,
    );
}
