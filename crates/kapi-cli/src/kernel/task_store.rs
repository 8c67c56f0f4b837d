//! Where the tasks of the project at hand are kept: the one place where that is decided.
//!
//! A flag, else the environment, else the person's file, else the project's own files. Connects to
//! nobody.

use std::time::Duration;

use kapi_fleet::client::FleetSettings;
use kapi_goal::record::project::Project;
use kapi_task::perform::travel;
use kapi_task::record::store::KernelStore;

use crate::config::Config;
use crate::config::source::SourcedValue;
use crate::config::store::{self, TaskStoreLabel};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel::terms::SettingRow;

/// How long a cluster is asked before a request has failed: less than a lease lasts, so that a
/// worker that is cut off stops before another takes over.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where tasks are kept, and who said so.
pub(super) struct TaskStoreSource {
    pub(super) store: KernelStore,
    pub(super) setting: SettingRow,
}

/// Returns the project's own files.
pub(super) fn files() -> TaskStoreSource {
    TaskStoreSource {
        store: KernelStore::Files,
        setting: shown(&SourcedValue::default(TaskStoreLabel::Files)),
    }
}

/// Decides where tasks are kept.
pub(super) fn resolve(
    context: &Context,
    project: &Project<'_>,
    config: &Config,
) -> Result<TaskStoreSource, Error> {
    let said = &config.kernel.person.store;
    let flag = context.store.as_deref().map(store::flag).transpose()?;
    let Some(kept) = flag.or_else(|| said.kept.clone()) else {
        return Ok(files());
    };
    let setting = shown(&kept);
    let store = match kept.value {
        TaskStoreLabel::Files => KernelStore::Files,
        TaskStoreLabel::Cluster(address) => KernelStore::Fleet {
            project: name(context, project, config)?,
            settings: FleetSettings {
                replicas: said.replicas(&address),
                address: store::with_credentials(address, said.credentials.as_deref()),
                authorities: said.authorities.clone(),
                patience: PATIENCE,
            },
        },
    };
    Ok(TaskStoreSource { store, setting })
}

/// Returns what the project is called on every machine: by its first commit, unless it was named.
fn name(context: &Context, project: &Project<'_>, config: &Config) -> Result<String, Error> {
    if let Some(name) = &config.kernel.person.store.project {
        return Ok(name.value.clone());
    }
    let name = travel::project_name(&context.grants(config), project.layout.root());
    name.map_err(|lack| {
        let text = format!("the project has no name in the shared store: {lack}");
        Error::new(Exit::Usage, text).with_hint(
            "set `store_project` under `[kernel]` in your own config.toml on every machine.",
        )
    })
}

fn shown(kept: &SourcedValue<TaskStoreLabel>) -> SettingRow {
    SettingRow {
        key: "store".to_owned(),
        value: match &kept.value {
            TaskStoreLabel::Files => "files".to_owned(),
            TaskStoreLabel::Cluster(address) => address.to_string(),
        },
        source: kept.source.clone(),
    }
}
