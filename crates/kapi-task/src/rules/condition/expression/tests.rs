//! The language: what binds, what is equal, what is missing, and every complaint word for word.

use kapi_core::value::KernelValue;
use proptest::prelude::proptest;

use super::{EXPRESSION_BYTES_MAX, Expression, ExpressionContext};

fn json(text: &str) -> KernelValue {
    serde_json::from_str(text).unwrap()
}

fn context() -> ExpressionContext {
    let inputs = json(
        r#"{"market":"ETH","n":3,"half":0.5,"zero":0,"empty":"","none":null,"yes":true,
            "list":[1,2,{"k":"v"}],"same":[1,2,{"k":"v"}],"table":{}}"#,
    );
    let payload = json(r#"{"paths":["a.rs","b.rs"],"length":7}"#);
    ExpressionContext::of_run(inputs, payload, "cron", "nightly")
}

fn holds(text: &str) -> bool {
    let expression = Expression::parse(text).unwrap_or_else(|error| panic!("{error}"));
    expression.holds(&context())
}

#[test]
fn what_holds() {
    for text in [
        "true",
        " true ",
        "inputs.market",
        "inputs.market == 'ETH'",
        "inputs.market == \"ETH\"",
        "inputs.market != 'BTC'",
        "inputs.n == 3",
        "inputs.n == 3.0",
        "inputs.n > -1",
        "inputs.n >= 3 && inputs.n <= 3",
        "inputs.half < 1",
        "inputs.half == 0.50",
        "'a' < 'b'",
        "'Z' < 'a'",
        "inputs.list.2.k == 'v'",
        "inputs.list == inputs.same",
        "inputs.list",
        "inputs.table",
        "inputs.list.length == 3",
        "payload.paths.length > 1",
        "payload.length == 7",
        "payload.paths.0 == 'a.rs'",
        "state.triggerType == 'cron'",
        "state.triggerSource == 'nightly'",
        // Missing is missing, and never nothing.
        "inputs.none == null",
        "inputs.missing != null",
        "inputs.missing == inputs.also_missing",
        "!inputs.missing",
        "!inputs.zero && !inputs.empty && !inputs.none",
        // `&&` binds closer than `||`, comparisons closer than both, `!` closest.
        "true || false && false",
        "(true || false) && true",
        "!false == true",
        "!(1 == 2)",
        "!!inputs.market",
        "1 == 1 == true",
        "1 < 2 == true",
        "'it\\'s' == \"it's\"",
        "'a\\nb' == 'anb'",
        "'\\\\' != ''",
        "'😀' == '😀'",
        "1!=2",
        "(((inputs.yes)))",
        "'true' != true",
        "1 != '1'",
    ] {
        assert!(holds(text), "{text}");
    }
}

#[test]
fn what_does_not_hold() {
    for text in [
        "false",
        "null",
        "0",
        "0.0",
        "-0",
        "''",
        "inputs.missing",
        "inputs.missing == null",
        "inputs.missing.deeper",
        "inputs.market.length",
        "inputs.constructor",
        "other.market",
        "market",
        "inputs.market == 'eth'",
        "inputs.n == '3'",
        "'10' < 9",
        "9 < '10'",
        "null < 1",
        "true > false",
        "inputs.list > 0",
        "inputs.missing < 1",
        "inputs.missing >= inputs.missing",
        "!true == true",
        "3 > 2 > 1",
        "true && false || false",
        "state.other",
        "inputs.",
        "inputs..market",
    ] {
        assert!(!holds(text), "{text}");
    }
}

#[test]
fn complaints_word_for_word_with_their_column() {
    for (text, column, reason) in [
        ("", 1, "condition expression is empty"),
        ("  \t\n", 5, "condition expression is empty"),
        ("'abc", 1, "unterminated string literal"),
        ("true == \"abc'", 9, "unterminated string literal"),
        ("'abc\\'", 1, "unterminated string literal"),
        ("-", 1, "invalid number at 0"),
        ("1 - 2", 3, "invalid number at 2"),
        ("- 2", 1, "invalid number at 0"),
        ("a = b", 3, "unexpected token '=' at 2"),
        ("a & b", 3, "unexpected token '&' at 2"),
        ("a ? b", 3, "unexpected token '?' at 2"),
        ("  a ? b", 5, "unexpected token '?' at 2"),
        ("'😀' ? b", 5, "unexpected token '?' at 5"),
        (".5", 1, "unexpected token '.' at 0"),
        ("5.", 2, "unexpected token '.' at 1"),
        ("a b", 3, "unexpected token at 2"),
        ("a)", 2, "unexpected token at 1"),
        ("a &&", 5, "unexpected token at 4"),
        ("&& a", 1, "unexpected token at 0"),
        ("1.2.3", 4, "unexpected token '.' at 3"),
        ("1-2", 2, "unexpected token at 1"),
        ("()", 2, "unexpected token at 1"),
        ("(a", 3, "missing closing parenthesis near 2"),
        ("(a b)", 4, "missing closing parenthesis near 3"),
        ("!", 2, "unexpected token at 1"),
    ] {
        let error = Expression::parse(text).unwrap_err();
        assert_eq!(
            (error.reason.as_str(), error.column),
            (reason, column),
            "{text:?}"
        );
    }
    let error = Expression::parse("a ==").unwrap_err();
    assert_eq!(
        error.to_string(),
        "read the condition \"a ==\", column 5: unexpected token at 4"
    );
}

#[test]
fn size_and_depth_have_a_limit() {
    let long = format!("'{}'", "x".repeat(EXPRESSION_BYTES_MAX));
    let error = Expression::parse(&long).unwrap_err();
    assert_eq!(
        error.reason,
        "condition expression has more than 4096 bytes"
    );
    let nested = |depth: usize| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
    assert!(Expression::parse(&nested(64)).is_ok());
    let error = Expression::parse(&nested(65)).unwrap_err();
    assert_eq!(error.reason, "nested more than 64 deep at 65");
    assert!(Expression::parse(&"!".repeat(4_000)).is_err());
    let chain = format!("true{}", " && true".repeat(500));
    assert!(holds(&chain));
}

#[test]
fn paths_are_listed_in_order() {
    let expression =
        Expression::parse("inputs.a == 1 && (!payload.b || state.c < inputs.d)").unwrap();
    assert_eq!(
        expression.paths(),
        ["inputs.a", "payload.b", "state.c", "inputs.d"]
    );
}

#[test]
fn it_is_kept_as_its_text() {
    let expression = Expression::parse("  inputs.a == 'x' ").unwrap();
    let text = serde_json::to_string(&expression).unwrap();
    assert_eq!(text, r#""inputs.a == 'x'""#);
    assert_eq!(
        serde_json::from_str::<Expression>(&text).unwrap(),
        expression
    );
    assert!(serde_json::from_str::<Expression>(r#""a ==""#).is_err());
}

proptest! {
    #[test]
    fn nothing_makes_it_panic(text in r#"([a-z.]{0,4}|[0-9.-]{0,3}|[()!<>=&|'"\\ ]|\PC){0,24}"#) {
        if let Ok(expression) = Expression::parse(&text) {
            let held = expression.holds(&context());
            assert_eq!(Expression::parse(expression.as_str()).unwrap().holds(&context()), held);
        }
    }
}
