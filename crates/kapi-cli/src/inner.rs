//! The entries of this binary that are not for people: the inner end of a sandbox, the embedded
//! agent, what git asks inside, and what a host asks of its session.

mod manual;
mod session;

use std::{env, io};

use kapi_agent::acp::bridge;
use kapi_agent::script::runner;
use kapi_agent::{acp, launch};
use kapi_launch::monitor;
use kapi_sandbox::{init, podman};

use crate::hook;

/// Enters an inner part of the binary if the command line asks for one.
pub(crate) fn enter() -> Option<u8> {
    let mut args = env::args_os().skip(1);
    let first = args.next()?;
    let code = match first.to_str()? {
        hook::ARGUMENT => hook::enter(args),
        init::ARGUMENT => init::init_main(),
        podman::ARGUMENT => podman::relay_main(
            args.next()
                .and_then(|word| word.into_string().ok())?
                .as_str(),
        ),
        launch::SCRIPT_AGENT_COMMAND => {
            let cwd = env::current_dir().ok()?;
            runner::script_main(&mut io::stdin().lock(), &mut io::stdout().lock(), &cwd)
        }
        monitor::ARGUMENT => monitor::enter(args),
        acp::ACP_AGENT_COMMAND => {
            let cwd = env::current_dir().ok()?;
            bridge::acp_main(&mut io::stdin().lock(), &mut io::stdout().lock(), &cwd)
        }
        manual::ARGUMENT => manual::enter(args),
        session::ARGUMENT => session::enter(args),
        _ => return None,
    };
    Some(u8::try_from(code).unwrap_or(u8::MAX))
}
