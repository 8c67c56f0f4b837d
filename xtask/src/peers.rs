//! The programs that tests and benchmarks need beside the toolchain.
//!
//! A missing one is installed from the system's packages and named while that happens, so that
//! one command passes on a fresh machine. Nothing is skipped because a program is missing.

use std::path::Path;

use anyhow::bail;

use crate::output::talk;
use crate::tool::{ToolCommand, find};

/// A program of the system.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    /// The program looked for on the search path, or the whole path of a file.
    program: &'static str,
    /// The Debian package that brings it.
    package: &'static str,
    /// What it is needed for.
    purpose: &'static str,
}

const fn peer(program: &'static str, package: &'static str, purpose: &'static str) -> Peer {
    Peer {
        program,
        package,
        purpose,
    }
}

const GIT: Peer = peer("git", "git", "the repositories that goals work in");
const NODE: Peer = peer("node", "nodejs", "the real agents");

/// What the tests start.
const FOR_TESTS: &[Peer] = &[
    GIT,
    NODE,
    peer("npm", "npm", "installing the real agents"),
    peer("setpriv", "util-linux", "sandboxes of an ordinary user"),
    peer("python3", "python3", "attempts to get out of a sandbox"),
    peer("podman", "podman", "the container level"),
    peer("runc", "runc", "podman's runtime"),
    peer("newuidmap", "uidmap", "containers of an ordinary user"),
    peer(
        "busybox",
        "busybox-static",
        "the images of those containers",
    ),
    peer("useradd", "passwd", "an ordinary user for them"),
    peer("tar", "tar", "those images"),
    peer("tmux", "tmux", "watching the workers of a workflow"),
    peer("dpkg-deb", "dpkg", "the Debian package"),
    peer("curl", "curl", "the install script"),
    peer("wget", "wget", "the install script where curl is not"),
    peer("chromium", "chromium", "looking at the pages of workflows"),
    peer(
        "nats-server",
        "nats-server",
        "the log that several machines share",
    ),
];

/// What repositories to integrate are made and checked with.
pub(crate) const FOR_INTEGRATION: &[Peer] = &[
    GIT,
    NODE,
    peer("npm", "npm", "projects in JavaScript"),
    peer("python3", "python3", "projects in Python"),
];

/// What the corpora of changes are tested with.
pub(crate) const FOR_CORPORA: &[Peer] = &[
    GIT,
    NODE,
    peer("npm", "npm", "projects in JavaScript"),
    peer("python3", "python3", "projects in Python"),
    peer("pytest", "python3-pytest", "projects in Python"),
    peer("go", "golang-go", "projects in Go"),
    peer("javac", "default-jdk-headless", "projects in Java"),
    peer("ruby", "ruby", "projects in Ruby"),
    peer("prove", "perl", "projects in Perl"),
    peer("make", "make", "projects in C"),
    peer("gcc", "gcc", "projects in C"),
];

/// What the real projects are set up with besides.
pub(crate) const FOR_REAL_PROJECTS: &[Peer] = &[
    peer("cmake", "cmake", "projects in C"),
    peer("apt-get", "apt", "projects from the system's sources"),
    peer("/usr/share/java/junit4.jar", "junit4", "projects in Java"),
];

/// What the benchmarks stand beside.
pub(crate) const FOR_BENCH: &[Peer] = &[
    GIT,
    NODE,
    peer("bwrap", "bubblewrap", "a sandbox to compare with"),
    peer("podman", "podman", "a container to compare with"),
    peer("runc", "runc", "podman's runtime"),
    peer("busybox", "busybox-static", "the image of the container"),
    peer("tmux", "tmux", "a terminal to look on in"),
    peer("top", "procps", "a screen to compare with"),
];

/// What the shipped form is built with, besides the toolchain.
pub(crate) const FOR_DIST: &[Peer] = &[
    peer("cc", "gcc", "linking"),
    peer(
        "musl-gcc",
        "musl-tools",
        "the parts of a static program that are in C",
    ),
];

/// What a release is packed with.
pub(crate) const FOR_PACKAGES: &[Peer] = &[
    GIT,
    peer("dpkg-deb", "dpkg", "the Debian package"),
    peer("tar", "tar", "the archive"),
    peer("gzip", "gzip", "the manual"),
    peer("sha256sum", "coreutils", "the checksums"),
];

/// The oldest Node that the pinned agents run on.
const NODE_MAJOR_MIN: u32 = 20;

/// Installs what the tests need and says so.
///
/// # Errors
/// When something is still missing afterwards, or too old.
pub(crate) fn ensure_for_tests(root: &Path) -> anyhow::Result<()> {
    ensure(root, FOR_TESTS)?;
    let version = ToolCommand::new(root, NODE.program, &["--version"]).read()?;
    let version = version.trim();
    if major(version).is_none_or(|major| major < NODE_MAJOR_MIN) {
        bail!("use node {version}: the real agents need {NODE_MAJOR_MIN} or newer");
    }
    Ok(())
}

/// Reads the first number of `v20.11.1`.
fn major(version: &str) -> Option<u32> {
    version.strip_prefix('v')?.split('.').next()?.parse().ok()
}

/// Installs the peers that are missing and says so.
///
/// # Errors
/// When one is still missing afterwards, naming it and its package.
pub(crate) fn ensure(root: &Path, peers: &[Peer]) -> anyhow::Result<()> {
    let absent = missing(peers, is_installed);
    if absent.is_empty() {
        return Ok(());
    }
    for peer in &absent {
        let Peer {
            program,
            package,
            purpose,
        } = peer;
        talk(&format!(
            "{program} is missing (needed for {purpose}): installing {package}"
        ));
    }
    let packages: Vec<&str> = absent.iter().map(|peer| peer.package).collect();
    if let Err(error) = install(root, &packages) {
        bail!(
            "install {}: {error:#}\nhint: install them by hand",
            packages.join(" ")
        );
    }
    let still = missing(peers, is_installed);
    if still.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = still.iter().map(|peer| peer.program).collect();
    bail!("find {} after installing it", names.join(", "))
}

fn is_installed(program: &str) -> bool {
    let path = Path::new(program);
    if path.is_absolute() {
        path.is_file()
    } else {
        find(program).is_some()
    }
}

fn missing(peers: &[Peer], is_installed: impl Fn(&str) -> bool) -> Vec<Peer> {
    peers
        .iter()
        .filter(|peer| !is_installed(peer.program))
        .copied()
        .collect()
}

fn install(root: &Path, packages: &[&str]) -> anyhow::Result<()> {
    apt_get(root, &["update", "-q"])?;
    apt_get(
        root,
        &[
            &["install", "-y", "-q", "--no-install-recommends"],
            packages,
        ]
        .concat(),
    )
}

fn apt_get(root: &Path, args: &[&str]) -> anyhow::Result<()> {
    let is_root = ToolCommand::new(root, "id", &["-u"]).read()?.trim() == "0";
    let front = "DEBIAN_FRONTEND=noninteractive";
    let words = if is_root {
        [&["env", front, "apt-get"], args].concat()
    } else {
        [&["sudo", "-n", "env", front, "apt-get"], args].concat()
    };
    match words.split_first() {
        Some((program, rest)) => ToolCommand::new(root, program, rest).without_stdout().run(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{FOR_TESTS, major, missing};

    #[test]
    fn versions_of_node_are_read() {
        let majors = ["v20.20.2", "v8.0.0", "20.1", "vnext"].map(major);
        assert_eq!(majors, [Some(20), Some(8), None, None]);
    }

    #[test]
    fn only_missing_programs_are_named() {
        let absent = missing(FOR_TESTS, |program| program != "npm");
        let packages: Vec<&str> = absent.iter().map(|peer| peer.package).collect();
        assert_eq!(packages, ["npm"]);
    }
}
