//! `kapi sandbox merge`: takes what a sandbox changed over into its project, all of it or none.

use std::path::PathBuf;

use kapi_core::deletions::Deletions;
use kapi_core::text::counted;
use kapi_launch::merge;
use kapi_launch::merge::{Conflicts, MergePlan, MergeResult, Rehearsal, RiskyChanges};
use serde::Serialize;

use super::super::launch::is_json;
use super::book;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::subject::launches::LaunchArgs;

/// Options of `kapi sandbox merge`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    meant: LaunchArgs,
    /// Only these: paths in the project, with '*', '?', '[…]', '**'; '!' before one leaves it out
    #[arg(value_name = "PATTERN")]
    select: Vec<String>,
    /// Only tell what would be done
    #[arg(long)]
    dry_run: bool,
    /// What to do about conflicts
    #[arg(long, value_name = "RULE", value_enum, default_value = "refuse")]
    on_conflict: Rule,
    /// Also take over files that run by themselves: editor tasks, git hooks, CI, agents' settings
    #[arg(long)]
    take_auto_run: bool,
    /// Take over although much of the project is deleted
    #[arg(long)]
    take_deletions: bool,
    /// Take over this link although it leads out of the project; may be given several times
    #[arg(long, value_name = "PATH")]
    link_out: Vec<PathBuf>,
}

/// What to do about conflicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Rule {
    /// Take nothing over
    Refuse,
    /// Take the rest over
    Skip,
    /// Take the rest over, and write texts with the marks of a conflict
    Mark,
}

#[derive(Debug, Serialize)]
struct View<'a> {
    id: &'a str,
    dry_run: bool,
    #[serde(flatten)]
    merged: &'a MergeResult,
}

/// Merges.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let place = args.meant.find(context)?;
    let mut plan = MergePlan {
        select: args.select.clone(),
        links_out: args.link_out.iter().cloned().collect(),
        conflicts: match args.on_conflict {
            Rule::Refuse => Conflicts::Refuse,
            Rule::Skip => Conflicts::Skip,
            Rule::Mark => Conflicts::Mark,
        },
        auto_run: if args.take_auto_run {
            RiskyChanges::Open
        } else {
            RiskyChanges::Hold
        },
        mass_deletion: if args.take_deletions {
            RiskyChanges::Open
        } else {
            RiskyChanges::Hold
        },
        rehearsal: if args.dry_run {
            Rehearsal::Only
        } else {
            Rehearsal::No
        },
    };
    let book = book(context)?;
    let merge =
        |plan: &MergePlan| merge::merge(&book, &place, plan).map_err(|error| Error::launch(&error));
    let mut merged = merge(&plan)?;
    if let (false, Some(deletes)) = (args.dry_run || args.take_deletions, &merged.mass_deletion) {
        plan.mass_deletion = RiskyChanges::Open;
        merged = match confirm_deletions(context, deletes)? {
            true => merge(&plan)?,
            false => return Err(Error::new(Exit::Denied, "nothing was taken over")),
        };
    }
    let id = place.id().as_str();
    if is_json(context) {
        context.ui.json(&View {
            id,
            dry_run: args.dry_run,
            merged: &merged,
        });
    } else {
        show(context, id, args, &merged);
    }
    Ok(if merged.applied || args.dry_run {
        Exit::Success
    } else {
        Exit::Denied
    })
}

/// Asks whether much of the project is to be deleted.
fn confirm_deletions(context: &Context, deletes: &Deletions) -> Result<bool, Error> {
    let text = deletes.sentence();
    let question = format!("Take it over? {text}.");
    let answer = context.ui.confirm(&question);
    answer.ok_or_else(|| {
        Error::new(Exit::Denied, format!("nothing was taken over: {text}")).with_hint(
            "look at it with `kapi diff launch/<id> --stat`, then add `--take-deletions`.",
        )
    })
}

fn show(context: &Context, id: &str, args: &Args, merged: &MergeResult) {
    let ui = context.ui;
    for path in &merged.paths {
        let why = path.why.as_ref().map(|why| format!(": {why}"));
        let why = why.unwrap_or_default();
        ui.line(&format!("{:<9} {}{why}", path.verdict, path.path));
    }
    for left in &merged.left_out {
        ui.line(&format!("never     {left}"));
    }
    for pattern in &merged.unmatched {
        ui.say(&format!("note: nothing matches {pattern:?}."));
    }
    if let Some(deletes) = &merged.mass_deletion {
        ui.line(&format!("caution   {}", deletes.sentence()));
    }
    let n = merged.paths.len();
    let left = merged.obstacles;
    if args.dry_run {
        ui.line(&format!(
            "{}; {left} cannot be taken over. Nothing was changed.",
            counted(n, "path")
        ));
    } else if merged.applied {
        ui.line(&format!(
            "Took over {} of {}.",
            n - left,
            counted(n, "path")
        ));
        if merged.not_selected > 0 || left > 0 {
            ui.line(&format!("  next      kapi diff launch/{id}"));
        } else {
            ui.line(&format!("  next      kapi sandbox discard {id}"));
        }
    } else {
        ui.say(&format!(
            "error: {left} of {n} paths cannot be taken over; nothing was changed"
        ));
        if merged.held > 0 {
            ui.say(&format!(
                "hint: {} of them run by themselves once they lie in the project; look at them with \
                 `kapi diff launch/{id}`, then add `--take-auto-run`, or take the rest with \
                 `--on-conflict skip`.",
                merged.held
            ));
        }
        if left > merged.held {
            ui.say(
                "hint: take the rest with `--on-conflict skip`, or conflicts with marks with \
                `--on-conflict mark`.",
            );
        }
    }
}
