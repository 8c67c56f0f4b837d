//! Which kind of workspace a launch gets: the table of modes, and nothing else.
//!
//! Pure. What is known of the project comes in; a choice or a refusal goes out.

use std::path::PathBuf;

use kapi_core::goal::contract::SandboxLevel;
use kapi_wire::status::SandboxMode;

use super::error::{Kind, LaunchError};
use super::plan::Wanted;

/// What git knows of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ground {
    /// Nothing: it is a plain directory.
    Plain,
    /// It is a directory below the top of a repository.
    Below(PathBuf),
    /// It is a repository without a commit.
    Unborn,
    /// It is the top of a repository with a commit checked out.
    Repository,
}

/// A chosen mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The mode.
    pub mode: SandboxMode,
    /// Whether the work is committed to the branch that was named.
    pub has_branch: bool,
    /// What the person should know about the choice, as a sentence.
    pub note: Option<String>,
}

/// Chooses the mode by the table: worktree for a branch of a repository, overlay otherwise.
///
/// # Errors
/// When a mode was forced that this project or level does not have.
pub fn choose(
    wanted: Wanted,
    branch: Option<&str>,
    ground: &Ground,
    level: SandboxLevel,
) -> Result<Chosen, LaunchError> {
    let chosen = match (wanted, branch, ground) {
        (Wanted::Worktree, None, _) => {
            return Err(LaunchError::new(
                Kind::Usage,
                "worktree mode needs a branch",
                "add `--branch <name>`.",
            ));
        }
        (Wanted::Worktree, Some(_), ground) if *ground != Ground::Repository => {
            return Err(no_repository(ground));
        }
        (Wanted::Worktree | Wanted::Auto, Some(_), Ground::Repository) => Chosen {
            mode: SandboxMode::Worktree,
            has_branch: true,
            note: None,
        },
        (Wanted::Overlay, Some(_), Ground::Repository) => Chosen {
            mode: SandboxMode::Overlay,
            has_branch: true,
            note: None,
        },
        (_, Some(name), ground) => Chosen {
            mode: SandboxMode::Overlay,
            has_branch: false,
            note: Some(format!(
                "Branch {name} is not made: {}. The changes stay in the sandbox.",
                why_none(ground)
            )),
        },
        (_, None, _) => Chosen {
            mode: SandboxMode::Overlay,
            has_branch: false,
            note: None,
        },
    };
    if chosen.mode == SandboxMode::Overlay && level == SandboxLevel::None {
        return Err(LaunchError::new(
            Kind::Usage,
            "without isolation there is no overlay: the agent would write into the project itself",
            "name a `--branch` of a git repository, or leave out `--sandbox none`.",
        ));
    }
    Ok(chosen)
}

fn no_repository(ground: &Ground) -> LaunchError {
    let hint = match ground {
        Ground::Below(top) => format!("launch it on {} instead.", top.display()),
        Ground::Unborn => "make a first commit.".to_owned(),
        Ground::Plain | Ground::Repository => "leave out `--worktree-mode`.".to_owned(),
    };
    let message = format!("worktree mode needs a git repository: {}", why_none(ground));
    LaunchError::new(Kind::Usage, message, hint)
}

fn why_none(ground: &Ground) -> String {
    match ground {
        Ground::Plain => "the project is no git repository".to_owned(),
        Ground::Below(top) => format!(
            "the project is only a part of the repository {}",
            top.display()
        ),
        Ground::Unborn => "the repository has no commit".to_owned(),
        Ground::Repository => "the branch was not used".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use kapi_core::goal::contract::SandboxLevel::{self, Native, None as Bare, Podman};

    use super::{Ground, choose};
    use crate::launching::plan::Wanted::{self, Auto, Overlay, Worktree};

    /// Returns the mode in words, with `+` when it commits to the branch; or the refusal.
    fn check(wanted: Wanted, branch: bool, ground: &Ground, level: SandboxLevel) -> String {
        match choose(wanted, branch.then_some("b"), ground, level) {
            Ok(chosen) => {
                let mark = if chosen.has_branch { "+" } else { "" };
                format!("{:?}{mark}", chosen.mode).to_lowercase()
            }
            Err(error) => error.message,
        }
    }

    #[test]
    fn the_table_of_the_specification_holds_line_by_line() {
        let below = Ground::Below(PathBuf::from("/top"));
        for (wanted, branch, ground, expected) in [
            (Auto, true, &Ground::Repository, "worktree+"),
            (Auto, false, &Ground::Repository, "overlay"),
            (Auto, true, &Ground::Plain, "overlay"),
            (Auto, false, &Ground::Plain, "overlay"),
            (Auto, true, &Ground::Unborn, "overlay"),
            (Auto, true, &below, "overlay"),
            (Worktree, true, &Ground::Repository, "worktree+"),
            (
                Worktree,
                false,
                &Ground::Repository,
                "worktree mode needs a branch",
            ),
            (
                Worktree,
                true,
                &Ground::Plain,
                "worktree mode needs a git repository: the project is no git repository",
            ),
            (Overlay, true, &Ground::Repository, "overlay+"),
            (Overlay, false, &Ground::Repository, "overlay"),
            (Overlay, false, &Ground::Plain, "overlay"),
        ] {
            for level in [Native, Podman] {
                let found = check(wanted, branch, ground, level);
                assert_eq!(found, expected, "{wanted:?} {branch} {ground:?}");
            }
        }
    }

    #[test]
    fn without_isolation_there_is_only_a_worktree() {
        assert_eq!(check(Auto, true, &Ground::Repository, Bare), "worktree+");
        for (wanted, branch) in [(Auto, false), (Overlay, true)] {
            let found = check(wanted, branch, &Ground::Repository, Bare);
            assert!(found.starts_with("without isolation"), "{found}");
        }
    }
}
