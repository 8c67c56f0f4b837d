//! The log of a sandbox: one chained stream beside its files, of which `sandbox.json` follows.
//!
//! Whoever holds the sandbox relies on the log; listings read the file alone. A log that is damaged
//! is never grown, and a file that does not follow from it is never believed by whoever writes.

use kapi_core::actor::Actor;
use kapi_core::usage::Usage;
use kapi_machine::audit::{StreamAudit, StreamFault};
use kapi_machine::error::StreamError;
use kapi_machine::evidence::{RecordedRuns, hash_run};
use kapi_machine::opened::OpenStream;
use kapi_run::failure;
use kapi_store::audit::audit as audit_stream;
use kapi_store::stream::LogStream;
use kapi_sys::real_disk::RealDisk;

use super::error::{LaunchError, LaunchErrorKind};
use super::event::{LaunchEvent, LaunchHistory, LaunchMachine};
use super::paths::SandboxPaths;
use super::record::{LaunchState, SandboxRecord, missing};

/// What other processes are told about who holds the log's lock.
const OWNER: &str = "kapi launch";
/// The directory of what a person runs in a sandbox, below those of its launches.
pub(crate) const SHELL: &str = "shell";

/// Returns the stream of a sandbox.
#[must_use]
pub fn stream(location: &SandboxPaths) -> LogStream<'static> {
    LogStream {
        disk: &RealDisk,
        name: location.id().as_str().to_owned(),
        dir: location.dir(),
        anchor: location.state_dir().to_path_buf(),
    }
}

/// Returns what is known of a sandbox by its log; nothing where it has none.
///
/// # Errors
/// When the log is damaged, or cannot be read.
pub fn history(location: &SandboxPaths) -> Result<LaunchHistory, LaunchError> {
    let opened = OpenStream::<LaunchMachine>::load(stream(location));
    opened.map(OpenStream::into_state).map_err(failed)
}

/// Returns what is known of a sandbox that the caller holds: by its log, where it has one.
pub(crate) fn held(location: &SandboxPaths) -> Result<Option<SandboxRecord>, LaunchError> {
    let LaunchHistory {
        sandbox, before, ..
    } = history(location)?;
    let Some(known) = sandbox else {
        return SandboxRecord::load(location);
    };
    match SandboxRecord::load(location)? {
        Some(file) if file == known => {}
        // Its last change was cut off before the file was replaced.
        file if file.is_none() || file == before => known.save(location)?,
        Some(_) | None => {
            let file = location.record();
            return Err(LaunchError::new(
                LaunchErrorKind::Failed,
                format!("trust {}: it does not match the log", file.display()),
                format!(
                    "`kapi audit launch/{0}` says what differs; `kapi sandbox discard {0}` removes \
                     the sandbox.",
                    location.id().as_str()
                ),
            ));
        }
    }
    Ok(Some(known))
}

/// Does the same for a sandbox that must exist.
pub(crate) fn known(location: &SandboxPaths) -> Result<SandboxRecord, LaunchError> {
    held(location)?.ok_or_else(|| missing(location))
}

/// Makes events durable, and then what follows from them. The caller holds the sandbox.
pub(crate) fn record(
    location: &SandboxPaths,
    at_ms: i64,
    events: &[LaunchEvent],
) -> Result<(), LaunchError> {
    record_by(location, &Actor::Engine, at_ms, |_| Ok(events.to_vec()))
}

/// Makes events durable that are decided on what is known now, in the name of whoever asked.
pub(crate) fn record_by(
    location: &SandboxPaths,
    actor: &Actor,
    at_ms: i64,
    decide: impl FnOnce(&LaunchHistory) -> Result<Vec<LaunchEvent>, LaunchError>,
) -> Result<(), LaunchError> {
    let stream = stream(location);
    let lock = stream.lock(OWNER, kapi_machine::file_log::LOCK_WAIT_MS);
    let lock = lock.map_err(|error| failed(error.into()))?;
    let mut opened = OpenStream::<LaunchMachine>::load(stream).map_err(failed)?;
    opened.settle(&lock).map_err(failed)?;
    let events = decide(opened.state())?;
    let recorded = opened.record(&lock, actor, at_ms, &events);
    recorded.map_err(failed)?;
    match &opened.state().sandbox {
        Some(sandbox) => sandbox.save(location),
        None => Ok(()),
    }
}

/// Returns the event that a run is over, with its files as they are now.
pub(crate) fn run_over(
    location: &SandboxPaths,
    run: &str,
    used: Usage,
) -> Result<LaunchEvent, LaunchError> {
    let files = hash_run(&RealDisk, &location.runs().join(run));
    Ok(LaunchEvent::RunRecorded {
        run: run.to_owned(),
        files: files.map_err(|error| LaunchError::failed(&error))?,
        used,
    })
}

/// Puts on record that a launch has ended, and what its run left.
pub(crate) fn end(
    location: &SandboxPaths,
    mut sandbox: SandboxRecord,
    used: Usage,
    now_ms: i64,
) -> Result<SandboxRecord, LaunchError> {
    sandbox.state = LaunchState::Finished;
    sandbox.updated_at_ms = now_ms;
    let over = run_over(location, &sandbox.launches.to_string(), used)?;
    let ended = LaunchEvent::Ended {
        sandbox: Box::new(sandbox.clone()),
    };
    record(location, now_ms, &[over, ended])?;
    Ok(sandbox)
}

/// Checks the log of a sandbox, its file and the files of its runs; `None` where it has no log.
///
/// # Errors
/// When the disk refuses.
pub fn audit(location: &SandboxPaths) -> Result<Option<StreamAudit>, LaunchError> {
    let stream = stream(location);
    let mut found = audit_stream(&stream).map_err(|error| LaunchError::failed(&error))?;
    if found.records.is_empty() && found.faults.is_empty() && found.saved.is_none() {
        return Ok(None);
    }
    let mut report = StreamAudit::of(stream.log(), &mut found);
    let mut runs = RecordedRuns::default();
    let replayed = report.replay::<LaunchMachine>(&found, |_, logged| match &logged.event {
        LaunchEvent::RunRecorded { run, files, .. } => {
            runs.record(location.runs().join(run), files);
        }
        // What is run in there next adds to its files.
        LaunchEvent::Entered { .. } => runs.forget(&location.runs().join(SHELL)),
        LaunchEvent::RunsRemoved => runs = RecordedRuns::default(),
        LaunchEvent::Launched { .. }
        | LaunchEvent::PersonSaid { .. }
        | LaunchEvent::Told { .. }
        | LaunchEvent::Committed { .. }
        | LaunchEvent::Ended { .. }
        | LaunchEvent::Left { .. }
        | LaunchEvent::Merged { .. } => {}
    });
    if !report.is_whole() {
        return Ok(Some(report));
    }
    let LaunchHistory {
        sandbox, before, ..
    } = replayed.end;
    let file = location.record();
    match SandboxRecord::load(location) {
        Ok(found) if found == sandbox => {}
        Ok(found) if found.is_none() || found == before => report.stale.push(file),
        Ok(_) | Err(_) => report.faults.push(StreamFault::NotDerived { file }),
    }
    let checked = report.check_evidence(&RealDisk, runs);
    checked.map_err(|error| LaunchError::failed(&error))?;
    Ok(Some(report))
}

/// Returns why a log could not be read or written.
#[must_use]
pub fn failed(error: StreamError) -> LaunchError {
    match error {
        StreamError::Store(error) => LaunchError {
            kind: LaunchErrorKind::Failed,
            message: failure::chain(&error),
            hint: error.hint(),
        },
        StreamError::UnknownEvent { file, line, .. } => LaunchError::new(
            LaunchErrorKind::Failed,
            format!("understand {} at line {line}", file.display()),
            "a newer version of Kapi wrote the log; use that version.",
        ),
        StreamError::Encode { what, source } => LaunchError::new(
            LaunchErrorKind::Failed,
            format!("encode {what}: {source}"),
            "use UTF-8 paths.",
        ),
    }
}
