//! What selection is told of one directory of a project.
//!
//! Gathered by others from the disk; nothing of it is trusted to be well-formed.

use std::collections::{BTreeMap, BTreeSet};

use kapi_core::glob::Glob;
use serde::Deserialize;

/// A notation in which a project lists what it takes in.
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
    /// `use` of a `go.work`.
    Go,
    /// `include` of a `settings.gradle`.
    Gradle,
    /// The projects of a `.sln` or `.slnx`.
    Solution,
    /// `add_subdirectory` of a `CMakeLists.txt`.
    Cmake,
    /// `subdir` of a `meson.build`.
    Meson,
    /// `project_app_dirs` of a `rebar.config`.
    Rebar,
    /// `testpaths` of pytest's settings.
    Pytest,
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
    /// Patterns of the members; `**` is everything below, `../` leads up, and a leading slash means the
    /// top of the project.
    pub members: Vec<String>,
    /// Patterns of what is not a member all the same.
    pub excluded: Vec<String>,
}

impl WorkspaceNotation {
    /// Returns the files in which it is written; a `*` stands for any characters.
    #[must_use]
    pub const fn files(self) -> &'static [&'static str] {
        match self {
            Self::Cargo => &["Cargo.toml"],
            Self::Node => &["package.json", "pnpm-workspace.yaml"],
            Self::Uv => &["pyproject.toml"],
            Self::Deno => &["deno.json", "deno.jsonc"],
            Self::Maven => &["pom.xml"],
            Self::Mix => &["mix.exs"],
            Self::Go => &["go.work"],
            Self::Gradle => &["settings.gradle", "settings.gradle.kts"],
            Self::Solution => &["*.sln", "*.slnx"],
            Self::Cmake => &["CMakeLists.txt"],
            Self::Meson => &["meson.build"],
            Self::Rebar => &["rebar.config"],
            Self::Pytest => &["pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"],
        }
    }

    /// Tells whether a list does not show a workspace, because members have lists as well.
    #[must_use]
    pub const fn is_in_members(self) -> bool {
        matches!(self, Self::Cmake | Self::Meson)
    }
}

impl Directory {
    /// Tells whether it has an entry of a name, in which `*` stands for any characters.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        if name.contains('*') {
            self.matching(name).next().is_some()
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
        let found = files.iter().flat_map(|file| self.matching(file));
        let found = found.filter_map(|name| self.texts.get(name));
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

    /// Returns its entries of a name, in which `*` stands for any characters.
    pub fn matching<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let pattern = name.contains('*').then(|| Glob::new(name));
        let names = self.names.iter().map(String::as_str);
        names.filter(move |found| match &pattern {
            Some(pattern) => pattern.matches(found),
            None => *found == name,
        })
    }

    /// Tells whether a member list here takes a directory in.
    #[must_use]
    pub fn declares(&self, workspace: WorkspaceNotation, other: &str) -> bool {
        let lists = self.declared.iter();
        let mut own = lists.filter(|declared| declared.workspace == workspace);
        own.any(|declared| {
            let mut members = declared.members.iter();
            members.any(|member| self.is_named(member, other)) && !self.leaves_out(declared, other)
        })
    }

    /// Tells whether a member list here leaves a directory out by name.
    #[must_use]
    pub fn excludes(&self, workspace: WorkspaceNotation, other: &str) -> bool {
        let lists = self.declared.iter();
        let mut own = lists.filter(|declared| declared.workspace == workspace);
        own.any(|declared| self.leaves_out(declared, other))
    }

    fn leaves_out(&self, declared: &MemberList, other: &str) -> bool {
        let mut excluded = declared.excluded.iter();
        excluded.any(|pattern| self.is_named(pattern, other))
    }

    /// Tells whether a pattern that is written here names a directory.
    fn is_named(&self, pattern: &str, other: &str) -> bool {
        if let Some(from_top) = pattern.strip_prefix('/') {
            return Glob::new(from_top).matches(other);
        }
        if pattern.starts_with("../") {
            return below_top(&self.path, pattern)
                .is_some_and(|pattern| Glob::new(&pattern).matches(other));
        }
        self.relative(other)
            .is_some_and(|relative| Glob::new(pattern).matches(relative))
    }

    /// Tells whether it holds a member list.
    #[must_use]
    pub fn is_workspace(&self, workspace: WorkspaceNotation) -> bool {
        self.declared
            .iter()
            .any(|declared| declared.workspace == workspace)
    }
}

/// Returns a path relative to the top that a directory names relative to itself; `None` where it leaves
/// the project.
#[must_use]
pub fn below_top(directory: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = directory
        .split('/')
        .filter(|part| !part.is_empty())
        .collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}
