//! The judge of a run: never a program of the vendor that worked, asked within the task's budget.
//!
//! How a judge is asked and what it is shown is the same as for a goal. No answer is no.

use std::time::Duration;

use kapi_agent::agent::AgentKind;
use kapi_check::perform::judge;
use kapi_check::perform::judge::evidence::JudgedChange;
use kapi_check::perform::judge::{JudgeQuestion, JudgeRetry, Judgement};
use kapi_check::rules::proof::judge_prompt::{JudgeSubject, instructions, material};
use kapi_core::failure::Failure;
use kapi_core::isolation::NetworkMode;
use kapi_core::usage::Usage;
use kapi_core::verdict::{JudgeAnswer, JudgeVerdict};
use kapi_machine::watch::{Activity, EffectWatch, RoomQuery};
use kapi_run::gate::GateRules;
use kapi_run::judge_provider::{JudgeReference, price_name};
use kapi_run::repository_session::RepositorySession;
use kapi_run::run_dir::RunDir;
use kapi_run::spending::BookedResult;
use kapi_run::spending::turn::BookedTurn;
use kapi_run::{failure, repository_session, spending};
use kapi_spend::rules::account::ModelRole;
use kapi_spend::rules::day::Day;

use super::LoopExecution;
use super::evaluate::EvalFinding;
use crate::perform::ending::failed;
use crate::perform::{Performer, setup};
use crate::record::profile_file;
use crate::rules::task::{End, FailureKind};

/// The longest a judge may take, in milliseconds.
const DEADLINE_MS: u64 = 15 * 60 * 1_000;

/// Why there is no answer of a judge.
enum JudgeError {
    /// The run ends with that.
    Ended(End),
    /// The judge could not be asked.
    Failed(Failure),
}

impl From<Failure> for JudgeError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl LoopExecution<'_> {
    /// Asks whether the criteria are met.
    pub(super) fn judge(
        &mut self,
        eval: &str,
        criteria: &[String],
        agent: Option<&str>,
    ) -> Result<EvalFinding, End> {
        let by = match self.judge_reference(agent) {
            Ok(by) => by,
            Err(why) => return Ok(EvalFinding::new(false, why)),
        };
        let answer = self.ask_judge(eval, &by, criteria);
        if self.handle.cancel().is_raised() {
            return Err(End::Cancelled);
        }
        self.within_budget(&format!("judge {by}"))?;
        Ok(match answer {
            Ok(answer) => found(&by, &answer),
            Err(JudgeError::Ended(end)) => return Err(self.with_left(end)),
            Err(JudgeError::Failed(failure)) => {
                EvalFinding::new(false, format!("failed to {}", failure.message))
            }
        })
    }

    /// Asks a judge within the budget of the task and the caps on spending; `ask` is handed how many
    /// milliseconds it may take, and returns what it used that no notice told.
    fn booked(
        &self,
        turn: &BookedTurn,
        ask: impl FnOnce(u64, &EffectWatch<'_>) -> (Result<JudgeAnswer, Failure>, Usage),
    ) -> Result<JudgeAnswer, JudgeError> {
        let part = self.allowance.meter.part();
        let notice = |activity: Activity| {
            if let Activity::Used(usage) = &activity {
                part.count(usage);
            }
            (self.performer.notice)(self.task.id, activity);
        };
        let room = |_: &RoomQuery<'_>| self.allowance.meter.room();
        let watch = EffectWatch {
            cancel: self.allowance.own,
            notice: &notice,
            room: &room,
        };
        let metering = self.attempt().reserve(self.performer, turn, &watch);
        let metering = metering.map_err(JudgeError::Ended)?;
        let limit_ms = self.allowance.bounded(DEADLINE_MS);
        let limit_ms = limit_ms.map_err(JudgeError::Ended)?;
        let (answer, stopped) = spending::metered(&metering, &watch, |watch| {
            let (answer, rest) = ask(limit_ms, watch);
            part.count(&rest);
            BookedResult {
                rest,
                has_run: answer.is_ok(),
                value: answer,
            }
        });
        match stopped {
            Some(stopped) => {
                let text = stopped.text();
                Err(JudgeError::Ended(failed(FailureKind::BudgetSpent, text)))
            }
            None => answer.map_err(JudgeError::Failed),
        }
    }

    /// Returns who judges: never a program of the vendor that worked.
    fn judge_reference(&self, agent: Option<&str>) -> Result<String, String> {
        let performer = self.performer;
        let root = performer.project.layout.root();
        let by = match agent {
            Some(name) => {
                let profiles = profile_file::discover(root, root, &performer.setting.person);
                let profile = profiles.find(name);
                let profile = profile.map_err(|unknown| format!("failed to {unknown}"))?;
                profile.backend.clone()
            }
            None => performer.setting.judge.clone(),
        };
        let by = by.ok_or("there is no judge: name one in the eval or in the configuration")?;
        let worked = setup::resolve(performer, self.task);
        let worked = worked.map_err(|end| super::end_words(&end))?.kind;
        let is_same = AgentKind::parse(&by).is_ok_and(|kind| {
            let is_vendor = !matches!(kind, AgentKind::Command(_) | AgentKind::Script(_));
            is_vendor && kind.name() == worked.name()
        });
        if is_same {
            return Err(format!(
                "{by} did the work, so it must not judge it: name another agent"
            ));
        }
        Ok(by)
    }

    /// Asks with what the run left: its commit, and what it differs from where it changed anything.
    fn ask_judge(
        &self,
        eval: &str,
        by: &str,
        criteria: &[String],
    ) -> Result<JudgeAnswer, JudgeError> {
        let performer = self.performer;
        let id = Performer::sandbox_id(self.task, self.handle).map_err(|end| Failure {
            message: super::end_words(&end),
            hint: None,
        })?;
        let location = performer
            .setting
            .sandboxes
            .location(&performer.setting.project_key, &id);
        let plain = plain(eval);
        let run_dir = RunDir::open(&location.runs(), &format!("judge-{plain}"))?;
        let run_id = format!("{}-judge-{plain}", self.name_of(&id));
        let root = performer.project.layout.root();
        let repo = RepositorySession::open(&performer.grants, root, self.handle.cancel())?;
        let change = self.change(&repo)?;
        let turn = self.turn_of(eval, by)?;
        self.booked(&turn, |limit_ms, watch| {
            let question = JudgeQuestion {
                judge: by,
                instructions: &instructions(),
                material: &self.material(criteria),
                change: &change,
                run_id: &run_id,
                run_dir: &run_dir,
                dir: &location.dir().join("judge"),
                level: performer.setting.level,
                network: NetworkMode::None,
                rules: GateRules::Fixed(&[]),
                deadline: Duration::from_millis(limit_ms),
                // A run of a loop has no turn to charge and no wait to record.
                waiting: JudgeRetry::Here,
                today: Day::of_ms(performer.project.clock.now_ms()),
                host: None,
            };
            match judge::ask(&performer.grants, &question, watch) {
                Ok(Judgement::Given(run)) => (Ok(run.answer), run.usage),
                Ok(Judgement::Cancelled(usage)) => (Err(cut_off()), usage),
                Err(failure) => (Err(failure), Usage::default()),
            }
        })
    }

    /// Returns what asking a judge is booked as.
    fn turn_of(&self, eval: &str, by: &str) -> Result<BookedTurn, Failure> {
        let grants = &self.performer.grants;
        let key = self.attempt().booked_as(&format!("judge-{}", plain(eval)));
        Ok(match JudgeReference::parse(by) {
            JudgeReference::Agent(reference) => {
                let kind = AgentKind::parse(reference).map_err(|error| failure::agent(&error))?;
                BookedTurn::of_agent(key, &kind, ModelRole::Judge, grants)
            }
            JudgeReference::Model { provider, model } => {
                let provider = price_name(grants, provider);
                BookedTurn::of_model(key, &provider, model, ModelRole::Judge, grants)
            }
        })
    }

    fn change<'a>(&self, repo: &'a RepositorySession) -> Result<JudgedChange<'a>, Failure> {
        let commit = self.report.work.commit.as_deref().ok_or_else(|| Failure {
            message: "show a judge the work: the project is not a git repository with a commit"
                .to_owned(),
            hint: None,
        })?;
        let base = self.report.work.began_at();
        let base = base.map(|at| repo.repository.resolve_commit(&at));
        let base = base.transpose().map_err(|error| failure::plain(&error))?;
        Ok(JudgedChange {
            repo,
            base,
            commit: repository_session::commit_id(commit)?,
        })
    }

    /// Returns criteria and last words; what others wrote is fenced.
    fn material(&self, criteria: &[String]) -> String {
        let criteria: Vec<String> = criteria.iter().map(|line| format!("- {line}")).collect();
        let subject = JudgeSubject {
            original: None,
            goal: &self.run.definition.description,
            criteria: &criteria.join("\n"),
            reports: &[],
            left_out: &[],
            plan: None,
            said: Some(&self.report.output),
        };
        material(&subject)
    }

    fn name_of(&self, id: &kapi_launch::paths::SandboxId) -> String {
        let key = &self.performer.setting.project_key;
        let digits = key.get(key.len().saturating_sub(12)..);
        format!("{}-{}", digits.unwrap_or_default(), id.as_str())
    }
}

/// Returns a name as a part of a file's.
fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    name.chars().map(plain).collect()
}

fn cut_off() -> Failure {
    Failure {
        message: "wait for the judge".to_owned(),
        hint: None,
    }
}

fn found(by: &str, answer: &JudgeAnswer) -> EvalFinding {
    match answer {
        JudgeAnswer::Verdict { verdict, reason } => EvalFinding::new(
            *verdict == JudgeVerdict::Done,
            format!("{by} answers {}: {reason}", verdict.as_str()),
        ),
        JudgeAnswer::Malformed { text } => {
            EvalFinding::new(false, format!("{by} gave no verdict: {text}"))
        }
        JudgeAnswer::Unavailable(failure) => {
            EvalFinding::new(false, format!("{by} did not answer: {}", failure.message))
        }
    }
}
