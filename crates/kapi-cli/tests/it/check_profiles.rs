//! Every profile of the table, run with stand-ins for its tools: each is found, started in the
//! sandbox, and given the right words.
//!
//! A stand-in prints its name and its words, so that what was run shows in the check's output.

use std::fs;
use std::os::unix::fs::symlink;

use crate::check::{check, machine, one, own_programs, program, reported};
use crate::environment::{Environment, for_each};

/// Every program that a profile names.
const PROGRAMS: &[&str] = &[
    "just",
    "swift",
    "swift-format",
    "swiftlint",
    "cmake",
    "ctest",
    "clang-format",
    "clang-tidy",
    "make",
    "meson",
    "gradle",
    "ktlint",
    "mvn",
    "luacheck",
    "stylua",
    "busted",
    "lua-language-server",
    "rojo",
    "luau-analyze",
    "lune",
    "selene",
    "uv",
    "mypy",
    "ruff",
    "pytest",
    "go",
    "golangci-lint",
    "cargo",
    "srb",
    "bundle",
    "mix",
    "rebar3",
    "zig",
    "bun",
    "pnpm",
    "npx",
    "npm",
    "yarn",
    "deno",
    "dotnet",
];
/// A package with all that a profile of Node.js asks for.
const PACKAGE: &str = r#"{"scripts":{"test":"x","build":"y"}}"#;

/// A profile, the files that show it, and what its checks print, verb by verb.
struct Case {
    profile: &'static str,
    files: &'static [(&'static str, &'static str)],
    said: &'static [(&'static str, &'static str)],
}

const CASES: &[Case] = &[
    Case {
        profile: "just",
        files: &[("justfile", "lint:\ntest *args:\nbuild:\n")],
        said: &[
            ("lint", "just lint"),
            ("test", "just test"),
            ("build", "just build"),
        ],
    },
    Case {
        profile: "swift",
        files: &[("Package.swift", "")],
        said: &[
            ("lint", "swiftlint lint --quiet"),
            ("format", "swift-format lint --strict --recursive ."),
            ("compile", "swift build --quiet"),
            ("test", "swift test --quiet"),
        ],
    },
    Case {
        profile: "cpp-cmake",
        files: &[
            ("CMakeLists.txt", ""),
            (".clang-format", ""),
            ("src/a.cpp", ""),
            ("a.h", ""),
            ("build/x.cpp", ""),
        ],
        said: &[
            ("lint", "clang-tidy --quiet -p build ./src/a.cpp"),
            ("format", "clang-format --dry-run --Werror --style=file ./"),
            (
                "test",
                "cmake -S . -B build\ncmake --build build\nctest --test-dir build --output-on-failure",
            ),
            ("build", "cmake -S . -B build\ncmake --build build"),
        ],
    },
    Case {
        profile: "cpp-make",
        files: &[("GNUmakefile", "test: x\nbuild:\n")],
        said: &[("test", "make test"), ("build", "make build")],
    },
    Case {
        profile: "cpp-meson",
        files: &[("meson.build", "")],
        said: &[
            ("test", "meson setup build\nmeson test -C build"),
            ("build", "meson setup build\nmeson compile -C build"),
        ],
    },
    Case {
        profile: "kotlin-gradle",
        files: &[
            ("settings.gradle.kts", ""),
            ("build.gradle.kts", "kotlin(\"jvm\")\ndetekt"),
        ],
        said: &[
            ("lint", "gradle --quiet detekt"),
            ("format", "ktlint --reporter=plain --relative"),
            ("compile", "gradle --quiet compileKotlin"),
            ("test", "gradle --quiet test"),
            ("build", "gradle --quiet assemble"),
        ],
    },
    Case {
        profile: "java-gradle",
        files: &[("build.gradle", "id 'checkstyle'")],
        said: &[
            ("lint", "gradle --quiet checkstyleMain"),
            ("compile", "gradle --quiet compileJava"),
            ("test", "gradle --quiet test"),
            ("build", "gradle --quiet build -x test"),
        ],
    },
    Case {
        profile: "kotlin-maven",
        files: &[("pom.xml", "kotlin-maven-plugin ktlint")],
        said: &[
            ("lint", "mvn -q antrun:run@ktlint"),
            ("compile", "mvn -q compile"),
            ("test", "mvn -q test"),
            ("build", "mvn -q package -DskipTests"),
        ],
    },
    Case {
        profile: "java-maven",
        files: &[("pom.xml", "checkstyle")],
        said: &[
            ("lint", "mvn -q checkstyle:check"),
            ("compile", "mvn -q compile"),
            ("test", "mvn -q test"),
            ("build", "mvn -q package -DskipTests"),
        ],
    },
    Case {
        profile: "lua",
        files: &[(".luacheckrc", ""), (".busted", "")],
        said: &[
            ("typecheck", "lua-language-server --check ."),
            ("lint", "luacheck --no-color ."),
            ("format", "stylua --check ."),
            ("test", "busted"),
        ],
    },
    Case {
        profile: "roblox-luau",
        files: &[("default.project.json", ""), ("tests.luau", "")],
        said: &[
            ("typecheck", "luau-analyze --quiet ."),
            ("test", "lune run tests"),
            ("build", "rojo build default.project.json -o build.rbxlx"),
        ],
    },
    Case {
        profile: "luau",
        files: &[("luau.toml", "")],
        said: &[
            ("typecheck", "luau-analyze --quiet ."),
            ("lint", "selene --quiet ."),
            ("format", "stylua --check ."),
        ],
    },
    Case {
        profile: "python-uv",
        files: &[("uv.lock", ""), ("pyproject.toml", "")],
        said: &[
            ("typecheck", "uv run mypy ."),
            ("lint", "uv run ruff check ."),
            ("format", "uv run ruff format --check ."),
            ("test", "uv run pytest -q"),
        ],
    },
    Case {
        profile: "python",
        files: &[("setup.py", "")],
        said: &[
            ("typecheck", "mypy --pretty ."),
            ("lint", "ruff check ."),
            ("format", "ruff format --check ."),
            ("test", "pytest -q"),
        ],
    },
    Case {
        profile: "go",
        files: &[("go.mod", "")],
        said: &[
            ("typecheck", "go vet ./..."),
            ("lint", "golangci-lint run ./..."),
            ("format", ""),
            ("compile", "go build -o /dev/null ./..."),
            ("test", "go test -count=1 ./..."),
            ("build", "go build ./..."),
        ],
    },
    Case {
        profile: "rust",
        files: &[("Cargo.toml", "")],
        said: &[
            ("typecheck", "cargo check --quiet --all-targets"),
            ("lint", "cargo clippy --quiet --all-targets -- -D warnings"),
            ("format", "cargo fmt --check"),
            ("compile", "cargo check --quiet"),
            ("test", "cargo test --quiet"),
            ("build", "cargo build --quiet --release"),
        ],
    },
    Case {
        profile: "ruby",
        files: &[
            ("Gemfile", "gem 'rubocop'"),
            ("Rakefile", ""),
            ("sorbet/config", ""),
        ],
        said: &[
            ("typecheck", "srb tc"),
            ("lint", "bundle exec rubocop --no-color"),
            ("format", "bundle exec rubocop --no-color --only Layout"),
            ("test", "bundle exec rake test"),
        ],
    },
    Case {
        profile: "elixir",
        files: &[("mix.exs", "{:credo} {:dialyxir}")],
        said: &[
            ("typecheck", "mix dialyzer --quiet"),
            ("lint", "mix credo --strict"),
            ("format", "mix format --check-formatted"),
            ("compile", "mix compile --warnings-as-errors"),
            ("test", "mix test"),
        ],
    },
    Case {
        profile: "erlang",
        files: &[("rebar.lock", "")],
        said: &[
            ("typecheck", "rebar3 dialyzer"),
            ("compile", "rebar3 compile"),
            ("test", "rebar3 eunit"),
        ],
    },
    Case {
        profile: "zig",
        files: &[("build.zig", "b.step(\"test\", \"\")")],
        said: &[
            ("format", "zig fmt --check ."),
            ("compile", "zig build --summary all"),
            ("test", "zig build test"),
        ],
    },
    Case {
        profile: "typescript-bun",
        files: &[
            ("bun.lock", ""),
            ("tsconfig.json", ""),
            ("package.json", PACKAGE),
        ],
        said: &[
            ("typecheck", "bun x tsc --noEmit"),
            ("lint", "bun x biome check --reporter=summary"),
            ("format", "bun x biome format --reporter=summary"),
            ("test", "bun run test"),
            ("build", "bun run build"),
        ],
    },
    Case {
        profile: "node-pnpm",
        files: &[
            ("pnpm-lock.yaml", ""),
            ("tsconfig.json", ""),
            ("package.json", PACKAGE),
        ],
        said: &[
            ("typecheck", "pnpm exec tsc --noEmit"),
            ("lint", "pnpm exec biome check --reporter=summary"),
            ("format", "pnpm exec biome format --reporter=summary"),
            ("test", "pnpm test"),
            ("build", "pnpm run build"),
        ],
    },
    Case {
        profile: "node-npm",
        files: &[
            ("package-lock.json", ""),
            ("tsconfig.json", ""),
            ("package.json", PACKAGE),
        ],
        said: &[
            ("typecheck", "npx --no-install tsc --noEmit"),
            ("lint", "npx --no-install biome check --reporter=summary"),
            ("format", "npx --no-install biome format --reporter=summary"),
            ("test", "npm test --silent"),
            ("build", "npm run build --silent"),
        ],
    },
    Case {
        profile: "node-yarn",
        files: &[
            ("yarn.lock", ""),
            ("tsconfig.json", ""),
            ("package.json", PACKAGE),
        ],
        said: &[
            ("typecheck", "yarn exec --silent tsc --noEmit"),
            ("lint", "yarn exec --silent biome check --reporter=summary"),
            (
                "format",
                "yarn exec --silent biome format --reporter=summary",
            ),
            ("test", "yarn test --silent"),
            ("build", "yarn build"),
        ],
    },
    Case {
        profile: "deno",
        files: &[("deno.json", "{}")],
        said: &[
            ("typecheck", "deno check"),
            ("lint", "deno lint"),
            ("format", "deno fmt --check"),
            ("test", "deno test --quiet --permit-no-files"),
        ],
    },
    Case {
        profile: "dotnet",
        files: &[("App.fsproj", ""), ("Directory.Build.props", "")],
        said: &[
            ("format", "dotnet format --verify-no-changes --no-restore"),
            ("compile", "dotnet build --no-restore --nologo -v quiet"),
            ("test", "dotnet test --nologo -v quiet"),
            ("build", "dotnet build --nologo -v quiet"),
        ],
    },
];

fn shown(case: &Case) -> Environment {
    let env = machine();
    for (name, text) in case.files {
        env.write(name, text);
    }
    env
}

#[test]
fn every_profile_runs_its_commands_with_the_tools_it_finds() {
    assert_eq!(CASES.len(), 26);
    for_each(CASES, |case| {
        let env = shown(case);
        let tools = own_programs(&env);
        let stand_in = tools.join("stand-in");
        program(&stand_in, "echo \"${0##*/} $*\" | sed 's/ $//'");
        for name in PROGRAMS {
            symlink(&stand_in, tools.join(name)).unwrap();
        }
        program(&tools.join("gofmt"), "true");
        for name in ["tsc", "biome"] {
            program(&env.repository().join("node_modules/.bin").join(name), "");
        }
        let (output, document) = check(&env, &[]);
        assert_eq!(output.code, 0, "{}: {output:?}", case.profile);
        let expected: Vec<String> = case
            .said
            .iter()
            .map(|(verb, _)| format!(". {verb} {} passed", case.profile))
            .collect();
        assert_eq!(reported(&document), expected, "{document}");
        for (verb, said) in case.said {
            let output = one(&document, ".", verb)["output"].as_str().unwrap();
            let is_more = case.profile == "cpp-cmake" && *verb == "format";
            let is_right = if is_more {
                output.starts_with(said) && output.contains("./a.h")
            } else {
                output.trim_end() == *said
            };
            assert!(is_right, "{} {verb}: {output}", case.profile);
            assert!(!output.contains("build/x.cpp"), "{output}");
        }
    });
}

#[test]
fn every_profile_is_skipped_without_its_tools() {
    for_each(CASES, |case| {
        let mut env = shown(case);
        env.set("PATH", "/nonexistent");
        let (output, document) = check(&env, &[]);
        assert_eq!(output.code, 0, "{}: {output:?}", case.profile);
        assert_eq!(document["skipped"], case.said.len(), "{document}");
        for (verb, _) in case.said {
            let found = one(&document, ".", verb);
            assert_eq!(found["provider"], case.profile, "{found}");
            let reason = found["reason"].as_str().unwrap();
            assert!(reason.ends_with(" is not on PATH"), "{reason}");
        }
    });
}

#[test]
fn a_formatter_that_finds_something_fails_whatever_it_exits_with() {
    let env = machine();
    env.write("go.mod", "");
    let gofmt = own_programs(&env).join("gofmt");
    for (script, status) in [
        ("echo a.go", "failed"),
        ("echo 'syntax error' >&2; exit 2", "failed"),
        ("true", "passed"),
    ] {
        fs::remove_file(&gofmt).ok();
        program(&gofmt, script);
        let (_, document) = check(&env, &["--only", "format"]);
        assert_eq!(
            reported(&document),
            [format!(". format go {status}")],
            "{document}"
        );
    }
}
