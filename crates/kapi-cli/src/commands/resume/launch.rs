//! Resuming a launch that was stopped, killed or failed: the same agent is given the same task again,
//! where the last one stopped.

use kapi_goal::rules::budget::Raise;
use kapi_launch::event::LaunchHistory;
use kapi_launch::log;
use kapi_launch::paths::SandboxPaths;
use kapi_launch::record::LaunchState;
use kapi_run::spending::usd;

use crate::commands::budget::launch::no_option;
use crate::commands::resume::Args;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::run_line;

/// Resumes a launch.
pub(super) fn resume(
    context: &Context,
    location: &SandboxPaths,
    args: &Args,
) -> Result<Exit, Error> {
    let id = location.id().as_str();
    let raise = args.raise.of_goal()?;
    refuse_options(args, &raise)?;
    let denied = |text: String| Error::new(Exit::Denied, text);
    if let Some(owner) = location.holder().map_err(|error| Error::launch(&error))? {
        let text = format!("launch/{id} is in use by {owner}");
        return Err(Error::new(Exit::Busy, text)
            .with_hint(format!("follow it with `kapi log launch/{id} -f`.")));
    }
    let history = log::at(location)
        .history()
        .map_err(|error| Error::launch(&error))?;
    let LaunchHistory {
        sandbox: Some(sandbox),
        request: Some(request),
        ..
    } = history
    else {
        return Err(
            denied(format!("launch/{id} has no record of what was asked")).with_hint(another(id)),
        );
    };
    if request.command.is_empty() {
        let hint = match id.split_once('-') {
            Some((task, _)) if id.starts_with("task_") => {
                format!("it belongs to a task: `kapi task retry {task}`.")
            }
            _ => another(id),
        };
        return Err(denied(format!("launch/{id} was not launched by a person")).with_hint(hint));
    }
    if sandbox.state == LaunchState::Finished && sandbox.exit_code == Some(0) {
        return Err(denied(format!("launch/{id} has ended well")).with_hint(another(id)));
    }
    let mut words = vec!["kapi".to_owned()];
    words.extend(request.command);
    let raised = |limit: Option<u64>, more: u64| limit.map(|limit| limit.saturating_add(more));
    if let Some(tokens) = raised(request.limits.tokens, raise.tokens) {
        words.extend(["--tokens".to_owned(), tokens.to_string()]);
    }
    if let Some(micros) = raised(request.limits.usd_micros, raise.usd_micros) {
        let usd = usd(micros);
        let usd = usd.strip_prefix('$').unwrap_or(&usd).to_owned();
        words.extend(["--usd".to_owned(), usd]);
    }
    if !request.task.is_empty() {
        // One word, whatever the task begins with.
        words.push(format!("--task={}", request.task));
    }
    run_line(context, words)
}

/// What a launch has not is refused, not passed over.
fn refuse_options(args: &Args, raise: &Raise) -> Result<(), Error> {
    let refused = [
        ("--park", args.park),
        ("--no-run", args.no_run),
        ("--turns", raise.turns > 0),
        ("--wall", raise.wall_ms > 0),
    ];
    match refused.iter().find(|(_, is_set)| *is_set) {
        Some((name, _)) => Err(no_option(name)),
        None => Ok(()),
    }
}

fn another(id: &str) -> String {
    format!("continue in its sandbox with `kapi launch {id} <project> --task \"<what is left>\"`.")
}
