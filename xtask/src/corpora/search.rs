//! A change that is measured: the search of one experiment, as a person would start it.
//!
//! A project of that kind keeps its benchmark in `bench/run.sh` and its checks in `tests/check.sh`, and may
//! be changed in `src`. Whether the change is kept is read from the ledger.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, ensure};
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
    let kapi = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        shell.run(request.kapi, &words, "")
    };
    let started = kapi(&words)?;
    if started.code != Some(0) && started.code != Some(NOT_DONE) {
        return Ok(started);
    }
    for words in [
        &["autoresearch", "approve", "1", "--yes"][..],
        &["autoresearch", "resume", "1"],
    ] {
        let ended = kapi(words)?;
        ensure!(
            ended.code == Some(0),
            "{}: {}",
            words.join(" "),
            ended.last_words()
        );
    }
    let run = last_run(&location.repository())?;
    let status = run["status"].as_str().unwrap_or_default();
    let account = json!({"status": status, "reason": run["reason"]});
    Ok(ProgramEnd {
        code: Some(if status == "keep" { 0 } else { NOT_DONE }),
        stdout: account.to_string(),
        ..started
    })
}

/// Returns the script of an agent that makes the change, and then has no idea left.
fn researcher(change: &str) -> Value {
    let answer = json!({"hypothesis": "The number is better.", "description": "the change"});
    json!({"turns": [], "roles": {"researcher": [
        {"steps": [{"bash": change}, {"answer": answer}]},
        {"steps": [{"answer": {"exhausted": true}}]},
    ]}})
}

/// Returns the last line of the only search's ledger, which must not be its baseline.
fn last_run(repository: &Path) -> anyhow::Result<Value> {
    let searches = repository.join(SEARCHES);
    let listed = || format!("list {}", searches.display());
    let mut found = fs::read_dir(&searches).with_context(listed)?;
    let search = found.next().with_context(listed)?.with_context(listed)?;
    let ledger = search.path().join("ledger.jsonl");
    let text = fs::read_to_string(&ledger).with_context(|| format!("read {}", ledger.display()))?;
    let last = text.lines().last().unwrap_or_default();
    let run: Value = serde_json::from_str(last).context("read the last run")?;
    ensure!(run["run"] == 2, "make one experiment: {text}");
    Ok(run)
}
