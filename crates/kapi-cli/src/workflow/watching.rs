//! Watching workers while their workflow is driven: a file of lines for each, shown in a window of a
//! tmux session that Kapi makes and ends.
//!
//! Nothing depends on it: what goes wrong here is said, and the work goes on.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use kapi_core::actor::Actor;
use kapi_core::failure::chain;
use kapi_core::id::EffectId;
use kapi_machine::watch::Activity;
use kapi_run::host_grants::HostGrants;
use kapi_store::layout::project_key;
use kapi_workflow::perform::terminal::{WatchedWorkflow, end_tmux, has_tmux, watch_in_tmux};
use kapi_workflow::record::drive::WorkflowObservation;
use kapi_workflow::record::workflows::Workflows;
use kapi_workflow::rules::command::WorkflowCommand;
use kapi_workflow::rules::event::WorkflowEvent;
use kapi_workflow::rules::worker::WorkerId;

use crate::context::Context;
use crate::error::Error;
use crate::event_words::first_line;
use crate::exit_code::Exit;
use crate::ui::harmless;
use crate::workflow::event_words::describe;
use crate::workflow::located::LocatedWorkflow;

/// Bytes that are written about one worker at most while it is driven once.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// The directory of the files, below the workflow's working files.
const DIRECTORY: &str = "watch";

/// Where workers are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum WorkerWatch {
    /// Windows of the workflow's tmux session
    Tmux,
}

/// Refuses to begin what nobody could watch.
pub(crate) fn require(context: &Context, watch: Option<WorkerWatch>) -> Result<(), Error> {
    match watch {
        None => Ok(()),
        Some(WorkerWatch::Tmux) if has_tmux(&context.grants(&context.config(None)?)) => Ok(()),
        Some(WorkerWatch::Tmux) => Err(Error::new(
            Exit::Failed,
            "failed to find tmux on PATH; nothing was started",
        )
        .with_hint("install tmux, or omit `--watch`.")),
    }
}

/// The workers of one workflow, as they are shown.
pub(crate) struct Watching<'a> {
    found: &'a LocatedWorkflow<'a>,
    grants: HostGrants,
    project_key: String,
    dir: PathBuf,
    terminals: BTreeMap<WorkerId, String>,
    files: BTreeMap<EffectId, WorkerLine>,
}

/// What is written about one worker.
struct WorkerLine {
    file: File,
    left: u64,
}

impl<'a> Watching<'a> {
    /// Begins to show the workers of a workflow.
    pub(crate) fn new(context: &Context, found: &'a LocatedWorkflow<'a>) -> Result<Self, Error> {
        let root = found.project.layout.root();
        let config = context.config(Some(root))?;
        let location = context.location(&found.project, &found.key.id)?;
        let known = found.workflow.workers.iter();
        let known = known.filter_map(|worker| Some((worker.id.clone(), worker.terminal.clone()?)));
        Ok(Self {
            found,
            grants: context.grants(&config),
            project_key: project_key(root),
            dir: location.scratch.join(DIRECTORY),
            terminals: known.collect(),
            files: BTreeMap::new(),
        })
    }

    /// Shows what was observed; returns what went wrong with it.
    pub(crate) fn observe(&mut self, seen: &WorkflowObservation) -> Option<String> {
        match seen {
            WorkflowObservation::Recorded(logged) => match &logged.event {
                WorkflowEvent::WorkerDispatched {
                    worker,
                    effect,
                    what,
                    ..
                } => {
                    let begun = self.begin(worker, effect);
                    self.say(effect, &format!("{worker} is working on {what}"));
                    begun.err()
                }
                WorkflowEvent::EffectEnded { effect, .. } => {
                    let line = describe(&logged.event).unwrap_or_else(|| "ended".to_owned());
                    self.say(effect, &line);
                    self.files.remove(effect);
                    None
                }
                _ => None,
            },
            WorkflowObservation::Activity { effect, activity } => {
                let line = match activity {
                    Activity::Tool { name, detail } => format!("{name} {detail}"),
                    Activity::Text { text } | Activity::Note { text } => text.clone(),
                    Activity::Verifying { command } => format!("verifying: {command}"),
                    Activity::Used(_) => return None,
                };
                self.say(effect, &line);
                None
            }
            WorkflowObservation::Performing(_) | WorkflowObservation::Delayed { .. } => None,
        }
    }

    /// Ends the session of a workflow that has ended; returns what went wrong with it.
    pub(crate) fn end(&self) -> Option<String> {
        end_tmux(&self.grants, self.watched())
            .err()
            .map(|failure| format!("failed to {}", failure.message))
    }

    /// Shows a worker in a window, and records which.
    fn begin(&mut self, worker: &WorkerId, effect: &EffectId) -> Result<(), String> {
        let path = self.dir.join(format!("{worker}.log"));
        let file = open(&self.dir, &path)
            .map_err(|error| format!("failed to write {}: {error}", path.display()))?;
        let left = FILE_BYTES_MAX;
        self.files.insert(effect.clone(), WorkerLine { file, left });
        let command = ["tail", "-n", "+1", "-F"].map(OsString::from);
        let command = [&command[..], &[path.into_os_string()]].concat();
        let shown = watch_in_tmux(&self.grants, self.watched(), worker, &command);
        let shown = shown.map_err(|failure| format!("failed to {}", failure.message))?;
        let Some(terminal) = shown else {
            return Err("tmux is gone".to_owned());
        };
        if self.terminals.get(worker) == Some(&terminal) {
            return Ok(());
        }
        let refresh = WorkflowCommand::RefreshWorker {
            worker: worker.clone(),
            note: None,
            terminal: Some(terminal.clone()),
            isolated: None,
        };
        let found = self.found;
        Workflows::of(&found.project)
            .submit_workflow(&found.key, &Actor::Engine, &refresh)
            .map_err(|error| format!("failed to {}", chain(&error)))?;
        self.terminals.insert(worker.clone(), terminal);
        Ok(())
    }

    fn watched(&self) -> WatchedWorkflow<'_> {
        WatchedWorkflow {
            workflow: &self.found.key.id,
            project_key: &self.project_key,
            project: self.found.project.layout.root(),
        }
    }

    /// Writes a line about the worker that has this effect; what cannot be written is only unseen.
    fn say(&mut self, effect: &EffectId, text: &str) {
        let Some(shown) = self.files.get_mut(effect) else {
            return;
        };
        let line = format!("{}\n", harmless(first_line(text).trim_end()));
        let bytes = u64::try_from(line.len()).unwrap_or(u64::MAX);
        if bytes <= shown.left && shown.file.write_all(line.as_bytes()).is_ok() {
            shown.left -= bytes;
        } else {
            self.files.remove(effect);
        }
    }
}

fn open(dir: &Path, path: &Path) -> std::io::Result<File> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(dir)?;
    let mut options = OpenOptions::new();
    options.create(true).append(true).mode(0o600).open(path)
}
