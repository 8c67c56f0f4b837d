//! Which sandbox is meant: of the project at hand, or the only one of that id there is.

pub(crate) mod standing;

use std::fs;
use std::path::{Path, PathBuf};

use kapi_goal::record::reference::SubjectKind;
use kapi_launch::paths::{SandboxId, SandboxPaths, Sandboxes};
use kapi_store::layout::{HomeLayout, project_key};

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// How the name of a task's sandbox begins.
const OF_TASK: &str = "task_";

/// Tells whether a sandbox is that of an attempt at a task, by its name.
pub(crate) fn is_of_task(id: &str) -> bool {
    id.starts_with(OF_TASK)
}

/// Returns the person's sandboxes.
pub(crate) fn sandboxes(context: &Context) -> Sandboxes {
    Sandboxes {
        state_dir: HomeLayout::new(&context.home).state_dir().to_path_buf(),
    }
}

/// Returns a directory without links, dots and the like.
pub(crate) fn directory(context: &Context, path: &Path) -> Result<PathBuf, Error> {
    let path = context.cwd.join(path);
    let found = fs::canonicalize(&path).ok().filter(|found| found.is_dir());
    found.ok_or_else(|| {
        Error::new(
            Exit::NotFound,
            format!("there is no directory {}", path.display()),
        )
        .with_hint("give the project directory after the id.")
    })
}

/// Returns the keys of the projects that the working directory lies in, the nearest first.
fn keys(context: &Context) -> Vec<String> {
    let here = fs::canonicalize(&context.cwd).ok();
    let ancestors = here.iter().flat_map(|path| path.ancestors());
    ancestors.map(project_key).collect()
}

/// Returns the sandboxes of the project at hand.
pub(crate) fn here(context: &Context) -> Result<Vec<SandboxPaths>, Error> {
    let mut all = sandboxes(context)
        .all()
        .map_err(|error| Error::launch(&error))?;
    let keys = keys(context);
    all.retain(|location| keys.iter().any(|key| key == location.project_key()));
    Ok(all)
}

/// Which sandbox is meant, by the id of its launch.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct LaunchArgs {
    /// Launch: 'launch/2', or its id alone
    id: String,
    /// Project directory, if several projects have this id [default: current directory]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
}

impl LaunchArgs {
    /// Finds the sandbox.
    pub(crate) fn find(&self, context: &Context) -> Result<SandboxPaths, Error> {
        let id = match SubjectKind::of(&self.id) {
            Some((SubjectKind::Launch, id)) => id,
            Some(_) | None => &self.id,
        };
        find(context, id, self.project.as_deref())
    }
}

/// Finds a sandbox: of the project that is named, or else of the one at hand, or else the only one
/// of this id.
pub(crate) fn find(
    context: &Context,
    id: &str,
    project: Option<&Path>,
) -> Result<SandboxPaths, Error> {
    let id = SandboxId::parse(id).map_err(|error| Error::launch(&error))?;
    let all = sandboxes(context)
        .all()
        .map_err(|error| Error::launch(&error))?;
    let mut found: Vec<SandboxPaths> = all
        .into_iter()
        .filter(|location| *location.id() == id)
        .collect();
    let keys = match project {
        Some(project) => vec![project_key(&directory(context, project)?)],
        None => keys(context),
    };
    let near = keys.iter().find_map(|key| {
        found
            .iter()
            .position(|location| location.project_key() == key)
    });
    if let Some(near) = near {
        return Ok(found.swap_remove(near));
    }
    match (project, found.len()) {
        (None, 1) => Ok(found.remove(0)),
        (None, n) if n > 1 => Err(Error::usage(format!(
            "{n} projects have a sandbox {}",
            id.as_str()
        ))
        .with_hint("name one with `--project <directory>`.")),
        _ => Err(Error::new(
            Exit::NotFound,
            format!("there is no sandbox {}", id.as_str()),
        )
        .with_hint("`kapi sandbox list` lists the sandboxes.")),
    }
}
