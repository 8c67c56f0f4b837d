//! The patches of the files that differ, each in a fence of its own and with room of its own.
//!
//! Code has most of the room, and within a kind the room is shared out so that small patches are whole
//! and only large ones are cut: in their middle, and said to be.

use kapi_core::failure::Failure;
use kapi_core::quote::{fenced, head, tail, visible};
use kapi_git::change::ChangeKind;
use kapi_git::changed_file::FileMode;
use kapi_git::id::CommitId;
use kapi_run::failure;

use crate::perform::judge::evidence::kind::EvidenceFileKind;
use crate::perform::judge::evidence::{EvidenceLimits, Exhibit, JudgedChange, kind, named};

/// Files whose patches are read.
const READ_MAX: usize = 200;
/// Bytes of one patch that are read.
const READ_BYTES_MAX: usize = 256 * 1024;
/// Bytes of the patch of a file that is gone.
const GONE_BYTES_MAX: usize = 2_000;
/// No patch is cut to less than this: of too many, those that weigh least are not shown.
const LEAST_BYTES: usize = 300;
/// Names of files that are not shown.
const UNSHOWN_MAX: usize = 300;

/// The groups that share room, and how many hundredths of what is left each may take.
const GROUPS: [(&[EvidenceFileKind], usize); 3] = [
    (
        &[
            EvidenceFileKind::Steering,
            EvidenceFileKind::Code,
            EvidenceFileKind::Text,
        ],
        75,
    ),
    (&[EvidenceFileKind::Test], 75),
    (&[EvidenceFileKind::LockFile, EvidenceFileKind::Bulk], 100),
];

/// A patch that was read.
struct PatchText<'a> {
    exhibit: &'a Exhibit,
    text: String,
    is_cut: bool,
}

/// Returns the patches, and the names of the files whose patches are not among them.
pub(super) fn patches(
    change: &JudgedChange<'_>,
    base: &CommitId,
    exhibits: &[Exhibit],
    limits: &EvidenceLimits,
) -> Result<String, Failure> {
    let wanted = || exhibits.iter().filter(|exhibit| has_patch(exhibit));
    let mut parts = vec!["# The change, file by file".to_owned()];
    let mut unshown: Vec<&Exhibit> = wanted().skip(READ_MAX).collect();
    let mut left = limits.patch_bytes;
    let read = read(change, base, &wanted().take(READ_MAX).collect::<Vec<_>>())?;
    let mut is_cut = false;
    for (kinds, percent) in GROUPS {
        let group: Vec<&PatchText<'_>> = read
            .iter()
            .filter(|it| kinds.contains(&it.exhibit.kind))
            .collect();
        let sizes: Vec<usize> = group.iter().map(|read| read.text.len()).collect();
        let needed: usize = sizes.iter().sum();
        let is_last = !read
            .iter()
            .any(|it| it.exhibit.kind > *kinds.last().unwrap_or(&EvidenceFileKind::Binary));
        let budget = if is_last { left } else { left / 100 * percent };
        let n_shown = (budget / LEAST_BYTES).min(group.len());
        unshown.extend(group.iter().skip(n_shown).map(|read| read.exhibit));
        let sizes = sizes.get(..n_shown).unwrap_or_default();
        for (read, bytes) in group.iter().zip(shares(sizes, budget)) {
            let (text, was_cut) = cut(read, bytes);
            is_cut |= was_cut;
            // The name is foreign too, so it stands in the fence.
            let (name, kind) = (named(&read.exhibit.file.path), read.exhibit.kind.word());
            let number = parts.len();
            let fence = fenced(&format!("{name}\n{text}"), "diff");
            parts.push(format!("## File {number}: {kind}\n\n{fence}"));
        }
        left = left.saturating_sub(needed.min(budget));
    }
    unshown.sort_by_key(|exhibit| exhibit.kind);
    if !unshown.is_empty() {
        parts.push(not_shown(&unshown));
    }
    if is_cut || !unshown.is_empty() {
        parts.push(limits.if_cut.to_owned());
    }
    Ok(parts.join("\n\n"))
}

/// Tells whether there is more to a change than its line in the list.
fn has_patch(exhibit: &Exhibit) -> bool {
    let is_link = exhibit
        .file
        .after
        .as_ref()
        .is_some_and(|it| it.mode != FileMode::Plain);
    exhibit.moved_from.is_none()
        && !exhibit.is_moved_away
        && exhibit.kind != EvidenceFileKind::Binary
        && (kind::has_content(&exhibit.file) || is_link)
}

fn read<'a>(
    change: &JudgedChange<'_>,
    base: &CommitId,
    exhibits: &[&'a Exhibit],
) -> Result<Vec<PatchText<'a>>, Failure> {
    let read = |exhibit: &&'a Exhibit| {
        let bytes_max = match exhibit.file.kind {
            ChangeKind::Deleted => GONE_BYTES_MAX,
            ChangeKind::Added | ChangeKind::Modified | ChangeKind::Mode | ChangeKind::Type => {
                READ_BYTES_MAX
            }
        };
        let repository = &change.repo.repository;
        let patch = repository
            .file_patch(base, &change.commit, &exhibit.file.path, bytes_max)
            .map_err(|error| failure::plain(&error))?;
        Ok(PatchText {
            exhibit,
            text: visible(&escaped(&patch.bytes)),
            is_cut: patch.is_cut,
        })
    };
    exhibits.iter().map(read).collect()
}

/// Returns bytes as text in which what is no text is written out.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    text
}

/// Shares room out: what needs little has all of it, and the rest have the same each.
fn shares(needs: &[usize], capacity: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..needs.len()).collect();
    let need = |idx: &usize| needs.get(*idx).copied().unwrap_or_default();
    order.sort_by_key(need);
    let mut shares = vec![0; needs.len()];
    let (mut left, mut n_left) = (capacity, needs.len());
    for idx in order {
        let share = need(&idx).min(left / n_left.max(1));
        if let Some(slot) = shares.get_mut(idx) {
            *slot = share;
        }
        left -= share;
        n_left -= 1;
    }
    shares
}

/// Cuts a patch in its middle, and tells whether anything is missing.
fn cut(read: &PatchText<'_>, bytes_max: usize) -> (String, bool) {
    let text = &read.text;
    if text.len() <= bytes_max {
        let end = if read.is_cut {
            "\n[kapi: the end of this file's change is not shown]"
        } else {
            ""
        };
        return (format!("{text}{end}"), read.is_cut);
    }
    let (first, last) = (head(text, bytes_max / 3 * 2), tail(text, bytes_max / 3));
    let missing = text.len() - first.len() - last.len();
    let more = if read.is_cut { " and its end" } else { "" };
    let cut = format!(
        "{first}\n[kapi: {missing} bytes of this file's change{more} are not shown]\n{last}"
    );
    (cut, true)
}

fn not_shown(unshown: &[&Exhibit]) -> String {
    let line =
        |exhibit: &&Exhibit| format!("{} {}", exhibit.kind.word(), named(&exhibit.file.path));
    let mut lines: Vec<String> = unshown.iter().take(UNSHOWN_MAX).map(line).collect();
    if unshown.len() > UNSHOWN_MAX {
        let beyond = unshown.len() - UNSHOWN_MAX;
        lines.push(format!("and {beyond} more of those in the list above"));
    }
    format!(
        "## Not shown\n\nThe changes of these {} files are not shown here:\n\n{}",
        unshown.len(),
        fenced(&lines.join("\n"), "text")
    )
}

#[cfg(test)]
mod tests {
    use super::{escaped, shares};

    #[test]
    fn one_that_needs_much_takes_nothing_from_those_that_need_little() {
        assert_eq!(shares(&[10, 60_000, 20], 1_000), [10, 970, 20]);
        assert_eq!(shares(&[500, 500, 500], 900), [300, 300, 300]);
        assert_eq!(shares(&[1, 2], 100), [1, 2]);
        assert_eq!(shares(&[], 100), Vec::<usize>::new());
    }

    #[test]
    fn what_is_no_text_is_written_out() {
        assert_eq!(escaped(b"+a\xff\xfeb"), "+a\\xff\\xfeb");
    }
}
