//! The status of a run from inside and outside: real files, real sockets, forged words.

mod feeding;
mod forging;
mod owning;
mod writing;

use std::fs;
use std::path::{Path, PathBuf};

use kapi_sys::clock::StepClock;

use super::writer::{StatusIdentity, StatusWriter};
use crate::file::{SandboxMode, StatusFile};
use crate::rules::mapping::Mapping;

/// A host's directories, and a clock that begins at a known second.
struct Host {
    folder: tempfile::TempDir,
    clock: StepClock,
}

impl Host {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            clock: StepClock::new(1_765_895_400_000),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn status_dir(&self) -> PathBuf {
        self.path("status")
    }

    fn writer(&self, project: &str, agent_id: &str) -> StatusWriter<'_> {
        self.writer_at(
            project,
            agent_id,
            Path::new("/src/of").join(project).as_path(),
        )
    }

    fn writer_at(&self, project: &str, agent_id: &str, root: &Path) -> StatusWriter<'_> {
        let identity = StatusIdentity {
            agent_id,
            project,
            project_root: root,
            branch: Some("feature/x"),
            sandbox_mode: SandboxMode::Worktree,
            worktree_path: Some(Path::new("/home/user/.ilchul/worktrees/x")),
        };
        let mapping = Mapping::built_in();
        StatusWriter::create(&self.status_dir(), &identity, mapping, &self.clock).unwrap()
    }
}

fn read(path: &Path) -> StatusFile {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Returns the phase and the per cent a file shows.
fn shown(path: &Path) -> (String, u8) {
    let file = read(path);
    (file.phase.name().to_owned(), file.progress)
}
