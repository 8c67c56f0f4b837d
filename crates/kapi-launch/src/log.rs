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
use kapi_run::spending::usage_meter::UsageLimits;
use kapi_store::audit::audit as audit_stream;
use kapi_store::stream::LogStream;
use kapi_sys::disk::Disk;
use kapi_sys::real_disk::RealDisk;

use super::error::{LaunchError, LaunchErrorKind};
use super::event::{EndedAgent, LaunchEvent, LaunchHistory, LaunchMachine};
use super::paths::SandboxPaths;
use super::record::{LaunchState, SandboxRecord, missing};

/// What other processes are told about who holds the log's lock.
const OWNER: &str = "kapi launch";
/// The directory of what a person runs in a sandbox, below those of its launches.
pub(crate) const SHELL: &str = "shell";
/// Bytes of an agent's last message that are put on record; its transcript has all of it.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// The log of a sandbox on a disk.
#[derive(Clone, Copy)]
pub struct LaunchLog<'d, 'l> {
    /// The disk.
    pub disk: &'d dyn Disk,
    /// The sandbox.
    pub location: &'l SandboxPaths,
}

/// Returns the log of a sandbox of this machine.
#[must_use]
pub const fn at(location: &SandboxPaths) -> LaunchLog<'static, '_> {
    LaunchLog {
        disk: &RealDisk,
        location,
    }
}

impl<'d> LaunchLog<'d, '_> {
    /// Returns its stream.
    #[must_use]
    pub fn stream(&self) -> LogStream<'d> {
        LogStream {
            disk: self.disk,
            name: self.location.id().as_str().to_owned(),
            dir: self.location.dir(),
            anchor: self.location.state_dir().to_path_buf(),
        }
    }

    /// Returns what is known of the sandbox by its log; nothing where it has none.
    ///
    /// # Errors
    /// When the log is damaged, or cannot be read.
    pub fn history(&self) -> Result<LaunchHistory, LaunchError> {
        let opened = OpenStream::<LaunchMachine>::load(self.stream());
        opened.map(OpenStream::into_state).map_err(failed)
    }

    /// Returns what the last launch may use; nothing where that cannot be read.
    pub(crate) fn limits(&self) -> Option<UsageLimits> {
        let request = self.history().ok()?.request?;
        Some(request.limits)
    }

    /// Returns what is known of a sandbox that the caller holds: by its log, where it has one. What was
    /// read is durable by then, so that the caller may act on it.
    ///
    /// # Errors
    /// When the log is damaged, or the sandbox's file does not follow from it.
    pub fn held(&self) -> Result<Option<SandboxRecord>, LaunchError> {
        if self.history()?.sandbox.is_none() {
            return self.file();
        }
        let settled = self.decide(&Actor::Engine, 0, |_| Ok(Vec::new()))?;
        let LaunchHistory {
            sandbox, before, ..
        } = settled;
        let Some(known) = sandbox else {
            return self.file();
        };
        match self.file()? {
            Some(file) if file == known => {}
            // Its last change was cut off before the file was replaced.
            file if file.is_none() || file == before => known.save(self.disk, self.location)?,
            Some(_) | None => {
                let file = self.location.record();
                return Err(LaunchError::new(
                    LaunchErrorKind::Failed,
                    format!("trust {}: it does not match the log", file.display()),
                    format!(
                        "`kapi audit launch/{0}` says what differs; `kapi sandbox discard {0}` removes \
                         the sandbox.",
                        self.location.id().as_str()
                    ),
                ));
            }
        }
        Ok(Some(known))
    }

    /// Does the same for a sandbox that must exist.
    pub(crate) fn known(&self) -> Result<SandboxRecord, LaunchError> {
        self.held()?.ok_or_else(|| missing(self.location))
    }

    /// Makes events durable, and then what follows from them. The caller holds the sandbox.
    ///
    /// # Errors
    /// When the log is damaged, or the disk refuses.
    pub fn record(&self, at_ms: i64, events: &[LaunchEvent]) -> Result<(), LaunchError> {
        self.decide(&Actor::Engine, at_ms, |_| Ok(events.to_vec()))
            .map(drop)
    }

    /// Makes the events durable that something decides on what is known, and then what follows from
    /// them; returns what is known then.
    pub(crate) fn decide(
        &self,
        actor: &Actor,
        at_ms: i64,
        decide: impl FnOnce(&LaunchHistory) -> Result<Vec<LaunchEvent>, LaunchError>,
    ) -> Result<LaunchHistory, LaunchError> {
        let stream = self.stream();
        let lock = stream.lock(OWNER, kapi_machine::file_log::LOCK_WAIT_MS);
        let lock = lock.map_err(|error| failed(error.into()))?;
        let mut opened = OpenStream::<LaunchMachine>::load(stream).map_err(failed)?;
        opened.settle(&lock).map_err(failed)?;
        let events = decide(opened.state())?;
        if events.is_empty() {
            return Ok(opened.into_state());
        }
        let recorded = opened.record(&lock, actor, at_ms, &events);
        recorded.map_err(failed)?;
        if let Some(sandbox) = &opened.state().sandbox {
            sandbox.save(self.disk, self.location)?;
        }
        Ok(opened.into_state())
    }

    /// Returns the event that a run is over, with its files as they are now.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn run_over(&self, run: &str, used: Usage) -> Result<LaunchEvent, LaunchError> {
        let files = hash_run(self.disk, &self.location.runs().join(run));
        Ok(LaunchEvent::RunRecorded {
            run: run.to_owned(),
            files: files.map_err(|error| LaunchError::failed(&error))?,
            used,
        })
    }

    /// Puts on record how the agent of a launch has ended, and what its run left: whoever goes on
    /// after the launcher was killed knows that the agent need not run again, and nothing that it used
    /// is forgotten.
    ///
    /// # Errors
    /// When the log is damaged, or the disk refuses.
    pub fn agent_ended(
        &self,
        sandbox: &SandboxRecord,
        mut agent: EndedAgent,
        used: Usage,
        now_ms: i64,
    ) -> Result<(), LaunchError> {
        let end = agent.message.floor_char_boundary(MESSAGE_BYTES_MAX);
        agent.message.truncate(end);
        let over = self.run_over(&sandbox.launches.to_string(), used)?;
        let agent = Box::new(agent);
        self.record(now_ms, &[over, LaunchEvent::AgentEnded { agent }])
    }

    /// Puts on record that a launch has ended, and what its run left where that is not known yet.
    ///
    /// # Errors
    /// When the log is damaged, or the disk refuses.
    pub fn end(
        &self,
        mut sandbox: SandboxRecord,
        used: Usage,
        now_ms: i64,
    ) -> Result<SandboxRecord, LaunchError> {
        sandbox.state = LaunchState::Finished;
        sandbox.updated_at_ms = now_ms;
        let ended = LaunchEvent::Ended {
            sandbox: Box::new(sandbox.clone()),
        };
        self.decide(&Actor::Engine, now_ms, |history| {
            Ok(match history.run_used {
                Some(_) => vec![ended],
                None => vec![self.run_over(&sandbox.launches.to_string(), used)?, ended],
            })
        })?;
        Ok(sandbox)
    }

    /// Puts on record that what came of a launch is known where it was asked for, so that nobody takes
    /// it over.
    ///
    /// # Errors
    /// When the log is damaged, or the disk refuses.
    pub fn settle(&self, now_ms: i64) -> Result<(), LaunchError> {
        self.decide(&Actor::Engine, now_ms, |history| {
            let agent = history.agent.iter();
            Ok(agent.map(|_| LaunchEvent::Settled).collect())
        })
        .map(drop)
    }

    /// Checks the log, the sandbox's file and the files of its runs; `None` where it has no log.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn audit(&self) -> Result<Option<StreamAudit>, LaunchError> {
        let stream = self.stream();
        let mut found = audit_stream(&stream).map_err(|error| LaunchError::failed(&error))?;
        if found.records.is_empty() && found.faults.is_empty() && found.saved.is_none() {
            return Ok(None);
        }
        let mut report = StreamAudit::of(stream.log(), &mut found);
        let mut runs = RecordedRuns::default();
        let location = self.location;
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
            | LaunchEvent::AgentEnded { .. }
            | LaunchEvent::LimitsRaised { .. }
            | LaunchEvent::Committed { .. }
            | LaunchEvent::Ended { .. }
            | LaunchEvent::Settled
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
        match self.file() {
            Ok(found) if found == sandbox => {}
            Ok(found) if found.is_none() || found == before => report.stale.push(file),
            Ok(_) | Err(_) => report.faults.push(StreamFault::NotDerived { file }),
        }
        let checked = report.check_evidence(self.disk, runs);
        checked.map_err(|error| LaunchError::failed(&error))?;
        Ok(Some(report))
    }

    fn file(&self) -> Result<Option<SandboxRecord>, LaunchError> {
        SandboxRecord::load_from(self.disk, self.location)
    }
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
