//! The tests of the real CLIs, run with the newest that their vendors publish.
//!
//! Which versions these are is asked of the npm registry; a version can be named instead, for one
//! that cannot be installed. Pins nothing.

use std::path::Path;

use anyhow::{Context as _, bail};
use kapi_testkit::agent_tools::{AgentTools, Cli, VERSIONS_VARIABLE};

use crate::output::say;
use crate::peers;
use crate::tool::ToolCommand;

/// The test of the types that the Pi package is written for: they are pinned with it.
const PINNED_ALONE: &str = "pi_types::";

/// Runs the tests; options of the form `pi=0.87.1` name versions, all others are filters.
///
/// # Errors
/// When a version cannot be found, or a test fails.
pub(crate) fn run(root: &Path, options: &[&str]) -> anyhow::Result<()> {
    peers::ensure_for_tests(root)?;
    let (named, filter): (Vec<&str>, Vec<&str>) =
        options.iter().partition(|option| option.contains('='));
    let mut versions = Vec::new();
    for cli in Cli::ALL {
        let prefix = format!("{}=", cli.name());
        let version = match named.iter().find_map(|word| word.strip_prefix(&prefix)) {
            Some(version) => version.to_owned(),
            None => published(root, cli)?,
        };
        say(&format!("{} {version}", cli.name()));
        versions.push(format!("{}={version}", cli.name()));
    }
    let is_known = |word: &&&str| Cli::ALL.iter().any(|cli| word.starts_with(cli.name()));
    if let Some(unknown) = named.iter().find(|word| !is_known(word)) {
        bail!("read the version {unknown:?}: it names none of the agents");
    }
    let node = AgentTools::node(root).context("install Node.js")?;
    let path = std::env::var("PATH").context("read PATH")?;
    let tests = [
        "nextest",
        "run",
        "--locked",
        "--no-fail-fast",
        "-p",
        "kapi-cli",
        "--test",
        "real",
    ];
    let skipped = format!("not test(/{PINNED_ALONE}/)");
    let args = [&tests[..], &["-E", &skipped], &filter].concat();
    ToolCommand::new(root, "cargo", &args)
        .env(VERSIONS_VARIABLE, versions.join(" "))
        .env("PATH", format!("{}:{path}", node.display()))
        .run()
}

/// Asks the registry for the newest version of a CLI.
fn published(root: &Path, cli: Cli) -> anyhow::Result<String> {
    let output = ToolCommand::new(root, "npm", &["view", cli.npm(), "version"]).read()?;
    let version = output.trim();
    if version.is_empty() {
        bail!("find the newest version of {}", cli.npm());
    }
    Ok(version.to_owned())
}
