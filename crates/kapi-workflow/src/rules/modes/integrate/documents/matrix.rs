//! `conflict-matrix.md`: which sources were foreseen to conflict, which did, and how that was resolved.

use kapi_check::rules::proof::verify_report::run_end;
use kapi_core::id::GoalId;
use kapi_core::quote::tail;
use kapi_core::text::short_id;

use crate::rules::effect::combine::Foresight;
use crate::rules::modes::integrate::conflict::{Regeneration, SettledConflict};
use crate::rules::modes::integrate::source::Source;
use crate::rules::modes::integrate::state::Integrate;
use crate::rules::modes::ralph::documents::markdown::{block, code, lines, list, quote};
use crate::rules::report::one_line;
use crate::rules::state::Workflow;

/// The most bytes of a failed tool's output that are repeated.
const OUTPUT_BYTES_MAX: usize = 4_000;

/// Returns the document.
pub(in crate::rules::modes::integrate) fn document(
    workflow: &Workflow,
    state: &Integrate,
) -> String {
    let foreseen = state.foresight.as_ref().map_or_else(
        || "The sources were not compared yet.".to_owned(),
        |foresight| pairs(foresight, &state.sources),
    );
    let found: Vec<String> = workflow
        .conflicts
        .iter()
        .map(|conflict| format!("{}.", one_line(&conflict.words())))
        .collect();
    let mut parts = vec![
        format!("# Conflicts of {}", workflow.id),
        "Foreseen is what git cannot merge when two are put together alone. It excuses nothing from being \
         verified."
            .to_owned(),
        format!("## Foreseen\n\n{foreseen}"),
        format!("## Found\n\n{}", list(&found)),
    ];
    parts.extend(state.resolutions.iter().map(settled));
    parts.extend(state.regenerations.iter().map(regenerated));
    format!("{}\n", parts.join("\n\n"))
}

/// Returns the same in lines, for whoever reads no tables.
pub(in crate::rules::modes::integrate) fn text(state: &Integrate) -> String {
    let mut lines = Vec::new();
    let foresight = state.foresight.iter();
    for clash in foresight.flat_map(|it| &it.clashes) {
        let one = name(clash.one.as_ref());
        let paths = clash.paths.join(", ");
        lines.push(format!(
            "foreseen: {one} and {} conflict in {paths}",
            clash.other
        ));
    }
    for applied in &state.applied {
        let mut resolved = if applied.resolved.is_empty() {
            String::new()
        } else {
            format!(", a conflict in {} resolved", applied.resolved.join(", "))
        };
        if !applied.generated.is_empty() {
            let generated = applied.generated.join(", ");
            resolved = format!("{resolved}, {generated} written by tools");
        }
        lines.push(format!(
            "{} by {} as {}{resolved}",
            applied.source,
            applied.method.as_str(),
            short_id(&applied.after)
        ));
    }
    if lines.is_empty() {
        lines.push("nothing was foreseen, and nothing is on the branch yet".to_owned());
    }
    lines.join("\n")
}

/// Returns every pair as a table, and the paths of those that conflict.
pub(in crate::rules::modes::integrate) fn pairs(
    foresight: &Foresight,
    sources: &[Source],
) -> String {
    let ids = foresight.sides();
    let head: Vec<String> = ids.iter().map(|id| name(*id)).collect();
    let mut rows = vec![
        format!("| | {} |", head.join(" | ")),
        format!("|---|{}", "---|".repeat(ids.len())),
    ];
    for one in &ids {
        let cells = ids.iter().map(|other| {
            if one == other {
                ".".to_owned()
            } else {
                foresight
                    .clash(*one, *other)
                    .map_or_else(|| "none".to_owned(), |it| it.paths.len().to_string())
            }
        });
        let cells: Vec<String> = cells.collect();
        rows.push(format!("| {} | {} |", name(*one), cells.join(" | ")));
    }
    let paths: Vec<String> = foresight
        .clashes
        .iter()
        .map(|it| {
            let paths: Vec<String> = it.paths.iter().map(|path| code(path)).collect();
            format!(
                "{} and {}: {}",
                name(it.one.as_ref()),
                it.other,
                paths.join(", ")
            )
        })
        .collect();
    let title = |id: &GoalId| {
        let source = sources.iter().find(|source| source.id == *id);
        source.map_or_else(
            || id.to_string(),
            |source| format!("{id} ({})", source.title),
        )
    };
    let same: Vec<String> = foresight
        .duplicates
        .iter()
        .map(|it| {
            let (one, other) = (title(&it.one), title(&it.other));
            format!(
                "{} and {}: {}",
                one_line(&one),
                one_line(&other),
                code(short_id(&it.commit))
            )
        })
        .collect();
    format!(
        "A number says how many paths conflict.\n\n{}\n\nPaths:\n\n{}\n\nThe same change in two:\n\n{}",
        rows.join("\n"),
        list(&paths),
        list(&same)
    )
}

fn name(id: Option<&GoalId>) -> String {
    id.map_or_else(|| "dev".to_owned(), GoalId::to_string)
}

/// Returns what tools wrote anew, and what they printed where one failed.
fn regenerated(made: &Regeneration) -> String {
    let runs = made.runs.iter().map(|it| {
        let (run, path) = (&it.run, code(&it.path));
        let words = format!("- {} {} for {path}", code(&run.command), run_end(run));
        if made.commit.is_some() || run.output_tail.trim().is_empty() {
            return words;
        }
        let output = tail(&run.output_tail, OUTPUT_BYTES_MAX);
        format!("{words}\n\n{}", block(output))
    });
    let runs: Vec<String> = runs.collect();
    let end = if made.commit.is_some() {
        "Nobody looks for a source of what they wrote."
    } else {
        "Whoever resolves the conflict was told."
    };
    format!(
        "## Tools for files of {}\n\n{}\n\n{end}",
        made.source,
        runs.join("\n")
    )
}

fn settled(settled: &SettledConflict) -> String {
    let paths: Vec<String> = settled.paths.iter().map(|it| code(&it.path)).collect();
    let rules = settled.paths.iter().filter_map(|it| it.by_rule.clone());
    let rules: Vec<String> = rules.collect();
    let by_rule = if rules.is_empty() {
        String::new()
    } else {
        format!("\n\nSettled by rule:\n\n{}", lines(&rules))
    };
    format!(
        "## {} on {}\n\nPaths:\n\n{}{by_rule}\n\nOptions, in the words of {}:\n\n{}\n\nChosen:\n\n{}\n\n\
         Because:\n\n{}\n\nIt is in {}.",
        settled.source,
        code(short_id(&settled.before)),
        list(&paths),
        one_line(&settled.by.to_string()),
        lines(&settled.said.options),
        quote(&settled.said.choice),
        quote(&settled.said.rationale),
        code(short_id(&settled.after))
    )
}
