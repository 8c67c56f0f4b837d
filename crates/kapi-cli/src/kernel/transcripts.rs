//! The transcripts of a task's attempts, and what they tell of how often a model was used.
//!
//! Kapi's own account of an agent's stream, the same for every program. Changes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use kapi_core::task_id::KernelTaskId;
use kapi_launch::paths::SandboxId;
use kapi_store::layout::project_key;
use kapi_task::perform;
use serde_json::Value;

use crate::error::Error;
use crate::kernel::ProjectKernel;
use crate::subject::launches::sandboxes;

impl ProjectKernel<'_> {
    /// Returns the transcripts of a task's attempts, by the numbers of their leases. They outlive the
    /// rest of their sandboxes.
    pub(crate) fn transcripts(&self, id: KernelTaskId) -> Result<BTreeMap<u64, PathBuf>, Error> {
        let sandboxes = sandboxes(self.context);
        let root = self.project.layout.root();
        let any = SandboxId::parse(&id.to_string()).map_err(|error| Error::launch(&error))?;
        let any = sandboxes.location(&project_key(root), &any).dir();
        let prefix = format!("{id}-");
        let beside = any.parent().unwrap_or(&any);
        let listed = self.project.disk.list(beside);
        let mut found = BTreeMap::new();
        for name in listed.map_err(|error| Error::failed(&error))? {
            let fence = name
                .strip_prefix(&prefix)
                .and_then(|fence| fence.parse().ok());
            let path = perform::transcript(&sandboxes, &project_key(root), &name)
                .filter(|path| path.is_file());
            if let (Some(fence), Some(path)) = (fence, path) {
                found.insert(fence, path);
            }
        }
        Ok(found)
    }

    /// Returns how many model calls the agents of a task told of; `None` where they told of none.
    pub(crate) fn turns(&self, id: KernelTaskId) -> Option<u64> {
        let found = self.transcripts(id).ok()?;
        let texts = found.values().map(fs::read_to_string);
        let calls = texts
            .map(|text| model_calls(&text.unwrap_or_default()))
            .sum();
        (calls > 0).then_some(calls)
    }
}

fn model_calls(transcript: &str) -> u64 {
    let entries = transcript.lines().map(serde_json::from_str::<Value>);
    let calls = entries.filter(|entry| entry.as_ref().is_ok_and(|entry| entry["type"] == "used"));
    calls.count() as u64
}

#[cfg(test)]
mod tests {
    use super::model_calls;

    #[test]
    fn each_use_of_a_model_is_a_turn() {
        let used = r#"{"type":"used","usage":{"input_tokens":1}}"#;
        let text = r#"{"text":"x","type":"text"}"#;
        assert_eq!(model_calls(&[text, used, "torn", used].join("\n")), 2);
        assert_eq!(model_calls(""), 0);
    }
}
