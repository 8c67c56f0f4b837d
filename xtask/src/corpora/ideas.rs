//! `cargo xtask ideas`: the mixed bag of ideas of kapi-testkit, measured by the clock of this machine.
//!
//! Two searches try the same ideas: one keeps what was quicker once, the other what a strict rule finds
//! quicker. A lucky spike is among them. Only the strict one has to be right. The program and its judge run on
//! one processor: on two, a pause before the first question can make every answer quicker.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use kapi_sys::disk::replace_durably;
use kapi_sys::real_disk::RealDisk;
use kapi_testkit::mixed_bag::idea::{Idea, mixed_bag, researcher, spike};
use kapi_testkit::mixed_bag::{CHECKED, TIMED, write_held_back, write_program};
use serde_json::Value;

use super::case_directory::{CaseDirectory, write};
use super::search::{SearchStart, ledger, start};
use super::{CorpusOptions, program_under_test, target_directory};
use crate::document::with_part;
use crate::output::{say, talk};
use crate::tool::ToolCommand;

/// What is written.
const DOCUMENT: &str = "docs/autoresearch.md";
/// The line after which it is.
const BEGIN: &str = "<!-- made by `cargo xtask ideas --write` -->\n";
/// How each search keeps.
const RULES: [SearchRule; 2] = [
    SearchRule {
        name: "plain",
        options: &["--keep", "plain"],
        is_strict: false,
    },
    SearchRule {
        name: "ranked, 5 % at least",
        options: &["--keep", "ranked", "--least", "5"],
        is_strict: true,
    },
];
/// The longest a search may take: the strict rule measures up to 60 times for an idea, and 60 more on the
/// inputs that are held back.
const DEADLINE: Duration = Duration::from_secs(3 * 60 * 60);

/// A rule by which a search keeps.
struct SearchRule {
    name: &'static str,
    options: &'static [&'static str],
    /// Whether luck must not matter to it.
    is_strict: bool,
}

/// Lets every rule decide about the bag, and shows what it kept.
///
/// # Errors
/// When the words cannot be read, a search does not end, or the strict rule keeps anything else than the
/// real gains.
pub(crate) fn run(root: &Path, words: &[&str]) -> anyhow::Result<()> {
    let options = CorpusOptions::parse(words)?;
    let only = CorpusOptions {
        kapi: options.kapi.clone(),
        keep: options.keep,
        write: options.write,
        jobs: options.jobs,
        ..CorpusOptions::default()
    };
    ensure!(
        options == only,
        "read the options: give --kapi PATH, --keep or --write"
    );
    let kapi = program_under_test(root, &options)?;
    let location = target_directory(root)?.join("corpora").join("ideas");
    let bag = bag();
    let mut searches = Vec::new();
    for rule in &RULES {
        talk(&format!("Searching by the rule `{}` …", rule.name));
        let case = CaseDirectory::new(&location, rule.name, options.keep)?;
        searches.push(search(&kapi, &case, &bag, rule)?);
    }
    let table = table(&bag, &searches)?;
    say(&table);
    if options.write {
        write_table(root, &table)?;
    }
    judge(&bag, &searches)
}

/// Returns the ideas of the bag, with a lucky spike once the first gain is kept.
fn bag() -> Vec<Idea> {
    let mut bag = mixed_bag();
    bag.insert(1, spike());
    bag
}

/// Tries the bag by a rule, and returns the runs, the baseline first.
fn search(
    kapi: &Path,
    case: &CaseDirectory,
    bag: &[Idea],
    rule: &SearchRule,
) -> anyhow::Result<Vec<Value>> {
    let shell = case.shell(DEADLINE);
    write_program(&case.repository())?;
    for args in [
        &["init", "--quiet"][..],
        &["add", "--all"],
        &["commit", "--quiet", "--message=base"],
    ] {
        let args: Vec<String> = args.iter().map(|&word| word.to_owned()).collect();
        let ended = shell.run(Path::new("/usr/bin/git"), &args, "")?;
        ensure!(
            ended.code == Some(0),
            "{}: {}",
            args.join(" "),
            ended.last_words()
        );
    }
    let held_back = case.root().join("held-back");
    write_held_back(&held_back)?;
    let script = case.root().join("researcher.yaml");
    write(&script, &researcher(bag))?;
    let agent = format!("script:{}", script.display());
    let held_back = held_back.display().to_string();
    let words = [
        "autoresearch",
        "less time",
        "--unlinked",
        "--no-drive",
        "--agent",
        &agent,
    ];
    let limits = [
        "--held-back",
        &held_back,
        "--benchmark-timeout",
        "20s",
        "--pin",
        "0",
    ];
    let words = [&words[..], TIMED, CHECKED, &limits, rule.options].concat();
    match start(kapi, &shell, &words)? {
        SearchStart::Driven(_) => ledger(&case.repository()),
        SearchStart::Refused(refused) => bail!("{}: {}", words.join(" "), refused.last_words()),
    }
}

fn table(bag: &[Idea], searches: &[Vec<Value>]) -> anyhow::Result<String> {
    let mut text = "| idea | deserves |".to_owned();
    for rule in &RULES {
        write!(text, " {} |", rule.name)?;
    }
    text.push_str("\n|---|---|");
    text.push_str(&"---|".repeat(RULES.len()));
    text.push('\n');
    for idea in bag {
        write!(text, "| {} | `{}` |", idea.description, idea.status)?;
        for runs in searches {
            let outcome = run_of(idea, runs).map_or("changed nothing".to_owned(), outcome);
            write!(text, " {outcome} |")?;
        }
        text.push('\n');
    }
    Ok(text)
}

/// Returns the run that tried an idea; nothing where there was nothing left to change.
fn run_of<'a>(idea: &Idea, runs: &'a [Value]) -> Option<&'a Value> {
    runs.iter()
        .find(|run| run["description"] == idea.description)
}

/// Returns what became of a run, with its time beside that of what it was compared with.
fn outcome(run: &Value) -> String {
    let status = run["status"].as_str().unwrap_or_default();
    run["metric"].as_f64().map_or_else(
        || format!("`{status}`"),
        |metric| format!("`{status}`, {:.1} ms", metric / 1_000.0),
    )
}

fn write_table(root: &Path, table: &str) -> anyhow::Result<()> {
    let path: PathBuf = root.join(DOCUMENT);
    let old = fs::read_to_string(&path).with_context(|| format!("read {DOCUMENT}"))?;
    let commit = ToolCommand::new(root, "git", &["rev-parse", "--short", "HEAD"]).read()?;
    let part = format!("{table}\nMeasured with Kapi at {}.\n", commit.trim());
    let new = with_part(&old, BEGIN, &part).with_context(|| format!("write {DOCUMENT}"))?;
    replace_durably(&RealDisk, &path, new.as_bytes())?;
    talk(&format!("The table is in {DOCUMENT}."));
    Ok(())
}

/// Holds the strict rules to keeping the real gains and nothing else.
fn judge(bag: &[Idea], searches: &[Vec<Value>]) -> anyhow::Result<()> {
    let is_kept = |status: &str| status == "keep";
    let mut wrong = Vec::new();
    for (rule, runs) in RULES.iter().zip(searches) {
        for idea in bag {
            let run = run_of(idea, runs).unwrap_or(&Value::Null);
            let status = run["status"].as_str().unwrap_or("changed nothing");
            if rule.is_strict && is_kept(status) != is_kept(idea.status) {
                wrong.push(format!(
                    "{}: {}: {status}: {}",
                    rule.name, idea.description, run["reason"]
                ));
            }
        }
    }
    ensure!(
        wrong.is_empty(),
        "keep exactly the real gains by the clock:\n{}",
        wrong.join("\n")
    );
    Ok(())
}
