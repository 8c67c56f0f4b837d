//! The tests' own multicall program: launcher, driver of one run, and payload that tries things.
//!
//! Knows nothing of what a test expects.

mod attempt;
mod request;

use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use kapi_sandbox::error::SandboxError;
use kapi_sandbox::init::{ARGUMENT, init_main};
use kapi_sandbox::launch::{Ears, run};
use kapi_sandbox::outcome::Ran;
use kapi_sandbox::probe::{Outcome, probe};
use kapi_sandbox::spec::{Access, Level, Mount, Network, Spec};
use kapi_sys::cancel::Cancel;
use kapi_sys::process::{Limits, Line, Program};
use request::{Reply, Request};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    let args: Vec<&str> = args.iter().skip(1).map(String::as_str).collect();
    let code = match args.as_slice() {
        [first] if *first == ARGUMENT => init_main(),
        ["run"] => perform(),
        ["probe"] => try_host(),
        ["try", rest @ ..] => attempt::attempt(rest),
        _ => 64,
    };
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

/// Prints text, and reports whether somebody was there to read it.
fn print(text: &str) -> i32 {
    i32::from(std::io::stdout().write_all(text.as_bytes()).is_err())
}

fn own_path() -> PathBuf {
    std::env::current_exe().unwrap_or_default()
}

fn perform() -> i32 {
    let mut text = String::new();
    if std::io::stdin().read_to_string(&mut text).is_err() {
        return 65;
    }
    let Ok(request) = serde_json::from_str::<Request>(&text) else {
        return 66;
    };
    let Ok(reply) = serde_json::to_string(&answer(&request)) else {
        return 67;
    };
    print(&reply)
}

fn answer(request: &Request) -> Reply {
    let cancel = Cancel::new();
    let cancel_on = request.cancel_on.as_bytes();
    let mut on_line = |line: Line<'_>| {
        let (Line::Stdout(line) | Line::Stderr(line)) = line;
        if !cancel_on.is_empty() && line == cancel_on {
            cancel.raise();
        }
    };
    let Some(program) = program(request) else {
        return failed("no program", "");
    };
    let ears = Ears {
        on_line: &mut on_line,
        on_listeners: &mut drop,
    };
    match run(&spec(request), program, &cancel, ears) {
        Ok(Ran { finished, .. }) => Reply {
            end: format!("{:?}", finished.end),
            hint: String::new(),
            stdout: finished.stdout.text(),
            stderr: finished.stderr.text(),
            stdout_bytes: finished.stdout.bytes_total,
        },
        Err(error) => failed(&causes(&error), error.hint().unwrap_or_default()),
    }
}

fn failed(why: &str, hint: &str) -> Reply {
    Reply {
        end: why.to_owned(),
        hint: hint.to_owned(),
        stdout: String::new(),
        stderr: String::new(),
        stdout_bytes: 0,
    }
}

fn causes(error: &SandboxError) -> String {
    let mut text = error.to_string();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

fn spec(request: &Request) -> Spec {
    let mount = |(host, inside, access): &(String, String, String)| Mount {
        host: host.into(),
        inside: inside.into(),
        access: if access == "rw" {
            Access::ReadWrite
        } else {
            Access::ReadOnly
        },
    };
    let level = if request.level == "native" {
        Level::Native
    } else {
        Level::None
    };
    let mut spec = Spec::new(level, "test", PathBuf::from(&request.home), own_path());
    spec.hostname.clone_from(&request.hostname);
    spec.mounts = request.mounts.iter().map(mount).collect();
    spec.files = request
        .files
        .iter()
        .map(|(path, text)| (path.into(), text.clone().into_bytes()))
        .collect();
    if request.network == "host" {
        spec.network = Network::Host;
    }
    spec
}

fn program(request: &Request) -> Option<Program> {
    let (path, args) = request.argv.split_first()?;
    Some(Program {
        path: Path::new(path).to_path_buf(),
        args: args.iter().map(Into::into).collect(),
        env: request
            .env
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect(),
        cwd: PathBuf::from(&request.cwd),
        stdin: request.stdin.clone().into_bytes(),
        pass_fds: Vec::<OwnedFd>::new(),
        limits: Limits {
            deadline: Duration::from_millis(request.deadline_ms),
            idle: None,
            tail_bytes_max: 1024 * 1024,
            line_bytes_max: 1024 * 1024,
        },
    })
}

fn try_host() -> i32 {
    match probe(&own_path()) {
        Ok(probe) => {
            let lines = probe.steps.iter().map(|step| match &step.outcome {
                Outcome::Works => format!("{}: works\n", step.name),
                Outcome::Refused {
                    call,
                    target,
                    source,
                    hint,
                } => {
                    format!("{}: {call} on {target}: {source} ({hint:?})\n", step.name)
                }
            });
            print(&lines.collect::<String>())
        }
        Err(error) => print(&causes(&error)) + 1,
    }
}
