//! Whatever is not known: a condition that holds without an answer holds with any.

use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};

use super::super::expression::{Expression, ExpressionContext};
use super::super::window::{LocalTime, Weekday, Window};
use super::super::{Condition, ConditionQuestion, Facts, FileIs, GitIs, ProbeAnswer, evaluate};
use super::text;

fn conditions() -> impl Strategy<Value = Condition> {
    let expr = |text| Condition::Expr {
        expr: Expression::parse(text).unwrap(),
    };
    let leaf = prop_oneof![
        Just(expr("true")),
        Just(expr("false")),
        Just(Condition::Git { is: GitIs::Clean }),
        Just(Condition::File {
            glob: text("a"),
            is: FileIs::Exists
        }),
        Just(Condition::Time {
            window: Window {
                days: vec![Weekday::Mon],
                from: 0,
                to: 10,
                zone: text("UTC")
            }
        }),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(|of| Condition::All { of }),
            prop::collection::vec(inner.clone(), 1..4).prop_map(|of| Condition::Any { of }),
            inner.prop_map(|of| Condition::Not { of: Box::new(of) }),
        ]
    })
}

fn facts() -> impl Strategy<Value = Facts> {
    let uncommitted = any::<bool>().prop_map(|is| ProbeAnswer::Uncommitted { count: is.into() });
    let files = any::<bool>().prop_map(|is| ProbeAnswer::Files { count: is.into() });
    let minute = (0..20_u16).prop_map(|minute| {
        ProbeAnswer::LocalTime(LocalTime {
            day: Weekday::Mon,
            minute,
        })
    });
    let answers = (
        prop::option::of(uncommitted),
        prop::option::of(files),
        prop::option::of(minute),
    );
    answers.prop_map(|(uncommitted, files, minute)| {
        let zone = text("UTC");
        let asked = [
            (ConditionQuestion::Uncommitted, uncommitted),
            (ConditionQuestion::Files { glob: text("a") }, files),
            (ConditionQuestion::LocalTime { zone }, minute),
        ];
        let known = asked.into_iter();
        known
            .filter_map(|(question, answer)| answer.map(|answer| (question, answer)))
            .collect()
    })
}

proptest! {
    /// More knowledge never takes back what held before it.
    #[test]
    fn what_holds_without_an_answer_holds_with_any(condition in conditions(), known in facts(), more in facts()) {
        let context = ExpressionContext::default();
        let before = evaluate(&condition, &context, &known);
        let mut all = more;
        all.extend(known);
        let after = evaluate(&condition, &context, &all);
        assert!(!before.holds || after.holds);
        assert_eq!(before.reasons.len(), after.reasons.len());
        let turned = Condition::Not { of: Box::new(condition) };
        assert!(!(after.holds && evaluate(&turned, &context, &all).holds));
    }
}
