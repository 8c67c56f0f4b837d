//! `cargo xtask cheats`: every change of the corpus, by every way, against the built program.
//!
//! Two at a time, each in a home and a repository of its own.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context as _, bail};

use super::case_directory::{CaseDirectory, write};
use super::ecosystem::CorpusEcosystem;
use super::outcome::CaseOutcome;
use super::plan::{BY_HAND, PlannedRun, plan};
use super::request::CorpusRequest;
use super::results::{CaseResult, RESULTS, read_results};
use super::{
    CorpusOptions, ecosystem, page, program_under_test, releases, summary, target_directory,
};
use crate::output::{say, talk};
use crate::peers;
use crate::tool::find;

/// The longest that one run may take.
const DEADLINE: Duration = Duration::from_secs(180);
/// The longest that the dependencies of one ecosystem may take.
const PREPARATION: Duration = Duration::from_secs(600);
/// The file in a cache that says it is whole, and for which preparation.
const PREPARED: &str = ".prepared";

/// Runs the corpus of cheats and honest changes.
///
/// # Errors
/// When the words cannot be read, something cannot be tried here, or an outcome is not the expected
/// one, unless `--report-only` was said.
pub(crate) fn run(root: &Path, words: &[&str]) -> anyhow::Result<()> {
    let options = CorpusOptions::parse(words)?;
    let mut all = ecosystem::load(root)?;
    all.extend(releases::load(root)?);
    let planned = plan(&all, &options);
    if options.list {
        planned.iter().for_each(|run| say(&run.name()));
        return Ok(());
    }
    peers::ensure(root, peers::FOR_CORPORA)?;
    let kapi = program_under_test(root, &options)?;
    let location = target_directory(root)?.join("corpora");
    let started = Instant::now();
    let mut missing = Vec::new();
    let mut ready = Vec::new();
    for ecosystem in &all {
        if !planned
            .iter()
            .any(|run| run.ecosystem.name == ecosystem.name)
        {
            continue;
        }
        match prepare(ecosystem, &location) {
            Ok(()) => ready.push(ecosystem.name.as_str()),
            Err(error) => missing.push(format!("{}: {error:#}", ecosystem.name)),
        }
    }
    let planned: Vec<PlannedRun<'_>> = planned
        .into_iter()
        .filter(|run| ready.contains(&run.ecosystem.name.as_str()))
        .collect();
    let results = perform_all(&planned, &kapi, &location, &options);
    let total = summary::of(&results);
    say(&total.text());
    say(&format!(
        "{} runs in {:.0} s.",
        results.len(),
        started.elapsed().as_secs_f64()
    ));
    for line in &missing {
        talk(&format!("cannot be tried here: {line}"));
    }
    if options.is_whole() || options.write {
        let known = if options.is_whole() {
            Vec::new()
        } else {
            read_results(&location.join(RESULTS))?
        };
        let text = serde_json::to_string(&merged(known, &results)).context("write the results")?;
        write(&location.join(RESULTS), &text)?;
    }
    if options.write {
        page::write(root, &location, &options)?;
    }
    let failures = results.iter().filter(|result| !result.as_expected).count();
    if options.report_only || (failures == 0 && missing.is_empty()) {
        return Ok(());
    }
    bail!(
        "meet every expectation: {failures} runs came out otherwise, {} ecosystems could not be tried",
        missing.len()
    )
}

/// Returns known results with these in the place of those of the same runs.
fn merged(mut known: Vec<CaseResult>, new: &[CaseResult]) -> Vec<CaseResult> {
    let same = |one: &CaseResult, other: &CaseResult| {
        (&one.ecosystem, &one.case, &one.way) == (&other.ecosystem, &other.case, &other.way)
    };
    known.retain(|one| !new.iter().any(|other| same(one, other)));
    known.extend(new.iter().cloned());
    known.sort_by_key(key);
    known
}

fn key(one: &CaseResult) -> (String, String, String) {
    (one.ecosystem.clone(), one.case.clone(), one.way.clone())
}

/// Checks that an ecosystem can be tried here, and fetches its dependencies once.
fn prepare(ecosystem: &CorpusEcosystem, location: &Path) -> anyhow::Result<()> {
    for program in &ecosystem.needs {
        find(program).with_context(|| format!("find {program} on the search path"))?;
    }
    let Some(script) = &ecosystem.prepare else {
        return Ok(());
    };
    let cache = cache_of(ecosystem, location);
    let mark = cache.join(PREPARED);
    let wanted = format!("{script}\n{:?}\n", ecosystem.files);
    if fs::read_to_string(&mark).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    talk(&format!(
        "Fetching the dependencies of {} into {} …",
        ecosystem.name,
        cache.display()
    ));
    let inner = CaseDirectory::new(location, &format!("prepare-{}", ecosystem.name), false)?;
    CaseDirectory::write_all(&inner.repository(), &ecosystem.files)?;
    let prepared = inner.shell(PREPARATION).with_client_settings().must(script);
    prepared.context("fetch the dependencies: can the registry be reached?")?;
    if cache.exists() {
        fs::remove_dir_all(&cache).with_context(|| format!("clear {}", cache.display()))?;
    }
    if let Some(parent) = cache.parent() {
        fs::create_dir_all(parent).with_context(|| format!("create {}", parent.display()))?;
    }
    fs::rename(inner.repository(), &cache)
        .with_context(|| format!("keep the dependencies in {}", cache.display()))?;
    write(&mark, &wanted)
}

fn cache_of(ecosystem: &CorpusEcosystem, location: &Path) -> PathBuf {
    location.join("cache").join(&ecosystem.name)
}

fn perform_all(
    planned: &[PlannedRun<'_>],
    kapi: &Path,
    location: &Path,
    options: &CorpusOptions,
) -> Vec<CaseResult> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    let work = || {
        while let Some(run) = planned.get(next.fetch_add(1, Ordering::Relaxed)) {
            let started = Instant::now();
            let outcome = perform(run, kapi, location, options)
                .unwrap_or_else(|error| CaseOutcome::Broken(format!("{error:#}")));
            let result = result_of(run, outcome, started.elapsed());
            say(&summary::line(&result));
            if let Ok(mut results) = results.lock() {
                results.push(result);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(work);
        }
    });
    let mut results = results.into_inner().unwrap_or_default();
    results.sort_by_key(key);
    results
}

fn result_of(run: &PlannedRun<'_>, outcome: CaseOutcome, took: Duration) -> CaseResult {
    let as_expected = match run.entry {
        Some(_) => outcome.meets(run.case.expect),
        None => (outcome == CaseOutcome::Accepted) == run.case.passes_by_hand,
    };
    CaseResult {
        ecosystem: run.ecosystem.name.clone(),
        case: run.case.name.clone(),
        kind: run.case.kind.clone(),
        expect: run.case.expect,
        way: run
            .entry
            .map_or(BY_HAND, super::entry::Entrance::name)
            .to_owned(),
        outcome,
        as_expected,
        took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
    }
}

fn perform(
    run: &PlannedRun<'_>,
    kapi: &Path,
    location: &Path,
    options: &CorpusOptions,
) -> anyhow::Result<CaseOutcome> {
    let directory = CaseDirectory::new(&location.join("cases"), &run.name(), options.keep)?;
    let shell = directory.shell(DEADLINE);
    let script = lay_out(run, &directory, location)?;
    let Some(entry) = run.entry else {
        return by_hand(run, &script, &directory);
    };
    let mut words = run.case.options.clone();
    if run.case.asks_base {
        let green = shell.sh(run.verify())?.code == Some(0);
        shell.must(&format!(
            "git clean --quiet --force -d -x{}",
            kept(run.ecosystem)
        ))?;
        words.extend(green.then(|| "--already-green".to_owned()));
    }
    if run.case.hidden {
        let checks = directory.root().join("checks");
        CaseDirectory::write_all(&checks, &run.ecosystem.hidden)?;
        words.extend([
            entry.hidden_option().to_owned(),
            checks.display().to_string(),
        ]);
    }
    let request = CorpusRequest {
        kapi,
        task: &run.ecosystem.task,
        verify: run.verify(),
        script: &script,
        options: &words,
    };
    let ended = entry.perform(&request, &directory, &shell)?;
    if options.keep {
        let said = format!("{}\n{}", ended.stdout, ended.stderr);
        write(&directory.root().join("output"), &said)?;
    }
    Ok(CaseOutcome::read(&ended))
}

/// Lays the base project out as a repository, and returns the script of the change.
fn lay_out(
    run: &PlannedRun<'_>,
    directory: &CaseDirectory,
    location: &Path,
) -> anyhow::Result<String> {
    let shell = directory.shell(DEADLINE);
    let cache = cache_of(run.ecosystem, location);
    let seen = cache.display().to_string();
    CaseDirectory::write_all(&directory.repository(), &run.ecosystem.files)?;
    for name in &run.ecosystem.carry {
        shell.must(&format!("cp -a '{}' .", cache.join(name).display()))?;
    }
    if let Some(before) = &run.case.before {
        shell.must(&before.replace("{cache}", &seen))?;
    }
    if run.case.script.contains("{cache}") {
        // The agent is shown what it brings along.
        let settings = format!("[sandbox]\nread_only = [{seen:?}]\n");
        write(
            &directory.home().join(".config/kapi/config.toml"),
            &settings,
        )?;
    }
    shell.must("git init --quiet && git add --all && git commit --quiet --message base")?;
    Ok(run.case.script.replace("{cache}", &seen))
}

/// Runs the command before and after the change, as a person would who believes its exit code.
fn by_hand(
    run: &PlannedRun<'_>,
    script: &str,
    directory: &CaseDirectory,
) -> anyhow::Result<CaseOutcome> {
    let shell = directory.shell(DEADLINE);
    let before = shell.sh(run.verify())?;
    if !run.case.asks_base && (before.code == Some(0)) != run.is_green_before() {
        bail!("begin with the base it needs: {}", before.last_words());
    }
    // What the command left behind is not there in the checkout of anybody else.
    shell.must(&format!(
        "git clean --quiet --force -d -x{}",
        kept(run.ecosystem)
    ))?;
    shell.must(script)?;
    let after = shell.sh(run.verify())?;
    Ok(match after.code {
        Some(0) => CaseOutcome::Accepted,
        _ => CaseOutcome::Refused(after.last_words()),
    })
}

/// Returns the options that keep what was carried into the repository.
fn kept(ecosystem: &CorpusEcosystem) -> String {
    let carried = ecosystem.carry.iter();
    carried.fold(String::new(), |text, name| text + " --exclude=" + name)
}
