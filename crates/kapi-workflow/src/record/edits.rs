//! Artifacts that a person edited while they waited: finding them, and keeping them beside what replaces
//! them.
//!
//! Nothing that a person wrote is overwritten. Knows no request and no phase.

use std::path::PathBuf;

use kapi_store::layout::WorkflowLayout;
use kapi_sys::disk::{Disk, DiskError, replace_durably};

use crate::rules::documents::documents;
use crate::rules::state::Workflow;

/// The most edits of one artifact that are kept.
pub(crate) const KEPT_MAX: u32 = 999;

/// The name of an artifact, and its bytes as somebody edited it.
pub(crate) type Edit = (&'static str, Vec<u8>);

/// Returns every artifact that waits, is there and is not what was drafted.
pub(crate) fn edits(
    disk: &dyn Disk,
    layout: &WorkflowLayout,
    workflow: &Workflow,
) -> Result<Vec<Edit>, DiskError> {
    let Some(pending) = &workflow.pending else {
        return Ok(Vec::new());
    };
    let drafted = documents(workflow);
    let mut edits = Vec::new();
    for name in pending.decision.artifacts() {
        let draft = drafted.iter().find(|document| document.name == *name);
        let draft = draft.map_or(&[][..], |document| document.text.as_bytes());
        let found = disk.read(&layout.document(name), 0)?;
        edits.extend(found.filter(|bytes| bytes != draft).map(|it| (*name, it)));
    }
    Ok(edits)
}

/// Keeps an edit beside its artifact, as `name.edited.md` or with a number, and returns where.
pub(crate) fn keep(
    disk: &dyn Disk,
    layout: &WorkflowLayout,
    name: &str,
    bytes: &[u8],
) -> Result<PathBuf, DiskError> {
    let (stem, end) = name.rsplit_once('.').unwrap_or((name, "md"));
    let first = layout.document(&format!("{stem}.edited.{end}"));
    let numbered = (2..=KEPT_MAX).map(|n| layout.document(&format!("{stem}.edited-{n}.{end}")));
    for file in [first.clone()].into_iter().chain(numbered) {
        match disk.read(&file, 0)? {
            None => {
                replace_durably(disk, &file, bytes)?;
                return Ok(file);
            }
            Some(found) if found == bytes => return Ok(file),
            Some(_) => {}
        }
    }
    // So many edits of one draft are nobody's work of a day; the oldest makes room.
    replace_durably(disk, &first, bytes)?;
    Ok(first)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use kapi_core::id::GoalId;
    use kapi_core::mode::Mode;
    use kapi_store::layout::ProjectLayout;
    use kapi_sys::disk::Disk as _;
    use kapi_sys::real_disk::RealDisk;

    use crate::record::edits::keep;

    #[test]
    fn an_edit_keeps_the_ending_of_its_name() {
        let root = tempfile::tempdir().unwrap();
        let layout = ProjectLayout::new(root.path().to_path_buf());
        let id = GoalId::parse("001-a").unwrap();
        let layout = layout.workflow(Mode::Ralph, &id);
        let disk = RealDisk;
        std::fs::create_dir_all(layout.document("x").parent().unwrap()).unwrap();
        let kept = |name: &str, bytes: &[u8]| {
            let path = keep(&disk, &layout, name, bytes).unwrap();
            assert_eq!(disk.read(&path, 0).unwrap().as_deref(), Some(bytes));
            let name = path.file_name().map(Path::new).unwrap();
            name.to_string_lossy().into_owned()
        };
        assert_eq!(kept("checks.sh", b"one"), "checks.edited.sh");
        assert_eq!(kept("checks.sh", b"one"), "checks.edited.sh");
        assert_eq!(kept("checks.sh", b"two"), "checks.edited-2.sh");
        assert_eq!(kept("plan.md", b"one"), "plan.edited.md");
    }
}
