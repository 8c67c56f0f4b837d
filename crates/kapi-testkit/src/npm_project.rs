//! A published package of npm as a project to work on: its sources and its tests, with what those
//! need installed beside them, pinned by version and fetched once per checkout.
//!
//! Names no registry: npm knows its own. It does not know what is done to the project.

use std::path::{Path, PathBuf};

use crate::agent_tools::{AgentToolsError, TOOLS_DIRECTORY, command, once, run};

/// Where npm's archives have everything.
const TOP: &str = "package";

/// A pinned package that ships its tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NpmProject {
    /// Its name at the registry.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
}

impl NpmProject {
    /// Fetches the package and what its tests need, unless they are there, and returns the directory.
    ///
    /// Nobody changes what is in it: a test takes a copy.
    ///
    /// # Errors
    /// When npm cannot be started, or cannot have a package.
    pub fn ensure(&self, checkout: &Path) -> Result<PathBuf, AgentToolsError> {
        let home = format!("{}-{}", self.name, self.version);
        let home = checkout.join(TOOLS_DIRECTORY).join(home);
        once(&home, |partial| self.fetch(partial))?;
        Ok(home.join(TOP))
    }

    fn fetch(&self, into: &Path) -> Result<(), AgentToolsError> {
        let specification = format!("{}@{}", self.name, self.version);
        let archive = format!("{}-{}.tgz", self.name, self.version);
        let install = ["install", "--ignore-scripts", "--no-audit", "--no-fund"];
        let steps: [(&str, &Path, &[&str]); 3] = [
            ("npm", into, &["pack", "--silent", &specification]),
            ("tar", into, &["xzf", &archive]),
            ("npm", &into.join(TOP), &install),
        ];
        for (program, directory, words) in steps {
            let mut step = command(Path::new(program));
            step.args(words).current_dir(directory);
            run(step)?;
        }
        Ok(())
    }
}
