//! Looking inside the sandbox for the tools that the checks of one root need.
//!
//! All questions of a root go in as one shell line and are answered at once. What gives no answer
//! counts as missing: a check is skipped rather than failed for a tool that is not there.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use kapi_core::failure::Failure;
use kapi_core::isolation::SandboxLevel;
use kapi_core::quote::{shell_word, visible_line};
use kapi_run::confine::WORKSPACE_INSIDE;
use kapi_sys::process;
use serde::Deserialize;

use super::CheckEvent;
use super::shell::{CheckLine, CheckRun};
use crate::rules::checks::ProjectRoot;
use crate::rules::checks::settle::{Mise, RootProbes, is_program, needs};

/// The longest all questions of a root may take together.
const DEADLINE: Duration = Duration::from_secs(60);

/// Asks one question: prints its number and whether the command succeeds, through mise if it works;
/// and of one that fails the beginning of the first line with an error, or of the last.
const QUESTION: &str = "\
why() { { printf '%s\\n' \"$said\" | grep -i -m 1 error || printf '%s\\n' \"$said\" | tail -n 1; } | head -c 160; }
ask() { if said=$(if [ -n \"$m\" ]; then mise exec -- sh -c \"$2\"; else sh -c \"$2\"; fi </dev/null 2>&1); \
then echo \"$1 yes\"; else printf '%s no %s\\n' \"$1\" \"$(why)\"; fi; }
";
/// Finds out whether there is mise, whether it works here, and which tasks it has, on one line.
const MISE: &str = "\
m=
if command -v mise >/dev/null 2>&1; then
  if mise exec -- true </dev/null >/dev/null 2>&1; then m=1
    echo \"mise yes\"; echo \"tasks $(mise tasks ls --json </dev/null 2>/dev/null | tr -d '\\n')\"
  else echo \"mise no\"; fi
fi
";

/// A task as mise lists it.
#[derive(Debug, Deserialize)]
struct MiseTask {
    name: String,
    /// The file that defines it.
    source: Option<String>,
}

/// What the answers say.
#[derive(Debug, Default, PartialEq, Eq)]
struct ProbeAnswers {
    yes: BTreeSet<usize>,
    /// What each that fails said last.
    no: BTreeMap<usize, String>,
    /// Whether mise works; `None` if there is none.
    mise: Option<bool>,
    tasks: String,
}

/// Looks for what the checks of a root need.
pub(super) fn probe(
    work: &CheckRun<'_>,
    number: usize,
    root: &ProjectRoot,
) -> Result<RootProbes, Failure> {
    let needs = needs(root);
    let ran = work.run(&CheckLine {
        root,
        text: &script(&needs),
        name: &format!("probe-{number}"),
        deadline: DEADLINE,
    })?;
    let answers = read(&String::from_utf8_lossy(&ran.finished.stdout.tail));
    let mut missing = BTreeMap::new();
    for (n, need) in needs.iter().enumerate() {
        if answers.yes.contains(&n) {
            continue;
        }
        let reason = match answers.no.get(&n) {
            Some(said) => reason(work, need, said),
            None => format!("the test whether `{need}` works timed out"),
        };
        missing.insert(need.clone(), reason);
    }
    if answers.mise == Some(false) {
        let text = "mise is installed but does not work in the sandbox; commands run without it.";
        (work.reported.notice)(CheckEvent::Note(text));
    }
    Ok(RootProbes {
        missing,
        mise: match answers.mise {
            Some(true) => Mise::Yes,
            Some(false) | None => Mise::No,
        },
        tasks: own_tasks(&answers.tasks, &work.discovery.top, root),
    })
}

fn reason(work: &CheckRun<'_>, need: &str, said: &str) -> String {
    if !is_program(need) {
        let said = visible_line(said);
        let said = Some(said).filter(|said| !said.is_empty());
        let why = said.map_or_else(String::new, |said| format!(": {said}"));
        return format!("`{need}` does not work in the sandbox{why}");
    }
    if need.contains('/') {
        return format!("there is no {need}");
    }
    if work.setting.level == SandboxLevel::Podman {
        return format!("{need} is not in the image");
    }
    let on_host = process::find_in_path(OsStr::new(need), &work.grants.path_variable());
    match on_host {
        Some(path) => format!(
            "{need} is not visible in the sandbox; add {} to `read_only` under [sandbox]",
            path.display()
        ),
        None => format!("{need} is not on PATH"),
    }
}

/// Returns the line that asks all questions at once.
fn script(needs: &[String]) -> String {
    let ask = |(n, need): (usize, &String)| {
        let command = if is_program(need) {
            format!("command -v {need}")
        } else {
            need.clone()
        };
        format!("ask {n} {} &\n", shell_word(&command))
    };
    let questions: String = needs.iter().enumerate().map(ask).collect();
    format!("{MISE}{QUESTION}{questions}wait\n")
}

fn read(text: &str) -> ProbeAnswers {
    let mut answers = ProbeAnswers::default();
    for line in text.lines() {
        match line.split_once(' ') {
            Some(("mise", answer)) => answers.mise = Some(answer == "yes"),
            Some(("tasks", tasks)) => tasks.clone_into(&mut answers.tasks),
            Some((number, answer)) => {
                let Ok(number) = number.parse() else {
                    continue;
                };
                if answer == "yes" {
                    answers.yes.insert(number);
                } else {
                    let said = answer.strip_prefix("no").unwrap_or(answer);
                    answers.no.insert(number, said.trim().to_owned());
                }
            }
            None => {}
        }
    }
    answers
}

/// Returns the tasks that a root has itself; those of directories above belong to those.
fn own_tasks(json: &str, top: &Path, root: &ProjectRoot) -> Vec<String> {
    let tasks: Vec<MiseTask> = serde_json::from_str(json).unwrap_or_default();
    let locations = [top, Path::new(WORKSPACE_INSIDE)].map(|top| top.join(&root.path));
    let is_own = |task: &MiseTask| {
        let source = task.source.as_ref().map(Path::new);
        source.is_none_or(|source| {
            locations
                .iter()
                .any(|location| source.starts_with(location))
        })
    };
    let own = tasks.into_iter().filter(is_own);
    own.map(|task| task.name).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;

    use super::{ProbeAnswers, own_tasks, read, script};
    use crate::rules::checks::ProjectRoot;

    #[test]
    fn answers_are_read_and_what_is_none_is_not() {
        let text = "mise yes\ntasks [{\"name\": \"a b\"}]\n0 yes\n2 no error: none\nx yes\nnonsense\n1 yes\n3 no \n";
        let expected = ProbeAnswers {
            yes: BTreeSet::from([0, 1]),
            no: BTreeMap::from([(2, "error: none".to_owned()), (3, String::new())]),
            mise: Some(true),
            tasks: "[{\"name\": \"a b\"}]".to_owned(),
        };
        assert_eq!(read(text), expected);
        assert_eq!(read(""), ProbeAnswers::default());
    }

    #[test]
    fn a_question_is_one_word_of_the_line() {
        let needs = ["cargo", "cargo clippy --version"].map(str::to_owned);
        let script = script(&needs);
        assert!(
            script.contains("\nask 0 'command -v cargo' &\nask 1 'cargo clippy --version' &\n")
        );
    }

    #[test]
    fn tasks_of_directories_above_are_not_a_roots_own() {
        let root = ProjectRoot {
            path: "sub".to_owned(),
            profiles: Vec::new(),
            choices: Vec::new(),
            first_on_path: Vec::new(),
            caches: Vec::new(),
        };
        let json = r#"[{"name":"build","source":"/p/sub/mise.toml"},{"name":"test","source":"/p/mise.toml"},
            {"name":"lint","source":"/workspace/sub/.mise/tasks/lint"},{"name":"format"}]"#;
        let own = |path: &str| {
            let root = ProjectRoot {
                path: path.to_owned(),
                ..root.clone()
            };
            own_tasks(json, Path::new("/p"), &root).join(" ")
        };
        assert_eq!(own("sub"), "build lint format");
        assert_eq!(own(""), "build test lint format");
        assert_eq!(own_tasks("nonsense", Path::new("/p"), &root), [""; 0]);
    }
}
