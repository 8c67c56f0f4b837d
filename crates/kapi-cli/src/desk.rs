//! Where a call of an agent's tool goes: to the run this process belongs to, or to the project of
//! the working directory, where an agent may draft and look.
//!
//! Shared by `kapi mcp` and `kapi agent`, and by whoever drives a goal.

mod consent;
mod outside;

use std::path::PathBuf;

use kapi_core::actor::Actor;
use kapi_core::goal::contract::Judge;
use kapi_core::id::GoalId;
use kapi_engine::project::Project;
use kapi_wire::tools::{Refused, Tool, answer};
use kapi_world::failure::chain;
use kapi_world::tools::Desk;
use kapi_world::tools::client::{self, SOCKET_VARIABLE};
use serde_json::Value;

use crate::context::Context;
use crate::error::Error;

/// The calls of one process.
pub(crate) struct Calls<'a> {
    context: &'a Context,
    socket: Option<PathBuf>,
    /// What this process has proposed.
    proposed: Option<GoalId>,
}

impl<'a> Calls<'a> {
    /// Looks for the run this process belongs to.
    pub(crate) fn new(context: &'a Context) -> Self {
        let socket = context.env.get(std::ffi::OsStr::new(SOCKET_VARIABLE));
        Self {
            context,
            socket: socket.map(PathBuf::from),
            proposed: None,
        }
    }

    /// Performs a call and returns its answer, which says itself whether it is a refusal.
    pub(crate) fn call(&mut self, tool: Tool, input: Value) -> Value {
        let answered = match &self.socket {
            Some(socket) => client::call(socket, tool.name(), &input).map_err(|error| {
                let text = format!("failed to {}", chain(&error));
                Refused::new("unreachable", text)
            }),
            None => outside::call(self.context, &mut self.proposed, tool, input),
        };
        answered.unwrap_or_else(|refused| answer::refused(&refused))
    }
}

/// Returns what the tools of a project's runs need on this side.
pub(crate) fn desk<'a>(context: &'a Context, project: &Project<'_>) -> Result<Desk<'a>, Error> {
    let preferred = context.preferred(project.layout.root())?;
    Ok(Desk {
        project: context.project(project.layout.root(), &project.owner),
        autopilot: preferred.autopilot.map(|user| Actor::Human { user }),
        judge_default: preferred.judge.as_deref().map(judge_named),
        person: consent::person(context),
    })
}

/// Returns the judge that a person wrote after `--judge`.
fn judge_named(text: &str) -> Judge {
    match text {
        "none" => Judge::None,
        "same" => Judge::Same,
        reference => Judge::Agent(reference.to_owned()),
    }
}
