//! `kapi sandbox`: what there is, what is in it, taking it over, dropping it, going into it.
//!
//! Finds the sandbox that is meant; each subcommand is in a file of its own.

mod diff;
mod discard;
mod enter;
pub(crate) mod list;
mod merge;

use std::path::PathBuf;

use kapi_store::layout::project_key;
use kapi_world::book::Book;
use kapi_world::launching::place::{SandboxId, SandboxPlace};

use super::launch::{resolved, sandboxes};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// Options of `kapi sandbox`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    /// What to do
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Clone, clap::Subcommand)]
enum Command {
    /// List the sandboxes of all projects
    List(list::Args),
    /// Open a shell in a sandbox
    Shell(enter::ShellArgs),
    /// Run a command in a sandbox
    Exec(enter::ExecArgs),
    /// Show what a sandbox changed
    Diff(diff::Args),
    /// Take what a sandbox changed over into its project
    Merge(merge::Args),
    /// Remove a sandbox with all it holds
    Discard(discard::Args),
}

/// Which sandbox is meant.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Meant {
    /// The sandbox's id
    id: String,
    /// Its project, when several have a sandbox of that id; default: the working directory
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
}

/// Does what the subcommand says.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    context.require_human("look into sandboxes from outside")?;
    match &args.command {
        Command::List(args) => list::run(context, args),
        Command::Shell(args) => enter::shell(context, args),
        Command::Exec(args) => enter::exec(context, args),
        Command::Diff(args) => diff::run(context, args),
        Command::Merge(args) => merge::run(context, args),
        Command::Discard(args) => discard::run(context, args),
    }
}

impl Meant {
    /// Finds the sandbox: of the named project, of the working directory, or the only one.
    fn find(&self, context: &Context) -> Result<SandboxPlace, Error> {
        let id = SandboxId::parse(&self.id).map_err(|error| Error::launch(&error))?;
        let all = sandboxes(context)
            .all()
            .map_err(|error| Error::launch(&error))?;
        let mut found: Vec<SandboxPlace> =
            all.into_iter().filter(|place| *place.id() == id).collect();
        let wanted = self.project.as_ref();
        let project = match wanted {
            Some(project) => Some(resolved(context, project)?),
            None => std::fs::canonicalize(&context.cwd).ok(),
        };
        let keys: Vec<String> = project
            .iter()
            .flat_map(|path| path.ancestors())
            .take(if wanted.is_some() { 1 } else { usize::MAX })
            .map(project_key)
            .collect();
        let near = keys
            .iter()
            .find_map(|key| found.iter().find(|place| place.project_key() == key));
        if let Some(near) = near {
            return Ok(near.clone());
        }
        match (wanted, found.len()) {
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
            .with_hint("`kapi sandbox list` shows those there are.")),
        }
    }
}

/// Returns what programs in sandboxes may use: the person's word.
pub(crate) fn book(context: &Context) -> Result<Book, Error> {
    Ok(context.book(&context.config(None)?))
}
