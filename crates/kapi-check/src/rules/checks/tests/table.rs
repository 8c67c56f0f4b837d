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
        &[
            ("Package.swift", ""),
            (".swift-format", ""),
            (".swiftlint.yml", ""),
        ],
        "lint format compile test",
    ),
    (
        "cmake",
        &[
            ("CMakeLists.txt", ""),
            (".clang-format", ""),
            (".clang-tidy", ""),
        ],
        "lint format test build",
    ),
    ("make", &[("Makefile", "all:\ntest:\n")], "test build"),
    ("make", &[("GNUmakefile", "all:\ncheck:\n")], "test build"),
    ("meson", &[("meson.build", "")], "test build"),
    ("autotools", &[("configure.ac", "")], "test build"),
    (
        "kotlin-gradle",
        &[
            ("build.gradle.kts", "kotlin(\"jvm\") detekt"),
            (".editorconfig", "ktlint_standard = enabled"),
        ],
        "lint format compile test build",
    ),
    (
        "gradle",
        &[("build.gradle", "plugins { id 'java'; id 'checkstyle' }")],
        "lint compile test build",
    ),
    (
        "gradle",
        &[("settings.gradle.kts", "include(\"app\")")],
        "compile test build",
    ),
    (
        "kotlin-maven",
        &[("pom.xml", "kotlin-maven-plugin ktlint")],
        "lint compile test build",
    ),
    (
        "maven",
        &[("pom.xml", "maven-checkstyle-plugin")],
        "lint compile test build",
    ),
    (
        "lua",
        &[
            (".luarc.json", ""),
            (".luacheckrc", ""),
            ("stylua.toml", ""),
            ("spec", ""),
        ],
        "typecheck lint format test",
    ),
    ("lua", &[("init.lua", ""), (".busted", "")], "test"),
    (
        "roblox-luau",
        &[("default.project.json", ""), ("tests", "")],
        "typecheck test build",
    ),
    (
        "luau",
        &[(".luaurc", ""), ("selene.toml", ""), (".stylua.toml", "")],
        "typecheck lint format",
    ),
    (
        "python-uv",
        &[("uv.lock", ""), ("pyproject.toml", PYTHON)],
        "typecheck lint format test",
    ),
    (
        "python",
        &[("pyproject.toml", PYTHON)],
        "typecheck lint format test",
    ),
    ("python", &[("requirements.txt", "")], "test"),
    (
        "go",
        &[("go.mod", ""), (".golangci.toml", "")],
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
    ("ruby", &[("Gemfile", ""), (".rspec", "")], "test"),
    (
        "elixir",
        &[("mix.exs", "credo dialyxir"), (".formatter.exs", "")],
        "typecheck lint format compile test",
    ),
    (
        "erlang",
        &[("rebar.config", "{dialyzer, []}.")],
        "typecheck compile test",
    ),
    (
        "zig",
        &[("build.zig", "b.step(\"test\", \"\")")],
        "format compile test",
    ),
    (
        "bun",
        &[
            ("bun.lockb", ""),
            ("tsconfig.json", ""),
            ("package.json", BIOME),
        ],
        "typecheck lint format test build",
    ),
    (
        "node-pnpm",
        &[
            ("pnpm-lock.yaml", ""),
            ("tsconfig.json", ""),
            ("package.json", BIOME),
        ],
        "typecheck lint format test build",
    ),
    (
        "node-npm",
        &[
            ("package-lock.json", ""),
            ("tsconfig.json", ""),
            ("package.json", BIOME),
        ],
        "typecheck lint format test build",
    ),
    (
        "node-npm",
        &[("package.json", ""), ("tsconfig.json", "")],
        "typecheck test build",
    ),
    (
        "node-yarn",
        &[
            ("yarn.lock", ""),
            ("package.json", BIOME),
            ("tsconfig.json", ""),
        ],
        "typecheck lint format test build",
    ),
    ("deno", &[("deno.jsonc", "")], "typecheck lint format test"),
    (
        "dotnet",
        &[("App.sln", "\"A\\A.csproj\"")],
        "format compile test build",
    ),
    (
        "dotnet",
        &[("App.csproj", "<Project>")],
        "format compile test build",
    ),
    (
        "php",
        &[
            ("composer.json", "\"phpunit/phpunit\": \"^11\""),
            ("phpunit.xml.dist", ""),
            ("phpstan.neon", ""),
            ("phpcs.xml", ""),
            (".php-cs-fixer.dist.php", ""),
        ],
        "typecheck lint format test",
    ),
    (
        "perl",
        &[("Makefile.PL", ""), ("t", ""), (".perlcriticrc", "")],
        "lint test",
    ),
    (
        "haskell",
        &[("a.cabal", ""), (".hlint.yaml", "")],
        "lint test build",
    ),
    (
        "ocaml",
        &[("dune-project", ""), (".ocamlformat", "")],
        "format test build",
    ),
    (
        "dart",
        &[("pubspec.yaml", ""), ("test", "")],
        "lint format test",
    ),
    ("sbt", &[("build.sbt", "")], "compile test"),
    ("shell", &[("a.bats", "")], "test"),
];
/// What a project says that checks its types, lints and formats.
const PYTHON: &str = "[tool.mypy]\n[tool.ruff.format]\n";
/// What a package says that lints and formats.
const BIOME: &str = r#"{"devDependencies":{"@biomejs/biome":"2"}}"#;

#[test]
fn every_profile_is_found_by_its_marker_and_provides_its_verbs() {
    for (profile, files, verbs) in SHOWN {
        let shown = with_scripts(directory("", files), &[("test", "x"), ("build", "y")]);
        let expected: Vec<String> = verbs
            .split(' ')
            .map(|verb| format!("{verb} {profile}"))
            .collect();
        let mut provided = providers(&only_root(shown));
        provided.retain(|one| !one.contains(" -"));
        assert_eq!(provided, expected, "{files:?}");
    }
    let shown: Vec<&str> = SHOWN.iter().map(|(profile, ..)| *profile).collect();
    for profile in profiles().all {
        assert!(shown.contains(&profile.id.as_str()), "{}", profile.id);
    }
}

#[test]
fn the_table_is_the_one_of_the_specification() {
    let ids: Vec<String> = profiles().all.into_iter().map(|one| one.id).collect();
    let expected = "just swift cmake make meson autotools kotlin-gradle gradle kotlin-maven maven lua \
                    roblox-luau luau python-uv python go rust ruby elixir erlang zig bun node-pnpm \
                    node-npm node-yarn deno dotnet php perl haskell ocaml dart sbt shell";
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
            let is_first = profile.id != "cmake" && profile.id != "meson";
            let program = step.run.split(' ').next().unwrap();
            let is_needed = step.needs.iter().any(|need| need == program);
            assert!(
                is_needed || !is_first || step.run.contains("gofmt"),
                "{program}"
            );
        }
    }
}
