//! pi-autoresearch as a peer: its own tools, called as Pi calls them, from npm.
//!
//! No model is asked and no Pi runs, so what is measured is the extension and the git that it calls.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use kapi_sys::disk::replace_durably;
use kapi_sys::real_disk::RealDisk;
use kapi_testkit::agent_tools::{AgentTools, Cli};

use crate::bench::invocation::Invocation;
use crate::tool::ToolCommand;

pub(super) const PACKAGE: &str = "pi-autoresearch@1.6.0";
/// Calls its tools.
const SCRIPT: &str = include_str!("peer.mjs");

/// Installs it into a directory of its own, without what it takes from Pi.
pub(super) fn install(home: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(home).with_context(|| format!("create {}", home.display()))?;
    let args = [
        "install",
        "--silent",
        "--no-save",
        "--ignore-scripts",
        "--legacy-peer-deps",
        PACKAGE,
    ];
    ToolCommand::new(home, "npm", &args).without_stdout().run()
}

/// One experiment, in milliseconds.
pub(super) struct PeerCost {
    /// Its benchmark and checks.
    pub(super) run: f64,
    /// Its line in the ledger, and what git keeps or puts back.
    pub(super) log: f64,
}

impl PeerCost {
    /// Returns all of it.
    pub(super) fn whole(&self) -> f64 {
        self.run + self.log
    }
}

/// Returns what each of so many experiments took.
pub(super) fn experiments(
    checkout: &Path,
    home: &Path,
    scratch: &Path,
    n: usize,
) -> anyhow::Result<Vec<PeerCost>> {
    let extension = home.join("node_modules/pi-autoresearch/extensions/pi-autoresearch/index.ts");
    ensure!(
        extension.exists(),
        "it is not installed; `--with pi-autoresearch` installs it"
    );
    let tools = AgentTools::ensure(checkout, &[Cli::Pi])?;
    let modules: Option<PathBuf> = tools
        .binary(Cli::Pi)?
        .ancestors()
        .find(|path| path.ends_with("node_modules"))
        .map(Path::to_path_buf);
    let modules = modules.context("find the modules of Pi")?;
    fs::create_dir_all(scratch).with_context(|| format!("create {}", scratch.display()))?;
    let script = scratch.join("peer.mjs");
    replace_durably(&RealDisk, &script, SCRIPT.as_bytes())?;
    let n = n.to_string();
    let args = [&script, &modules, &extension].map(|path| path.to_string_lossy().into_owned());
    let args: Vec<&str> = args
        .iter()
        .map(String::as_str)
        .chain([n.as_str()])
        .collect();
    let said = Invocation::new(PACKAGE, scratch, "node", &args).read()?;
    let costs = said.lines().map(|line| {
        let mut times = line.split_whitespace().map(str::parse::<f64>);
        match (times.next(), times.next()) {
            (Some(Ok(run)), Some(Ok(log))) => Ok(PeerCost { run, log }),
            _ => bail!("read {line:?} as two times"),
        }
    });
    costs.collect()
}
