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

/// Returns the full name of a branch.
pub(crate) fn branch_ref(name: &str) -> String {
    format!("refs/heads/{name}")
}
