//! Which kind of workspace a launch gets: the table of modes, and nothing else.
//!
//! Pure. What is known of the project comes in; a choice or a refusal goes out.

use std::path::PathBuf;

use kapi_core::isolation::SandboxLevel;
use kapi_status::file::SandboxMode;

use super::error::{LaunchError, LaunchErrorKind};
use super::plan::ModeChoice;

/// What git knows of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProjectGit {
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
pub struct ChosenMode {
    /// The mode.
    pub mode: SandboxMode,
    /// Whether the work is committed to the branch that was named.
    pub has_branch: bool,
}

/// Chooses the mode by the table: worktree for a branch of a repository, overlay without a branch.
///
/// # Errors
/// When a mode was forced that this project or level does not have, or a branch that cannot be.
pub fn choose(
    wanted: ModeChoice,
    branch: Option<&str>,
    ground: &ProjectGit,
    level: SandboxLevel,
) -> Result<ChosenMode, LaunchError> {
    let chosen = match (wanted, branch, ground) {
        (ModeChoice::Worktree, None, _) => {
            return Err(LaunchError::new(
                LaunchErrorKind::Usage,
                "worktree mode needs a branch",
                "add `--branch <name>`.",
            ));
        }
        (ModeChoice::Worktree, Some(_), ground) if *ground != ProjectGit::Repository => {
            return Err(no_repository(ground));
        }
        (ModeChoice::Worktree | ModeChoice::Auto, Some(_), ProjectGit::Repository) => ChosenMode {
            mode: SandboxMode::Worktree,
            has_branch: true,
        },
        (ModeChoice::Overlay, Some(_), ProjectGit::Repository) => ChosenMode {
            mode: SandboxMode::Overlay,
            has_branch: true,
        },
        (_, Some(name), ground) => return Err(no_branch(name, ground)),
        (_, None, _) => ChosenMode {
            mode: SandboxMode::Overlay,
            has_branch: false,
        },
    };
    if chosen.mode == SandboxMode::Overlay && level == SandboxLevel::None {
        return Err(LaunchError::new(
            LaunchErrorKind::Usage,
            "without isolation there is no overlay: the agent would write into the project itself",
            "name a `--branch` of a git repository, or omit `--sandbox none`.",
        ));
    }
    Ok(chosen)
}

/// What was asked for is done or refused, and a branch needs a repository with a commit.
fn no_branch(name: &str, ground: &ProjectGit) -> LaunchError {
    let hint = match ground {
        ProjectGit::Below(top) => format!("launch it on {}.", top.display()),
        ProjectGit::Unborn => "create a first commit, or omit `--branch`.".to_owned(),
        ProjectGit::Plain | ProjectGit::Repository => {
            "omit `--branch`: the changes stay in the sandbox, and `kapi sandbox merge` takes them \
             over."
                .to_owned()
        }
    };
    let message = format!("branch {name} cannot be created: {}", why_none(ground));
    LaunchError::new(LaunchErrorKind::Usage, message, hint)
}

fn no_repository(ground: &ProjectGit) -> LaunchError {
    let hint = match ground {
        ProjectGit::Below(top) => format!("launch it on {} instead.", top.display()),
        ProjectGit::Unborn => "create a first commit.".to_owned(),
        ProjectGit::Plain | ProjectGit::Repository => "omit `--worktree-mode`.".to_owned(),
    };
    let message = format!("worktree mode needs a git repository: {}", why_none(ground));
    LaunchError::new(LaunchErrorKind::Usage, message, hint)
}

fn why_none(ground: &ProjectGit) -> String {
    match ground {
        ProjectGit::Plain => "the project is not a git repository".to_owned(),
        ProjectGit::Below(top) => format!(
            "the project is only part of the repository {}",
            top.display()
        ),
        ProjectGit::Unborn => "the repository has no commit".to_owned(),
        ProjectGit::Repository => "the branch was not used".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use kapi_core::isolation::SandboxLevel;
    use kapi_core::isolation::SandboxLevel::{Native, None as Bare, Podman};

    use super::{ProjectGit, choose};
    use crate::plan::ModeChoice;
    use crate::plan::ModeChoice::{Auto, Overlay, Worktree};

    /// Returns the mode in words, with `+` when it commits to the branch; or the refusal.
    fn check(wanted: ModeChoice, branch: bool, ground: &ProjectGit, level: SandboxLevel) -> String {
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
        let below = ProjectGit::Below(PathBuf::from("/top"));
        for (wanted, branch, ground, expected) in [
            (Auto, true, &ProjectGit::Repository, "worktree+"),
            (Auto, false, &ProjectGit::Repository, "overlay"),
            (
                Auto,
                true,
                &ProjectGit::Plain,
                "branch b cannot be created: the project is not a git repository",
            ),
            (Auto, false, &ProjectGit::Plain, "overlay"),
            (
                Overlay,
                true,
                &ProjectGit::Unborn,
                "branch b cannot be created: the repository has no commit",
            ),
            (
                Auto,
                true,
                &below,
                "branch b cannot be created: the project is only part of the repository /top",
            ),
            (Worktree, true, &ProjectGit::Repository, "worktree+"),
            (
                Worktree,
                false,
                &ProjectGit::Repository,
                "worktree mode needs a branch",
            ),
            (
                Worktree,
                true,
                &ProjectGit::Plain,
                "worktree mode needs a git repository: the project is not a git repository",
            ),
            (Overlay, true, &ProjectGit::Repository, "overlay+"),
            (Overlay, false, &ProjectGit::Repository, "overlay"),
            (Overlay, false, &ProjectGit::Plain, "overlay"),
        ] {
            for level in [Native, Podman] {
                let found = check(wanted, branch, ground, level);
                assert_eq!(found, expected, "{wanted:?} {branch} {ground:?}");
            }
        }
    }

    #[test]
    fn without_isolation_there_is_only_a_worktree() {
        assert_eq!(
            check(Auto, true, &ProjectGit::Repository, Bare),
            "worktree+"
        );
        for (wanted, branch) in [(Auto, false), (Overlay, true)] {
            let found = check(wanted, branch, &ProjectGit::Repository, Bare);
            assert!(found.starts_with("without isolation"), "{found}");
        }
    }
}
