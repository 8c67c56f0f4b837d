//! Agents that a profile, a loop or a configuration names and that are not installed, or that report
//! nothing of what a loop limits: each is told where it is written.
//!
//! Only looks for programs; whether one starts and is logged in is told by `kapi doctor --agents`.

use std::fs;
use std::path::Path;

use kapi_agent::manifest::manifest;
use kapi_core::task_id::LoopName;
use kapi_settings::fault::SettingsFault;
use kapi_task::record::definition_file;
use kapi_task::record::definition_file::LoopCatalog;

use crate::config::source::ValueSource;
use crate::contract::participants::is_installed;
use crate::kernel::ProjectKernel;

/// The key of a profile or loop that names its agent.
const KEY: &str = "backend";
/// The key of a configuration that names everybody's.
const DEFAULT_KEY: &str = "default_backend";
/// The key of a loop's limits.
const BUDGET: &str = "budget";
/// The largest file that a line is looked for in.
const FILE_BYTES_MAX: u64 = 1 << 20;

impl ProjectKernel<'_> {
    /// Returns every place that names an agent that is not installed.
    pub(crate) fn missing_agents(&self, loops: &LoopCatalog) -> Vec<SettingsFault> {
        let root = self.project.layout.root();
        let profiles = self.profiles.list.iter();
        let profiles = profiles.map(|profile| (&profile.source, profile.backend.as_ref()));
        let definitions = loops.definitions.iter();
        let definitions =
            definitions.map(|definition| (&definition.source.file, definition.backend.as_ref()));
        let mut faults = Vec::new();
        for (file, backend) in profiles.chain(definitions) {
            let Some(remedy) = backend.and_then(|backend| self.lacks(backend)) else {
                continue;
            };
            faults.push(SettingsFault {
                line: line_of(&root.join(file), KEY),
                file: file.clone(),
                ..fault(KEY, backend, remedy)
            });
        }
        let rows = self.settings.iter().filter(|row| row.key == DEFAULT_KEY);
        for row in rows {
            let ValueSource::Line { path, line } = &row.source else {
                continue;
            };
            if let Some(remedy) = self.lacks(&row.value) {
                faults.push(SettingsFault {
                    line: *line,
                    file: path.display().to_string(),
                    ..fault(DEFAULT_KEY, Some(&row.value), remedy)
                });
            }
        }
        faults
    }

    /// Returns every loop with a limit that nobody could measure for its agent: nothing triggers it.
    pub(crate) fn unmeasured_loops(&self, loops: &LoopCatalog) -> Vec<(LoopName, SettingsFault)> {
        let root = self.project.layout.root();
        let faulty = loops.definitions.iter().filter_map(|definition| {
            let profile = self.profiles.find(&definition.agent).ok()?;
            let backend = definition.backend.as_ref();
            let error = self
                .check_limits(backend, profile, &definition.budget)
                .err()?;
            let file = &definition.source.file;
            let fault = SettingsFault {
                file: file.clone(),
                line: line_of(&root.join(file), BUDGET),
                key: Some(BUDGET.to_owned()),
                what: error.message,
                remedy: error
                    .hint
                    .unwrap_or_default()
                    .trim_end_matches('.')
                    .to_owned(),
            };
            Some((definition.name.clone(), fault))
        });
        faulty.collect()
    }

    /// Returns what to do about a built-in agent that is not installed.
    fn lacks(&self, backend: &str) -> Option<String> {
        let agent = manifest().iter().find(|agent| agent.name == backend)?;
        let grants = self.context.grants(self.config);
        let is_here = is_installed(&grants, self.config, agent);
        (!is_here).then(|| {
            format!(
                "install it with `{}`, or name another; without the line, the default agent works",
                agent.install
            )
        })
    }
}

fn fault(key: &str, backend: Option<&String>, remedy: String) -> SettingsFault {
    let name = backend.map(String::as_str).unwrap_or_default();
    SettingsFault {
        file: String::new(),
        line: 0,
        key: Some(key.to_owned()),
        what: format!("{name} is not installed"),
        remedy,
    }
}

/// Returns the line of a key in the front matter of a file; 0 where it cannot be read.
fn line_of(path: &Path, key: &str) -> usize {
    let is_small = fs::metadata(path).is_ok_and(|found| found.len() <= FILE_BYTES_MAX);
    let text = is_small.then(|| fs::read_to_string(path).ok()).flatten();
    let lines = definition_file::key_lines(&text.unwrap_or_default());
    lines.get(key).copied().unwrap_or(0)
}
