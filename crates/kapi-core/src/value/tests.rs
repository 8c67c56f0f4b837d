//! Values: one form each, compared without rounding, written as a JSON library does.

use std::cmp::Ordering;

use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};

use super::KernelValue;

fn json(text: &str) -> KernelValue {
    serde_json::from_str(text).unwrap()
}

#[test]
fn numbers_have_one_form() {
    for (left, right) in [
        ("1.0", "1"),
        ("1e3", "1000"),
        ("-0.0", "0"),
        ("0.10", "0.1"),
        ("1.50e1", "15"),
    ] {
        assert_eq!(json(left), json(right), "{left}");
    }
    assert_eq!(json("0.1").to_json(), "0.1");
    assert_eq!(
        json("18446744073709551615").to_json(),
        "18446744073709551615"
    );
    assert_eq!(json("1e300").to_json().len(), 301);
    assert_eq!(KernelValue::from_float(f64::NAN), None);
    assert_eq!(KernelValue::from_float(f64::INFINITY), None);
}

#[test]
fn numbers_are_read_as_they_are_written() {
    let read = |text: &str| KernelValue::parse_number(text).map(|value| value.to_json());
    for (text, form) in [
        ("7", "7"),
        ("-7", "-7"),
        ("007", "7"),
        ("-0", "0"),
        ("0.50", "0.5"),
        ("2.0", "2"),
        ("9223372036854775807", "9223372036854775807"),
    ] {
        assert_eq!(read(text).as_deref(), Some(form), "{text}");
    }
    for text in [
        "", "-", ".5", "5.", "1e3", "+1", "1.2.3", "0x1", "inf", "NaN", " 1",
    ] {
        assert_eq!(read(text), None, "{text}");
    }
    assert_eq!(read(&"9".repeat(400)), None);
}

#[test]
fn numbers_compare_without_rounding() {
    let ordered = [
        "-1e300",
        "-9223372036854775808",
        "-2",
        "-1.5",
        "-1.25",
        "-0.5",
        "0",
        "1e-9",
        "0.1",
        "0.30000000000000004",
        "0.5",
        "1",
        "9",
        "10",
        "10.01",
        "10.1",
        "9007199254740992",
        "9007199254740993",
        "9223372036854775807",
        "9223372036854775808",
        "1e300",
    ];
    for (location, left) in ordered.iter().enumerate() {
        for (other, right) in ordered.iter().enumerate() {
            let order = json(left).order(&json(right));
            assert_eq!(order, Some(location.cmp(&other)), "{left} {right}");
        }
    }
    let text = |text: &str| KernelValue::from(text);
    assert_eq!(text("a").order(&text("b")), Some(Ordering::Less));
    // In the order of ECMAScript a character beyond the first plane comes before U+FF61.
    assert_eq!(
        text("\u{1f600}").order(&text("\u{ff61}")),
        Some(Ordering::Less)
    );
    assert_eq!(text("1").order(&json("1")), None);
    assert_eq!(json("null").order(&json("null")), None);
}

#[test]
fn paths_lead_through_tables_and_lists() {
    let value = json(r#"{"a":{"b":[10,{"c":"x"}]},"":{"":1},"n":null}"#);
    let get = |path: &str| value.get(path).map(KernelValue::to_json);
    assert_eq!(get("a.b.0").as_deref(), Some("10"));
    assert_eq!(get("a.b.1.c").as_deref(), Some("\"x\""));
    assert_eq!(get("n").as_deref(), Some("null"));
    assert_eq!(get(".").as_deref(), Some("1"));
    for path in [
        "a.c", "a.b.2", "a.b.00", "a.b.+1", "a.b.-1", "a.b.0.0", "n.x", "a..b", "x",
    ] {
        assert_eq!(get(path), None, "{path}");
    }
}

#[test]
fn templates_get_text_bare_and_the_rest_as_json() {
    for (value, shown) in [
        (r#""a \"b\"""#, "a \"b\""),
        ("null", "null"),
        ("true", "true"),
        ("1.5", "1.5"),
        (r#"{"b":[1,"x\n"],"a":null}"#, r#"{"a":null,"b":[1,"x\n"]}"#),
    ] {
        assert_eq!(json(value).to_string(), shown);
    }
}

#[test]
fn a_key_stands_once() {
    let error = serde_json::from_str::<KernelValue>(r#"{"a":1,"a":2}"#).unwrap_err();
    assert!(error.to_string().contains("`a` is set twice"), "{error}");
}

fn values() -> impl Strategy<Value = KernelValue> {
    let leaf = prop_oneof![
        Just(KernelValue::Null),
        any::<bool>().prop_map(KernelValue::Bool),
        any::<i64>().prop_map(KernelValue::Integer),
        // What a JSON library reads without rounding.
        (any::<i32>(), 0..6_i32).prop_filter_map("a number", |(n, locations)| {
            KernelValue::from_float(f64::from(n) / 10_f64.powi(locations))
        }),
        any::<String>().prop_map(KernelValue::Text),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(KernelValue::List),
            prop::collection::btree_map(any::<String>(), inner, 0..5).prop_map(KernelValue::Map),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_reads_back(value in values()) {
        let text = serde_json::to_string(&value).unwrap();
        assert_eq!(json(&text), value);
        assert_eq!(json(&value.to_json()), value);
    }

    #[test]
    fn reading_numbers_never_panics(text in "[-0-9.]{0,40}") {
        if let Some(value) = KernelValue::parse_number(&text) {
            assert_eq!(value.order(&value), Some(Ordering::Equal));
        }
    }
}
