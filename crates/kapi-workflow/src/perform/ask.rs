//! Asking an agent one question of a workflow, and reading its answer.
//!
//! A provider that fails for a while is waited for, because a workflow has no turn that could be
//! charged with it. What an answer leads to is not known here.

use std::path::Path;
use std::time::Duration;

use kapi_agent::agent::AgentKind;
use kapi_agent::script::part;
use kapi_check::perform::judge::evidence::JudgedChange;
use kapi_core::agent_end::{AgentEnd, AgentRun};
use kapi_core::failure::Failure;
use kapi_core::usage::Usage;
use kapi_goal::perform::real::RealWorld;
use kapi_machine::watch::EffectWatch;
use kapi_run::asker::patience::words;
use kapi_run::asker::{AgentHome, QuestionFiles, ReadOnlyQuestion, ToolSet};
use kapi_run::gate::GateRules;
use kapi_run::repository_session::RepositorySession;
use kapi_run::run_dir::RunDir;
use kapi_run::spending::BookedResult;
use kapi_run::spending::turn::{BookedTurn, TurnKey};
use kapi_run::{asker, failure, repository_session};
use kapi_spend::rules::account;
use kapi_sys::process::ProcessEnd;

use crate::perform::answer::MessageEnd;
use crate::perform::conversation::Conversation;
use crate::perform::{
    EffectRefusal, WorkflowEnvironment, answer, cancelled, clear, outline, run_id, scratch,
};
use crate::rules::effect::{AgentQuestion, WorkflowEffect};
use crate::rules::identity::ReviewerIdentity;
use crate::rules::mode_spec::ModeSpec;
use crate::rules::modes::ModeAnswer;
use crate::rules::outcome::WorkflowOutcome;
use crate::rules::role::{AskedOf, RoleSpec};

/// Asks, and reads the answer.
pub(super) fn ask(
    location: &WorkflowEnvironment<'_>,
    effect: &WorkflowEffect,
    question: &AgentQuestion,
    watch: &EffectWatch<'_>,
) -> Result<WorkflowOutcome, EffectRefusal> {
    let world = (location.world)(&effect.workflow)?;
    // A scripted agent answers by role; any other reads its prompt.
    let reference = part::of_role(&question.agent, question.role.name);
    let refused = |error| EffectRefusal::lasting(failure::agent(&error));
    let kind = AgentKind::parse(&reference).map_err(refused)?;
    kind.check_roles(&roles()).map_err(refused)?;
    let scratch = scratch(&world, effect)?;
    let run_id = run_id(effect);
    let conversation = Conversation::open(&world, &effect.workflow, question.role, &kind)?;
    let posed = PreparedQuestion {
        world: &world,
        conversation: conversation.as_ref(),
        question,
        kind: &kind,
        run_dir: RunDir::open(&world.location.runs, &run_id)?,
        run_id,
        scratch: &scratch,
        guidance: guidance(location, &question.guidance)?,
    };
    let key = TurnKey {
        goal: effect.workflow.to_string(),
        effect: effect.id.to_string(),
    };
    let turn = BookedTurn::of_agent(key, &kind, booked_as(question.role), &world.grants);
    let booked = world.spending.booked(&turn, watch, |watch| {
        let asked = posed.put(watch);
        BookedResult {
            rest: asked
                .as_ref()
                .map_or_else(|_| Usage::default(), |(run, _)| run.usage),
            has_run: asked.is_ok(),
            value: asked,
        }
    });
    clear(&scratch);
    let (asked, stopped) = booked.map_err(|stopped| EffectRefusal::lasting(stopped.failure()))?;
    let (run, end) = asked?;
    match stopped {
        Some(stopped) => Err(EffectRefusal {
            failure: stopped.failure(),
            may_pass: false,
            usage: run.usage,
        }),
        None => posed.outcome(&run, end),
    }
}

/// Returns the roles of every mode, each name once.
fn roles() -> Vec<&'static str> {
    let mut names: Vec<&str> = Vec::new();
    for role in ModeSpec::all().flat_map(|spec| spec.roles) {
        if !names.contains(&role.name) {
            names.push(role.name);
        }
    }
    names
}

pub(super) const fn booked_as(role: &RoleSpec) -> account::ModelRole {
    match role.by {
        AskedOf::Agent => account::ModelRole::Executor,
        AskedOf::Reviewer => account::ModelRole::Judge,
    }
}

/// Returns the texts of guidance documents, each under its name.
pub(super) fn guidance(
    location: &WorkflowEnvironment<'_>,
    names: &[&str],
) -> Result<String, EffectRefusal> {
    let texts = names.iter().map(|name| {
        let found = (location.guidance)(name).ok_or_else(|| {
            EffectRefusal::lasting(Failure {
                message: format!("find the guidance document {name}"),
                hint: None,
            })
        })?;
        Ok(format!("# Guidance: {name}\n\n{}\n\n", found.trim()))
    });
    texts.collect()
}

/// A question, ready to be put.
struct PreparedQuestion<'a> {
    world: &'a RealWorld<'a>,
    conversation: Option<&'a Conversation>,
    question: &'a AgentQuestion,
    kind: &'a AgentKind,
    run_dir: RunDir,
    run_id: String,
    scratch: &'a Path,
    guidance: String,
}

impl PreparedQuestion<'_> {
    /// Puts the question until a provider lets it be answered, or stays away for too long.
    fn put(&self, watch: &EffectWatch<'_>) -> Result<(AgentRun, ProcessEnd), Failure> {
        let (world, question) = (self.world, self.question);
        let mut prompt = format!("{}{}", self.guidance, question.prompt);
        let mut mounts = Vec::new();
        let checked_out = match &question.commit {
            Some(commit) => Some((
                RepositorySession::open(&world.grants, &world.location.project, watch.cancel)?,
                repository_session::commit_id(commit)?,
            )),
            None => None,
        };
        if let (Some((repo, commit)), Some(since)) = (&checked_out, &question.since) {
            let change = JudgedChange {
                repo,
                base: Some(repository_session::commit_id(since)?),
                commit: commit.clone(),
            };
            let shown = outline::show(&change, question.sandbox, &self.run_dir)?;
            prompt = format!("{prompt}\n\n{}", shown.text);
            mounts.push(shown.mount);
        }
        let session = self.conversation.and_then(Conversation::session);
        let posed = ReadOnlyQuestion {
            agent: self.kind,
            prompt: &prompt,
            files: match &checked_out {
                Some((repo, commit)) => QuestionFiles::Commit { repo, commit },
                None => QuestionFiles::Nothing,
            },
            home: self
                .conversation
                .map_or(AgentHome::Anew, |it| AgentHome::Kept(it.home())),
            session: session.as_deref(),
            tools: ToolSet::Reading(GateRules::Fixed(&[])),
            turn: question.ordinal,
            run_id: &self.run_id,
            run_dir: &self.run_dir,
            dir: self.scratch,
            level: question.sandbox,
            network: question.network,
            deadline: Duration::from_millis(question.deadline_ms),
            env: Vec::new(),
            mounts,
        };
        let asked = asker::ask_patiently(&world.grants, &posed, watch);
        if let Some(conversation) = self.conversation {
            let session = match &asked {
                Ok((run, _)) => run.session.as_deref(),
                Err(_) => session.as_deref(),
            };
            conversation.keep(self.kind, session)?;
        }
        asked
    }

    fn outcome(&self, run: &AgentRun, end: ProcessEnd) -> Result<WorkflowOutcome, EffectRefusal> {
        let asked = QuestionRun {
            question: self.question,
            kind: self.kind,
            run_id: &self.run_id,
        };
        asked.outcome(run, end)
    }
}

/// Whom a question was put to, and in which run.
pub(super) struct QuestionRun<'a> {
    pub(super) question: &'a AgentQuestion,
    pub(super) kind: &'a AgentKind,
    pub(super) run_id: &'a str,
}

impl QuestionRun<'_> {
    /// Reads an answer. Of what a command prints the end is kept, of what an agent says the beginning.
    fn read(&self, message: &str) -> Result<ModeAnswer, String> {
        let kept = match self.kind {
            AgentKind::Command(_) => MessageEnd::End,
            AgentKind::Claude
            | AgentKind::Codex
            | AgentKind::Gemini
            | AgentKind::Pi
            | AgentKind::Acp(_)
            | AgentKind::Script(_) => MessageEnd::Beginning,
        };
        answer::read(self.question.role, message, kept)
    }

    /// Returns what the end of an agent's run comes to: its answer, or what is wrong with it.
    pub(super) fn outcome(
        &self,
        run: &AgentRun,
        end: ProcessEnd,
    ) -> Result<WorkflowOutcome, EffectRefusal> {
        if end == ProcessEnd::Cancelled {
            return Ok(cancelled(run.usage));
        }
        let by = ReviewerIdentity {
            agent: self.question.agent.clone(),
            run: self.run_id.to_owned(),
        };
        let usage = run.usage;
        let failed = |message: String, may_pass: bool| {
            Err(EffectRefusal {
                failure: Failure {
                    message: format!("get an answer from {}: {message}", self.question.agent),
                    hint: None,
                },
                may_pass,
                usage,
            })
        };
        match &run.end {
            AgentEnd::Finished => Ok(match self.read(&run.message) {
                Ok(answer) => WorkflowOutcome::Answered {
                    by,
                    answer: Box::new(answer),
                    usage,
                },
                Err(why) => WorkflowOutcome::Unreadable { by, why, usage },
            }),
            AgentEnd::Refused => Ok(WorkflowOutcome::Unreadable {
                by,
                why: "the model refused to answer".to_owned(),
                usage,
            }),
            AgentEnd::LimitReached => failed("it stopped at a limit of its own".to_owned(), true),
            AgentEnd::Crashed { code } => failed(
                match run.message.trim() {
                    "" => format!("it ended with code {code} and said nothing"),
                    said => format!("it ended with code {code}: {said}"),
                },
                true,
            ),
            AgentEnd::OutOfResources { resource, limit } => {
                failed(format!("it used more {resource} than {limit}"), false)
            }
            AgentEnd::DeadlinePassed => failed("it took too long".to_owned(), true),
            AgentEnd::IdlePassed => failed("it was silent for too long".to_owned(), true),
            AgentEnd::Provider(trouble) => failed(words(trouble), trouble.kind.may_pass()),
        }
    }
}
