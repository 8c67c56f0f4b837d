//! Asking an agent one question: a read-only checkout, a home made anew, no session, one answer.
//!
//! A provider that fails for a while is waited for here, because a workflow has no turn that could
//! be charged with it. What an answer leads to is not known here.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, thread};

use kapi_agent::agent::Kind;
use kapi_agent::launch::Purpose;
use kapi_agent::script::part;
use kapi_core::goal::outcome::{AgentEnd, AgentRun, Failure, ProviderFailure};
use kapi_core::spend::account;
use kapi_core::usage::Usage;
use kapi_core::workflow::effect::{AgentQuestion, Effect, Role};
use kapi_core::workflow::outcome::{Answer, Outcome};
use kapi_core::workflow::ralph::plan::Identity;
use kapi_engine::drive::monotonic_ms;
use kapi_engine::world::{Activity, Watch};
use kapi_git::checkout::CheckoutPlan;
use kapi_sandbox::spec::Access;
use kapi_sys::process::End;

use crate::asking::{Asked, ask_gated};
use crate::confine::{Cell, WorksAt};
use crate::gate::Rules;
use crate::prover::checkout::make as checkout;
use crate::real::RealWorld;
use crate::run_dir::RunDir;
use crate::spending::Spent;
use crate::spending::turn::Turn;
use crate::workflows::answer::Kept;
use crate::workflows::{
    Refused, WorkflowPlace, answer, cancelled, clear, outline, run_id, scratch,
};
use crate::workshop::{self, Workshop};
use crate::{failure, home};

/// How long a provider that failed is waited for, before each further try.
const WAITS_MS: [u64; 4] = [2_000, 10_000, 60_000, 300_000];
/// The longest that a provider may ask us to wait here.
const WAIT_MS_MAX: u64 = 10 * 60 * 1000;
/// How often a wait looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(50);

/// Asks, and reads the answer.
pub(super) fn ask(
    place: &WorkflowPlace<'_>,
    (effect, question): (&Effect, &AgentQuestion),
    watch: &Watch<'_>,
) -> Result<Outcome, Refused> {
    let world = (place.world)(&effect.workflow)?;
    // A scripted agent answers by role; any other reads its prompt.
    let reference = part::of_role(&question.agent, question.role.as_str());
    let kind = Kind::parse(&reference).map_err(|error| Refused::lasting(failure::agent(&error)))?;
    let scratch = scratch(&world, effect)?;
    let run_id = run_id(effect);
    let posed = Posed {
        world: &world,
        question,
        kind: &kind,
        run_dir: RunDir::open(&world.place.runs, &run_id)?,
        run_id,
        scratch: &scratch,
        guidance: guidance(place, &question.guidance)?,
    };
    let name = (effect.workflow.to_string(), effect.id.to_string());
    let turn = Turn::of_agent(name, &kind, booked_as(question.role), &world.book);
    let booked = world.spending.booked(&turn, watch, |watch| {
        let asked = posed.put_patiently(watch);
        Spent {
            rest: asked
                .as_ref()
                .map_or_else(|_| Usage::default(), |(run, _)| run.usage),
            has_run: asked.is_ok(),
            value: asked,
        }
    });
    clear(&scratch);
    let (asked, stopped) = booked.map_err(|stopped| Refused::lasting(stopped.failure()))?;
    let (run, end) = asked?;
    match stopped {
        Some(stopped) => Err(Refused {
            failure: stopped.failure(),
            may_pass: false,
            usage: run.usage,
        }),
        None => posed.outcome(&run, end),
    }
}

const fn booked_as(role: Role) -> account::Role {
    match role {
        Role::Interviewer | Role::Thesis | Role::Synthesis | Role::Accountant => {
            account::Role::Executor
        }
        Role::Antithesis | Role::Reviewer => account::Role::Judge,
    }
}

/// Returns the texts of guidance documents, each under its name.
pub(super) fn guidance(place: &WorkflowPlace<'_>, names: &[&str]) -> Result<String, Refused> {
    let texts = names.iter().map(|name| {
        let found = (place.guidance)(name).ok_or_else(|| {
            Refused::lasting(Failure {
                message: format!("find the guidance document {name}"),
                hint: None,
            })
        })?;
        Ok(format!("# Guidance: {name}\n\n{}\n\n", found.trim()))
    });
    texts.collect()
}

/// A question, ready to be put.
struct Posed<'a> {
    world: &'a RealWorld<'a>,
    question: &'a AgentQuestion,
    kind: &'a Kind,
    run_dir: RunDir,
    run_id: String,
    scratch: &'a Path,
    guidance: String,
}

impl Posed<'_> {
    /// Puts the question until a provider lets it be answered, or stays away for too long.
    fn put_patiently(&self, watch: &Watch<'_>) -> Result<(AgentRun, End), Failure> {
        let mut waits = WAITS_MS.iter();
        loop {
            let (run, end) = self.put(watch)?;
            let AgentEnd::Provider(trouble) = &run.end else {
                return Ok((run, end));
            };
            let wait_ms = match waits.next() {
                Some(wait_ms) if trouble.kind.may_pass() && end != End::Cancelled => {
                    trouble.retry_after_ms.unwrap_or(*wait_ms).min(WAIT_MS_MAX)
                }
                Some(_) | None => return Ok((run, end)),
            };
            // What the failed try used counts; the next one tells only its own.
            (watch.notice)(Activity::Used(run.usage));
            (watch.notice)(Activity::Note {
                text: format!("{}; asked again in {} s", told(trouble), wait_ms / 1000),
            });
            if !waited(wait_ms, watch) {
                let usage = Usage::default();
                return Ok((AgentRun { usage, ..run }, End::Cancelled));
            }
        }
    }

    fn put(&self, watch: &Watch<'_>) -> Result<(AgentRun, End), Failure> {
        let (world, question) = (self.world, self.question);
        let workshop = match &question.commit {
            Some(_) => Some(Workshop::open(
                &world.book,
                &world.place.project,
                watch.cancel,
            )?),
            None => None,
        };
        let workspace = self.files(workshop.as_ref())?;
        let mut prompt = format!("{}{}", self.guidance, question.prompt);
        let mut mounts = Vec::new();
        if let (Some(workshop), Some(since), Some(commit)) =
            (&workshop, &question.since, &question.commit)
        {
            let change = (since.as_str(), commit.as_str());
            let shown = outline::show(workshop, change, question.sandbox, &self.run_dir)?;
            prompt = format!("{prompt}\n\n{}", shown.text);
            mounts.push(shown.mount);
        }
        let home = home::make_anew(&self.scratch.join("home"))?;
        let settings = world.book.settings(self.kind);
        let cell = Cell {
            name: &self.run_id,
            level: question.sandbox,
            workspace: &workspace,
            workspace_access: Access::ReadOnly,
            project: workshop
                .as_ref()
                .map(|workshop| workshop.repository.top_level()),
            works_at: WorksAt::Project,
            home: &home,
            git_view: None,
            mounts,
            deadline: Duration::from_millis(question.deadline_ms),
            idle: None,
        };
        let asked = Asked {
            kind: self.kind,
            settings: &settings,
            prompt: &prompt,
            session: None,
            turn: question.ordinal,
            run_id: &self.run_id,
            // Tools that only read, and no session that could be mixed up with any work.
            purpose: Purpose::Judge,
            network: question.network,
            env: Vec::new(),
        };
        let at_gate = (&asked, Rules::Fixed(&[]), self.scratch);
        ask_gated(&world.book, cell, at_gate, &self.run_dir, watch)
    }

    /// Makes the files that are read: those of the commit, or none.
    fn files(&self, workshop: Option<&Workshop>) -> Result<PathBuf, Failure> {
        let to = self.scratch.join("files");
        let (Some(workshop), Some(commit)) = (workshop, &self.question.commit) else {
            let to = home::make_anew(&to)?;
            // Where nothing is, a view of git has no place either.
            fs::create_dir_all(&to).map_err(|error| failure::file("create", &to, &error))?;
            return Ok(to);
        };
        let commit = workshop::commit_id(commit)?;
        let plan = CheckoutPlan {
            commit: &commit,
            base: &commit,
            protect: &[],
            to: &to,
        };
        checkout(workshop, &plan)
    }

    /// Reads an answer. Of what a command prints the end is kept, of what an agent says the beginning.
    fn read(&self, message: &str) -> Result<Answer, String> {
        let kept = match self.kind {
            Kind::Command(_) => Kept::End,
            Kind::Claude | Kind::Codex | Kind::Gemini | Kind::Pi | Kind::Script(_) => {
                Kept::Beginning
            }
        };
        answer::read(self.question.role, message, kept)
    }

    fn outcome(&self, run: &AgentRun, end: End) -> Result<Outcome, Refused> {
        if end == End::Cancelled {
            return Ok(cancelled(run.usage));
        }
        let by = Identity {
            agent: self.question.agent.clone(),
            run: self.run_id.clone(),
        };
        let usage = run.usage;
        let failed = |message: String, may_pass: bool| {
            Err(Refused {
                failure: Failure {
                    message: format!("have {} answer: {message}", self.question.agent),
                    hint: None,
                },
                may_pass,
                usage,
            })
        };
        match &run.end {
            AgentEnd::Finished => Ok(match self.read(&run.message) {
                Ok(answer) => Outcome::Answered {
                    by,
                    answer: Box::new(answer),
                    usage,
                },
                Err(why) => Outcome::Unreadable { by, why, usage },
            }),
            AgentEnd::Refused => Ok(Outcome::Unreadable {
                by,
                why: "the model refused to answer".to_owned(),
                usage,
            }),
            AgentEnd::LimitReached => failed("it stopped at a limit of its own".to_owned(), true),
            AgentEnd::Crashed { code } => {
                failed(format!("it ended with code {code}: {}", run.message), true)
            }
            AgentEnd::OutOfResources { resource, limit } => {
                failed(format!("it used more {resource} than {limit}"), false)
            }
            AgentEnd::DeadlinePassed => failed("it took too long".to_owned(), true),
            AgentEnd::IdlePassed => failed("it was silent for too long".to_owned(), true),
            AgentEnd::Provider(trouble) => failed(told(trouble), trouble.kind.may_pass()),
        }
    }
}

/// Waits; `false` when it was called off.
fn waited(wait_ms: u64, watch: &Watch<'_>) -> bool {
    let until = monotonic_ms().saturating_add(wait_ms);
    while monotonic_ms() < until && !watch.cancel.is_raised() {
        thread::sleep(LOOK);
    }
    !watch.cancel.is_raised()
}

fn told(trouble: &ProviderFailure) -> String {
    format!("{}: {}", trouble.kind.words(), trouble.message)
}
