//! A small C program to make better, and a mixed bag of ideas for it: real gains, changes without an
//! effect, regressions, cheats, a broken test, crashes and a hang.
//!
//! What counts the program's comparisons is another process, which alone knows the words. Nothing here
//! knows who tries the ideas, or by which rule they are kept.

pub mod idea;

use std::path::Path;

use kapi_sys::disk::{Disk as _, DiskError};
use kapi_sys::real_disk::RealDisk;

/// One file of a repository.
#[derive(Debug, Clone, Copy)]
pub struct ProgramFile {
    /// Its path in the repository.
    pub path: &'static str,
    /// What is in it.
    pub text: &'static str,
}

/// Names a file of the program.
macro_rules! file {
    ($path:literal) => {
        ProgramFile {
            path: $path,
            text: include_str!(concat!("../fixtures/words/", $path)),
        }
    };
}

/// The program, what measures it, and what checks it.
const PROGRAM: &[ProgramFile] = &[
    file!("src/words.h"),
    file!("src/main.c"),
    file!("src/compare.c"),
    file!("src/sort.c"),
    file!("src/find.c"),
    file!("bench/judge.c"),
    file!("bench/build.sh"),
    file!("bench/run.sh"),
    file!("bench/time.sh"),
    file!("bench/list"),
    file!("tests/check.sh"),
    file!("tests/nothing.list"),
    file!("tests/one.list"),
    file!("tests/twins.list"),
    file!("tests/sorted.list"),
    file!("tests/reversed.list"),
    ProgramFile {
        path: ".gitignore",
        text: "build/\n",
    },
];

/// The benchmark's list with other words, which no agent sees.
const HELD_BACK: ProgramFile = ProgramFile {
    path: "bench/list",
    text: include_str!("../fixtures/words/ideas/held_back_list"),
};

/// What is checked and what may be changed, as options of `kapi autoresearch`.
pub const CHECKED: &[&str] = &[
    "--checks",
    "sh tests/check.sh",
    "--scope",
    "src",
    "--off-limits",
    "bench",
    "--off-limits",
    "tests",
];
/// What is measured where chance decides nothing: how often the program asks which of two words comes
/// first.
pub const COUNTED: &[&str] = &["--metric", "comparisons", "--benchmark", "sh bench/run.sh"];
/// What is measured by the clock, in microseconds.
pub const TIMED: &[&str] = &["--metric", "time:us", "--benchmark", "sh bench/time.sh"];

/// Writes the program into a repository.
///
/// # Errors
/// When a file cannot be written.
pub fn write_program(repository: &Path) -> Result<(), DiskError> {
    PROGRAM.iter().try_for_each(|file| write(repository, *file))
}

/// Writes the inputs that are held back into a directory of their own.
///
/// # Errors
/// When the file cannot be written.
pub fn write_held_back(directory: &Path) -> Result<(), DiskError> {
    write(directory, HELD_BACK)
}

fn write(directory: &Path, file: ProgramFile) -> Result<(), DiskError> {
    let path = directory.join(file.path);
    if let Some(parent) = path.parent() {
        RealDisk.create_dir(parent)?;
    }
    RealDisk.write(&path, file.text.as_bytes())
}
