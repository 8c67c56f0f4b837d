//! `kapi goal judge`: who judges goals of this project where nothing else is said.
//!
//! Kept in the person's home. A judge that cannot be reached is found when a goal is set up.

use std::path::{Path, PathBuf};

use kapi_core::goal::contract::SandboxLevel;
use kapi_engine::preferences::Change;
use kapi_world::asking;
use serde_json::json;

use crate::context::Context;
use crate::contract::judge::JudgeName;
use crate::contract::party;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::Format;

/// Options of `kapi goal judge`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// An agent, provider/model, `same`, `none`, or `clear`; without it, the judge is shown
    #[arg(value_name = "JUDGE")]
    judge: Option<String>,
}

/// Shows or sets the judge of later goals.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    match args.judge.as_deref() {
        None => show(context),
        Some("clear" | "off") => set(context, None),
        Some(judge) => set(context, Some(judge)),
    }
}

/// Shows who judges by default.
pub(super) fn show(context: &Context) -> Result<Exit, Error> {
    let root = project_of(context)?;
    let preferred = context.preferred(&root)?.judge;
    let configured = context.config(Some(&root))?.judge().cloned();
    match (context.ui.format, &preferred, &configured) {
        (Format::Json, ..) => context.ui.json(&json!({
            "type": "preferences",
            "project": root.display().to_string(),
            "judge": preferred,
            "configured_judge": configured,
        })),
        (Format::Human, Some(judge), _) => {
            context
                .ui
                .line(&format!("Goals here are judged by: {judge}."));
        }
        (Format::Human, None, Some(judge)) => context.ui.line(&format!(
            "Goals here are judged by: {judge} (said by the configuration or KAPI_JUDGE)."
        )),
        (Format::Human, None, None) => {
            context.ui.line(
                "No judge is set here: another installed agent judges, or each goal says who.",
            );
            context
                .ui
                .line("Set one with `kapi goal judge provider/model`, or an agent's name.");
        }
    }
    Ok(Exit::Success)
}

/// Sets who judges by default, or nobody in particular.
pub(super) fn set(context: &Context, judge: Option<&str>) -> Result<Exit, Error> {
    context.require_human("choose a judge")?;
    let root = project_of(context)?;
    let judge = judge
        .map(|text| checked(context, &root, text))
        .transpose()?;
    let preferred = context
        .preferences(&root)?
        .change(&context.actor, &Change::JudgeSet { judge })
        .map_err(|error| Error::engine(&error, ""))?;
    match (context.ui.format, &preferred.judge) {
        (Format::Json, judge) => context.ui.json(&json!({
            "type": "preferences",
            "project": root.display().to_string(),
            "judge": judge,
        })),
        (Format::Human, Some(judge)) => context
            .ui
            .line(&format!("Later goals here are judged by: {judge}.")),
        (Format::Human, None) => context
            .ui
            .line("No judge is set here any more; each goal says who judges."),
    }
    Ok(Exit::Success)
}

/// Returns a judge's name as it is kept; says what is weak or missing about it now.
fn checked(context: &Context, root: &Path, text: &str) -> Result<String, Error> {
    match JudgeName::parse(text)? {
        JudgeName::Same => context.ui.say(
            "note: a model that judges its own work is weaker than another one; every contract \
             will say so.",
        ),
        JudgeName::None => context
            .ui
            .say("note: no model will look at the results of later goals."),
        JudgeName::Agent(_) => {
            let book = context.book(&context.config(Some(root))?);
            if let Err(failure) = asking::check_agent(&book, text, SandboxLevel::Native) {
                context.ui.say(&format!(
                    "note: it could not judge now: failed to {}.",
                    failure.message
                ));
            }
            return party::absolute(context, text);
        }
        JudgeName::Model { .. } => {}
    }
    Ok(text.to_owned())
}

/// Returns the project that preferences are about: the nearest repository or directory with goals.
pub(super) fn project_of(context: &Context) -> Result<PathBuf, Error> {
    let has_goals = |dir: &Path| dir.join(".ilchul").join("goals").is_dir();
    let is_project = |dir: &&Path| dir.join(".git").exists() || has_goals(dir);
    let found = context.cwd.ancestors().find(is_project);
    found.map(Path::to_path_buf).ok_or_else(|| {
        Error::new(
            Exit::NotFound,
            format!("{} belongs to no project", context.cwd.display()),
        )
        .with_hint("go to a git repository; preferences are kept for each project.")
    })
}
