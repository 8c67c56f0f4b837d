//! Files that run by themselves once they lie in a project: nobody starts them, somebody's editor,
//! shell, git, installer, CI or agent does.
//!
//! What a person starts by name, as a Makefile's target, is not meant. Only looks; what is done about
//! it is the caller's affair.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use kapi_core::failure::Failure;
use kapi_git::layer::walk::{LayerChangeKind, LayerWalk};
use kapi_run::host_grants::HostGrants;
use kapi_run::repository_session::RepositorySession;
use kapi_run::{failure, repository_session};
use kapi_sys::cancel::Cancel;
use serde::Serialize;
use serde_json::Value;

use super::super::finish::{self, ChangedPathView};
use super::super::patterns::ShowPatterns;
use super::super::shown::beneath;

/// A file that runs by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AutoRun {
    /// The path; bytes that are no text are replaced.
    pub path: String,
    /// Who runs it.
    pub why: &'static str,
}

/// Which files, in small letters, and who runs them; at any depth, because any directory can be opened.
const RULES: &[(&[&str], &str)] = &[
    (
        &[".envrc"],
        "direnv runs it when a shell enters the directory",
    ),
    (
        &[
            "**/.vscode/tasks.json",
            "**/.vscode/settings.json",
            "**/.vscode/mcp.json",
            "*.code-workspace",
        ],
        "an editor runs its commands when the directory is opened",
    ),
    (
        &[
            "**/.idea/runconfigurations/**",
            "**/.idea/workspace.xml",
            "**/.idea/startup.xml",
            "**/.idea/watchertasks.xml",
            "**/.run/*.run.xml",
        ],
        "an IDE runs its commands",
    ),
    (
        &[
            "**/.husky/**",
            "**/.githooks/**",
            ".pre-commit-config.y*ml",
            "lefthook*.*",
            ".lefthook*.*",
            ".overcommit.yml",
        ],
        "git runs its commands at every commit",
    ),
    (
        &[
            "**/.github/workflows/**",
            "**/.github/actions/**",
            ".gitlab-ci.yml",
            "**/.circleci/**",
            "**/.buildkite/**",
            ".travis.yml",
            "azure-pipelines.yml",
            "bitbucket-pipelines.yml",
            "jenkinsfile",
        ],
        "CI runs it after a push, with access to secrets",
    ),
    (
        &[
            "mise.toml",
            ".mise.toml",
            "mise.*.toml",
            ".mise.*.toml",
            "**/mise/config*.toml",
            "**/.mise/config*.toml",
            "**/.config/mise/**",
            ".tool-versions",
        ],
        "mise or asdf installs or runs its entries when a shell enters the directory",
    ),
    (
        &["**/.devcontainer/**", ".devcontainer.json"],
        "an editor builds and runs it when the directory is opened",
    ),
    (
        &[
            "**/.claude/settings*.json",
            "**/.claude/hooks/**",
            ".mcp.json",
            "**/.gemini/**",
            "**/.pi/extensions/**",
            "**/.codex/**",
            "**/.cursor/mcp.json",
            "**/.cursor/hooks.json",
        ],
        "an agent started here runs its commands",
    ),
    (&[".pnpmfile.cjs"], "installing dependencies runs it"),
];

/// The manifest whose scripts an installation runs.
const MANIFEST: &str = "package.json";
/// Which of its scripts.
const SCRIPTS: &[&str] = &[
    "preinstall",
    "install",
    "postinstall",
    "preprepare",
    "prepare",
    "postprepare",
    "prepublish",
    "dependencies",
];
const BY_INSTALLATION: &str = "installing dependencies runs a script it names";
/// The largest manifest that is read; a larger one counts as changed.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;
/// The most of a commit's patch that is looked through.
const PATCH_BYTES_MAX: usize = 16 << 20;

/// Returns those among a layer's changes, in order.
pub(super) fn of_walk(walk: &LayerWalk, upper: &Path, project: &Path) -> Vec<AutoRun> {
    let rules = AutoRunRules::new();
    let mut found = Vec::new();
    for change in &walk.changes {
        match change.kind {
            LayerChangeKind::Deleted | LayerChangeKind::Replaced => continue,
            LayerChangeKind::Added
            | LayerChangeKind::Modified
            | LayerChangeKind::Mode
            | LayerChangeKind::Type => {}
        }
        let at = upper.join(&change.path);
        let kind = fs::symlink_metadata(&at).map(|found| found.file_type());
        if kind.as_ref().is_ok_and(fs::FileType::is_dir) {
            continue;
        }
        let path = change.path.to_string_lossy();
        let is_link = kind.is_ok_and(|kind| kind.is_symlink());
        let is_manifest = change.path.file_name().is_some_and(|name| name == MANIFEST);
        let why = rules.why(&path, is_link).or_else(|| {
            let is_new = is_manifest && scripts_differ(&change.path, upper, project);
            is_new.then_some(BY_INSTALLATION)
        });
        found.extend(why.map(|why| AutoRun {
            path: path.into_owned(),
            why,
        }));
    }
    found
}

/// Returns those among the changes of a commit, in order.
///
/// Of a manifest only the patch is seen: it counts when a part of it near such a script is new.
pub(super) fn of_changes(changed: &[ChangedPathView], patch: &[u8]) -> Vec<AutoRun> {
    let rules = AutoRunRules::new();
    let text = String::from_utf8_lossy(patch);
    let mut found = Vec::new();
    for one in changed.iter().filter(|one| one.change != "deleted") {
        let is_manifest = one.path.rsplit('/').next() == Some(MANIFEST);
        // What a commit says of a link is its type; the patch of a plain file is no link's.
        let why = rules.why(&one.path, true).or_else(|| {
            let is_new = is_manifest && patch_touches_scripts(&text, &one.path);
            is_new.then_some(BY_INSTALLATION)
        });
        found.extend(why.map(|why| AutoRun {
            path: one.path.clone(),
            why,
        }));
    }
    found
}

/// Returns those that a commit adds or changes against its base, in order.
///
/// # Errors
/// When git fails.
pub fn of_commit(
    grants: &HostGrants,
    project: &Path,
    base: &str,
    commit: &str,
) -> Result<Vec<AutoRun>, Failure> {
    let repo = RepositorySession::open(grants, project, &Cancel::new())?;
    let (base, commit) = (
        repository_session::commit_id(base)?,
        repository_session::commit_id(commit)?,
    );
    let repository = &repo.repository;
    let changes = repository
        .protected_changes(&base, &commit, &["**".to_owned()])
        .map_err(|error| failure::plain(&error))?;
    let changed: Vec<ChangedPathView> = changes
        .iter()
        .map(|change| finish::changed(&change.path, finish::change_word(change.kind)))
        .collect();
    let has_manifest = changed.iter().any(|one| one.path.ends_with(MANIFEST));
    let patch = if has_manifest {
        let patch = repository.diff(&base, &commit, PATCH_BYTES_MAX);
        patch.map_err(|error| failure::plain(&error))?.bytes
    } else {
        Vec::new()
    };
    Ok(of_changes(&changed, &patch))
}

/// The rules, ready to be matched.
struct AutoRunRules(Vec<(&'static str, ShowPatterns, &'static str)>);

impl AutoRunRules {
    fn new() -> Self {
        let each = RULES.iter().flat_map(|(patterns, why)| {
            let parsed = |pattern: &&'static str| (*pattern, ShowPatterns::parse(pattern), *why);
            patterns.iter().map(parsed).collect::<Vec<_>>()
        });
        Self(each.collect())
    }

    /// Tells who runs a file, or what is behind a link.
    fn why(&self, path: &str, is_link: bool) -> Option<&'static str> {
        // Some file systems make no difference between small and large letters.
        let path = path.to_lowercase();
        let mut fitting = self.0.iter().filter(|(pattern, parsed, _)| {
            parsed.match_path(&path, false) || (is_link && leads_to(pattern, parsed, &path))
        });
        fitting.next().map(|(_, _, why)| *why)
    }
}

/// Tells whether a link stands for a directory in which a pattern would match.
fn leads_to(pattern: &str, parsed: &ShowPatterns, path: &str) -> bool {
    let parts: Vec<&str> = pattern.split('/').filter(|part| *part != "**").collect();
    let ends_below = pattern.ends_with("/**");
    (1..=parts.len()).any(|from| {
        let mut below: Vec<String> = parts
            .get(from..)
            .unwrap_or_default()
            .iter()
            .map(|part| part.replace('*', "x"))
            .collect();
        if ends_below {
            below.push("x".to_owned());
        }
        !below.is_empty() && parsed.match_path(&format!("{path}/{}", below.join("/")), false)
    })
}

/// Tells whether the scripts of a manifest that run by themselves are other than the project's.
fn scripts_differ(path: &Path, upper: &Path, project: &Path) -> bool {
    let (Some(new), old) = (scripts(upper, path), scripts(project, path)) else {
        // What cannot be read now may be read by others later.
        return true;
    };
    old.unwrap_or_default() != new && !new.is_empty()
}

/// Returns the scripts of a manifest that run by themselves; `None` when it cannot be read as one.
fn scripts(root: &Path, path: &Path) -> Option<BTreeMap<&'static str, Value>> {
    let bytes = beneath::read(root, path, MANIFEST_BYTES_MAX)?;
    let manifest: Value = serde_json::from_slice(&bytes).ok()?;
    let scripts = manifest.get("scripts");
    let named = SCRIPTS
        .iter()
        .filter_map(|name| Some((*name, scripts?.get(*name)?.clone())));
    Some(named.collect())
}

/// Tells whether a part of a patch adds something to a file near a script that runs by itself.
fn patch_touches_scripts(patch: &str, path: &str) -> bool {
    let (mut is_of_file, mut has_script, mut has_new) = (false, false, false);
    for line in patch.lines() {
        if line.starts_with("diff --git ") {
            is_of_file = line.ends_with(&format!("b/{path}"));
        }
        if line.starts_with("diff --git ") || line.starts_with("@@") {
            (has_script, has_new) = (false, false);
            continue;
        }
        has_script |= SCRIPTS
            .iter()
            .any(|name| line.contains(&format!("\"{name}\"")));
        has_new |= line.starts_with('+') && !line.starts_with("+++");
        if is_of_file && has_script && has_new {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::{AutoRunRules, ChangedPathView, of_changes, patch_touches_scripts};

    #[test]
    fn what_runs_by_itself_is_known_by_its_path() {
        let rules = AutoRunRules::new();
        for path in [
            ".envrc",
            "sub/.envrc",
            ".ENVRC",
            ".vscode/tasks.json",
            "a/b/.vscode/settings.json",
            "app.code-workspace",
            ".idea/runConfigurations/All.xml",
            ".run/All.run.xml",
            ".husky/pre-commit",
            ".husky/_/h",
            ".pre-commit-config.yaml",
            "lefthook.yml",
            "lefthook-local.yml",
            ".lefthook.toml",
            ".github/workflows/ci.yml",
            ".gitlab-ci.yml",
            "Jenkinsfile",
            "mise.toml",
            ".mise.local.toml",
            ".config/mise/config.toml",
            ".tool-versions",
            ".devcontainer/devcontainer.json",
            ".devcontainer.json",
            ".claude/settings.local.json",
            ".mcp.json",
            ".gemini/settings.json",
            ".pi/extensions/a/index.ts",
            ".codex/config.toml",
        ] {
            assert!(rules.why(path, false).is_some(), "{path}");
        }
    }

    #[test]
    fn what_a_person_starts_or_reads_is_not_meant() {
        let rules = AutoRunRules::new();
        for path in [
            "Makefile",
            "CLAUDE.md",
            "AGENTS.md",
            "build.rs",
            "package.json",
            "README.md",
            ".vscode/extensions.json",
            ".claude/commands/a.md",
            ".github/ISSUE_TEMPLATE.md",
            "src/husky/pre-commit",
            "docs/mise.md",
            "envrc",
        ] {
            assert_eq!(rules.why(path, false), None, "{path}");
            assert_eq!(rules.why(path, true), None, "{path}");
        }
    }

    #[test]
    fn a_link_in_the_place_of_their_directory_is_meant() {
        let rules = AutoRunRules::new();
        for path in [
            ".husky",
            ".vscode",
            "a/.github",
            ".github/workflows",
            ".claude",
            ".config/mise",
        ] {
            assert!(rules.why(path, true).is_some(), "{path}");
            assert_eq!(rules.why(path, false), None, "{path}");
        }
    }

    #[test]
    fn a_patch_of_a_manifest_counts_where_a_script_is_near() {
        let check = |file: &str, body: &str, expected| {
            let patch = format!("diff --git a/{file} b/{file}\n--- a/{file}\n+++ b/{file}\n{body}");
            assert_eq!(
                patch_touches_scripts(&patch, "package.json"),
                expected,
                "{patch}"
            );
        };
        check("package.json", "@@ -1 +1 @@\n+  \"prepare\": \"x\"\n", true);
        check(
            "package.json",
            "@@ -1 +1 @@\n   \"postinstall\":\n-    \"a\"\n+    \"b\"\n",
            true,
        );
        check(
            "package.json",
            "@@ -1 +1 @@\n-  \"prepare\": \"x\"\n",
            false,
        );
        check("package.json", "@@ -1 +1 @@\n+  \"test\": \"x\"\n", false);
        check("other.json", "@@ -1 +1 @@\n+  \"prepare\": \"x\"\n", false);
        let far = "@@ -1 +1 @@\n   \"prepare\": \"x\"\n@@ -9 +9 @@\n+  \"left-pad\": \"1\"\n";
        check("package.json", far, false);
    }

    #[test]
    fn what_went_away_runs_no_more() {
        let change = |path: &str, change| ChangedPathView {
            path: path.to_owned(),
            change,
        };
        let changed = [
            change(".envrc", "deleted"),
            change(".mcp.json", "modified"),
            change("a.txt", "added"),
        ];
        let found = of_changes(&changed, b"");
        let paths: Vec<&str> = found.iter().map(|one| one.path.as_str()).collect();
        assert_eq!(paths, [".mcp.json"]);
    }
}
