//! The records of every workflow of the project: log, fold, snapshot, documents, inventory, leave.
//!
//! Each is parsed and compared with what the log says; what follows from a sound log is written again
//! where a person asks for that, and never what they edited while it waits.

use std::path::Path;

use kapi_core::failure::chain;
use kapi_core::text::counted;
use kapi_core::workflow_key::WorkflowKey;
use kapi_goal::record::inventory::Inventory;
use kapi_goal::record::project::Project;
use kapi_machine::audit::StreamFault;
use kapi_store::layout::HomeLayout;
use kapi_sys::disk::Disk as _;
use kapi_workflow::record::audit::audit_workflow;
use kapi_workflow::record::index::WorkflowSummary;
use kapi_workflow::record::snapshot::WorkflowSnapshot;
use kapi_workflow::record::workflows::Workflows;
use kapi_workflow::rules::documents::documents;
use kapi_workflow::rules::state::Workflow;

use crate::commands::doctor::modes::{Class, Probe, RepairChoice};
use crate::context::Context;
use crate::error::{Error, optional};
use crate::workflow::approving;

/// A workflow that is looked at.
#[derive(Clone, Copy)]
struct ExaminedWorkflow<'a> {
    context: &'a Context,
    project: &'a Project<'a>,
    key: &'a WorkflowKey,
}

/// Looks at every workflow.
pub(super) fn probes(context: &Context, wish: RepairChoice) -> Result<Vec<Probe>, Error> {
    let Some(root) = optional(context.project_root())? else {
        return Ok(vec![none()]);
    };
    let project = context.project(&root, "kapi doctor");
    let listed = Workflows::of(&project)
        .workflows()
        .map_err(|error| Error::engine(&error, ""))?;
    if listed.is_empty() {
        return Ok(vec![none()]);
    }
    let mut probes = Vec::new();
    for listed in &listed {
        let looked = ExaminedWorkflow {
            context,
            project: &project,
            key: &listed.key,
        };
        match &listed.state {
            WorkflowSummary::Damaged(error) => {
                probes.push(looked.failed(Class::EventSnapshot, error));
            }
            WorkflowSummary::Known(_) => {
                probes.extend(looked.mended(wish));
                probes.extend(looked.probes());
            }
        }
    }
    Ok(probes)
}

fn none() -> Probe {
    Probe::good(Class::EventSnapshot, "workflows", "none yet")
}

impl ExaminedWorkflow<'_> {
    /// Writes again what follows from the log; what refuses is a hindrance of its own.
    fn mended(self, wish: RepairChoice) -> Option<Probe> {
        match wish {
            RepairChoice::Look => None,
            RepairChoice::Mend => match Workflows::of(self.project).repair_workflow(self.key) {
                Ok(_) => None,
                Err(error) => Some(self.failed(Class::EventSnapshot, &error)),
            },
        }
    }

    fn probes(self) -> Vec<Probe> {
        let mut probes = vec![self.event_snapshot()];
        match Workflows::of(self.project).workflow(self.key) {
            Ok(workflow) => {
                probes.push(self.artifact(&workflow));
                probes.push(self.source_of_truth(&workflow));
                probes.push(self.ownership(&workflow));
            }
            Err(error) => probes.push(self.failed(Class::EventSnapshot, &error)),
        }
        probes
    }

    fn good(self, class: Class, detail: String) -> Probe {
        Probe::good(class, &self.key.id.to_string(), detail)
    }

    fn bad(self, class: Class, detail: String) -> Probe {
        Probe::bad(class, &self.key.id.to_string(), detail)
    }

    fn failed(self, class: Class, error: &dyn std::error::Error) -> Probe {
        let index = self.key.id.index();
        self.bad(class, format!("failed to {}", chain(error)))
            .with_hint(format!("`kapi audit {index:03}` lists the damage."))
    }

    fn derived(self, class: Class, detail: String) -> Probe {
        self.bad(class, detail)
            .with_hint("rebuild it from the log with `kapi doctor --modes --mend`.")
    }

    fn event_snapshot(self) -> Probe {
        const CLASS: Class = Class::EventSnapshot;
        let audit = match audit_workflow(self.project, self.key) {
            Ok(audit) => audit,
            Err(error) => return self.failed(CLASS, &error),
        };
        let layout = self.project.layout.workflow(self.key.mode, &self.key.id);
        let records = [layout.state(), layout.snapshot()];
        // Documents have a class of their own.
        let is_document = |file: &Path| file.extension().is_some_and(|extension| extension == "md");
        let mut faults = audit.faults.iter().filter(|fault| match fault {
            StreamFault::NotDerived { file } => !is_document(file),
            StreamFault::Log(_)
            | StreamFault::Fleet(_)
            | StreamFault::UnknownEvent { .. }
            | StreamFault::OtherGoal { .. } => true,
            // Runs belong to no record of the workflow itself; `kapi audit` looks at them.
            StreamFault::Evidence { .. } => false,
        });
        if let Some(fault) = faults.next() {
            return self.failed(CLASS, fault);
        }
        if let Some(path) = audit.stale.iter().find(|path| records.contains(path)) {
            let detail = format!("{} is missing or behind the log", path.display());
            return self.derived(CLASS, detail);
        }
        let n_records = audit.records;
        self.good(
            CLASS,
            format!(
                "{}; state and snapshot agree with it",
                counted(n_records, "event")
            ),
        )
    }

    fn artifact(self, workflow: &Workflow) -> Probe {
        let layout = self.project.layout.workflow(self.key.mode, &self.key.id);
        let documents = documents(workflow);
        let pending = workflow.pending.as_ref();
        let pending = pending.map_or(&[][..], |pending| pending.decision.artifacts());
        for document in &documents {
            let file = layout.document(&document.name);
            let what = match self.context.disk.read(&file, 0) {
                Ok(Some(bytes)) if bytes == document.text.as_bytes() => continue,
                Ok(Some(_)) if pending.contains(&document.name.as_str()) => {
                    let detail = format!("{} was edited while awaiting approval", file.display());
                    let hint = approving::edited_hint(self.key, &file);
                    return self.bad(Class::Artifact, detail).with_hint(hint);
                }
                Ok(Some(_)) => "does not match the log".to_owned(),
                Ok(None) => "is missing".to_owned(),
                Err(error) => format!("cannot be read: {}", chain(&error)),
            };
            return self.derived(Class::Artifact, format!("{} {what}", file.display()));
        }
        let names: Vec<&str> = documents
            .iter()
            .map(|document| document.name.as_str())
            .collect();
        self.good(Class::Artifact, names.join(", "))
    }

    /// The inventory and the snapshot repeat what the log says; where they say something else,
    /// somebody reads it from the wrong place.
    fn source_of_truth(self, workflow: &Workflow) -> Probe {
        const CLASS: Class = Class::SourceOfTruth;
        let (key, disk) = (self.key, &self.context.disk);
        if workflow.id != key.id || workflow.mode() != key.mode {
            let detail = format!("its directory is {key}, but its log names {}", workflow.id);
            return self
                .bad(CLASS, detail)
                .with_hint("rename the directory back.");
        }
        let (phase, subphase) = workflow.phase();
        let stands = (
            workflow.status,
            phase.to_owned(),
            subphase.map(str::to_owned),
        );
        let inventory = match Inventory::read(disk, &self.project.layout) {
            Ok(inventory) => inventory,
            Err(error) => return self.failed(CLASS, &error),
        };
        let entry = inventory
            .as_ref()
            .and_then(|known| known.find_workflow(&key.id));
        let events = self.project.layout.workflow(key.mode, &key.id).events();
        let n_bytes = disk.len(&events).ok().flatten();
        let said = entry.map(|entry| {
            // While the log grows within a phase, the part of it is read from there.
            let is_current = n_bytes == Some(entry.log_bytes);
            let subphase = if is_current {
                &entry.subphase
            } else {
                &stands.2
            };
            (entry.status, entry.phase.clone(), subphase.clone())
        });
        if said.as_ref() != Some(&stands) {
            let detail = format!("the inventory does not have it in phase {phase}");
            return self.derived(CLASS, detail);
        }
        let file = self.project.layout.workflow(key.mode, &key.id).snapshot();
        let bytes = disk.read(&file, 0).ok().flatten().unwrap_or_default();
        let snapshot: Option<WorkflowSnapshot> = serde_json::from_slice(&bytes).ok();
        let said = snapshot.map(|snapshot| (snapshot.status, snapshot.phase, snapshot.subphase));
        if said != Some(stands) {
            let detail = format!("{} does not match the log", file.display());
            return self.derived(CLASS, detail);
        }
        self.good(CLASS, "log, state, snapshot and inventory agree".to_owned())
    }

    fn ownership(self, workflow: &Workflow) -> Probe {
        const CLASS: Class = Class::Ownership;
        match Workflows::of(self.project).unapproved_workflow(workflow) {
            Ok(None) => {}
            Ok(Some(lack)) => {
                return self
                    .bad(CLASS, lack.to_string())
                    .with_hint("Kapi shows it but never runs it; start your own.");
            }
            Err(error) => return self.failed(CLASS, &error),
        }
        let Some(branch) = workflow.body.rules().branch() else {
            return self.good(CLASS, "yours, without a worktree".to_owned());
        };
        let worktree = Path::new(&branch.worktree);
        let own = HomeLayout::new(&self.context.home)
            .state_dir()
            .join("worktrees");
        if !worktree.starts_with(&own) {
            let detail = format!("{} is not one of Kapi's worktrees", worktree.display());
            return self.bad(CLASS, detail);
        }
        self.good(
            CLASS,
            format!("yours, with worktree {}", worktree.display()),
        )
    }
}
