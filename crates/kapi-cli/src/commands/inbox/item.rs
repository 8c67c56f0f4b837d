//! One thing that waits, with the commands that settle it as words of a command line.
//!
//! What is shown is made of the words that are run, and of nothing else.

use kapi_core::quote::shell_word;
use kapi_wire::workflow::inbox::InboxItem;

/// One thing that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WaitingItem {
    /// What others see of it.
    pub(super) view: InboxItem,
    /// What a yes runs.
    pub(super) yes: Option<CommandLine>,
    /// What a look runs.
    pub(super) look: Option<CommandLine>,
}

/// A command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommandLine {
    /// Its words.
    pub(super) words: Vec<String>,
}

impl CommandLine {
    /// Makes a command line of words.
    pub(super) fn of(words: &[&str]) -> Self {
        let all = ["kapi"].iter().chain(words);
        Self {
            words: all.map(|&word| word.to_owned()).collect(),
        }
    }

    /// Returns it as it is typed in a shell.
    pub(super) fn typed(&self) -> String {
        let words: Vec<String> = self.words.iter().map(|word| shell_word(word)).collect();
        words.join(" ")
    }
}

/// What an item is made of.
#[derive(Debug)]
pub(super) struct ItemContent {
    /// Its kind, see [`InboxItem::kind`].
    pub(super) kind: &'static str,
    /// What it is about.
    pub(super) subject: String,
    /// Since when.
    pub(super) since_ms: Option<i64>,
    /// What waits, in a sentence.
    pub(super) what: String,
    /// What speaks against it.
    pub(super) risks: Vec<String>,
    /// What will happen on yes.
    pub(super) on_yes: String,
    /// What a yes runs.
    pub(super) yes: Option<CommandLine>,
    /// What to type to have it changed.
    pub(super) change: Vec<String>,
    /// What a look runs.
    pub(super) look: Option<CommandLine>,
}

impl From<ItemContent> for WaitingItem {
    fn from(waiting: ItemContent) -> Self {
        Self {
            view: InboxItem {
                kind: waiting.kind,
                subject: waiting.subject,
                since_ms: waiting.since_ms,
                what: waiting.what,
                risks: waiting.risks,
                on_yes: waiting.on_yes,
                yes: waiting.yes.as_ref().map(CommandLine::typed),
                change: waiting.change,
                look: waiting.look.as_ref().map(CommandLine::typed),
            },
            yes: waiting.yes,
            look: waiting.look,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CommandLine;

    #[test]
    fn what_is_shown_can_be_typed() {
        let line = CommandLine::of(&["goal", "allow", "003", "rm -rf 'x'", "a.b/c:d"]);
        assert_eq!(
            line.typed(),
            r"kapi goal allow 003 'rm -rf '\''x'\''' a.b/c:d"
        );
    }
}
