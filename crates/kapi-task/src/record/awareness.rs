//! What every agent is told before its task: how to do well here, what it may use, and what
//! earlier runs learnt.
//!
//! Only text. What is said of the sandbox is what was decided, never what an agent asked for.

use std::path::Path;

use kapi_settings::fault::SettingsFault;

use crate::record::definition_file::directory::{DefinitionDirectory, DefinitionPathError, upward};
use crate::record::shipped;

/// Where the specification keeps the text: the nearest one upward, within the project.
pub const AWARENESS_FILE: &str = ".pi/kernel-awareness.md";
/// The longest text in bytes: it is told with every prompt.
const AWARENESS_BYTES_MAX: usize = 16 * 1024;

/// The text, and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Awareness {
    /// The text, without blanks around it.
    pub text: String,
    /// The file, or what stands for it.
    pub source: String,
    /// Why the project's own text is not used, where there is one that cannot be.
    pub fault: Option<SettingsFault>,
}

/// What is true of a run, as far as its agent may know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Circumstances<'a> {
    /// The level of its sandbox: native, podman, none.
    pub level: &'a str,
    /// What it reaches besides its model, in words: "nothing", "the hosts that a person listed".
    pub network: &'a str,
    /// Whether its workspace can be written to.
    pub is_read_only: bool,
    /// The branch that its work is committed to, where there is one.
    pub branch: Option<&'a str>,
    /// Whether that branch gets its own commits, too.
    pub keeps_commits: bool,
    /// How long it has, in milliseconds; `None` for no limit.
    pub time_ms: Option<u64>,
    /// How many tokens it has; `None` for no limit.
    pub tokens: Option<u64>,
    /// How much money it has, in millionths of a US dollar; `None` for no limit.
    pub usd_micros: Option<u64>,
    /// The names of its tools; empty when it has all that its program offers.
    pub tools: &'a [String],
    /// What its work is held to afterwards, one line each.
    pub checks: &'a [String],
}

/// Returns the text of the project at `root`, as seen from `start`, or the shipped one.
#[must_use]
pub fn load(root: &Path, start: &Path) -> Awareness {
    let shipped = |fault| Awareness {
        text: shipped::AWARENESS.text.trim().to_owned(),
        source: shipped::AWARENESS.path.to_owned(),
        fault,
    };
    let found = (|| {
        let Some(location) = DefinitionDirectory::open(root)? else {
            return Ok(None);
        };
        for dir in upward(root, start) {
            let file = dir.join(AWARENESS_FILE);
            if let Some(text) = location.read(&file)? {
                return Ok(Some((file, text)));
            }
        }
        Ok::<_, DefinitionPathError>(None)
    })();
    let (file, text) = match found {
        Ok(Some(found)) => found,
        Ok(None) => return shipped(None),
        Err(error) => {
            return shipped(Some(error.fault(Path::new(AWARENESS_FILE))));
        }
    };
    let source = file.display().to_string();
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    match text.trim() {
        "" => shipped(None),
        text if text.len() > AWARENESS_BYTES_MAX => shipped(Some(SettingsFault {
            file: source,
            line: 0,
            key: None,
            what: "it is longer than 16 KiB".to_owned(),
            remedy: "shorten it: every agent reads it for every task".to_owned(),
        })),
        text => Awareness {
            text: text.to_owned(),
            source,
            fault: None,
        },
    }
}

/// Returns the paragraph about this one run, which follows the text.
#[must_use]
pub fn describe(run: &Circumstances<'_>) -> String {
    let mut lines = vec!["## This Run".to_owned()];
    lines.push(match run.level {
        "none" => "- You run without isolation: what you do outside of the workspace stays done."
            .to_owned(),
        level => format!(
            "- You run in a sandbox ({level}). Nothing outside of your workspace can be changed, and trying is a waste of time."
        ),
    });
    lines.push(match (run.is_read_only, run.branch) {
        (true, _) => {
            "- Your workspace cannot be written to. Your answer is what counts.".to_owned()
        }
        (false, Some(branch)) if run.keeps_commits => format!(
            "- Your commits, and then your other changes to the workspace, are put on the branch `{branch}` when you end. Do not push or switch branches yourself."
        ),
        (false, Some(branch)) => format!(
            "- Your changes to the workspace are committed to the branch `{branch}` when you end. Do not commit, push or switch branches yourself."
        ),
        (false, None) => {
            "- Your changes to the workspace are kept when you end. Do not commit or push yourself."
                .to_owned()
        }
    });
    lines.push(format!(
        "- Besides your model, you can reach: {}.",
        run.network
    ));
    lines.push(format!("- {}", limits(run)));
    if !run.tools.is_empty() {
        lines.push(format!("- Your tools: {}.", run.tools.join(", ")));
    }
    if !run.checks.is_empty() {
        lines.push("- When you end, Kapi checks your work by itself:".to_owned());
        lines.extend(run.checks.iter().map(|check| format!("  - {check}")));
    }
    lines.join("\n")
}

/// Joins what an agent is told: awareness, guardrails, and its prompt below a line. Empty parts
/// are left out; the line is always there.
#[must_use]
pub fn compose(awareness: &str, guardrails: &str, prompt: &str) -> String {
    let mut out = String::new();
    let parts = [
        ("## Kernel Awareness", awareness),
        ("## Guardrails (lessons from past runs)", guardrails),
    ];
    for (heading, text) in parts {
        let text = text.trim();
        if !text.is_empty() {
            out.push_str(heading);
            out.push('\n');
            out.push_str(text);
            out.push_str("\n\n");
        }
    }
    out.push_str("---\n\n");
    out.push_str(prompt);
    out
}

fn limits(run: &Circumstances<'_>) -> String {
    let mut parts = Vec::new();
    if let Some(ms) = run.time_ms {
        parts.push(duration(ms));
    }
    if let Some(tokens) = run.tokens {
        parts.push(format!("{tokens} tokens"));
    }
    if let Some(micros) = run.usd_micros {
        let (dollars, cents) = (micros / 1_000_000, micros % 1_000_000 / 10_000);
        parts.push(format!("${dollars}.{cents:02}"));
    }
    match parts.as_slice() {
        [] => "You have no limit of time, tokens or money; be sparing all the same.".to_owned(),
        parts => format!(
            "You have {}. What exceeds it ends you at once, wherever you are; what you wrote until then is kept.",
            parts.join(", ")
        ),
    }
}

fn duration(ms: u64) -> String {
    let seconds = ms.div_ceil(1_000);
    match (seconds / 60, seconds % 60) {
        (0, 1) => "1 second".to_owned(),
        (0, seconds) => format!("{seconds} seconds"),
        (1, 0) => "1 minute".to_owned(),
        (minutes, 0) => format!("{minutes} minutes"),
        (minutes, seconds) => format!("{minutes} minutes and {seconds} seconds"),
    }
}

#[cfg(test)]
mod tests;
