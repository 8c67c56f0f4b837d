//! `cargo xtask integration`: generated repositories whose truth is known, integrated by the code of
//! Integrate and by git alone.
//!
//! The seed is drawn unless it is given, and printed; the same seed makes the same repositories.

mod case;
mod edits;
mod faults;
mod judgement;
mod kinds;
mod language;
mod packages;
mod page;
mod pipeline;
mod project;
mod repository;
mod rivals;

use std::fmt::Write as _;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use std::{iter, thread};

use anyhow::{Context as _, bail, ensure};
use kapi_sys::disk::replace_durably;
use kapi_sys::real_disk::RealDisk;
use kapi_testkit::converge::random::Random;

use self::case::IntegrationCase;
use self::judgement::{of_pipeline, of_rival};
use self::kinds::{CaseKind, KINDS};
use self::language::Language;
use self::page::RepositoryResult;
use self::pipeline::{Pipeline, PipelineResult};
use self::project::{BaseProject, Workbench};
use self::repository::CaseRepository;
use self::rivals::{Rival, integrate};
use super::target_directory;
use crate::output::{say, talk};
use crate::peers;
use crate::tool::ToolCommand;

/// Where the table is written.
const DOCUMENT: &str = "docs/integrate-corpus.md";
/// Repositories of each kind that are made up.
const MADE_UP: usize = 7;
/// Repositories of each kind that are made of a published package.
const PUBLISHED: usize = 4;
/// Repositories under way at once.
const JOBS: usize = 2;
/// The most at once.
const JOBS_MAX: usize = 16;
/// The languages of what is made up.
const LANGUAGES: [Language; 3] = [Language::Shell, Language::Python, Language::JavaScript];

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
struct IntegrationOptions {
    seed: Option<u64>,
    quick: bool,
    write: bool,
    only: Option<String>,
    jobs: usize,
}

impl IntegrationOptions {
    fn parse(words: &[&str]) -> anyhow::Result<Self> {
        let mut options = Self {
            seed: None,
            quick: false,
            write: false,
            only: None,
            jobs: JOBS,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || {
                let value = words.next();
                value.with_context(|| format!("read the option {word}: it needs a value"))
            };
            match *word {
                "--seed" => options.seed = Some(value()?.parse().context("read the seed")?),
                "--only" => options.only = Some((*value()?).to_owned()),
                "--jobs" => options.jobs = value()?.parse().context("read the number of jobs")?,
                "--quick" => options.quick = true,
                "--write" => options.write = true,
                other => bail!(
                    "read the option {other:?}: give --seed N, --quick, --only TEXT, --jobs N or --write"
                ),
            }
        }
        options.jobs = options.jobs.clamp(1, JOBS_MAX);
        Ok(options)
    }
}

/// Makes the repositories, integrates them in every way, and shows what came of it.
///
/// # Errors
/// When the words cannot be read, a repository cannot be made, or something wrong lands, is not named,
/// or something right is stopped.
pub(crate) fn run(root: &Path, words: &[&str]) -> anyhow::Result<()> {
    let options = IntegrationOptions::parse(words)?;
    peers::ensure(root, peers::FOR_INTEGRATION)?;
    let seed = options
        .seed
        .unwrap_or_else(|| RandomState::new().build_hasher().finish());
    say(&format!("seed {seed}"));
    let started = Instant::now();
    let location = target_directory(root)?.join("corpora");
    let packages = if options.quick {
        Vec::new()
    } else {
        packages::load(root, &location)?
    };
    let cases = cases(seed, &options, &packages)?;
    let results = perform_all(&cases, &location, options.jobs)?;
    let commit = ToolCommand::new(root, "git", &["rev-parse", "--short", "HEAD"]).read()?;
    let text = page::page(&results, seed, commit.trim());
    say(&text);
    say(&format!(
        "{} repositories in {:.0} s.",
        results.len(),
        started.elapsed().as_secs_f64()
    ));
    if options.write {
        replace_durably(&RealDisk, &root.join(DOCUMENT), text.as_bytes())?;
        talk(&format!("The table is in {DOCUMENT}."));
    }
    let n_wrong = results.iter().filter(|it| !it.is_as_expected()).count();
    if n_wrong == 0 {
        return Ok(());
    }
    bail!(
        "find and name everything: {n_wrong} repositories came out otherwise; show them again with \
         `cargo xtask integration --seed {seed}`"
    )
}

/// Makes the cases of a seed.
fn cases(
    seed: u64,
    options: &IntegrationOptions,
    packages: &[BaseProject],
) -> anyhow::Result<Vec<IntegrationCase>> {
    let mut cases = Vec::new();
    for (place, kind) in KINDS.iter().enumerate() {
        let is_meant = options
            .only
            .as_ref()
            .is_none_or(|text| kind.name.contains(text.as_str()));
        if !is_meant {
            continue;
        }
        // The last kinds are two faults in one; the gate has both.
        let made_up = match options.quick {
            true if place + 4 >= KINDS.len() => 2,
            true => 1,
            false => MADE_UP,
        };
        let published = if packages.is_empty() { 0 } else { PUBLISHED };
        for number in 0..made_up + published {
            let mix = u64::try_from(place * 1000 + number)?;
            let mut random = Random::new(seed ^ mix.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let base = match number.checked_sub(made_up) {
                None => {
                    let language = LANGUAGES[number % LANGUAGES.len()];
                    BaseProject::made_up(language, &mut random)
                }
                Some(at) => packages[(place * PUBLISHED + at) % packages.len()].clone(),
            };
            cases.push(one(kind, number, base, random)?);
        }
    }
    Ok(cases)
}

fn one(
    kind: &CaseKind,
    number: usize,
    base: BaseProject,
    random: Random,
) -> anyhow::Result<IntegrationCase> {
    let project = base.name.clone();
    let making = || format!("make {} {number} of {project}", kind.name);
    let mut bench = Workbench::new(base, random).with_context(making)?;
    let files = bench.project.files.keys();
    let checks = files.filter(|path| path.starts_with("checks/")).cloned();
    let checks = checks.collect();
    let draft = (kind.make)(&mut bench).with_context(making)?;
    Ok(IntegrationCase {
        kind: kind.name,
        number,
        project: project.clone(),
        checks,
        draft,
    })
}

/// Tries all cases, a few at once, and returns the results in their order.
fn perform_all(
    cases: &[IntegrationCase],
    location: &Path,
    jobs: usize,
) -> anyhow::Result<Vec<RepositoryResult>> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, anyhow::Result<RepositoryResult>)>> = Mutex::new(Vec::new());
    let work = || {
        let open = iter::from_fn(|| {
            let at = next.fetch_add(1, Ordering::Relaxed);
            cases.get(at).map(|case| (at, case))
        });
        for (at, case) in open {
            let result = perform(case, location);
            if let Ok(result) = &result {
                say(&page::line(result));
            }
            let mut all = results.lock().unwrap_or_else(PoisonError::into_inner);
            all.push((at, result));
        }
    };
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(work);
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(at, _)| *at);
    let results = results.into_iter().map(|(at, result)| {
        let case = &cases[at];
        result.with_context(|| format!("try {} {} ({})", case.kind, case.number, case.project))
    });
    results.collect()
}

/// Integrates one repository in every way.
fn perform(case: &IntegrationCase, location: &Path) -> anyhow::Result<RepositoryResult> {
    let IntegrationCase {
        kind,
        number,
        project,
        checks,
        draft,
    } = case;
    let plain: String = kind
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let name = format!("integrate-{plain}-{number}");
    let made = CaseRepository::make(&location.join("cases"), &name, draft)?;
    let first = made.commits.first().context("find the first commit")?;
    let failing = &made.failing(first)? & checks;
    ensure!(
        failing.is_empty(),
        "begin with {project}: {failing:?} fail before any change"
    );
    let before = made.untouched()?;
    let mut rivals = Vec::new();
    for rival in Rival::ALL {
        rivals.push(of_rival(&draft.truth, &integrate(rival, &made, draft)?));
    }
    let result = Pipeline::new(&made, draft)?.run()?;
    let after = made.untouched()?;
    let own = of_pipeline(&draft.truth, &result, |path| {
        let landed = result.landed.as_ref()?;
        made.text(landed, path).ok().flatten()
    });
    let [merges, octopus, rebases] = rivals[..] else {
        bail!("try three ways: there are {}", rivals.len());
    };
    Ok(RepositoryResult {
        kind,
        number: *number,
        project: project.clone(),
        is_published: !project.starts_with("made up"),
        scores: [own, merges, octopus, rebases],
        told: told(&result),
        touched: (before != after).then(|| format!("{before}\n    is now\n{after}")),
    })
}

/// Says what the product said, on one line.
fn told(result: &PipelineResult) -> String {
    let mut text = format!("landed {:?}, {} runs", result.landed, result.n_verified);
    if let Some(conflict) = &result.conflict {
        for path in &conflict.paths {
            let _written = write!(text, "; conflict {:?} {}", path.kind, path.path.display());
        }
    }
    for one in &result.culprits {
        let _written = write!(
            text,
            "; culprit {} with {:?}: {:?}",
            one.source, one.with, one.checks
        );
    }
    for finding in &result.findings {
        let lines = [finding.lost.concat(), finding.found.concat()];
        let lines = lines.map(|it| String::from_utf8_lossy(&it).into_owned());
        let _written = write!(
            text,
            "; {:?} {:?} {}:{} {lines:?}",
            finding.kind,
            finding.source,
            finding.path.display(),
            finding.line
        );
    }
    for marker in &result.markers {
        let _written = write!(text, "; marker {}:{}", marker.path.display(), marker.line);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{IntegrationOptions, JOBS};

    #[test]
    fn options_are_read_and_others_are_refused() {
        let read =
            IntegrationOptions::parse(&["--seed", "7", "--quick", "--only", "lost"]).unwrap();
        let expected = IntegrationOptions {
            seed: Some(7),
            quick: true,
            write: false,
            only: Some("lost".to_owned()),
            jobs: JOBS,
        };
        assert_eq!(read, expected);
        for words in [&["--seed"][..], &["--seed", "x"], &["--week"]] {
            let error = IntegrationOptions::parse(words).unwrap_err().to_string();
            assert!(error.starts_with("read "), "{words:?}: {error}");
        }
    }
}
