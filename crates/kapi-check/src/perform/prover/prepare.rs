//! Dependencies for work that changes what is locked: installed once for each content of the lock
//! files, in a sandbox that reaches the ecosystem's registries and nothing else besides what the
//! person allows.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use kapi_core::failure::Failure;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_machine::watch::{Activity, EffectWatch};
use kapi_run::failure;
use kapi_run::host_grants::HostGrants;
use kapi_run::network::refused_connection::RefusedConnection;
use kapi_run::shell::Listener;
use kapi_sandbox::spec::BenchmarkSetup;

use super::change::ChangePart;
use super::checkout::{Checkout, LineResources};
use super::{ProofClaim, Prover, WorkToProve};
use crate::perform::dependencies::prepared::{InstallStep, PreparedStore, client_variables};
use crate::perform::dependencies::{Dependencies, registries};
use crate::perform::ecosystems;
use crate::rules::proof::downloads::Lacking;
use crate::rules::proof::verify_run::{Checks, VerifyRun};

/// Bytes of a lock file that are read: it is named by all of them.
const LOCK_BYTES_MAX: usize = 64 << 20;

/// Where they are kept, beside the objects that sandboxes share.
const KEPT: &str = "dependencies";

/// What the work's dependencies are.
pub(super) enum WorkDependencies {
    /// Those of the person: the work asks for no others.
    AsLent,
    /// What its lock files name.
    Own(Box<Dependencies>),
    /// Its lock files name others, which could not be installed, for this reason.
    Lacking(Lacking),
    /// It was called off.
    Cancelled,
}

impl Prover<'_> {
    /// Finds or installs the dependencies of the work.
    pub(super) fn prepare(
        &self,
        work: &WorkToProve<'_>,
        claim: &ProofClaim<'_>,
    ) -> Result<WorkDependencies, Failure> {
        let locks = work.change.lock_files();
        // A container has dependencies of its own.
        if self.site.level != SandboxLevel::Native || locks.is_empty() {
            return Ok(WorkDependencies::AsLent);
        }
        let table = ecosystems::table()?;
        let repository = &self.repo.repository;
        let mut installs = Vec::new();
        let mut needed = InstallStep::all(table, &locks);
        needed.retain(|install| install.is_needed(self.site.dependencies, claim.commands));
        for install in needed {
            let read = repository.file_at(&work.commit, &install.lock, LOCK_BYTES_MAX);
            // One that is gone asks for nothing.
            if let Some(content) = read.map_err(|error| failure::plain(&error))? {
                installs.push((install, content));
            }
        }
        if installs.is_empty() {
            return Ok(WorkDependencies::AsLent);
        }
        let store = PreparedStore::of(
            &self.site.stores.with_file_name(KEPT),
            self.site.project,
            &installs,
        );
        if let Some(found) = store.found(self.grants, repository, self.site.dependencies)? {
            return Ok(WorkDependencies::Own(Box::new(found)));
        }
        let wanted = InstallPlan {
            installs: &installs,
            store: &store,
        };
        match self.install(work, claim, wanted)? {
            InstallEnd::Whole => {}
            InstallEnd::Not(lacking) => return Ok(WorkDependencies::Lacking(lacking)),
            InstallEnd::Cancelled => return Ok(WorkDependencies::Cancelled),
        }
        let found = store.found(self.grants, repository, self.site.dependencies)?;
        Ok(found.map_or_else(
            || {
                WorkDependencies::Lacking(Lacking {
                    why: "the installed dependencies could not be stored".to_owned(),
                    refused: Vec::new(),
                })
            },
            |found| WorkDependencies::Own(Box::new(found)),
        ))
    }

    fn install(
        &self,
        work: &WorkToProve<'_>,
        claim: &ProofClaim<'_>,
        wanted: InstallPlan<'_>,
    ) -> Result<InstallEnd, Failure> {
        let mut ended = self.install_by(work, claim, wanted, InstallSource::Offline)?;
        if matches!(ended, InstallEnd::Not(_)) && self.site.downloads.network != NetworkMode::None {
            ended = self.install_by(work, claim, wanted, InstallSource::Download)?;
        }
        Ok(ended)
    }

    fn install_by(
        &self,
        work: &WorkToProve<'_>,
        claim: &ProofClaim<'_>,
        wanted: InstallPlan<'_>,
        way: InstallSource,
    ) -> Result<InstallEnd, Failure> {
        let InstallPlan { installs, store } = wanted;
        let steps: Vec<&InstallStep> = installs.iter().map(|(install, _)| install).collect();
        let reach = self.reach(&steps, way)?;
        let layers = self.site.scratch.join("prepare-dependencies");
        let shared = self.site.dependencies.without_directories();
        let refused = Mutex::new(BTreeMap::new());
        let notice = |activity: Activity| {
            if let Activity::Note { text } = &activity
                && let Some(RefusedConnection { host, reason }) = RefusedConnection::read(text)
            {
                let mut refused = refused.lock().unwrap_or_else(PoisonError::into_inner);
                refused.insert(host, reason);
            } else {
                (self.listener.watch.notice)(activity);
            }
        };
        let watch = EffectWatch {
            cancel: self.listener.watch.cancel,
            notice: &notice,
            room: self.listener.watch.room,
        };
        // Nothing that the work wrote runs here: what is installed is what its checks run with.
        let theirs = [ChangePart::Code, ChangePart::Steering, ChangePart::Tests];
        let put_back = work
            .change
            .put_back(&self.repo.repository, claim, &theirs)?;
        let checkout = Checkout::make(self, work, put_back)?;
        for (install, _) in installs {
            (self.listener.watch.notice)(Activity::Verifying {
                command: install.line.clone(),
            });
            let means = LineResources {
                grants: &reach.grants,
                network: reach.network,
                dependencies: &shared,
                layers: &layers,
                mounts: Vec::new(),
                env: reach.env.clone(),
                below: install.lock.parent().unwrap_or(Path::new("")),
                timeout_ms: claim.line_ms(),
                benchmark: BenchmarkSetup::default(),
                listener: Listener {
                    watch: &watch,
                    run_dir: self.listener.run_dir,
                },
            };
            let Some(run) = checkout.run_once(&install.line, Checks::Visible, means)? else {
                checkout.discard()?;
                return Ok(InstallEnd::Cancelled);
            };
            if !run.passed() {
                checkout.discard()?;
                let refused = refused.into_inner().unwrap_or_else(PoisonError::into_inner);
                return Ok(InstallEnd::Not(lack(install, &run, &refused)));
            }
        }
        store.keep(installs, checkout.root(), &layers)?;
        checkout.discard()?;
        Ok(InstallEnd::Whole)
    }

    /// Returns what may be used of the host and the network by tools that ask registries.
    pub(super) fn reach(
        &self,
        installs: &[&InstallStep],
        way: InstallSource,
    ) -> Result<ToolReach, Failure> {
        Ok(match way {
            InstallSource::Offline => ToolReach {
                grants: self.grants.clone(),
                network: NetworkMode::None,
                env: BTreeMap::new(),
            },
            InstallSource::Download => ToolReach {
                grants: self.reaching(installs)?,
                network: self.site.downloads.network,
                env: client_variables(self.grants),
            },
        })
    }

    /// Returns what may be used of the host, and the registries' hosts with it.
    fn reaching(&self, installs: &[&InstallStep]) -> Result<HostGrants, Failure> {
        let away = self.site.scratch.join("prepare-away");
        kapi_run::home::make_anew(&away)?;
        let mut grants = self.grants.clone();
        let asked = installs.iter().map(|install| install.hosts(&grants, &away));
        let allowed = self.site.downloads.registries.iter().cloned();
        for host in asked.flatten().chain(allowed).collect::<Vec<_>>() {
            grants.grant.allow.extend(registries::rules(&host));
        }
        Ok(grants)
    }
}

/// What is to be installed, and where it is kept.
#[derive(Clone, Copy)]
struct InstallPlan<'a> {
    installs: &'a [(InstallStep, Vec<u8>)],
    store: &'a PreparedStore,
}

/// What tools that ask registries may use.
pub(super) struct ToolReach {
    /// Of the host.
    pub(super) grants: HostGrants,
    /// Of the network.
    pub(super) network: NetworkMode,
    /// Variables by which they are told where to ask.
    pub(super) env: BTreeMap<OsString, OsString>,
}

/// Where from something is installed.
#[derive(Clone, Copy)]
pub(super) enum InstallSource {
    /// From what the person downloaded before.
    Offline,
    /// From the registries.
    Download,
}

/// How installing ended.
enum InstallEnd {
    Whole,
    Not(Lacking),
    Cancelled,
}

/// Says why something could not be installed. `refused` holds hosts, each with the reason.
fn lack(install: &InstallStep, run: &VerifyRun, refused: &BTreeMap<String, String>) -> Lacking {
    let lock = install.lock.display();
    let last = run.output_tail.trim().lines().last().unwrap_or_default();
    let why = if refused.is_empty() {
        last.to_owned()
    } else {
        let refusals = refused
            .iter()
            .map(|(host, reason)| format!("{host} was refused: {reason}"));
        refusals.collect::<Vec<_>>().join("; ")
    };
    Lacking {
        why: format!(
            "{lock} changed and `{}` could not install its dependencies: {why}",
            install.line_at_top()
        ),
        refused: refused.keys().cloned().collect(),
    }
}
