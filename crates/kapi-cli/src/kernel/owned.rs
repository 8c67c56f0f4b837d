//! Whether a project's queue was made by this person on this machine: a mark in their home says so.
//!
//! A queue is plain files, so an archive or a copied directory could bring one with tasks that
//! nobody here asked for. Such a queue is shown and never worked on, until it is adopted.

use std::path::PathBuf;

use kapi_goal::record::project::Project;
use kapi_store::layout::{HomeLayout, project_key};
use kapi_sys::disk::{Disk as _, create_dir_durably, replace_durably};

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// Refuses a queue that was not made here; one that is about to be made is marked.
pub(super) fn require(context: &Context, project: &Project<'_>) -> Result<(), Error> {
    // The log is looked at first: whoever makes it marks it before.
    let log = project.layout.kernel_dir().join("events.jsonl");
    let is_new = project.disk.len(&log).map_err(failed)?.unwrap_or(0) == 0;
    let mark = context.disk.len(&mark(context, project)).map_err(failed)?;
    if mark.is_some() {
        return Ok(());
    }
    if is_new {
        return adopt(context, project).or_else(|error| {
            // Several begin at once: whoever was first has marked it for all of them.
            let is_marked = context.disk.len(&self::mark(context, project));
            if is_marked.map_err(failed)?.is_some() {
                Ok(())
            } else {
                Err(error)
            }
        });
    }
    let text = format!(
        "the tasks in {} come from elsewhere",
        project.layout.kernel_dir().display()
    );
    Err(Error::new(Exit::Denied, text).with_hint(
        "review them with `kapi task list --all`; adopt them with `kapi task adopt`, or move \
         the directory away to start fresh.",
    ))
}

/// Tells whether there is a queue that was made somewhere else and was not taken over.
pub(super) fn is_foreign(context: &Context, project: &Project<'_>) -> Result<bool, Error> {
    let log = project.layout.kernel_dir().join("events.jsonl");
    let is_there = project.disk.len(&log).map_err(failed)?.unwrap_or(0) > 0;
    let mark = context.disk.len(&mark(context, project)).map_err(failed)?;
    Ok(is_there && mark.is_none())
}

/// Marks a queue as this person's.
pub(super) fn adopt(context: &Context, project: &Project<'_>) -> Result<(), Error> {
    let mark = mark(context, project);
    let dir = mark.parent().unwrap_or(&context.home);
    create_dir_durably(&context.disk, &context.home, dir).map_err(failed)?;
    let text = format!("{}\n", project.layout.root().display());
    replace_durably(&context.disk, &mark, text.as_bytes()).map_err(failed)
}

fn mark(context: &Context, project: &Project<'_>) -> PathBuf {
    let home = HomeLayout::new(&context.home);
    let key = project_key(project.layout.root());
    home.state_dir().join("kernels").join(key)
}

#[expect(clippy::needless_pass_by_value, reason = "handed to map_err")]
fn failed(error: kapi_sys::disk::DiskError) -> Error {
    Error::failed(&error)
}
