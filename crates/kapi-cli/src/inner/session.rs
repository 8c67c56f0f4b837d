//! What a host such as Pi asks: where its session stands, what a workflow shows its person before a
//! decision, and which interviews a purpose could go on from.
//!
//! Reads, and writes nothing. What the host does with the answers is its affair.

use std::ffi::OsString;

use kapi_core::mode::Mode;
use kapi_core::workflow_key::WorkflowKey;
use kapi_wire::session::{
    CandidateView, CandidatesView, DecisionView, GuidanceView, SESSION_VERSION, SessionView,
    SessionWorkflowView, ShownView,
};
use kapi_wire::workflow::asked::AskedView;
use kapi_wire::workflow::modes::asked;
use kapi_workflow::record::workflows::Workflows;
use kapi_workflow::rules::guidance;
use kapi_workflow::rules::next_command::next_commands;
use kapi_workflow::rules::pending::WaitingDecision;
use kapi_workflow::rules::state::Workflow;

use crate::context::Context;
use crate::error::{Error, optional};
use crate::event_words::first_line;
use crate::exit_code::Exit;
use crate::ui::Format;
use crate::workflow::find::{self, WorkflowVerb};
use crate::workflow::located::{LocatedWorkflow, WorkflowQuery};
use crate::workflow::{approving, session, words};

/// The word that enters it; always answers in JSON.
///
/// - `kapi __session`: what this session is attached to.
/// - `kapi __session show MODE REF`: a workflow, with what waits in it word for word.
/// - `kapi __session candidates MODE PURPOSE`: the approved interviews that fit a purpose.
pub(super) const ARGUMENT: &str = "__session";
/// Candidates that are shown at most.
const CANDIDATES_MAX: usize = 9;
/// Whoever waits for a lock is told this.
const OWNER: &str = "kapi __session";

/// Answers, and returns the exit code.
pub(super) fn enter(args: impl Iterator<Item = OsString>) -> i32 {
    let words: Option<Vec<String>> = args.map(|word| word.into_string().ok()).collect();
    let mut words = words.unwrap_or_default();
    words.retain(|word| word != "--json");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let exit = crate::answer(Format::Json, |context| answer(context, &words));
    exit.code().into()
}

fn answer(context: &Context, words: &[&str]) -> Result<Exit, Error> {
    match words {
        [] => context.ui.json(&attached(context)?),
        ["show", mode, reference] => context.ui.json(&shown(context, parse(mode)?, reference)?),
        ["candidates", mode, purpose] => {
            context
                .ui
                .json(&candidates(context, parse(mode)?, purpose)?);
        }
        _ => {
            return Err(Error::usage(
                "it takes no arguments, `show MODE REF` or `candidates MODE PURPOSE`",
            ));
        }
    }
    Ok(Exit::Success)
}

fn parse(mode: &str) -> Result<Mode, Error> {
    Mode::parse(mode).ok_or_else(|| Error::usage(format!("unknown mode {mode:?}")))
}

/// Returns where the session stands. A workflow that has ended holds no session.
fn attached(context: &Context) -> Result<SessionView, Error> {
    let session = session::session(context);
    let mut view = SessionView {
        kind: "session",
        v: SESSION_VERSION,
        session: session.clone(),
        attached: None,
    };
    let (Some(session), Some(root)) = (session, optional(context.project_root())?) else {
        return Ok(view);
    };
    let project = context.project(&root, OWNER);
    let attachment = Workflows::of(&project)
        .attachment(&session)
        .map_err(|error| Error::workflow(&error))?;
    if let Some(attachment) = attachment {
        let key = WorkflowKey {
            mode: attachment.mode,
            id: attachment.workflow,
        };
        let found = LocatedWorkflow::load(project, key)?;
        if !found.workflow.status.is_terminal() {
            view.attached = Some(state(&found, None)?);
        }
    }
    Ok(view)
}

/// Returns a workflow with the artifact that waits in it, as it was drafted.
fn shown(context: &Context, mode: Mode, reference: &str) -> Result<ShownView, Error> {
    let sought = WorkflowQuery {
        mode,
        reference,
        owner: OWNER,
    };
    let found = find::find(context, &sought, WorkflowVerb::Approve)?;
    let text = match &found.workflow.pending {
        Some(pending) => {
            approving::check_unedited(&found, pending)?;
            Some(approving::artifacts(&found, pending)?)
        }
        None => None,
    };
    Ok(ShownView {
        kind: "standing",
        v: SESSION_VERSION,
        workflow: state(&found, text)?,
    })
}

fn candidates(context: &Context, mode: Mode, purpose: &str) -> Result<CandidatesView, Error> {
    let mut view = CandidatesView {
        kind: "candidates",
        v: SESSION_VERSION,
        candidates: Vec::new(),
    };
    let Some(root) = optional(context.project_root())? else {
        return Ok(view);
    };
    let project = context.project(&root, OWNER);
    let fitting = Workflows::of(&project)
        .interviews_for(purpose, mode)
        .map_err(|error| Error::workflow(&error))?;
    for candidate in fitting.into_iter().take(CANDIDATES_MAX) {
        let key = WorkflowKey {
            mode: Mode::CONTEXT,
            id: candidate.id.clone(),
        };
        // The list is only shown; what cannot be read is told when it is chosen.
        let purpose = Workflows::of(&project)
            .workflow(&key)
            .map_or_else(|_| String::new(), |workflow| first_line(&workflow.purpose));
        view.candidates.push(CandidateView {
            index: format!("{:03}", candidate.id.index()),
            id: candidate.id.to_string(),
            purpose,
            score: candidate.score,
            shared: candidate.shared,
        });
    }
    Ok(view)
}

fn state(found: &LocatedWorkflow<'_>, text: Option<String>) -> Result<SessionWorkflowView, Error> {
    let workflow = &found.workflow;
    let (phase, subphase) = workflow.phase();
    let driver = Workflows::of(&found.project)
        .workflow_driver(&found.key)
        .map_err(|error| Error::workflow(&error))?;
    let asked = asked(&workflow.body);
    let documents = guidance::documents(workflow).iter();
    Ok(SessionWorkflowView {
        id: workflow.id.to_string(),
        index: format!("{:03}", workflow.id.index()),
        mode: workflow.mode().as_str(),
        purpose: workflow.purpose.clone(),
        status: workflow.status.as_str(),
        phase,
        subphase,
        state: words::state(workflow),
        paragraph: paragraph(workflow, asked.as_ref()),
        driver,
        pending: workflow
            .pending
            .as_ref()
            .map(|pending| decision(pending, text)),
        asked,
        blocked: workflow.blocked.clone(),
        next: next_commands(workflow),
        guidance: documents
            .filter_map(|&name| {
                let text = guidance::body(name)?;
                Some(GuidanceView { name, text })
            })
            .collect(),
    })
}

fn decision(pending: &WaitingDecision, text: Option<String>) -> DecisionView {
    DecisionView {
        decision: pending.decision.as_str(),
        artifact: pending.decision.artifact(),
        sha256: pending.sha256.clone(),
        risks: pending.risks.clone(),
        on_yes: pending.decision.spec().on_yes,
        text,
    }
}

/// Says where a workflow stands to a model that talks with its person about it. What agents wrote is
/// cut to a line: it is told, and instructs nobody.
fn paragraph(workflow: &Workflow, asked: Option<&AskedView>) -> String {
    let mut sentences = vec![
        format!(
            "This session is attached to Kapi workflow {} ({}), which the user started: {}.",
            workflow.id,
            workflow.mode(),
            first_line(&workflow.purpose)
        ),
        format!("Its phase is {}.", words::state(workflow)),
    ];
    sentences.extend(workflow.body.rules().counts_words());
    if let Some(asked) = asked {
        let text = first_line(&asked.text);
        sentences.push(match asked.kind {
            "goal" => format!("The user is being asked whether this is the goal: {text}"),
            _ => format!("Question {} is waiting for the user: {text}", asked.round),
        });
    }
    if let Some(pending) = &workflow.pending {
        sentences.push(format!(
            "{} is waiting for the user to approve it or to request changes.",
            pending.decision.words()
        ));
    }
    if let Some(blocked) = &workflow.blocked {
        sentences.push(format!("It is blocked: {}", first_line(&blocked.reason)));
    }
    sentences.push(STANCE.to_owned());
    sentences.join(" ")
}

/// What holds for whoever talks with the person meanwhile.
const STANCE: &str = "Kapi drives it in another process: do not carry out its phases here, do \
    not write its documents, and do not claim that it made progress. Only the user approves, \
    abandons or detaches. The guidance for this phase follows, if there is any, so that your \
    answers fit it.";
