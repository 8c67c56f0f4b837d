//! The directions of dependency between the workspace's crates.
//!
//! The table is ARCHITECTURE.md's, as data; `cargo metadata` says what is really declared. A
//! crate that is not in the table is an error, so that a new one starts with a decision.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, bail};
use serde::Deserialize;

use crate::output::say;
use crate::tool::ToolCommand;

/// What one crate may depend on.
struct CrateLayer {
    crate_name: &'static str,
    /// Workspace crates, for everything it ships.
    ships: &'static [&'static str],
    /// Workspace crates, for its tests alone.
    tests: &'static [&'static str],
    /// Crates from elsewhere; `None` leaves them to review and to the cap on Cargo.lock.
    foreign: Option<&'static [&'static str]>,
}

const fn layer(
    crate_name: &'static str,
    ships: &'static [&'static str],
    tests: &'static [&'static str],
) -> CrateLayer {
    CrateLayer {
        crate_name,
        ships,
        tests,
        foreign: None,
    }
}

const KIT: &[&str] = &["kapi-testkit"];
/// Every crate that is part of the product.
const PRODUCT: &[&str] = &[
    "kapi-sys",
    "kapi-settings",
    "kapi-core",
    "kapi-store",
    "kapi-machine",
    "kapi-spend",
    "kapi-fleet",
    "kapi-git",
    "kapi-sandbox",
    "kapi-agent",
    "kapi-gateway",
    "kapi-status",
    "kapi-run",
    "kapi-check",
    "kapi-goal",
    "kapi-launch",
    "kapi-task",
    "kapi-workflow",
    "kapi-wire",
    "kapi-mcp",
];

/// Lowest first.
const LAYERS: &[CrateLayer] = &[
    layer("kapi-sys", &[], &[]),
    CrateLayer {
        foreign: Some(&[
            "jsonc-parser",
            "serde",
            "serde-saphyr",
            "serde_json",
            "strsim",
            "thiserror",
            "toml",
        ]),
        ..layer("kapi-settings", &[], &[])
    },
    CrateLayer {
        foreign: Some(&["serde", "thiserror"]),
        ..layer("kapi-core", &["kapi-settings"], &[])
    },
    layer("kapi-store", &["kapi-sys", "kapi-core"], &[]),
    layer(
        "kapi-machine",
        &["kapi-sys", "kapi-core", "kapi-store", "kapi-fleet"],
        &[],
    ),
    layer(
        "kapi-spend",
        &[
            "kapi-sys",
            "kapi-settings",
            "kapi-core",
            "kapi-store",
            "kapi-machine",
        ],
        &[],
    ),
    layer(
        "kapi-fleet",
        &["kapi-sys", "kapi-store"],
        &[
            "kapi-core",
            "kapi-git",
            "kapi-check",
            "kapi-goal",
            "kapi-task",
            "kapi-testkit",
        ],
    ),
    layer("kapi-git", &["kapi-sys", "kapi-core"], &[]),
    layer("kapi-sandbox", &["kapi-sys"], &[]),
    layer("kapi-agent", &["kapi-sys", "kapi-core"], &[]),
    layer(
        "kapi-gateway",
        &["kapi-sys", "kapi-core", "kapi-spend"],
        &["kapi-testkit"],
    ),
    layer("kapi-status", &["kapi-sys", "kapi-core", "kapi-agent"], &[]),
    layer(
        "kapi-run",
        &[
            "kapi-sys",
            "kapi-core",
            "kapi-machine",
            "kapi-spend",
            "kapi-git",
            "kapi-sandbox",
            "kapi-agent",
            "kapi-gateway",
            "kapi-status",
        ],
        &[],
    ),
    layer(
        "kapi-check",
        &[
            "kapi-sys",
            "kapi-core",
            "kapi-machine",
            "kapi-spend",
            "kapi-git",
            "kapi-sandbox",
            "kapi-agent",
            "kapi-gateway",
            "kapi-run",
        ],
        &[],
    ),
    layer(
        "kapi-goal",
        &[
            "kapi-sys",
            "kapi-core",
            "kapi-store",
            "kapi-machine",
            "kapi-spend",
            "kapi-git",
            "kapi-sandbox",
            "kapi-agent",
            "kapi-run",
            "kapi-check",
        ],
        &["kapi-gateway"],
    ),
    layer(
        "kapi-launch",
        &[
            "kapi-sys",
            "kapi-core",
            "kapi-store",
            "kapi-machine",
            "kapi-spend",
            "kapi-git",
            "kapi-sandbox",
            "kapi-agent",
            "kapi-status",
            "kapi-run",
            "kapi-check",
        ],
        &[],
    ),
    layer(
        "kapi-task",
        &[
            "kapi-sys",
            "kapi-settings",
            "kapi-core",
            "kapi-store",
            "kapi-machine",
            "kapi-spend",
            "kapi-fleet",
            "kapi-git",
            "kapi-sandbox",
            "kapi-agent",
            "kapi-status",
            "kapi-run",
            "kapi-check",
            "kapi-goal",
            "kapi-launch",
        ],
        &[],
    ),
    layer(
        "kapi-workflow",
        &[
            "kapi-sys",
            "kapi-core",
            "kapi-store",
            "kapi-machine",
            "kapi-spend",
            "kapi-git",
            "kapi-sandbox",
            "kapi-agent",
            "kapi-run",
            "kapi-check",
            "kapi-goal",
            "kapi-launch",
            "kapi-task",
        ],
        &[],
    ),
    layer(
        "kapi-wire",
        &[
            "kapi-settings",
            "kapi-core",
            "kapi-status",
            "kapi-check",
            "kapi-goal",
            "kapi-task",
            "kapi-workflow",
        ],
        &[],
    ),
    layer("kapi-mcp", &["kapi-goal", "kapi-wire"], &[]),
    layer("kapi-cli", PRODUCT, KIT),
    layer("kapi-testkit", PRODUCT, PRODUCT),
    layer(
        "xtask",
        &[
            "kapi-sys",
            "kapi-core",
            "kapi-store",
            "kapi-machine",
            "kapi-spend",
            "kapi-fleet",
            "kapi-git",
            "kapi-sandbox",
            "kapi-gateway",
            "kapi-check",
            "kapi-goal",
            "kapi-task",
            "kapi-workflow",
            "kapi-testkit",
        ],
        &[],
    ),
];

#[derive(Debug, Deserialize)]
struct CargoMetadata {
    packages: Vec<CargoPackage>,
}

#[derive(Debug, Deserialize)]
struct CargoPackage {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
    /// `dev`, `build`, or nothing for what ships.
    kind: Option<String>,
}

/// Checks the workspace against the table.
///
/// # Errors
/// When an edge is not in the table, naming every such edge.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let args = ["metadata", "--no-deps", "--format-version", "1", "--locked"];
    let text = ToolCommand::new(root, "cargo", &args).read()?;
    let metadata: CargoMetadata =
        serde_json::from_str(&text).context("read what cargo metadata says")?;
    let faults = check(&metadata.packages);
    if faults.is_empty() {
        say(&format!(
            "{} crates depend in the right direction.",
            metadata.packages.len()
        ));
        return Ok(());
    }
    bail!(
        "keep the directions of dependency:\n  {}\nhint: the table is in xtask/src/layers.rs and ARCHITECTURE.md says why.",
        faults.join("\n  ")
    )
}

fn check(packages: &[CargoPackage]) -> Vec<String> {
    let ours: BTreeSet<&str> = packages
        .iter()
        .map(|package| package.name.as_str())
        .collect();
    packages
        .iter()
        .flat_map(|package| check_package(package, &ours))
        .collect()
}

fn check_package(package: &CargoPackage, ours: &BTreeSet<&str>) -> Vec<String> {
    let name = &package.name;
    let Some(layer) = LAYERS.iter().find(|layer| layer.crate_name == name) else {
        return vec![format!("{name} is in no layer")];
    };
    let mut faults = Vec::new();
    for dependency in &package.dependencies {
        let on = dependency.name.as_str();
        let is_dev = dependency.kind.as_deref() == Some("dev");
        let is_listed = if !ours.contains(on) {
            is_dev || layer.foreign.is_none_or(|foreign| foreign.contains(&on))
        } else {
            layer.ships.contains(&on) || (is_dev && layer.tests.contains(&on))
        };
        if !is_listed {
            let what = if is_dev { "test" } else { "ship" };
            faults.push(format!("{name} may not {what} with {on}"));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::{CargoPackage, Dependency, check};

    /// Each crate is `name: dependency dependency+dev`.
    fn faults(crates: &[&str]) -> Vec<String> {
        let packages: Vec<CargoPackage> = crates.iter().map(|line| package(line)).collect();
        check(&packages)
    }

    fn package(line: &str) -> CargoPackage {
        let (name, dependencies) = line.split_once(':').unwrap();
        let dependencies = dependencies.split_whitespace().map(|word| {
            let (name, kind) = word
                .split_once('+')
                .map_or((word, None), |(n, k)| (n, Some(k)));
            Dependency {
                name: name.to_owned(),
                kind: kind.map(str::to_owned),
            }
        });
        CargoPackage {
            name: name.to_owned(),
            dependencies: dependencies.collect(),
        }
    }

    #[test]
    fn edges_of_the_table_pass() {
        let crates = [
            "kapi-core: serde thiserror proptest+dev",
            "kapi-sys: rustix",
            "kapi-store: kapi-core kapi-sys sha2",
            "kapi-machine: kapi-core kapi-store",
            "kapi-testkit: kapi-machine",
        ];
        assert_eq!(faults(&crates), [""; 0]);
    }

    #[test]
    fn edges_against_the_direction_are_named() {
        let crates = [
            "kapi-core: kapi-sys serde_json kapi-testkit+dev",
            "kapi-sys:",
            "kapi-machine: kapi-git kapi-testkit",
            "kapi-git: kapi-sandbox+dev",
            "kapi-sandbox: kapi-sys+build",
            "kapi-testkit:",
            "kapi-stray: kapi-core",
        ];
        assert_eq!(
            faults(&crates),
            [
                "kapi-core may not ship with kapi-sys",
                "kapi-core may not ship with serde_json",
                "kapi-core may not test with kapi-testkit",
                "kapi-machine may not ship with kapi-git",
                "kapi-machine may not ship with kapi-testkit",
                "kapi-git may not test with kapi-sandbox",
                "kapi-stray is in no layer",
            ]
        );
    }
}
