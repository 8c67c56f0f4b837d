//! What every contract must be before a person is asked about it, and what speaks against it all the
//! same.
//!
//! Rules are refused with, all at once, so that one more answer can mend them; risks are shown, and
//! accepted with the approval.

use std::collections::BTreeSet;

use kapi_check::rules::measure::counter::Counter;
use kapi_check::rules::measure::metric_line::is_name;

use crate::rules::modes::autoresearch::contract::Contract;

/// The most bytes of a script.
const SCRIPT_BYTES_MAX: usize = 64 * 1024;
/// The most bytes of any other text.
const TEXT_BYTES_MAX: usize = 8 * 1024;
/// The most entries of a list.
const ITEMS_MAX: usize = 100;
/// The most bytes of a unit.
const UNIT_BYTES_MAX: usize = 20;
/// The most seconds that a script may take: a day.
const SECONDS_MAX: u32 = 86_400;
/// The most runs of a segment.
pub const RUNS_MAX: u32 = 1_000;
/// The most samples of one measurement.
const SAMPLES_MAX: u32 = 50;
/// The most agents at once.
const PARALLEL_MAX: u32 = 16;
/// The highest number of a processor.
const PROCESSOR_MAX: u32 = 1_023;
/// Words that stand where somebody meant to write something.
const PLACEHOLDERS: [&str; 4] = [
    concat!("TO", "DO"),
    "TBD",
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];

/// Checks every rule of a contract.
///
/// # Errors
/// What is wrong with it, as one text that tells whoever drafts it what to do.
pub fn check(contract: &Contract) -> Result<(), String> {
    let mut faults = Vec::new();
    faults.extend(text("objective", &contract.objective, TEXT_BYTES_MAX));
    faults.extend(metrics(contract));
    faults.extend(script("benchmark", &contract.benchmark));
    match (&contract.checks, &contract.no_checks) {
        (Some(checks), None) => faults.extend(script("checks", checks)),
        (None, Some(why)) => faults.extend(text("no_checks", why, TEXT_BYTES_MAX)),
        (Some(_), Some(_)) | (None, None) => faults
            .push("give either checks, or no_checks with the reason why there are none".to_owned()),
    }
    faults.extend(range(
        "benchmark_seconds",
        contract.benchmark_seconds,
        SECONDS_MAX,
    ));
    faults.extend(range(
        "checks_seconds",
        contract.checks_seconds,
        SECONDS_MAX,
    ));
    faults.extend(range("runs", contract.runs, RUNS_MAX));
    faults.extend(range("failures", contract.failures, RUNS_MAX));
    faults.extend(range("parallel", contract.parallel, PARALLEL_MAX));
    faults.extend(range("rule.samples", contract.rule.samples, SAMPLES_MAX));
    if contract.warmups > SAMPLES_MAX {
        faults.push(format!("give warmups 0 to {SAMPLES_MAX}"));
    }
    faults.extend(processors(&contract.processors));
    if contract.rule.least_permille > 1_000 {
        faults.push("give rule.least_permille 0 to 1000".to_owned());
    }
    if contract.scope.is_empty() {
        faults.push("name in scope the files that may be changed".to_owned());
    }
    faults.extend(patterns("scope", &contract.scope));
    faults.extend(patterns("off_limits", &contract.off_limits));
    faults.extend(list("constraints", &contract.constraints));
    if faults.is_empty() {
        return Ok(());
    }
    Err(format!("mend the contract: {}", faults.join("; ")))
}

/// Returns what speaks against approving a contract.
#[must_use]
pub fn risks(contract: &Contract) -> Vec<String> {
    let mut risks = Vec::new();
    if let Some(why) = &contract.no_checks {
        risks.push(format!(
            "nothing but the metric is checked: {}",
            why.trim().trim_end_matches('.')
        ));
    }
    let is_open = contract.scope.iter().any(|it| !names_a_file(it));
    if contract.off_limits.is_empty() && is_open {
        risks.push(
            "no file is off limits: a change may make the benchmark's own input or code easier"
                .to_owned(),
        );
    }
    risks
}

/// Tells whether an entry of the scope names one file by its name and ending, such as `src/sort.rs`;
/// patterns and directories take in files that nobody named.
fn names_a_file(entry: &str) -> bool {
    let name = entry.rsplit('/').next().unwrap_or_default();
    let has_ending = name.rfind('.').is_some_and(|at| at > 0);
    has_ending && !entry.contains(['*', '?', '[', '{'])
}

fn metrics(contract: &Contract) -> Vec<String> {
    let primary = (&contract.metric.name, &contract.metric.unit);
    let secondary = contract.secondary.iter().map(|it| (&it.name, &it.unit));
    let mut names = BTreeSet::new();
    let mut faults = Vec::new();
    for (name, unit) in [primary].into_iter().chain(secondary) {
        if !is_name(name) {
            faults.push(format!(
                "name the metric {name:?} with letters, digits, `_` and `.` only"
            ));
        }
        if Counter::is_reserved(name) && Counter::of(name).is_none() {
            let known = Counter::ALL.map(Counter::name).join(", ");
            faults.push(format!(
                "name one of Kapi's own metrics ({known}), not {name}"
            ));
        }
        if !names.insert(name) {
            faults.push(format!("name the metric {name} once"));
        }
        if unit.len() > UNIT_BYTES_MAX || unit.contains(char::is_whitespace) {
            faults.push(format!("give {name} a unit of one word"));
        }
    }
    if contract.secondary.len() > ITEMS_MAX {
        faults.push(format!("give secondary at most {ITEMS_MAX} entries"));
    }
    faults
}

fn processors(numbers: &[u32]) -> Option<String> {
    let distinct: BTreeSet<&u32> = numbers.iter().collect();
    let is_odd = distinct.len() < numbers.len() || numbers.iter().any(|it| *it > PROCESSOR_MAX);
    is_odd.then(|| format!("give in processors each number from 0 to {PROCESSOR_MAX} once at most"))
}

fn script(name: &str, script: &str) -> Option<String> {
    text(name, script, SCRIPT_BYTES_MAX)
}

fn text(name: &str, text: &str, bytes_max: usize) -> Option<String> {
    if text.trim().is_empty() || text.len() > bytes_max {
        return Some(format!("give {name} 1 to {bytes_max} bytes"));
    }
    let is_word = |c: char| c.is_ascii_alphanumeric();
    let mut words = text.split(|c: char| !is_word(c));
    let found = words.find(|word| PLACEHOLDERS.contains(word))?;
    Some(format!("replace {found} in {name} with its value"))
}

fn range(name: &str, value: u32, most: u32) -> Option<String> {
    (!(1..=most).contains(&value)).then(|| format!("give {name} 1 to {most}"))
}

fn list(name: &str, items: &[String]) -> Vec<String> {
    let mut faults: Vec<String> = items
        .iter()
        .filter_map(|item| text(&format!("every entry of {name}"), item, TEXT_BYTES_MAX))
        .collect();
    faults.truncate(1);
    if items.len() > ITEMS_MAX {
        faults.push(format!("give {name} at most {ITEMS_MAX} entries"));
    }
    faults
}

/// The same patterns are matched by rules and by git, so only what both read alike is let in.
fn patterns(name: &str, items: &[String]) -> Vec<String> {
    let mut faults = list(name, items);
    let is_odd = |pattern: &&String| {
        pattern.starts_with(['/', ':', '!'])
            || pattern.contains(['{', '\\', '\n'])
            || pattern.split('/').any(|part| part == "..")
    };
    faults.extend(items.iter().find(is_odd).map(|pattern| {
        format!(
            "write {pattern:?} in {name} as a path below the top of the repository, with `*`, `?`, \
             `[…]` and `**` at most"
        )
    }));
    faults
}

#[cfg(test)]
mod tests {
    use super::{check, risks};
    use crate::rules::modes::autoresearch::contract::{Contract, SecondaryMetric};
    use crate::rules::modes::autoresearch::fixture::contract;

    type Change = fn(&mut Contract);

    fn refused(change: Change) -> String {
        let mut changed = contract();
        change(&mut changed);
        check(&changed).unwrap_err()
    }

    #[test]
    fn a_contract_is_whole_before_anybody_is_asked_about_it() {
        assert_eq!(check(&contract()), Ok(()));
        let cases: [(Change, &str); 18] = [
            (|it| it.objective = " ".to_owned(), "objective"),
            (|it| it.metric.name = "a b".to_owned(), "letters, digits"),
            (|it| it.metric.unit = "a b".to_owned(), "unit of one word"),
            (
                |it| {
                    it.secondary = vec![SecondaryMetric {
                        name: it.metric.name.clone(),
                        unit: String::new(),
                    }];
                },
                "once",
            ),
            (
                |it| it.benchmark = "# TODO: measure\n".to_owned(),
                "replace TODO in benchmark",
            ),
            (|it| it.checks = None, "either checks"),
            (|it| it.no_checks = Some("none".to_owned()), "either checks"),
            (|it| it.benchmark_seconds = 0, "benchmark_seconds"),
            (|it| it.runs = 1_001, "runs 1 to 1000"),
            (|it| it.failures = 0, "failures"),
            (|it| it.scope.clear(), "scope"),
            (|it| it.scope = vec!["../x".to_owned()], "below the top"),
            (
                |it| it.off_limits = vec!["{a,b}".to_owned()],
                "below the top",
            ),
            (|it| it.rule.samples = 0, "rule.samples"),
            (|it| it.parallel = 0, "parallel 1 to 16"),
            (|it| it.warmups = 51, "warmups 0 to 50"),
            (|it| it.processors = vec![1, 1], "once at most"),
            (
                |it| it.metric.name = "kapi.cycles".to_owned(),
                "not kapi.cycles",
            ),
        ];
        for (change, expected) in cases {
            let reported = refused(change);
            assert!(reported.contains(expected), "{reported}");
        }
    }

    #[test]
    fn what_is_left_unguarded_is_a_risk() {
        let mut contract = contract();
        assert_eq!(risks(&contract), [""; 0]);
        contract.checks = None;
        contract.no_checks = Some("It only prints.".to_owned());
        contract.off_limits.clear();
        let risks = risks(&contract);
        assert_eq!(
            risks[0],
            "nothing but the metric is checked: It only prints"
        );
        assert!(risks[1].starts_with("no file is off limits"));
    }

    #[test]
    fn files_named_one_by_one_need_nothing_off_limits() {
        let mut contract = contract();
        contract.off_limits.clear();
        contract.scope = vec!["run.sh".to_owned(), "lib/sort.sh".to_owned()];
        assert_eq!(risks(&contract), [""; 0]);
        for open in ["src/**", "src", ".", "*.sh"] {
            contract.scope[0] = open.to_owned();
            assert_eq!(risks(&contract).len(), 1, "{open}");
        }
    }
}
