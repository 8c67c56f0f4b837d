//! The words of the command line that launches the same again: everything but the task and its limits.
//!
//! Paths in them are absolute, so that they mean the same wherever they are run.

use std::ffi::OsString;
use std::path::Path;

use clap::ValueEnum;

use super::Args;

/// Returns the words; none where one of them is not text.
pub(super) fn words(args: &Args, project: &Path, cwd: &Path) -> Vec<String> {
    let mut words = WordList::default();
    words.add(["launch", args.id()]);
    words.path(project);
    let flags = &args.flags;
    let config = flags.config.as_ref().map(|path| cwd.join(path));
    if let Some(path) = &config {
        words.add(["--config"]);
        words.path(path);
    }
    for (name, value) in [
        ("--agent", &flags.agent),
        ("--model", &flags.model),
        ("--branch", &flags.branch),
        ("--pr-base", &flags.pr_base),
        ("--base-branch", &args.base_branch),
        ("--remote-branch", &args.remote_branch),
        ("--merge", &args.merge),
        ("--sandbox", &flags.sandbox.and_then(|it| name_of(&it))),
        ("--network", &flags.network.and_then(|it| name_of(&it))),
        (
            "--timeout",
            &args.timeout.map(|ms| format!("{}s", ms.div_ceil(1_000))),
        ),
    ] {
        if let Some(value) = value {
            words.add([name, value]);
        }
    }
    for (name, is_set) in [
        ("--push", flags.push),
        ("--pr", flags.pr),
        ("--no-push", flags.no_push),
        ("--keep-commits", flags.keep_commits),
        ("--push-failed", args.push_failed),
        ("--worktree-mode", flags.worktree_mode),
        ("--overlay-mode", flags.overlay_mode),
        ("--interactive", flags.interactive),
    ] {
        if is_set {
            words.add([name]);
        }
    }
    let words = words.0.into_iter().map(OsString::into_string);
    words.collect::<Result<_, _>>().unwrap_or_default()
}

#[derive(Default)]
struct WordList(Vec<OsString>);

impl WordList {
    fn add<const N: usize>(&mut self, words: [&str; N]) {
        self.0.extend(words.map(OsString::from));
    }

    fn path(&mut self, path: &Path) {
        self.0.push(path.as_os_str().to_owned());
    }
}

fn name_of(value: &impl ValueEnum) -> Option<String> {
    let value = value.to_possible_value()?;
    Some(value.get_name().to_owned())
}
