//! What the person's configuration says of agents and sandboxes.
//!
//! Resolved before it arrives here; nothing is read or defaulted from files.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use kapi_agent::agent::AgentKind;
use kapi_agent::settings::AgentSettings;
use kapi_core::agent_models::AgentModels;
use kapi_sandbox::search_path;
use kapi_spend::rules::prices::Prices;
use kapi_sys::process;

use crate::grant::Grant;
use crate::judge_settings::ProviderSettings;

/// Everything a run may use of the host, granted by the person.
#[derive(Debug, Clone)]
pub struct HostGrants {
    /// `[agents.<name>]`.
    pub agents: BTreeMap<String, AgentSettings>,
    /// `[judges.<provider>]`: where models that judge are asked.
    pub judges: BTreeMap<String, ProviderSettings>,
    /// What models cost.
    pub prices: Prices,
    /// What runs may see, reach and use.
    pub grant: Grant,
    /// The whole environment of this process; only named variables of it are passed on.
    pub env: BTreeMap<OsString, OsString>,
    /// The person's home.
    pub home: PathBuf,
    /// The executable of Kapi.
    pub self_exe: PathBuf,
}

impl HostGrants {
    /// Returns the settings of an agent; defaults where the person said nothing.
    #[must_use]
    pub fn settings(&self, kind: &AgentKind) -> AgentSettings {
        self.agents.get(kind.name()).cloned().unwrap_or_default()
    }

    /// Keeps agents to the models that a person approved for them.
    #[must_use]
    pub fn with_models(mut self, approved: &[AgentModels]) -> Self {
        for models in approved {
            let settings = self.agents.entry(models.agent.clone()).or_default();
            settings.model.clone_from(&models.model);
            settings.models.clone_from(&models.may_ask);
        }
        self
    }

    /// Returns the directories in which agents and what runs them are looked for: those of `PATH`,
    /// and those that package managers install into without it.
    #[must_use]
    pub fn search_path(&self) -> OsString {
        search_path::search_path(&self.env, &self.home)
    }

    /// Returns a program of this host by its name, or by an absolute path.
    #[must_use]
    pub fn find_program(&self, name: &str) -> Option<PathBuf> {
        let path = Path::new(name);
        if path.is_absolute() {
            return path.is_file().then(|| path.to_path_buf());
        }
        process::find_in_path(OsStr::new(name), &self.search_path())
    }

    /// Returns the search path for programs.
    #[must_use]
    pub fn path_variable(&self) -> OsString {
        self.env
            .get(OsStr::new("PATH"))
            .cloned()
            .unwrap_or_else(|| OsString::from("/usr/local/bin:/usr/bin:/bin"))
    }
}
