//! What the tests of the libraries reach, measured by cargo-tarpaulin.
//!
//! Knows only how the tool is called. What starts processes or sandboxes is left out: it runs for long,
//! and the tool does not see into them.

use std::path::Path;

use anyhow::Context as _;

use crate::output::talk;
use crate::tool::{ToolCommand, find};

/// The crates whose tests run in one process.
const PACKAGES: &[&str] = &["kapi-core", "kapi-settings", "kapi-wire", "kapi-store"];
/// The version that is installed where there is none.
const VERSION: &str = "0.37.5";

/// Returns a line for each crate.
///
/// # Errors
/// When the tool cannot be installed, or a test fails.
pub(super) fn measure(root: &Path) -> anyhow::Result<Vec<String>> {
    if find("cargo-tarpaulin").is_none() {
        talk("cargo-tarpaulin is missing (needed for coverage): installing it");
        let args = [
            "install",
            "--locked",
            "cargo-tarpaulin",
            "--version",
            VERSION,
        ];
        ToolCommand::new(root, "cargo", &args)
            .run()
            .context("install cargo-tarpaulin")?;
    }
    let mut report = Vec::new();
    for package in PACKAGES {
        let files = format!("crates/{package}/src/*");
        let target = root.join("target/coverage");
        let target = target.to_string_lossy();
        let args = [
            "tarpaulin",
            "--engine",
            "llvm",
            "--package",
            package,
            "--lib",
            "--tests",
            "--include-files",
            &files,
            "--target-dir",
            &target,
            "--skip-clean",
            "--out",
            "Stdout",
        ];
        let printed = ToolCommand::new(root, "cargo", &args)
            .read()
            .with_context(|| format!("measure the coverage of {package}"))?;
        let sum = printed.lines().rev().find(|line| line.contains("coverage"));
        let sum = sum.with_context(|| format!("read the coverage of {package}"))?;
        report.push(format!("coverage      {package}: {}", sum.trim()));
    }
    Ok(report)
}
