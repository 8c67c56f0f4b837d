//! What a shell offers where a reference is typed: what is unfinished, and what was begun last.
//!
//! Each with its kind and where it stands. Nothing is offered where nothing can be read: a shell that
//! completes has no place for an error.

use clap::Command;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use kapi_goal::record::reference::ReferenceTarget;

use crate::context::Context;
use crate::subject::{NumberedSubject, candidates};
use crate::ui::Format;

/// How many of what has ended are offered, the newest first.
const ENDED_MAX: usize = 20;

/// Returns the command line with the references that its arguments take.
pub(crate) fn with_references(command: Command) -> Command {
    let command = command.mut_args(|arg| {
        let Some([name]) = arg.get_value_names() else {
            return arg;
        };
        match name.as_str() {
            "REF" => arg.add(ArgValueCandidates::new(|| offered(&|_| true))),
            "GOAL" => arg.add(ArgValueCandidates::new(|| offered(&is_goal))),
            "WORKFLOW" => arg.add(ArgValueCandidates::new(|| offered(&is_workflow))),
            _ => arg,
        }
    });
    command.mut_subcommands(with_references)
}

/// Returns the tasks that have not ended.
pub(crate) fn tasks() -> Vec<CompletionCandidate> {
    offered(&|target| matches!(target, ReferenceTarget::Task(_)))
}

const fn is_goal(target: &ReferenceTarget) -> bool {
    matches!(target, ReferenceTarget::Goal(_))
}

const fn is_workflow(target: &ReferenceTarget) -> bool {
    matches!(target, ReferenceTarget::Workflow(_))
}

fn offered(fits: &dyn Fn(&ReferenceTarget) -> bool) -> Vec<CompletionCandidate> {
    let Ok(context) = Context::new(crate::ui(Format::Human)) else {
        return Vec::new();
    };
    let mut targets = candidates::under_way(&context).unwrap_or_default();
    for target in ended(&context) {
        if !targets.contains(&target) {
            targets.push(target);
        }
    }
    let fitting = targets.iter().filter(|target| fits(target));
    fitting
        .map(|target| {
            let about = candidates::about(&context, target).ok();
            let help = about.map(|about| format!("{}, {about}", target.kind()).into());
            CompletionCandidate::new(candidates::reference(target, None)).help(help)
        })
        .collect()
}

/// Returns the goals and workflows that were begun last.
fn ended(context: &Context) -> Vec<ReferenceTarget> {
    let root = context.project_root().ok();
    let loaded = root.and_then(|root| NumberedSubject::load(context, &root).ok());
    let NumberedSubject { goals, workflows } = loaded.unwrap_or_default();
    let goals = goals.into_iter().filter(|id| !id.is_part());
    let goals = goals.map(|id| (id.index(), ReferenceTarget::Goal(id)));
    let workflows = workflows.into_iter();
    let workflows = workflows.map(|key| (key.id.index(), ReferenceTarget::Workflow(key)));
    let mut all: Vec<_> = goals.chain(workflows).collect();
    all.sort_by_key(|(index, _)| std::cmp::Reverse(*index));
    let newest = all.into_iter().take(ENDED_MAX);
    newest.map(|(_, target)| target).collect()
}
