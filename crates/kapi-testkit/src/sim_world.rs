//! A world that survives crashes: branches, commits, a worktree, agents with side effects.
//!
//! It performs effects as the real one does, checks the oracles as it goes, and lets the power
//! fail before, during and after each effect. What happens is a function of the effect alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_check::rules::proof::verify_run::{Checks, VerifyRun};
use kapi_core::actor::Actor;
use kapi_core::agent_end::{AgentEnd, AgentRun, ProviderFailure, ProviderFailureKind};
use kapi_core::failure::Failure;
use kapi_core::id::{EffectId, GoalId};
use kapi_core::usage::Usage;
use kapi_core::verdict::{JudgeAnswer, JudgeRun};
use kapi_goal::record::world::World;
use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::effect::{AgentTask, GoalAction, GoalEffect, VerifyTask};
use kapi_goal::rules::outcome::{GoalCandidate, GoalOutcome};
use kapi_goal::rules::tool::ToolCall;
use kapi_machine::watch::{Activity, EffectWatch};
use kapi_sys::disk::Disk as _;
use kapi_sys::sim_disk::{SimDisk, Survival};

use crate::oracle::{Oracle, OracleViolation, check_performed, read_log};
use crate::sim_mistake::Mistake;
use crate::sim_scenario::{AgentScript, JudgeScript, PROTECTED_FILE, SimScenario, project};
use crate::sim_tree::{Files, SimClock, commit_id, tree_id};

/// How often an agent looks whether it is called off.
const CANCEL_LOOK: Duration = Duration::from_micros(200);

/// What a crash does not take away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Durable {
    /// Branches and the commits they point at.
    pub branches: BTreeMap<String, String>,
    /// Trees of commits.
    pub commits: BTreeMap<String, Files>,
    /// The goal's worktree.
    pub worktree: Option<Files>,
}

#[derive(Debug)]
struct Inner {
    durable: Durable,
    /// Agent effects that were begun, by the record a run's directory keeps.
    begun: BTreeSet<EffectId>,
    violation: Option<OracleViolation>,
    /// Moments at which the power may fail, passed so far.
    moments: u64,
    crash_at: Option<(u64, Survival)>,
    first_agent: Option<EffectId>,
}

/// A simulated world.
#[derive(Debug)]
pub struct SimWorld {
    scenario: SimScenario,
    disk: SimDisk,
    clock: SimClock,
    log_dir: PathBuf,
    mistake: Option<Mistake>,
    inner: Mutex<Inner>,
}

impl SimWorld {
    /// Makes a world with one commit on `main`. Logs are looked for below `goals_dir`.
    #[must_use]
    pub fn new(
        scenario: SimScenario,
        disk: &SimDisk,
        clock: &SimClock,
        goals_dir: PathBuf,
    ) -> Self {
        let base = scenario.base_files();
        let commit = commit_id(&base, "", 0);
        let branches = [
            ("main".to_owned(), commit.clone()),
            ("theirs".to_owned(), commit.clone()),
        ];
        let durable = Durable {
            branches: branches.into(),
            commits: [(commit, base)].into(),
            worktree: None,
        };
        Self {
            scenario,
            disk: disk.clone(),
            clock: clock.clone(),
            log_dir: goals_dir,
            mistake: None,
            inner: Mutex::new(Inner {
                durable,
                begun: BTreeSet::new(),
                violation: None,
                moments: 0,
                crash_at: None,
                first_agent: None,
            }),
        }
    }

    /// Plants a mistake, where it is one of the world's.
    #[must_use]
    pub const fn with_mistake(mut self, mistake: Option<Mistake>) -> Self {
        self.mistake = mistake;
        self
    }

    /// Lets the power fail at the moment with this number, counted from the first.
    pub fn crash_at(&self, moment: u64, survival: Survival) {
        self.inner().crash_at = Some((moment, survival));
    }

    /// Lets the power fail at no moment any more.
    pub fn never_crash(&self) {
        self.inner().crash_at = None;
    }

    /// Returns how many moments have passed.
    pub fn moments(&self) -> u64 {
        self.inner().moments
    }

    /// Returns what a crash does not take away.
    pub fn durable(&self) -> Durable {
        self.inner().durable.clone()
    }

    /// Returns the first complaint of an oracle.
    ///
    /// # Errors
    /// When there is one.
    pub fn check(&self) -> Result<(), OracleViolation> {
        self.inner().violation.clone().map_or(Ok(()), Err)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes a moment at which the power may fail; tells whether it is gone.
    fn power_fails(&self) -> bool {
        let due = {
            let mut inner = self.inner();
            let now = inner.moments;
            inner.moments += 1;
            inner.crash_at.filter(|(moment, _)| *moment == now)
        };
        if let Some((_, survival)) = due {
            self.disk.crash_now(survival);
        }
        self.disk.is_crashed()
    }

    fn check_intent(&self, goal: &GoalId, effect: &EffectId) {
        let log = self.log_dir.join(goal.to_string()).join("events.jsonl");
        let durable = self.disk.durable().get(&log).cloned().unwrap_or_default();
        let checked =
            read_log(&goal.to_string(), &durable).and_then(|log| check_performed(effect, &log));
        if let Err(violation) = checked {
            self.inner().violation.get_or_insert(violation);
        }
    }

    fn act(&self, effect: &GoalEffect, watch: &EffectWatch<'_>) -> GoalOutcome {
        match &effect.action {
            GoalAction::CreateWorkspace { branch, base, .. } => self.create_workspace(branch, base),
            GoalAction::RunAgent(task) => self.run_agent(effect, task, watch),
            GoalAction::Commit(task) => self.commit(&task.base, task.at_s),
            GoalAction::Baseline(task) | GoalAction::Verify(task) => self.verify(task),
            GoalAction::Judge(task) => {
                judged(&task.agent, &self.scenario.judge(&effect.id, &task.agent))
            }
            GoalAction::Publish {
                branch,
                base,
                commit,
            } => self.publish(branch, base, commit),
            GoalAction::Wait { until_ms } => {
                self.clock.wait_until(*until_ms);
                GoalOutcome::Waited
            }
        }
    }

    fn create_workspace(&self, branch: &str, base: &str) -> GoalOutcome {
        let durable = &mut self.inner().durable;
        let Some(files) = durable.commits.get(base).cloned() else {
            return refused("find base");
        };
        // The workspace of a session is the checkout as it stands.
        if !self.scenario.is_session() {
            let points_at = durable
                .branches
                .entry(branch.to_owned())
                .or_insert_with(|| base.to_owned());
            if points_at != base {
                return refused("create the branch: it points elsewhere");
            }
        }
        durable.worktree.get_or_insert(files);
        GoalOutcome::Workspace {
            path: "/worktree".to_owned(),
        }
    }

    /// Works on the files. What a cut-off attempt under this id left is put back first.
    fn run_agent(
        &self,
        effect: &GoalEffect,
        task: &AgentTask,
        watch: &EffectWatch<'_>,
    ) -> GoalOutcome {
        {
            let mut inner = self.inner();
            let is_new = inner.begun.insert(effect.id.clone());
            let is_put_back = !is_new && !self.scenario.is_session();
            if is_put_back && self.mistake != Some(Mistake::NoRestore) {
                let start = inner.durable.commits.get(&task.start_commit).cloned();
                inner.durable.worktree = start;
            }
        }
        let script = self.scenario.agent(&effect.id, task.turn);
        if let AgentScript::ProviderFails = script {
            return GoalOutcome::Agent(agent_run(AgentEnd::Provider(unavailable()), None));
        }
        let line = format!("turn {}\n", task.turn);
        self.write_transcript(effect, &line);
        if !self.scenario.is_session() {
            self.change(|files| {
                files
                    .entry("work.log".to_owned())
                    .or_default()
                    .push_str(&line);
            });
        }
        if self.power_fails() {
            return cut_off();
        }
        match script {
            AgentScript::ProviderFails => {}
            AgentScript::Writes(writes) => self.write(writes),
            AgentScript::Claims(writes) => {
                self.write(writes);
                self.claim(effect);
                if self.power_fails() {
                    return cut_off();
                }
            }
            AgentScript::IsCancelled(cancel) => {
                cancel(&self.disk, &self.clock, &effect.goal);
                while !watch.cancel.is_raised() && !self.disk.is_crashed() {
                    std::thread::park_timeout(CANCEL_LOOK);
                }
                return cut_off();
            }
        }
        GoalOutcome::Agent(agent_run(AgentEnd::Finished, Some("session-1".to_owned())))
    }

    fn write(&self, writes: &[(&str, &str)]) {
        let written = writes
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        self.change(|files| files.extend(written));
    }

    /// Claims the goal in the name of the run, from the thread that hears the session.
    fn claim(&self, effect: &GoalEffect) {
        let project = project(&self.disk, &self.clock, "kapi rpc");
        let actor = Actor::Agent {
            run: format!("{}-{}", effect.goal, effect.id),
        };
        let call = GoalCommand::Tool(ToolCall::Complete {
            evidence: "it is good".to_owned(),
            summary: None,
        });
        let claimed = project.submit(&effect.goal, &actor, &call);
        assert!(
            claimed.is_ok() || self.disk.is_crashed(),
            "only the power can stop a claim: {claimed:?}"
        );
    }

    /// Adds to the transcript of a run, as the real world does: not synced.
    fn write_transcript(&self, effect: &GoalEffect, line: &str) {
        let Some(state_dir) = self.log_dir.parent() else {
            return;
        };
        let run = format!("{}-{}", effect.goal, effect.id);
        let dir = state_dir.join("runs").join(run);
        let path = dir.join("transcript.jsonl");
        let made = self.disk.create_dir(&dir).map(drop);
        // Where the power has failed nothing is written, and the run is over soon.
        drop(made.and_then(|()| self.disk.append(&path, line.as_bytes())));
    }

    fn change(&self, change: impl FnOnce(&mut Files)) {
        if let Some(files) = &mut self.inner().durable.worktree {
            change(files);
        }
    }

    fn commit(&self, base: &str, at_s: i64) -> GoalOutcome {
        let durable = &mut self.inner().durable;
        let (Some(files), Some(base_files)) = (&durable.worktree, durable.commits.get(base)) else {
            return refused("commit: no worktree or base");
        };
        let changed = files
            .iter()
            .filter(|(name, text)| base_files.get(*name) != Some(text));
        let files_changed = u32::try_from(changed.count()).unwrap_or(u32::MAX);
        let commit = commit_id(files, base, at_s);
        let tree = tree_id(files);
        let files = files.clone();
        durable.commits.insert(commit.clone(), files);
        GoalOutcome::Committed(GoalCandidate {
            commit,
            tree,
            files_changed,
            left_out: Vec::new(),
        })
    }

    fn verify(&self, task: &VerifyTask) -> GoalOutcome {
        let inner = self.inner();
        let commits = &inner.durable.commits;
        let (Some(files), Some(base)) = (commits.get(&task.commit), commits.get(&task.base)) else {
            return refused("check out the commit");
        };
        let is_tampered = files.get(PROTECTED_FILE) != base.get(PROTECTED_FILE);
        let passes = files
            .get("code")
            .is_some_and(|code| code.starts_with("good"));
        let run = |command: &String| VerifyRun {
            command: command.clone(),
            checks: Checks::Visible,
            exit_code: Some(i32::from(!passes)),
            timed_out: false,
            duration_ms: 1,
            output_tail: String::new(),
            output_bytes: 0,
            tally: None,
        };
        GoalOutcome::Verified(VerifyReport {
            commit: task.commit.clone(),
            tree: task.tree.clone(),
            tampered: if is_tampered {
                vec![PROTECTED_FILE.to_owned()]
            } else {
                Vec::new()
            },
            runs: task.commands.iter().map(run).collect(),
            inspection: Box::default(),
        })
    }

    fn publish(&self, branch: &str, base: &str, commit: &str) -> GoalOutcome {
        let durable = &mut self.inner().durable;
        if self.scenario.is_session() && self.mistake != Some(Mistake::WrongBranch) {
            return GoalOutcome::Published {
                commit: commit.to_owned(),
            };
        }
        let branch = match self.mistake {
            Some(Mistake::WrongBranch) => "main",
            Some(_) | None => branch,
        };
        match durable.branches.get_mut(branch) {
            Some(at) if at == base || at == commit => {
                commit.clone_into(at);
                GoalOutcome::Published {
                    commit: commit.to_owned(),
                }
            }
            Some(_) | None => refused("publish: the branch has moved"),
        }
    }
}

impl World for SimWorld {
    fn perform(&self, effect: &GoalEffect, watch: &EffectWatch<'_>) -> GoalOutcome {
        let mut effect = effect.clone();
        if self.mistake == Some(Mistake::ReusedEffectId)
            && matches!(effect.action, GoalAction::RunAgent(_))
        {
            effect.id = self.inner().first_agent.get_or_insert(effect.id).clone();
        }
        if self.power_fails() {
            return cut_off();
        }
        self.check_intent(&effect.goal, &effect.id);
        let outcome = self.act(&effect, watch);
        if self.power_fails() {
            return cut_off();
        }
        // Said last: what the engine does about it may end in a crash of its own.
        if matches!(outcome, GoalOutcome::Agent(_)) {
            (watch.notice)(Activity::Used(USED));
        }
        outcome
    }
}

/// What an agent reports while it runs, and again at its end.
const USED: Usage = Usage {
    input_tokens: 100,
    output_tokens: 10,
    usd_micros: Some(50),
    ..Usage::ZERO
};

/// Builds the complaint that something of the person's was changed.
pub(crate) fn not_owned(what: &str) -> OracleViolation {
    OracleViolation::new(Oracle::Ownership, format!("{what} changed"))
}

fn agent_run(end: AgentEnd, session: Option<String>) -> AgentRun {
    AgentRun {
        end,
        claim: None,
        message: "worked".to_owned(),
        session,
        usage: USED,
        tools: 1,
        isolation: None,
        score: None,
    }
}

fn unavailable() -> ProviderFailure {
    ProviderFailure {
        kind: ProviderFailureKind::RateLimited,
        message: "too many requests".to_owned(),
        retry_after_ms: Some(2_000),
    }
}

fn judged(by: &str, script: &JudgeScript) -> GoalOutcome {
    let answer = match script {
        JudgeScript::Says(verdict) => JudgeAnswer::Verdict {
            verdict: *verdict,
            reason: verdict.as_str().to_owned(),
        },
        JudgeScript::IsUnavailable => JudgeAnswer::Unavailable(unavailable()),
    };
    GoalOutcome::Judged(JudgeRun {
        by: by.to_owned(),
        answer,
        usage: USED,
    })
}

fn refused(what: &str) -> GoalOutcome {
    GoalOutcome::Failed(Failure {
        message: what.to_owned(),
        hint: None,
    })
}

/// What a process that lost its power would have said; nobody hears it.
fn cut_off() -> GoalOutcome {
    GoalOutcome::Cancelled {
        usage: Usage::default(),
        session: None,
    }
}
