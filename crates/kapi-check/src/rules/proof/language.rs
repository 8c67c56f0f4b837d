//! The languages in which signs are looked for, by the name of the file.
//!
//! Prose, data and styles are in none of them.

/// A language, or a group that is alike here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::rules::proof) enum Language {
    Python,
    Script,
    Rust,
    Go,
    Jvm,
    C,
    Ruby,
    Php,
    Perl,
    Lua,
    /// Shells, recipes, and what holds command lines.
    Shell,
    Other,
}

impl Language {
    /// Returns the language of a file; `None` for what is not run.
    pub(in crate::rules::proof) fn of(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let is_recipe = [
            "Makefile",
            "makefile",
            "GNUmakefile",
            "justfile",
            "Justfile",
            "package.json",
            "Dockerfile",
        ]
        .contains(&name);
        if is_recipe {
            return Some(Self::Shell);
        }
        let (_, end) = name.rsplit_once('.')?;
        Some(match end {
            "py" | "pyx" | "pyi" | "pth" => Self::Python,
            "js" | "mjs" | "cjs" | "jsx" | "ts" | "mts" | "cts" | "tsx" | "vue" | "svelte" => {
                Self::Script
            }
            "rs" => Self::Rust,
            "go" => Self::Go,
            "java" | "kt" | "kts" | "scala" | "groovy" | "gradle" | "cs" | "swift" | "dart" => {
                Self::Jvm
            }
            "c" | "cc" | "cpp" | "cxx" | "h" | "hh" | "hpp" | "hxx" | "m" | "mm" | "zig" => Self::C,
            "rb" | "rake" | "ex" | "exs" | "cr" => Self::Ruby,
            "php" | "phpt" => Self::Php,
            "sh" | "bash" | "zsh" | "bats" | "fish" | "mk" | "yml" | "yaml" | "toml" | "cfg"
            | "ini" | "just" => Self::Shell,
            "pl" | "pm" | "t" => Self::Perl,
            "lua" | "luau" => Self::Lua,
            "hs" | "ml" | "erl" | "nim" | "jl" | "r" => Self::Other,
            _ => return None,
        })
    }

    /// Tells whether a whole line is a comment.
    pub(in crate::rules::proof) fn is_comment(self, line: &str) -> bool {
        let line = line.trim_start();
        match self {
            Self::Python | Self::Shell => line.starts_with('#'),
            Self::Ruby => line.starts_with("# ") || line == "#",
            Self::Script | Self::Rust | Self::Go | Self::Jvm | Self::C | Self::Php => {
                ["//", "/*", "* ", "*/"]
                    .iter()
                    .any(|start| line.starts_with(start))
                    || line == "*"
            }
            Self::Perl | Self::Lua | Self::Other => {
                line.starts_with("--") || line.starts_with("# ")
            }
        }
    }
}
