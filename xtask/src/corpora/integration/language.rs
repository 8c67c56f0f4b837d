//! The languages of the corpus: how a function is written, where one may be put, and how it is checked.
//!
//! Text alone. A check runs the file itself with a question behind it, so that nothing is installed.

use serde::Deserialize;

/// A language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Language {
    Shell,
    Python,
    JavaScript,
    Rust,
}

/// A function that gives a number, or what another one gives and a number.
#[derive(Debug, Clone)]
pub(super) struct NumberFunction {
    /// Its name.
    pub(super) name: String,
    /// Its number.
    pub(super) value: u32,
    /// The function whose number is added.
    pub(super) calls: Option<String>,
    /// What is said of it, on the line above.
    pub(super) comment: String,
}

impl Language {
    /// Returns the ending of a file.
    pub(super) const fn extension(self) -> &'static str {
        match self {
            Self::Shell => "sh",
            Self::Python => "py",
            Self::JavaScript => "js",
            Self::Rust => "rs",
        }
    }

    /// Returns a function as it stands in a file.
    pub(super) fn write(self, function: &NumberFunction) -> String {
        let NumberFunction {
            name,
            value,
            calls,
            comment,
        } = function;
        match (self, calls) {
            (Self::Shell, None) => format!("# {comment}\n{name}() {{\n    echo {value}\n}}\n"),
            (Self::Shell, Some(other)) => {
                format!("# {comment}\n{name}() {{\n    echo $(($({other}) + {value}))\n}}\n")
            }
            (Self::Python, None) => format!("# {comment}\ndef {name}():\n    return {value}\n"),
            (Self::Python, Some(other)) => {
                format!("# {comment}\ndef {name}():\n    return {other}() + {value}\n")
            }
            (Self::JavaScript, None) => {
                format!("// {comment}\nfunction {name}() {{\n  return {value};\n}}\n")
            }
            (Self::JavaScript, Some(other)) => {
                format!("// {comment}\nfunction {name}() {{\n  return {other}() + {value};\n}}\n")
            }
            (Self::Rust, None) => {
                format!("// {comment}\nfn {name}() -> u32 {{\n    {value}\n}}\n")
            }
            (Self::Rust, Some(other)) => {
                format!("// {comment}\nfn {name}() -> u32 {{\n    {other}() + {value}\n}}\n")
            }
        }
    }

    /// Returns the line with the number of a function that calls none.
    pub(super) fn value_line(self, value: u32) -> String {
        match self {
            Self::Shell => format!("    echo {value}\n"),
            Self::Python => format!("    return {value}\n"),
            Self::JavaScript => format!("  return {value};\n"),
            Self::Rust => format!("    {value}\n"),
        }
    }

    /// Tells whether a function may be put before a line that stands behind an empty one.
    pub(super) fn opens(self, line: &str) -> bool {
        let openers: &[&str] = match self {
            Self::Shell => &["# "],
            Self::Python => &["def ", "class ", "# ", "@"],
            Self::JavaScript => &[
                "function ",
                "// ",
                "/**",
                "const ",
                "let ",
                "var ",
                "class ",
                "exports.",
                "module.exports",
            ],
            Self::Rust => &["fn ", "pub fn ", "impl", "pub struct ", "// ", "/// ", "#["],
        };
        openers.iter().any(|opener| line.starts_with(opener))
    }

    /// Returns a shell script that passes where a function of a file gives a number.
    pub(super) fn check(self, path: &str, name: &str, value: u32) -> String {
        let (dir, file) = path.rsplit_once('/').unwrap_or((".", path));
        match self {
            Self::Shell => format!(". ./{path}\n[ \"$({name})\" = {value} ]\n"),
            Self::Python => {
                let module = file.trim_end_matches(".py");
                let (top, package) = dir.rsplit_once('/').unwrap_or((".", dir));
                let (top, package) = if package == "." {
                    (".", String::new())
                } else {
                    (top, format!("{package}."))
                };
                format!(
                    "cd ./{top}\nPYTHONDONTWRITEBYTECODE=1 python3 -c 'import {package}{module} as it; \
                     assert it.{name}() == {value}'\n"
                )
            }
            Self::JavaScript => format!(
                "asked=./{dir}/asked-{name}.js\n\
                 {{ cat ./{path}; echo; echo 'if ({name}() !== {value}) process.exit(1)'; }} > \"$asked\"\n\
                 node \"$asked\"; code=$?; rm -f \"$asked\"; exit $code\n"
            ),
            Self::Rust => format!(
                "asked=./{dir}/asked_{name}.rs\n\
                 {{ cat ./{path}; echo; echo 'fn main() {{ assert_eq!({name}(), {value}) }}'; }} > \"$asked\"\n\
                 rustc --edition 2015 --cap-lints allow -C debuginfo=0 \"$asked\" -o \"$asked.out\" && \"$asked.out\"\n\
                 code=$?; rm -f \"$asked\" \"$asked.out\"; exit $code\n"
            ),
        }
    }
}
