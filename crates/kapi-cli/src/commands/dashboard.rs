//! `kapi dashboard`: everything of this project that is alive, what waits, what was spent and the
//! sandboxes, on one screen that stays up to date, or once as lines or JSON.
//!
//! Shows as much as can be read: a file that cannot is a warning here, never the end.

pub(crate) mod alive;
mod gather;
mod screen;
mod whole;

use kapi_sys::signal::Interrupts;

use crate::commands::dashboard::alive::AliveSource;
use crate::commands::dashboard::whole::WholeDashboard;
use crate::commands::inbox;
use crate::config::Config;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel::{self, ProjectKernel};
use crate::live_view::watch::WatchEnd;
use crate::ui::Format;
use crate::{driving, live_view, run_line};

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
    if context.ui.has_screen() {
        let interrupts = driving::interrupts()?;
        if let Some(exit) = live(&kernel, &interrupts)? {
            return Ok(exit);
        }
    }
    let whole = WholeDashboard::read(&kernel, &errors)?;
    match context.ui.format {
        Format::Json => context.ui.json(&whole.into_view()),
        Format::Human => screen::show(context, &whole),
    }
    Ok(Exit::Success)
}

/// Shows everything alive until the person leaves; `None` where no view can be shown.
fn live(kernel: &ProjectKernel<'_>, interrupts: &Interrupts) -> Result<Option<Exit>, Error> {
    let alive = AliveSource::new(kernel);
    let mut exit = None;
    loop {
        let end = alive.with(|source| live_view::until_left(kernel.context, source, interrupts));
        let Some(end) = end else { return Ok(exit) };
        exit = Some(Exit::Success);
        let ran = match end {
            WatchEnd::Closed if interrupts.is_raised() => return Ok(Some(Exit::Interrupted)),
            WatchEnd::Closed => return Ok(exit),
            WatchEnd::Inbox => inbox::run(kernel.context, &inbox::Args::asking()),
            WatchEnd::Run(words) => run_line(kernel.context, &words),
        };
        if let Err(error) = ran {
            kernel.context.ui.say(&format!("error: {error}"));
        }
        if interrupts.is_raised() {
            return Ok(Some(Exit::Interrupted));
        }
        kernel
            .context
            .ui
            .ask("Press Enter to go back to the dashboard. ");
    }
}
