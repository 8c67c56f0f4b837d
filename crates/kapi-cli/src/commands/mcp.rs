//! `kapi mcp`: the tools of an agent over the Model Context Protocol, on standard input and output.
//!
//! Within a run it speaks for that run; anywhere else it proposes goals and looks at them.

use std::io::{self, BufReader};

use crate::context::Context;
use crate::desk::Calls;
use crate::error::Error;
use crate::exit_code::Exit;

/// Options of `kapi mcp`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Serves one client until it hangs up.
pub(crate) fn run(context: &Context, _args: &Args) -> Result<Exit, Error> {
    let mut calls = Calls::new(context);
    let mut input = BufReader::new(io::stdin().lock());
    let mut output = io::stdout().lock();
    let served = kapi_mcp::server::serve(&mut input, &mut output, &mut |tool, arguments| {
        calls.call(tool, arguments)
    });
    match served {
        Ok(()) => Ok(Exit::Success),
        Err(error) => Err(Error::failed(&error)),
    }
}
