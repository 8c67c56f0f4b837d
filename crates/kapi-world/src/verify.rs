//! Verification: the commands of the contract, on a clean checkout of the commit.
//!
//! Nothing the agent left running, ignored or changed under protection is there. Hidden checks
//! run in a second checkout, and only after everything visible passed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use kapi_core::goal::effect::{Effect, VerifyTask};
use kapi_core::goal::outcome::{Checks, Failure, Outcome, VerifyReport, VerifyRun};
use kapi_core::goal::quote::tail;
use kapi_core::goal::words;
use kapi_engine::world::{Activity, Watch};
use kapi_git::checkout::CheckoutPlan;
use kapi_git::hidden::copy_hidden;
use kapi_git::owned_dir;
use kapi_git::workspace::Workspace;
use kapi_sandbox::outcome::Ran;
use kapi_sandbox::spec::Access;
use kapi_sys::process::{End, Finished};

use crate::agent_run::run_id;
use crate::asking::RUN_ID_VARIABLE;
use crate::confine::{Cell, Payload, WorksAt};
use crate::dependencies::Dependencies;
use crate::dependencies::lend::{Borrower, Lending};
use crate::doors::Doors;
use crate::doors::serve::Served;
use crate::real::{RealWorld, cancelled};
use crate::run_dir::RunDir;
use crate::workshop::{self, ShownAt, Workshop};
use crate::{failure, home};

/// Bytes of a command's output that are recorded.
const OUTPUT_TAIL_BYTES: usize = 4_000;
/// How many tampered paths are recorded.
const TAMPERED_MAX: usize = 50;

impl RealWorld<'_> {
    pub(crate) fn verify(
        &self,
        effect: &Effect,
        task: &VerifyTask,
        watch: &Watch<'_>,
    ) -> Result<Outcome, Failure> {
        let workshop = Workshop::open(&self.book, &self.place.project, watch.cancel)?;
        let workspace =
            workshop.workspace(&self.place, (&task.branch, &task.base), &task.commit)?;
        let run_dir = RunDir::open(&self.place.runs, &run_id(effect))?;
        let (base, commit) = (
            workshop::commit_id(&task.base)?,
            workshop::commit_id(&task.commit)?,
        );
        let tampered = workshop
            .repository
            .protected_changes(&base, &commit, &task.protect)
            .map_err(|error| failure::plain(&error))?;
        let mut report = VerifyReport {
            commit: task.commit.clone(),
            tree: task.tree.clone(),
            tampered: tampered
                .iter()
                .take(TAMPERED_MAX)
                .map(|change| change.path.display().to_string())
                .collect(),
            runs: Vec::new(),
        };
        let run_id = run_id(effect);
        let stages = Stages {
            workshop: &workshop,
            workspace: &workspace,
            task,
            watch,
            run_id: &run_id,
            run_dir: &run_dir,
        };
        let mut is_whole = self.run_stage(&stages, Checks::Visible, &mut report)?;
        if is_whole && task.hidden && report.passed() {
            is_whole = self.run_stage(&stages, Checks::Hidden, &mut report)?;
        }
        Ok(if is_whole {
            Outcome::Verified(report)
        } else {
            cancelled()
        })
    }

    /// Runs all commands on a fresh checkout; `false` when it was cancelled on the way.
    ///
    /// What one command builds is there for the next. What one could prepare against the next is
    /// not: protected and hidden files, the home and the view of git are made anew for each.
    fn run_stage(
        &self,
        stages: &Stages<'_>,
        checks: Checks,
        report: &mut VerifyReport,
    ) -> Result<bool, Failure> {
        let task = stages.task;
        let commit = workshop::commit_id(&task.commit)?;
        let plan = CheckoutPlan {
            commit: &commit,
            base: &workshop::commit_id(&task.base)?,
            protect: &task.protect,
            to: &self.place.scratch.join("verify"),
        };
        checkout(stages.workshop, &plan)?;
        for command in &task.commands {
            stages
                .workshop
                .repository
                .restore_protected(&plan)
                .map_err(|error| failure::plain(&error))?;
            if checks == Checks::Hidden {
                copy_hidden(&self.place.hidden, plan.to).map_err(|error| failure::plain(&error))?;
            }
            let ran = self.run_command(stages, &plan, command)?;
            let finished = &ran.finished;
            if finished.end == End::Cancelled {
                return Ok(false);
            }
            let log = format!("verify-{}.log", report.runs.len() + 1);
            stages.run_dir.keep(&log, output(finished).as_bytes())?;
            report.runs.push(verify_run(command, checks, &ran));
        }
        owned_dir::discard(plan.to).map_err(|error| failure::plain(&error))?;
        Ok(true)
    }

    fn run_command(
        &self,
        stages: &Stages<'_>,
        plan: &CheckoutPlan<'_>,
        command: &str,
    ) -> Result<Ran, Failure> {
        let task = stages.task;
        (stages.watch.notice)(Activity::Verifying {
            command: command.to_owned(),
        });
        let view_dir = self.place.scratch.join("verify-git");
        let shown_at = ShownAt::of(task.sandbox, plan.to);
        let (git_view, git_env) = stages.workshop.git_view(
            &view_dir,
            stages.workspace,
            plan.commit,
            (shown_at, &self.place.stores),
        )?;
        let home = home::make_anew(&self.place.scratch.join("verify-home"))?;
        let dependencies =
            Dependencies::of_goal(&self.book, &stages.workshop.repository, &self.place.scratch)?;
        let lending = Lending {
            layers: &self.place.scratch.join("verify-dependencies"),
            workspace: plan.to,
            borrower: Borrower::Command,
            network: task.network,
            level: task.sandbox,
        };
        let lent = dependencies.lend(&self.book, &lending)?;
        let mut env = lent.env.clone();
        env.extend(environment(&git_env, stages.run_id));
        let cell = Cell {
            name: stages.run_id,
            level: task.sandbox,
            workspace: plan.to,
            workspace_access: Access::ReadWrite,
            project: Some(stages.workshop.repository.top_level()),
            works_at: WorksAt::Project,
            home: &home,
            git_view: Some(git_view),
            mounts: lent.mounts.clone(),
            deadline: Duration::from_millis(task.timeout_ms),
            idle: None,
        };
        let payload = Payload {
            program: PathBuf::from("/bin/sh"),
            args: vec!["-c".into(), command.into()],
            env,
            stdin: Vec::new(),
        };
        let doors = Doors::new(task.sandbox, task.network, &self.book.grant)?;
        let served = Served::new(&doors, stages.watch, stages.run_dir)?;
        let ran = cell.run(&self.book, payload, &served, &mut |_| {})?;
        // The one that explains the end stands in the output, which the next turn reads.
        for met in &ran.met {
            let text = words::limit_met(met.resource, &met.limit);
            (stages.watch.notice)(Activity::Note { text });
        }
        Ok(ran)
    }
}

struct Stages<'a> {
    workshop: &'a Workshop,
    workspace: &'a Workspace,
    task: &'a VerifyTask,
    watch: &'a Watch<'a>,
    run_id: &'a str,
    run_dir: &'a RunDir,
}

/// Makes a clean checkout, with an empty file where the view of git will be mounted.
pub(crate) fn checkout(workshop: &Workshop, plan: &CheckoutPlan<'_>) -> Result<PathBuf, Failure> {
    workshop
        .repository
        .checkout(plan)
        .map_err(|error| failure::plain(&error))?;
    let mount_point = plan.to.join(".git");
    fs::File::create(&mount_point)
        .map_err(|error| failure::file("create", &mount_point, &error))?;
    Ok(plan.to.to_path_buf())
}

fn environment(git_env: &[(OsString, OsString)], run_id: &str) -> BTreeMap<OsString, OsString> {
    let mut env: BTreeMap<OsString, OsString> = git_env.iter().cloned().collect();
    // What the agent wrote runs here: it has the agent's authority, not the person's.
    env.insert(RUN_ID_VARIABLE.into(), run_id.into());
    env
}

fn verify_run(command: &str, checks: Checks, ran: &Ran) -> VerifyRun {
    let finished = &ran.finished;
    let mut text = output(finished);
    if let Some(exceeded) = &ran.exceeded {
        text = format!(
            "{text}\n[kapi ended it at its limit of {}; raise `{}` in `[sandbox]`]\n",
            words::limit_text(exceeded.resource, &exceeded.limit),
            words::limit_key(exceeded.resource)
        );
    }
    let (exit_code, timed_out) = match finished.end {
        End::Exited(code) => (Some(code), false),
        End::Signaled(signal) => (Some(128 + signal), false),
        End::DeadlinePassed | End::IdlePassed => (None, true),
        End::Cancelled => (None, false),
    };
    VerifyRun {
        command: command.to_owned(),
        checks,
        exit_code,
        timed_out,
        duration_ms: u64::try_from(finished.duration.as_millis()).unwrap_or(u64::MAX),
        output_tail: tail(&text, OUTPUT_TAIL_BYTES).to_owned(),
        output_bytes: finished
            .stdout
            .bytes_total
            .saturating_add(finished.stderr.bytes_total),
    }
}

fn output(finished: &Finished) -> String {
    let (stdout, stderr) = (finished.stdout.text(), finished.stderr.text());
    let between = if stdout.is_empty() || stdout.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{stdout}{between}{stderr}")
}
