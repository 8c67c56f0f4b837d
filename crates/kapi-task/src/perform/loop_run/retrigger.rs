//! Setting off the next run: after the ends that the definition names, and not without end.
//!
//! By the same door as everybody, under a key of this run's own, so that it happens once however
//! often this phase is gone through.

use std::collections::BTreeMap;

use kapi_core::actor::Actor;
use kapi_core::value::KernelValue;
use kapi_run::failure;

use super::{Ended, LoopExecution, skipped};
use crate::record::admission::{KeyAsk, LoopAsk, TaskAdmission};
use crate::record::policy_file::PolicyPaths;
use crate::record::{definition_file, policy_file, profile_file};
use crate::rules::decide::KernelReply;
use crate::rules::definition::{DEPTH_MAX, Retrigger};
use crate::rules::loop_run::RunTrigger;
use crate::rules::request::TaskOrigin;
use crate::rules::task::{End, PhaseStatus};
use crate::rules::task_state::KernelTaskState;

impl LoopExecution<'_> {
    /// Triggers what the definition names. What cannot be triggered fails no run.
    pub(super) fn retrigger(&self) -> Ended {
        let Some(retrigger) = &self.run.definition.retrigger else {
            return skipped("it triggers nothing");
        };
        let state = match &self.report.end {
            End::Completed => KernelTaskState::Completed,
            End::Failed(_) => KernelTaskState::Failed,
            End::Skipped { .. } | End::Cancelled => KernelTaskState::Cancelled,
        };
        if !retrigger.on.is_met_by(state) {
            return skipped(&format!("a run that {state} triggers nothing"));
        }
        let depth = self.run.depth.saturating_add(1);
        let depth_max = retrigger.depth_max.min(DEPTH_MAX);
        if depth > depth_max {
            return skipped(&format!(
                "{depth_max} runs in a row have triggered each other"
            ));
        }
        match self.set_off(retrigger, depth) {
            Ok(KernelReply::Submitted(task) | KernelReply::Duplicate(task)) => {
                (PhaseStatus::Ok, Some(task.to_string()))
            }
            Ok(KernelReply::Skipped(reason)) => skipped(&reason),
            Ok(KernelReply::Claimed(..) | KernelReply::Nothing | KernelReply::Done) => {
                (PhaseStatus::Error, None)
            }
            Err(why) => (PhaseStatus::Error, Some(why)),
        }
    }

    fn set_off(&self, retrigger: &Retrigger, depth: u32) -> Result<KernelReply, String> {
        let performer = self.performer;
        let root = performer.project.layout.root();
        let found = definition_file::discover(root, root);
        let definition = found.find(&retrigger.loop_name);
        let definition =
            definition.ok_or_else(|| format!("loop not found: {}", retrigger.loop_name))?;
        let profiles = profile_file::discover(root, root, &performer.setting.person);
        let profile = profiles.find(&definition.agent);
        let profile = profile.map_err(|unknown| format!("failed to {unknown}"))?;
        let policy = policy_file::load(PolicyPaths {
            project: root,
            person: &performer.setting.person,
        });
        let local_times = policy_file::local_times(&policy, performer.project.clock.now_ms());
        let admission = TaskAdmission {
            policy: &policy,
            local_times: &local_times,
            terms: &performer.terms,
            is_unattended: performer.setting.is_unattended,
            // What it builds on travelled for this run.
            base: &|_| Ok(self.task.request.base.clone()),
        };
        // A run of the same loop goes on with what this one was given.
        let inputs = if definition.name == *self.run.name() {
            self.run.inputs.clone()
        } else {
            BTreeMap::new()
        };
        let ask = LoopAsk {
            definition,
            profile,
            trigger: RunTrigger::Retrigger { task: self.task.id },
            inputs,
            payload: KernelValue::Null,
            depth,
            key: KeyAsk::Given(format!("retrigger:{}", self.task.id)),
            origin: TaskOrigin::Loop {
                name: self.run.name().clone(),
            },
        };
        let failed = |error| format!("failed to {}", failure::chain(&error));
        let mut queue = performer.queue().map_err(failed)?;
        admission
            .trigger_loop(&mut queue, &Actor::Engine, ask)
            .map_err(failed)
    }
}
