//! `ledger.jsonl`: one line for each segment and each run, with the field names of pi-autoresearch, so
//! that whatever reads its ledgers reads this one.
//!
//! A projection: nothing is ever read back from it. Fields of ours stand beside theirs. A run without
//! a metric has none here, not a zero that would be the best.

use std::collections::BTreeMap;

use kapi_check::rules::measure::number::Number;
use kapi_core::text::one_line;
use kapi_core::value::KernelValue;

use crate::rules::modes::autoresearch::contract::Metric;
use crate::rules::modes::autoresearch::run::{Run, RunStatus};
use crate::rules::modes::autoresearch::state::Autoresearch;
use crate::rules::modes::autoresearch::summary::confidences;
use crate::rules::state::Workflow;

/// Returns the document.
pub(super) fn text(workflow: &Workflow, search: &Autoresearch) -> String {
    let mut text = String::new();
    for segment in search.segments() {
        line(&mut text, config(workflow, search.metric_of(segment)));
        let confidences = confidences(search, segment);
        for run in search.of_segment(segment) {
            line(&mut text, entry(run, confidences.get(&run.number).copied()));
        }
    }
    text
}

fn line(text: &mut String, fields: Vec<(&str, KernelValue)>) {
    let fields = fields
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value));
    text.push_str(&KernelValue::Map(fields.collect()).to_json());
    text.push('\n');
}

fn config(workflow: &Workflow, metric: Option<&Metric>) -> Vec<(&'static str, KernelValue)> {
    let mut fields = vec![
        ("type", KernelValue::Text("config".to_owned())),
        ("name", KernelValue::Text(one_line(&workflow.purpose))),
    ];
    if let Some(metric) = metric {
        fields.extend([
            ("metricName", KernelValue::Text(metric.name.clone())),
            ("metricUnit", KernelValue::Text(metric.unit.clone())),
            (
                "bestDirection",
                KernelValue::Text(metric.direction.as_str().to_owned()),
            ),
        ]);
    }
    fields
}

fn entry(run: &Run, confidence: Option<Number>) -> Vec<(&'static str, KernelValue)> {
    let others = run
        .metrics
        .iter()
        .map(|reading| (reading.name.clone(), number(Some(reading.value))));
    let samples = run.samples.iter().map(|sample| number(Some(*sample)));
    let mut asi = BTreeMap::new();
    let mut say = |name: &str, text: &str| {
        if !text.is_empty() {
            asi.insert(name.to_owned(), KernelValue::Text(text.to_owned()));
        }
    };
    say("hypothesis", &run.hypothesis);
    if run.status != RunStatus::Keep {
        say("rollback_reason", &run.reason);
    }
    let text = |text: &str| KernelValue::Text(text.to_owned());
    let mut fields = vec![
        ("run", KernelValue::Integer(i64::from(run.number))),
        ("commit", text(&run.commit)),
        ("metric", number(run.metric)),
        ("metrics", KernelValue::Map(others.collect())),
        ("status", text(run.status.as_str())),
        ("description", text(&run.description)),
        ("timestamp", KernelValue::Integer(run.at_ms)),
        ("segment", KernelValue::Integer(i64::from(run.segment))),
        ("confidence", number(confidence)),
        ("reason", text(&run.reason)),
        ("tree", text(&run.tree)),
        ("samples", KernelValue::List(samples.collect())),
        (
            "benchmarkMs",
            KernelValue::Integer(i64::try_from(run.benchmark_ms).unwrap_or(i64::MAX)),
        ),
    ];
    if let Some(rule) = run.rule {
        fields.push(("rule", text(rule.as_str())));
    }
    if run.parent.is_some() {
        fields.push(("parent", number(run.parent)));
    }
    if !asi.is_empty() {
        fields.push(("asi", KernelValue::Map(asi)));
    }
    fields
}

fn number(number: Option<Number>) -> KernelValue {
    let number = number.and_then(|number| KernelValue::from_float(number.get()));
    number.unwrap_or(KernelValue::Null)
}
