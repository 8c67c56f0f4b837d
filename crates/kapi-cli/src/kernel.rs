//! The kernel of the project at hand, composed: what was set for it, what may be submitted, who can
//! work, and its queue.
//!
//! Built by every command that submits, performs or shows tasks. Decides nothing itself.

pub(crate) mod foreground;
pub(crate) mod listening;
mod missing_agents;
mod owned;
pub(crate) mod performing;
mod retention;
mod task_store;
pub(crate) mod terms;
mod transcripts;
pub(crate) mod workers;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kapi_core::actor::Actor;
use kapi_core::failure::chain;
use kapi_core::state_directory::{OWN_LOOPS, STATE_DIRECTORY};
use kapi_core::task_id::KernelTaskId;
use kapi_goal::perform::survey::RepositorySurvey;
use kapi_goal::record::project::Project;
use kapi_store::error::StoreError;
use kapi_sys::clock::Clock as _;
use kapi_sys::lock::LockError;
use kapi_task::perform::travel;
use kapi_task::perform::travel::CommitReturn;
use kapi_task::record::admission::TaskAdmission;
use kapi_task::record::definition_file::LoopCatalog;
use kapi_task::record::error::KernelError;
use kapi_task::record::guardrails::GuardrailMemory;
use kapi_task::record::policy_file::PolicyPaths;
use kapi_task::record::profile_file::{AgentProfile, AgentProfiles};
use kapi_task::record::queue::Queue;
use kapi_task::record::store::KernelStore;
use kapi_task::record::terms::KernelTerms;
use kapi_task::record::{definition_file, policy_file, profile_file};
use kapi_task::rules::definition::Definition;
use kapi_task::rules::definition::trigger::LoopTrigger;
use kapi_task::rules::denied::KernelDenial;
use kapi_task::rules::policy::Policy;
use kapi_task::rules::request::TaskOrigin;
use kapi_task::rules::task::KernelTask;
use kapi_task::rules::task_terms::{Priority, TaskBudget};

use crate::config::Config;
use crate::context::Context;
use crate::contract::participants;
use crate::contract::participants::CountedLimits;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel::task_store::TaskStoreSource;
use crate::kernel::terms::{ResolvedTerms, SettingRow};

/// The kernel of one project, seen by one process.
pub(crate) struct ProjectKernel<'a> {
    pub(crate) context: &'a Context,
    pub(crate) project: &'a Project<'a>,
    pub(crate) config: &'a Config,
    /// What was set for it.
    pub(crate) terms: KernelTerms,
    /// What may be submitted at all.
    pub(crate) policy: Policy,
    /// Who can work.
    pub(crate) profiles: AgentProfiles,
    /// Where its queue is kept.
    pub(crate) store: KernelStore,
    /// Every value that was set, with its place.
    pub(crate) settings: Vec<SettingRow>,
    priorities: BTreeMap<String, Priority>,
}

impl<'a> ProjectKernel<'a> {
    /// Reads what was set for the kernel of a project.
    pub(crate) fn new(
        context: &'a Context,
        project: &'a Project<'a>,
        config: &'a Config,
    ) -> Result<Self, Error> {
        let resolved = terms::resolve(context, project, config)?;
        let location = task_store::resolve(context, project, config)?;
        Ok(Self::resolved(context, project, config, resolved, location))
    }

    /// Takes what another configuration sets for the kernel.
    ///
    /// # Errors
    /// When a value of it is none.
    pub(crate) fn with_terms_of(mut self, config: &Config) -> Result<Self, Error> {
        let resolved = terms::resolve(self.context, self.project, config)?;
        self.terms = resolved.terms;
        self.settings = resolved.settings;
        self.priorities = resolved.priorities;
        Ok(self)
    }

    /// Reads the same for whoever only shows it: where it cannot be read, what holds when nobody
    /// set anything, and why.
    pub(crate) fn lenient(
        context: &'a Context,
        project: &'a Project<'a>,
        config: &'a Config,
    ) -> (Self, Option<Error>) {
        let resolved = terms::resolve(context, project, config);
        let location = task_store::resolve(context, project, config);
        let (resolved, location, error) = match (resolved, location) {
            (Ok(resolved), Ok(location)) => (resolved, location, None),
            (Ok(resolved), Err(error)) => (resolved, task_store::files(), Some(error)),
            (Err(error), Ok(location)) => (terms::standard(project), location, Some(error)),
            (Err(error), Err(_)) => (terms::standard(project), task_store::files(), Some(error)),
        };
        let kernel = Self::resolved(context, project, config, resolved, location);
        (kernel, error)
    }

    fn resolved(
        context: &'a Context,
        project: &'a Project<'a>,
        config: &'a Config,
        resolved: ResolvedTerms,
        location: TaskStoreSource,
    ) -> Self {
        let root = project.layout.root();
        let person = person_dir(context);
        let policy = policy_file::load(PolicyPaths {
            project: root,
            person,
        });
        let mut settings = resolved.settings;
        settings.push(location.setting);
        Self {
            terms: resolved.terms,
            settings,
            store: location.store,
            priorities: resolved.priorities,
            policy,
            profiles: profile_file::discover(root, start(context, root), person),
            context,
            project,
            config,
        }
    }

    /// Makes the state directory, for whoever is about to write to it; refuses a queue that was not
    /// made here.
    pub(crate) fn prepare(&self) -> Result<(), Error> {
        self.context.require_own_state(self.project.layout.root())?;
        self.project
            .prepare()
            .map_err(|error| Error::engine(&error, ""))?;
        owned::require(self.context, self.project)
    }

    /// Takes over a queue that was made somewhere else.
    pub(crate) fn adopt(&self) -> Result<(), Error> {
        self.context.require_own_state(self.project.layout.root())?;
        owned::adopt(self.context, self.project)
    }

    /// Tells whether the queue was made somewhere else and waits to be taken over.
    pub(crate) fn is_foreign(&self) -> Result<bool, Error> {
        owned::is_foreign(self.context, self.project)
    }

    /// Returns how urgent a profile's tasks are when a request does not say.
    pub(crate) fn priority(&self, agent: &str) -> Priority {
        self.priorities.get(agent).copied().unwrap_or_default()
    }

    /// Returns in whose name this process asks, and how deep below other tasks: an agent's task is
    /// one deeper than the task that it works on.
    pub(crate) fn asker(&self, queue: &Queue<'_>) -> (TaskOrigin, u32) {
        match &self.context.actor {
            Actor::Human { user } => (TaskOrigin::Person { user: user.clone() }, 0),
            Actor::Engine => (
                TaskOrigin::Person {
                    user: "kapi".to_owned(),
                },
                0,
            ),
            Actor::Agent { run } => {
                let mut tasks = queue.kernel().tasks.values();
                let task = tasks.find(|task| is_run_of(run, task));
                let origin = TaskOrigin::Agent {
                    run: run.clone(),
                    task: task.map(|task| task.id),
                };
                (origin, task.map_or(1, |task| task.request.depth + 1))
            }
        }
    }

    /// Opens the queue, which may be empty.
    pub(crate) fn queue(&self) -> Result<Queue<'a>, Error> {
        Queue::open_in(self.project, &self.store).map_err(|error| failed(&error))
    }

    /// Reads the loops of the project as their files are now.
    pub(crate) fn loops(&self) -> LoopCatalog {
        let root = self.project.layout.root();
        let mut found = definition_file::discover(root, start(self.context, root));
        self.mark_tracked(&mut found);
        found
    }

    /// Notes which loops may have come with the repository.
    fn mark_tracked(&self, found: &mut LoopCatalog) {
        let is_own = |definition: &&mut Definition| {
            let triggers_itself = definition.trigger != LoopTrigger::Manual;
            triggers_itself && definition.source.file.starts_with(OWN_LOOPS)
        };
        let own: Vec<&mut Definition> = found.definitions.iter_mut().filter(is_own).collect();
        if own.is_empty() {
            return;
        }
        let grants = self.context.grants(self.config);
        let survey = RepositorySurvey::of(&grants, self.project.layout.root());
        let base = survey
            .as_ref()
            .ok()
            .and_then(|survey| survey.base("HEAD").ok());
        let (Ok(survey), Some(base)) = (survey, base) else {
            // Without a repository or a commit nothing can have come with it.
            return;
        };
        for definition in own {
            let files =
                survey.protected_files(&base, std::slice::from_ref(&definition.source.file));
            definition.source.is_tracked = files.is_ok_and(|count| count > 0);
        }
    }

    /// Returns the memory of lessons.
    pub(crate) fn memory(&self) -> GuardrailMemory<'a> {
        GuardrailMemory {
            disk: self.project.disk,
            clock: self.project.clock,
            project: self.project.layout.root().to_path_buf(),
            dir: self.terms.guardrails_dir.clone(),
            owner: self.project.owner.clone(),
            accept_after_hits: self.terms.accept_learnt_after,
        }
    }

    /// Does something at the door by which tasks come in.
    pub(crate) fn at_admission<T>(&self, then: impl FnOnce(&TaskAdmission<'_>) -> T) -> T {
        let now_ms = self.context.clock.now_ms();
        let local_times = policy_file::local_times(&self.policy, now_ms);
        then(&TaskAdmission {
            policy: &self.policy,
            local_times: &local_times,
            terms: &self.terms,
            is_unattended: true,
            base: &|named| {
                let grants = self.context.grants(self.config);
                let root = self.project.layout.root();
                travel::offer_base(&grants, root, &self.store, named)
            },
        })
    }

    /// Brings what a task that has ended made to this machine, and says where it is; says only why
    /// where it cannot be had.
    pub(crate) fn bring_home(&self, task: &KernelTask) {
        if !task.state.is_ended() {
            return;
        }
        let grants = self.context.grants(self.config);
        let root = self.project.layout.root();
        let id = task.id;
        match travel::bring_home(&grants, root, &self.store, task) {
            Ok(CommitReturn::Nothing | CommitReturn::Branch(_)) => {}
            Ok(CommitReturn::HeldBack { reference }) => self
                .context
                .ui
                .say(&format!("note: the commit of {id} is at {reference}.")),
            Ok(CommitReturn::Aside { reference }) => self.context.ui.say(&format!(
                "note: the branch of {id} has other work here, so its commit is at {reference}."
            )),
            Err(lack) => self.context.ui.say(&format!(
                "note: the commit of {id} has not arrived yet: {lack}."
            )),
        }
    }

    /// Refuses limits of money and tokens that nobody could measure for the agent of a request.
    pub(crate) fn check_limits(
        &self,
        backend: Option<&String>,
        profile: &AgentProfile,
        budget: &TaskBudget,
    ) -> Result<(), Error> {
        let agent = backend.or(profile.backend.as_ref());
        let Some(agent) = agent.or(self.terms.default_backend.as_ref()) else {
            return Ok(());
        };
        let limits = CountedLimits {
            money: budget.usd_micros.is_some(),
            tokens: budget.tokens.is_some(),
            instead_of_money: "`--tokens` or `--time`",
            instead_of_tokens: "`--time`",
        };
        participants::check_uncounted(self.context, self.config, agent, &limits)
    }

    /// Returns the profile with a name, or the default one.
    pub(crate) fn profile(&self, name: Option<&str>) -> Result<&AgentProfile, Error> {
        let name = name.unwrap_or(&self.terms.default_agent);
        self.profiles.find(name).map_err(|unknown| {
            let error = Error::new(Exit::NotFound, format!("unknown agent profile: {name}"));
            let fault = unknown.fault.map(|fault| fault.to_string());
            let meant = unknown.meant.map(|meant| format!("did you mean {meant}?"));
            let known = format!("available: {}.", unknown.known.join(", "));
            error.with_hint(fault.or(meant).unwrap_or(known))
        })
    }
}

/// Does something with the kernel of the project at hand; `owner` is told to who waits for us.
pub(crate) fn with<T>(
    context: &Context,
    owner: &str,
    then: impl FnOnce(&ProjectKernel<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let root = root(context)?;
    let project = context.project(&root, owner);
    let config = context.config(Some(project.layout.root()))?;
    then(&ProjectKernel::new(context, &project, &config)?)
}

/// Does the same where there may be no project yet: the directory at hand becomes one.
pub(crate) fn with_here<T>(
    context: &Context,
    owner: &str,
    then: impl FnOnce(&ProjectKernel<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    // Nobody means their whole home, or the machine.
    let is_wide = context.home.starts_with(&context.cwd);
    let root = root(context).or_else(|error| {
        if is_wide {
            Err(error)
        } else {
            Ok(context.cwd.clone())
        }
    })?;
    let project = context.project(&root, owner);
    let config = context.config(Some(project.layout.root()))?;
    then(&ProjectKernel::new(context, &project, &config)?)
}

/// Returns the project at hand: the nearest directory upward that is a repository or has tasks or
/// goals.
pub(crate) fn root(context: &Context) -> Result<PathBuf, Error> {
    let is_project = |dir: &&Path| {
        let state = dir.join(STATE_DIRECTORY);
        let has_state = ["goals", "kernel"]
            .iter()
            .any(|name| state.join(name).is_dir());
        // A repository within another is a project of its own.
        has_state || dir.join(".git").exists()
    };
    let found = context.cwd.ancestors().find(is_project);
    found.map(Path::to_path_buf).ok_or_else(|| {
        let text = format!("there is no project in {}", context.cwd.display());
        Error::new(Exit::NotFound, text)
            .with_hint("run it inside a git repository, or create one with `git init`.")
    })
}

/// Tells whether a run is that of the attempt at a task that is under way: its name holds the
/// sandbox's between dashes.
fn is_run_of(run: &str, task: &KernelTask) -> bool {
    let lease = task.lease.as_ref();
    lease.is_some_and(|lease| run.contains(&format!("-{}-{}-", task.id, lease.fence)))
}

/// Returns the error of a task that is not there.
pub(crate) fn no_task(id: KernelTaskId) -> Error {
    failed(&KernelError::Denied(KernelDenial::NoTask { task: id }))
}

/// Returns the directory of the person's configuration.
fn person_dir(context: &Context) -> &Path {
    context.config_path.parent().unwrap_or(&context.config_path)
}

/// Returns where files of the project are looked for from: where the person stands, if that is in it.
fn start<'p>(context: &'p Context, root: &'p Path) -> &'p Path {
    if context.cwd.starts_with(root) {
        &context.cwd
    } else {
        root
    }
}

/// Says why the kernel could not answer.
pub(crate) fn failed(error: &KernelError) -> Error {
    let (exit, text) = match error {
        // The words of the specification stand first.
        KernelError::Denied(denied) => (denied_exit(denied), denied.to_string()),
        KernelError::Policy(_) => (Exit::Denied, error.to_string()),
        KernelError::Inputs(inputs) => (Exit::Usage, format!("failed to {inputs}")),
        KernelError::Store(StoreError::Lock(LockError::Busy { .. })) | KernelError::Place(_) => {
            (Exit::Busy, format!("failed to {}", chain(error)))
        }
        KernelError::Store(_)
        | KernelError::Fleet(_)
        | KernelError::Base { .. }
        | KernelError::UnknownEvent { .. }
        | KernelError::NotDerived(_)
        | KernelError::BadHistory { .. } => (Exit::Failed, format!("failed to {}", chain(error))),
        KernelError::Encode { .. } => (Exit::Internal, format!("failed to {}", chain(error))),
    };
    let mut failed = Error::new(exit, text).with_shortage_of(error);
    failed.hint = error.hint();
    failed
}

/// What was typed wrong, is not there, or finds no room reads differently from what is not allowed.
const fn denied_exit(denied: &KernelDenial) -> Exit {
    match denied {
        KernelDenial::BadRequest { .. } => Exit::Usage,
        KernelDenial::NoTask { .. } => Exit::NotFound,
        KernelDenial::OverCapacity { .. } | KernelDenial::Led { .. } => Exit::Busy,
        KernelDenial::TooDeep { .. }
        | KernelDenial::WrongState { .. }
        | KernelDenial::Fenced { .. }
        | KernelDenial::WrongPhase { .. }
        | KernelDenial::OnlyHuman { .. }
        | KernelDenial::OnlyEngine { .. }
        | KernelDenial::NotYours { .. } => Exit::Denied,
    }
}
