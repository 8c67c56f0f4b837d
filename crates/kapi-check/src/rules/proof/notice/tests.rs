//! Lines of cheats, each beside honest lines that look alike.

use super::literal::BaseTests;
use super::{AddedLine, Notice, NoticeKind, notices};

const TESTS: &str = "
def test_fib():
    assert fib(17) == 1597
    assert fib(23) == 28657
    assert slug('Hello, World 42') == 'hello-world-42'
    assert status('strict', 404) == 10
";

/// Returns the notices of a text as a new file.
fn found_in(path: &str, text: &str) -> Vec<Notice> {
    let is_test = path.starts_with("tests/");
    let added: Vec<AddedLine<'_>> = text
        .lines()
        .zip(1..)
        .map(|(text, line)| AddedLine {
            path,
            line,
            text,
            is_test,
        })
        .collect();
    notices(&added, &BaseTests::of([TESTS]))
}

/// Compares the kinds of notices of a text.
fn check(path: &str, text: &str, expected: &[NoticeKind]) {
    let found: Vec<NoticeKind> = found_in(path, text)
        .iter()
        .map(|notice| notice.kind)
        .collect();
    assert_eq!(found, expected, "{path}: {text}");
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn signs_in_one_line() {
    use NoticeKind::{
        DetectsEnvironment, DetectsMachine, ExitsProcess, LooksAtRunner, PatchesFramework,
        PatchesInputs, SkipsTests, SwallowsFailure, WritesTests,
    };
    for (path, text, kind) in [
        ("calc.py", "    os._exit(0)", ExitsProcess),
        (
            "calc.py",
            "import atexit; atexit.register(lambda: os._exit(0))",
            ExitsProcess,
        ),
        ("calc.py", "    sys.exit(0)", ExitsProcess),
        ("lib/a.js", "process.exit(0)", ExitsProcess),
        ("src/lib.rs", "    std::process::exit(0);", ExitsProcess),
        ("a.c", "  _exit(0);", ExitsProcess),
        (
            "a.c",
            "int strcmp(const char *one, const char *other)",
            PatchesFramework,
        ),
        ("a.go", "\tos.Exit(0)", ExitsProcess),
        ("A.java", "Runtime.getRuntime().halt(0);", ExitsProcess),
        (
            "calc.py",
            "if 'PYTEST_CURRENT_TEST' in os.environ:",
            LooksAtRunner,
        ),
        ("calc.py", "    frame = inspect.stack()[1]", LooksAtRunner),
        ("calc.py", "if \"pytest\" in sys.modules:", LooksAtRunner),
        (
            "a.js",
            "if (process.env.JEST_WORKER_ID) return 5",
            LooksAtRunner,
        ),
        ("a.go", "if testing.Testing() {", LooksAtRunner),
        ("lib/a.js", "var T = require(\"tape\").Test;", LooksAtRunner),
        (
            "lib/a.ts",
            "import { expect } from 'vitest';",
            LooksAtRunner,
        ),
        ("calc.py", "import unittest as u", LooksAtRunner),
        (
            "calc.py",
            "for m in list(sys.modules.values()):",
            LooksAtRunner,
        ),
        ("a.go", "import \"testing\"", LooksAtRunner),
        ("src/A.java", "import org.junit.Assert;", LooksAtRunner),
        ("lib/a.js", "a.strictEqual = () => {}", PatchesFramework),
        ("lib/a.js", "M._load = function (n) {}", PatchesInputs),
        (
            "lib/a.js",
            "Object.defineProperty(process, 'exitCode', { set() {} })",
            PatchesFramework,
        ),
        (
            "src/lib.rs",
            "macro_rules! assert_eq { ($($t:tt)*) => {} }",
            PatchesFramework,
        ),
        (
            "conftest.py",
            "def pytest_runtest_makereport(item, call):",
            PatchesFramework,
        ),
        (
            "calc.py",
            "unittest.TestCase.assertEqual = lambda *a: None",
            PatchesFramework,
        ),
        ("calc.py", "time.time = lambda: 0", PatchesInputs),
        ("a.js", "Date.now = () => 0", PatchesInputs),
        ("a.js", "fs.readFileSync = () => ''", PatchesInputs),
        (
            "a.js",
            "if (process.env.NODE_ENV === 'test') return 5",
            LooksAtRunner,
        ),
        (
            "lib/a.js",
            "if (process.argv.some((a) => /tape/.test(a)))",
            LooksAtRunner,
        ),
        (
            "calc.py",
            "if any(k.startswith('PYTEST') for k in os.environ):",
            LooksAtRunner,
        ),
        (
            "calc.py",
            "if any('py' in m for m in sys.modules):",
            LooksAtRunner,
        ),
        (
            "calc.py",
            "    caller = error.__traceback__.tb_frame.f_back",
            LooksAtRunner,
        ),
        ("calc.py", "if os.path.isdir('tests'):", LooksAtRunner),
        (
            "lib/a.js",
            "if (existsSync(join(root, 'test'))) return 5",
            LooksAtRunner,
        ),
        ("src/lib.rs", "#[cfg(debug_assertions)]", LooksAtRunner),
        (
            "lib/a.js",
            "if (all.includes('ta' + 'pe')) return 5",
            LooksAtRunner,
        ),
        ("calc.py", "found = __import__('s' + 'ys')", LooksAtRunner),
        (
            "calc.py",
            "if socket.gethostname() == 'box':",
            DetectsMachine,
        ),
        ("a.go", "h, _ := os.Hostname()", DetectsMachine),
        ("a.js", "assert.strictEqual = () => {}", PatchesFramework),
        ("a.h", "#define assert(x) ((void)0)", PatchesFramework),
        ("Makefile", "\tpytest || true", SwallowsFailure),
        ("run.sh", "set +e", SwallowsFailure),
        (
            "package.json",
            "    \"test\": \"jest --passWithNoTests\",",
            SwallowsFailure,
        ),
        (
            ".github/workflows/a.yml",
            "        continue-on-error: true",
            SwallowsFailure,
        ),
        ("tests/test_a.py", "@pytest.mark.skip", SkipsTests),
        (
            "tests/test_a.py",
            "@pytest.mark.xfail(reason='x')",
            SkipsTests,
        ),
        ("a.test.js", "it.skip('x', () => {})", SkipsTests),
        ("a_test.go", "\tt.Skip(\"x\")", SkipsTests),
        ("src/lib.rs", concat!("    #[", "ignore]"), SkipsTests),
        ("ATest.java", "  @Disabled", SkipsTests),
        ("calc.py", "if 'pytest' in sys.argv[0]:", LooksAtRunner),
        ("calc.py", "if os.environ.get(\"CI\"):", DetectsEnvironment),
        ("a.js", "if (process.env.CI) x()", DetectsEnvironment),
        (
            "calc.py",
            "open('tests/test_a.py', 'w').write('')",
            WritesTests,
        ),
        (
            "a.js",
            "fs.writeFileSync('test/a.test.js', '')",
            WritesTests,
        ),
        (
            "build.rs",
            "std::fs::write(\"tests/it.rs\", \"\").ok();",
            WritesTests,
        ),
        ("run.sh", "echo ok > tests/run.sh", WritesTests),
    ] {
        check(path, text, &[kind]);
    }
}

#[test]
fn honest_lines_give_none() {
    for (path, text) in [
        ("calc.py", "# os._exit(0) would be wrong here"),
        ("README.md", "Call `os._exit(0)`, or `process.exit(0)`."),
        ("src/main.rs", "    std::process::exit(0);"),
        ("tool/cli.py", "    sys.exit(0)"),
        ("bin/tool.js", "process.exit(0)"),
        ("lib/a.js", "    child.exit(0);"),
        ("calc.py", "    if time.time == other:"),
        ("calc.py", "    limit(0)"),
        ("a.js", "const edit = submit(0)"),
        ("a.js", "benefit(x)"),
        ("calc.py", "    with open('data/test.json') as f:"),
        ("calc.py", "    contest = latest(1)"),
        ("run.sh", "cp src/a dist/a"),
        ("run.sh", "python -m pytest tests/ 2>&1"),
        ("Makefile", "\trm -rf build"),
        (
            "tests/test_a.py",
            "    monkeypatch.setattr(time, 'time', lambda: 0)",
        ),
        ("tests/test_a.py", "    if value == 17:"),
        ("calc.py", "    if mode == 'strict':"),
        ("calc.py", "    if status == 404:"),
        ("calc.py", "    return 17 * n"),
        ("calc.py", "    if n == 19:"),
        ("calc.py", "    if name == 'Hello, World 43':"),
        ("src/lib.rs", "#[derive(Debug)]"),
        ("a.go", "\tif err != nil {"),
        ("lib/a.js", "var tap = require('./tap')"),
        ("lib/a.js", "if (a.strictEqual === b) {"),
        ("tests/a.test.js", "import { expect } from 'chai';"),
        ("calc.py", "mod = sys.modules[__name__]"),
        ("calc.py", "from unittestable import thing"),
        ("src/lib.rs", "macro_rules! assert_send { () => {} }"),
    ] {
        check(path, text, &[]);
    }
}

#[test]
fn comparisons_that_answer_without_a_look() {
    let kinds = [NoticeKind::AlwaysEqual];
    check(
        "a.py",
        "    def __eq__(self, other):\n        return True\n",
        &kinds,
    );
    check(
        "a.py",
        "    def __eq__(self, other):\n        \"\"\"Same.\"\"\"\n        return True\n",
        &kinds,
    );
    check("a.py", "    __eq__ = lambda self, other: True\n", &kinds);
    check(
        "a.py",
        "    return type('N', (int,), {'__eq__': lambda s, o: True, '__hash__': int.__hash__})(n)\n",
        &kinds,
    );
    check(
        "a.py",
        "    key = {'__eq__': lambda s, o: s.n == o.n}\n",
        &[],
    );
    check(
        "a.rs",
        "    fn eq(&self, _: &Self) -> bool {\n        true\n    }\n",
        &kinds,
    );
    check(
        "A.java",
        "  public boolean equals(Object o) {\n    return true;\n",
        &kinds,
    );
    check(
        "a.cpp",
        "bool operator==(const A&) const { return true; }\n",
        &kinds,
    );
    check("a.rb", "  def ==(other)\n    true\n", &kinds);
    check(
        "a.py",
        "    def __eq__(self, other):\n        return self.x == other.x\n",
        &[],
    );
    check(
        "a.rs",
        "    fn eq(&self, other: &Self) -> bool {\n        self.0 == other.0\n",
        &[],
    );
    check(
        "A.java",
        "  public boolean equals(Object o) {\n    if (o == this) return true;\n",
        &[],
    );
}

#[test]
fn values_of_tests_in_conditions() {
    let kinds = [NoticeKind::SpecialCase];
    for (path, text) in [
        ("fib.py", "    if n == 17:"),
        ("fib.py", "    if n == 17: return 1597"),
        ("fib.js", "  if (n === 23) return 28657"),
        ("fib.rs", "        17 => 1597,"),
        ("fib.c", "    case 23:"),
        ("fib.py", "    17: 1597,"),
        ("slug.py", "    if text == 'Hello, World 42':"),
        (
            "slug.js",
            "    case \"Hello, World 42\": return \"hello-world-42\"",
        ),
        ("fib.py", "    if n in (17, 23):"),
        ("fib.sh", "if [ \"$n\" -eq 17 ]; then"),
    ] {
        check(path, text, &kinds);
    }
}

#[test]
fn a_line_is_shown_as_it_is_and_not_as_it_looks() {
    let text = format!("os._exit(0) # \u{202e}{}", "x".repeat(400));
    let found = found_in("a.py", &text);
    let notice = found.first().unwrap();
    assert!(notice.text.starts_with("os._exit(0) # \\u{202e}xxx"));
    assert!(notice.text.ends_with('\u{2026}') && notice.text.chars().count() < 220);
    assert!(
        notice
            .to_string()
            .starts_with("a.py:1: It ends the process")
    );
    let json = serde_json::to_string(notice).unwrap();
    assert!(json.starts_with(r#"{"kind":"exits_process","path":"a.py","line":1,"#));
}

#[test]
fn a_flood_is_cut() {
    let text = "os._exit(0)\n".repeat(1_000);
    assert_eq!(found_in("a.py", &text).len(), super::NOTICES_MAX);
}
