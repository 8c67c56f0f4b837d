//! `kapi goal deliver`: a finished goal's branch at the remote, with a pull request where that is
//! asked for.
//!
//! May be repeated: what is there already stays.

use kapi_goal::rules::delivery::Delivery;
use kapi_goal::rules::state::GoalStatus;

use crate::commands::goal::pick;
use crate::config::deliver::DeliverArgs;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::{delivering, delivery};

/// Options of `kapi goal deliver`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Goal [default: the only finished one]
    #[arg(value_name = "GOAL")]
    reference: Option<String>,
    #[command(flatten)]
    deliver: DeliverArgs,
}

/// Delivers a goal that has ended well.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    context.require_human("deliver a goal")?;
    let picked = pick::one_of(context, args.reference.as_deref(), "done", &|status| {
        matches!(status, GoalStatus::Done | GoalStatus::Unverified)
    })?;
    let root = picked.project.layout.root().to_path_buf();
    context.require_own_goals(&root)?;
    let config = context.config(Some(&root))?;
    let goal = &picked.goal;
    let wanted = delivery::asked(&args.deliver, &config);
    let wanted = wanted.or_else(|| goal.contract.delivery.clone());
    let wanted = wanted.unwrap_or_else(|| Delivery {
        remote: args
            .deliver
            .remote
            .clone()
            .unwrap_or_else(|| "origin".to_owned()),
        pull_request: false,
        target: None,
    });
    let delivered = delivering::deliver(context, &config, &picked.project, (goal, &wanted));
    delivering::show(context, &picked.project, goal);
    delivered?;
    Ok(Exit::Success)
}
