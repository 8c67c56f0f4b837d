//! Tests of filling a body.

use std::collections::BTreeMap;

use kapi_core::value::KernelValue;

use super::{PreviousRun, Template, TemplateError, TemplateScope, check_input_name};
use crate::rules::request::PROMPT_BYTES_MAX;

fn text(text: &str) -> KernelValue {
    KernelValue::Text(text.to_owned())
}

fn map(pairs: &[(&str, KernelValue)]) -> BTreeMap<String, KernelValue> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect()
}

fn inputs() -> BTreeMap<String, KernelValue> {
    let deep = map(&[(
        "b",
        KernelValue::List(vec![KernelValue::Integer(7), text("x")]),
    )]);
    map(&[
        ("market", text("ETH")),
        ("a", KernelValue::Map(deep)),
        ("sly", text("{market} {payload.x}")),
        ("open", KernelValue::Null),
        ("n-1", KernelValue::Bool(true)),
    ])
}

fn render(body: &str) -> Result<String, TemplateError> {
    let inputs = inputs();
    let payload = KernelValue::Map(map(&[
        ("x", text("{market}")),
        ("empty", KernelValue::Null),
    ]));
    let scope = TemplateScope {
        inputs: &inputs,
        payload: &payload,
        trigger_type: "event",
        trigger_source: "file src/**",
        last: PreviousRun {
            summary: "S",
            next_action: "N",
            status: "failed",
        },
    };
    Template::parse(body).render(&scope)
}

#[test]
fn values_are_put_in_their_places() {
    for (body, expected) in [
        ("Analyze {market}.", "Analyze ETH."),
        ("{a.b.0}{a.b.1}", "7x"),
        ("{a}", r#"{"b":[7,"x"]}"#),
        ("{n-1}", "true"),
        (
            "{payload.x}|{payload}",
            r#"{market}|{"empty":null,"x":"{market}"}"#,
        ),
        ("{trigger.type} {trigger.source}", "event file src/**"),
        ("{last.summary}{last.next_action}{last.status}", "SNfailed"),
        ("", ""),
    ] {
        assert_eq!(render(body).unwrap(), expected, "{body}");
    }
}

#[test]
fn what_was_inserted_is_never_read_again() {
    assert_eq!(render("{sly}").unwrap(), "{market} {payload.x}");
}

#[test]
fn braces_that_are_no_placeholder_stay_as_they_are() {
    for body in [
        "{}",
        "{ market }",
        r#"{"a": {"b": {}}}"#,
        r#"{"nested":{"market":1}}"#,
        "fn main() { let x = [1]; }",
        "${{ github.ref }}",
        "{market",
        "market}",
        "{1}",
        "{a..b}",
        "{.a}",
        "{a.}",
        "{ä}",
        "}}{{",
        "{{ market }}",
        "{\nmarket\n}",
    ] {
        assert_eq!(render(body).unwrap(), body, "{body}");
    }
}

#[test]
fn a_name_in_double_braces_stands_for_itself() {
    for (body, expected) in [
        ("{{market}}", "{market}"),
        ("println!(\"{{name}}\")", "println!(\"{name}\")"),
        ("{{{market}}}", "{{market}}"),
        ("{{market}", "{ETH"),
        ("{{unknown.name}}", "{unknown.name}"),
    ] {
        assert_eq!(render(body).unwrap(), expected, "{body}");
    }
}

#[test]
fn what_is_not_known_is_refused_with_its_line() {
    let error = render("one\ntwo {market}\nthree {makret}").unwrap_err();
    assert_eq!(
        error.to_string(),
        "fill line 3 of the body: unknown placeholder {makret}; available: a, market, n-1, open, \
         sly, payload.empty, payload.x, trigger.type, trigger.source, last.summary, \
         last.next_action, last.status"
    );
    for body in [
        "{payload.y}",
        "{a.c}",
        "{a.b.2}",
        "{trigger}",
        "{last}",
        "{last.x}",
        "{market.x}",
    ] {
        let error = render(body).unwrap_err();
        assert!(matches!(error, TemplateError::Unknown { .. }), "{body}");
    }
    for body in ["{open}", "{payload.empty}"] {
        let error = render(body).unwrap_err();
        assert!(matches!(error, TemplateError::NoValue { .. }), "{body}");
    }
}

#[test]
fn a_body_is_checked_before_anything_runs() {
    let unknown = |body: &str| -> Vec<(usize, String)> {
        Template::parse(body)
            .unknown(&inputs())
            .into_iter()
            .map(|unknown| (unknown.line, unknown.name))
            .collect()
    };
    assert_eq!(
        unknown("{market} {payload.any.thing} {open.deep} {last.status} {{x}}"),
        []
    );
    let found = unknown("{x}\n{x}\n\n{a.c} {trigger.x}");
    let expected = [(1, "x"), (4, "a.c"), (4, "trigger.x")];
    assert_eq!(found, expected.map(|(line, name)| (line, name.to_owned())));
}

#[test]
fn no_prompt_grows_without_end() {
    let inputs = map(&[("long", text(&"x".repeat(PROMPT_BYTES_MAX / 2)))]);
    let payload = KernelValue::Null;
    let scope = TemplateScope {
        inputs: &inputs,
        payload: &payload,
        trigger_type: "manual",
        trigger_source: "",
        last: PreviousRun::NONE,
    };
    let render = |body: &str| Template::parse(body).render(&scope);
    assert_eq!(render("{long}{long}").unwrap().len(), PROMPT_BYTES_MAX);
    assert_eq!(render("{long}{long}."), Err(TemplateError::TooLong));
}

#[test]
fn names_of_inputs_can_be_written_as_placeholders() {
    for name in ["a", "_a", "A1", "max-age", &"a".repeat(64)] {
        assert_eq!(check_input_name(name), Ok(()), "{name}");
    }
    for name in [
        "",
        "1a",
        "a b",
        "a.b",
        "payload",
        "trigger",
        "last",
        "ä",
        &"a".repeat(65),
    ] {
        assert!(check_input_name(name).is_err(), "{name}");
    }
}

mod properties {
    use kapi_core::value::KernelValue;
    use proptest::prelude::{any, proptest};

    use super::{PreviousRun, Template, TemplateScope, map, text};

    proptest! {
        /// Whatever a value holds, it stands in the result as it is, once.
        #[test]
        fn a_value_comes_out_as_it_went_in(value in any::<String>(), before in "[a-z {}\"]{0,20}") {
            let inputs = map(&[("v", text(&value)), ("w", text("W"))]);
            let payload = KernelValue::Null;
            let scope = TemplateScope {
                inputs: &inputs,
                payload: &payload,
                trigger_type: "manual",
                trigger_source: "",
                last: PreviousRun::NONE,
            };
            let rendered = Template::parse("<{v}>{w}").render(&scope).unwrap();
            assert_eq!(rendered, format!("<{value}>W"));
            // No text makes it fail in another way than by naming what it does not know.
            drop(Template::parse(&before).render(&scope));
        }
    }
}
