//! `kapi goal park`: park a goal until something is so. A parked goal has no process and asks no model.
//!
//! Only the condition is read here; whether it holds is looked at by `kapi up`, or by whoever drives.

use std::path::PathBuf;

use kapi_goal::rules::command::{GoalCommand, PersonCommand};
use kapi_goal::rules::wait::{FileState, WaitFor};
use kapi_goal::rules::words::wait_words;
use kapi_store::timestamp::parse_instant_ms;
use kapi_sys::clock::Clock as _;
use kapi_sys::process;

use crate::commands::goal::{answer, pick};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::{amount, help};

/// How often a command is tried when nothing was said, in milliseconds.
const EVERY_MS: u64 = 60_000;

/// Options of `kapi goal park`.
#[derive(Debug, clap::Args)]
#[command(group(
    clap::ArgGroup::new("condition")
        .args(["until", "duration", "file", "pid", "command", "approval", "quota"])
        .multiple(true)
        .required(true)
))]
pub(crate) struct Args {
    /// Goal [default: the only unfinished one]
    #[arg(value_name = "GOAL")]
    reference: Option<String>,
    /// Wait until this time, such as 2026-11-22T18:00Z or 2026-11-22T18:00+01:00
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Wait this long (90s, 15m, 2h)
    #[arg(long = "for", value_name = "TIME", value_parser = amount::parse_duration_ms, id = "duration", conflicts_with = "until")]
    duration: Option<u64>,
    /// Wait until this file exists
    #[arg(long, value_name = "PATH", conflicts_with_all = ["until", "duration"])]
    file: Option<PathBuf>,
    /// Wait until the file is deleted instead
    #[arg(long, requires = "file", conflicts_with = "changed")]
    gone: bool,
    /// Wait until the file changes instead
    #[arg(long, requires = "file")]
    changed: bool,
    /// Wait until this local process exits
    #[arg(long, value_name = "N", conflicts_with_all = ["until", "duration", "file"])]
    pid: Option<u32>,
    /// Wait until this command exits 0 in the goal's sandbox
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["until", "duration", "file", "pid"])]
    command: Option<String>,
    #[arg(help = help::with_default("Time between runs of the command", help::time(EVERY_MS)), long, value_name = "TIME", requires = "command", value_parser = amount::parse_duration_ms)]
    every: Option<u64>,
    /// Wait until you run `kapi goal allow` for this
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["until", "duration", "file", "pid", "command"])]
    approval: Option<String>,
    /// Wait for this provider's quota to reset, at --until or after --for
    #[arg(long, value_name = "PROVIDER", conflicts_with_all = ["file", "pid", "command", "approval"])]
    quota: Option<String>,
    /// The reason to record
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Stop waiting after this time
    #[arg(long, value_name = "TIME", value_parser = amount::parse_duration_ms)]
    timeout: Option<u64>,
}

/// Parks a goal.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    context.require_human("park a goal")?;
    let until = condition(context, args)?;
    let picked = pick::to_change(context, args.reference.as_deref())?;
    let park = PersonCommand::Park {
        until: until.clone(),
        reason: args.reason.clone(),
        timeout_ms: args.timeout,
    };
    let goal = picked.submit(context, &GoalCommand::Person(park))?;
    let mut lines = vec![format!(
        "Goal {} is parked until {}.",
        goal.id,
        wait_words(&until)
    )];
    lines.push(match &until {
        WaitFor::Approval { what } => format!(
            "Allow it with `kapi goal allow {} {what:?}`.",
            goal.id.reference()
        ),
        WaitFor::Time { .. }
        | WaitFor::File { .. }
        | WaitFor::Process { .. }
        | WaitFor::Command { .. }
        | WaitFor::Judge { .. }
        | WaitFor::Quota { .. } => "`kapi up` wakes it.".to_owned(),
    });
    Ok(answer::give(context, &goal, &lines))
}

/// Returns the condition that flags name.
fn condition(context: &Context, args: &Args) -> Result<WaitFor, Error> {
    if let Some(path) = &args.file {
        return file(context, path, args);
    }
    if let Some(pid) = args.pid {
        let name = process::process_name(pid).ok_or_else(|| {
            Error::new(Exit::NotFound, format!("there is no process {pid}"))
                .with_hint("it may have exited already.")
        })?;
        return Ok(WaitFor::Process {
            pid: name.pid,
            started_ticks: name.started_ticks,
        });
    }
    if let Some(command) = &args.command {
        return Ok(WaitFor::Command {
            command: command.clone(),
            every_ms: args.every.unwrap_or(EVERY_MS),
        });
    }
    if let Some(what) = &args.approval {
        return Ok(WaitFor::Approval { what: what.clone() });
    }
    let at_ms = time(context, args)?;
    Ok(match &args.quota {
        Some(provider) => WaitFor::Quota {
            provider: provider.clone(),
            at_ms,
        },
        None => WaitFor::Time { at_ms },
    })
}

fn file(context: &Context, path: &std::path::Path, args: &Args) -> Result<WaitFor, Error> {
    let absolute = context.cwd.join(path);
    let path = absolute
        .to_str()
        .ok_or_else(|| Error::usage(format!("{} is not UTF-8", absolute.display())))?;
    let until = match (args.gone, args.changed) {
        (true, _) => FileState::Gone,
        (false, true) => FileState::Changed,
        (false, false) => FileState::Exists,
    };
    Ok(WaitFor::File {
        path: path.to_owned(),
        until,
    })
}

fn time(context: &Context, args: &Args) -> Result<i64, Error> {
    match (&args.until, args.duration) {
        (Some(text), _) => parse_instant_ms(text).ok_or_else(|| {
            Error::usage(format!("{text:?} is not a time"))
                .with_hint("write it with an offset: 2026-11-22T18:00Z or 2026-11-22T18:00+01:00.")
        }),
        (None, Some(ms)) => {
            let ahead = i64::try_from(ms).unwrap_or(i64::MAX);
            Ok(context.clock.now_ms().saturating_add(ahead))
        }
        (None, None) => Err(Error::usage("a quota needs a reset time")
            .with_hint("add `--until TIME` or `--for TIME`.")),
    }
}
