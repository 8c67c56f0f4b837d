//! The rules of selection, each on a made-up tree of directories.

mod roots;
mod settled;
mod table;

use super::directory::{Directory, MemberList, WorkspaceNotation};
use super::profile::{CheckProfiles, TABLE};
use super::{CheckChoice, CheckVerb, ProjectRoot, select};
use crate::rules::proof::ecosystem;
use crate::rules::proof::ecosystem::EcosystemTable;

mod members;

fn profiles() -> CheckProfiles {
    toml::from_str(TABLE).unwrap()
}

fn ecosystems() -> EcosystemTable {
    toml::from_str(ecosystem::TABLE).unwrap()
}

#[test]
fn every_profile_has_its_ecosystem() {
    let ecosystems = ecosystems();
    for profile in profiles().all {
        assert!(
            ecosystems.get(&profile.ecosystem).is_some(),
            "{}",
            profile.id
        );
    }
}

#[test]
fn what_was_downloaded_and_installed_is_the_ecosystems() {
    let python = directory("", &[("pyproject.toml", "")]);
    let roots = select::roots(&profiles(), &ecosystems(), &[python]);
    let root = roots.first().unwrap();
    assert_eq!(root.first_on_path, [".venv/bin", "venv/bin"]);
    assert!(root.caches.iter().any(|cache| cache == ".cache/uv"));
    let go = directory("", &[("go.mod", "")]);
    let roots = select::roots(&profiles(), &ecosystems(), &[go]);
    let caches = &roots.first().unwrap().caches;
    for cache in ["go/pkg/mod", ".cache/go-build"] {
        assert_eq!(caches.iter().filter(|one| *one == cache).count(), 1);
    }
}

/// Makes a directory with files; a file that is given with a text has been read.
fn directory(path: &str, files: &[(&str, &str)]) -> Directory {
    let mut directory = Directory {
        path: path.to_owned(),
        ..Directory::default()
    };
    for (name, text) in files {
        directory.names.insert((*name).to_owned());
        directory
            .texts
            .insert((*name).to_owned(), (*text).to_owned());
    }
    directory
}

fn declaring(
    mut directory: Directory,
    workspace: WorkspaceNotation,
    members: &[&str],
) -> Directory {
    directory.declared.push(MemberList {
        workspace,
        members: members.iter().map(|&one| one.to_owned()).collect(),
        excluded: Vec::new(),
    });
    directory
}

fn with_scripts(mut directory: Directory, scripts: &[(&str, &str)]) -> Directory {
    let scripts = scripts
        .iter()
        .map(|(name, line)| ((*name).to_owned(), (*line).to_owned()));
    directory.scripts = scripts.collect();
    directory
}

/// Returns the roots as `path: profile profile`.
fn roots_of(directories: &[Directory]) -> Vec<String> {
    let roots = select::roots(&profiles(), &ecosystems(), directories);
    roots
        .iter()
        .map(|root| format!("{}: {}", root.path, root.profiles.join(" ")))
        .collect()
}

fn only_root(directory: Directory) -> ProjectRoot {
    let mut roots = select::roots(&profiles(), &ecosystems(), &[directory]);
    assert_eq!(roots.len(), 1, "{roots:?}");
    roots.remove(0)
}

/// Returns who provides each verb; `-` before one that declined.
fn providers(root: &ProjectRoot) -> Vec<String> {
    let word = |choice: &CheckChoice| match choice {
        CheckChoice::Check(check) => format!("{} {}", check.verb, check.provider),
        CheckChoice::Declined { verb, profile, .. } => format!("{verb} -{profile}"),
    };
    root.choices.iter().map(word).collect()
}

fn command(root: &ProjectRoot, wanted: CheckVerb) -> String {
    let found = root.choices.iter().find_map(|choice| match choice {
        CheckChoice::Check(check) if check.verb == wanted => Some(check.command.clone()),
        CheckChoice::Check(_) | CheckChoice::Declined { .. } => None,
    });
    found.unwrap_or_default()
}

fn declines(root: &ProjectRoot, wanted: CheckVerb) -> String {
    let found = root.choices.iter().find_map(|choice| match choice {
        CheckChoice::Declined { verb, reason, .. } if *verb == wanted => Some(reason.clone()),
        CheckChoice::Check(_) | CheckChoice::Declined { .. } => None,
    });
    found.unwrap_or_default()
}

/// Names and texts.
type Files = &'static [(&'static str, &'static str)];

/// What lies in one directory, the profiles that are recognised, and who provides a verb.
const RIVALS: &[(Files, &str, &str)] = &[
    (
        &[("build.gradle", "org.jetbrains.kotlin")],
        "kotlin-gradle gradle",
        "compile kotlin-gradle",
    ),
    (&[("build.gradle", "java")], "gradle", "compile gradle"),
    (
        &[
            ("settings.gradle", "java"),
            ("build.gradle", "apply plugin: 'kotlin'"),
        ],
        "kotlin-gradle gradle",
        "build kotlin-gradle",
    ),
    (
        &[("pom.xml", "kotlin-stdlib")],
        "kotlin-maven maven",
        "test kotlin-maven",
    ),
    (&[("pom.xml", "")], "maven", "test maven"),
    (
        &[("uv.lock", ""), ("pyproject.toml", "")],
        "python-uv python",
        "test python-uv",
    ),
    (&[("pyproject.toml", "")], "python", "test python"),
    (
        &[("wally.toml", ""), (".luaurc", "")],
        "roblox-luau luau",
        "typecheck roblox-luau",
    ),
    (
        &[("wally.toml", ""), (".luaurc", ""), ("selene.toml", "")],
        "roblox-luau luau",
        "lint luau",
    ),
    (&[(".luaurc", "")], "luau", "typecheck luau"),
    (
        &[("CMakeLists.txt", ""), ("Makefile", "test:\n")],
        "cmake make",
        "test cmake",
    ),
    (
        &[("Makefile", "test:\n"), ("Cargo.toml", "")],
        "make rust",
        "test make",
    ),
    (
        &[("Makefile", "install:\n"), ("Cargo.toml", "")],
        "make rust",
        "test rust",
    ),
    (&[("go.mod", ""), ("Cargo.toml", "")], "go rust", "test go"),
    (&[("bun.lock", ""), ("package.json", "")], "bun", "test bun"),
    (
        &[("pnpm-lock.yaml", ""), ("package-lock.json", "")],
        "node-pnpm node-npm",
        "test node-pnpm",
    ),
    (&[("test.sh", "")], "shell", "test shell"),
    (
        &[("test.sh", ""), ("Cargo.toml", "")],
        "rust shell",
        "test rust",
    ),
    (
        &[("test.sh", ""), ("Makefile", "install:\n")],
        "make shell",
        "test shell",
    ),
];

#[test]
fn rivals_in_one_directory_are_told_apart() {
    for (files, profiles, provider) in RIVALS {
        let shown = with_scripts(directory("", files), &[("test", "x")]);
        let root = only_root(shown);
        assert_eq!(root.profiles.join(" "), *profiles, "{files:?}");
        assert!(
            providers(&root).contains(&(*provider).to_owned()),
            "{provider}: {root:?}"
        );
    }
}

#[test]
fn a_test_file_alone_makes_a_project_of_the_top_and_of_nothing_below_it() {
    for name in ["test_a.py", "a_test.py", "conftest.py", "pytest.ini"] {
        let root = only_root(directory("", &[("a.py", ""), (name, "")]));
        assert_eq!(root.profiles, ["python"], "{name}");
        assert!(providers(&root).contains(&"test python".to_owned()));
    }
    let below = [
        directory("", &[("a.py", ""), ("tools", "")]),
        directory("tools", &[("test_a.py", "")]),
    ];
    assert_eq!(select::roots(&profiles(), &ecosystems(), &below), []);
    let other = directory("", &[("attest_a.py", ""), ("test_a.pyc", "")]);
    assert_eq!(select::roots(&profiles(), &ecosystems(), &[other]), []);
}

#[test]
fn a_directory_of_tests_makes_a_project_of_the_top_where_nothing_else_does() {
    let of = |top: &[(&str, &str)]| {
        let tests = directory("tests", &[("test_a.py", "")]);
        let found = select::roots(&profiles(), &ecosystems(), &[directory("", top), tests]);
        let shown = found
            .iter()
            .map(|root| format!("{}: {}", root.path, root.profiles.join(" ")));
        shown.collect::<Vec<_>>()
    };
    assert_eq!(of(&[("a.py", ""), ("tests", "")]), [": python"]);
    assert_eq!(of(&[("Cargo.toml", ""), ("tests", "")]), [": rust"]);
    assert_eq!(of(&[("Makefile", ""), ("tests", "")]), [": make"]);
}

#[test]
fn what_a_project_does_not_ask_for_is_declined_with_a_reason() {
    let npm = |scripts| with_scripts(directory("", &[("package-lock.json", "")]), scripts);
    let root = only_root(npm(&[]));
    assert_eq!(
        declines(&root, CheckVerb::Test),
        "package.json has no script \"test\""
    );
    assert_eq!(
        declines(&root, CheckVerb::Typecheck),
        "there is no tsconfig.json"
    );
    let root = only_root(npm(&[(
        "test",
        "echo \"Error: no test specified\" && exit 1",
    )]));
    assert_eq!(
        declines(&root, CheckVerb::Test),
        "the script \"test\" of package.json is a placeholder"
    );
    let root = only_root(directory("", &[("Makefile", "install:\n")]));
    assert_eq!(
        declines(&root, CheckVerb::Build),
        "the makefile has no target build or all"
    );
    let root = only_root(directory("", &[("pom.xml", "")]));
    assert_eq!(
        declines(&root, CheckVerb::Lint),
        "pom.xml does not mention checkstyle"
    );
    let root = only_root(directory("", &[("global.json", "{\"sdk\":{}}")]));
    assert!(declines(&root, CheckVerb::Build).starts_with("there is no *.sln or"));
}

#[test]
fn what_a_project_defines_itself_comes_before_what_is_usual() {
    let with = |names: &[(&str, &str)], scripts: &[(&str, &str)]| {
        only_root(with_scripts(directory("", names), scripts))
    };
    let lock = ("pnpm-lock.yaml", "");
    let own = with(&[lock], &[("lint", "eslint ."), ("type-check", "tsc")]);
    assert_eq!(command(&own, CheckVerb::Lint), "pnpm run --silent lint");
    assert_eq!(
        command(&own, CheckVerb::Typecheck),
        "pnpm run --silent type-check"
    );
    let eslint = with(&[lock, ("eslint.config.mjs", "")], &[]);
    assert_eq!(command(&eslint, CheckVerb::Lint), "pnpm exec eslint .");
    let black = with(
        &[("pyproject.toml", "[tool.black]\n"), (".flake8", "")],
        &[],
    );
    assert_eq!(command(&black, CheckVerb::Format), "black --check .");
    assert_eq!(command(&black, CheckVerb::Lint), "flake8");
    let both = with(
        &[("Cargo.toml", ""), ("justfile", "lint:\n  cargo clippy\n")],
        &[],
    );
    assert_eq!(command(&both, CheckVerb::Lint), "just lint");
    assert_eq!(command(&both, CheckVerb::Test), "cargo test --quiet");
    let wrapped = with(&[("build.gradle", ""), ("gradlew", "")], &[]);
    assert_eq!(command(&wrapped, CheckVerb::Test), "./gradlew --quiet test");
}

/// A marker, a file with its text, a verb and the tool that is offered with the file and not without.
const CONFIGURED: &[(&str, (&str, &str), CheckVerb, &str)] = &[
    (
        "package-lock.json",
        ("biome.json", ""),
        CheckVerb::Lint,
        "biome",
    ),
    (
        "package-lock.json",
        ("package.json", "\"@biomejs/biome\": \"1\""),
        CheckVerb::Format,
        "biome",
    ),
    (
        "pnpm-lock.yaml",
        ("package.json", "\"prettier\": \"3\""),
        CheckVerb::Format,
        "prettier",
    ),
    (
        "yarn.lock",
        ("package.json", "\"eslintConfig\": {}"),
        CheckVerb::Lint,
        "eslint",
    ),
    (
        "bun.lock",
        (".oxlintrc.json", ""),
        CheckVerb::Lint,
        "oxlint",
    ),
    ("setup.py", ("ruff.toml", ""), CheckVerb::Lint, "ruff"),
    (
        "setup.py",
        ("pyproject.toml", "[tool.ruff.format]"),
        CheckVerb::Format,
        "ruff format",
    ),
    (
        "setup.py",
        ("requirements-dev.txt", "mypy==1.0"),
        CheckVerb::Typecheck,
        "mypy",
    ),
    (
        "setup.py",
        ("tox.ini", "[flake8]"),
        CheckVerb::Lint,
        "flake8",
    ),
    ("uv.lock", ("mypy.ini", ""), CheckVerb::Typecheck, "mypy"),
    ("go.mod", (".golangci.yml", ""), CheckVerb::Lint, "golangci"),
    (
        "CMakeLists.txt",
        (".clang-tidy", ""),
        CheckVerb::Lint,
        "tidy",
    ),
    ("luau.toml", ("selene.toml", ""), CheckVerb::Lint, "selene"),
    (
        ".luarc.json",
        (".luacheckrc", ""),
        CheckVerb::Lint,
        "luacheck",
    ),
    (
        ".luacheckrc",
        ("stylua.toml", ""),
        CheckVerb::Format,
        "stylua",
    ),
    (
        "Package.swift",
        (".swiftlint.yml", ""),
        CheckVerb::Lint,
        "lint",
    ),
    (
        "mix.exs",
        (".formatter.exs", ""),
        CheckVerb::Format,
        "format",
    ),
];

#[test]
fn a_tool_is_offered_where_the_project_has_its_settings_or_names_it() {
    for (marker, (name, text), verb, tool) in CONFIGURED {
        let with = only_root(directory("", &[(marker, ""), (name, text)]));
        let offered = command(&with, *verb);
        assert!(offered.contains(tool), "{name}: {offered:?}");
        let without = only_root(directory("", &[(marker, "")]));
        assert_eq!(command(&without, *verb), "", "{marker} {verb}");
        assert_ne!(declines(&without, *verb), "", "{marker} {verb}");
    }
    let plain = only_root(directory("", &[("package-lock.json", "")]));
    assert_eq!(
        declines(&plain, CheckVerb::Lint),
        "package.json has no script \"lint\", and no linter is configured"
    );
    // Who lints with a tool need not format with it.
    let lints = only_root(directory("", &[("pyproject.toml", "[tool.ruff.lint]")]));
    assert_eq!(command(&lints, CheckVerb::Format), "");
}

#[test]
fn a_solution_of_another_language_is_no_project_of_dotnet() {
    let native = directory("vs", &[("a.sln", "\"a\", \"a.vcxproj\"")]);
    assert_eq!(select::roots(&profiles(), &ecosystems(), &[native]), []);
    // One reason is told once, however many profiles have it.
    let python = only_root(directory("", &[("uv.lock", ""), ("pyproject.toml", "")]));
    let reason = "no formatter is configured";
    assert_eq!(declines(&python, CheckVerb::Format), reason);
}

#[test]
fn the_check_of_a_makefile_comes_after_the_tests_of_all_others() {
    let makefile = ("Makefile", "check:\n");
    let own = only_root(directory("", &[makefile]));
    assert_eq!(command(&own, CheckVerb::Test), "make check");
    let both = only_root(directory("", &[makefile, ("Cargo.toml", "")]));
    assert_eq!(command(&both, CheckVerb::Test), "cargo test --quiet");
}

#[test]
fn weak_commands_of_old_are_strong_here() {
    let root = only_root(directory("", &[("Makefile", "build:\ntest:\n")]));
    assert_eq!(command(&root, CheckVerb::Build), "make build");
    let root = only_root(directory("", &[("Makefile", "all: x\n")]));
    assert_eq!(command(&root, CheckVerb::Build), "make all");
    let go = only_root(directory("", &[("go.mod", "")]));
    assert!(command(&go, CheckVerb::Format).contains("[ -n \"$found\" ]"));
    let cmake = only_root(directory(
        "",
        &[
            ("CMakeLists.txt", ""),
            (".clang-format", ""),
            (".clang-tidy", ""),
        ],
    ));
    for verb in [CheckVerb::Lint, CheckVerb::Format] {
        assert!(command(&cmake, verb).contains("-name '*.cpp'"), "{verb}");
    }
    let dotnet = only_root(directory("", &[("a.csproj", "<Project>")]));
    assert!(!command(&dotnet, CheckVerb::Test).contains("--no-build"));
}
