//! A judge of a run: another vendor's agent, or a model, that sees criteria and change and hands back
//! the token of the question.
//!
//! It has a read-only clean checkout, a home made anew and no session. Its word counts only in the
//! form that was asked for; no answer is no.

use std::time::Duration;

use kapi_agent::agent::Kind;
use kapi_agent::launch::Purpose;
use kapi_agent::verdict::{Token, judge_answer, parse_verdict};
use kapi_core::goal::contract::NetworkMode;
use kapi_core::goal::outcome::{Failure, JudgeAnswer, Verdict};
use kapi_core::goal::prompt::judge::instructions;
use kapi_core::goal::quote::{fenced, visible};
use kapi_core::kernel::task::{End, FailureKind};
use kapi_core::spend::account::Role;
use kapi_core::spend::day::Day;
use kapi_core::usage::Usage;
use kapi_engine::kernel::profile_file;
use kapi_engine::world::{Activity, Watch};
use kapi_gateway::ask::form::{Form, SEALED_VERDICT};
use kapi_gateway::ask::{self, Question};
use kapi_git::checkout::CheckoutPlan;
use kapi_git::owned_dir;
use kapi_sandbox::spec::Access;
use kapi_sys::process;

use super::Course;
use super::evaluate::Found;
use crate::asking::{Asked, ask_gated};
use crate::confine::{Cell, WorksAt};
use crate::gate::Rules;
use crate::judge::provider::{Reference, price_name, server};
use crate::judge::token::{sealed, token};
use crate::prover::checkout::make as checkout;
use crate::run_dir::RunDir;
use crate::spending::turn::Turn;
use crate::spending::{self, Spent};
use crate::tasks::ending::failed;
use crate::tasks::{Performer, setup};
use crate::workshop::{self, Workshop};
use crate::{failure, home};

/// The longest a judge may take, in milliseconds.
const DEADLINE_MS: u64 = 15 * 60 * 1_000;
/// Bytes of the change that a judge is shown.
const DIFF_BYTES_MAX: usize = 100_000;
/// The most tokens of a model's verdict, with the thinking before it.
const OUTPUT_TOKENS_MAX: u32 = 16_000;
/// The variable that holds the token, for programs that are no model.
const TOKEN_VARIABLE: &str = "KAPI_JUDGE_TOKEN";

/// Why there is no answer of a judge.
enum Unjudged {
    /// The run ends with that.
    Ended(End),
    /// The judge could not be asked.
    Failed(Failure),
}

impl From<Failure> for Unjudged {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Course<'_> {
    /// Asks whether the criteria are met.
    pub(super) fn judge(
        &mut self,
        eval: &str,
        (criteria, agent): (&[String], Option<&str>),
    ) -> Result<Found, End> {
        let by = match self.judge_reference(agent) {
            Ok(by) => by,
            Err(why) => return Ok(Found::new(false, why)),
        };
        let answer = match Reference::parse(&by) {
            Reference::Agent(reference) => self.by_agent(eval, reference, criteria),
            Reference::Model { provider, model } => {
                self.by_model(eval, (provider, model), criteria)
            }
        };
        if self.hands.cancel().is_raised() {
            return Err(End::Cancelled);
        }
        self.within_budget(&format!("judge {by}"))?;
        Ok(match answer {
            Ok(answer) => found(&by, &answer),
            Err(Unjudged::Ended(end)) => return Err(self.with_left(end)),
            Err(Unjudged::Failed(failure)) => {
                Found::new(false, format!("failed to {}", failure.message))
            }
        })
    }

    /// Asks a judge within the budget of the task and the caps on spending; `ask` is handed how many
    /// milliseconds it may take, and returns what it used that no notice told.
    fn booked(
        &self,
        turn: &Turn,
        ask: impl FnOnce(u64, &Watch<'_>) -> (Result<JudgeAnswer, Failure>, Usage),
    ) -> Result<JudgeAnswer, Unjudged> {
        let part = self.allowance.meter.part();
        let notice = |activity: Activity| {
            if let Activity::Used(usage) = &activity {
                part.count(usage);
            }
            (self.performer.notice)(self.task.id, activity);
        };
        let watch = Watch {
            cancel: self.allowance.own,
            notice: &notice,
        };
        let metering = self.attempt().reserve(self.performer, turn, &watch);
        let metering = metering.map_err(Unjudged::Ended)?;
        let limit_ms = self.allowance.bounded(DEADLINE_MS);
        let limit_ms = limit_ms.map_err(Unjudged::Ended)?;
        let (answer, stopped) = spending::metered(&metering, &watch, |watch| {
            let (answer, rest) = ask(limit_ms, watch);
            part.count(&rest);
            Spent {
                rest,
                has_run: answer.is_ok(),
                value: answer,
            }
        });
        match stopped {
            Some(stopped) => {
                let text = stopped.text();
                Err(Unjudged::Ended(failed(FailureKind::BudgetSpent, text)))
            }
            None => answer.map_err(Unjudged::Failed),
        }
    }

    fn booked_as(&self, eval: &str) -> (String, String) {
        self.attempt().booked_as(&format!("judge-{}", plain(eval)))
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
        let is_same = Kind::parse(&by).is_ok_and(|kind| {
            let is_vendor = !matches!(kind, Kind::Command(_) | Kind::Script(_));
            is_vendor && kind.name() == worked.name()
        });
        if is_same {
            return Err(format!(
                "{by} did the work, so it does not judge it: name another agent"
            ));
        }
        Ok(by)
    }

    fn by_agent(
        &self,
        eval: &str,
        reference: &str,
        criteria: &[String],
    ) -> Result<JudgeAnswer, Unjudged> {
        let performer = self.performer;
        let kind = Kind::parse(reference).map_err(|error| failure::agent(&error))?;
        let settings = performer.book.settings(&kind);
        let id = Performer::sandbox_id(self.task, self.hands).map_err(|end| Failure {
            message: super::end_words(&end),
            hint: None,
        })?;
        let place = performer
            .setting
            .sandboxes
            .place(&performer.setting.project_key, &id);
        let plain = plain(eval);
        let run_dir = RunDir::open(&place.runs(), &format!("judge-{plain}"))?;
        let dir = place.dir().join("judge");
        owned_dir::wipe(&dir).map_err(|error| failure::plain(&error))?;
        let (material, to) = self.material(&dir, criteria)?;
        let run_id = format!("{}-judge-{plain}", self.name_of(&id));
        let token = token(&performer.book.grant, &run_id)?;
        let prompt = format!("{}\n\n----\n\n{material}", sealed(&instructions(), &token));
        let is_model = !matches!(kind, Kind::Command(_) | Kind::Script(_));
        let asked = Asked {
            kind: &kind,
            settings: &settings,
            prompt: &prompt,
            session: None,
            turn: 1,
            run_id: &run_id,
            purpose: Purpose::Judge,
            network: NetworkMode::None,
            env: match is_model {
                // A model reads its prompt; in its environment the token would be for its tools.
                true => Vec::new(),
                false => vec![(TOKEN_VARIABLE.into(), token.clone().into())],
            },
        };
        let home = home::make_anew(&dir.join("home"))?;
        let name = self.booked_as(eval);
        let turn = Turn::of_settings(name, (&kind, &settings), Role::Judge, &performer.book);
        let answer = self.booked(&turn, |limit_ms, watch| {
            let cell = Cell {
                name: &run_id,
                level: performer.setting.level,
                workspace: &to,
                workspace_access: Access::ReadOnly,
                project: Some(performer.project.layout.root()),
                works_at: WorksAt::Project,
                home: &home,
                git_view: None,
                mounts: Vec::new(),
                deadline: Duration::from_millis(limit_ms),
                idle: None,
            };
            let at_gate = (&asked, Rules::Fixed(&[]), &*dir);
            match ask_gated(&performer.book, cell, at_gate, &run_dir, watch) {
                Ok((run, process::End::Cancelled)) => (Err(cut_off()), run.usage),
                Ok((run, _)) => (Ok(judge_answer(&run, Token::Required(&token))), run.usage),
                Err(failure) => (Err(failure), Usage::default()),
            }
        });
        owned_dir::wipe(&dir).map_err(|error| failure::plain(&error))?;
        answer
    }

    fn by_model(
        &self,
        eval: &str,
        (provider, model): (&str, &str),
        criteria: &[String],
    ) -> Result<JudgeAnswer, Unjudged> {
        let performer = self.performer;
        let server = server(&performer.book, provider)?;
        let token = token(&performer.book.grant, &self.task.id.to_string())?;
        let workshop = self.workshop()?;
        let user = self.change(&workshop, criteria)?;
        let system = sealed(&instructions(), &token);
        let question = Question {
            model,
            system: &system,
            user: &user,
            output_tokens_max: OUTPUT_TOKENS_MAX,
            form: Form::Object(&SEALED_VERDICT),
        };
        let priced = price_name(&performer.book, provider);
        let name = self.booked_as(eval);
        let turn = Turn::of_model(name, (&priced, model), Role::Judge, &performer.book);
        self.booked(&turn, |limit_ms, watch| {
            let limit = Duration::from_millis(limit_ms);
            let asked = ask::ask(&server, &question, limit, watch.cancel);
            let today = Day::of_ms(performer.project.clock.now_ms());
            let prices = &performer.book.prices;
            let cost = prices.cost(&priced, model, today, &asked.usage);
            let usage: Usage = asked.usage.usage(cost);
            let answer = asked
                .outcome
                .map(|answer| parse_verdict(&answer.text, Token::Required(&token)));
            (answer.map_err(|error| failure::plain(&error)), usage)
        })
    }

    fn workshop(&self) -> Result<Workshop, Failure> {
        let root = self.performer.project.layout.root();
        Workshop::open(&self.performer.book, root, self.hands.cancel())
    }

    /// Makes a clean checkout of what the run left and returns what a judge is shown.
    fn material(
        &self,
        dir: &std::path::Path,
        criteria: &[String],
    ) -> Result<(String, std::path::PathBuf), Failure> {
        let workshop = self.workshop()?;
        let text = self.change(&workshop, criteria)?;
        let commit = workshop::commit_id(self.commit()?)?;
        let to = dir.join("checkout");
        let plan = CheckoutPlan {
            commit: &commit,
            base: &commit,
            protect: &[],
            to: &to,
        };
        checkout(&workshop, &plan)?;
        Ok((text, to))
    }

    fn commit(&self) -> Result<&str, Failure> {
        self.report.work.commit.as_deref().ok_or_else(|| Failure {
            message: "show a judge the work: the project is no git repository with a commit"
                .to_owned(),
            hint: None,
        })
    }

    /// Returns criteria, last words and change; what others wrote is fenced.
    fn change(&self, workshop: &Workshop, criteria: &[String]) -> Result<String, Failure> {
        let commit = self.commit()?;
        let patch = if self.report.work.branch.is_some() {
            let repository = &workshop.repository;
            let base = repository.resolve_commit(&format!("{commit}^"));
            let base = base.map_err(|error| failure::plain(&error))?;
            let patch = repository.diff(&base, &workshop::commit_id(commit)?, DIFF_BYTES_MAX);
            let patch = patch.map_err(|error| failure::plain(&error))?;
            let cut = if patch.is_cut {
                "\n\nThe change is longer than this."
            } else {
                ""
            };
            let text = String::from_utf8_lossy(&patch.bytes);
            format!("{}{cut}", fenced(&visible(&text), "diff"))
        } else {
            "Nothing was changed; the work is what the agent said.".to_owned()
        };
        let criteria: Vec<String> = criteria.iter().map(|line| format!("- {line}")).collect();
        Ok(format!(
            "# Goal\n\n{}\n\n# Done when\n\n{}\n\n# What the agent said last\n\n{}\n\n# The \
             change\n\n{patch}",
            fenced(&visible(&self.run.definition.description), ""),
            fenced(&visible(&criteria.join("\n")), ""),
            fenced(&visible(&self.report.output), "")
        ))
    }

    fn name_of(&self, id: &crate::launching::place::SandboxId) -> String {
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

fn found(by: &str, answer: &JudgeAnswer) -> Found {
    match answer {
        JudgeAnswer::Verdict { verdict, reason } => Found::new(
            *verdict == Verdict::Done,
            format!("{by} says {}: {reason}", verdict.as_str()),
        ),
        JudgeAnswer::Malformed { text } => {
            Found::new(false, format!("{by} gave no verdict: {text}"))
        }
        JudgeAnswer::Unavailable(failure) => {
            Found::new(false, format!("{by} did not answer: {}", failure.message))
        }
    }
}
