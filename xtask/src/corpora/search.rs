//! Changes that are measured: a search, as a person would start it; and that of one experiment.
//!
//! A project of that kind keeps its benchmark in `bench/run.sh` and its checks in `tests/check.sh`, and may
//! be changed in `src`. What is kept is read from the ledger.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};

use super::case_directory::{CaseDirectory, write};
use super::request::CorpusRequest;
use super::shell::{ProgramEnd, Shell};

/// What is measured, unless a case says otherwise.
const MEASURED: [&str; 4] = ["--metric", "bytes", "--benchmark", "bench/run.sh"];
/// What holds for every search of the corpus.
const CONTRACT: [&str; 10] = [
    "--checks",
    "tests/check.sh",
    "--scope",
    "src",
    "--off-limits",
    "bench",
    "--off-limits",
    "tests",
    "--runs",
    "1",
];
/// Where searches are kept.
const SEARCHES: &str = ".ilchul/workflows/autoresearch";
/// The exit code of what waits or ended without being done.
const NOT_DONE: i32 = 5;

/// Lets an agent make the change as an experiment, and says whether it was kept.
pub(super) fn search(
    request: &CorpusRequest<'_>,
    location: &CaseDirectory,
    shell: &Shell,
) -> anyhow::Result<ProgramEnd> {
    let script = location.root().join("researcher.yaml");
    write(&script, &researcher(request.script).to_string())?;
    let agent = format!("script:{}", script.display());
    let mut words = vec![
        "autoresearch",
        request.task,
        "--unlinked",
        "--no-drive",
        "--agent",
        &agent,
    ];
    let says_what = request.options.iter().any(|option| option == "--metric");
    words.extend(MEASURED.iter().filter(|_| !says_what));
    words.extend(CONTRACT);
    words.extend(request.options.iter().map(String::as_str));
    let started = match start(request.kapi, shell, &words)? {
        SearchStart::Driven(started) => started,
        SearchStart::Refused(refused) => return Ok(refused),
    };
    let runs = ledger(&location.repository())?;
    let [_, run] = runs.as_slice() else {
        bail!("make one experiment: {runs:?}");
    };
    let status = run["status"].as_str().unwrap_or_default();
    let account = json!({"status": status, "reason": run["reason"]});
    Ok(ProgramEnd {
        code: Some(if status == "keep" { 0 } else { NOT_DONE }),
        stdout: account.to_string(),
        ..started
    })
}

/// How a search was started.
pub(super) enum SearchStart {
    /// It was driven to its end.
    Driven(ProgramEnd),
    /// Nothing was started.
    Refused(ProgramEnd),
}

/// Starts the first search of a repository with these words, approves its contract and drives it to its
/// end.
pub(super) fn start(kapi: &Path, shell: &Shell, words: &[&str]) -> anyhow::Result<SearchStart> {
    let run = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        shell.run(kapi, &words, "")
    };
    let started = run(words)?;
    if started.code != Some(0) && started.code != Some(NOT_DONE) {
        return Ok(SearchStart::Refused(started));
    }
    for words in [
        &["autoresearch", "approve", "1", "--yes"][..],
        &["autoresearch", "resume", "1"],
    ] {
        let ended = run(words)?;
        ensure!(
            ended.code == Some(0),
            "{}: {}",
            words.join(" "),
            ended.last_words()
        );
    }
    Ok(SearchStart::Driven(started))
}

/// Returns the script of an agent that makes the change, and then has no idea left.
fn researcher(change: &str) -> Value {
    let answer = json!({"hypothesis": "The number is better.", "description": "the change"});
    json!({"turns": [], "roles": {"researcher": [
        {"steps": [{"bash": change}, {"answer": answer}]},
        {"steps": [{"answer": {"exhausted": true}}]},
    ]}})
}

/// Returns the runs of the only search's ledger, its baseline first.
pub(super) fn ledger(repository: &Path) -> anyhow::Result<Vec<Value>> {
    let searches = repository.join(SEARCHES);
    let listed = || format!("list {}", searches.display());
    let mut found = fs::read_dir(&searches).with_context(listed)?;
    let search = found.next().with_context(listed)?.with_context(listed)?;
    let ledger = search.path().join("ledger.jsonl");
    let text = fs::read_to_string(&ledger).with_context(|| format!("read {}", ledger.display()))?;
    let lines = text.lines().map(serde_json::from_str);
    let lines: Vec<Value> = lines.collect::<Result<_, _>>().context("read the ledger")?;
    let runs = lines.into_iter().filter(|line| line.get("run").is_some());
    Ok(runs.collect())
}
