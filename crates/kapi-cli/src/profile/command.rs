//! `agent.command`: a line for the shell in which `{task}` stands for the task.
//!
//! The task never becomes part of the line: it is one argument, taken from a variable, so nothing
//! in it is read as a command. A line that starts a known agent the usual way is given to that
//! agent's adapter, which keeps the key outside and reads its stream.

use kapi_agent::agent::AgentKind;

/// The variable that holds the task.
pub(crate) const TASK_VARIABLE: &str = "KAPI_TASK";
/// What stands for the task.
const MARK: &str = "{task}";
/// How Kapsis configurations read the task from its file.
const FROM_FILE: &str = "\"$(cat /task-spec.md)\"";
/// What an adapter says by itself, for each agent.
const USUAL: &[(AgentKind, &str, &[&str])] = &[
    (
        AgentKind::Claude,
        "claude",
        &[
            "-p",
            "--print",
            "--dangerously-skip-permissions",
            "--verbose",
        ],
    ),
    (
        AgentKind::Codex,
        "codex",
        &[
            "exec",
            "--full-auto",
            "--dangerously-bypass-approvals-and-sandbox",
            "--skip-git-repo-check",
        ],
    ),
    (
        AgentKind::Gemini,
        "gemini",
        &["-p", "--prompt", "-y", "--yolo"],
    ),
    (AgentKind::Pi, "pi", &["-p", "--print"]),
];
/// How a line names the model.
const MODEL_FLAGS: &[&str] = &["--model", "-m"];

/// A known agent, started the usual way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Usual {
    /// The agent.
    pub(crate) kind: AgentKind,
    /// The model, if the line names one.
    pub(crate) model: Option<String>,
}

/// Returns the agent that a line starts the usual way; `None` for any other line.
pub(crate) fn usual(line: &str) -> Option<Usual> {
    let line = line
        .replace(FROM_FILE, MARK)
        .replace(&format!("\"{MARK}\""), MARK);
    let mut words = line.split_whitespace();
    let program = words.next()?;
    let (kind, _, known) = USUAL.iter().find(|(_, name, _)| *name == program)?;
    let (mut model, mut n_tasks) = (None, 0);
    while let Some(word) = words.next() {
        if MODEL_FLAGS.contains(&word) {
            let name = words.next().filter(|name| is_plain(name))?;
            model = Some(name.to_owned());
        } else if word == MARK {
            n_tasks += 1;
        } else if !known.contains(&word) {
            return None;
        }
    }
    // Without the task it would be another program: the agent's own screen.
    (n_tasks == 1).then(|| Usual {
        kind: kind.clone(),
        model,
    })
}

/// Returns the line with the task's variable in place of every `{task}`.
///
/// A mark inside quotes is refused: what is quoted may be a line for another shell, and there a
/// variable's content would be read as code.
pub(crate) fn with_task(line: &str) -> Result<String, String> {
    if line.trim().is_empty() || line.contains('\0') {
        return Err("it must not be empty".to_owned());
    }
    let variable = format!("\"${{{TASK_VARIABLE}}}\"");
    let whole = [format!("\"{MARK}\""), format!("'{MARK}'")];
    let (mut out, mut rest, mut quote) = (String::new(), line, None);
    while let Some(first) = rest.chars().next() {
        let taken = match (quote, first) {
            (None, '"' | '\'') if whole.iter().any(|word| rest.starts_with(word)) => {
                out.push_str(&variable);
                MARK.len() + 2
            }
            (_, '{') if rest.starts_with(MARK) => {
                if quote.is_some() {
                    return Err(format!(
                        "`{MARK}` is inside quotes with other words; write it as a separate word"
                    ));
                }
                out.push_str(&variable);
                MARK.len()
            }
            (None | Some('"'), '\\') => {
                let taken = first.len_utf8() + rest.chars().nth(1).map_or(0, char::len_utf8);
                out.push_str(rest.get(..taken).unwrap_or(rest));
                taken
            }
            (quoted, c) => {
                quote = match quoted {
                    None if c == '"' || c == '\'' => Some(c),
                    Some(open) if open == c => None,
                    same => same,
                };
                out.push(c);
                c.len_utf8()
            }
        };
        rest = rest.get(taken..).unwrap_or_default();
    }
    if quote.is_some() {
        return Err("a quote is not closed".to_owned());
    }
    Ok(out)
}

fn is_plain(word: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "._/:@-".contains(c);
    !word.is_empty() && !word.starts_with('-') && word.chars().all(is_word)
}

#[cfg(test)]
mod tests {
    use kapi_agent::agent::AgentKind;

    use super::{Usual, usual, with_task};

    #[test]
    fn the_task_is_one_argument_wherever_it_stands() {
        let cases = [
            ("aider --message {task}", "aider --message \"${KAPI_TASK}\""),
            (
                "a \"{task}\" '{task}'",
                "a \"${KAPI_TASK}\" \"${KAPI_TASK}\"",
            ),
            ("a --x={task};b", "a --x=\"${KAPI_TASK}\";b"),
            (
                "a 'it''s' \"q\\\"q\" {task}",
                "a 'it''s' \"q\\\"q\" \"${KAPI_TASK}\"",
            ),
            ("a \\{task}", "a \\{task}"),
            ("bash", "bash"),
            ("a \"$(cat /task-spec.md)\"", "a \"$(cat /task-spec.md)\""),
        ];
        for (line, expected) in cases {
            assert_eq!(with_task(line).as_deref(), Ok(expected), "{line}");
        }
    }

    #[test]
    fn a_task_in_a_line_for_another_shell_is_refused() {
        for line in [
            "sh -c \"claude -p {task}\"",
            "sh -c 'claude -p {task}'",
            "echo \"a {task}\"",
            "echo 'x'\"y {task} z\"",
        ] {
            let refused = with_task(line).unwrap_err();
            assert!(refused.contains("inside quotes"), "{line}: {refused}");
        }
        assert!(with_task("echo \"open").unwrap_err().contains("not closed"));
        assert!(with_task("  ").unwrap_err().contains("empty"));
    }

    #[test]
    fn known_agents_started_the_usual_way_are_recognised() {
        let usual_with = |kind, model: Option<&str>| {
            Some(Usual {
                kind,
                model: model.map(str::to_owned),
            })
        };
        let cases = [
            (
                "claude --dangerously-skip-permissions -p {task}",
                usual_with(AgentKind::Claude, None),
            ),
            (
                "claude --dangerously-skip-permissions -p \"$(cat /task-spec.md)\"",
                usual_with(AgentKind::Claude, None),
            ),
            (
                "claude -p \"{task}\" --model opus",
                usual_with(AgentKind::Claude, Some("opus")),
            ),
            (
                "codex exec --full-auto {task}",
                usual_with(AgentKind::Codex, None),
            ),
            ("gemini -y -p {task}", usual_with(AgentKind::Gemini, None)),
            (
                "pi -p {task} -m a/b:c",
                usual_with(AgentKind::Pi, Some("a/b:c")),
            ),
            ("claude", None),
            ("claude -p {task} --allowedTools Bash", None),
            ("claude -p {task} && rm x", None),
            ("claude -p {task}; x", None),
            ("claude -p {task} --model $(x)", None),
            ("/opt/claude -p {task}", None),
            ("A=1 claude -p {task}", None),
            ("", None),
        ];
        for (line, expected) in cases {
            assert_eq!(usual(line), expected, "{line}");
        }
    }

    #[test]
    fn a_shell_passes_the_task_on_untouched() {
        use std::process::Command;
        #[expect(clippy::disallowed_methods, reason = "the shell is what is tested")]
        let shell = |line: &str, task: &str| {
            let mut command = Command::new("/bin/sh");
            command
                .args(["-c", &with_task(line).unwrap()])
                .env_clear()
                .env("KAPI_TASK", task);
            String::from_utf8(command.output().unwrap().stdout).unwrap()
        };
        let hostile = "$(id) `id` \"; id; ' && id\nsecond *";
        for line in [
            "printf %s {task}",
            "printf %s \"{task}\"",
            "printf %s '{task}'",
        ] {
            assert_eq!(shell(line, hostile), hostile, "{line}");
        }
        assert_eq!(shell("printf '<%s>' --x={task}", "a b"), "<--x=a b>");
    }
}
