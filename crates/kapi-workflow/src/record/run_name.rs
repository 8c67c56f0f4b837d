//! The name of the run that performs an effect of a workflow: the directory of its files.
//!
//! Pure. Ids of effects are not all safe as file names, so those that are not are replaced.

use kapi_core::id::{EffectId, GoalId};
use kapi_store::hash::sha256_hex;

/// Digits of the hash that stands for what a file name cannot hold.
const NAME_HASH_DIGITS: usize = 8;
/// The longest part of an effect's id in a file name.
const NAME_BYTES_MAX: usize = 80;

/// Returns the part of a file's name that stands for an effect: its id where that is plain.
#[must_use]
pub fn effect_name(effect: &EffectId) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let text = effect.as_str();
    if text.chars().all(is_plain) && text.len() <= NAME_BYTES_MAX {
        return text.to_owned();
    }
    let plain: String = text
        .chars()
        .map(|c| if is_plain(c) { c } else { '-' })
        .take(NAME_BYTES_MAX)
        .collect();
    let mut hash = sha256_hex(text.as_bytes());
    hash.truncate(NAME_HASH_DIGITS);
    format!("{plain}-{hash}")
}

/// Returns the name of the run that performs an effect of a workflow.
#[must_use]
pub fn run_name(workflow: &GoalId, effect: &EffectId) -> String {
    format!("{workflow}-{}", effect_name(effect))
}

#[cfg(test)]
mod tests {
    use kapi_core::id::EffectId;

    use super::effect_name;

    #[test]
    fn a_name_of_an_effect_is_a_plain_and_single_file_name() {
        let plain = EffectId::new(1, "work-T-001", 2);
        assert_eq!(effect_name(&plain), plain.as_str());
        let (one, other) = (
            effect_name(&EffectId::new(1, "work-../../T", 1)),
            effect_name(&EffectId::new(1, "work-..-..-T", 1)),
        );
        assert_ne!(one, other);
        let long = effect_name(&EffectId::new(1, &"ä/".repeat(200), 1));
        for name in [one, other, long] {
            assert!(!name.contains(['/', '.']) && name.len() < 100, "{name}");
        }
    }
}
