//! Setting off the next run: after the ends that the definition names, and not without end.
//!
//! By the same door as everybody, under a key of this run's own, so that it happens once however
//! often this phase is gone through.

use std::collections::BTreeMap;

use kapi_core::actor::Actor;
use kapi_core::value::Value;
use kapi_run::failure;

use super::{Ended, LoopExecution, skipped};
use crate::record::door::{Door, KeyAsk, LoopAsk};
use crate::record::policy_file::PolicyPlaces;
use crate::record::{definition_file, policy_file, profile_file};
use crate::rules::decide::Answer;
use crate::rules::definition::{DEPTH_MAX, Retrigger};
use crate::rules::loop_run::Trigger;
use crate::rules::request::Origin;
use crate::rules::task::{End, PhaseStatus};
use crate::rules::task_state::State;

impl LoopExecution<'_> {
    /// Triggers what the definition names. What cannot be triggered fails no run.
    pub(super) fn retrigger(&self) -> Ended {
        let Some(retrigger) = &self.run.definition.retrigger else {
            return skipped("it triggers nothing");
        };
        let state = match &self.report.end {
            End::Completed => State::Completed,
            End::Failed(_) => State::Failed,
            End::Skipped { .. } | End::Cancelled => State::Cancelled,
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
            Ok(Answer::Submitted(task) | Answer::Duplicate(task)) => {
                (PhaseStatus::Ok, Some(task.to_string()))
            }
            Ok(Answer::Skipped(reason)) => skipped(&reason),
            Ok(Answer::Claimed(..) | Answer::Nothing | Answer::Done) => (PhaseStatus::Error, None),
            Err(why) => (PhaseStatus::Error, Some(why)),
        }
    }

    fn set_off(&self, retrigger: &Retrigger, depth: u32) -> Result<Answer, String> {
        let performer = self.performer;
        let root = performer.project.layout.root();
        let found = definition_file::discover(root, root);
        let definition = found.find(&retrigger.loop_name);
        let definition =
            definition.ok_or_else(|| format!("loop not found: {}", retrigger.loop_name))?;
        let profiles = profile_file::discover(root, root, &performer.setting.person);
        let profile = profiles.find(&definition.agent);
        let profile = profile.map_err(|unknown| format!("failed to {unknown}"))?;
        let policy = policy_file::load(PolicyPlaces {
            project: root,
            person: &performer.setting.person,
        });
        let local_times = policy_file::local_times(&policy, performer.project.clock.now_ms());
        let door = Door {
            policy: &policy,
            local_times: &local_times,
            terms: &performer.terms,
            is_unattended: performer.setting.is_unattended,
            // What it builds on travelled for this run.
            base: &|| Ok(self.task.request.base.clone()),
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
            trigger: Trigger::Retrigger { task: self.task.id },
            inputs,
            payload: Value::Null,
            depth,
            key: KeyAsk::Given(format!("retrigger:{}", self.task.id)),
            origin: Origin::Loop {
                name: self.run.name().clone(),
            },
        };
        let failed = |error| format!("failed to {}", failure::chain(&error));
        let mut queue = performer.queue().map_err(failed)?;
        door.trigger_loop(&mut queue, &Actor::Engine, ask)
            .map_err(failed)
    }
}
