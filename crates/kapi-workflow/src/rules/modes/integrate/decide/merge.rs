//! Sources on their way to the branch: applied, in conflict, resolved.
//!
//! What an agent says of a resolution is recorded and believed by nobody: the markers are looked for, and
//! the result is verified like any other.

use kapi_check::rules::proof::verify_report::run_end;
use kapi_core::text::{agent_name, short_id};

use crate::rules::conflict::Settlement;
use crate::rules::decision_draft::DecisionDraft;
use crate::rules::denied::WorkflowRule;
use crate::rules::effect::combine::{ConflictedPath, RegenerationRun};
use crate::rules::event::WorkflowEvent;
use crate::rules::evidence::Weight;
use crate::rules::modes::ModeAnswer;
use crate::rules::modes::integrate::answer::{IntegrateAnswer, Resolution};
use crate::rules::modes::integrate::conflict::Regeneration;
use crate::rules::modes::integrate::decide::evict;
use crate::rules::modes::integrate::event::IntegrateEvent;
use crate::rules::modes::integrate::plan::REASON_BYTES_MAX;
use crate::rules::modes::integrate::role::IntegrateRole;
use crate::rules::modes::integrate::state::Integrate;
use crate::rules::outcome::ProposalReport;

/// The most options of a resolution.
const OPTIONS_MAX: usize = 10;

/// Takes a source that is on the branch, perhaps after rules alone settled what did not fit.
pub(super) fn applied(
    draft: &mut DecisionDraft<'_, Integrate>,
    at: [&String; 2],
    by_rule: &[ConflictedPath],
) {
    let [head, tree] = at;
    let Some(step) = draft.now.next_step().cloned() else {
        return;
    };
    let (before, source) = (draft.now.head().to_owned(), step.source.to_string());
    if !by_rule.is_empty() {
        found(draft, &source, &before, by_rule);
        let rules: Vec<&str> = by_rule
            .iter()
            .filter_map(|it| it.by_rule.as_deref())
            .collect();
        let settlement = Settlement {
            by: "a rule".to_owned(),
            commit: Some(head.clone()),
            why: rules.join("; "),
            at_ms: draft.given.now_ms,
        };
        draft.settle_conflicts(&source, settlement);
    }
    on_branch(draft, &source, head);
    draft.fact(IntegrateEvent::SourceApplied {
        source: step.source,
        method: step.method,
        before,
        after: head.clone(),
        tree: tree.clone(),
        by_rule: by_rule.iter().map(|it| it.path.clone()).collect(),
    });
}

fn found(
    draft: &mut DecisionDraft<'_, Integrate>,
    source: &str,
    before: &str,
    paths: &[ConflictedPath],
) {
    draft.events.push(WorkflowEvent::ConflictFound {
        what: source.to_owned(),
        paths: paths.iter().map(|it| it.path.clone()).collect(),
        onto: before.to_owned(),
        at_ms: draft.given.now_ms,
    });
}

fn on_branch(draft: &mut DecisionDraft<'_, Integrate>, source: &str, head: &str) {
    let summary = format!("{source} is on the branch as {}", short_id(head));
    let found = draft.seen(Weight::Validation, "land", summary, head);
    draft.evidence(found);
}

/// Takes a source that does not fit.
pub(super) fn conflicted(
    draft: &mut DecisionDraft<'_, Integrate>,
    at: &str,
    paths: &[ConflictedPath],
) {
    let Some(step) = draft.now.next_step().cloned() else {
        return;
    };
    let before = draft.now.head().to_owned();
    found(draft, &step.source.to_string(), &before, paths);
    draft.fact(IntegrateEvent::SourceConflicted {
        source: step.source,
        before,
        at: at.to_owned(),
        paths: paths.to_vec(),
    });
}

/// Takes a resolution that an agent left in the worktree, or says what is wrong with it.
pub(super) fn proposed(draft: &mut DecisionDraft<'_, Integrate>, proposed: &ProposalReport) {
    let Some(conflict) = draft.now.conflict.clone() else {
        return;
    };
    let ModeAnswer::Integrate(IntegrateAnswer::Resolution(said)) = &proposed.answer else {
        return draft.refuse(IntegrateRole::Resolver, "a resolution was asked for");
    };
    if let Err(why) = sound(said) {
        return draft.refuse(IntegrateRole::Resolver, &why);
    }
    if said.unresolvable {
        let why = format!("its conflict has no resolution: {}", said.rationale.trim());
        let evidence = format!("options: {}", said.options.join("; "));
        return evict::found(draft, &[conflict.source], &why, &evidence);
    }
    let Some(candidate) = &proposed.candidate else {
        let why = "no file was changed: the conflict is still in the files";
        return draft.refuse(IntegrateRole::Resolver, why);
    };
    draft.fact(IntegrateEvent::ResolutionProposed {
        source: conflict.source,
        by: proposed.by.clone(),
        said: said.clone(),
        commit: candidate.commit.clone(),
    });
}

fn sound(said: &Resolution) -> Result<(), String> {
    let texts = said.options.iter().chain([&said.choice, &said.rationale]);
    let is_bad = |text: &String| text.trim().is_empty() || text.len() > REASON_BYTES_MAX;
    if said.options.is_empty() || said.options.len() > OPTIONS_MAX {
        return Err(format!("give 1 to {OPTIONS_MAX} options"));
    }
    if texts.into_iter().any(is_bad) {
        return Err(format!(
            "every option, choice and rationale need 1 to {REASON_BYTES_MAX} bytes"
        ));
    }
    Ok(())
}

/// Takes what tools wrote anew, or that one of them failed: then somebody has to.
pub(super) fn regenerated(
    draft: &mut DecisionDraft<'_, Integrate>,
    commit: Option<&String>,
    runs: &[RegenerationRun],
) -> Result<(), WorkflowRule> {
    let Some(conflict) = draft.now.conflict.clone() else {
        return Ok(());
    };
    let n_wanted = conflict.paths.iter().filter(|it| it.regenerate.is_some());
    let is_whole = runs.iter().all(|it| it.run.passed()) && runs.len() == n_wanted.count();
    if commit.is_some() && !is_whole {
        return Err(WorkflowRule::Malformed {
            rule: "take files that no tool wrote".to_owned(),
        });
    }
    for made in runs {
        let run = &made.run;
        let summary = format!("`{}` {} for {}", run.command, run_end(run), made.path);
        let at = commit.map_or(conflict.resolution(), String::as_str);
        let mut found = draft.seen(Weight::Narrative, "regeneration", summary, at);
        found.command = Some(run.command.clone());
        found.exit_code = run.exit_code;
        found.artifacts = vec!["conflict-matrix.md".to_owned()];
        draft.evidence(found);
    }
    draft.fact(IntegrateEvent::FilesRegenerated {
        regeneration: Regeneration {
            source: conflict.source,
            commit: commit.cloned(),
            runs: runs.to_vec(),
        },
    });
    Ok(())
}

/// Takes a conflict that is resolved.
pub(super) fn settled(draft: &mut DecisionDraft<'_, Integrate>, head: &str, tree: &str) {
    let (Some(step), Some(conflict)) = (draft.now.next_step().cloned(), draft.now.conflict.clone())
    else {
        return;
    };
    let said = conflict.proposed.as_ref();
    let source = step.source.to_string();
    let settlement = Settlement {
        by: said.map_or_else(|| "a rule".to_owned(), |it| agent_name(&it.by.agent)),
        commit: Some(head.to_owned()),
        why: said.map_or_else(|| conflict.rules_text(), |it| it.said.choice.clone()),
        at_ms: draft.given.now_ms,
    };
    draft.settle_conflicts(&source, settlement);
    on_branch(draft, &source, head);
    draft.fact(IntegrateEvent::ConflictResolved {
        source: step.source,
        method: step.method,
        after: head.to_owned(),
        tree: tree.to_owned(),
    });
}
