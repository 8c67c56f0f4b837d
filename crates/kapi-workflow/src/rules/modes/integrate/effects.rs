//! What an integration should have under way now, with everything that is needed to do it.

use kapi_core::id::GoalId;
use kapi_core::integration_branch::{CheckoutRule, IntegrationBranch};

use crate::rules::effect::combine::{
    CombineStep, CombinedSource, FileRegeneration, GeneratedPath, MarkedWorkflow,
    SourceApplication, TracedStep,
};
use crate::rules::effect::{
    Advancing, AgentQuestion, Proposal, Restoration, Verification, WorkflowAction, WorkflowEffect,
};
use crate::rules::guidance;
use crate::rules::modes::integrate::prompt;
use crate::rules::modes::integrate::role::IntegrateRole;
use crate::rules::modes::integrate::source::Source;
use crate::rules::modes::integrate::state::{AppliedSource, Integrate};
use crate::rules::modes::integrate::want::{IntegrateWant, want};
use crate::rules::role::Reads;
use crate::rules::state::Workflow;

/// Returns what should be under way now.
#[must_use]
pub fn next(workflow: &Workflow, state: &Integrate) -> Vec<WorkflowEffect> {
    let Some((id, want)) = want(state) else {
        return Vec::new();
    };
    let effect = action(workflow, state, &want).map(|action| WorkflowEffect {
        id,
        workflow: workflow.id.clone(),
        action,
    });
    effect.into_iter().collect()
}

fn action(workflow: &Workflow, state: &Integrate, want: &IntegrateWant) -> Option<WorkflowAction> {
    let combine = |step| WorkflowAction::Combine(Box::new(step));
    let start = state.start();
    Some(match want {
        IntegrateWant::Inspect => combine(CombineStep::Inspect {
            sources: state.left().into_iter().map(combined).collect(),
            rules: state.rules.clone(),
        }),
        IntegrateWant::Ask(role) => WorkflowAction::Ask(Box::new(question(workflow, state, *role))),
        IntegrateWant::Prepare => WorkflowAction::Prepare {
            branch: Integrate::branch_name(&workflow.id),
            base: start.to_owned(),
            // What they show there is known since before the approval.
            checks: Box::new(verification(workflow, state, start, Vec::new())),
        },
        IntegrateWant::Baseline => verify(workflow, state, start, every_command(workflow, state)),
        IntegrateWant::Apply => combine(CombineStep::Apply(application(workflow, state)?)),
        IntegrateWant::Resolve => WorkflowAction::Propose(Box::new(proposal(workflow, state)?)),
        IntegrateWant::Regenerate => {
            combine(CombineStep::Regenerate(regeneration(workflow, state)?))
        }
        IntegrateWant::Restore => WorkflowAction::Restore(Box::new(Restoration {
            branch: state.branch.as_ref()?.name.clone(),
            first: state.first.clone()?,
            head: state.conflict.as_ref()?.at.clone(),
            keep: None,
        })),
        IntegrateWant::Settle => combine(settlement(workflow, state)?),
        IntegrateWant::VerifyHead => {
            let commands = state.commands(&state.there(), &workflow.terms.verify);
            verify(workflow, state, state.head(), commands)
        }
        IntegrateWant::Try(sources) => combine(CombineStep::Try {
            onto: start.to_owned(),
            sources: combined_of(state, sources),
            at_s: at_s(workflow),
        }),
        IntegrateWant::VerifyTrial { commit, sources } => {
            let commands = state.commands(sources, &workflow.terms.verify);
            verify(workflow, state, commit, commands)
        }
        IntegrateWant::Trace => combine(CombineStep::Trace {
            base: start.to_owned(),
            head: state.head().to_owned(),
            steps: state
                .applied
                .iter()
                .filter_map(|applied| traced(state, applied))
                .collect(),
        }),
        IntegrateWant::Advance => WorkflowAction::Advance(Box::new(Advancing {
            target: IntegrationBranch::DEV,
            from: start.to_owned(),
            to: state.head().to_owned(),
            checkout: if state.leave.brings_checkout {
                CheckoutRule::BringClean
            } else {
                CheckoutRule::Refuse
            },
        })),
        IntegrateWant::Mark => combine(CombineStep::Mark {
            workflows: marked(state),
        }),
    })
}

fn combined(source: &Source) -> CombinedSource {
    CombinedSource {
        id: source.id.clone(),
        branch: source.branch.clone(),
        base: source.base.clone(),
        commit: source.commit.clone(),
    }
}

fn combined_of(state: &Integrate, sources: &[GoalId]) -> Vec<CombinedSource> {
    let sources = sources.iter().filter_map(|id| state.source(id));
    sources.map(combined).collect()
}

fn traced(state: &Integrate, applied: &AppliedSource) -> Option<TracedStep> {
    Some(TracedStep {
        source: combined(state.source(&applied.source)?),
        before: applied.before.clone(),
        after: applied.after.clone(),
        resolved: applied.resolved.clone(),
        generated: applied.generated.clone(),
    })
}

/// Goals keep no record of who took their work over; the integration's own log has it.
fn marked(state: &Integrate) -> Vec<MarkedWorkflow> {
    let there = state
        .applied
        .iter()
        .filter_map(|it| state.source(&it.source));
    there
        .filter_map(|source| {
            Some(MarkedWorkflow {
                mode: source.mode?,
                id: source.id.clone(),
            })
        })
        .collect()
}

fn at_s(workflow: &Workflow) -> i64 {
    workflow.started_at_ms.div_euclid(1000)
}

fn application(workflow: &Workflow, state: &Integrate) -> Option<SourceApplication> {
    let step = state.next_step()?;
    let source = state.source(&step.source)?;
    let branch = state.branch.as_ref()?;
    let what = source
        .mode
        .map_or_else(|| "goal".to_owned(), |mode| mode.to_string());
    Some(SourceApplication {
        source: combined(source),
        method: step.method,
        branch: branch.name.clone(),
        first: state.first.clone()?,
        at: branch.head.clone(),
        onto: state.head().to_owned(),
        message: format!(
            "Integrate {}: {}\n\nBrings {what} {} as proved at {}.\n\nKapi-Workflow: {}\n",
            source.id, source.title, source.id, source.commit, workflow.id
        ),
        at_s: at_s(workflow),
        rules: state.rules.clone(),
    })
}

fn settlement(workflow: &Workflow, state: &Integrate) -> Option<CombineStep> {
    let conflict = state.conflict.as_ref()?;
    let rationale = conflict.proposed.as_ref().map_or_else(
        || format!("{}\n", conflict.rules_text()),
        |it| {
            format!(
                "{}\n\n{}\n",
                it.said.choice.trim(),
                it.said.rationale.trim()
            )
        },
    );
    Some(CombineStep::Settle {
        application: application(workflow, state)?,
        resolution: conflict.resolution().to_owned(),
        rationale,
    })
}

fn regeneration(workflow: &Workflow, state: &Integrate) -> Option<FileRegeneration> {
    let conflict = state.conflict.as_ref()?;
    let files = conflict.paths.iter().filter_map(|it| {
        Some(GeneratedPath {
            path: it.path.clone(),
            line: it.regenerate.clone()?,
        })
    });
    Some(FileRegeneration {
        application: application(workflow, state)?,
        commit: conflict.resolution().to_owned(),
        files: files.collect(),
        timeout_ms: workflow.terms.verify_timeout_ms,
        sandbox: workflow.terms.sandbox,
        network: workflow.terms.network,
    })
}

fn proposal(workflow: &Workflow, state: &Integrate) -> Option<Proposal> {
    let conflict = state.conflict.as_ref()?;
    Some(Proposal {
        question: AgentQuestion {
            commit: Some(conflict.at.clone()),
            ..question(workflow, state, IntegrateRole::Resolver)
        },
        branch: state.branch.as_ref()?.name.clone(),
        first: state.first.clone()?,
        sealed: workflow.terms.protect.clone(),
        message: format!(
            "Resolve the conflict of {}, proposed in workflow {}\n",
            conflict.source, workflow.id
        ),
        at_s: at_s(workflow),
        place: 0,
    })
}

fn question(workflow: &Workflow, state: &Integrate, role: IntegrateRole) -> AgentQuestion {
    let (terms, spec) = (&workflow.terms, role.spec());
    let (commit, since) = match spec.reads {
        Reads::Change => (state.head(), Some(state.start().to_owned())),
        Reads::Commit => (state.target.as_str(), None),
    };
    AgentQuestion {
        role: spec,
        ordinal: state.ordinal(role.as_str()),
        agent: spec.agent(terms).to_owned(),
        prompt: prompt::question(workflow, state, role),
        guidance: guidance::documents(workflow).to_vec(),
        commit: Some(commit.to_owned()),
        since,
        deadline_ms: terms.question_timeout_ms,
        sandbox: terms.sandbox,
        network: terms.network,
    }
}

/// Returns what is run on the integration branch as it is, to see what fails there already.
fn every_command(workflow: &Workflow, state: &Integrate) -> Vec<String> {
    let plan = state.plan.iter().flat_map(|plan| &plan.verify);
    let mut commands: Vec<String> = Vec::new();
    for command in workflow
        .terms
        .verify
        .iter()
        .chain(plan)
        .chain(&state.more_checks)
    {
        if !commands.contains(command) {
            commands.push(command.clone());
        }
    }
    commands
}

fn verify(
    workflow: &Workflow,
    state: &Integrate,
    commit: &str,
    commands: Vec<String>,
) -> WorkflowAction {
    let verification = verification(workflow, state, commit, commands);
    WorkflowAction::Verify(Box::new(verification))
}

fn verification(
    workflow: &Workflow,
    state: &Integrate,
    commit: &str,
    commands: Vec<String>,
) -> Verification {
    let terms = &workflow.terms;
    Verification {
        commit: commit.to_owned(),
        base: state.start().to_owned(),
        commands,
        protect: terms.protect.clone(),
        timeout_ms: terms.verify_timeout_ms,
        sandbox: terms.sandbox,
    }
}
