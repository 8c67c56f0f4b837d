//! What the last audits found, remembered so that a listing can show it without reading every log.
//!
//! A note for people, not evidence: only an audit says what is wrong now.

use std::collections::BTreeMap;

use kapi_sys::disk::replace_derived;

use crate::record::error::EngineError;
use crate::record::json_file::json_file;
use crate::record::project::Project;

/// The subject of the project's tasks and loops.
pub const KERNEL: &str = "kernel";
/// The subject of the machine's spend ledger.
pub const LEDGER: &str = "spend";
/// The subject of what a person prefers for the project.
pub const PREFERENCES: &str = "preferences";
/// The subject of the record of what was cleaned away.
pub const PRUNED: &str = "pruned";
/// Findings that are remembered of one subject; an audit lists all of them.
const FINDINGS_MAX: usize = 5;

/// Findings by their subject: a goal, a workflow, the kernel, the ledger.
pub type Damage = BTreeMap<String, Vec<String>>;

impl Project<'_> {
    /// Returns what the last audits found; nothing where none has found anything.
    #[must_use]
    pub fn damage(&self) -> Damage {
        let bytes = self.disk.read(&self.layout.damage(), 0).ok().flatten();
        let found = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        found.unwrap_or_default()
    }

    /// Remembers what an audit found of the subjects it looked at; none of a subject clears it.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn remember_damage(&self, checked: &Damage) -> Result<(), EngineError> {
        let before = self.damage();
        let mut damage = before.clone();
        for (subject, findings) in checked {
            if findings.is_empty() {
                damage.remove(subject);
            } else {
                let kept = findings.iter().take(FINDINGS_MAX).cloned().collect();
                damage.insert(subject.clone(), kept);
            }
        }
        if damage == before {
            return Ok(());
        }
        let bytes = json_file(&damage, "what an audit found")?;
        Ok(replace_derived(self.disk, &self.layout.damage(), &bytes)?)
    }
}
