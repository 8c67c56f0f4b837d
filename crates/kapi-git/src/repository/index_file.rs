//! An index file, read without git: its entries, and which tree it is of.
//!
//! Reading saves a process where a process is what costs. Knows the plain format only (versions 2
//! and 3), which is what git writes unless told otherwise; anything else cannot be read here.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use sha1::{Digest as _, Sha1};
use sha2::Sha256;

use super::ObjectFormat;

/// The largest index that is read.
const BYTES_MAX: u64 = 2 << 30;
/// Where an entry's numbers end and its object's id begins.
const OBJECT_AT: usize = 40;
/// Bytes before the first entry, and before the content of an extension.
const HEADER_BYTES: usize = 12;
const EXTENSION_HEADER_BYTES: usize = 8;
/// The flags of an entry: take it as unchanged, more flags follow, not merged; and its name's length.
const ASSUMED: u32 = 0x8000;
const EXTENDED: u32 = 0x4000;
const UNMERGED: u32 = 0x3000;
const NAME_BYTES: u32 = 0x0fff;
/// The flags that follow: left out of a sparse checkout, and added without content.
const LEFT_OUT: u32 = 0x4000;
const INTENDED: u32 = 0x2000;
/// The mode of a whole directory in a sparse index.
const DIRECTORY: u32 = 0o040_000;

/// The extension of a monitor of files, and its version.
const MONITOR: &[u8; 4] = b"FSMN";
const MONITOR_VERSION: u32 = 2;
/// Bytes of the shorter kind of hash.
const SHA1_BYTES: usize = 20;

/// An index as it was when it was read.
#[derive(Debug)]
pub(crate) struct IndexFile {
    pub(crate) bytes: Vec<u8>,
    /// When it was written.
    pub(crate) written: FileTime,
    n_hash: usize,
    /// Where each entry begins.
    entries: Vec<usize>,
    /// The extensions by name, with where their content is.
    extensions: Vec<([u8; 4], usize, usize)>,
}

/// A time of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileTime {
    pub(crate) seconds: i64,
    pub(crate) nanoseconds: i64,
}

/// A time of a file as an index notes it: cut to 32 bits, and zero nanoseconds where they are unknown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NotedTime {
    pub(crate) seconds: u32,
    pub(crate) nanoseconds: u32,
}

/// One entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IndexEntry<'a> {
    bytes: &'a [u8],
    n_hash: usize,
}

impl IndexFile {
    /// Reads an index; nothing when there is none, or when git has to read it.
    pub(crate) fn read(path: &Path, format: ObjectFormat) -> Option<Self> {
        let file = File::open(path).ok()?;
        let found = file.metadata().ok()?;
        if !found.is_file() || found.len() > BYTES_MAX {
            return None;
        }
        let mut bytes = Vec::with_capacity(usize::try_from(found.len()).ok()?);
        file.take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
        let mut index = Self {
            bytes,
            written: FileTime {
                seconds: found.mtime(),
                nanoseconds: found.mtime_nsec(),
            },
            n_hash: format.n_digits() / 2,
            entries: Vec::new(),
            extensions: Vec::new(),
        };
        index.find_parts()?;
        Some(index)
    }

    /// Returns the entries, sorted by path.
    pub(crate) fn entries(&self) -> impl Iterator<Item = IndexEntry<'_>> {
        self.entries.iter().map(|&at| IndexEntry {
            bytes: self.bytes.get(at..).unwrap_or_default(),
            n_hash: self.n_hash,
        })
    }

    /// Tells whether nothing but these extensions is in it.
    pub(crate) fn has_only(&self, names: &[&[u8; 4]]) -> bool {
        let mut found = self.extensions.iter();
        found.all(|(name, ..)| names.contains(&name))
    }

    /// Returns the id of the tree that it holds, if git noted that it holds exactly one.
    pub(crate) fn tree(&self) -> Option<String> {
        let mut found = self.extensions.iter();
        let (_, at, n_bytes) = found.find(|(name, ..)| name == b"TREE")?;
        let content = self.bytes.get(*at..at + n_bytes)?;
        // The root has no name; a number of entries below zero says that the tree is not known.
        let rest = content.strip_prefix(b"\0")?;
        let end = rest.iter().position(|&b| b == b'\n')?;
        if rest.first() == Some(&b'-') {
            return None;
        }
        let id = rest.get(end + 1..end + 1 + self.n_hash)?;
        Some(hex(id))
    }

    /// Returns the same index with the note that a monitor told of every change up to `token`: git
    /// then looks only at what the monitor names.
    pub(crate) fn with_monitor(&self, token: &str) -> Vec<u8> {
        let mut note = MONITOR_VERSION.to_be_bytes().to_vec();
        note.extend_from_slice(token.as_bytes());
        note.push(0);
        // An empty bitmap: of no entry it is known that it differs.
        let bitmap = [0_u32, 1, 0, 0, 0].map(u32::to_be_bytes).concat();
        note.extend(
            u32::try_from(bitmap.len())
                .unwrap_or_default()
                .to_be_bytes(),
        );
        note.extend(bitmap);
        let end = self.bytes.len().saturating_sub(self.n_hash);
        let mut bytes = self.bytes.get(..end).unwrap_or_default().to_vec();
        bytes.extend_from_slice(MONITOR);
        bytes.extend(u32::try_from(note.len()).unwrap_or_default().to_be_bytes());
        bytes.extend(note);
        let sum = match self.n_hash {
            SHA1_BYTES => Sha1::digest(&bytes).to_vec(),
            _ => Sha256::digest(&bytes).to_vec(),
        };
        bytes.extend(sum);
        bytes
    }

    /// Finds out where everything is; nothing when it is not as it should be.
    fn find_parts(&mut self) -> Option<()> {
        let bytes = self.bytes.as_slice();
        let is_plain = bytes.starts_with(b"DIRC") && matches!(number(bytes, 4)?, 2 | 3);
        let n_entries = usize::try_from(number(bytes, 8)?)
            .ok()
            .filter(|_| is_plain)?;
        let end = bytes.len().checked_sub(self.n_hash)?;
        let mut at = HEADER_BYTES;
        let mut entries = Vec::with_capacity(n_entries.min(bytes.len() / OBJECT_AT));
        for _ in 0..n_entries {
            let entry = IndexEntry {
                bytes: bytes.get(at..end)?,
                n_hash: self.n_hash,
            };
            entries.push(at);
            at += entry.n_bytes()?;
        }
        let mut extensions = Vec::new();
        while at < end {
            let name: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
            let n_bytes = usize::try_from(number(bytes, at + 4)?).ok()?;
            at += EXTENSION_HEADER_BYTES;
            extensions.push((name, at, n_bytes));
            at = at.checked_add(n_bytes)?;
        }
        (self.entries, self.extensions) = (entries, extensions);
        (at == end).then_some(())
    }
}

impl<'a> IndexEntry<'a> {
    /// Returns its path.
    pub(crate) fn path(&self) -> &'a [u8] {
        let rest = self.bytes.get(self.name_at()..).unwrap_or_default();
        let n_bytes = self.flags() & NAME_BYTES;
        let n_bytes = if n_bytes < NAME_BYTES {
            usize::try_from(n_bytes).ok()
        } else {
            rest.iter().position(|&b| b == 0)
        };
        let name = n_bytes.and_then(|n_bytes| rest.get(..n_bytes));
        name.unwrap_or_default()
    }

    /// Returns its object's id.
    pub(crate) fn object(&self) -> String {
        let id = self.bytes.get(OBJECT_AT..OBJECT_AT + self.n_hash);
        hex(id.unwrap_or_default())
    }

    /// Returns when the file's inode was last changed.
    pub(crate) fn changed(&self) -> NotedTime {
        self.time(0)
    }

    /// Returns when the file was last written.
    pub(crate) fn modified(&self) -> NotedTime {
        self.time(8)
    }

    /// Returns the number of the file's inode, cut to 32 bits.
    pub(crate) fn inode(&self) -> u32 {
        self.word(20)
    }

    pub(crate) fn mode(&self) -> u32 {
        self.word(24)
    }

    /// Returns the file's user and group.
    pub(crate) fn owner(&self) -> (u32, u32) {
        (self.word(28), self.word(32))
    }

    /// Returns the file's size, cut to 32 bits.
    pub(crate) fn size(&self) -> u32 {
        self.word(36)
    }

    /// Tells whether the person told git to take the file as unchanged.
    pub(crate) fn is_assumed(&self) -> bool {
        self.flags() & ASSUMED != 0
    }

    /// Tells whether a sparse checkout leaves the file out.
    pub(crate) fn is_left_out(&self) -> bool {
        self.more_flags() & LEFT_OUT != 0
    }

    /// Tells whether it is one file with content, and not a conflict, a promise or a directory.
    pub(crate) fn is_whole(&self) -> bool {
        let is_merged = self.flags() & UNMERGED == 0;
        is_merged && self.more_flags() & INTENDED == 0 && self.mode() != DIRECTORY
    }

    /// Returns how long it is, which is a multiple of eight and leaves room for a zero byte.
    fn n_bytes(&self) -> Option<usize> {
        self.bytes.get(..self.name_at())?;
        let n_bytes = self.name_at() + self.path().len();
        let is_ended = self.bytes.get(n_bytes) == Some(&0);
        is_ended.then_some((n_bytes + 8) & !7)
    }

    fn name_at(&self) -> usize {
        let flags_at = OBJECT_AT + self.n_hash;
        let is_extended = self.flags() & EXTENDED != 0;
        flags_at + if is_extended { 4 } else { 2 }
    }

    fn flags(&self) -> u32 {
        half(self.bytes, OBJECT_AT + self.n_hash)
    }

    fn more_flags(&self) -> u32 {
        if self.flags() & EXTENDED == 0 {
            return 0;
        }
        half(self.bytes, OBJECT_AT + self.n_hash + 2)
    }

    fn time(&self, at: usize) -> NotedTime {
        NotedTime {
            seconds: self.word(at),
            nanoseconds: self.word(at + 4),
        }
    }

    fn word(&self, at: usize) -> u32 {
        number(self.bytes, at).unwrap_or_default()
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> u32 {
    let half = bytes.get(at..at + 2).and_then(|half| half.try_into().ok());
    half.map_or(0, |half| u32::from(u16::from_be_bytes(half)))
}

fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}
