//! `kapi status`: the goals of this project and where they stand. Reads no log.

use kapi_core::goal::contract::{Race, SandboxLevel};
use kapi_engine::project::Standing;
use serde::Serialize;

use crate::context::Context;
use crate::error::{Error, chain};
use crate::exit_code::Exit;
use crate::ui::Format;

/// Options of `kapi status`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Show ended goals as well
    #[arg(short, long)]
    all: bool,
}

#[derive(Debug, Serialize)]
struct View {
    goals: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    id: String,
    status: String,
    driver: Option<String>,
    branch: Option<String>,
    worktree: Option<String>,
    sandbox: Option<SandboxLevel>,
    updated: Option<String>,
    fault: Option<String>,
    race: Option<Race>,
}

/// Lists the goals.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let project = match context.project_root() {
        Ok(root) => context.project(&root, "kapi status"),
        Err(error) if error.exit == Exit::NotFound => return Ok(nothing(context)),
        Err(error) => return Err(error),
    };
    let failed = |error| Error::engine(&error, "");
    let mut rows = Vec::new();
    let mut hidden = 0;
    for listed in project.goals().map_err(failed)? {
        let id = listed.id.to_string();
        match listed.standing {
            Standing::Known(entry) => {
                let is_over = entry.status.is_terminal();
                if is_over && !args.all && context.ui.format == Format::Human {
                    hidden += 1;
                    continue;
                }
                let driver = if is_over {
                    None
                } else {
                    project.driver(&listed.id).map_err(failed)?
                };
                rows.push(Row {
                    id,
                    sandbox: Some(entry.sandbox),
                    status: entry.status.to_string(),
                    driver,
                    branch: Some(entry.branch),
                    worktree: entry.worktree,
                    updated: Some(entry.updated),
                    fault: None,
                    race: entry.race,
                });
            }
            Standing::Damaged(error) => rows.push(Row {
                id,
                status: "damaged".to_owned(),
                driver: None,
                branch: None,
                worktree: None,
                sandbox: None,
                updated: None,
                fault: Some(chain(&error)),
                race: None,
            }),
        }
    }
    match context.ui.format {
        Format::Json => context.ui.json(&View { goals: rows }),
        Format::Human => human(context, &rows, hidden),
    }
    Ok(Exit::Success)
}

fn nothing(context: &Context) -> Exit {
    match context.ui.format {
        Format::Json => context.ui.json(&View { goals: Vec::new() }),
        Format::Human => {
            context.ui.line("There are no goals here.");
            context
                .ui
                .line("Start one with `kapi run \"<task>\" --verify \"<command>\"`.");
        }
    }
    Exit::Success
}

fn human(context: &Context, rows: &[Row], hidden: usize) {
    let width = rows.iter().map(|row| row.id.len()).max().unwrap_or(0);
    for row in rows {
        let state = match (&row.driver, row.status.as_str()) {
            (Some(driver), "active") => format!("active, driven by {driver}"),
            (None, "active") => "active, not driven: `kapi resume` goes on".to_owned(),
            (_, status) => status.to_owned(),
        };
        let isolation = if row.sandbox == Some(SandboxLevel::None) {
            ", NO ISOLATION"
        } else {
            ""
        };
        let branch = row.branch.as_deref().unwrap_or_default();
        let race = row.race.as_ref().map_or_else(String::new, |race| {
            format!("  lane {} of race {:03}", race.lane, race.of)
        });
        context.ui.line(&format!(
            "{:width$}  {state}{isolation}  {branch}{race}",
            row.id
        ));
        if let Some(fault) = &row.fault {
            context
                .ui
                .line(&format!("{:width$}  failed to {fault}", ""));
        }
    }
    if hidden > 0 {
        context.ui.say(&format!(
            "{hidden} ended goals are not shown; `kapi status --all` lists them."
        ));
    } else if rows.is_empty() {
        context.ui.line("There are no goals here.");
    }
}
