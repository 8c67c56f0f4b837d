//! Names of refs, and which of them are taken without asking git.
//!
//! Text alone: nothing here looks into a repository.

/// The longest name that is handled here; a file name has room for it with `.lock`.
pub(crate) const NAME_BYTES_MAX: usize = 200;

/// Tells whether git surely takes a full name of a ref, and the file system, too.
pub(crate) fn is_plain_name(name: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.+=".contains(&b);
    let is_part = |part: &str| {
        !part.is_empty()
            && part.bytes().all(is_plain)
            && !part.starts_with('.')
            && !part.ends_with('.')
            && !part.ends_with(".lock")
            && !part.contains("..")
    };
    let n_parts = name.split('/').count();
    name.starts_with("refs/")
        && n_parts >= 2
        && name.len() <= NAME_BYTES_MAX
        && name.split('/').all(is_part)
}

/// Below which a branch lies that nobody has to see yet: `refs/kapi/held/<whose>/<name>`.
pub const HELD_REFS: &str = "refs/kapi/held/";

/// Returns the full name of a branch; one that is held back is named by it.
#[must_use]
pub fn branch_ref(name: &str) -> String {
    if is_held(name) {
        return name.to_owned();
    }
    format!("refs/heads/{name}")
}

/// Tells whether a branch is held back: work goes to it as to any other, and `git branch` does not show
/// it.
#[must_use]
pub fn is_held(name: &str) -> bool {
    name.starts_with(HELD_REFS)
}

/// Returns what a branch is called to whoever works on it.
#[must_use]
pub fn shown_name(name: &str) -> &str {
    let held = name.strip_prefix(HELD_REFS);
    let shown = held.and_then(|rest| rest.split_once('/'));
    shown.map_or(name, |(_, shown)| shown)
}
