//! The command line as it was typed, for messages that show how it should have been.
//!
//! Reads the arguments of this process only.

use std::env;

use kapi_core::quote::shell_word;

use crate::ui::Ui;

/// Returns the command that was typed with further options, ready to be pasted into a shell.
pub(crate) fn with(options: &[&str]) -> String {
    corrected(&typed(), options)
}

/// Returns the same for somebody whom nothing can be asked: a run that nobody can approve is told
/// with that as well.
pub(crate) fn unattended(ui: Ui, options: &[&str]) -> String {
    let typed = typed();
    let is_approved = typed.iter().any(|word| word == "--yes" || word == "-y");
    let is_run = typed.first().is_some_and(|word| word == "run");
    let mut options = options.to_vec();
    if is_run && !is_approved && !ui.is_at_keyboard() {
        options.push("--yes");
    }
    corrected(&typed, &options)
}

/// Returns the words behind the program's name; what is no text has replacement characters.
pub(crate) fn typed() -> Vec<String> {
    let words = env::args_os().skip(1);
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

/// Returns a command with options, which stand before whatever follows `--`.
fn corrected(typed: &[String], options: &[&str]) -> String {
    let end = typed.iter().position(|word| word == "--");
    let (before, after) = typed.split_at(end.unwrap_or(typed.len()));
    let words = before
        .iter()
        .map(String::as_str)
        .chain(options.iter().copied())
        .chain(after.iter().map(String::as_str));
    let words: Vec<String> = words.map(shell_word).collect();
    format!("kapi {}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::corrected;

    #[test]
    fn options_are_added_where_they_are_read_as_such() {
        let typed = |words: &[&str]| {
            words
                .iter()
                .map(|&word| word.to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            corrected(
                &typed(&["run", "fix it", "--verify", "sh t.sh"]),
                &["--judge", "same"]
            ),
            "kapi run 'fix it' --verify 'sh t.sh' --judge same"
        );
        assert_eq!(
            corrected(&typed(&["run", "--", "-x"]), &["--agent", "pi"]),
            "kapi run --agent pi -- -x"
        );
    }
}
