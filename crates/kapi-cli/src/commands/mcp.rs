//! `kapi mcp`: the tools of an agent over the Model Context Protocol, on standard input and output.
//!
//! Within a run it speaks for that run. Anywhere else it proposes goals, looks at them, and works
//! on the tasks that it submitted until its client hangs up.

pub(crate) mod input;

use std::io::{self, BufReader};
use std::thread;

use clap::ValueEnum;
use kapi_core::task_id::KernelTaskId;
use kapi_mcp::server::{self, ToolServer};
use kapi_wire::kernel_tools::ToolOffer;

use crate::commands::mcp::input::Input;
use crate::context::Context;
use crate::driving::interrupts;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::tool_service::ToolCalls;
use crate::tool_service::attendants::Attendants;

/// Options of `kapi mcp`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The tools to offer, out of those that are available
    #[arg(long, value_enum, default_value_t = ToolGroup::All, value_name = "GROUP")]
    tools: ToolGroup,
}

/// The tools of one role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ToolGroup {
    /// Background tasks, loops and lessons
    Kernel,
    /// The contract, plan and progress of a goal
    Goal,
    /// Both
    All,
}

impl ToolGroup {
    /// Returns its word on the command line.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Goal => "goal",
            Self::All => "all",
        }
    }

    const fn offer(self) -> ToolOffer {
        match self {
            Self::Kernel => ToolOffer::KERNEL,
            Self::Goal => ToolOffer::GOAL,
            Self::All => ToolOffer::ALL,
        }
    }
}

/// Serves one client until it hangs up.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let calls = ToolCalls::new(context);
    if calls.is_outside() {
        serve_and_work(context, args.tools)
    } else {
        serve(&calls, args.tools, &mut BufReader::new(io::stdin().lock()))
    }
}

/// What is under way when the client hangs up goes back to the queue.
fn serve_and_work(context: &Context, tools: ToolGroup) -> Result<Exit, Error> {
    let interrupts = interrupts()?;
    let attendants = Attendants::new(context, &interrupts);
    thread::scope(|scope| {
        let attend = |task: KernelTaskId| attendants.take(scope, task);
        let calls = ToolCalls::new(context).attended_by(&attend);
        let served = serve(&calls, tools, &mut BufReader::new(Input::new(&interrupts)));
        interrupts.cancel().raise();
        served
    })
}

fn serve(
    calls: &ToolCalls<'_>,
    tools: ToolGroup,
    input: &mut dyn io::BufRead,
) -> Result<Exit, Error> {
    let server = ToolServer {
        offer: calls.offer().and(tools.offer()),
        call: &mut |tool, arguments| calls.call(tool, arguments),
        settle: &calls.settler(),
    };
    match server::serve(input, &mut io::stdout(), server) {
        Ok(()) => Ok(Exit::Success),
        Err(error) => Err(Error::failed(&error)),
    }
}
