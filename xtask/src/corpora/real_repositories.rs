//! `cargo xtask realrepos`: real projects with a seeded bug, proved by their own usual command.
//!
//! A wrong fix must be refused and the right one proved, with nothing configured; and the command in
//! the prover's sandbox is timed beside the same command by hand.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

use super::case_directory::{CaseDirectory, write};
use super::entry::Entrance;
use super::fetch::PackageClient;
use super::outcome::CaseOutcome;
use super::request::CorpusRequest;
use super::results::{REAL_RESULTS, RealResult, read_results};
use super::shell::Shell;
use super::{CorpusOptions, page, program_under_test, target_directory};
use crate::output::{say, talk};
use crate::peers;
use crate::tool::find;

/// The list of projects, from the top of the repository.
const LIST: &str = "xtask/corpus/realrepos.toml";
/// The longest that one command may take.
const DEADLINE: Duration = Duration::from_secs(600);
/// How often the command is timed by hand, and by the prover.
const TIMES: usize = 3;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProjectList {
    /// What cannot be tried, and why.
    #[serde(default)]
    untried: Vec<String>,
    project: Vec<RealProject>,
}

/// A published project and a bug for it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RealProject {
    name: String,
    /// What kind of project it is: how a person sets it up.
    ecosystem: String,
    client: PackageClient,
    package: String,
    version: String,
    /// Programs without which it cannot be tried.
    #[serde(default)]
    needs: Vec<String>,
    /// A shell script that sets it up as a person would, with the network.
    #[serde(default)]
    setup: Option<String>,
    /// A directory of the project that the person has first on the search path.
    #[serde(default)]
    path: Option<String>,
    /// The project's usual command.
    verify: String,
    /// The file with the bug.
    file: String,
    /// What stands there.
    good: String,
    /// What the bug makes of it.
    bug: String,
    /// What the wrong fix makes of the bug.
    wrong: String,
}

/// Tries the real projects that the options ask for.
///
/// # Errors
/// When the list cannot be read, or an outcome is not the expected one, unless `--report-only` was
/// said.
pub(crate) fn run(root: &Path, words: &[&str]) -> anyhow::Result<()> {
    let options = CorpusOptions::parse(words)?;
    let reading = || format!("read {LIST}");
    let text = fs::read_to_string(root.join(LIST)).with_context(reading)?;
    let list: ProjectList = toml::from_str(&text).with_context(reading)?;
    let wanted: Vec<&RealProject> = list
        .project
        .iter()
        .filter(|project| options.takes(&format!("{}/{}", project.ecosystem, project.name)))
        .collect();
    if options.list {
        wanted
            .iter()
            .for_each(|project| say(&format!("{}/{}", project.ecosystem, project.name)));
        return Ok(());
    }
    peers::ensure(root, peers::FOR_CORPORA)?;
    peers::ensure(root, peers::FOR_REAL_PROJECTS)?;
    let kapi = program_under_test(root, &options)?;
    let location = target_directory(root)?.join("corpora");
    let mut results = Vec::new();
    // One after the other: what is timed is not disturbed by us.
    for project in wanted {
        let result = attempt(project, &kapi, &location, &options).unwrap_or_else(|error| {
            let mut result = project.empty_result();
            result.untried = Some(format!("{error:#}").chars().take(400).collect());
            result
        });
        say(&line(&result));
        results.push(result);
    }
    list.untried
        .iter()
        .for_each(|line| talk(&format!("not tried: {line}")));
    if options.is_whole() || options.write {
        let stored = location.join(REAL_RESULTS);
        let known = read_results(&stored)?;
        let text =
            serde_json::to_string(&updated(&list, known, &results)).context("write the results")?;
        write(&stored, &text)?;
    }
    if options.write {
        page::write(root, &location, &options)?;
    }
    let failures = results
        .iter()
        .filter(|result| !result.is_as_expected())
        .count();
    say(&format!(
        "{} projects, {failures} not as they should be.",
        results.len()
    ));
    if failures == 0 || options.report_only {
        return Ok(());
    }
    bail!("meet every expectation: {failures} projects came out otherwise")
}

/// Returns the last result of each project that is listed, in the order of the list.
fn updated(list: &ProjectList, known: Vec<RealResult>, new: &[RealResult]) -> Vec<RealResult> {
    let mut results: Vec<RealResult> = new.to_vec();
    let is_new = |one: &RealResult| {
        new.iter()
            .any(|other| one.is_of(&other.ecosystem, &other.name))
    };
    results.extend(known.into_iter().filter(|one| !is_new(one)));
    let location = |one: &RealResult| {
        let mut projects = list.project.iter();
        projects.position(|project| one.is_of(&project.ecosystem, &project.title()))
    };
    results.retain(|one| location(one).is_some());
    results.sort_by_key(location);
    results
}

impl RealResult {
    /// Tells whether it is of this project.
    fn is_of(&self, ecosystem: &str, title: &str) -> bool {
        self.ecosystem == ecosystem && self.name == title
    }
}

impl RealProject {
    /// Returns its name with its version.
    fn title(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    fn empty_result(&self) -> RealResult {
        RealResult {
            name: self.title(),
            ecosystem: self.ecosystem.clone(),
            verify: self.verify.clone(),
            wrong: None,
            right: None,
            by_prove: None,
            by_hand_ms: None,
            proved_ms: None,
            untried: None,
        }
    }

    /// Returns a script that replaces a text, which stands in the file once, by another.
    fn replacing(&self, from: &str, to: &str) -> String {
        let quoted = |text: &str| text.replace('\'', r"'\''");
        format!(
            "FROM='{}' TO='{}' perl -0pi -e 's/\\Q$ENV{{FROM}}\\E/$ENV{{TO}}/g == 1 or die \"$ENV{{FROM}} must stand once in $ARGV\"' '{}'",
            quoted(from),
            quoted(to),
            self.file
        )
    }

    /// Fetches the package into a cache, once.
    fn fetch(&self, location: &Path) -> anyhow::Result<std::path::PathBuf> {
        let programs = self.needs.iter().map(String::as_str);
        for program in programs.chain([self.client.program(), "perl", "git"]) {
            find(program).with_context(|| format!("find {program} on the search path"))?;
        }
        let name =
            format!("{}-{}-{}", self.client.name(), self.package, self.version).replace('/', "-");
        let cache = location.join("packages").join(&name);
        if cache.is_dir() {
            return Ok(cache);
        }
        talk(&format!(
            "Fetching {} {} into {} …",
            self.package,
            self.version,
            cache.display()
        ));
        let directory = CaseDirectory::new(location, &format!("fetch-{name}"), false)?;
        let script = self.client.script(&self.package, &self.version, "package");
        directory
            .shell(DEADLINE)
            .with_client_settings()
            .must(&script)
            .context("fetch the package: can the registry be reached?")?;
        let parent = location.join("packages");
        fs::create_dir_all(&parent).with_context(|| format!("create {}", parent.display()))?;
        fs::rename(directory.repository().join("package"), &cache)
            .with_context(|| format!("keep the package in {}", cache.display()))?;
        Ok(cache)
    }
}

fn attempt(
    project: &RealProject,
    kapi: &Path,
    location: &Path,
    options: &CorpusOptions,
) -> anyhow::Result<RealResult> {
    let cache = project.fetch(location)?;
    let name = format!("real-{}-{}", project.ecosystem, project.name);
    let directory = CaseDirectory::new(&location.join("cases"), &name, options.keep)?;
    let shell = set_up(project, &directory, &cache)?;
    let mut result = project.empty_result();
    let broken = shell.sh(&project.verify)?;
    ensure!(
        broken.code.is_some_and(|code| code != 0),
        "begin with a bug that the tests catch: {}",
        broken.last_words()
    );
    shell.must(&project.replacing(&project.bug, &project.wrong))?;
    let wrong = shell.sh(&project.verify)?;
    ensure!(
        wrong.code.is_some_and(|code| code != 0),
        "take a wrong fix that the tests catch"
    );
    shell.must(&project.replacing(&project.wrong, &project.good))?;
    let mut by_hand = Vec::new();
    for _ in 0..=TIMES {
        let ended = shell.sh(&project.verify)?;
        ensure!(
            ended.code == Some(0),
            "pass by hand: {}",
            ended.last_words()
        );
        by_hand.push(millis(ended.took));
    }
    // The first run warmed the caches.
    by_hand.remove(0);
    result.by_hand_ms = Some(median_and_spread(by_hand));
    shell.must("git checkout --quiet -- .")?;
    let run = |entry: Entrance, script: &str| -> anyhow::Result<(CaseOutcome, Option<u64>)> {
        let request = CorpusRequest {
            kapi,
            task: "make the tests pass",
            verify: &project.verify,
            script,
            options: &[],
        };
        let ended = entry.perform(&request, &directory, &shell)?;
        let last = ended.stdout.lines().last().unwrap_or_default();
        let document: Value = serde_json::from_str(last).unwrap_or_default();
        let took = document["verify"][0]["duration_ms"].as_u64();
        Ok((CaseOutcome::read(&ended), took))
    };
    let wrong = project.replacing(&project.bug, &project.wrong);
    result.wrong = Some(run(Entrance::Run, &wrong)?.0);
    let right = project.replacing(&project.bug, &project.good);
    let mut proved = Vec::new();
    for _ in 0..=TIMES {
        let (outcome, took) = run(Entrance::Run, &right)?;
        let is_done = matches!(outcome, CaseOutcome::Accepted | CaseOutcome::Named(_));
        proved.extend(took);
        result.right = Some(outcome);
        if !is_done {
            break;
        }
    }
    if proved.len() > TIMES {
        proved.remove(0);
        result.proved_ms = Some(median_and_spread(proved));
    }
    result.by_prove = Some([
        run(Entrance::Prove, &wrong)?.0,
        run(Entrance::Prove, &right)?.0,
    ]);
    Ok(result)
}

/// Makes a person's repository of the package, with the bug in it, and sets it up.
fn set_up(project: &RealProject, directory: &CaseDirectory, cache: &Path) -> anyhow::Result<Shell> {
    let mut shell = directory.shell(DEADLINE);
    if let Some(first) = &project.path {
        let first = directory.repository().join(first);
        shell.prepend_to_path(&first);
    }
    shell.must(&format!("cp -a '{}/.' .", cache.display()))?;
    shell.must(IGNORED)?;
    shell.must(&project.replacing(&project.good, &project.bug))?;
    if let Some(setup) = &project.setup {
        shell
            .clone()
            .with_client_settings()
            .must(setup)
            .context("set the project up as a person would")?;
    }
    shell.must("git init --quiet && git add --all && git commit --quiet --message base")?;
    Ok(shell)
}

/// What a repository of such a project would not track.
const IGNORED: &str = "printf '%s\\n' node_modules/ .venv/ target/ build/ '*.egg-info/' __pycache__/ \
                       .pytest_cache/ '*.o' >> .gitignore";

fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the median and the distance between the fastest and the slowest.
fn median_and_spread(mut times: Vec<u64>) -> [u64; 2] {
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    let spread = times.last().zip(times.first());
    [median, spread.map_or(0, |(last, first)| last - first)]
}

fn line(result: &RealResult) -> String {
    let mark = if result.is_as_expected() {
        "ok "
    } else {
        "BAD"
    };
    let mut text = format!("{mark} {}/{}: ", result.ecosystem, result.name);
    let word = |outcome: &Option<CaseOutcome>| {
        let outcome = outcome.as_ref();
        outcome.map_or("not tried", CaseOutcome::word).to_owned()
    };
    let _written = write!(
        text,
        "wrong fix {}, right fix {}",
        word(&result.wrong),
        word(&result.right)
    );
    if let Some([wrong, right]) = &result.by_prove {
        let _written = write!(text, "; by prove {}, {}", wrong.word(), right.word());
    }
    if let Some(ratio) = result.ratio() {
        let _written = write!(text, ", {ratio} times the command by hand");
    }
    let right = result.right.as_ref().map(CaseOutcome::why);
    for why in result.untried.as_deref().into_iter().chain(right) {
        if !why.is_empty() {
            let _written = write!(text, ": {why}");
        }
    }
    text
}
