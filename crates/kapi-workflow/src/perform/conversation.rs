//! The conversation of a workflow with an agent that is asked one question after another: its home,
//! and the session that the next question goes on with.
//!
//! A convenience, never evidence: each question says all that is known, so an agent without a session,
//! or one whose session is gone, answers as well.

use std::fs;
use std::path::{Path, PathBuf};

use kapi_agent::agent::AgentKind;
use kapi_agent::manifest;
use kapi_core::failure::Failure;
use kapi_core::id::GoalId;
use kapi_git::owned_dir;
use kapi_goal::perform::real::RealWorld;
use kapi_run::failure;
use kapi_run::run_dir::RunDir;

use crate::rules::role::{Recall, RoleSpec};

/// Bytes of the name of a session.
const SESSION_BYTES_MAX: u64 = 1024;
/// The file that holds it.
const FILE: &str = "session";

/// A conversation that is kept from one question to the next.
pub(super) struct Conversation {
    home: PathBuf,
    kept: RunDir,
}

impl Conversation {
    /// Opens the conversation of a workflow's role with an agent, where the role has one.
    ///
    /// # Errors
    /// When its directory cannot be made.
    pub(super) fn open(
        world: &RealWorld<'_>,
        workflow: &GoalId,
        role: &RoleSpec,
        kind: &AgentKind,
    ) -> Result<Option<Self>, Failure> {
        match role.recalls {
            Recall::Nothing => return Ok(None),
            Recall::Conversation => {}
        }
        let name = format!("{}-{}-home", role.name, kind.name());
        let run = format!("{workflow}-{}-{}", role.name, kind.name());
        Ok(Some(Self {
            home: world.location.scratch.join(name),
            kept: RunDir::open(&world.location.runs, &run)?,
        }))
    }

    /// Returns where the agent's own files are.
    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    /// Returns the session to go on with.
    pub(super) fn session(&self) -> Option<String> {
        let file = self.kept.file(FILE);
        let is_short = fs::metadata(&file).is_ok_and(|found| found.len() <= SESSION_BYTES_MAX);
        let session = fs::read_to_string(&file).ok().filter(|_| is_short)?;
        (!session.is_empty()).then_some(session)
    }

    /// Keeps the session for the next question, and no copy of the person's login.
    ///
    /// # Errors
    /// When the session cannot be kept, or a copy of the login cannot be removed.
    pub(super) fn keep(&self, kind: &AgentKind, session: Option<&str>) -> Result<(), Failure> {
        self.kept
            .keep(FILE, session.unwrap_or_default().as_bytes())?;
        let files = manifest::manifest_of(kind).map_or(&[][..], |manifest| manifest.login_files);
        files.iter().try_for_each(|file| forget(&self.home, file))
    }
}

/// Removes a file of a home without following what an agent left in the way.
fn forget(home: &Path, file: &str) -> Result<(), Failure> {
    let path = home.join(file);
    let is_real = |dir: &Path| fs::symlink_metadata(dir).is_ok_and(|found| found.is_dir());
    let mut dirs = path.ancestors().skip(1).take_while(|dir| *dir != home);
    if !is_real(home) || !dirs.all(is_real) {
        return Ok(());
    }
    owned_dir::wipe(&path).map_err(|error| failure::plain(&error))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::forget;

    #[test]
    fn a_login_goes_from_a_home_and_nothing_that_a_link_leads_to() {
        let root = tempfile::tempdir().unwrap();
        let (home, host) = (root.path().join("home"), root.path().join("host"));
        for dir in [&home.join(".claude"), &host] {
            fs::create_dir_all(dir).unwrap();
        }
        let login = home.join(".claude/.credentials.json");
        let theirs = host.join("auth.json");
        for file in [&login, &theirs] {
            fs::File::create(file).unwrap();
        }
        symlink(&host, home.join(".codex")).unwrap();
        for file in [".claude/.credentials.json", ".codex/auth.json", ".pi/x"] {
            forget(&home, file).unwrap();
        }
        assert!(!login.exists() && theirs.exists());
    }
}
