//! The end of a build: what a review found is mended, everything is verified, and every criterion
//! gets its evidence.
//!
//! Completion rests on what Kapi saw at the branch's last commit; a reviewer's and an accountant's
//! words are told, and prove nothing.

use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_core::text::short_id;
use kapi_goal::rules::plan::task::PlanTaskId;

use crate::rules::decision_draft::DecisionDraft;
use crate::rules::denied::WorkflowRule;
use crate::rules::event::WorkflowEvent;
use crate::rules::evidence::{Weight, WorkflowEvidence};
use crate::rules::identity::ReviewerIdentity;
use crate::rules::modes::ralph::answer::Accounting;
use crate::rules::modes::ralph::decide::carry;
use crate::rules::modes::ralph::event::{AcceptedCriterion, RalphEvent};
use crate::rules::modes::ralph::plan::sound::{ITEMS_MAX, LONG_BYTES_MAX, SHORT_BYTES_MAX};
use crate::rules::modes::ralph::plan::{Criterion, FINDING_PREFIX, Isolation, PlanTask};
use crate::rules::modes::ralph::review::{
    REVIEWS_MAX, Review, ReviewFinding, ReviewFindings, ReviewVerdict,
};
use crate::rules::modes::ralph::state::{Ralph, Stand};

/// Takes a review, or says what is wrong with it.
pub(super) fn reviewed(
    draft: &mut DecisionDraft<'_, Ralph>,
    by: &ReviewerIdentity,
    said: &ReviewFindings,
) -> Result<(), String> {
    check_identity(&draft.now, by)?;
    let findings = sorted(said);
    check_findings(&findings)?;
    let Some(branch) = draft.now.branch.clone() else {
        return Err("there is nothing to review yet".to_owned());
    };
    let cycle = u32::try_from(draft.now.reviews.len()).unwrap_or(u32::MAX);
    let review = Review {
        cycle: cycle.saturating_add(1),
        commit: branch.head.clone(),
        by: by.clone(),
        findings,
    };
    let verdict = review.findings.verdict();
    let n = review.findings.findings.len();
    let summary = format!(
        "review {} of {}: {}, {n} findings",
        review.cycle,
        short_id(&branch.head),
        verdict.as_str()
    );
    let reference = format!("git:{}", branch.head);
    let mut found = WorkflowEvidence::new(
        Weight::Narrative,
        "review",
        summary,
        reference,
        draft.given.now_ms,
    );
    let is_same = by.agent == draft.workflow.terms.agent;
    found.role = Some(
        if is_same {
            "same-agent reviewer"
        } else {
            "reviewer"
        }
        .to_owned(),
    );
    found.verdict = Some(verdict.as_str().to_owned());
    found.phase = Some("review".to_owned());
    found.artifacts = vec!["review.md".to_owned()];
    found.verifier = Some(by.to_string());
    draft.evidence(found);
    draft.fact(RalphEvent::Reviewed {
        review: review.clone(),
    });
    match verdict {
        ReviewVerdict::Approve => {}
        ReviewVerdict::Changes => {
            let wanted = review.findings.findings.iter();
            let texts: Vec<String> = wanted
                .filter(|f| f.holds_back())
                .map(finding_text)
                .collect();
            let because = format!("Review {} found: {}", review.cycle, texts.join("\n\n"));
            fix(
                draft,
                format!("Fix the findings of review {}", review.cycle),
                because,
            );
        }
        ReviewVerdict::Replan => draft.plan_anew(review.findings.replan.unwrap_or_default(), true),
    }
    Ok(())
}

/// Nobody reviews what they planned or objected to under the same run, or reviews twice.
fn check_identity(ralph: &Ralph, by: &ReviewerIdentity) -> Result<(), String> {
    let planners = ralph.attempts.iter().flat_map(|attempt| {
        let thesis = attempt.thesis.as_ref().map(|(by, _)| by);
        let antithesis = attempt.antithesis.as_ref().map(|(by, _)| by);
        let synthesis = attempt.synthesis.as_ref().map(|(by, _)| by);
        thesis.into_iter().chain(antithesis).chain(synthesis)
    });
    let reviewers = ralph.reviews.iter().map(|review| &review.by);
    if planners.chain(reviewers).any(|other| other.run == by.run) {
        return Err(format!(
            "run {} has already answered in this workflow",
            by.run
        ));
    }
    Ok(())
}

/// Correctness before simplicity, and no simplification holds anything back.
fn sorted(said: &ReviewFindings) -> ReviewFindings {
    let mut findings = said.clone();
    for finding in &mut findings.findings {
        finding.must_fix = finding.holds_back();
    }
    findings.findings.sort_by_key(|f| (f.category, !f.must_fix));
    findings
}

fn check_findings(findings: &ReviewFindings) -> Result<(), String> {
    let is_bad = |text: &str, most: usize| text.trim().is_empty() || text.len() > most;
    let malformed = |finding: &ReviewFinding| {
        is_bad(&finding.title, SHORT_BYTES_MAX)
            || is_bad(&finding.detail, LONG_BYTES_MAX)
            || finding
                .file
                .as_ref()
                .is_some_and(|file| is_bad(file, SHORT_BYTES_MAX))
    };
    let replan = findings.replan.as_ref();
    if is_bad(&findings.summary, LONG_BYTES_MAX)
        || findings.findings.len() > ITEMS_MAX
        || findings.findings.iter().any(malformed)
        || replan.is_some_and(|text| is_bad(text, LONG_BYTES_MAX))
    {
        return Err(format!(
            "summary and the detail of every finding need 1 to {LONG_BYTES_MAX} bytes, a title 1 to \
             {SHORT_BYTES_MAX}, and there may be {ITEMS_MAX} findings at most"
        ));
    }
    match (findings.approve, findings.verdict()) {
        (true, ReviewVerdict::Approve)
        | (false, ReviewVerdict::Changes | ReviewVerdict::Replan) => Ok(()),
        (true, ReviewVerdict::Changes | ReviewVerdict::Replan) => {
            Err("approve is true, but a finding has must_fix or the plan is wrong".to_owned())
        }
        (false, ReviewVerdict::Approve) => Err(
            "approve is false, but no finding except simplifications has must_fix: name what \
             prevents approval, or approve"
                .to_owned(),
        ),
    }
}

fn finding_text(finding: &ReviewFinding) -> String {
    let location = match (&finding.file, finding.line) {
        (Some(file), Some(line)) => format!(" ({file}:{line})"),
        (Some(file), None) => format!(" ({file})"),
        (None, _) => String::new(),
    };
    let category = finding.category.words();
    format!(
        "{category}: {}{location}\n\n{}",
        finding.title, finding.detail
    )
}

/// Plans a task that mends, a few times; then a person is asked.
fn fix(draft: &mut DecisionDraft<'_, Ralph>, title: String, because: String) {
    if draft.now.mends.saturating_add(1) >= REVIEWS_MAX {
        let n = draft.now.mends.saturating_add(1);
        let reason = format!("fixes were needed {n} times in a row. {because}");
        let resume = draft.resume();
        let unblock = format!(
            "read review.md and verify.md; then {resume} to review it again, or {resume} --replan '<reason>' to plan again"
        );
        draft.block(reason, unblock);
        return;
    }
    let is_fix = |id: &PlanTaskId| id.as_str().starts_with(FINDING_PREFIX);
    let now = draft.now.tasks.keys().filter(|id| is_fix(id)).count();
    let n = now
        + draft
            .now
            .earlier
            .iter()
            .filter(|task| is_fix(&task.task))
            .count()
        + 1;
    let Ok(id) = PlanTaskId::parse(&format!("{FINDING_PREFIX}{n:03}")) else {
        return;
    };
    let task = PlanTask {
        id,
        title,
        description:
            "Fix what is described below, and nothing else. If a test could have caught it, add \
             that test first."
                .to_owned(),
        depends_on: Vec::new(),
        touches: Vec::new(),
        isolation: Isolation::Alone,
        verify: whole(&draft.now),
        criteria: Vec::new(),
    };
    draft.fact(RalphEvent::FixPlanned {
        task: Box::new(task),
        because,
    });
}

/// Returns the commands that the whole must pass: those of the closeout, or its tasks' where it has none.
fn whole(ralph: &Ralph) -> Vec<String> {
    let Some(plan) = &ralph.plan else {
        return Vec::new();
    };
    let checks = plan.checks();
    if checks.is_empty() {
        return plan
            .tasks
            .iter()
            .flat_map(|task| task.verify.clone())
            .collect();
    }
    checks
}

/// Takes the verification of everything.
pub(super) fn verified(
    draft: &mut DecisionDraft<'_, Ralph>,
    report: &VerifyReport,
) -> Result<(), WorkflowRule> {
    carry::record(draft, report, "closeout")?;
    if !report.passed() {
        let because = format!("The closeout failed.\n\n{}", carry::said_by(report));
        fix(
            draft,
            "Fix the findings of the closeout".to_owned(),
            because,
        );
    }
    Ok(())
}

/// Takes the account and completes, or says what is wrong with it.
pub(super) fn accounted(
    draft: &mut DecisionDraft<'_, Ralph>,
    said: &Accounting,
) -> Result<(), String> {
    let Accounting {
        rationale,
        risks,
        follow_up,
    } = said;
    let is_bad = |text: &String| text.trim().is_empty() || text.len() > LONG_BYTES_MAX;
    let lists = [risks, follow_up];
    if is_bad(rationale)
        || lists
            .iter()
            .any(|list| list.len() > ITEMS_MAX || list.iter().any(is_bad))
    {
        return Err(format!(
            "rationale and every entry of risks and follow_up need 1 to {LONG_BYTES_MAX} bytes, and \
             a list may have {ITEMS_MAX} entries at most"
        ));
    }
    match acceptance(draft) {
        Ok(acceptance) => {
            draft.fact(RalphEvent::Accounted {
                acceptance,
                rationale: rationale.clone(),
                risks: risks.clone(),
                follow_up: follow_up.clone(),
            });
            draft.events.push(WorkflowEvent::Completed {});
        }
        Err(missing) => {
            let resume = draft.resume();
            let reason = format!("evidence is missing: {missing}");
            draft.block(reason, format!("{resume} --replan 'evidence is missing'"));
        }
    }
    Ok(())
}

/// Puts to every criterion what speaks for it at the branch's last commit.
fn acceptance(draft: &DecisionDraft<'_, Ralph>) -> Result<Vec<AcceptedCriterion>, String> {
    let ralph = &draft.now;
    let (Some(branch), Some(plan)) = (&ralph.branch, &ralph.plan) else {
        return Err("there is no branch or no plan".to_owned());
    };
    let at_head = format!("git:{}", branch.head);
    let evidence = &draft.workflow.evidence;
    let is_proof = |e: &&WorkflowEvidence| e.weight == Weight::Validation && e.reference == at_head;
    if !evidence
        .iter()
        .filter(is_proof)
        .any(|e| e.exit_code == Some(0))
    {
        return Err(format!("nothing was verified at {}", branch.head));
    }
    let mut acceptance = Vec::new();
    for criterion in &plan.criteria {
        let numbers: Vec<u32> = (1_u32..)
            .zip(evidence)
            .filter(|(_, found)| speaks_for(ralph, criterion, found, &at_head))
            .map(|(number, _)| number)
            .collect();
        if numbers.is_empty() {
            return Err(format!("there is no evidence for {}", criterion.id));
        }
        acceptance.push(AcceptedCriterion {
            criterion: criterion.id.clone(),
            evidence: numbers,
        });
    }
    Ok(acceptance)
}

/// A criterion's own command at the last commit; for one without, the last review and the goals of
/// the tasks that serve it.
fn speaks_for(
    ralph: &Ralph,
    criterion: &Criterion,
    found: &WorkflowEvidence,
    at_head: &str,
) -> bool {
    if let Some(verify) = &criterion.verify {
        return found.weight == Weight::Validation
            && found.reference == at_head
            && found.command.as_ref() == Some(verify)
            && found.exit_code == Some(0);
    }
    if found.kind == "review" {
        return found.reference == at_head
            && found.verdict.as_deref() == Some(ReviewVerdict::Approve.as_str());
    }
    ralph.tasks.values().any(|state| {
        let serves = state.task.criteria.contains(&criterion.id);
        let goal = state.goal.as_ref().map(|goal| format!("goal:{goal}"));
        let is_landed = matches!(state.stand, Stand::Landed { .. });
        serves && is_landed && found.kind == "goal" && goal.as_ref() == Some(&found.reference)
    })
}
