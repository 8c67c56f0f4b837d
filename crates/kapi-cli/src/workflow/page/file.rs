//! Where the page of a workflow, or its picture alone, is written to.
//!
//! A file is replaced whole or not at all. What is no file is never replaced.

use std::fs;
use std::path::{Path, PathBuf};

use kapi_core::workflow_key::WorkflowKey;
use kapi_goal::perform::survey::RepositorySurvey;
use kapi_sys::clock::Clock as _;
use kapi_sys::disk::replace_durably;
use kapi_workflow::record::workflows::Workflows;

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::modes;
use crate::workflow::located::LocatedWorkflow;
use crate::workflow::page::text::BLOCK_BYTES_MAX;
use crate::workflow::page::whole::html;
use crate::workflow::page::{ModePage, PageSource, Patch};

/// What other processes are told about who looks.
const OWNER: &str = "kapi status";

/// Where to write what.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PageArgs {
    /// Also write a workflow as one self-contained HTML page
    #[arg(long, value_name = "FILE", requires = "reference")]
    html: Option<PathBuf>,
    /// Also write the chart of a workflow alone, for a README
    #[arg(long, value_name = "FILE", requires = "reference")]
    svg: Option<PathBuf>,
}

impl PageArgs {
    /// Tells whether anything is to be written.
    pub(crate) const fn is_asked(&self) -> bool {
        self.html.is_some() || self.svg.is_some()
    }

    /// Writes what is asked for, after all of it was made.
    pub(crate) fn write(&self, context: &Context, key: WorkflowKey) -> Result<(), Error> {
        let project = context.project(&context.project_root()?, OWNER);
        let found = LocatedWorkflow::load(project, key)?;
        let log = Workflows::of(&found.project).workflow_log(&found.key);
        let log = log.map_err(|error| Error::workflow(&error))?;
        let survey = survey(context, found.project.layout.root());
        let diff = |base: &str, commit: &str| patch(&survey, base, commit);
        let source = PageSource {
            workflow: &found.workflow,
            log: &log,
            diff: &diff,
            at_ms: context.clock.now_ms(),
        };
        let front = modes::front(found.key.mode);
        let own = front.map_or_else(ModePage::default, |front| (front.page)(&source));
        let picture = match &self.svg {
            None => None,
            Some(path) => Some((path, own.figures.first().ok_or_else(|| no_chart(&found))?)),
        };
        let picture = picture.map(|(path, figure)| (path, figure.wide.alone()));
        let page = self.html.as_ref().map(|path| (path, html(&source, own)));
        for (path, text) in picture.into_iter().chain(page) {
            replace(context, path, &text)?;
            context.ui.say(&format!("Wrote {}.", path.display()));
        }
        Ok(())
    }
}

fn survey(context: &Context, root: &Path) -> Result<RepositorySurvey, String> {
    let config = context
        .config(Some(root))
        .map_err(|error| error.to_string())?;
    RepositorySurvey::of(&context.grants(&config), root).map_err(|failure| failure.message)
}

fn patch(
    survey: &Result<RepositorySurvey, String>,
    base: &str,
    commit: &str,
) -> Result<Patch, String> {
    let survey = survey.as_ref().map_err(Clone::clone)?;
    let patch = survey.diff(base, commit, BLOCK_BYTES_MAX);
    let patch = patch.map_err(|failure| failure.message)?;
    Ok(Patch {
        text: String::from_utf8_lossy(&patch.bytes).into_owned(),
        is_cut: patch.is_cut,
    })
}

fn no_chart(found: &LocatedWorkflow<'_>) -> Error {
    let index = found.key.id.index();
    Error::new(
        Exit::NotFound,
        format!("workflow {} has no chart yet", found.key.id),
    )
    .with_hint(format!(
        "`kapi status {index:03} --html FILE` writes everything that it has."
    ))
}

/// Replaces a file, through a link where it is one.
fn replace(context: &Context, path: &Path, text: &str) -> Result<(), Error> {
    let path = context.cwd.join(path);
    let path = fs::canonicalize(&path).unwrap_or(path);
    let other = fs::metadata(&path).ok().filter(|found| !found.is_file());
    if let Some(found) = other {
        let what = if found.is_dir() {
            "a directory"
        } else {
            "not a regular file"
        };
        return Err(Error::usage(format!("{} is {what}", path.display())).with_hint("name a file."));
    }
    replace_durably(&context.disk, &path, text.as_bytes()).map_err(|error| Error::failed(&error))
}
