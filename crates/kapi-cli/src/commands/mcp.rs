//! `kapi mcp`: the tools of an agent over the Model Context Protocol, on standard input and output.
//!
//! Within a run it speaks for that run. Anywhere else it proposes goals, looks at them, and works
//! on the tasks that it submitted until its client hangs up.

mod input;

use std::io::{self, BufReader};
use std::thread;

use kapi_core::task_id::KernelTaskId;

use crate::commands::mcp::input::Input;
use crate::context::Context;
use crate::driving::interrupts;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::tool_service::ToolCalls;
use crate::tool_service::attendants::Attendants;

/// Options of `kapi mcp`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Serves one client until it hangs up.
pub(crate) fn run(context: &Context, _args: &Args) -> Result<Exit, Error> {
    let calls = ToolCalls::new(context);
    if calls.is_outside() {
        serve_and_work(context)
    } else {
        serve(calls, &mut BufReader::new(io::stdin().lock()))
    }
}

/// What is under way when the client hangs up goes back to the queue.
fn serve_and_work(context: &Context) -> Result<Exit, Error> {
    let interrupts = interrupts()?;
    let attendants = Attendants::new(context, &interrupts);
    thread::scope(|scope| {
        let attend = |task: KernelTaskId| attendants.take(scope, task);
        let calls = ToolCalls::new(context).attended_by(&attend);
        let served = serve(calls, &mut BufReader::new(Input::new(&interrupts)));
        interrupts.cancel().raise();
        served
    })
}

fn serve(mut calls: ToolCalls<'_>, input: &mut dyn io::BufRead) -> Result<Exit, Error> {
    let mut output = io::stdout().lock();
    let offer = calls.offer();
    let served = kapi_mcp::server::serve(input, &mut output, offer, &mut |tool, arguments| {
        calls.call(tool, arguments)
    });
    match served {
        Ok(()) => Ok(Exit::Success),
        Err(error) => Err(Error::failed(&error)),
    }
}
