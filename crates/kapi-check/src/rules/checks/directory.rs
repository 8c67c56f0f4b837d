//! What selection is told of one directory of a project.
//!
//! Gathered by others from the disk; nothing of it is trusted to be well-formed.

use std::collections::{BTreeMap, BTreeSet};

use kapi_core::glob::Glob;
use serde::Deserialize;

/// A notation in which a project lists its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceNotation {
    /// `[workspace]` of a `Cargo.toml`.
    Cargo,
    /// `workspaces` of a `package.json`, or `pnpm-workspace.yaml`.
    Node,
    /// `[tool.uv.workspace]` of a `pyproject.toml`.
    Uv,
    /// `workspace` of a `deno.json`.
    Deno,
    /// `<module>` of a `pom.xml`.
    Maven,
    /// `apps_path` of a `mix.exs`.
    Mix,
}

/// One directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Directory {
    /// Relative to the top of the project, with slashes; empty for the top itself.
    pub path: String,
    /// The names in it.
    pub names: BTreeSet<String>,
    /// The texts of those of its files that selection asks for.
    pub texts: BTreeMap<String, String>,
    /// The scripts of its `package.json`.
    pub scripts: BTreeMap<String, String>,
    /// The member lists it holds.
    pub declared: Vec<MemberList>,
    /// The packages in directories that its `Cargo.toml` depends on, relative to the top of the project:
    /// in a workspace they are members without being listed.
    pub path_dependencies: Vec<String>,
}

/// A list of members, relative to the directory that holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberList {
    /// Whose list it is.
    pub workspace: WorkspaceNotation,
    /// Patterns of the members; `**` is everything below.
    pub members: Vec<String>,
    /// Patterns of those that the list names, where everything below belongs to it whether it is named
    /// or not.
    pub named: Vec<String>,
    /// Patterns of what is not a member all the same.
    pub excluded: Vec<String>,
}

impl Directory {
    /// Tells whether it has an entry of a name, in which `*` stands for any characters.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        if name.contains('*') {
            let pattern = Glob::new(name);
            self.names.iter().any(|found| pattern.matches(found))
        } else {
            self.names.contains(name)
        }
    }

    /// Tells whether it has one of several entries.
    #[must_use]
    pub fn has_any(&self, names: &[String]) -> bool {
        names.iter().any(|name| self.has(name))
    }

    /// Tells whether one of its files holds one of the texts.
    #[must_use]
    pub fn mentions(&self, files: &[String], texts: &[String]) -> bool {
        let found = files.iter().filter_map(|file| self.texts.get(file));
        found
            .flat_map(|content| texts.iter().map(move |text| content.contains(text)))
            .any(|is_there| is_there)
    }

    /// Returns where another directory lies below this one; `None` if it does not.
    #[must_use]
    pub fn relative<'a>(&self, other: &'a str) -> Option<&'a str> {
        if self.path.is_empty() {
            return (!other.is_empty()).then_some(other);
        }
        other.strip_prefix(&self.path)?.strip_prefix('/')
    }

    /// Tells whether a member list here takes a directory in.
    #[must_use]
    pub fn declares(&self, workspace: WorkspaceNotation, other: &str) -> bool {
        let Some(relative) = self.relative(other) else {
            return false;
        };
        let is_among = |patterns: &[String]| {
            patterns
                .iter()
                .any(|pattern| Glob::new(pattern).matches(relative))
        };
        self.declared
            .iter()
            .filter(|declared| declared.workspace == workspace)
            .any(|declared| is_among(&declared.members) && !is_among(&declared.excluded))
    }

    /// Tells whether a member list here names a directory.
    #[must_use]
    pub fn names(&self, workspace: WorkspaceNotation, other: &str) -> bool {
        let Some(relative) = self.relative(other) else {
            return false;
        };
        let lists = self.declared.iter();
        let mut named = lists
            .filter(|declared| declared.workspace == workspace)
            .flat_map(|declared| &declared.named);
        named.any(|pattern| {
            let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
            Glob::new(pattern.trim_end_matches('/')).matches(relative)
        })
    }

    /// Tells whether it holds a member list.
    #[must_use]
    pub fn is_workspace(&self, workspace: WorkspaceNotation) -> bool {
        self.declared
            .iter()
            .any(|declared| declared.workspace == workspace)
    }
}
