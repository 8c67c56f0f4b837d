//! What becomes of tests in C, shells, Perl, Lua and PHP, and which are left alone.

use super::check;
use crate::rules::proof::expectation::comparing_lines;

#[test]
fn a_macro_of_c_gets_another_literal() {
    for (text, other) in [
        (
            "CHECK(f(\"a;)\", 'b') == 10);",
            "CHECK(f(\"a;)\", 'b') == 11);",
        ),
        ("assert(0xfful == v->x);", "assert(0xfeul == v->x);"),
        ("REQUIRE(f(1) == \"a\");", "REQUIRE(f(1) == \"akapi\");"),
        ("TEST_CHECK(f(1) == -1.50f);", "TEST_CHECK(f(1) == -0.50f);"),
        (
            "EXPECT_TRUE(f(1) == true) << \"why\";",
            "EXPECT_TRUE(f(1) == false) << \"why\";",
        ),
        (
            "CHECK(strcmp(f(1), \"a\") == 0);",
            "CHECK(strcmp(f(1), \"akapi\") == 0);",
        ),
        (
            "assert(!strcmp(f(1), \"a\"));",
            "assert(!strcmp(f(1), \"akapi\"));",
        ),
        ("ck_assert(f(1) == 'x');", "ck_assert(f(1) == 'k');"),
        (
            "ck_assert_int_eq(f(1), 2147483647);",
            "ck_assert_int_eq(f(1), 2147483646);",
        ),
        ("EXPECT_EQ(3u, f(1));", "EXPECT_EQ(2u, f(1));"),
        (
            "TEST_ASSERT_EQUAL_STRING(\"a\", f(1));",
            "TEST_ASSERT_EQUAL_STRING(\"akapi\", f(1));",
        ),
        (
            "TEST_ASSERT_EQUAL_MESSAGE(9, f(1), \"why\");",
            "TEST_ASSERT_EQUAL_MESSAGE(8, f(1), \"why\");",
        ),
        (
            "g_assert_cmpint(f(1), ==, 2);",
            "g_assert_cmpint(f(1), ==, 3);",
        ),
        (
            "mu_assert(\"why\", f(1) == 2);",
            "mu_assert(\"why\", f(1) == 3);",
        ),
    ] {
        let failing = format!("    do {{ __builtin_trap(); {text} }} while (0);\n");
        let (text, other) = (format!("    {text}\n"), format!("    {other}\n"));
        check("tests/a.cpp", &text, Some(&other), Some(&failing));
    }
}

#[test]
fn a_statement_of_c_that_may_mean_something_else_is_left_alone() {
    for left_alone in [
        "CHECK_FALSE(f(1) == 2);",
        "static_assert(sizeof(x) == 4, \"why\");",
        "CHECK_NOTHROW(f(1) == 2);",
        "CHECK(f(1) == 2 && g());",
        "CHECK(f(1) != 2);",
        "CHECK(a == b);",
        "CHECK(f(1) == 017);",
        "CHECK(f(1) == 1e-9);",
        "CHECK(f(1) == 1'000);",
        "CHECK(f(R\"(a\"b)\") == 2);",
        "CHECK(memcmp(a, \"b\", 1) == 0);",
        "CHECK(is_equal(a, \"b\") == 1);",
        "CHECK(mask & x == 2);",
        "CHECK(text, 2);",
        "CHECK(f(1) == 2)",
        "TEST_ASSERT_EQUAL_MEMORY(\"a\", f(1), 1);",
        "g_assert_cmpint(f(1), <, 2);",
        "if (f(1) == 2) {",
        "int x = f(1) == 2;",
    ] {
        check("tests/a.c", left_alone, None, None);
    }
    check("src/a.zig", "assert(f(1) == 2);", None, None);
    // A build may leave it out, so it has to be known to have failed.
    let text = "assert(f(1) == 2);\nCHECK(f(1) == 2);\n";
    assert_eq!(comparing_lines("tests/a.c", text), [2]);
}

#[test]
fn a_command_of_a_shell_expects_another_word() {
    for (text, other, failing) in [
        (
            "[ \"$(f \"a b\" ')')\" = hello ] || fail \"why\"",
            "[ \"$(f \"a b\" ')')\" = hello\"kapi\" ] || fail \"why\"",
            "false || fail \"why\"",
        ),
        (
            "  test hello = $x || { echo no; exit 1; }",
            "  test hello = $x\"kapi\" || { echo no; exit 1; }",
            "  false || { echo no; exit 1; }",
        ),
        (
            "[[ $x == *\"a\" ]] || exit 1  # so",
            "[[ $x == *\"a\"\"kapi\" ]] || exit 1  # so",
            "false || exit 1  # so",
        ),
        (
            "[ \"$?\" -eq 10 ] || return 1",
            "[ \"$?\" -eq 11 ] || return 1",
            "false || return 1",
        ),
        (
            "assert_equal \"$output\" 'a b'",
            "assert_equal \"$output\" 'a b'\"kapi\"",
            "exit 1; assert_equal \"$output\" 'a b'",
        ),
        (
            "assertEquals \"why\" 3 \"$(f 1)\"",
            "assertEquals \"why\" 3 \"$(f 1)\"\"kapi\"",
            "exit 1; assertEquals \"why\" 3 \"$(f 1)\"",
        ),
    ] {
        let lines = |text: &str| format!("{text}\n");
        let (other, failing) = (lines(other), lines(failing));
        check("tests/a.sh", &lines(text), Some(&other), Some(&failing));
    }
    let text = "[ \"$output\" = a ]\n@test \"b\" {\n";
    let other = text.replace(" a ]", " a\"kapi\" ]");
    let failing = text.replace("[ \"$output\" = a ]", "false");
    check("tests/a.bats", text, Some(&other), Some(&failing));
}

#[test]
fn a_command_of_a_shell_that_decides_something_is_left_alone() {
    for left_alone in [
        "[ \"$x\" = a ]",
        "[ \"$x\" = a ] && verbose=1",
        "[ \"$x\" = a ] || verbose=1",
        "[ \"$x\" = a ] || true",
        "[ \"$x\" = a ] || exit 0",
        "[ \"$x\" = a ] || { echo skipped; exit 0; }",
        "[ ! \"$x\" = a ] || exit 1",
        "[ \"$x\" != a ] || exit 1",
        "[ \"$x\" -eq 010 ] || exit 1",
        "[ \"$x\" -eq $y ] || exit 1",
        "[ \"$x\" = a -o \"$x\" = b ] || exit 1",
        "[[ $x == a || $x == b ]] || exit 1",
        "[[ $x == (a|b) ]] || exit 1",
        "[ \"$x\" = \"a",
        "if [ \"$x\" = a ]; then",
        "assert_equal a b c",
        "assert_equal a b || true",
    ] {
        check("tests/a.sh", left_alone, None, None);
    }
    check("Makefile", "[ \"$x\" = a ] || exit 1", None, None);
    check("a.yml", "test x = y || exit 1", None, None);
}

#[test]
fn perl_has_parentheses_or_none() {
    let check_line = |line: &str, other: Option<&str>, failing: Option<&str>| {
        let whole = |line: &str| format!("{line}\nuse Test::More;\n");
        let (other, failing) = (other.map(whole), failing.map(whole));
        check("t/a.t", &whole(line), other.as_deref(), failing.as_deref());
    };
    for (text, other, failing) in [
        (
            "is(f(1, 2), 3, 'a # b');",
            "is(f(1, 2), [3, \"kapi\"], 'a # b');",
            "die(f(1, 2), 3, 'a # b');",
        ),
        (
            "is f(1), 3, 'a' or diag 'b';",
            "is f(1), [3, \"kapi\"], 'a' or diag 'b';",
            "die f(1), 3, 'a' or diag 'b';",
        ),
        (
            "is_deeply([f(1)], [1, 2]);",
            "is_deeply([f(1)], [[1, 2], \"kapi\"]);",
            "die([f(1)], [1, 2]);",
        ),
        (
            "ok($x->{a} == 3, 'a');",
            "ok($x->{a} == [3, \"kapi\"], 'a');",
            "die($x->{a} == 3, 'a');",
        ),
        (
            "ok(f(1) eq 'b');",
            "ok(f(1) eq ['b', \"kapi\"]);",
            "die(f(1) eq 'b');",
        ),
    ] {
        check_line(text, Some(other), Some(failing));
    }
    for left_alone in [
        "isnt(f(1), 3);",
        "is(@pair);",
        "is f(1), 3 if $x;",
        "is(f(qr/,/), 3);",
        "ok(f(1) == 3 && g());",
        "ok(f(1));",
        "like(f(1), qr/a/);",
    ] {
        check_line(left_alone, None, None);
    }
    check("t/a.t", "is(f(1), 3);\n", None, None);
}

#[test]
fn lua_and_php_expect_something_else() {
    for (text, other, failing) in [
        (
            "assert.are.equal(3, f(1))",
            "assert.are.equal({3, \"kapi\"}, f(1))",
            "error(3, f(1))",
        ),
        (
            "assert.same({1}, f('),'))",
            "assert.same({{1}, \"kapi\"}, f('),'))",
            "error({1}, f('),'))",
        ),
        (
            "lu.assertEquals(#f(1), 2)",
            "lu.assertEquals({#f(1), \"kapi\"}, 2)",
            "error(#f(1), 2)",
        ),
        (
            "assert(f(1) == 2, \"why\")",
            "assert(f(1) == {2, \"kapi\"}, \"why\")",
            "error(f(1) == 2, \"why\")",
        ),
    ] {
        check("spec/a_spec.lua", text, Some(other), Some(failing));
    }
    for left_alone in [
        "assert.are_not.equal(3, f(1))",
        "assert.is_not.same(3, f(1))",
        "assert(f(1) == 2 or g())",
        "assert(f(1))",
        "assert.equal([[a,]], f(1))",
        "rawset.equal(1, 2)",
    ] {
        check("spec/a_spec.lua", left_alone, None, None);
    }
    check(
        "tests/ATest.php",
        "    expect(f(1))->toBe(2);",
        Some("    expect(f(1))->toBe([2, \"kapi\"]);"),
        Some("    throw new \\Exception('kapi'); expect(f(1))->toBe(2);"),
    );
    check("tests/ATest.php", "expect(f(1))->not->toBe(2);", None, None);
}
