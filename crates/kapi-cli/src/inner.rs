//! The entries of this binary that are not for people: the inner end of a sandbox, the embedded
//! agent, and a bare sandbox for measurements.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use std::{env, io};

use kapi_agent::launch;
use kapi_agent::script::runner;
use kapi_sandbox::launch::Ears;
use kapi_sandbox::spec::{Level, Spec};
use kapi_sandbox::{init, launch as sandbox};
use kapi_sys::cancel::Cancel;
use kapi_sys::process::{self, End, Limits, Program};

use crate::exit_code::Exit;

/// Runs a program in a bare native sandbox: `kapi __sandbox-run /bin/true`.
const SANDBOX_RUN: &str = "__sandbox-run";

/// Enters an inner part of the binary if the command line asks for one.
pub(crate) fn enter() -> Option<u8> {
    let mut args = env::args_os().skip(1);
    let first = args.next()?;
    let code = match first.to_str()? {
        init::ARGUMENT => init::init_main(),
        launch::SCRIPT_AGENT_COMMAND => {
            let cwd = env::current_dir().ok()?;
            runner::script_main(&mut io::stdin().lock(), &mut io::stdout().lock(), &cwd)
        }
        SANDBOX_RUN => sandbox_run(args.collect()),
        _ => return None,
    };
    Some(u8::try_from(code).unwrap_or(u8::MAX))
}

fn sandbox_run(mut command: Vec<OsString>) -> i32 {
    if command.is_empty() {
        return i32::from(Exit::Usage.code());
    }
    let (Ok(self_exe), path) = (process::current_exe(), PathBuf::from(command.remove(0))) else {
        return i32::from(Exit::Failed.code());
    };
    let spec = Spec::new(Level::Native, "bare", env::temp_dir(), self_exe);
    let program = Program {
        path,
        args: command,
        env: BTreeMap::new(),
        cwd: PathBuf::from("/"),
        stdin: Vec::new(),
        pass_fds: Vec::new(),
        limits: Limits {
            deadline: Duration::from_secs(60),
            idle: None,
            tail_bytes_max: 4096,
            line_bytes_max: 4096,
        },
    };
    let ears = Ears {
        on_line: &mut |_| {},
        on_listeners: &mut drop,
    };
    match sandbox::run(&spec, program, &Cancel::new(), ears) {
        Ok(ran) => match ran.finished.end {
            End::Exited(code) => code,
            End::Signaled(signal) => 128 + signal,
            End::DeadlinePassed | End::IdlePassed | End::Cancelled => {
                i32::from(Exit::Failed.code())
            }
        },
        Err(_) => i32::from(Exit::Failed.code()),
    }
}
