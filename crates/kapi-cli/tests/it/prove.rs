//! `kapi prove`: the verdict on a change that anybody made, with Python's own test runner.

use crate::environment::Environment;
use crate::program::Output;

const CHECK: &str = "python3 -m unittest";
const TESTS: &str = "import unittest\n\
    from calc import add\n\n\
    class Adds(unittest.TestCase):\n    \
    def test_two(self):\n        \
    self.assertEqual(add(1, 1), 2)\n";
const RIGHT: &str = "def add(a, b):\n    return a + b\n";

/// Returns a repository whose one test fails, and `main` as where a change leaves it.
fn broken() -> Environment {
    let env = Environment::new();
    env.write("calc.py", "def add(a, b):\n    return a - b\n");
    env.write("tests/__init__.py", "");
    env.write("tests/test_calc.py", TESTS);
    env.commit_all("a sum that is wrong");
    env
}

/// Commits these files on top, and proves that commit against the one before.
fn prove(env: &Environment, files: &[(&str, &str)]) -> Output {
    for (name, content) in files {
        env.write(name, content);
    }
    env.commit_all("change");
    let output = env.kapi(&["prove", "HEAD", "--base", "HEAD~1", "--verify", CHECK]);
    env.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    output
}

#[test]
fn a_fix_that_extends_a_test_file_is_proved() {
    let env = broken();
    let more =
        format!("{TESTS}\n    def test_three(self):\n        self.assertEqual(add(1, 2), 3)\n");
    let output = prove(&env, &[("calc.py", RIGHT), ("tests/test_calc.py", &more)]);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stdout.starts_with("proved"), "{output:?}");
    let line =
        "existing tests extended: tests/test_calc.py; with the base's tests the checks pass too";
    assert!(output.stdout.contains(line), "{output:?}");
}

#[test]
fn lines_added_to_a_test_replace_no_fix() {
    let early = TESTS.replace("        self", "        return\n        self");
    let quoted = format!("\"\"\"\n{TESTS}\"\"\"\n");
    let emptied = TESTS.replace("add(1, 1)", "2");
    for tests in [early.as_str(), &quoted, &emptied] {
        let env = broken();
        let output = prove(&env, &[("tests/test_calc.py", tests)]);
        assert_eq!(output.code, 5, "{tests}: {output:?}");
        assert!(output.stdout.starts_with("refused"), "{tests}: {output:?}");
    }
}

#[test]
fn a_fix_that_takes_tests_out_of_use_by_adding_lines_is_refused() {
    let env = broken();
    let quoted = format!("\"\"\"\n{TESTS}\"\"\"\n");
    let output = prove(&env, &[("calc.py", RIGHT), ("tests/test_calc.py", &quoted)]);
    assert_eq!(output.code, 5, "{output:?}");
    assert!(output.stdout.starts_with("refused"), "{output:?}");
}
