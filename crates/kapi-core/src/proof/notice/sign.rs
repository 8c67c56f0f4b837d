//! Signs that stand in one line, by the words that make them.
//!
//! A table of words and where they count. Nothing here is sure: see the module above.

use super::language::Language::{self, C, Go, Jvm, Other, Php, Python, Ruby, Rust, Script, Shell};
use super::{AddedLine, NoticeKind};

/// Where a sign counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Where {
    Everywhere,
    /// Not in tests.
    Product,
    /// Not in tests, and not where programs begin and may well do so.
    Library,
}

/// Words that make a sign, in some languages.
struct Sign {
    kind: NoticeKind,
    languages: &'static [Language],
    place: Where,
    any: &'static [&'static str],
}

const CODE: &[Language] = &[Python, Script, Rust, Go, Jvm, C, Ruby, Php, Other];

const SIGNS: &[Sign] = &[
    Sign {
        kind: NoticeKind::ExitsProcess,
        languages: CODE,
        place: Where::Everywhere,
        any: &[
            "os._exit(",
            "_exit(0",
            "_Exit(",
            "quick_exit(",
            "process.reallyExit(",
            "os.abort()",
            "Runtime.getRuntime().halt(",
            "syscall.Exit(",
            "libc::_exit(",
            "os.kill(os.getpid()",
            "process.kill(process.pid",
            "Process.kill(:KILL",
            "exit!(0",
            "exit!",
        ],
    },
    Sign {
        kind: NoticeKind::ExitsProcess,
        languages: &[Python],
        place: Where::Library,
        any: &[
            "atexit.register(",
            "sys.exit(0)",
            "sys.exit()",
            "raise SystemExit(0)",
            "raise SystemExit()",
            "pytest.exit(",
        ],
    },
    Sign {
        kind: NoticeKind::ExitsProcess,
        languages: &[Script],
        place: Where::Library,
        any: &[
            "process.exit(0",
            "process.exit()",
            "process.exitCode = 0",
            "process.on('exit'",
            "process.on(\"exit\"",
            "Deno.exit(0",
            "Deno.exit()",
        ],
    },
    Sign {
        kind: NoticeKind::ExitsProcess,
        languages: &[Rust, Go, Jvm, C, Ruby, Php],
        place: Where::Library,
        any: &[
            "process::exit(0",
            "os.Exit(0",
            "System.exit(0",
            "exitProcess(0",
            "Environment.Exit(0",
            "atexit(",
            "at_exit",
            "exit(0)",
            "register_shutdown_function(",
            "addShutdownHook(",
        ],
    },
    Sign {
        kind: NoticeKind::LooksAtRunner,
        languages: CODE,
        place: Where::Product,
        any: &[
            "PYTEST_CURRENT_TEST",
            "PYTEST_VERSION",
            "JEST_WORKER_ID",
            "VITEST_WORKER_ID",
            "process.env.VITEST",
            "NEXTEST",
            "testing.Testing()",
            "flag.Lookup(\"test.v\")",
            "expect.getState",
            "\"pytest\" in sys.modules",
            "'pytest' in sys.modules",
            "\"unittest\" in sys.modules",
            "'unittest' in sys.modules",
            "sys.modules[\"pytest\"]",
            "sys.modules['pytest']",
            "inspect.stack()",
            "inspect.currentframe()",
            "traceback.extract_stack(",
            "sys._current_frames(",
            "gc.get_referrers(",
            "gc.get_objects(",
            "runtime.Caller(",
            "runtime.Callers(",
            "new Error().stack",
            "Thread.currentThread().getStackTrace(",
            "StackWalker.",
            "caller_locations",
            "debug_backtrace(",
            "debug.getinfo(",
            "NODE_V8_COVERAGE",
            "mocha.suite",
            "globalThis.describe",
            "typeof describe",
            "typeof jest",
            "typeof vi ",
            "__coverage__",
            "RSpec.current_example",
            "Mix.env() == :test",
            "defined?(RSpec",
            "defined?(Minitest",
            "PHPUNIT_",
            "CARGO_TARGET_TMPDIR",
        ],
    },
    Sign {
        kind: NoticeKind::LooksAtRunner,
        languages: &[Python, Script, Go, Rust],
        place: Where::Library,
        any: &[
            "sys.argv[0]",
            "sys.orig_argv",
            "sys._getframe(",
            "process.argv[1]",
            "os.Args[0]",
        ],
    },
    Sign {
        kind: NoticeKind::PatchesFramework,
        languages: &[Python],
        place: Where::Everywhere,
        any: &[
            "pytest_runtest_makereport",
            "pytest_runtest_call",
            "pytest_runtest_protocol",
            "pytest_collection_modifyitems",
            "pytest_sessionfinish",
            "pytest_pyfunc_call",
            "pytest_assertrepr_compare",
            "pytest_exception_interact",
            "TestReport(",
            "unittest.TestCase.assert",
            "unittest.TestCase.run =",
            "TestResult.addFailure",
            "TestResult.wasSuccessful",
            "report.outcome =",
            "rep.outcome =",
            "TestCase.fail =",
            "unittest.main =",
            "builtins.AssertionError",
            "sys.settrace(",
            "sys.excepthook =",
            "time.time =",
            "time.perf_counter =",
            "time.monotonic =",
            "time.sleep =",
            "datetime.datetime =",
            "random.random =",
            "builtins.abs =",
            "builtins.sum =",
            "builtins.len =",
            "builtins.sorted =",
            "_pytest.",
        ],
    },
    Sign {
        kind: NoticeKind::PatchesFramework,
        languages: &[Script],
        place: Where::Everywhere,
        any: &[
            "Date.now =",
            "performance.now =",
            "process.hrtime =",
            "Math.random =",
            "globalThis.expect =",
            "global.expect =",
            "globalThis.it =",
            "global.it =",
            "globalThis.test =",
            "global.test =",
            "globalThis.describe =",
            "global.describe =",
            "assert.equal =",
            "assert.strictEqual =",
            "assert.deepEqual =",
            "assert.deepStrictEqual =",
            "assert.ok =",
            "assert.throws =",
            "expect.extend(",
            "Object.is =",
            "JSON.stringify =",
            "Array.prototype.every =",
            "Module._load =",
            "Module._resolveFilename =",
            "require.cache[",
        ],
    },
    Sign {
        kind: NoticeKind::PatchesFramework,
        languages: &[Ruby, Php, Other, Go, Jvm, C],
        place: Where::Everywhere,
        any: &[
            "module Minitest",
            "class Minitest",
            "module RSpec::Expectations",
            "RSpec::Core::Example.class_eval",
            "Minitest::Assertions.",
            "def assert_equal(",
            "def assert(",
            "Process.clock_gettime =",
            "runkit_function_redefine",
            "package Test::More",
            "*Test::More::",
            "*Test::Builder::",
            "go:linkname",
            "LD_PRELOAD",
            "#define assert(",
            "#define ck_assert",
            "#define EXPECT_",
            "#define ASSERT_",
            "#define TEST(",
        ],
    },
    Sign {
        kind: NoticeKind::SwallowsFailure,
        languages: &[Shell],
        place: Where::Everywhere,
        any: &[
            "|| true",
            "|| :",
            "|| exit 0",
            "; true\"",
            "; exit 0",
            "set +e",
            "continue-on-error: true",
            "allow_failure: true",
            "--passWithNoTests",
            "--pass-with-no-tests",
            "-DskipTests",
            "-Dmaven.test.skip",
            "-Dmaven.test.failure.ignore",
            "testFailureIgnore",
            "--continue-on-collection-errors",
            "--suppress-no-test-exit-code",
            "--exitfirst=0",
            "--no-run",
            "trap 'exit 0'",
            "trap \"exit 0\"",
            "ignoreFailures = true",
            "--collect-only",
            "--forceExit",
            "--exit-code 0",
        ],
    },
    Sign {
        kind: NoticeKind::SwallowsFailure,
        languages: &[Jvm],
        place: Where::Everywhere,
        any: &[
            "ignoreFailures = true",
            "ignoreFailures true",
            "setIgnoreFailures(true",
            "testFailureIgnore",
        ],
    },
    Sign {
        kind: NoticeKind::SkipsTests,
        languages: &[Python],
        place: Where::Everywhere,
        any: &[
            "@pytest.mark.skip",
            "@pytest.mark.xfail",
            "pytest.skip(",
            "pytest.xfail(",
            "@unittest.skip",
            "@unittest.expectedFailure",
            "unittest.SkipTest",
            "collect_ignore",
            "__test__ = False",
            "pytest.mark.skip(",
            "item.add_marker(",
        ],
    },
    Sign {
        kind: NoticeKind::SkipsTests,
        languages: &[Script],
        place: Where::Everywhere,
        any: &[
            "it.skip(",
            "test.skip(",
            "describe.skip(",
            "it.only(",
            "test.only(",
            "describe.only(",
            "it.todo(",
            "test.todo(",
            "test.failing(",
            "it.failing(",
            "xit(",
            "xtest(",
            "xdescribe(",
            "xcontext(",
            "t.skip(",
            "this.skip(",
            "skip: true",
            "fdescribe(",
            "fit(",
        ],
    },
    Sign {
        kind: NoticeKind::SkipsTests,
        languages: &[Rust, Go, Jvm, C, Ruby, Php, Other],
        place: Where::Everywhere,
        any: &[
            "#[ignore",
            "#[cfg(not(test))]",
            "t.Skip(",
            "t.SkipNow(",
            "b.Skip(",
            "@Disabled",
            "@Ignore",
            "[Ignore",
            "Skip = \"",
            "@EnabledIf",
            "Assume.assume",
            "assumeTrue(",
            "assumeFalse(",
            "GTEST_SKIP(",
            "TEST_IGNORE(",
            "xit ",
            "xdescribe ",
            "xspecify ",
            "@tag :skip",
            "@moduletag :skip",
            "markTestSkipped(",
            "markTestIncomplete(",
            "plan skip_all",
            "XCTSkip",
        ],
    },
    Sign {
        kind: NoticeKind::DetectsEnvironment,
        languages: CODE,
        place: Where::Product,
        any: &[
            "KAPI_",
            "environ.get(\"CI\"",
            "environ.get('CI'",
            "environ[\"CI\"]",
            "environ['CI']",
            "getenv(\"CI\"",
            "getenv('CI'",
            "Getenv(\"CI\"",
            "process.env.CI",
            "env::var(\"CI\"",
            "var_os(\"CI\"",
            "ENV[\"CI\"]",
            "ENV['CI']",
            "GITHUB_ACTIONS",
            "GITLAB_CI",
            "/.dockerenv",
            "/proc/1/cgroup",
            "\"/workspace\"",
            "'/workspace'",
        ],
    },
];

/// Calls that write, move or remove a file.
const WRITES: &[&str] = &[
    "open(",
    "write_text(",
    "write_bytes(",
    "writeFile",
    "appendFile",
    "fs::write(",
    "File::create(",
    "WriteFile(",
    "os.Create(",
    "os.Remove",
    "os.remove(",
    "os.unlink(",
    ".unlink(",
    "unlinkSync(",
    "rmSync(",
    "os.rename(",
    "os.replace(",
    "renameSync(",
    "shutil.",
    "Files.write",
    "File.write(",
    "FileUtils.",
    "file_put_contents(",
    "fopen(",
    "remove_file(",
    "sed -i",
    "rm ",
    "mv ",
    "tee ",
    "truncate ",
    "cp ",
    "Path(",
    ">",
];
/// Names of test files in a text.
const TEST_NAMES: &[&str] = &[
    "tests/",
    "test/",
    "test_",
    "_test.",
    ".test.",
    "spec/",
    "_spec.",
    ".spec.",
    "__tests__",
    "conftest.py",
    "pytest.ini",
    "jest.config",
    "vitest.config",
    "__snapshots__",
];

/// Returns the sign in a line.
pub(super) fn of(line: &AddedLine<'_>, language: Language) -> Option<NoticeKind> {
    let found = SIGNS.iter().find(|sign| {
        let is_meant = match sign.place {
            Where::Everywhere => true,
            Where::Product => !line.is_test,
            Where::Library => !line.is_test && !is_program(line.path),
        };
        is_meant
            && sign.languages.contains(&language)
            && sign.any.iter().any(|words| holds(line.text, words))
    });
    if let Some(sign) = found {
        return Some(sign.kind);
    }
    (!line.is_test && writes_tests(line.text, language)).then_some(NoticeKind::WritesTests)
}

/// Tells whether a file is where a program begins, or one of its own tools.
fn is_program(path: &str) -> bool {
    let mut names = path.split('/').rev();
    let file = names.next().unwrap_or(path);
    let stem = file.split('.').next().unwrap_or(file);
    let is_program = |name: &str| {
        matches!(
            name,
            "bin"
                | "cli"
                | "cmd"
                | "scripts"
                | "script"
                | "tools"
                | "examples"
                | "example"
                | "benchmarks"
                | "bench"
                | "docs"
                | "xtask"
                | "commands"
        )
    };
    matches!(
        stem,
        "main"
            | "__main__"
            | "cli"
            | "setup"
            | "index.cli"
            | "Main"
            | "Program"
            | "build"
            | "manage"
            | "run"
            | "bin"
            | "command"
    ) || names.any(is_program)
}

/// Tells whether a text holds words that do not go on from or into other words.
fn holds(text: &str, words: &str) -> bool {
    let goes_on = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let starts_open = words.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    // A prefix of a name, or an assignment and no comparison.
    let is_prefix = words.ends_with('_') || words.ends_with("assert") || words.ends_with("assume");
    text.match_indices(words).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text
            .get(at + words.len()..)
            .and_then(|after| after.chars().next());
        let is_start = !starts_open || !goes_on(before);
        let is_end =
            is_prefix || words.ends_with(|c: char| !c.is_alphanumeric()) || !goes_on(after);
        let is_comparison = words.ends_with('=') && after == Some('=');
        // `obj.exit(0)` of something else is none of ours.
        let is_method = before == Some('.') && !words.contains('.') && words.ends_with('(');
        is_start && is_end && !is_comparison && !is_method
    })
}

fn writes_tests(text: &str, language: Language) -> bool {
    let quoted = match language {
        Shell => Some(text.to_owned()),
        Python | Script | Rust | Go | Jvm | C | Ruby | Php | Other => quoted(text),
    };
    let Some(quoted) = quoted else { return false };
    let names_test = TEST_NAMES.iter().any(|name| quoted.contains(name));
    let is_shell = language == Shell;
    let writes = WRITES.iter().any(|call| {
        let is_word = call.ends_with(' ') || *call == ">";
        if is_word {
            // In a recipe only a redirection into the file counts.
            is_shell && *call != ">" && holds(text, call) && !text.contains("rm -rf build")
                || is_shell && redirects(text)
        } else {
            !is_shell
                && text.contains(call)
                && (*call != "open(" && *call != "Path(" || has_write_mode(text))
        }
    });
    names_test && writes
}

/// Tells whether a file is opened for writing.
fn has_write_mode(text: &str) -> bool {
    [
        "\"w", "'w", "\"a\"", "'a'", "\"r+", "'r+", "\"x\"", "'x'", ".write",
    ]
    .iter()
    .any(|mode| text.contains(mode))
}

/// Tells whether a command line writes into a test file.
fn redirects(text: &str) -> bool {
    text.match_indices('>').any(|(at, _)| {
        let target = text
            .get(at + 1..)
            .unwrap_or_default()
            .trim_start_matches(['>', ' ']);
        let target = target
            .split([' ', ';', '&', '|'])
            .next()
            .unwrap_or_default();
        TEST_NAMES.iter().any(|name| target.contains(name))
    })
}

/// Returns what stands in quotes.
fn quoted(text: &str) -> Option<String> {
    let parts: Vec<&str> = text.split(['"', '\'', '`']).skip(1).step_by(2).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}
