//! A proved branch at the person's remote, and a pull request for it, once the goal is done.
//!
//! What fails is told and recorded, and `kapi deliver` tries again. Nothing of it runs in a
//! sandbox.

mod body;
pub(crate) mod others;

use std::collections::BTreeMap;
use std::path::PathBuf;

use kapi_goal::perform::deliver;
use kapi_goal::record::project::Project;
use kapi_goal::rules::delivery::Delivery;
use kapi_goal::rules::prompt::commit_message;
use kapi_goal::rules::state::{Goal, GoalStatus};
use kapi_sys::disk;
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::context::Context;
use crate::delivering::others::DeliverySite;
use crate::delivery::forge::{Forge, PullRequest};
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::Format;

/// What came of delivering a goal, in its directory.
const FILE: &str = "delivery.json";

/// What came of delivering a goal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeliveryRecord {
    /// The remote.
    pub(crate) remote: String,
    /// The branch over there.
    pub(crate) branch: String,
    /// The commit that the remote has.
    pub(crate) commit: Option<String>,
    /// The pull request, or the address at which a person opens it.
    pub(crate) pull_request: Option<String>,
    /// Whether the pull request was opened; where there is no program for it, a person opens it.
    pub(crate) opened: bool,
    /// What went wrong, if anything did.
    pub(crate) error: Option<String>,
}

#[derive(Serialize)]
struct DeliveryView<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    /// `goal`, `workflow`, `task` or `launch`, and its name.
    #[serde(flatten)]
    of: BTreeMap<&'static str, &'a str>,
    #[serde(flatten)]
    record: &'a DeliveryRecord,
}

/// A branch to deliver, and what a pull request says of it.
pub(crate) struct DeliverySource {
    /// What it is of: `goal`, `workflow`, `task` or `launch`.
    kind: &'static str,
    /// The whole name of that.
    id: String,
    /// How that is typed.
    reference: String,
    /// The branch.
    branch: String,
    /// The commit that the remote has already, if it has.
    pushed: Option<String>,
    /// The title of a pull request.
    title: String,
    /// Its text.
    body: String,
}

/// Delivers a goal that was proved, where its contract asks for it and nobody has; tells what came
/// of it, and whether all of it was done.
pub(crate) fn of_goal(
    context: &Context,
    config: &Config,
    project: &Project<'_>,
    goal: &Goal,
) -> Result<(), Error> {
    let Some(delivery) = &goal.contract.delivery else {
        return Ok(());
    };
    match goal.status {
        GoalStatus::Done => {}
        GoalStatus::Unverified => {
            context.ui.say(&format!(
                "note: the result is not proved, so it was not delivered; `kapi deliver {}` does it anyway.",
                goal.id.reference()
            ));
            return Ok(());
        }
        GoalStatus::Setup
        | GoalStatus::Proposed
        | GoalStatus::Active
        | GoalStatus::Waiting
        | GoalStatus::Paused
        | GoalStatus::Blocked
        | GoalStatus::Stalled
        | GoalStatus::Impossible
        | GoalStatus::Cancelled => return Ok(()),
    }
    let before = recorded(project, goal);
    let is_new = before.is_none_or(|record| record.error.is_some() || record.commit != goal.result);
    if is_new {
        deliver(context, config, project, goal, delivery)?;
    }
    Ok(())
}

/// Delivers a goal now, whatever was done before: a push and a pull request that are there stay.
pub(crate) fn deliver(
    context: &Context,
    config: &Config,
    project: &Project<'_>,
    goal: &Goal,
    delivery: &Delivery,
) -> Result<(), Error> {
    let site = DeliverySite {
        context,
        config,
        root: project.layout.root(),
    };
    let message = commit_message(goal);
    let source = DeliverySource {
        kind: "goal",
        id: goal.id.to_string(),
        reference: goal.id.reference(),
        branch: goal.contract.branch.clone(),
        pushed: None,
        title: message.lines().next().unwrap_or_default().to_owned(),
        body: body::text(goal),
    };
    let record = performed(site, &source, delivery);
    let file = file(project, goal);
    let text = serde_json::to_vec(&record).map_err(|error| Error::failed(&error))?;
    disk::replace_durably(&context.disk, &file, &text).map_err(|error| Error::failed(&error))?;
    concluded(context, &source, &record)
}

/// Delivers what is no goal, and shows what came of it.
fn deliver_source(
    site: DeliverySite<'_>,
    source: &DeliverySource,
    delivery: &Delivery,
) -> Result<(), Error> {
    let record = performed(site, source, delivery);
    if site.context.ui.format == Format::Human {
        for line in lines(&record) {
            site.context.ui.line(&format!("  {line}"));
        }
    }
    concluded(site.context, source, &record)
}

/// Tells what came of a delivery, and whether all of it was done.
fn concluded(
    context: &Context,
    source: &DeliverySource,
    record: &DeliveryRecord,
) -> Result<(), Error> {
    if context.ui.format == Format::Json {
        context.ui.json(&DeliveryView {
            kind: "delivery",
            of: [(source.kind, source.id.as_str())].into(),
            record,
        });
    }
    match &record.error {
        None => Ok(()),
        Some(error) => Err(Error::new(
            Exit::Failed,
            format!(
                "the {} is done, and its branch {} was not delivered to {}: {error}",
                source.kind, source.branch, record.remote
            ),
        )
        .with_hint(format!(
            "mend that, then deliver it with `kapi deliver {}`.",
            source.reference
        ))),
    }
}

/// Returns what came of an earlier delivery of a goal.
fn recorded(project: &Project<'_>, goal: &Goal) -> Option<DeliveryRecord> {
    let text = std::fs::read(file(project, goal)).ok()?;
    serde_json::from_slice(&text).ok()
}

fn file(project: &Project<'_>, goal: &Goal) -> PathBuf {
    project.layout.goal(&goal.id).dir().join(FILE)
}

fn performed(
    site: DeliverySite<'_>,
    source: &DeliverySource,
    delivery: &Delivery,
) -> DeliveryRecord {
    let DeliverySite {
        context,
        config,
        root,
    } = site;
    let mut record = DeliveryRecord {
        remote: delivery.remote.clone(),
        branch: source.branch.clone(),
        commit: source.pushed.clone(),
        pull_request: None,
        opened: false,
        error: None,
    };
    let grants = context.grants(config);
    if record.commit.is_none() {
        let pushed = match deliver::push(&grants, root, delivery, &record.branch) {
            Ok(pushed) => pushed,
            Err(failure) => {
                record.error = Some(format!("failed to {}", failure.message));
                return record;
            }
        };
        record.commit = Some(pushed.commit);
        record.pull_request = pushed.page;
    }
    if !delivery.pull_request {
        return record;
    }
    let request = PullRequest {
        branch: record.branch.clone(),
        target: delivery.target.clone(),
        title: source.title.clone(),
        body: source.body.clone(),
    };
    let opened = deliver::address(&grants, root, delivery)
        .map_err(|failure| Error::world(&failure))
        .and_then(|address| Forge::find(context, root, &address))
        .and_then(|forge| forge.open(context, root, &request));
    match opened {
        Ok(opened) => {
            record.opened = opened.is_open;
            record.pull_request = Some(opened.address);
        }
        Err(error) => record.error = Some(error.message),
    }
    record
}

/// Prints what came of a goal's delivery below the goal's own report.
pub(crate) fn show(context: &Context, project: &Project<'_>, goal: &Goal) {
    if context.ui.format == Format::Human {
        for line in status_lines(project, goal) {
            context.ui.line(&format!("  {line}"));
        }
    }
}

/// Returns what came of a delivery, for a report.
fn lines(record: &DeliveryRecord) -> Vec<String> {
    let mut lines = Vec::new();
    if record.commit.is_some() {
        lines.push(format!("pushed   {} to {}", record.branch, record.remote));
    }
    if let Some(address) = &record.pull_request {
        lines.push(if record.opened {
            format!("request  {address}")
        } else {
            format!("request  open it at {address}")
        });
    }
    lines
}

/// Returns what came of a goal's delivery, or that it is still to be made, for a report.
fn status_lines(project: &Project<'_>, goal: &Goal) -> Vec<String> {
    let record = recorded(project, goal);
    let is_open = match (&record, goal.status) {
        (Some(record), _) => record.error.is_some(),
        (None, GoalStatus::Done) => goal.contract.delivery.is_some(),
        (None, _) => false,
    };
    let mut all = record.as_ref().map(lines).unwrap_or_default();
    if is_open {
        let why = record.and_then(|record| record.error).unwrap_or_default();
        let why = if why.is_empty() {
            why
        } else {
            format!(": {why}")
        };
        all.push(format!("deliver  not delivered{why}"));
        all.push(format!("next     kapi deliver {}", goal.id.reference()));
    }
    all
}
