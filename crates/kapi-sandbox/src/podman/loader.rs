//! What a program of ours needs to run in an image it knows nothing of: nothing when it is static,
//! its own loader and libraries when it is not.
//!
//! Reads the program's ELF header, program headers and dynamic section; the libraries are put beside
//! the program and never over the image's own. Runs nothing.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::error::PodmanError;

/// A loader and what it has to find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DynamicLinks {
    /// The loader's host path.
    pub loader: PathBuf,
    /// The libraries' names and host paths.
    pub libraries: Vec<(String, PathBuf)>,
}

/// Where libraries are looked for besides the loader's own directory.
const DIRECTORIES: &[&str] = &[
    "/lib64",
    "/usr/lib64",
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib",
    "/usr/lib",
];
/// The most libraries a program of ours may need.
const LIBRARIES_MAX: usize = 64;

const LOAD: u64 = 1;
const DYNAMIC: u64 = 2;
const INTERPRETER: u64 = 3;
const NEEDED: u64 = 1;
const STRING_TABLE: u64 = 5;

/// Returns what a program needs, or `None` when it is static.
pub(super) fn linked(program: &Path) -> Result<Option<DynamicLinks>, PodmanError> {
    let Some(parsed) = parse(program)? else {
        return Ok(None);
    };
    let Some(loader) = parsed.interpreter else {
        return Ok(None);
    };
    let mut locations: Vec<PathBuf> = loader.parent().map(Path::to_path_buf).into_iter().collect();
    locations.extend(DIRECTORIES.iter().map(PathBuf::from));
    let loader_name = loader.file_name().map(OsStr::to_os_string);
    let mut seen = BTreeSet::new();
    let mut libraries = Vec::new();
    let mut wanted = parsed.needed;
    while let Some(name) = wanted.pop() {
        let is_loader = loader_name.as_deref() == Some(OsStr::new(&name));
        if is_loader || !seen.insert(name.clone()) || seen.len() > LIBRARIES_MAX {
            continue;
        }
        let found = locations
            .iter()
            .map(|location| location.join(&name))
            .find(|path| path.is_file());
        let path = found.ok_or_else(|| PodmanError::NoLibrary {
            program: program.to_path_buf(),
            library: name.clone(),
        })?;
        wanted.extend(
            parse(&path)?
                .map(|parsed| parsed.needed)
                .unwrap_or_default(),
        );
        libraries.push((name, path));
    }
    Ok(Some(DynamicLinks { loader, libraries }))
}

struct ElfLinks {
    interpreter: Option<PathBuf>,
    needed: Vec<String>,
}

/// Reads a 64-bit little-endian program; anything else needs nothing that we know of.
fn parse(path: &Path) -> Result<Option<ElfLinks>, PodmanError> {
    let bytes = fs::read(path).map_err(PodmanError::file("read", path))?;
    Ok(parse_bytes(&bytes))
}

fn parse_bytes(bytes: &[u8]) -> Option<ElfLinks> {
    if bytes.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let (at, size, count) = (
        number(bytes, 32, 8)?,
        number(bytes, 54, 2)?,
        number(bytes, 56, 2)?,
    );
    let headers: Vec<ProgramHeader> = (0..count)
        .map(|index| ProgramHeader::read(bytes, at.checked_add(index.checked_mul(size)?)?))
        .collect::<Option<_>>()?;
    let of_kind = |kind| headers.iter().find(move |header| header.kind == kind);
    let interpreter = of_kind(INTERPRETER).and_then(|header| text(bytes, header.offset));
    let needed = of_kind(DYNAMIC).and_then(|header| needed(bytes, &headers, header));
    Some(ElfLinks {
        interpreter: interpreter.map(|path| PathBuf::from(OsStr::from_bytes(path))),
        needed: needed.unwrap_or_default(),
    })
}

struct ProgramHeader {
    kind: u64,
    offset: u64,
    address: u64,
    size: u64,
}

impl ProgramHeader {
    fn read(bytes: &[u8], at: u64) -> Option<Self> {
        Some(Self {
            kind: number(bytes, at, 4)?,
            offset: number(bytes, at.checked_add(8)?, 8)?,
            address: number(bytes, at.checked_add(16)?, 8)?,
            size: number(bytes, at.checked_add(32)?, 8)?,
        })
    }
}

fn needed(bytes: &[u8], headers: &[ProgramHeader], dynamic: &ProgramHeader) -> Option<Vec<String>> {
    const ENTRY_BYTES: u64 = 16;
    let entries: Vec<(u64, u64)> = (0..dynamic.size / ENTRY_BYTES)
        .map_while(|index| {
            let at = dynamic.offset.checked_add(index * ENTRY_BYTES)?;
            Some((number(bytes, at, 8)?, number(bytes, at.checked_add(8)?, 8)?))
        })
        .collect();
    let table = entries.iter().find(|(tag, _)| *tag == STRING_TABLE)?.1;
    let holder = headers.iter().find(|header| {
        header.kind == LOAD
            && table
                .checked_sub(header.address)
                .is_some_and(|offset| offset < header.size)
    })?;
    let table = table - holder.address + holder.offset;
    let names = entries.iter().filter(|(tag, _)| *tag == NEEDED);
    let names = names.filter_map(|(_, at)| text(bytes, table.checked_add(*at)?));
    Some(
        names
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect(),
    )
}

fn number(bytes: &[u8], at: u64, n_bytes: usize) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let field = bytes.get(at..at.checked_add(n_bytes)?)?;
    Some(
        field
            .iter()
            .rev()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
    )
}

fn text(bytes: &[u8], at: u64) -> Option<&[u8]> {
    let rest = bytes.get(usize::try_from(at).ok()?..)?;
    rest.split(|byte| *byte == 0).next()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{linked, parse_bytes};

    #[test]
    fn a_dynamic_program_names_its_loader_and_libraries() {
        let linked = linked(&std::env::current_exe().unwrap()).unwrap().unwrap();
        assert!(linked.loader.is_absolute());
        let names: Vec<&str> = linked
            .libraries
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert!(names.contains(&"libc.so.6"), "{names:?}");
        assert!(linked.libraries.iter().all(|(_, path)| path.is_file()));
    }

    #[test]
    fn what_is_no_program_needs_nothing() {
        assert!(linked(Path::new("/etc/passwd")).unwrap().is_none());
        assert!(parse_bytes(b"").is_none());
        assert!(parse_bytes(b"\x7fELF\x02\x01 cut").is_none());
        let mut wild = b"\x7fELF\x02\x01".to_vec();
        wild.resize(64, 0xff);
        assert!(parse_bytes(&wild).is_none());
    }
}
