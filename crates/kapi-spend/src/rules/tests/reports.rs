//! Where money and tokens went.

use super::{Case, DAY_MS, account};
use crate::rules::account::{Account, ModelRole, ReservationId};
use crate::rules::caps::Caps;
use crate::rules::day::Day;
use crate::rules::decide::{Amount, SpendRequest};
use crate::rules::report::{SpendGrouping, SpendSelection, report};

#[test]
fn a_report_answers_one_question_at_a_time() {
    let mut case = Case::new();
    let spend = |case: &mut Case, account: Account, micros: u64| {
        let wish = SpendRequest {
            id: ReservationId::new(&account.project, &account.goal, &account.agent),
            account,
            amount: Amount::Known {
                wanted: micros,
                least: 1,
            },
            goal: None,
        };
        case.reserve(&wish, &Caps::none());
        case.settle(&wish.id, micros);
    };
    spend(&mut case, account("shop", "001-a"), 10);
    let judge = Account {
        agent: "codex".to_owned(),
        role: ModelRole::Judge,
        provider: "openai".to_owned(),
        ..account("shop", "001-a")
    };
    spend(&mut case, judge, 3);
    case.now_ms += DAY_MS;
    spend(&mut case, account("other", "001-a"), 20);
    let keys = |by, project: Option<&str>, since| {
        let selection = SpendSelection {
            project: project.map(str::to_owned),
            since,
        };
        let found = report(&case.totals, by, &selection);
        let rows = found.rows.into_iter();
        rows.map(|row| format!("{} {}", row.key, row.sum.usd_micros))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        keys(SpendGrouping::Goal, None, None),
        ["other/001-a 20", "shop/001-a 13"]
    );
    assert_eq!(
        keys(SpendGrouping::Agent, None, None),
        ["claude 30", "codex (judge) 3"]
    );
    assert_eq!(
        keys(SpendGrouping::Agent, Some("shop"), None),
        ["claude 10", "codex (judge) 3"]
    );
    assert_eq!(
        keys(SpendGrouping::Model, None, None),
        ["anthropic/m 30", "openai/m 3"]
    );
    assert_eq!(
        keys(SpendGrouping::Day, None, None),
        ["2026-11-22 13", "2026-11-23 20"]
    );
    assert_eq!(
        keys(SpendGrouping::Project, None, None),
        ["other 20", "shop 13"]
    );
    let second = Some(Day::of_date(2026, 11, 23));
    assert_eq!(keys(SpendGrouping::Day, None, second), ["2026-11-23 20"]);
}
