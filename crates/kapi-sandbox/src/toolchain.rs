//! Well-known places of toolchains below a home, and none of what lies beside them.
//!
//! Names directories only; credentials of the same tools (`.npmrc`, `.cargo/credentials.toml`) lie
//! outside of each. Does not know which program is going to run.

use std::path::{Path, PathBuf};

use crate::spec::{Mount, MountAccess};

/// Directories that hold programs and no secrets, relative to the home.
pub(crate) const TOOLCHAINS: &[&str] = &[
    ".asdf",
    ".bun/bin",
    ".cargo/bin",
    ".deno/bin",
    ".fnm",
    ".fvm",
    ".ghcup/bin",
    ".ghcup/ghc",
    ".goenv",
    ".jenv",
    ".juliaup/bin",
    ".local/bin",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/pipx/venvs",
    ".local/share/pnpm",
    ".local/share/rtx",
    ".local/share/uv/python",
    ".local/share/uv/tools",
    ".nodenv",
    ".nvm",
    ".phpenv",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".sdkman/candidates",
    ".volta",
    "go/bin",
];

/// Returns a read-only mount, at the same path, for each of them that the home has.
#[must_use]
pub fn toolchains(home: &Path) -> Vec<Mount> {
    let present = TOOLCHAINS
        .iter()
        .map(|name| home.join(name))
        .filter(|path| path.is_dir());
    present.map(same_location).collect()
}

/// Makes a path visible where it is, read-only; a link to elsewhere is seen with what it leads to.
pub(crate) fn same_location(path: PathBuf) -> Mount {
    let host = path.canonicalize().unwrap_or_else(|_| path.clone());
    Mount {
        host,
        inside: path,
        access: MountAccess::ReadOnly,
    }
}
