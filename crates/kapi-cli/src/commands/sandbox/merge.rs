//! `kapi sandbox merge`: takes what a sandbox changed over into its project, all of it or none.

use std::path::PathBuf;

use kapi_core::deletions::Deletions;
use kapi_core::text::counted;
use kapi_launch::merge;
use kapi_launch::merge::{Conflicts, MergePlan, MergeResult, Rehearsal, RiskyChanges};
use serde::Serialize;

use super::super::launch::is_json;
use super::grants;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::subject::launches::LaunchArgs;

/// Options of `kapi sandbox merge`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    meant: LaunchArgs,
    /// Merge only matching paths ('*', '?', '[…]', '**'); a leading '!' excludes
    #[arg(value_name = "PATTERN")]
    select: Vec<String>,
    /// Show what would be merged, without merging it
    #[arg(long)]
    dry_run: bool,
    /// How to handle conflicts
    #[arg(long, value_name = "RULE", value_enum, default_value = "refuse")]
    on_conflict: ConflictRule,
    /// Also merge files that run automatically: editor tasks, git hooks, CI, agent settings
    #[arg(long)]
    take_auto_run: bool,
    /// Merge even if much of the project is deleted
    #[arg(long)]
    take_deletions: bool,
    /// Merge this symbolic link even though it points outside the project (repeatable)
    #[arg(long, value_name = "PATH")]
    link_out: Vec<PathBuf>,
}

/// What to do about conflicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ConflictRule {
    /// Merge nothing
    Refuse,
    /// Merge the rest
    Skip,
    /// Merge the rest, and write conflict markers into text files
    Mark,
}

#[derive(Debug, Serialize)]
struct MergeView<'a> {
    id: &'a str,
    dry_run: bool,
    #[serde(flatten)]
    merged: &'a MergeResult,
}

/// Merges.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let location = args.meant.find(context)?;
    let mut plan = MergePlan {
        select: args.select.clone(),
        links_out: args.link_out.iter().cloned().collect(),
        conflicts: match args.on_conflict {
            ConflictRule::Refuse => Conflicts::Refuse,
            ConflictRule::Skip => Conflicts::Skip,
            ConflictRule::Mark => Conflicts::Mark,
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
    let grants = grants(context)?;
    let merge = |plan: &MergePlan| {
        merge::merge(&grants, &location, plan).map_err(|error| Error::launch(&error))
    };
    let id = location.id().as_str();
    let mut merged = merge(&plan)?;
    if !args.dry_run && !merged.unmatched.is_empty() {
        return Err(unmatched(id, &merged.unmatched));
    }
    if let (false, Some(deletes)) = (args.dry_run || args.take_deletions, &merged.mass_deletion) {
        plan.mass_deletion = RiskyChanges::Open;
        merged = match confirm_deletions(context, deletes)? {
            true => merge(&plan)?,
            false => return Err(Error::new(Exit::Denied, "nothing was merged")),
        };
    }
    if is_json(context) {
        context.ui.json(&MergeView {
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

/// Returns the error that patterns match nothing of what a sandbox changed.
fn unmatched(id: &str, patterns: &[String]) -> Error {
    let quoted: Vec<String> = patterns.iter().map(|one| format!("{one:?}")).collect();
    let patterns = quoted.join(", ");
    Error::usage(format!(
        "nothing in sandbox {id} matches {patterns}; nothing was merged"
    ))
    .with_hint(format!(
        "`kapi diff launch/{id} --stat` lists what changed."
    ))
}

/// Asks whether much of the project is to be deleted.
fn confirm_deletions(context: &Context, deletes: &Deletions) -> Result<bool, Error> {
    let text = deletes.sentence();
    let question = format!("Merge anyway? {text}.");
    let answer = context.ui.confirm(&question);
    answer.ok_or_else(|| {
        Error::new(Exit::Denied, format!("nothing was merged: {text}")).with_hint(
            "review it with `kapi diff launch/<id> --stat`, then add `--take-deletions`.",
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
    for one in &merged.deceptive {
        ui.line(&format!("caution   {one}"));
    }
    if let Some(deletes) = &merged.mass_deletion {
        ui.line(&format!("caution   {}", deletes.sentence()));
    }
    let n = merged.paths.len();
    let left = merged.obstacles;
    if args.dry_run {
        ui.line(&format!(
            "{}; {left} cannot be merged. Nothing was changed.",
            counted(n, "path")
        ));
    } else if merged.applied {
        ui.line(&format!("Merged {} of {}.", n - left, counted(n, "path")));
        if merged.not_selected > 0 || left > 0 {
            ui.line(&format!("  next      kapi diff launch/{id}"));
        } else {
            ui.line(&format!("  next      kapi sandbox discard {id}"));
        }
    } else {
        ui.say(&format!(
            "error: {left} of {n} paths cannot be merged; nothing was changed"
        ));
        if merged.held > 0 {
            ui.say(&format!(
                "hint: {} of them would run automatically in the project; review them with \
                 `kapi diff launch/{id}`, then add `--take-auto-run`, or merge the rest with \
                 `--on-conflict skip`.",
                merged.held
            ));
        }
        if left > merged.held {
            ui.say(
                "hint: merge the rest with `--on-conflict skip`, or write conflict markers with \
                 `--on-conflict mark`.",
            );
        }
    }
}
