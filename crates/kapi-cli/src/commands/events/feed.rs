//! All logs of a project, read on from where each was left and told in one order.
//!
//! The events of one log keep their order; between logs the times decide. A log that cannot be read
//! stops no other: it is told as an event of its own, once. One that begins anew is read anew.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use kapi_core::actor::Actor;
use kapi_core::failure::chain;
use kapi_goal::record::project::Project;
use kapi_goal::rules::event::GoalEvent;
use kapi_launch::event::LaunchEvent;
use kapi_launch::log;
use kapi_launch::paths::SandboxPaths;
use kapi_machine::logged::to_logged;
use kapi_store::error::StoreError;
use kapi_store::layout::{HomeLayout, project_key};
use kapi_store::record::LogRecord;
use kapi_store::stream::{LogStream, StreamCursor};
use kapi_sys::clock::Clock as _;
use kapi_task::record::queue::Queue;
use kapi_workflow::rules::event::WorkflowEvent;
use serde_json::{Value, json};

use crate::commands::events::cursor::{StreamMark, StreamMarks};
use crate::commands::events::entry::FeedEntry;
use crate::commands::events::spending::ProjectSpending;
use crate::context::Context;
use crate::error::Error;
use crate::kernel::{ProjectKernel, failed};
use crate::subject::launches::{here, is_of_task};
use crate::{event_words, workflow};

/// The stream of tasks and loops.
const KERNEL: &str = "kernel";
/// The stream of what is spent.
const SPEND: &str = "spend";
/// A log was replaced by another one, which is read from its beginning.
const RESTARTED: &str = "stream_restarted";
/// A log cannot be read.
const UNREADABLE: &str = "stream_unreadable";

/// All logs of a project.
pub(super) struct Feed<'a> {
    context: &'a Context,
    project: &'a Project<'a>,
    logs: BTreeMap<String, FollowedLog>,
    spending: ProjectSpending,
    /// The queue, where it is on a cluster: its past is not told.
    cluster: Option<Queue<'a>>,
    /// Of logs that were not opened yet.
    marks: StreamMarks,
}

/// How far a log was read.
#[derive(Debug)]
struct FollowedLog {
    cursor: StreamCursor,
    is_readable: bool,
}

/// A log and what its events are about.
struct FeedStream<'a> {
    name: String,
    subject: Option<(&'static str, String)>,
    log: LogStream<'a>,
}

impl<'a> Feed<'a> {
    /// Begins after what is remembered.
    pub(super) fn new(
        context: &'a Context,
        project: &'a Project<'a>,
        marks: StreamMarks,
    ) -> Result<Self, Error> {
        let root = project.layout.root();
        let config = context.config(Some(root))?;
        let (kernel, _) = ProjectKernel::lenient(context, project, &config);
        let cluster = if kernel.store.is_shared() {
            let queue = Queue::open_in(project, &kernel.store);
            Some(queue.map_err(|error| failed(&error))?)
        } else {
            None
        };
        Ok(Self {
            spending: ProjectSpending::new(project_key(root)),
            context,
            project,
            logs: BTreeMap::new(),
            cluster,
            marks,
        })
    }

    /// Returns the directories in which something new is seen.
    pub(super) fn directories(&self) -> BTreeSet<PathBuf> {
        let layout = &self.project.layout;
        let above = [
            layout.state_dir(),
            layout.goals_dir(),
            layout.workflows_dir(),
        ];
        let streams = self.streams().unwrap_or_default();
        let of_logs = streams.into_iter().map(|stream| stream.log.dir);
        above.into_iter().chain(of_logs).collect()
    }

    /// Returns how far each log was read.
    pub(super) fn marks(&self) -> StreamMarks {
        let mut marks = self.marks.clone();
        marks.extend(self.logs.iter().map(|(name, log)| {
            let position = &log.cursor.position;
            let mark = StreamMark {
                seq: position.seq,
                last: position.last_hash.clone(),
            };
            (name.clone(), mark)
        }));
        marks
    }

    /// Returns what was recorded since, in order.
    pub(super) fn read(&mut self) -> Result<Vec<FeedEntry>, Error> {
        let mut found = Vec::new();
        for stream in self.streams()? {
            let entries = self.read_stream(&stream);
            found.extend(in_time(entries));
        }
        found.extend(in_time(self.of_cluster()?));
        // Stable, so that what was recorded at one time in one log stays in its order.
        found.sort_by_key(|(time, _)| *time);
        Ok(found.into_iter().map(|(_, entry)| entry).collect())
    }

    fn streams(&self) -> Result<Vec<FeedStream<'a>>, Error> {
        let project = self.project;
        let of = |name: String, subject, id: &str, dir| FeedStream {
            name,
            subject,
            log: LogStream {
                disk: project.disk,
                name: id.to_owned(),
                dir,
                anchor: project.layout.root().to_path_buf(),
            },
        };
        let mut streams = Vec::new();
        for id in project
            .goal_ids()
            .map_err(|error| Error::engine(&error, ""))?
        {
            streams.push(FeedStream {
                name: format!("goal/{id}"),
                subject: Some(("goal", id.to_string())),
                log: project.stream(&id),
            });
        }
        let keys = project.workflow_keys();
        for key in keys.map_err(|error| Error::failed(&error))? {
            let id = key.id.to_string();
            let dir = project
                .layout
                .workflow(key.mode, &key.id)
                .dir()
                .to_path_buf();
            let subject = Some(("workflow", id.clone()));
            streams.push(of(format!("workflow/{id}"), subject, &id, dir));
        }
        if self.cluster.is_none() {
            let dir = project.layout.kernel_dir();
            streams.push(of(KERNEL.to_owned(), None, KERNEL, dir));
        }
        if matches!(self.context.actor, Actor::Human { .. }) {
            let launches = here(self.context)?.into_iter();
            streams.extend(launches.filter_map(|location| of_launch(&location)));
        }
        let home = HomeLayout::new(&self.context.home);
        let mut spend = of(SPEND.to_owned(), None, SPEND, home.state_dir().join(SPEND));
        spend.log.anchor.clone_from(&self.context.home);
        streams.push(spend);
        Ok(streams)
    }

    fn read_stream(&mut self, stream: &FeedStream<'a>) -> Vec<FeedEntry> {
        let mut entries = Vec::new();
        match self.records(stream, &mut entries) {
            Ok(records) => {
                if let Some(log) = self.logs.get_mut(&stream.name) {
                    log.is_readable = true;
                }
                entries.extend(records.iter().map(|record| entry(stream, record)));
            }
            Err(error) => entries.extend(self.unreadable(stream, &error)),
        }
        entries
    }

    /// Reads a log on; what was said of it before is not its records.
    fn records(
        &mut self,
        stream: &FeedStream<'a>,
        said: &mut Vec<FeedEntry>,
    ) -> Result<Vec<LogRecord>, StoreError> {
        let Some(log) = self.logs.get_mut(&stream.name) else {
            return self.open(stream, said);
        };
        if !stream.log.has_changed(&log.cursor)? {
            return Ok(Vec::new());
        }
        let read = stream.log.read_more(&mut log.cursor);
        let records = match read {
            Ok(records) => records,
            Err(StoreError::Corrupt { .. }) => {
                // Either another log is there, whole from its beginning, or this one is damaged.
                let loaded = stream.log.load_all()?;
                said.push(self.note(stream, RESTARTED, json!({})));
                let log = FollowedLog {
                    cursor: loaded.cursor,
                    is_readable: true,
                };
                self.logs.insert(stream.name.clone(), log);
                loaded.records
            }
            Err(error) => return Err(error),
        };
        Ok(self.ours(stream, records))
    }

    /// Reads a log from where the mark says, or from its beginning.
    fn open(
        &mut self,
        stream: &FeedStream<'a>,
        said: &mut Vec<FeedEntry>,
    ) -> Result<Vec<LogRecord>, StoreError> {
        let loaded = stream.log.load_all()?;
        let log = FollowedLog {
            cursor: loaded.cursor.clone(),
            is_readable: true,
        };
        self.logs.insert(stream.name.clone(), log);
        let mark = self.marks.remove(&stream.name);
        let Some(mark) = mark.filter(|mark| mark.seq > 0) else {
            return Ok(self.ours(stream, loaded.records));
        };
        let last = &loaded.cursor.position;
        let n_known = usize::try_from(mark.seq).unwrap_or(usize::MAX);
        // The line after names the hash of the one before it.
        let hash = match loaded.records.get(n_known) {
            Some(next) => Some(&next.prev),
            None => (last.seq == mark.seq).then_some(&last.last_hash),
        };
        let is_known = hash == Some(&mark.last);
        if !is_known {
            said.push(self.note(stream, RESTARTED, json!({})));
        }
        let n_known = if is_known { n_known } else { 0 };
        // What was told before is read all the same: later events rest on it.
        let mut records = loaded.records;
        let new = records.split_off(n_known.min(records.len()));
        drop(self.ours(stream, records));
        Ok(self.ours(stream, new))
    }

    /// Leaves out what is of other projects.
    fn ours(&mut self, stream: &FeedStream<'a>, mut records: Vec<LogRecord>) -> Vec<LogRecord> {
        if stream.name == SPEND {
            records.retain(|record| self.spending.take(record));
        }
        records
    }

    fn unreadable(&mut self, stream: &FeedStream<'a>, error: &StoreError) -> Option<FeedEntry> {
        let text = format!("failed to {}", chain(error));
        let is_told = self
            .marks
            .get(&stream.name)
            .is_some_and(|mark| mark.last == text)
            || self
                .logs
                .get(&stream.name)
                .is_some_and(|log| !log.is_readable);
        match self.logs.get_mut(&stream.name) {
            Some(log) => log.is_readable = false,
            None => {
                let mark = StreamMark {
                    seq: 0,
                    last: text.clone(),
                };
                self.marks.insert(stream.name.clone(), mark);
            }
        }
        (!is_told).then(|| {
            let mut entry = self.note(stream, UNREADABLE, json!({ "error": text }));
            entry.words = Some(text);
            entry
        })
    }

    /// Returns what is said about a log, which stands in none.
    fn note(&self, stream: &FeedStream<'a>, kind: &str, data: Value) -> FeedEntry {
        FeedEntry {
            stream: stream.name.clone(),
            seq: 0,
            at_ms: self.context.clock.now_ms(),
            actor: Actor::Engine,
            subject: stream.subject.clone(),
            kind: kind.to_owned(),
            data,
            words: None,
        }
    }

    fn of_cluster(&mut self) -> Result<Vec<FeedEntry>, Error> {
        let Some(queue) = &mut self.cluster else {
            return Ok(Vec::new());
        };
        let recorded = queue.refresh().map_err(|error| failed(&error))?;
        let entries = recorded.into_iter().map(|logged| {
            let event = serde_json::to_value(&logged.event).unwrap_or_default();
            FeedEntry {
                stream: KERNEL.to_owned(),
                seq: logged.seq,
                at_ms: logged.at_ms,
                actor: logged.actor,
                subject: None,
                kind: event["type"].as_str().unwrap_or_default().to_owned(),
                data: event["data"].clone(),
                words: None,
            }
        });
        Ok(entries.collect())
    }
}

/// Returns the stream of a launch; what an attempt at a task does stands in the log of tasks.
fn of_launch<'a>(location: &SandboxPaths) -> Option<FeedStream<'a>> {
    let id = location.id().as_str();
    (!is_of_task(id)).then(|| FeedStream {
        name: format!("launch/{id}"),
        subject: Some(("launch", id.to_owned())),
        log: log::at(location).stream(),
    })
}

/// Returns events with the times by which they are put among those of other logs: within a log time
/// never goes back, whatever a clock did.
fn in_time(entries: Vec<FeedEntry>) -> Vec<(i64, FeedEntry)> {
    let mut latest = i64::MIN;
    let timed = entries.into_iter().map(|entry| {
        latest = latest.max(entry.at_ms);
        (latest, entry)
    });
    timed.collect()
}

fn entry(stream: &FeedStream<'_>, record: &LogRecord) -> FeedEntry {
    let words = match stream.subject {
        Some(("goal", _)) => {
            let logged = to_logged::<GoalEvent>(record).ok();
            logged.map(|logged| event_words::describe(&logged.event))
        }
        Some(("workflow", _)) => {
            let logged = to_logged::<WorkflowEvent>(record).ok();
            logged.and_then(|logged| workflow::event_words::describe(&logged.event))
        }
        Some(("launch", _)) => {
            let logged = to_logged::<LaunchEvent>(record).ok();
            logged.map(|logged| logged.event.words())
        }
        Some(_) | None => of_task(record),
    };
    FeedEntry {
        stream: stream.name.clone(),
        seq: record.seq,
        at_ms: record.at_ms,
        actor: record.actor.clone(),
        subject: stream.subject.clone(),
        kind: record.kind.clone(),
        data: serde_json::from_str(record.data.get()).unwrap_or(Value::Null),
        words,
    }
}

/// Returns an event of a task or a loop in words.
fn of_task(record: &LogRecord) -> Option<String> {
    let data: Value = serde_json::from_str(record.data.get()).ok()?;
    let whose = data.get("task").or_else(|| data.get("loop"))?;
    let whose = whose
        .as_str()
        .map_or_else(|| whose.to_string(), str::to_owned);
    Some(format!("{whose} {}", record.kind.replace('_', " ")))
}
