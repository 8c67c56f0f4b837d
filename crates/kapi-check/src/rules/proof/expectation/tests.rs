//! What becomes of tests in the forms of the usual frameworks, and which are left alone.

mod languages;

use std::path::Path;

use super::{Alteration, TestLine, altered, comparing_lines, failing_file, failing_lines};

/// Checks what the first line becomes; nothing where it is not understood.
#[track_caller]
fn check(path: &str, text: &str, other: Option<&str>, failing: Option<&str>) {
    let found = altered(path, text, &[1], Alteration::AnotherValue);
    assert_eq!(found.as_deref(), other, "{text}");
    let found = altered(path, text, &[1], Alteration::Failure);
    assert_eq!(found.as_deref(), failing, "{text}");
}

#[test]
fn a_comparison_of_python_expects_something_else() {
    check(
        "test_a.py",
        "    assert f(1, \"==\") == [2,\n        3], \"why\"\n",
        Some("    assert f(1, \"==\") == ([2,\n        3], \"kapi\"), \"why\"\n"),
        Some(
            "    raise AssertionError(\"kapi\")\n    assert f(1, \"==\") == [2,\n        3], \"why\"\n",
        ),
    );
    check(
        "test_a.py",
        "\tself.assertEqual(f('),'), 2)  # so\n",
        Some("\tself.assertEqual(f('),'), (2, \"kapi\"))  # so\n"),
        Some("\traise AssertionError(\"kapi\")\n\tself.assertEqual(f('),'), 2)  # so\n"),
    );
    check(
        "test_a.py",
        "assert f(x) == y  # so\n",
        Some("assert f(x) == (y, \"kapi\")  # so\n"),
        Some("raise AssertionError(\"kapi\")\nassert f(x) == y  # so\n"),
    );
    for left_alone in [
        "assert not f(x) == y\n",
        "assert f(x) == y or z\n",
        "assert f(x) != y\n",
        "assert all(a == b for a, b in pairs)\n",
        "self.assertEqual(*pair)\n",
        "self.assertEqual(first=a, second=b)\n",
        "self.assertNotEqual(a, b)\n",
        "x = a == b\n",
    ] {
        check("test_a.py", left_alone, None, None);
    }
}

#[test]
fn a_comparison_of_javascript_expects_something_else() {
    let thrown = "void (() => { throw new Error(\"kapi\"); })";
    for (text, other, callee) in [
        (
            "assert.deepEqual(f([1, 2]), [[1], [2]], 'why');",
            "assert.deepEqual(f([1, 2]), [[[1], [2]], \"kapi\"], 'why');",
            "assert.deepEqual",
        ),
        (
            "  t.is(f(`a,${b}`), 'x');",
            "  t.is(f(`a,${b}`), ['x', \"kapi\"]);",
            "t.is",
        ),
        (
            "  expect(f(/[)]/)).toBe(1);",
            "  expect(f(/[)]/)).toBe([1, \"kapi\"]);",
            "expect",
        ),
        (
            "expect(a)\n    .to.deep.equal(b);",
            "expect(a)\n    .to.deep.equal([b, \"kapi\"]);",
            "expect",
        ),
        (
            "await expect(f()).resolves.toEqual(1)",
            "await expect(f()).resolves.toEqual([1, \"kapi\"])",
            "expect",
        ),
        (
            "test('a', () => assert.equal(f({}), 1));",
            "test('a', () => assert.equal(f({}), [1, \"kapi\"]));",
            "assert.equal",
        ),
    ] {
        let failing = text.replacen(callee, thrown, 1);
        check("a.test.js", text, Some(other), Some(&failing));
    }
    for left_alone in [
        "expect(a).not.toBe(b);",
        "expect(a).to.not.equal(b);",
        "assert.notEqual(a, b);",
        "assert.ok(a.equals(b));",
        "assert.equal(...pair);",
        "expect(a).toContain(b);",
        "const same = isEqual(a, b);",
    ] {
        check("a.test.js", left_alone, None, None);
    }
}

#[test]
fn a_comparison_that_is_compiled_gets_another_literal() {
    let failing = "    if std::hint::black_box(true) { panic!(\"kapi\") } ";
    for (text, other) in [
        (
            "assert_eq!(f('\"', &['a']), [\"a\", \"b\"]);",
            "assert_eq!(f('\"', &['a']), [\"a\", \"bkapi\"]);",
        ),
        (
            "assert_eq!(39_u8, f(x), \"why {x}\");",
            "assert_eq!(38_u8, f(x), \"why {x}\");",
        ),
        (
            "assert_eq!(f::<'a>(x), Some(true));",
            "assert_eq!(f::<'a>(x), Some(false));",
        ),
    ] {
        let (text, other) = (format!("    {text}"), format!("    {other}"));
        let failing = format!("{failing}{}", text.trim_start());
        check("tests/a.rs", &text, Some(&other), Some(&failing));
    }
    check(
        "tests/a.rs",
        "assert_eq!(f(1), g(2));",
        Some("assert_ne!(f(1), g(2));"),
        Some("if std::hint::black_box(true) { panic!(\"kapi\") } assert_eq!(f(1), g(2));"),
    );
    check(
        "ATest.java",
        "assertEquals(\"a\", f(1));",
        Some("assertEquals(\"akapi\", f(1));"),
        Some(
            "if (System.nanoTime() != 0) throw new AssertionError(\"kapi\"); assertEquals(\"a\", f(1));",
        ),
    );
    check("ATest.java", "assertEquals(\"why\", 1, f(1));", None, None);
}

#[test]
fn what_go_reports_stands_below_its_comparison() {
    let text = "if got := f(1); got != 12 {\n\tt.Errorf(\"got %d\", got)\n}\n";
    let other = altered("a_test.go", text, &[2], Alteration::AnotherValue);
    assert_eq!(other.unwrap(), text.replace("12 {", "13 {"));
    let failing = altered("a_test.go", text, &[2], Alteration::Failure).unwrap();
    assert_eq!(failing, format!("if true {{ panic(\"kapi\") }}; {text}"));
    check(
        "a_test.go",
        "require.Equal(t, \"a\", f())",
        Some("require.Equal(t, \"akapi\", f())"),
        Some("if true { panic(\"kapi\") }; require.Equal(t, \"a\", f())"),
    );
}

#[test]
fn ruby_has_parentheses_or_none() {
    for (text, other) in [
        (
            "assert_equal \"a\", f(1)\n",
            "assert_equal [\"a\", \"kapi\"], f(1)\n",
        ),
        (
            "assert_equal(1, f(1))\n",
            "assert_equal([1, \"kapi\"], f(1))\n",
        ),
        (
            "expect(f(1)).to eq(2)\n",
            "expect(f(1)).to eq([2, \"kapi\"])\n",
        ),
        (
            "expect(f(1)).to eq 2\n",
            "expect(f(1)).to eq [2, \"kapi\"]\n",
        ),
    ] {
        check(
            "test/a_test.rb",
            text,
            Some(other),
            Some(&format!("raise \"kapi\"; {text}")),
        );
    }
    check("spec/a_spec.rb", "expect(f(1)).not_to eq(2)\n", None, None);
}

#[test]
fn every_line_that_compares_is_found() {
    let text = "def test_a():\n    x = f(1)\n    assert x == 1\n    assert x\n    assert x == 2\n";
    assert_eq!(comparing_lines("test_a.py", text), [3, 5]);
    let both = altered("test_a.py", text, &[3, 5], Alteration::AnotherValue).unwrap();
    assert_eq!(both.matches("\"kapi\")").count(), 2);
    assert_eq!(comparing_lines("expected.txt", text), [0; 0]);
}

#[test]
fn what_is_expected_is_compared_with_another_value() {
    for (path, text, other) in [
        (
            "test_a.rb",
            "assert_equal 14, f(1)\n",
            "assert_equal 14, [14, \"kapi\"]\n",
        ),
        (
            "test_a.py",
            "assert f(1) == 14\n",
            "assert (14, \"kapi\") == 14\n",
        ),
        (
            "a.test.js",
            "expect(f(1)).toBe(14);\n",
            "expect([14, \"kapi\"]).toBe(14);\n",
        ),
        (
            "tests/a.rs",
            "assert_eq!(f(1), 14);\n",
            "assert_eq!(15, 14);\n",
        ),
    ] {
        let found = altered(path, text, &[1], Alteration::AnotherActual);
        assert_eq!(found.as_deref(), Some(other), "{text}");
    }
    assert_eq!(
        altered(
            "test_a.py",
            "assert f(1)\n",
            &[1],
            Alteration::AnotherActual
        ),
        None
    );
}

#[test]
fn a_file_fails_where_it_is_loaded() {
    let failing = |path: &str, text: &str| failing_file(path, text).unwrap();
    assert_eq!(
        failing(
            "test_a.py",
            "x = 1\n\nif __name__ == \"__main__\":\n    main()\n"
        ),
        "x = 1\n\nraise AssertionError(\"kapi\")\nif __name__ == \"__main__\":\n    main()\n"
    );
    assert_eq!(
        failing("a.test.ts", "test()\n"),
        "test()\nthrow new Error(\"kapi\");\n"
    );
    assert_eq!(
        failing("tests/a.rs", "#[test]\nfn a() {\n}\nfn b() {\n}\n"),
        "#[test]\nfn a() { if std::hint::black_box(true) { panic!(\"kapi\") }\n}\nfn b() {\n}\n"
    );
    assert_eq!(
        failing("t/a.t", "#!/usr/bin/perl -w\nuse Test::More;\n"),
        "#!/usr/bin/perl -w\ndie \"kapi\";\nuse Test::More;\n"
    );
    assert_eq!(
        failing("spec/a_spec.lua", "f()\nreturn 1\n"),
        "error(\"kapi\")\nf()\nreturn 1\n"
    );
    assert_eq!(failing_file("t/a.t", "#!/bin/sh\n"), None);
    assert_eq!(failing_file("tests/common.rs", "fn b() {\n}\n"), None);
    assert_eq!(failing_file("tests/data.json", "{}"), None);
}

#[test]
fn failing_lines_are_read_from_the_usual_forms() {
    let tests = [
        "tests/test_a.py",
        "pkg/a/a.test.js",
        "tests/wrap.rs",
        "a_test.go",
        "tests/deep/test_a.py",
    ];
    let tests: Vec<&Path> = tests.iter().map(Path::new).collect();
    let check = |output: &str, expected: &[(&str, usize)]| {
        let expected: Vec<TestLine> = expected
            .iter()
            .map(|(path, line)| TestLine {
                path: (*path).to_owned(),
                line: *line,
            })
            .collect();
        assert_eq!(failing_lines(output, &tests), expected, "{output}");
    };
    check(
        "tests/test_a.py:12: AssertionError",
        &[("tests/test_a.py", 12)],
    );
    check(
        "  File \"/w/tests/test_a.py\", line 3, in test_x",
        &[("tests/test_a.py", 3)],
    );
    check(
        "    at Object.<anonymous> (a/a.test.js:4:9)",
        &[("pkg/a/a.test.js", 4)],
    );
    check(
        "    at x (file:///w/pkg/a/a.test.js:4:9)",
        &[("pkg/a/a.test.js", 4)],
    );
    check(
        "\u{1b}[31mthread 'a' panicked at tests/wrap.rs:8:5:\u{1b}[0m",
        &[("tests/wrap.rs", 8)],
    );
    check("    a_test.go:13: got 3", &[("a_test.go", 13)]);
    check(
        "tests/deep/test_a.py:7: x\ntests/deep/test_a.py:7: x",
        &[("tests/deep/test_a.py", 7)],
    );
    check(
        "other/test_a.py:7: x, xtests/test_a.py:8 and tests/test_a.py",
        &[],
    );
}
