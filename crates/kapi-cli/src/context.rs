//! What every command stands on: who asks, where, with which files and clock.
//!
//! Built once in `main`; nothing below reads the environment again.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use kapi_check::perform::dependencies::registries;
use kapi_core::actor::Actor;
use kapi_core::failure::chain;
use kapi_core::id::GoalId;
use kapi_core::state_directory::{OWN_LOOPS, POLICY_FILE, STATE_DIRECTORY};
use kapi_core::text::counted;
use kapi_gateway::egress::host_proxy::HostProxy;
use kapi_gateway::egress::rule::EgressRule;
use kapi_goal::perform::survey::RepositorySurvey;
use kapi_goal::record::audit::audit_goal;
use kapi_goal::record::preferences::{PreferenceValues, Preferences};
use kapi_goal::record::project::Project;
use kapi_run::goal_paths::GoalPaths;
use kapi_run::grant::Grant;
use kapi_run::host_grants::HostGrants;
use kapi_run::spending::Spending;
use kapi_run::tool_client::RUN_ID_VARIABLE;
use kapi_spend::record::{Ledger, LedgerHome};
use kapi_store::layout::{HomeLayout, ProjectLayout, project_key};
use kapi_sys::clock::SystemClock;
use kapi_sys::process::{self, AncestorProcess};
use kapi_sys::real_disk::RealDisk;
use kapi_sys::shortage;
use kapi_task::record::terms::GUARDRAILS;

use crate::config::deliver::DeliverArgs;
use crate::config::notify::NotifyArgs;
use crate::config::{self, Config};
use crate::error::Error;
use crate::exit_code::Exit;
use crate::key_files;
use crate::ui::Ui;

/// What every command stands on.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    /// The door to the terminal.
    pub(crate) ui: Ui,
    /// The whole environment.
    pub(crate) env: BTreeMap<OsString, OsString>,
    /// The working directory.
    pub(crate) cwd: PathBuf,
    /// The person's home.
    pub(crate) home: PathBuf,
    /// This executable.
    pub(crate) self_exe: PathBuf,
    /// Who asks.
    pub(crate) actor: Actor,
    /// The disk.
    pub(crate) disk: RealDisk,
    /// The clock.
    pub(crate) clock: SystemClock,
    /// Where the person's configuration is.
    pub(crate) config_path: PathBuf,
    /// Where tasks are kept, as a flag of this command line says it.
    pub(crate) store: Option<String>,
    /// Who is told when work ends or waits, as flags of this command line say it.
    pub(crate) notify: NotifyArgs,
    /// Where the result goes, as far as options say.
    pub(crate) deliver: DeliverArgs,
    /// What has to be allowed for registries to be reached, by ecosystem: clients are asked once.
    pub(crate) registries: Arc<Mutex<BTreeMap<String, Vec<EgressRule>>>>,
}

/// What a run may add on disk where nobody says anything.
const DISK_BYTES_DEFAULT: u64 = 20 << 30;

/// Returns the standard limit on what a run adds on disk: never more than half of what is free.
fn disk_bytes_default(home: &Path) -> Option<u64> {
    let free = shortage::free_bytes(home).ok()?;
    Some(DISK_BYTES_DEFAULT.min(free / 2).max(1))
}

impl Context {
    /// Looks at the process once.
    pub(crate) fn new(ui: Ui) -> Result<Self, Error> {
        let mut env = process::environment();
        let internal = |what: &str, error: &dyn std::error::Error| {
            Error::new(Exit::Failed, format!("failed to {what}: {error}"))
        };
        let cwd = std::env::current_dir()
            .map_err(|error| internal("find the working directory", &error))?;
        let self_exe = process::current_exe()
            .map_err(|error| internal("find the path of this program", &error))?;
        let home = env
            .get(OsStr::new("HOME"))
            .map(PathBuf::from)
            .filter(|home| home.is_absolute())
            .ok_or_else(|| {
                Error::usage("HOME is not set to an absolute path")
                    .with_hint("set it to your home directory, such as `export HOME=/home/user`.")
            })?;
        let actor = actor(&env, &self_exe);
        let xdg = env.get(OsStr::new("XDG_CONFIG_HOME")).map(PathBuf::from);
        let config_path = config::person_path(&home, xdg.as_deref());
        key_files::add(&mut env, config_path.parent())?;
        let (disk, clock) = (RealDisk, SystemClock);
        Ok(Self {
            ui,
            env,
            cwd,
            home,
            self_exe,
            actor,
            disk,
            clock,
            config_path,
            store: None,
            notify: NotifyArgs::default(),
            deliver: DeliverArgs::default(),
            registries: Arc::default(),
        })
    }

    /// Returns the same with what a flag says of where tasks are kept.
    pub(crate) fn with_store(&self, store: Option<&str>) -> Self {
        Self {
            store: store.map(str::to_owned),
            ..self.clone()
        }
    }

    /// Returns the same with what flags say of who is told.
    pub(crate) fn with_notify(&self, notify: &NotifyArgs) -> Self {
        Self {
            notify: notify.clone(),
            ..self.clone()
        }
    }

    /// Returns the same with what flags say of where the result goes.
    pub(crate) fn with_deliver(&self, deliver: &DeliverArgs) -> Self {
        Self {
            deliver: deliver.clone(),
            ..self.clone()
        }
    }

    /// Returns a variable as text.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.env
            .get(OsStr::new(name))
            .and_then(|value| value.to_str())
    }

    /// Reads the configuration for a project, or outside any.
    pub(crate) fn config(&self, project: Option<&Path>) -> Result<Config, Error> {
        let mut config = config::load(&self.config_path, project, &self.home, &self.env)?;
        let proxy = HostProxy::of(&self.env).map_err(|error| {
            let text = format!("failed to {}", chain(&error));
            Error::usage(text).with_hint(
                "set https_proxy to an http:// proxy, or NO_PROXY=* if this machine needs none.",
            )
        })?;
        let resources = &mut config.grant.resources;
        resources.disk_bytes = resources
            .disk_bytes
            .or_else(|| disk_bytes_default(&self.home));
        config.grant.host_proxy.clone_from(&proxy);
        config.person.0.host_proxy = proxy;
        Ok(config)
    }

    /// Returns what the engine needs to work in a project. Approvals are of its real path, by
    /// whatever way somebody came there.
    pub(crate) fn project(&self, root: &Path, owner: &str) -> Project<'_> {
        let real = fs::canonicalize(root).unwrap_or_else(|_| root.to_path_buf());
        Project {
            disk: &self.disk,
            clock: &self.clock,
            layout: ProjectLayout::new(real),
            owner: owner.to_owned(),
            home: Some(self.home.clone()),
        }
    }

    /// Returns the project of the working directory and the goal a reference names in it.
    pub(crate) fn find_goal(
        &self,
        reference: &str,
        owner: &str,
    ) -> Result<(Project<'_>, GoalId), Error> {
        let project = self.project(&self.project_root()?, owner);
        let id = project
            .resolve(reference)
            .map_err(|error| Error::resolve(&error))?;
        Ok((project, id))
    }

    /// Returns the same for a command that writes: the whole log must be sound before it grows.
    pub(crate) fn find_sound_goal(
        &self,
        reference: &str,
        owner: &str,
    ) -> Result<(Project<'_>, GoalId), Error> {
        let (project, id) = self.find_goal(reference, owner)?;
        self.require_own_state(project.layout.root())?;
        let audit =
            audit_goal(&project, &id).map_err(|error| Error::engine(&error, &id.to_string()))?;
        match audit.faults.first() {
            None => Ok((project, id)),
            Some(fault) => Err(
                Error::new(Exit::Failed, format!("failed to {}", chain(fault)))
                    .with_hint("`kapi audit` lists the damage; nothing was changed."),
            ),
        }
    }

    /// Refuses state that came with a repository or was left by an agent: goals in it may say that
    /// somebody approved them, and nobody here did. Loops, rules and lessons are a repository's to
    /// bring; they approve nothing, and such a loop is triggered only once a person enables it.
    pub(crate) fn require_own_state(&self, root: &Path) -> Result<(), Error> {
        let brought = [
            format!("{OWN_LOOPS}/*.md"),
            format!("{STATE_DIRECTORY}/{POLICY_FILE}"),
            format!("{STATE_DIRECTORY}/{GUARDRAILS}/*.md"),
            format!("{STATE_DIRECTORY}/.gitignore"),
        ];
        let state = format!("{STATE_DIRECTORY}/**");
        let kapi_own = HomeLayout::new(&self.home);
        if root.starts_with(kapi_own.state_dir()) {
            let text = format!("{} is the workspace of an agent", root.display());
            return Err(
                Error::new(Exit::Denied, text).with_hint("change to the project directory itself.")
            );
        }
        let grants = self.grants(&Config::unconfigured());
        // Without a repository or a commit in it nothing can have come with it.
        let Ok(survey) = RepositorySurvey::of(&grants, root) else {
            return Ok(());
        };
        let Ok(base) = survey.base("HEAD") else {
            return Ok(());
        };
        let count = |globs: &[String]| {
            survey
                .protected_files(&base, globs)
                .map_err(|failure| Error::world(&failure))
        };
        let tracked = count(&[state])?.saturating_sub(count(&brought)?);
        if tracked == 0 {
            return Ok(());
        }
        let text = format!(
            "the repository contains goals: git tracks {} in {}",
            counted(tracked, "file"),
            root.join(STATE_DIRECTORY).display()
        );
        Err(Error::new(Exit::Denied, text).with_hint(
            "nobody on this machine approved them. Remove them with `git rm -r .ilchul`, and commit; \
             only `.ilchul/loops`, `.ilchul/guardrails` and `.ilchul/policy.yaml` belong to a \
             repository.",
        ))
    }

    /// Returns what runs may use of the host.
    pub(crate) fn grants(&self, config: &Config) -> HostGrants {
        HostGrants {
            agents: config.agents.clone(),
            judges: config.judges.clone(),
            prices: config.spending.prices.clone(),
            grant: self.with_registries(config.grant.clone()),
            env: self.env.clone(),
            home: self.home.clone(),
            self_exe: self.self_exe.clone(),
        }
    }

    /// Returns what is granted, with the registries that it names by their ecosystems among the hosts.
    pub(crate) fn with_registries(&self, mut grant: Grant) -> Grant {
        let rules = grant
            .registries
            .iter()
            .map(|name| self.registry_rules(name));
        let rules: Vec<EgressRule> = rules.flatten().collect();
        grant.allow.extend(rules);
        grant
    }

    /// Returns what has to be allowed for the registries of an ecosystem that the person's own clients
    /// ask; nothing where no client says which these are.
    pub(crate) fn registry_rules(&self, ecosystem: &str) -> Vec<EgressRule> {
        let mut known = self
            .registries
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let asked = || registries::rules_of(ecosystem, &self.env, Path::new("/"));
        let found = known.entry(ecosystem.to_owned());
        found.or_insert_with(|| asked().unwrap_or_default()).clone()
    }

    /// Opens the ledger for what turns in a project cost.
    ///
    /// Where it cannot be had, nothing is begun if there are caps to keep; without caps the turns
    /// go on unbooked, and that is said.
    pub(crate) fn spending(&self, root: &Path, config: &Config) -> Result<Spending<'_>, Error> {
        let home = LedgerHome {
            disk: &self.disk,
            clock: &self.clock,
            home: self.home.clone(),
            owner: "kapi".to_owned(),
        };
        let mut spending = Spending {
            ledger: None,
            caps: config.spending.caps,
            project: Self::key(root)?,
            clock: &self.clock,
        };
        match Ledger::open(home) {
            Ok(ledger) => spending.ledger = Some(ledger),
            Err(error) if spending.has_caps() => {
                let text = format!("failed to enforce the spending caps: {}", chain(&error));
                let mut failed = Error::new(Exit::Failed, text);
                failed.hint = error.hint();
                return Err(failed);
            }
            Err(error) => self.ui.say(&format!(
                "note: the cost of turns is not recorded: failed to {}",
                chain(&error)
            )),
        }
        Ok(spending)
    }

    /// Returns where a goal's things are.
    pub(crate) fn location(&self, project: &Project<'_>, id: &GoalId) -> Result<GoalPaths, Error> {
        let root = project.layout.root();
        let key = Self::key(root)?;
        let home = HomeLayout::new(&self.home);
        // Linked worktrees share the refs of one repository but not Kapi's indexes.
        let is_linked = root.join(".git").is_file();
        let ref_name = if is_linked {
            format!("{key}-{id}")
        } else {
            id.to_string()
        };
        Ok(GoalPaths {
            project: root.to_path_buf(),
            ref_name: ref_name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "-"),
            worktree: home.worktree(&key, id),
            runs: project.layout.state_dir().join("runs"),
            hidden: home.hidden(&key, id),
            scratch: home.sandbox(&key, id),
            stores: home.stores_dir(),
        })
    }

    /// Returns where the index is that the person's own checkout is first committed with.
    pub(crate) fn checkout_index(&self, root: &Path) -> Result<PathBuf, Error> {
        let home = HomeLayout::new(&self.home);
        Ok(home.checkout_index(&Self::key(root)?))
    }

    /// Returns where the person's preferences for a project are.
    pub(crate) fn preferences(&self, root: &Path) -> Result<Preferences<'_>, Error> {
        Ok(Preferences {
            disk: &self.disk,
            clock: &self.clock,
            home: self.home.clone(),
            project_key: Self::key(root)?,
            owner: "kapi goal".to_owned(),
        })
    }

    /// Returns what the person prefers in a project.
    pub(crate) fn preferred(&self, root: &Path) -> Result<PreferenceValues, Error> {
        let preferences = self.preferences(root)?;
        preferences
            .load()
            .map_err(|error| Error::engine(&error, ""))
    }

    fn key(root: &Path) -> Result<String, Error> {
        let real = fs::canonicalize(root).map_err(|error| {
            Error::new(
                Exit::Failed,
                format!("failed to resolve {}: {error}", root.display()),
            )
        })?;
        Ok(project_key(&real))
    }

    /// Refuses when an agent asks for what only a person may do.
    pub(crate) fn require_human(&self, action: &str) -> Result<(), Error> {
        match &self.actor {
            Actor::Human { .. } => Ok(()),
            Actor::Agent { run } => Err(Error::new(
                Exit::Denied,
                format!("only the user may {action}; this process belongs to agent run {run}"),
            )
            .with_hint("ask the user to run the command in their own terminal.")),
            Actor::Engine => Err(Error::new(
                Exit::Denied,
                format!("only the user may {action}"),
            )),
        }
    }

    /// Returns the nearest directory upward that holds Kapi's state.
    pub(crate) fn project_root(&self) -> Result<PathBuf, Error> {
        let is_project = |dir: &Path| {
            let state = dir.join(STATE_DIRECTORY);
            ["goals", "workflows"]
                .iter()
                .any(|name| state.join(name).is_dir())
        };
        // A repository within another is a project of its own, whether it has goals or not.
        let is_limit = |dir: &Path| is_project(dir) || dir.join(".git").exists();
        let nearest = self.cwd.ancestors().find(|dir| is_limit(dir));
        let found = nearest.and_then(|dir| {
            // A worktree without state of its own belongs to the repository it is of.
            let main = || main_worktree(dir).filter(|main| is_project(main));
            is_project(dir).then(|| dir.to_path_buf()).or_else(main)
        });
        found.ok_or_else(|| {
            Error::new(
                Exit::NotFound,
                format!("there are no goals in {}", self.cwd.display()),
            )
            .with_hint("start one with `kapi run \"<task>\" --verify \"<command>\"`.")
        })
    }
}

/// Returns the main worktree of the repository that a linked worktree is of.
///
/// The file in the worktree may be anybody's, so the repository has to name the worktree as well
/// (gitrepository-layout(5), `worktrees/<id>/gitdir`).
fn main_worktree(dir: &Path) -> Option<PathBuf> {
    let link = dir.join(".git");
    let text = fs::read_to_string(&link).ok()?;
    let entry = Path::new(text.strip_prefix("gitdir: ")?.trim_end());
    let named = fs::read_to_string(entry.join("gitdir")).ok()?;
    let entries = entry
        .parent()
        .filter(|dir| dir.ends_with(".git/worktrees"))?;
    let is_named = fs::canonicalize(named.trim_end()).ok()? == fs::canonicalize(&link).ok()?;
    let main = entries.parent()?.parent()?;
    is_named.then(|| main.to_path_buf())
}

/// A process inside an agent run acts as that agent, even when it cleared its own environment or
/// let go of its parents: what runs below `kapi` was never started by a person.
fn actor(env: &BTreeMap<OsString, OsString>, self_exe: &Path) -> Actor {
    if let Some(run) = env.get(OsStr::new(RUN_ID_VARIABLE)) {
        let run = run.to_string_lossy().into_owned();
        return Actor::Agent { run };
    }
    let ancestors = process::parent_chain();
    let marked = ancestors.iter().find_map(run_in_environment);
    let above = ancestors.get(1..).unwrap_or_default();
    let below = || {
        let kapi = above
            .iter()
            .find(|process| process.exe.as_deref() == Some(self_exe));
        kapi.map(|kapi| format!("below process {}", kapi.pid))
    };
    if let Some(run) = marked.or_else(below) {
        return Actor::Agent { run };
    }
    let name = |variable: &str| env.get(OsStr::new(variable));
    let user = name("USER").or_else(|| name("LOGNAME"));
    let user = user.map(|user| user.to_string_lossy().into_owned());
    Actor::Human {
        user: user.unwrap_or_else(|| uid_text().unwrap_or_default()),
    }
}

fn run_in_environment(process: &AncestorProcess) -> Option<String> {
    let marker = format!("{RUN_ID_VARIABLE}=");
    let mut entries = process.environ.as_ref()?.split(|byte| *byte == 0);
    let run = entries.find_map(|entry| entry.strip_prefix(marker.as_bytes()))?;
    Some(String::from_utf8_lossy(run).into_owned())
}

fn uid_text() -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("Uid:"))?;
    line.split_whitespace()
        .nth(1)
        .map(|uid| format!("uid {uid}"))
}
