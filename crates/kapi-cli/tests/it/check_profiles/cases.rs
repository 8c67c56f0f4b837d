//! A project for each profile of the table, and what its checks start.
//!
//! Knows neither a sandbox nor a repository.

/// Every program that a profile names.
pub(super) const PROGRAMS: &[&str] = &[
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
    "php",
    "phpunit",
    "prove",
    "perlcritic",
    "hlint",
    "cabal",
    "dune",
    "ocamlformat",
    "dart",
    "sbt",
    "bats",
];
/// A package with all that a profile of Node.js asks for.
const PACKAGE: &str =
    r#"{"scripts":{"test":"x","build":"y"},"devDependencies":{"@biomejs/biome":"2"}}"#;
/// A project of Python with all that a profile asks for.
const PYTHON: &str = "[tool.mypy]\n[tool.ruff.format]\n";

/// A profile, the files that show it, and what its checks print, verb by verb.
pub(super) struct Case {
    pub(super) profile: &'static str,
    pub(super) files: &'static [(&'static str, &'static str)],
    pub(super) said: &'static [(&'static str, &'static str)],
}

pub(super) const CASES: &[Case] = &[
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
        files: &[
            ("Package.swift", ""),
            (".swift-format", ""),
            (".swiftlint.yml", ""),
        ],
        said: &[
            ("lint", "swiftlint lint --quiet"),
            ("format", "swift-format lint --strict --recursive ."),
            ("compile", "swift build --quiet"),
            ("test", "swift test --quiet"),
        ],
    },
    Case {
        profile: "cmake",
        files: &[
            ("CMakeLists.txt", ""),
            (".clang-format", ""),
            (".clang-tidy", ""),
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
        profile: "make",
        files: &[("GNUmakefile", "test: x\nbuild:\n")],
        said: &[("test", "make test"), ("build", "make build")],
    },
    Case {
        profile: "meson",
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
            ("build.gradle.kts", "kotlin(\"jvm\")\ndetekt\nktlint"),
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
        profile: "gradle",
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
        profile: "maven",
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
        files: &[
            (".luacheckrc", ""),
            (".luarc.json", ""),
            (".busted", ""),
            ("stylua.toml", ""),
        ],
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
        files: &[("luau.toml", ""), ("selene.toml", ""), ("stylua.toml", "")],
        said: &[
            ("typecheck", "luau-analyze --quiet ."),
            ("lint", "selene --quiet ."),
            ("format", "stylua --check ."),
        ],
    },
    Case {
        profile: "python-uv",
        files: &[("uv.lock", ""), ("pyproject.toml", PYTHON)],
        said: &[
            ("typecheck", "uv run mypy ."),
            ("lint", "uv run ruff check ."),
            ("format", "uv run ruff format --check ."),
            ("test", "uv run pytest -q"),
        ],
    },
    Case {
        profile: "python",
        files: &[("setup.py", ""), ("pyproject.toml", PYTHON)],
        said: &[
            ("typecheck", "mypy --pretty ."),
            ("lint", "ruff check ."),
            ("format", "ruff format --check ."),
            ("test", "pytest -q"),
        ],
    },
    Case {
        profile: "go",
        files: &[("go.mod", ""), (".golangci.yml", "")],
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
        files: &[("mix.exs", "{:credo} {:dialyxir}"), (".formatter.exs", "")],
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
        files: &[("rebar.lock", ""), ("rebar.config", "{dialyzer, []}.")],
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
        profile: "bun",
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
        files: &[("App.fsproj", "<Project>"), ("Directory.Build.props", "")],
        said: &[
            ("format", "dotnet format --verify-no-changes --no-restore"),
            ("compile", "dotnet build --no-restore --nologo -v quiet"),
            ("test", "dotnet test --nologo -v quiet"),
            ("build", "dotnet build --nologo -v quiet"),
        ],
    },
    Case {
        profile: "autotools",
        files: &[("configure.ac", ""), ("configure", "")],
        said: &[("test", "make check"), ("build", "make")],
    },
    Case {
        profile: "php",
        files: &[
            ("phpunit.xml.dist", ""),
            ("phpstan.neon", ""),
            ("phpcs.xml", ""),
            (".php-cs-fixer.dist.php", ""),
        ],
        said: &[
            ("typecheck", "phpstan analyse --no-progress"),
            ("lint", "phpcs"),
            ("format", "php-cs-fixer fix --dry-run --diff"),
            ("test", "phpunit"),
        ],
    },
    Case {
        profile: "perl",
        files: &[("cpanfile", ""), ("t/a.t", ""), (".perlcriticrc", "")],
        said: &[("lint", "perlcritic --quiet ."), ("test", "prove -lr t")],
    },
    Case {
        profile: "haskell",
        files: &[("a.cabal", ""), (".hlint.yaml", "")],
        said: &[
            ("lint", "hlint ."),
            ("test", "cabal test all"),
            ("build", "cabal build all"),
        ],
    },
    Case {
        profile: "ocaml",
        files: &[("dune-project", ""), (".ocamlformat", "")],
        said: &[
            ("format", "dune build @fmt"),
            ("test", "dune test"),
            ("build", "dune build"),
        ],
    },
    Case {
        profile: "dart",
        files: &[("pubspec.yaml", ""), ("test/a_test.dart", "")],
        said: &[
            ("lint", "dart analyze"),
            (
                "format",
                "dart format --output=none --set-exit-if-changed .",
            ),
            ("test", "dart test"),
        ],
    },
    Case {
        profile: "sbt",
        files: &[("build.sbt", "")],
        said: &[
            ("compile", "sbt -batch Test/compile"),
            ("test", "sbt -batch test"),
        ],
    },
    Case {
        profile: "shell",
        files: &[("a.bats", "")],
        said: &[("test", "bats --recursive .")],
    },
];
