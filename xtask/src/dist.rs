//! The form in which the product is shipped: one static program at a fixed place in memory.
//!
//! Built for musl, because that program starts in a quarter of the time that one linked against glibc
//! takes, and a sandbox starts it once more. How it is packed is known in `package`.

mod package;

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;

use crate::dist::package::Release;
use crate::output::{say, talk};
use crate::peers;
use crate::tool::ToolCommand;

/// `e_type` of a program whose addresses are fixed.
const FIXED: u16 = 2;
/// `p_type` of the name of a loader.
const LOADER: u32 = 3;
/// The most headers that are read; a program has about ten.
const HEADERS_MAX: usize = 64;

#[derive(Debug, Deserialize)]
struct DistMetadata {
    target_directory: PathBuf,
    packages: Vec<PackageMetadata>,
}

#[derive(Debug, Deserialize)]
struct PackageMetadata {
    name: String,
    version: String,
}

/// Builds the program, packs it where that is asked for, and says where everything is.
///
/// # Errors
/// When it cannot be built or packed, or an option is unknown.
pub(crate) fn perform(root: &Path, options: &[&str]) -> anyhow::Result<()> {
    match options {
        [] => {
            say(&build(root)?.display().to_string());
            Ok(())
        }
        ["--package"] => pack(root, &build(root)?),
        ["--package", "--kapi", program] => pack(root, Path::new(program)),
        _ => bail!("read the options {:?} of `dist`", options.join(" ")),
    }
}

/// Packs a program that was built.
fn pack(root: &Path, program: &Path) -> anyhow::Result<()> {
    peers::ensure(root, peers::FOR_PACKAGES)?;
    let metadata = metadata(root)?;
    let found = metadata.packages.iter().find(|it| it.name == "kapi-cli");
    let version = &found.context("find kapi-cli in the workspace")?.version;
    let out = metadata.target_directory.join("dist");
    let release = Release {
        root,
        program,
        version,
        arch: env::consts::ARCH,
        out: &out,
    };
    for name in release.make()? {
        say(&out.join(name).display().to_string());
    }
    Ok(())
}

/// Builds the program and returns where it is.
///
/// # Errors
/// When the target cannot be had, when it does not build, or when what was built needs anything else.
pub(crate) fn build(root: &Path) -> anyhow::Result<PathBuf> {
    let target = target();
    cargo(root, "build", &["--package", "kapi-cli"])?;
    let program = target_directory(root)?.join(target).join("release/kapi");
    let bytes = fs::read(&program).with_context(|| format!("read {}", program.display()))?;
    let stands_alone = stands_alone(&bytes)
        .with_context(|| format!("read the headers of {}", program.display()))?;
    ensure!(
        stands_alone,
        "build {} so that it needs no loader: is RUSTFLAGS set?",
        program.display()
    );
    Ok(program)
}

/// Builds another program of the workspace in the same form and runs it.
///
/// # Errors
/// As for `build`, and when the program fails.
pub(crate) fn run(root: &Path, package: &str, words: &[&str]) -> anyhow::Result<()> {
    cargo(
        root,
        "run",
        &[&["--package", package, "--"], words].concat(),
    )
}

/// Runs Cargo on the form in which the product is shipped.
fn cargo(root: &Path, verb: &str, words: &[&str]) -> anyhow::Result<()> {
    let target = target();
    peers::ensure(root, peers::FOR_DIST)?;
    ensure_target(root, &target)?;
    let form = ["--release", "--locked", "--quiet", "--target", &target];
    ToolCommand::new(root, "cargo", &[&[verb], &form[..], words].concat()).run()
}

fn target() -> String {
    format!("{}-unknown-linux-musl", env::consts::ARCH)
}

/// Returns where Cargo builds.
///
/// # Errors
/// When Cargo does not say.
pub(crate) fn target_directory(root: &Path) -> anyhow::Result<PathBuf> {
    Ok(metadata(root)?.target_directory)
}

fn metadata(root: &Path) -> anyhow::Result<DistMetadata> {
    let args = ["metadata", "--no-deps", "--format-version", "1", "--locked"];
    let text = ToolCommand::new(root, "cargo", &args).read()?;
    serde_json::from_str(&text).context("read what cargo metadata says")
}

/// Adds the target's standard library to the toolchain if it is missing.
fn ensure_target(root: &Path, target: &str) -> anyhow::Result<()> {
    let args = ["--print", "target-libdir", "--target", target];
    let library = ToolCommand::new(root, "rustc", &args).read()?;
    if Path::new(library.trim()).is_dir() {
        return Ok(());
    }
    talk(&format!(
        "The standard library for {target} is missing: adding it"
    ));
    ToolCommand::new(root, "rustup", &["target", "add", target])
        .without_stdout()
        .run()
}

/// Tells whether an ELF file of 64 bits, least byte first, is laid out for one place and asks for no loader.
fn stands_alone(file: &[u8]) -> Option<bool> {
    let number = |at: usize, n_bytes: usize| {
        let bytes = file.get(at..at.checked_add(n_bytes)?)?;
        let number = bytes
            .iter()
            .rev()
            .fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte));
        Some(number)
    };
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let first = usize::try_from(number(32, 8)?).ok()?;
    let size = usize::try_from(number(54, 2)?).ok()?;
    let count = usize::try_from(number(56, 2)?).ok()?;
    let headers = (0..count.min(HEADERS_MAX)).map(|index| number(first + index * size, 4));
    let kinds: Vec<u64> = headers.collect::<Option<_>>()?;
    Some(number(16, 2)? == u64::from(FIXED) && !kinds.contains(&u64::from(LOADER)))
}

#[cfg(test)]
mod tests {
    use super::stands_alone;

    /// Makes a file with nothing but headers of these kinds.
    fn elf(kind: u8, headers: &[u8]) -> Vec<u8> {
        let mut file = vec![0; 64];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[16] = kind;
        file[32] = 64;
        file[54] = 56;
        file[56] = u8::try_from(headers.len()).unwrap();
        for header in headers {
            file.push(*header);
            file.resize(file.len() + 55, 0);
        }
        file
    }

    #[test]
    fn a_program_with_a_loader_or_without_a_place_does_not_stand_alone() {
        assert_eq!(stands_alone(&elf(2, &[1, 1, 7])), Some(true));
        assert_eq!(stands_alone(&elf(2, &[6, 3, 1])), Some(false));
        assert_eq!(stands_alone(&elf(3, &[1, 1, 7])), Some(false));
        assert_eq!(stands_alone(&elf(2, &[1, 1])[..122]), None);
        assert_eq!(stands_alone(b"#!/bin/sh"), None);
    }
}
