//! Measuring a commit with scripts that a person approved: each sample on a clean checkout, in a
//! sandbox, home and temporary directory of its own.
//!
//! The scripts are laid over the checkout and sealed as protected files are. Metrics are read from
//! every line as it passes, so that none is lost however much is printed. Nothing is decided here.

use std::path::PathBuf;

use kapi_core::failure::Failure;
use kapi_core::quote::tail;
use kapi_run::repository_session;
use kapi_sys::process::OutputLine;

use super::checkout::{Checkout, PutBack};
use super::{Prover, WorkToProve};
use crate::rules::measure::metric_line::Readings;
use crate::rules::measure::{Measurement, MeasurementReport, Sample, Script, ScriptRun};
use crate::rules::proof::verify_run::{Checks, VerifyRun};

/// Where the scripts lie in a checkout.
const DIRECTORY: &str = ".kapi-measure";
/// Bytes of a script's output that are recorded.
const OUTPUT_TAIL_BYTES: usize = 2_000;

/// What one run of a script showed.
struct ScriptReport {
    run: ScriptRun,
    readings: Readings,
    tampered: Vec<String>,
}

impl Prover<'_> {
    /// Measures; nothing where it was called off. Ends with the first sample that does not end well.
    pub fn measure(
        &self,
        branch: &str,
        wanted: &Measurement,
    ) -> Result<Option<MeasurementReport>, Failure> {
        let work = |commit: &str| {
            let commits = (
                repository_session::commit_id(&wanted.base)?,
                repository_session::commit_id(commit)?,
            );
            WorkToProve::of(&self.repo.repository, branch, commits, &wanted.sealed)
        };
        let candidate = work(&wanted.commit)?;
        let parent = wanted.against.as_deref().map(work).transpose()?;
        let mut measured = MeasurementReport {
            commit: wanted.commit.clone(),
            tree: self.tree(&candidate.commit)?.to_string(),
            ..MeasurementReport::default()
        };
        let turns = (0..wanted.samples).flat_map(|n| in_turn(&candidate, parent.as_ref(), n));
        for (work, is_parent) in turns {
            if !self.sample(work, wanted, &mut measured, is_parent)? {
                return Ok(None);
            }
            if !has_ended_well(&measured) {
                return Ok(Some(measured));
            }
        }
        if let Some(checks) = &wanted.checks {
            let Some(ran) = self.script(&candidate, wanted, checks, "checks.log")? else {
                return Ok(None);
            };
            measured.tampered.extend(ran.tampered);
            measured.checks = Some(ran.run);
        }
        Ok(Some(measured))
    }

    /// Runs the benchmark once and adds what it showed; `false` where it was called off.
    fn sample(
        &self,
        work: &WorkToProve<'_>,
        wanted: &Measurement,
        measured: &mut MeasurementReport,
        is_parent: bool,
    ) -> Result<bool, Failure> {
        let (samples, against) = (measured.samples.len(), measured.against.len());
        let log = if is_parent {
            format!("parent-{}.log", against + 1)
        } else {
            format!("benchmark-{}.log", samples + 1)
        };
        let Some(ran) = self.script(work, wanted, &wanted.benchmark, &log)? else {
            return Ok(false);
        };
        let sample = Sample {
            run: ran.run,
            readings: ran.readings.into_vec(),
        };
        if is_parent {
            measured.against.push(sample);
        } else {
            measured.tampered.extend(ran.tampered);
            measured.samples.push(sample);
        }
        Ok(true)
    }

    /// Runs one script on a checkout of its own; nothing where it was called off.
    fn script(
        &self,
        work: &WorkToProve<'_>,
        wanted: &Measurement,
        script: &Script,
        log: &str,
    ) -> Result<Option<ScriptReport>, Failure> {
        let scripts = [Some(&wanted.benchmark), wanted.checks.as_ref()];
        let laid_over = scripts.into_iter().flatten().map(|script| {
            let path = PathBuf::from(DIRECTORY).join(script.name);
            (path, script.text.clone().into_bytes())
        });
        let put_back = PutBack {
            laid_over: laid_over.collect(),
            ..PutBack::default()
        };
        let mut checkout = Checkout::make(self, work, put_back)?;
        let mut readings = Readings::default();
        let line = format!("sh {DIRECTORY}/{}", script.name);
        let ended = checkout.run_heard(&line, Checks::Visible, script.timeout_ms, &mut |line| {
            let (OutputLine::Stdout(bytes) | OutputLine::Stderr(bytes)) = line;
            if let Ok(text) = std::str::from_utf8(bytes) {
                readings.line(text);
            }
        })?;
        checkout.discard()?;
        let Some(ended) = ended else {
            return Ok(None);
        };
        self.listener.run_dir.keep(log, ended.output.as_bytes())?;
        Ok(Some(ScriptReport {
            run: script_run(&ended.run),
            readings,
            tampered: ended.tampered,
        }))
    }
}

/// Returns what is measured for one sample, and whether it is the parent: each is first in turn, so
/// that what the machine does meanwhile hits both.
fn in_turn<'a>(
    candidate: &'a WorkToProve<'a>,
    parent: Option<&'a WorkToProve<'a>>,
    n: u32,
) -> Vec<(&'a WorkToProve<'a>, bool)> {
    let mut turn: Vec<_> = parent.into_iter().map(|work| (work, true)).collect();
    turn.push((candidate, false));
    if !n.is_multiple_of(2) {
        turn.reverse();
    }
    turn
}

/// Tells whether another sample may follow.
fn has_ended_well(measured: &MeasurementReport) -> bool {
    let all = measured.samples.iter().chain(&measured.against);
    let mut runs = all.map(|sample| &sample.run);
    measured.tampered.is_empty() && runs.all(ScriptRun::passed)
}

fn script_run(run: &VerifyRun) -> ScriptRun {
    ScriptRun {
        exit_code: run.exit_code,
        timed_out: run.timed_out,
        duration_ms: run.duration_ms,
        output_tail: tail(&run.output_tail, OUTPUT_TAIL_BYTES).to_owned(),
    }
}
