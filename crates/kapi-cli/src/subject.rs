//! What a verb is about: the goal, the workflow, the task or the launch that a person named, or the
//! only one that has not ended.
//!
//! What fits a reference is the engine's rule. Here the names are gathered, launches among them, and
//! whoever named several things is shown them.

mod candidates;
pub(crate) mod completion;
pub(crate) mod launches;

use std::path::{Path, PathBuf};

use kapi_core::id::GoalId;
use kapi_core::task_id::KernelTaskId;
use kapi_core::workflow_key::WorkflowKey;
use kapi_goal::record::reference::{Names, ReferenceTarget, SubjectKind, fitting};
use kapi_launch::paths::SandboxPaths;

use crate::context::Context;
use crate::error::{Error, optional};
use crate::exit_code::Exit;
use crate::kernel::{self, failed};

/// Names that an error lists at most.
const CANDIDATES_MAX: usize = 10;
/// What other processes are told about who looks.
const OWNER: &str = "kapi";

/// What a verb is about.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SubjectArgs {
    /// Goal or workflow (3, fix-login, 003-fix-login), task (task_17) or launch (launch/2)
    /// [default: the only unfinished one]
    #[arg(value_name = "REF")]
    reference: Option<String>,
    /// Project directory [default: current directory]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Task store: 'files', or NATS servers as 'nats://host:port,…'
    #[arg(long, value_name = "STORE")]
    store: Option<String>,
}

/// What a reference means.
pub(crate) enum Meaning {
    /// A goal.
    Goal(GoalId),
    /// A workflow.
    Workflow(WorkflowKey),
    /// A task.
    Task(KernelTaskId),
    /// The sandbox of a launch.
    Launch(SandboxPaths),
}

/// What it means that nothing was named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Silence {
    /// Where nothing is under way, the latest that has ended is looked at.
    Latest,
    /// Something has to be under way.
    UnderWay,
}

impl SubjectArgs {
    /// Returns the options that name something in the project at hand.
    pub(crate) fn of(reference: &str) -> Self {
        Self {
            reference: Some(reference.to_owned()),
            project: None,
            store: None,
        }
    }

    /// Tells whether anything was named.
    pub(crate) const fn is_named(&self) -> bool {
        self.reference.is_some()
    }

    /// Returns what the command stands on, in the project and with the store that the options say.
    pub(crate) fn context(&self, context: &Context) -> Result<Context, Error> {
        let mut context = context.with_store(self.store.as_deref());
        if let Some(project) = &self.project {
            context.cwd = launches::directory(&context, project)?;
        }
        Ok(context)
    }

    /// Finds what is meant; `context` is the one of these options.
    pub(crate) fn find(&self, context: &Context, silence: Silence) -> Result<Meaning, Error> {
        let subject = match self.reference.as_deref() {
            Some(reference) => self.named(context, reference)?,
            None => candidates::only(context, silence)?,
        };
        Ok(match subject {
            ReferenceTarget::Goal(id) => Meaning::Goal(id),
            ReferenceTarget::Workflow(key) => Meaning::Workflow(key),
            ReferenceTarget::Task(id) => Meaning::Task(id),
            ReferenceTarget::Launch(id) => {
                // The directory that was named is the working directory of this context.
                let project = self.project.as_ref().map(|_| context.cwd.as_path());
                Meaning::Launch(launches::find(context, &id, project)?)
            }
        })
    }

    fn named(&self, context: &Context, reference: &str) -> Result<ReferenceTarget, Error> {
        match SubjectKind::of(reference) {
            // Of another project, too, where there is only one.
            Some((SubjectKind::Launch, id)) => return Ok(ReferenceTarget::Launch(id.to_owned())),
            Some((SubjectKind::Task, id)) => {
                let id = KernelTaskId::parse(id).map_err(|error| {
                    Error::usage(format!("{reference:?} is not a task: {}", error.rule))
                })?;
                return Ok(ReferenceTarget::Task(id));
            }
            Some((SubjectKind::Goal | SubjectKind::Workflow, _)) | None => {}
        }
        let mut found = fits(context, reference)?;
        match (found.len(), SubjectKind::of(reference)) {
            (1, _) => Ok(found.remove(0)),
            (0, None) => Err(unknown(context, reference)?),
            (0, Some((_, name))) => match fits(context, name)?.first() {
                None => Err(unknown(context, reference)?),
                Some(other) => {
                    let text = format!("there is no {reference} here");
                    let hint = format!("{name:?} is a {}; use {other}.", other.kind());
                    Err(Error::new(Exit::NotFound, text).with_hint(hint))
                }
            },
            _ => Err(candidates::ambiguous(context, reference, &found)),
        }
    }
}

/// What shares the numbers of a project.
#[derive(Default)]
struct NumberedSubject {
    goals: Vec<GoalId>,
    workflows: Vec<WorkflowKey>,
}

impl NumberedSubject {
    fn load(context: &Context, root: &Path) -> Result<Self, Error> {
        let project = context.project(root, OWNER);
        let goals = project.goal_ids();
        let workflows = project.workflow_keys();
        Ok(Self {
            goals: goals.map_err(|error| Error::engine(&error, ""))?,
            workflows: workflows.map_err(|error| Error::failed(&error))?,
        })
    }
}

/// Returns everything in the project at hand that a reference fits.
fn fits(context: &Context, reference: &str) -> Result<Vec<ReferenceTarget>, Error> {
    let NumberedSubject { goals, workflows } = match optional(context.project_root())? {
        Some(root) => NumberedSubject::load(context, &root)?,
        None => NumberedSubject::default(),
    };
    let launches = launches::here(context)?;
    let launches: Vec<String> = launches
        .iter()
        .map(|location| location.id().as_str().to_owned())
        .collect();
    let names = Names {
        goals: &goals,
        workflows: &workflows,
        launches: &launches,
    };
    fitting(reference, &names, &|id| is_task(context, id))
}

fn is_task(context: &Context, id: KernelTaskId) -> Result<bool, Error> {
    let found = kernel::with(context, OWNER, |kernel| {
        let found = kernel.queue()?.find(id).map_err(|error| failed(&error))?;
        Ok(found.is_some())
    });
    Ok(optional(found)?.unwrap_or_default())
}

/// Says that nothing is called so, and what there is.
fn unknown(context: &Context, reference: &str) -> Result<Error, Error> {
    let root = match context.project_root() {
        Ok(root) => root,
        Err(error) if error.exit == Exit::NotFound => return Ok(error),
        Err(error) => return Err(error),
    };
    let NumberedSubject { goals, workflows } = NumberedSubject::load(context, &root)?;
    let mut ids = goals;
    ids.extend(workflows.into_iter().map(|key| key.id));
    ids.sort();
    let latest = ids.len().saturating_sub(CANDIDATES_MAX);
    let names: Vec<String> = ids.iter().skip(latest).map(ToString::to_string).collect();
    let hint = if names.is_empty() {
        "there are no goals here yet; start one with `kapi run`.".to_owned()
    } else {
        format!("available: {}.", names.join(", "))
    };
    let text = format!("nothing here matches {reference:?}");
    Ok(Error::new(Exit::NotFound, text).with_hint(hint))
}
