//! The table of checks: what marks each kind of project, and what each verb runs.

use super::super::CheckVerb;
use super::{Files, directory, only_root, profiles, providers, with_scripts};

/// Every profile of the specification, a directory that shows it, and what it provides there.
const SHOWN: &[(&str, Files, &str)] = &[
    (
        "just",
        &[("justfile", "lint:\ntest *args:\nbuild:\n")],
        "lint test build",
    ),
    (
        "swift",
        &[("Package.swift", "")],
        "lint format compile test",
    ),
    (
        "cpp-cmake",
        &[("CMakeLists.txt", ""), (".clang-format", "")],
        "lint format test build",
    ),
    ("cpp-make", &[("Makefile", "all:\ntest:\n")], "test build"),
    (
        "cpp-make",
        &[("GNUmakefile", "all:\ntest:\n")],
        "test build",
    ),
    ("cpp-meson", &[("meson.build", "")], "test build"),
    (
        "kotlin-gradle",
        &[("build.gradle.kts", "kotlin(\"jvm\") detekt")],
        "lint format compile test build",
    ),
    (
        "java-gradle",
        &[("build.gradle", "plugins { id 'java'; id 'checkstyle' }")],
        "lint compile test build",
    ),
    (
        "kotlin-maven",
        &[("pom.xml", "kotlin-maven-plugin ktlint")],
        "lint compile test build",
    ),
    (
        "java-maven",
        &[("pom.xml", "maven-checkstyle-plugin")],
        "lint compile test build",
    ),
    (
        "lua",
        &[(".luarc.json", ""), ("spec", "")],
        "typecheck lint format test",
    ),
    (
        "lua",
        &[("init.lua", ""), (".busted", "")],
        "typecheck lint format test",
    ),
    (
        "roblox-luau",
        &[("default.project.json", ""), ("tests", "")],
        "typecheck test build",
    ),
    ("luau", &[(".luaurc", "")], "typecheck lint format"),
    (
        "python-uv",
        &[("uv.lock", "")],
        "typecheck lint format test",
    ),
    (
        "python",
        &[("pyproject.toml", "")],
        "typecheck lint format test",
    ),
    (
        "python",
        &[("requirements.txt", "")],
        "typecheck lint format test",
    ),
    (
        "go",
        &[("go.mod", "")],
        "typecheck lint format compile test build",
    ),
    (
        "rust",
        &[("Cargo.toml", "")],
        "typecheck lint format compile test build",
    ),
    (
        "ruby",
        &[
            ("Gemfile", "gem 'rubocop'"),
            ("Rakefile", ""),
            ("sorbet", ""),
        ],
        "typecheck lint format test",
    ),
    (
        "elixir",
        &[("mix.exs", "credo dialyxir")],
        "typecheck lint format compile test",
    ),
    ("erlang", &[("rebar.config", "")], "typecheck compile test"),
    (
        "zig",
        &[("build.zig", "b.step(\"test\", \"\")")],
        "format compile test",
    ),
    (
        "typescript-bun",
        &[("bun.lockb", ""), ("tsconfig.json", "")],
        "typecheck lint format test build",
    ),
    (
        "node-pnpm",
        &[("pnpm-lock.yaml", ""), ("tsconfig.json", "")],
        "typecheck lint format test build",
    ),
    (
        "node-npm",
        &[("package-lock.json", ""), ("tsconfig.json", "")],
        "typecheck lint format test build",
    ),
    (
        "node-npm",
        &[("package.json", ""), ("tsconfig.json", "")],
        "typecheck lint format test build",
    ),
    (
        "node-yarn",
        &[
            ("yarn.lock", ""),
            ("package.json", ""),
            ("tsconfig.json", ""),
        ],
        "typecheck lint format test build",
    ),
    ("deno", &[("deno.jsonc", "")], "typecheck lint format test"),
    ("dotnet", &[("App.sln", "")], "format compile test build"),
    ("dotnet", &[("App.csproj", "")], "format compile test build"),
];

#[test]
fn every_profile_is_found_by_its_marker_and_provides_its_verbs() {
    for (profile, files, verbs) in SHOWN {
        let shown = with_scripts(directory("", files), &[("test", "x"), ("build", "y")]);
        let expected: Vec<String> = verbs
            .split(' ')
            .map(|verb| format!("{verb} {profile}"))
            .collect();
        assert_eq!(providers(&only_root(shown)), expected, "{files:?}");
    }
    let shown: Vec<&str> = SHOWN.iter().map(|(profile, ..)| *profile).collect();
    for profile in profiles().all {
        assert!(shown.contains(&profile.id.as_str()), "{}", profile.id);
    }
}

#[test]
fn the_table_is_the_one_of_the_specification() {
    let ids: Vec<String> = profiles().all.into_iter().map(|one| one.id).collect();
    let expected = "just swift cpp-cmake cpp-make cpp-meson kotlin-gradle java-gradle kotlin-maven \
                    java-maven lua roblox-luau luau python-uv python go rust ruby elixir erlang zig \
                    typescript-bun node-pnpm node-npm node-yarn deno dotnet";
    assert_eq!(ids.join(" "), expected);
    let seconds = CheckVerb::ALL.map(|verb| (verb.name(), verb.timeout_ms() / 1_000));
    assert_eq!(
        seconds,
        [
            ("typecheck", 30),
            ("lint", 20),
            ("format", 15),
            ("compile", 60),
            ("test", 120),
            ("build", 180)
        ]
    );
    for verb in CheckVerb::ALL {
        assert_eq!(CheckVerb::parse(verb.name()), Some(verb));
    }
    assert_eq!(CheckVerb::parse("Test"), None);
}

#[test]
fn every_command_needs_something_that_is_looked_for_first() {
    for profile in profiles().all {
        for step in CheckVerb::ALL.iter().filter_map(|verb| profile.step(*verb)) {
            assert!(!step.needs.is_empty(), "{}: {}", profile.id, step.run);
            let is_first = profile.id != "cpp-cmake" && profile.id != "cpp-meson";
            let program = step.run.split(' ').next().unwrap();
            let is_needed = step.needs.iter().any(|need| need == program);
            assert!(
                is_needed || !is_first || step.run.contains("gofmt"),
                "{program}"
            );
        }
    }
}
