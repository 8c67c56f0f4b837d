//! The store beside bare system calls, and beside itself with a longer history.
//!
//! Uses the real disk, real events of a goal, and the engine's own calls.

use std::fs;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use kapi_core::actor::Actor;
use kapi_core::id::{EffectId, GoalId, Slug};
use kapi_core::usage::Usage;
use kapi_goal::record::project::Project;
use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::contract::Contract;
use kapi_goal::rules::event::{ApprovalMeans, GoalEvent};
use kapi_goal::rules::evolve::evolve;
use kapi_goal::rules::state::Goal;
use kapi_machine::logged::to_payload;
use kapi_store::layout::ProjectLayout;
use kapi_store::record::Batch;
use kapi_sys::clock::SystemClock;
use kapi_sys::real_disk::RealDisk;
use serde_json::value::to_raw_value;

use super::BenchDirectory;
use super::sample::{Work, by_turns};
use super::table::{ComparisonFinding, ComparisonRow, ComparisonTable, Quantity};

const APPEND_ROUNDS: usize = 400;
const LOAD_ROUNDS: usize = 200;
/// Events written with one sync while a history is prepared.
const BATCH_EVENTS: u64 = 1_000;
const LOCK_WAIT_MS: u64 = 1_000;
const AT_MS: i64 = 1_700_000_000_000;
/// Histories, in events; the first is what the others are compared with.
const HISTORIES: [u64; 3] = [10, 1_000, 100_000];

/// Measures one durable event, alone and with everything a request does.
pub(super) fn appends(location: &BenchDirectory) -> anyhow::Result<ComparisonTable> {
    let sample = Sample::create(&location.scratch.join("append"))?;
    let mut bare = bare_file(&location.scratch.join("append.bare"))?;
    let before = sample.log_bytes()?;
    sample.time_append()?;
    let bytes = vec![b'x'; usize::try_from(sample.log_bytes()? - before)?];
    let mut row = |ours: &str, work: Work<'_>| -> anyhow::Result<ComparisonRow> {
        let pair = by_turns(APPEND_ROUNDS, work, &mut || {
            write_and_sync(&mut bare, &bytes)
        })?;
        Ok(ComparisonRow {
            ours: ours.to_owned(),
            peer: "`write` and `fdatasync` of as many bytes".to_owned(),
            finding: ComparisonFinding::Measured(pair),
        })
    };
    let rows = vec![
        row("append one event", &mut || sample.time_append())?,
        row("submit one request", &mut || sample.time_submit())?,
    ];
    Ok(ComparisonTable {
        title: "One durable event",
        note: "The first line encodes, chains by hash, appends and syncs. The second is a whole request: lock, load, decide, append and sync, fold, and replace the derived files, which are not synced because they can be rebuilt.".to_owned(),
        quantity: Quantity::Time,
        rows,
    })
}

/// Measures how loading depends on history.
pub(super) fn loads(location: &BenchDirectory) -> anyhow::Result<ComparisonTable> {
    let mut samples = Vec::new();
    for n_events in HISTORIES {
        let sample = Sample::create(&location.scratch.join(format!("load-{n_events}")))?;
        let goal = sample.fill(n_events)?;
        samples.push((n_events, sample, goal));
    }
    let mut rows = Vec::new();
    let ((fewest, shortest, first_goal), others) =
        samples.split_first().context("find the shortest history")?;
    for (n_events, sample, goal) in others {
        let pair = by_turns(LOAD_ROUNDS, &mut || sample.time_load(goal), &mut || {
            shortest.time_load(first_goal)
        })?;
        rows.push(ComparisonRow {
            ours: format!("load after {n_events} events"),
            peer: format!("load after {fewest} events"),
            finding: ComparisonFinding::Measured(pair),
        });
    }
    Ok(ComparisonTable {
        title: "Loading a goal to resume it",
        note: "Loading reads the fold and the log after it, here one event that a crash kept out of the fold. A ratio near 1 means that history costs nothing.".to_owned(),
        quantity: Quantity::Time,
        rows,
    })
}

/// Makes a project with as many goals as somebody might have open.
pub(super) fn fill_project(root: &Path, n_goals: usize) -> anyhow::Result<()> {
    let project = project(root);
    project.prepare()?;
    for _ in 0..n_goals {
        create_goal(&project)?;
    }
    Ok(())
}

/// A project whose goal is at work, so that progress can be recorded.
struct Sample {
    project: Project<'static>,
    id: GoalId,
    effect: EffectId,
}

impl Sample {
    fn create(root: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(root).with_context(|| format!("create {}", root.display()))?;
        let project = project(root);
        project.prepare()?;
        let id = create_goal(&project)?;
        let contract_hash = project.load(&id)?.contract_hash;
        let approve = GoalCommand::Approve {
            contract_hash,
            means: ApprovalMeans::YesFlag,
        };
        let goal = project.submit(&id, &person(), &approve)?.goal;
        let effect = goal.stage_effect();
        let intend = GoalCommand::Intend {
            effect: effect.clone(),
        };
        project.submit(&id, &Actor::Engine, &intend)?;
        Ok(Self {
            project,
            id,
            effect,
        })
    }

    fn log_bytes(&self) -> anyhow::Result<u64> {
        let log = self.project.stream(&self.id).log();
        Ok(fs::metadata(&log)
            .with_context(|| format!("measure {}", log.display()))?
            .len())
    }

    /// Appends one event as the engine does, loading not included.
    fn time_append(&self) -> anyhow::Result<Duration> {
        let stream = self.project.stream(&self.id);
        let mut cursor = stream.load()?.cursor;
        let held = stream.lock("xtask bench", LOCK_WAIT_MS)?;
        stream.settle(&held, &mut cursor)?;
        let event = self.progressed();
        let started = Instant::now();
        let payloads = vec![to_payload(&event)?];
        let batch = Batch {
            actor: &Actor::Engine,
            at_ms: AT_MS,
            payloads,
        };
        stream.append(&held, &mut cursor, &batch)?;
        Ok(started.elapsed())
    }

    /// Makes one request from its beginning to its end.
    fn time_submit(&self) -> anyhow::Result<Duration> {
        let (effect, usage) = (self.effect.clone(), used());
        let command = GoalCommand::Progress {
            effect,
            usage,
            elapsed_ms: 1_000,
        };
        let started = Instant::now();
        self.project.submit(&self.id, &Actor::Engine, &command)?;
        Ok(started.elapsed())
    }

    /// Loads the goal as a process that resumes it does.
    fn time_load(&self, expected: &Goal) -> anyhow::Result<Duration> {
        let started = Instant::now();
        let goal = self.project.load(&self.id)?;
        let took = started.elapsed();
        ensure!(goal == *expected, "load the goal that was written");
        Ok(took)
    }

    /// Lengthens the log to `n_events`, the last of them not in the saved fold.
    fn fill(&self, n_events: u64) -> anyhow::Result<Goal> {
        let stream = self.project.stream(&self.id);
        let mut goal = Some(self.project.load(&self.id)?);
        let mut cursor = stream.load()?.cursor;
        let held = stream.lock("xtask bench", LOCK_WAIT_MS)?;
        stream.settle(&held, &mut cursor)?;
        while cursor.position.seq < n_events {
            // The last event is appended alone, after the fold was saved.
            let missing = n_events - cursor.position.seq;
            let n_more = (missing - 1).clamp(1, BATCH_EVENTS);
            if missing == 1 {
                stream.save(&held, &cursor, to_raw_value(&goal)?)?;
            }
            let events: Vec<GoalEvent> = (0..n_more).map(|_| self.progressed()).collect();
            let payloads = events.iter().map(to_payload).collect::<Result<_, _>>()?;
            let batch = Batch {
                actor: &Actor::Engine,
                at_ms: AT_MS,
                payloads,
            };
            stream.append(&held, &mut cursor, &batch)?;
            events.iter().for_each(|event| evolve(&mut goal, event));
        }
        goal.context("find the goal")
    }

    fn progressed(&self) -> GoalEvent {
        let (effect, usage) = (self.effect.clone(), used());
        GoalEvent::EffectProgressed {
            effect,
            usage,
            elapsed_ms: 1_000,
        }
    }
}

fn project(root: &Path) -> Project<'static> {
    Project {
        disk: &RealDisk,
        clock: &SystemClock,
        layout: ProjectLayout::new(root.to_path_buf()),
        owner: "xtask bench".to_owned(),
        home: None,
    }
}

fn create_goal(project: &Project<'_>) -> anyhow::Result<GoalId> {
    let contract: Contract = serde_json::from_str(CONTRACT).context("read the sample contract")?;
    let slug = Slug::from_sentence(&contract.intent);
    Ok(project.create_goal(&person(), &slug, &contract)?)
}

fn person() -> Actor {
    Actor::Human {
        user: "bench".to_owned(),
    }
}

fn used() -> Usage {
    Usage {
        input_tokens: 12_000,
        output_tokens: 340,
        usd_micros: Some(41_000),
        ..Usage::ZERO
    }
}

fn bare_file(path: &Path) -> anyhow::Result<File> {
    let opened = OpenOptions::new().create(true).append(true).open(path);
    opened.with_context(|| format!("open {}", path.display()))
}

fn write_and_sync(file: &mut File, bytes: &[u8]) -> anyhow::Result<Duration> {
    let started = Instant::now();
    file.write_all(bytes).context("write")?;
    file.sync_data().context("sync")?;
    Ok(started.elapsed())
}

/// A contract of ordinary size.
const CONTRACT: &str = r#"{
  "version": 1,
  "intent": "make the tests pass",
  "done_criteria": "sh test.sh exits 0 and the change is limited to the sources",
  "verify": ["sh test.sh"],
  "verify_timeout_ms": 600000,
  "verify_network": false,
  "protect": ["tests/**"],
  "hidden": null,
  "budget": { "turns": 20, "tokens": null, "usd_micros": null, "wall_ms": null },
  "stall_after": 2,
  "turn_timeout_ms": 1800000,
  "agent": "claude",
  "judge": { "by": "same" },
  "judge_unavailable": "closed",
  "base": {
    "revision": "HEAD",
    "commit": "1111111111111111111111111111111111111111",
    "tree": "2222222222222222222222222222222222222222"
  },
  "branch": "fix/goal-bench",
  "sandbox": "native"
}"#;
