//! Measuring a commit with scripts that a person approved: each sample on a clean checkout, in a
//! sandbox, home and temporary directory of its own.
//!
//! The scripts are laid over the checkout and sealed as protected files are. Metrics are read from
//! every line as it passes, so that none is lost however much is printed. Nothing is decided here.

use std::path::PathBuf;

use kapi_core::failure::Failure;
use kapi_core::quote::tail;
use kapi_git::repository::range::CommitRange;
use kapi_run::repository_session;
use kapi_sandbox::counter::KernelCounter;
use kapi_sandbox::spec::BenchmarkSetup;
use kapi_sys::process::OutputLine;

use super::checkout::{Checkout, CheckoutLine, LineResult, PutBack};
use super::{Prover, WorkToProve};
use crate::rules::measure::counter::Counter;
use crate::rules::measure::metric_line::Readings;
use crate::rules::measure::{Measurement, MeasurementReport, Sample, Script, ScriptRun};
use crate::rules::proof::verify_run::{Checks, VerifyRun};

/// Where the scripts lie in a checkout.
const DIRECTORY: &str = ".kapi-measure";
/// Bytes of a script's output that are recorded.
const OUTPUT_TAIL_BYTES: usize = 2_000;

/// Starts a script with a search path of those directories only that are there by then: a program that is
/// measured must not make one in which the script would find its clock later.
const START: &str = "path=; IFS=:; for dir in $PATH; do if [ -d \"$dir\" ]; then path=$path:$dir; fi; done; \
                     unset IFS; PATH=${path#:} exec sh";

/// What one run of a script showed.
struct ScriptReport {
    run: ScriptRun,
    readings: Readings,
    tampered: Vec<String>,
}

/// A script that is run, and how.
struct ScriptOrder<'a> {
    script: &'a Script,
    log: &'a str,
    inputs: Checks,
    benchmark: BenchmarkSetup,
}

/// One run of the benchmark.
struct BenchmarkTurn<'a> {
    work: &'a WorkToProve<'a>,
    /// Whether it is of the commit that is measured against.
    is_parent: bool,
    /// Whether it is run only so that those after it find what they need.
    is_warmup: bool,
    log: String,
}

impl Prover<'_> {
    /// Measures; nothing where it was called off. Ends with the first run that does not end well.
    pub fn measure(
        &self,
        branch: &str,
        wanted: &Measurement,
    ) -> Result<Option<MeasurementReport>, Failure> {
        let work = |commit: &str| {
            let range = CommitRange {
                base: repository_session::commit_id(&wanted.base)?,
                commit: repository_session::commit_id(commit)?,
            };
            WorkToProve::to_measure(&self.repo.repository, branch, range, &wanted.sealed)
        };
        let candidate = work(&wanted.commit)?;
        let parent = wanted.against.as_deref().map(work).transpose()?;
        let mut measured = MeasurementReport {
            commit: wanted.commit.clone(),
            tree: self.tree(&candidate.commit)?.to_string(),
            held_back: wanted.held_back.is_some(),
            ..MeasurementReport::default()
        };
        for turn in turns(wanted, &candidate, parent.as_ref()) {
            if !self.turn(&turn, wanted, &mut measured)? {
                return Ok(None);
            }
            if !has_ended_well(&measured) {
                return Ok(Some(measured));
            }
        }
        if let Some(checks) = &wanted.checks {
            let order = ScriptOrder {
                script: checks,
                log: "checks.log",
                inputs: Checks::Visible,
                benchmark: BenchmarkSetup::default(),
            };
            let Some(ran) = self.script(&candidate, wanted, order)? else {
                return Ok(None);
            };
            measured.tampered.extend(ran.tampered);
            measured.checks = Some(ran.run);
        }
        Ok(Some(measured))
    }

    /// Runs the benchmark once and adds what it showed, unless it only warms up; `false` where it was
    /// called off.
    fn turn(
        &self,
        turn: &BenchmarkTurn<'_>,
        wanted: &Measurement,
        measured: &mut MeasurementReport,
    ) -> Result<bool, Failure> {
        let order = ScriptOrder {
            script: &wanted.benchmark,
            log: &turn.log,
            inputs: match wanted.held_back {
                Some(_) => Checks::Hidden,
                None => Checks::Visible,
            },
            benchmark: benchmark_setup(wanted),
        };
        let Some(ran) = self.script(turn.work, wanted, order)? else {
            return Ok(false);
        };
        if !turn.is_parent {
            measured.tampered.extend(ran.tampered);
        }
        // One that fails is what the measurement shows.
        if turn.is_warmup && ran.run.passed() {
            return Ok(true);
        }
        let samples = if turn.is_parent {
            &mut measured.against
        } else {
            &mut measured.samples
        };
        samples.push(Sample {
            run: ran.run,
            readings: ran.readings.into_vec(),
        });
        Ok(true)
    }

    /// Runs one script on a checkout of its own; nothing where it was called off.
    fn script(
        &self,
        work: &WorkToProve<'_>,
        wanted: &Measurement,
        order: ScriptOrder<'_>,
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
        let text = format!("{START} {DIRECTORY}/{}", order.script.name);
        let line = CheckoutLine {
            text: &text,
            checks: order.inputs,
            timeout_ms: order.script.timeout_ms,
            benchmark: order.benchmark,
        };
        let ended = checkout.run_heard(&line, &mut |line| {
            let (OutputLine::Stdout(bytes) | OutputLine::Stderr(bytes)) = line;
            if let Ok(text) = std::str::from_utf8(bytes) {
                readings.line(text);
            }
        })?;
        checkout.discard()?;
        let Some(ended) = ended else {
            return Ok(None);
        };
        self.listener
            .run_dir
            .keep(order.log, ended.output.as_bytes())?;
        take_counters(&wanted.counters, &ended, &mut readings);
        Ok(Some(ScriptReport {
            run: script_run(&ended.run),
            readings,
            tampered: ended.tampered,
        }))
    }
}

/// Adds the metrics that Kapi takes itself to those that were printed.
fn take_counters(counters: &[Counter], ended: &LineResult, readings: &mut Readings) {
    for counter in counters {
        let counted = match kernel_counter(*counter) {
            None => Some(ended.run.duration_ms),
            Some(kernel) => ended
                .counted
                .iter()
                .find_map(|(found, count)| (*found == kernel).then_some(*count)),
        };
        if let Some(counted) = counted {
            readings.take(*counter, counted);
        }
    }
}

fn benchmark_setup(wanted: &Measurement) -> BenchmarkSetup {
    let counters = wanted.counters.iter();
    BenchmarkSetup {
        processors: wanted.processors.clone(),
        counters: counters
            .filter_map(|counter| kernel_counter(*counter))
            .collect(),
    }
}

/// Returns what the kernel counts for a metric of Kapi's; nothing where it is Kapi's own clock.
#[must_use]
pub const fn kernel_counter(counter: Counter) -> Option<KernelCounter> {
    match counter {
        Counter::Instructions => Some(KernelCounter::Instructions),
        Counter::CpuTime => Some(KernelCounter::CpuTime),
        Counter::PageFaults => Some(KernelCounter::PageFaults),
        Counter::WallTime => None,
    }
}

/// Returns the runs of a measurement in their order: of two commits each is first in turn, so that what
/// the machine does meanwhile hits both.
fn turns<'a>(
    wanted: &Measurement,
    candidate: &'a WorkToProve<'a>,
    parent: Option<&'a WorkToProve<'a>>,
) -> Vec<BenchmarkTurn<'a>> {
    let mut turns = Vec::new();
    let warmups = (0..wanted.warmups).map(|n| (n, true));
    for (n, is_warmup) in warmups.chain((0..wanted.samples).map(|n| (n, false))) {
        let mut pair: Vec<_> = parent.into_iter().map(|work| (work, true)).collect();
        pair.push((candidate, false));
        if !n.is_multiple_of(2) {
            pair.reverse();
        }
        let warmup = if is_warmup { "-warmup" } else { "" };
        let number = n.saturating_add(1);
        turns.extend(pair.into_iter().map(|(work, is_parent)| {
            let of = if is_parent { "parent" } else { "benchmark" };
            BenchmarkTurn {
                work,
                is_parent,
                is_warmup,
                log: format!("{of}{warmup}-{number}.log"),
            }
        }));
    }
    turns
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

#[cfg(test)]
mod tests {
    use kapi_sandbox::counter::KernelCounter;

    use super::{Counter, LineResult, Readings, take_counters};
    use crate::rules::proof::verify_run::{Checks, VerifyRun};

    /// The counts are those that a sandbox reports on a machine with every counter.
    #[test]
    fn what_the_kernel_counted_is_a_metric_whatever_was_printed() {
        let ended = LineResult {
            run: VerifyRun {
                command: "sh benchmark.sh".to_owned(),
                checks: Checks::Visible,
                exit_code: Some(0),
                timed_out: false,
                duration_ms: 7,
                output_tail: String::new(),
                output_bytes: 0,
                tally: None,
            },
            output: String::new(),
            stdout: String::new(),
            tampered: Vec::new(),
            counted: vec![
                (KernelCounter::CpuTime, 5),
                (KernelCounter::Instructions, 123_456_789),
            ],
        };
        let mut readings = Readings::default();
        readings.line("METRIC kapi.instructions=1");
        readings.line("METRIC ops=3");
        let wanted = [
            Counter::Instructions,
            Counter::WallTime,
            Counter::PageFaults,
        ];
        take_counters(&wanted, &ended, &mut readings);
        let found: Vec<(String, f64)> = readings
            .into_vec()
            .into_iter()
            .map(|reading| (reading.name, reading.value.get()))
            .collect();
        let expected = [
            ("ops", 3.0),
            ("kapi.instructions", 123_456_789.0),
            ("kapi.wall_ms", 7.0),
        ];
        assert_eq!(
            found,
            expected.map(|(name, value)| (name.to_owned(), value))
        );
    }
}
