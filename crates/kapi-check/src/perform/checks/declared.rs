//! Reading the files in which projects list their members and scripts.
//!
//! A file that cannot be read lists nothing, which is told; the checks of its directory go on.

mod scan;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use self::scan::{cmake, go_work, gradle, meson, pytest_of_ini, rebar, solution, test_paths};
use crate::rules::checks::directory::{Directory, MemberList, WorkspaceNotation, below_top};

/// How many modules of a `pom.xml` are read.
const MODULES_MAX: usize = 1_000;

/// A file is not in the notation that its name says.
struct UnreadableFile;

/// `pnpm-workspace.yaml`.
#[derive(Debug, Deserialize)]
struct PnpmWorkspace {
    #[serde(default)]
    packages: Vec<String>,
}

/// Adds what the files say to a directory, and returns what could not be read, as fragments.
pub(super) fn declare(texts: &BTreeMap<String, String>, directory: &mut Directory) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, text) in texts {
        match lists(name, text, directory) {
            Ok(found) => directory.declared.extend(found),
            Err(UnreadableFile) => {
                faults.push(format!("{name} cannot be read, so its content is unknown"));
            }
        }
    }
    faults
}

/// Returns the lists of a file, by its name.
fn lists(
    name: &str,
    text: &str,
    directory: &mut Directory,
) -> Result<Vec<MemberList>, UnreadableFile> {
    let of_ini = |section| pytest_of_ini(text, section);
    let list = match name {
        "Cargo.toml" => cargo(text, directory)?,
        "package.json" => node(text, directory)?,
        "pnpm-workspace.yaml" => pnpm(text)?,
        "pyproject.toml" => return python(text),
        "deno.json" | "deno.jsonc" => deno(text)?,
        "pom.xml" => maven(text),
        "mix.exs" => mix(text),
        "go.work" => Some(go_work(text)),
        "settings.gradle" | "settings.gradle.kts" => Some(gradle(text)),
        "CMakeLists.txt" => Some(cmake(text)),
        "meson.build" => Some(meson(text)),
        "rebar.config" => Some(rebar(text)),
        "pytest.ini" | "tox.ini" => of_ini("pytest"),
        "setup.cfg" => of_ini("tool:pytest"),
        name if name.ends_with(".sln") || name.ends_with(".slnx") => Some(solution(text)),
        _ => None,
    };
    Ok(list.into_iter().collect())
}

fn cargo(text: &str, directory: &mut Directory) -> Result<Option<MemberList>, UnreadableFile> {
    let table: toml::Table = toml::from_str(text).map_err(|_| UnreadableFile)?;
    let paths = path_dependencies(&table).into_iter();
    let at = directory.path.clone();
    let paths = paths.filter_map(|path| below_top(&at, path));
    directory.path_dependencies.extend(paths);
    let workspace = table.get("workspace").and_then(toml::Value::as_table);
    Ok(workspace.map(|workspace| {
        let excluded = strings(workspace.get("exclude"));
        let below = excluded.iter().map(|path| format!("{path}/**"));
        MemberList {
            workspace: WorkspaceNotation::Cargo,
            members: strings(workspace.get("members")),
            excluded: below.chain(excluded.clone()).collect(),
        }
    }))
}

/// Returns the paths of all dependencies of a `Cargo.toml` that are directories.
fn path_dependencies(table: &toml::Table) -> Vec<&str> {
    let mut found = Vec::new();
    for (key, value) in table {
        let Some(inner) = value.as_table() else {
            continue;
        };
        if !key.ends_with("dependencies") {
            // Of a target, or of the workspace.
            found.extend(path_dependencies(inner));
            continue;
        }
        let all = inner.values().filter_map(toml::Value::as_table);
        found.extend(all.filter_map(|one| one.get("path")?.as_str()));
    }
    found
}

fn node(text: &str, directory: &mut Directory) -> Result<Option<MemberList>, UnreadableFile> {
    let package: Value = serde_json::from_str(text).map_err(|_| UnreadableFile)?;
    let scripts = package.get("scripts").and_then(Value::as_object);
    let scripts = scripts.into_iter().flatten();
    let scripts =
        scripts.filter_map(|(name, line)| Some((name.clone(), line.as_str()?.to_owned())));
    directory.scripts.extend(scripts);
    let workspaces = package.get("workspaces");
    let listed = workspaces.map(|found| found.get("packages").unwrap_or(found));
    Ok(listed.map(|found| patterns(WorkspaceNotation::Node, texts_of(found))))
}

fn pnpm(text: &str) -> Result<Option<MemberList>, UnreadableFile> {
    let workspace: PnpmWorkspace = serde_saphyr::from_str(text).map_err(|_| UnreadableFile)?;
    Ok(Some(patterns(WorkspaceNotation::Node, workspace.packages)))
}

/// Returns the members of a workspace of uv, and where pytest looks for tests.
fn python(text: &str) -> Result<Vec<MemberList>, UnreadableFile> {
    let table: toml::Table = toml::from_str(text).map_err(|_| UnreadableFile)?;
    let at = |keys: &[&str]| {
        keys.iter()
            .try_fold(&table, |table, key| table.get(*key)?.as_table())
    };
    let uv = at(&["tool", "uv", "workspace"]).map(|workspace| MemberList {
        workspace: WorkspaceNotation::Uv,
        members: strings(workspace.get("members")),
        excluded: strings(workspace.get("exclude")),
    });
    let pytest = at(&["tool", "pytest", "ini_options"]).or_else(|| at(&["tool", "pytest"]));
    let pytest = pytest.and_then(|settings| settings.get("testpaths"));
    let pytest = pytest.map(|found| match found.as_str() {
        Some(text) => test_paths(text.split_whitespace()),
        None => test_paths(strings(Some(found)).iter().map(String::as_str)),
    });
    Ok(uv.into_iter().chain(pytest).collect())
}

fn deno(text: &str) -> Result<Option<MemberList>, UnreadableFile> {
    let config: Value =
        serde_json::from_str(&without_comments(text)).map_err(|_| UnreadableFile)?;
    let workspace = config.get("workspace");
    let listed = workspace.map(|found| found.get("members").unwrap_or(found));
    Ok(listed.map(|found| patterns(WorkspaceNotation::Deno, texts_of(found))))
}

fn maven(text: &str) -> Option<MemberList> {
    let after = text.split("<module>").skip(1).take(MODULES_MAX);
    let modules = after.filter_map(|rest| Some(rest.split_once("</module>")?.0.trim().to_owned()));
    let members: Vec<String> = modules.collect();
    (!members.is_empty()).then_some(MemberList {
        workspace: WorkspaceNotation::Maven,
        members,
        excluded: Vec::new(),
    })
}

fn mix(text: &str) -> Option<MemberList> {
    let (_, after) = text.split_once("apps_path:")?;
    let (path, _) = after.trim_start().strip_prefix('"')?.split_once('"')?;
    Some(MemberList {
        workspace: WorkspaceNotation::Mix,
        members: vec![format!("{path}/*")],
        excluded: Vec::new(),
    })
}

/// Divides patterns into those that take in and, after a `!`, those that leave out.
fn patterns(workspace: WorkspaceNotation, all: Vec<String>) -> MemberList {
    let (excluded, members): (Vec<String>, Vec<String>) = all
        .into_iter()
        .partition(|pattern| pattern.starts_with('!'));
    let excluded = excluded.iter().map(|pattern| pattern.replacen('!', "", 1));
    MemberList {
        workspace,
        members,
        excluded: excluded.collect(),
    }
}

fn texts_of(value: &Value) -> Vec<String> {
    let all = value.as_array().into_iter().flatten();
    all.filter_map(|one| Some(one.as_str()?.to_owned()))
        .collect()
}

fn strings(value: Option<&toml::Value>) -> Vec<String> {
    let all = value.and_then(toml::Value::as_array).into_iter().flatten();
    all.filter_map(|one| Some(one.as_str()?.to_owned()))
        .collect()
}

/// Takes the lines out that are comments as a whole; others stay, for they may be in a text.
fn without_comments(text: &str) -> String {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<&str>>().join("\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::declare;
    use crate::rules::checks::directory::Directory;

    /// Returns what one file lists as `members | excluded`, and what could not be read.
    fn listed(name: &str, text: &str) -> (Vec<String>, Vec<String>) {
        let mut directory = Directory::default();
        let texts = BTreeMap::from([(name.to_owned(), text.to_owned())]);
        let faults = declare(&texts, &mut directory);
        let lists = directory
            .declared
            .iter()
            .map(|one| format!("{} | {}", one.members.join(" "), one.excluded.join(" ")));
        (lists.collect(), faults)
    }

    #[test]
    fn member_lists_are_read() {
        let cases = [
            (
                "Cargo.toml",
                "[workspace]\nmembers=[\"a\"]\nexclude=[\"f\"]",
                "a | f/** f",
            ),
            (
                "package.json",
                r#"{"workspaces":["p/*","!p/x"]}"#,
                "p/* | p/x",
            ),
            (
                "package.json",
                r#"{"workspaces":{"packages":["p/*"]}}"#,
                "p/* | ",
            ),
            (
                "pnpm-workspace.yaml",
                "packages:\n  - 'p/**'\n  - '!**/test'\ncatalog: {a: 1}\n",
                "p/** | **/test",
            ),
            (
                "pyproject.toml",
                "[tool.uv.workspace]\nmembers=[\"l/*\"]\nexclude=[\"l/x\"]",
                "l/* | l/x",
            ),
            ("deno.json", r#"{"workspace":["./a"]}"#, "./a | "),
            (
                "deno.jsonc",
                "{\n // where\n \"workspace\":{\"members\":[\"a\"]}}",
                "a | ",
            ),
            (
                "pom.xml",
                "<modules><module> core </module><module>web</module>",
                "core web | ",
            ),
            ("mix.exs", "apps_path: \"apps\",", "apps/* | "),
            (
                "pyproject.toml",
                "[tool.pytest.ini_options]\ntestpaths = [\"tests\", \"src/\"]",
                "tests tests/** src src/** | ",
            ),
            (
                "pyproject.toml",
                "[tool.pytest.ini_options]\ntestpaths = \"tests .\"",
                "tests tests/** ** | ",
            ),
            (
                "setup.cfg",
                "[metadata]\ntestpaths = no\n[tool:pytest]\ntestpaths =\n    unit\n    more\naddopts = -q\n",
                "unit unit/** more more/** | ",
            ),
            ("tox.ini", "[pytest]\ntestpaths: tests", "tests tests/** | "),
            (
                "go.work",
                "go 1.22\nuse ./tool // one\nuse (\n\t./a\n\t\"./b\"\n\t//./c\n)\n",
                "./tool ./a ./b | ",
            ),
            (
                "settings.gradle",
                "include ':app', 'lib:core'\n// include 'old'\n/* include 'older' */\nincludeBuild 'logic'",
                "buildSrc app lib lib/core | ",
            ),
            (
                "settings.gradle.kts",
                "include(\n  \":app\",\n)\nproject(\":app\").projectDir = file(\"../application\")",
                "buildSrc app ../application | ",
            ),
            (
                "settings.gradle",
                "rootDir.eachDir { include it.name }",
                "buildSrc ** | ",
            ),
            (
                "settings.gradle",
                "include \"modules:$name\", \"modules:x-${it.name}\"\nproject(':x').projectDir = new File(\"$rootDir/deep/x\")",
                "buildSrc modules modules/* modules modules/x-* /**/deep/x | ",
            ),
            (
                "A.sln",
                "Project(\"{F}\") = \"A\", \"src\\A\\A.csproj\", \"{1}\"\nProject(\"{F}\") = \"B\", \"..\\B\\B.fsproj\", \"{2}\"",
                "src/A ../B | ",
            ),
            (
                "A.slnx",
                "<Solution><Project Path=\"src/A/A.csproj\" /></Solution>",
                "src/A | ",
            ),
            (
                "CMakeLists.txt",
                "add_subdirectory(src)\n# add_subdirectory(old)\nif(X)\n  ADD_SUBDIRECTORY( \"${CMAKE_CURRENT_SOURCE_DIR}/tests\" EXCLUDE_FROM_ALL)\n\
                 endif()\nadd_subdirectory(${dir})\nadd_subdirectory(\n  ${PROJECT_SOURCE_DIR}/x\n  y)\nadd_subdirectories(a b)",
                "src tests ** /**/x a b | ",
            ),
            (
                "meson.build",
                "subdir('src')\n# subdir('old')\nsubdir(name)\nx = dep.subdir\n",
                "subprojects/* src ** | ",
            ),
            ("rebar.config", "{deps, []}.", "apps/* lib/* | "),
            (
                "rebar.config",
                "{project_app_dirs, [\"src/*\", \"x\"]}.\n{y, [\"z\"]}.",
                "src/* x | ",
            ),
        ];
        for (name, text, expected) in cases {
            assert_eq!(listed(name, text), (vec![expected.to_owned()], Vec::new()));
        }
    }

    #[test]
    fn a_project_without_members_lists_none() {
        for (name, text) in [
            ("Cargo.toml", "[package]\nname=\"a\""),
            ("package.json", "{}"),
            ("pyproject.toml", "[tool.uv]\npackage=true"),
            ("deno.json", "{}"),
            ("pom.xml", "<project/>"),
            ("mix.exs", "version: \"1\""),
            ("pytest.ini", "[pytest]\naddopts = -q"),
            ("tox.ini", "[testenv]\ntestpaths = x"),
            ("Makefile", "include x\n"),
        ] {
            assert_eq!(listed(name, text), (Vec::new(), Vec::new()), "{name}");
        }
    }

    #[test]
    fn dependencies_in_directories_are_read_wherever_they_are_declared() {
        let mut directory = Directory {
            path: "crates/a".to_owned(),
            ..Directory::default()
        };
        let text = "[dependencies]\nb={path=\"../b\"}\nc=\"1\"\n[dev-dependencies.d]\npath=\"./d\"\n\
                    [target.'cfg(unix)'.dependencies]\ne={path=\"../../e/\"}\n\
                    [build-dependencies]\nf={path=\"../../../f\"}\n[package.metadata]\npath=\"x\"";
        let texts = BTreeMap::from([("Cargo.toml".to_owned(), text.to_owned())]);
        assert!(declare(&texts, &mut directory).is_empty());
        directory.path_dependencies.sort();
        assert_eq!(directory.path_dependencies, ["crates/a/d", "crates/b", "e"]);
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        for (name, text) in [
            ("Cargo.toml", "["),
            ("package.json", "{"),
            ("pnpm-workspace.yaml", "packages: {"),
            ("pyproject.toml", "= 1"),
            ("deno.json", "["),
        ] {
            let (lists, faults) = listed(name, text);
            assert!(lists.is_empty());
            assert!(faults.concat().starts_with(name), "{faults:?}");
        }
    }

    #[test]
    fn scripts_are_those_that_are_text() {
        let mut directory = Directory::default();
        let text = r#"{"scripts":{"test":"node t.js","x":1}}"#;
        let texts = BTreeMap::from([("package.json".to_owned(), text.to_owned())]);
        declare(&texts, &mut directory);
        let expected = BTreeMap::from([("test".to_owned(), "node t.js".to_owned())]);
        assert_eq!(directory.scripts, expected);
    }
}
