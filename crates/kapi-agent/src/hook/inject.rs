//! Adds the status hooks to an agent's own settings, beside whatever the person has there.
//!
//! Pure: the old file in, the new one out; the caller writes it inside the sandbox only. Doing
//! it twice changes nothing more. A file that cannot be read is an error and never replaced.
//! Knows nothing of sandboxes.

mod json;
mod tables;

use crate::hook::HookAgent;
use crate::text::one_line;

/// Bytes of a settings file that is read.
const FILE_BYTES_MAX: usize = 4 << 20;

/// Settings with the hooks in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Injection {
    /// The settings file, relative to the agent's home.
    pub file: &'static str,
    /// Its new content.
    pub content: Vec<u8>,
    /// Whether that differs from the old one.
    pub is_changed: bool,
    /// Arguments without which the agent would not run the hooks.
    pub args: &'static [&'static str],
    /// The person's own setting that keeps all hooks from running, if there is one; then no
    /// status will come from them.
    pub muted_by: Option<&'static str>,
}

/// Why settings were left alone.
#[derive(Debug, thiserror::Error)]
pub enum InjectError {
    /// They are not text.
    #[error("read ~/{file}: it is not UTF-8 from line {line} on")]
    NotUtf8 {
        /// The file, relative to the home.
        file: &'static str,
        /// The first line that is not.
        line: usize,
    },
    /// They are too large.
    #[error("read ~/{file}: it is larger than {FILE_BYTES_MAX} bytes")]
    TooLarge {
        /// The file, relative to the home.
        file: &'static str,
    },
    /// They are not in their format.
    #[error("read ~/{file}, line {line}: {reason}")]
    Syntax {
        /// The file, relative to the home.
        file: &'static str,
        /// The line, from 1.
        line: usize,
        /// What the parser says.
        reason: String,
    },
    /// A value in them has a shape that hooks cannot be added to.
    #[error("add hooks to ~/{file}, line {line}: {key} is not {expected}")]
    Shape {
        /// The file, relative to the home.
        file: &'static str,
        /// Where the value is.
        line: usize,
        /// Its key.
        key: String,
        /// What it should be.
        expected: &'static str,
    },
}

impl InjectError {
    /// Returns what to do about it, as a sentence.
    #[must_use]
    pub fn hint(&self) -> String {
        "Fix the file, which was not changed, or do not share it with the sandbox.".to_owned()
    }
}

/// Adds hooks that run `command` to the settings of an agent. `existing` is the person's file.
///
/// # Errors
/// When `existing` cannot be read, or holds something else where hooks belong.
pub fn inject(
    agent: HookAgent,
    existing: Option<&[u8]>,
    command: &str,
) -> Result<Injection, InjectError> {
    let file = settings_file(agent);
    let old = existing.unwrap_or_default();
    let text = text_of(file, old)?;
    let merged = match agent {
        HookAgent::Claude => json::merged(file, text, &json::CLAUDE, command)?,
        HookAgent::Gemini => json::merged(file, text, &json::GEMINI, command)?,
        HookAgent::Codex => tables::merged(file, text, command)?,
    };
    let content = merged
        .content
        .map_or_else(|| old.to_vec(), String::into_bytes);
    Ok(Injection {
        file,
        is_changed: content != old,
        content,
        args: match agent {
            // Without it Codex skips hooks that a person has not confirmed, and says nothing.
            HookAgent::Codex => &["--dangerously-bypass-hook-trust"],
            HookAgent::Claude | HookAgent::Gemini => &[],
        },
        muted_by: merged.muted_by,
    })
}

/// Returns where an agent has its settings, relative to its home.
#[must_use]
pub const fn settings_file(agent: HookAgent) -> &'static str {
    match agent {
        HookAgent::Claude => ".claude/settings.json",
        HookAgent::Codex => ".codex/config.toml",
        HookAgent::Gemini => ".gemini/settings.json",
    }
}

/// What one format makes of the old text.
#[derive(Debug)]
struct MergedHooks {
    /// The new text; none if the old one has the hooks already.
    content: Option<String>,
    muted_by: Option<&'static str>,
}

fn text_of<'a>(file: &'static str, bytes: &'a [u8]) -> Result<&'a str, InjectError> {
    if bytes.len() > FILE_BYTES_MAX {
        return Err(InjectError::TooLarge { file });
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    std::str::from_utf8(bytes).map_err(|error| {
        let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let line = 1 + good.iter().filter(|byte| **byte == b'\n').count();
        InjectError::NotUtf8 { file, line }
    })
}

/// Returns the line a byte is on, counted from 1.
fn line_at(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

/// Returns a parser's complaint as one line.
fn reason(error: &dyn std::fmt::Display) -> String {
    one_line(&error.to_string())
}
