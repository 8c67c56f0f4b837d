//! `kapi dashboard`: what the kernel of this project is at, on one screen.
//!
//! Shows as much as can be read: a file that cannot is a warning here, never the end.

mod gather;
mod screen;

use crate::config::Config;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel::{self, ProjectKernel};
use crate::ui::Format;

/// Options of `kapi dashboard`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Task store: 'files', or NATS servers as 'nats://host:port,…'
    #[arg(long, value_name = "STORE")]
    store: Option<String>,
}

/// Shows the kernel.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let context = &context.with_store(args.store.as_deref());
    let root = kernel::root(context)?;
    let project = context.project(&root, "kapi dashboard");
    let mut errors = Vec::new();
    let config = context.config(Some(project.layout.root()));
    let config = config.unwrap_or_else(|error| {
        errors.push(error);
        Config::unconfigured()
    });
    let (kernel, error) = ProjectKernel::lenient(context, &project, &config);
    errors.extend(error);
    let view = gather::gather(&kernel, &errors)?;
    match context.ui.format {
        Format::Json => context.ui.json(&view),
        Format::Human => screen::show(context, &view),
    }
    Ok(Exit::Success)
}
