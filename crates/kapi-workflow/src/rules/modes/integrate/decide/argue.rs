//! What agents say of the result: a review, a defence, an attack, a ruling; and where a revision leads.
//!
//! Three attempts in a cycle; the third revision and any block wait for a person.

use kapi_core::id::GoalId;
use kapi_core::text::short_id;

use crate::rules::decision_draft::DecisionDraft;
use crate::rules::effect::combine::CoverageFault;
use crate::rules::evidence::Weight;
use crate::rules::identity::ReviewerIdentity;
use crate::rules::modes::ModeAnswer;
use crate::rules::modes::integrate::answer::{
    Attack, Defence, IntegrateAnswer, IntegrationFindings, LandingVerdict, RevisionCause, Ruling,
};
use crate::rules::modes::integrate::decide::plan;
use crate::rules::modes::integrate::event::IntegrateEvent;
use crate::rules::modes::integrate::plan::{REASON_BYTES_MAX, VERIFY_MAX};
use crate::rules::modes::integrate::role::IntegrateRole;
use crate::rules::modes::integrate::state::{
    ATTEMPTS_MAX, Argument, Integrate, IntegrationReview, Statement,
};

/// The most entries of a list in an answer.
const ITEMS_MAX: usize = 200;

/// Something that has to be done again.
struct Revision {
    cause: RevisionCause,
    source: Option<GoalId>,
    why: String,
    checks: Vec<String>,
}

/// Takes an answer, or says what is wrong with it.
pub(super) fn answered(
    draft: &mut DecisionDraft<'_, Integrate>,
    role: IntegrateRole,
    by: &ReviewerIdentity,
    answer: &ModeAnswer,
) {
    let ModeAnswer::Integrate(answer) = answer else {
        return draft.refuse(role, "the answer is another mode's");
    };
    let taken = match (role, answer) {
        (IntegrateRole::Planner, IntegrateAnswer::Plan(said)) => plan::proposed(draft, by, said),
        (IntegrateRole::Reviewer, IntegrateAnswer::Review(said)) => reviewed(draft, by, said),
        (IntegrateRole::Thesis, IntegrateAnswer::Thesis(said)) => thesis(draft, by, said),
        (IntegrateRole::Antithesis, IntegrateAnswer::Antithesis(said)) => {
            antithesis(draft, by, said)
        }
        (IntegrateRole::Synthesis, IntegrateAnswer::Synthesis(said)) => synthesis(draft, by, said),
        (_, _) => Err("the answer does not have the form that this role needs".to_owned()),
    };
    if let Err(why) = taken {
        draft.refuse(role, &why);
    }
}

fn reviewed(
    draft: &mut DecisionDraft<'_, Integrate>,
    by: &ReviewerIdentity,
    said: &IntegrationFindings,
) -> Result<(), String> {
    let mut others = draft.now.reviews.iter();
    if others.any(|review| review.by.run == by.run) {
        return Err(format!("run {} has reviewed before", by.run));
    }
    check_findings(draft, said)?;
    let head = draft.now.head().to_owned();
    let (n_problems, n_justified) = (said.problems.len(), said.justified.len());
    let summary = format!(
        "review of {}: {n_problems} problems, {n_justified} findings justified",
        short_id(&head)
    );
    let mut found = draft.seen(Weight::Narrative, "review", summary, &head);
    found.role = Some(IntegrateRole::Reviewer.as_str().to_owned());
    let verdict = if n_problems == 0 { "approve" } else { "revise" };
    found.verdict = Some(verdict.to_owned());
    found.verifier = Some(by.to_string());
    found.artifacts = vec!["integration-report.md".to_owned()];
    draft.evidence(found);
    draft.fact(IntegrateEvent::Reviewed {
        review: IntegrationReview {
            by: by.clone(),
            head,
            findings: said.clone(),
        },
    });
    // What leads back farthest settles the others on the way.
    let widest = said
        .problems
        .iter()
        .max_by_key(|it| draft.now.narrowest(it.cause, it.source.as_ref()));
    if let Some(widest) = widest {
        let texts: Vec<String> = said
            .problems
            .iter()
            .map(|problem| format!("{}: {}", problem.title.trim(), problem.detail.trim()))
            .collect();
        let revision = Revision {
            cause: widest.cause,
            source: widest.source.clone(),
            why: texts.join("\n"),
            checks: Vec::new(),
        };
        back(draft, revision);
    }
    Ok(())
}

/// Every finding of the coverage is accounted for, once.
fn check_findings(
    draft: &DecisionDraft<'_, Integrate>,
    said: &IntegrationFindings,
) -> Result<(), String> {
    let texts = said.justified.iter().map(|it| &it.why);
    let problems = said.problems.iter();
    let texts = texts.chain(problems.flat_map(|it| [&it.title, &it.detail]));
    check_texts(texts.chain([&said.summary]))?;
    if said.problems.len() > ITEMS_MAX {
        return Err(format!("there may be {ITEMS_MAX} problems"));
    }
    check_sources(
        draft,
        said.problems.iter().filter_map(|it| it.source.as_ref()),
    )?;
    let named: Vec<u32> = said
        .justified
        .iter()
        .map(|it| it.finding)
        .chain(said.problems.iter().filter_map(|it| it.finding))
        .collect();
    let findings: Vec<(u32, CoverageFault)> = draft
        .now
        .findings()
        .map(|(number, found)| (number, found.kind))
        .collect();
    let is_known = |number: &u32| findings.iter().any(|(known, _)| known == number);
    if let Some(number) = named.iter().find(|number| !is_known(number)) {
        return Err(format!("there is no finding {number}"));
    }
    let is_open = |(number, kind): &&(u32, CoverageFault)| {
        kind.needs_justification() && !named.contains(number)
    };
    match findings.iter().find(is_open) {
        Some((number, kind)) => Err(format!(
            "finding {number} ({}) is neither justified nor a problem",
            kind.as_str()
        )),
        None => Ok(()),
    }
}

fn check_sources<'a>(
    draft: &DecisionDraft<'_, Integrate>,
    mut named: impl Iterator<Item = &'a GoalId>,
) -> Result<(), String> {
    match named.find(|id| draft.now.source(id).is_none()) {
        Some(id) => Err(format!("{id} is not a source of this integration")),
        None => Ok(()),
    }
}

fn check_texts<'a>(mut texts: impl Iterator<Item = &'a String>) -> Result<(), String> {
    if texts.any(|text| text.trim().is_empty() || text.len() > REASON_BYTES_MAX) {
        return Err(format!("every text needs 1 to {REASON_BYTES_MAX} bytes"));
    }
    Ok(())
}

fn thesis(
    draft: &mut DecisionDraft<'_, Integrate>,
    by: &ReviewerIdentity,
    said: &Defence,
) -> Result<(), String> {
    check_texts(said.points.iter().chain([&said.defence]))?;
    state(draft, by, Argument::Thesis(said.clone()))
}

fn antithesis(
    draft: &mut DecisionDraft<'_, Integrate>,
    by: &ReviewerIdentity,
    said: &Attack,
) -> Result<(), String> {
    if said.objections.len() > ITEMS_MAX {
        return Err(format!("there may be {ITEMS_MAX} objections"));
    }
    let texts = said.objections.iter().map(|it| &it.text);
    check_texts(texts.chain([&said.strongest]))?;
    state(draft, by, Argument::Antithesis(said.clone()))
}

fn synthesis(
    draft: &mut DecisionDraft<'_, Integrate>,
    by: &ReviewerIdentity,
    said: &Ruling,
) -> Result<(), String> {
    let n_objections = draft.now.attack().map_or(0, |it| it.objections.len());
    if said.answers.len() != n_objections {
        return Err(format!(
            "answers needs {n_objections} entries, one for each objection in its order"
        ));
    }
    check_texts(said.answers.iter().chain(&said.checks).chain([&said.why]))?;
    check_sources(draft, said.source.iter())?;
    let cause = match (said.verdict, said.cause) {
        (LandingVerdict::Revise, None) => return Err("revise needs a cause".to_owned()),
        (_, cause) => cause.unwrap_or(RevisionCause::Scope),
    };
    if said.checks.len() > VERIFY_MAX {
        return Err(format!("there may be {VERIFY_MAX} checks"));
    }
    state(draft, by, Argument::Synthesis(said.clone()))?;
    match said.verdict {
        LandingVerdict::Approve => {}
        LandingVerdict::Block => draft.stop(format!("the consensus blocks it: {}", said.why)),
        LandingVerdict::Revise => {
            let revision = Revision {
                cause,
                source: said.source.clone(),
                why: said.why.clone(),
                checks: said.checks.clone(),
            };
            back(draft, revision);
        }
    }
    Ok(())
}

/// Records what somebody said; nobody speaks twice of one head in one attempt.
fn state(
    draft: &mut DecisionDraft<'_, Integrate>,
    by: &ReviewerIdentity,
    said: Argument,
) -> Result<(), String> {
    let reviewer = draft.now.review().map(|review| &review.by);
    let mut spoke: Vec<&ReviewerIdentity> = draft.now.said().map(|it| &it.by).collect();
    spoke.extend(reviewer);
    if spoke.iter().any(|other| other.run == by.run) {
        return Err(format!("run {} has spoken of this head before", by.run));
    }
    let (role, verdict) = match &said {
        Argument::Thesis(_) => (IntegrateRole::Thesis, None),
        Argument::Antithesis(_) => (IntegrateRole::Antithesis, None),
        Argument::Synthesis(ruling) => (IntegrateRole::Synthesis, Some(ruling.verdict)),
    };
    let head = draft.now.head().to_owned();
    let attempt = draft.now.attempt;
    let word = verdict.map_or_else(String::new, |it| format!(": {}", it.as_str()));
    let summary = format!("{} of attempt {attempt}{word}", role.as_str());
    let mut found = draft.seen(Weight::Narrative, "consensus", summary, &head);
    found.role = Some(role.as_str().to_owned());
    found.verdict = verdict.map(|it| it.as_str().to_owned());
    found.verifier = Some(by.to_string());
    found.artifacts = vec!["integration-report.md".to_owned()];
    draft.evidence(found);
    draft.fact(IntegrateEvent::ConsensusSaid {
        statement: Box::new(Statement {
            cycle: draft.now.cycle,
            attempt,
            head,
            by: by.clone(),
            said,
        }),
    });
    Ok(())
}

/// Takes that a source cannot come by the method of the plan: another plan is made.
pub(super) fn method_unfit(draft: &mut DecisionDraft<'_, Integrate>, why: &str) {
    let source = draft.now.next_step().map(|step| step.source.clone());
    let revision = Revision {
        cause: RevisionCause::Scope,
        source,
        why: why.to_owned(),
        checks: Vec::new(),
    };
    back(draft, revision);
}

/// Goes back to the narrowest phase that can mend it, or waits for a person.
fn back(draft: &mut DecisionDraft<'_, Integrate>, revision: Revision) {
    let attempt = draft.now.attempt;
    if attempt >= ATTEMPTS_MAX {
        draft.stop(format!(
            "no consensus in {attempt} attempts; the last: {}",
            revision.why
        ));
        return;
    }
    let cause = draft
        .now
        .narrowest(revision.cause, revision.source.as_ref());
    draft.fact(IntegrateEvent::Returned {
        cause,
        source: revision.source,
        why: revision.why,
        checks: revision.checks,
    });
    if cause == RevisionCause::Intent {
        ask_person(draft);
    }
}

/// Asks the person what a source was meant to do.
pub(super) fn ask_person(draft: &mut DecisionDraft<'_, Integrate>) {
    let Some(unclear) = draft.now.unclear.clone() else {
        return;
    };
    let source = unclear.source.as_ref();
    let name = source.map_or_else(|| "<source>".to_owned(), GoalId::to_string);
    let resume = draft.resume();
    draft.block(
        format!(
            "it is not clear what {name} was meant to do: {}",
            unclear.question
        ),
        format!("{resume} --clarify {name} --meaning '…'"),
    );
}
