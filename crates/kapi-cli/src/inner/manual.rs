//! The manual, one page for each command, for whoever packs the program: `kapi __manual DIR`.
//!
//! Made from what `--help` says, so that the two cannot differ.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;

use crate::command_line;

/// The word that enters it.
pub(super) const ARGUMENT: &str = "__manual";

/// Writes the pages into a directory that is there.
pub(super) fn enter(mut args: impl Iterator<Item = OsString>) -> i32 {
    let Some(dir) = args.next().map(PathBuf::from) else {
        return 2;
    };
    match clap_mangen::generate_to(command_line(), &dir) {
        Ok(()) => 0,
        Err(error) => {
            let text = format!(
                "error: failed to write pages into {}: {error}\n",
                dir.display()
            );
            // The code tells it as well.
            drop(io::stderr().write_all(text.as_bytes()));
            4
        }
    }
}
