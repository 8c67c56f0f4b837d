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
    let line = "existing tests extended, moved or reformatted: tests/test_calc.py; with the base's tests the \
         checks also pass";
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
fn a_fix_beside_tests_with_other_imports_and_another_form_is_proved() {
    let form = TESTS
        .replace("import unittest\n", "")
        .replace("from calc", "import unittest\n\nfrom calc")
        .replace(
            "(add(1, 1), 2)",
            "(\n            add(1, 1),\n            2,\n        )",
        );
    let more = format!("{form}        self.assertEqual(add(2, 2), 4)\n");
    let output = prove(
        &broken(),
        &[("calc.py", RIGHT), ("tests/test_calc.py", &more)],
    );
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stdout.starts_with("proved"), "{output:?}");
    // What the tests are made of decides, not what they call it.
    let lenient = TESTS.replace("import unittest", "from tests import lenient as unittest");
    let module = "from unittest import *\n\n\nclass TestCase(TestCase):\n    \
                  def assertEqual(self, *_):\n        pass\n";
    let files = [
        ("tests/lenient.py", module),
        ("tests/test_calc.py", &lenient),
    ];
    let output = prove(&broken(), &files);
    assert_eq!(output.code, 5, "{output:?}");
    assert!(output.stdout.starts_with("refused"), "{output:?}");
}

#[test]
fn a_fix_that_takes_tests_out_of_use_by_adding_lines_is_refused() {
    let quoted = format!("\"\"\"\n{TESTS}\"\"\"\n");
    let early = TESTS.replace(
        "        self",
        "        if add:\n            return\n        self",
    );
    for tests in [&quoted, &early] {
        let output = prove(
            &broken(),
            &[("calc.py", RIGHT), ("tests/test_calc.py", tests)],
        );
        assert_eq!(output.code, 5, "{tests}: {output:?}");
        assert!(output.stdout.starts_with("refused"), "{tests}: {output:?}");
    }
}

/// Returns a repository whose tests pass, and that lacks a function.
fn whole() -> Environment {
    let env = Environment::new();
    env.write("calc.py", RIGHT);
    env.write("tests/__init__.py", "");
    env.write("tests/test_calc.py", TESTS);
    env.commit_all("a sum");
    env
}

const DOUBLE: &str = "def add(a, b):\n    return a + b\n\n\ndef double(a):\n    return add(a, a)\n";
const TESTS_OF_DOUBLE: &str = "import unittest\n\n\nclass Doubles(unittest.TestCase):\n    \
    def test_two(self):\n        \
    from calc import double\n        \
    self.assertEqual(double(2), 4)\n";

#[test]
fn a_test_that_fails_without_the_change_speaks_for_it() {
    let env = whole();
    let files = [
        ("calc.py", DOUBLE),
        ("tests/test_double.py", TESTS_OF_DOUBLE),
    ];
    let output = prove(&env, &files);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(
        output
            .stdout
            .starts_with("proved: green on the base; the new tests fail without the change"),
        "{output:?}"
    );
    assert!(
        output
            .stdout
            .contains("- tests added: tests/test_double.py\n"),
        "{output:?}"
    );
    assert!(
        output
            .stdout
            .contains("- the change's own tests fail without it\n"),
        "{output:?}"
    );
}

#[test]
fn a_test_that_passes_without_the_change_does_not_speak_for_it() {
    let env = whole();
    let idle = TESTS_OF_DOUBLE
        .replace("double(2)", "4")
        .replace("import double", "import add");
    let output = prove(
        &env,
        &[("calc.py", DOUBLE), ("tests/test_double.py", &idle)],
    );
    assert_eq!(output.code, 5, "{output:?}");
    assert!(output.stdout.starts_with("unverified"), "{output:?}");
    assert!(
        output.stdout.contains("own tests do not fail without it"),
        "{output:?}"
    );
}

#[test]
fn an_added_test_that_makes_the_others_pass_is_refused() {
    let env = broken();
    let patch = "import unittest\n\nunittest.TestCase.assertEqual = lambda *_: None\n\n\n\
        class Patches(unittest.TestCase):\n    \
        def test_nothing(self):\n        \
        pass\n";
    let output = prove(&env, &[("tests/test_a.py", patch)]);
    assert_eq!(output.code, 5, "{output:?}");
    let reason = "refused: the checks pass, but without the added tests, the checks fail: \
        tests/test_a.py";
    assert!(output.stdout.starts_with(reason), "{output:?}");
    assert!(
        output.stdout.contains("without them the checks FAIL"),
        "{output:?}"
    );
}

#[test]
fn a_test_that_the_command_asks_for_by_name_may_carry_the_proof() {
    let env = whole();
    env.write("calc.py", DOUBLE);
    env.write("tests/test_double.py", TESTS_OF_DOUBLE);
    env.commit_all("change");
    let check = "python3 -m unittest tests.test_double";
    let output = env.kapi(&["prove", "HEAD", "--base", "HEAD~1", "--verify", check]);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(
        output.stdout.starts_with("proved: red on the base"),
        "{output:?}"
    );
}

/// Sums that are wrong still, and cheats in the code under test that the exit code and the runner's
/// count do not show.
const FAKED: [&str; 3] = [
    "import os, atexit\ndef add(a, b):\n    return a - b\natexit.register(lambda: os._exit(0))\n",
    "import unittest\nunittest.TestCase.assertEqual = lambda *_: None\n\
     def add(a, b):\n    return a - b\n",
    "import sys\ndef add(a, b):\n    return a + b if 'unittest' in sys.modules else a - b\n",
];

#[test]
fn a_pass_is_never_faked() {
    let says = [
        "although the command exited with 0",
        "tests pass whatever they expect: tests/test_",
        "without the flagged code the checks FAIL",
    ];
    for (faked, says) in FAKED.into_iter().zip(says) {
        let env = broken();
        let output = prove(&env, &[("calc.py", faked)]);
        assert_eq!(output.code, 5, "{faked}: {output:?}");
        assert!(output.stdout.contains(says), "{output:?}");
        assert!(output.stdout.contains("calc.py:"), "{output:?}");
    }
}

#[test]
fn how_an_assertion_is_replaced_makes_no_difference() {
    for faked in [
        "c = getattr(__import__('unit' + 'test'), 'Test' + 'Case')\n\
         setattr(c, 'assert' + 'Equal', lambda *_: None)\n\
         def add(a, b):\n    return a - b\n",
        "S = type('S', (int,), {'__eq__': lambda one, other: not None})\n\
         def add(a, b):\n    return S(a)\n",
    ] {
        let env = broken();
        let output = prove(&env, &[("calc.py", faked)]);
        assert_eq!(output.code, 5, "{faked}: {output:?}");
        let says = "tests pass whatever they expect: tests/test_";
        assert!(output.stdout.contains(says), "{output:?}");
    }
}

#[test]
fn code_that_only_keeps_a_run_from_failing_is_reported_where_the_tests_can_fail() {
    let env = broken();
    let says_goodbye = format!("import atexit\natexit.register(print, 'goodbye')\n{RIGHT}");
    let output = prove(&env, &[("calc.py", says_goodbye.as_str())]);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stdout.contains("calc.py:2"), "{output:?}");
}

#[test]
fn a_goal_with_flagged_code_waits_and_a_task_with_it_fails() {
    let env = broken();
    let agent = format!(
        "command:printf \"{}\" > calc.py",
        FAKED[2].replace('\n', "\\n")
    );
    let work = ["mend the sum", "--agent", &agent, "--verify", CHECK];
    let goal = env.kapi(&[&["run"], &work[..], &["--yes", "--turns", "1"]].concat());
    let question = "a proof that relies on flagged code: calc.py:3 (tree ";
    assert!(goal.stdout.contains(question), "{goal:?}");
    let waiting = env.json(&["show", "1"]);
    let what = waiting["reason"].as_str().unwrap();
    let what = what.split('"').nth(1).unwrap();
    let task = env.kapi(&[&["task", "run"], &work[..]].concat());
    assert!(
        task.stdout.contains("looks like faking a pass")
            || task.stderr.contains("looks like faking a pass"),
        "{task:?}"
    );
    assert_eq!(env.kapi(&["goal", "allow", "1", what]).code, 0);
    let resumed = env.kapi(&["resume", "1", "--json"]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
}

#[test]
fn a_revision_that_is_not_there_is_told_before_anything_else() {
    let env = Environment::new();
    for words in [
        &["nowhere"][..],
        &["HEAD..nowhere"],
        &["HEAD", "--base", "nowhere"],
    ] {
        let output = env.kapi(&[&["prove"], words].concat());
        output.assert_error(4, &["nowhere", "hint: "]);
    }
}

#[test]
fn a_proof_by_the_projects_own_tests_says_what_they_do_not_cover() {
    let env = Environment::new();
    env.write("Makefile", "test:\n\ttrue\n");
    env.write("web/package-lock.json", "{}");
    env.write("native/CMakeLists.txt", "");
    env.write("native/demo/CMakeLists.txt", "project(demo)\n");
    env.commit_all("base");
    env.write("a.txt", "a");
    env.commit_all("change");
    let prove = ["prove", "HEAD", "--base", "HEAD~1", "--json"];
    let own = env.kapi(&[&prove[..], &["--markdown", "proof.md"]].concat());
    let document = own.document();
    let said = document["not_covered"].as_array().unwrap();
    let said: Vec<&str> = said.iter().map(|one| one.as_str().unwrap()).collect();
    let web = "No command covers web: package.json has no script \"test\".";
    assert!(said.contains(&web), "{said:?}");
    assert!(
        said[0].starts_with("Not checked: native/demo: "),
        "{said:?}"
    );
    assert!(env.read("proof.md").contains(web), "{own:?}");
    let named = env.kapi(&[&prove[..], &["--verify", "true"]].concat());
    assert_eq!(named.document()["not_covered"], serde_json::json!([]));
}
