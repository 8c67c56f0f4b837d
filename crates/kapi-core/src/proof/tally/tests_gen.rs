//! What real runners printed, the ends of it, and what somebody might print to look like them.

use super::{Tally, TestsLost, junit, lost, tally};

const fn counted(passed: u64, failed: u64, skipped: u64) -> Tally {
    Tally { passed, failed, skipped, only_red: false }
}

/// Compares the tally of a run.
fn check(runner: &str, output: &str, expected: Option<(u64, u64, u64)>) {
    let expected = expected.map(|(passed, failed, skipped)| counted(passed, failed, skipped));
    let found = tally(output).map(|found| Tally { only_red: false, ..found });
    assert_eq!(found, expected, "{runner}: {output}");
}

#[test]
fn what_runners_of_python_print() {
    check(
        "pytest-fail",
        concat!(
            "                      ^^^^^^^^^^^\n",
            "E   AssertionError: None\n",
            "\n",
            "test_u.py:4: AssertionError\n",
            "=========================== short test summary info ============================\n",
            "FAILED test_a.py::test_bad - assert 1 == 2\n",
            "FAILED test_u.py::T::test_b - AssertionError: None\n",
            "============== 2 failed, 4 passed, 2 skipped, 1 xfailed in 0.33s ===============\n",
        ),
        Some((4, 2, 3)),
    );
    check(
        "pytest-ok",
        concat!(
            "============================= test session starts ==============================\n",
            "platform linux -- Python 3.11.7, pytest-9.2.0, pluggy-1.7.0\n",
            "rootdir: py\n",
            "collected 2 items\n",
            "\n",
            "test_b.py ..                                                             [100%]\n",
            "\n",
            "============================== 2 passed in 0.06s ===============================\n",
        ),
        Some((2, 0, 0)),
    );
    check(
        "pytest-q-fail",
        concat!(
            "                      ^^^^^^^^^^^\n",
            "E   AssertionError: None\n",
            "\n",
            "test_u.py:4: AssertionError\n",
            "=========================== short test summary info ============================\n",
            "FAILED test_a.py::test_bad - assert 1 == 2\n",
            "FAILED test_u.py::T::test_b - AssertionError: None\n",
            "2 failed, 4 passed, 2 skipped, 1 xfailed in 0.21s\n",
        ),
        Some((4, 2, 3)),
    );
    check(
        "pytest-q-ok",
        concat!(
            "..                                                                       [100%]\n",
            "2 passed in 0.07s\n",
        ),
        Some((2, 0, 0)),
    );
    check(
        "pytest-none",
        concat!(
            "============================= test session starts ==============================\n",
            "platform linux -- Python 3.11.7, pytest-9.2.0, pluggy-1.7.0\n",
            "rootdir: py\n",
            "collected 0 items\n",
            "\n",
            "============================ no tests ran in 0.02s =============================\n",
            "ERROR: file or directory not found: nothing\n",
        ),
        Some((0, 0, 0)),
    );
    check(
        "pytest-colour",
        concat!(
            "\u{1b}[1m============================= test session starts ==============================\u{1b}[0m\n",
            "platform linux -- Python 3.11.7, pytest-9.2.0, pluggy-1.7.0\n",
            "rootdir: py\n",
            "collected 2 items\n",
            "\n",
            "test_b.py \u{1b}[32m.\u{1b}[0m\u{1b}[32m.\u{1b}[0m\u{1b}[32m                                                             [100%]\u{1b}[0m\n",
            "\n",
            "\u{1b}[32m============================== \u{1b}[32m\u{1b}[1m2 passed\u{1b}[0m\u{1b}[32m in 0.06s\u{1b}[0m\u{1b}[32m ===============================\u{1b}[0m\n",
        ),
        Some((2, 0, 0)),
    );
    check(
        "pytest-q-none",
        concat!(
            "\n",
            "9 deselected in 0.07s\n",
        ),
        Some((0, 0, 0)),
    );
    check(
        "pytest-qq",
        concat!(
            "..                                                                       [100%]\n",
        ),
        None,
    );
    check(
        "unittest-fail",
        concat!(
            "    def test_b(self): self.fail()\n",
            "                      ^^^^^^^^^^^\n",
            "AssertionError: None\n",
            "\n",
            "----------------------------------------------------------------------\n",
            "Ran 3 tests in 0.001s\n",
            "\n",
            "FAILED (failures=1, skipped=1)\n",
        ),
        Some((1, 1, 1)),
    );
    check(
        "unittest-ok",
        concat!(
            ".\n",
            "----------------------------------------------------------------------\n",
            "Ran 1 test in 0.000s\n",
            "\n",
            "OK\n",
        ),
        Some((1, 0, 0)),
    );
    check(
        "nose2",
        concat!(
            "    def test_b(self): self.fail()\n",
            "                      ^^^^^^^^^^^\n",
            "AssertionError: None\n",
            "\n",
            "----------------------------------------------------------------------\n",
            "Ran 3 tests in 0.000s\n",
            "\n",
            "FAILED (failures=1, skipped=1)\n",
        ),
        Some((1, 1, 1)),
    );
}

#[test]
fn what_runners_of_node_print() {
    check(
        "jest-fail",
        concat!(
            "\n",
            "PASS ./ok.test.cjs\n",
            "\n",
            "Test Suites: 1 failed, 1 passed, 2 total\n",
            "Tests:       1 failed, 1 skipped, 1 todo, 3 passed, 6 total\n",
            "Snapshots:   0 total\n",
            "Time:        1.158 s\n",
            "Ran all test suites.\n",
        ),
        Some((3, 1, 2)),
    );
    check(
        "jest-ok",
        concat!(
            "  ✓ ok (19 ms)\n",
            "  ✓ ok2\n",
            "\n",
            "Test Suites: 1 passed, 1 total\n",
            "Tests:       2 passed, 2 total\n",
            "Snapshots:   0 total\n",
            "Time:        0.982 s, estimated 1 s\n",
            "Ran all test suites.\n",
        ),
        Some((2, 0, 0)),
    );
    check(
        "vitest-fail",
        concat!(
            "\n",
            "\u{1b}[31m\u{1b}[2m⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯[1/1]⎯\u{1b}[22m\u{1b}[39m\n",
            "\n",
            "\n",
            "\u{1b}[2m Test Files \u{1b}[22m \u{1b}[1m\u{1b}[31m1 failed\u{1b}[39m\u{1b}[22m\u{1b}[2m | \u{1b}[22m\u{1b}[1m\u{1b}[32m1 passed\u{1b}[39m\u{1b}[22m\u{1b}[90m (2)\u{1b}[39m\n",
            "\u{1b}[2m      Tests \u{1b}[22m \u{1b}[1m\u{1b}[31m1 failed\u{1b}[39m\u{1b}[22m\u{1b}[2m | \u{1b}[22m\u{1b}[1m\u{1b}[32m3 passed\u{1b}[39m\u{1b}[22m\u{1b}[2m | \u{1b}[22m\u{1b}[33m1 skipped\u{1b}[39m\u{1b}[2m | \u{1b}[22m\u{1b}[90m1 todo\u{1b}[39m\u{1b}[90m (6)\u{1b}[39m\n",
            "\u{1b}[2m   Start at \u{1b}[22m 21:04:21\n",
            "\u{1b}[2m   Duration \u{1b}[22m 1.91s\u{1b}[2m (transform 152ms, setup 0ms, import 196ms, tests 17ms, environment 0ms)\u{1b}[22m\n",
        ),
        Some((3, 1, 2)),
    );
    check(
        "vitest-ok",
        concat!(
            "\u{1b}[1m\u{1b}[30m\u{1b}[46m RUN \u{1b}[49m\u{1b}[39m\u{1b}[22m \u{1b}[36mv4.1.12 \u{1b}[39m\u{1b}[90mjs\u{1b}[39m\n",
            "\n",
            " \u{1b}[32m✓\u{1b}[39m ok.test.cjs \u{1b}[2m(\u{1b}[22m\u{1b}[2m2 tests\u{1b}[22m\u{1b}[2m)\u{1b}[22m\u{1b}[32m 7\u{1b}[2mms\u{1b}[22m\u{1b}[39m\n",
            "\n",
            "\u{1b}[2m Test Files \u{1b}[22m \u{1b}[1m\u{1b}[32m1 passed\u{1b}[39m\u{1b}[22m\u{1b}[90m (1)\u{1b}[39m\n",
            "\u{1b}[2m      Tests \u{1b}[22m \u{1b}[1m\u{1b}[32m2 passed\u{1b}[39m\u{1b}[22m\u{1b}[90m (2)\u{1b}[39m\n",
            "\u{1b}[2m   Start at \u{1b}[22m 21:04:25\n",
            "\u{1b}[2m   Duration \u{1b}[22m 956ms\u{1b}[2m (transform 28ms, setup 0ms, import 49ms, tests 7ms, environment 0ms)\u{1b}[22m\n",
        ),
        Some((2, 0, 0)),
    );
    check(
        "mocha-fail",
        concat!(
            "\n",
            "\n",
            "  a\n",
            "    ✔ ok\n",
            "    1) bad\n",
            "    - s\n",
            "    - pending\n",
            "\n",
            "\n",
            "  1 passing (24ms)\n",
            "  2 pending\n",
            "  1 failing\n",
            "\n",
            "  1) a\n",
            "       bad:\n",
            "     Error: x\n",
            "      at Context.<anonymous> (m.cjs:1:67)\n",
            "      at process.processImmediate (node:internal/timers:483:21)\n",
        ),
        Some((1, 1, 2)),
    );
    check(
        "mocha-ok",
        concat!(
            "\n",
            "\n",
            "  a\n",
            "    ✔ ok\n",
            "\n",
            "\n",
            "  1 passing (15ms)\n",
        ),
        Some((1, 0, 0)),
    );
    check(
        "mocha-dot",
        concat!(
            "\n",
            "\n",
            "  .!,,\n",
            "\n",
            "  1 passing (3ms)\n",
            "  2 pending\n",
            "  1 failing\n",
            "\n",
            "  1) a\n",
            "       bad:\n",
            "     Error: x\n",
            "      at Context.<anonymous> (m.cjs:1:67)\n",
            "      at process.processImmediate (node:internal/timers:483:21)\n",
        ),
        Some((1, 1, 2)),
    );
    check(
        "node-tap",
        concat!(
            "TAP version 13\n",
            "# Subtest: ok\n",
            "ok 1 - ok\n",
            "  ---\n",
            "  duration_ms: 1.240411\n",
            "  ...\n",
            "# Subtest: bad\n",
            "not ok 2 - bad\n",
            "  ---\n",
            "  duration_ms: 0.302451\n",
            "  location: 'n.mjs:2:23'\n",
            "  failureType: 'testCodeFailure'\n",
            "  error: 'x'\n",
            "  code: 'ERR_TEST_FAILURE'\n",
            "  stack: |-\n",
            "    TestContext.<anonymous> (file://n.mjs:2:49)\n",
            "    Test.runInAsyncScope (node:async_hooks:206:9)\n",
            "    Test.run (node:internal/test_runner/test:796:25)\n",
            "    Test.processPendingSubtests (node:internal/test_runner/test:526:18)\n",
            "    Test.postRun (node:internal/test_runner/test:889:19)\n",
            "    Test.run (node:internal/test_runner/test:835:12)\n",
            "    async Test.processPendingSubtests (node:internal/test_runner/test:526:7)\n",
            "  ...\n",
            "# Subtest: s\n",
            "ok 3 - s # SKIP\n",
            "  ---\n",
            "  duration_ms: 8.184577\n",
            "  ...\n",
            "# Subtest: t\n",
            "ok 4 - t # TODO\n",
            "  ---\n",
            "  duration_ms: 0.13908\n",
            "  ...\n",
            "1..4\n",
            "# tests 4\n",
            "# suites 0\n",
            "# pass 1\n",
            "# fail 1\n",
            "# cancelled 0\n",
            "# skipped 1\n",
            "# todo 1\n",
            "# duration_ms 550.387204\n",
        ),
        Some((1, 1, 2)),
    );
    check(
        "node-spec2",
        concat!(
            "ℹ suites 0\n",
            "ℹ pass 1\n",
            "ℹ fail 1\n",
            "ℹ cancelled 0\n",
            "ℹ skipped 1\n",
            "ℹ todo 1\n",
            "ℹ duration_ms 394.994068\n",
            "\n",
            "✖ failing tests:\n",
            "\n",
            "test at n.mjs:2:23\n",
            "✖ bad (0.373431ms)\n",
            "  Error: x\n",
            "      at TestContext.<anonymous> (file://n.mjs:2:49)\n",
            "      at Test.runInAsyncScope (node:async_hooks:206:9)\n",
            "      at Test.run (node:internal/test_runner/test:796:25)\n",
            "      at Test.processPendingSubtests (node:internal/test_runner/test:526:18)\n",
            "      at Test.postRun (node:internal/test_runner/test:889:19)\n",
            "      at Test.run (node:internal/test_runner/test:835:12)\n",
            "      at async Test.processPendingSubtests (node:internal/test_runner/test:526:7)\n",
        ),
        Some((1, 1, 2)),
    );
    check(
        "ava-fail",
        concat!(
            "\n",
            "  › file://av.mjs:2:53\n",
            "\n",
            "  ─\n",
            "\n",
            "  1 test failed\n",
            "  1 test skipped\n",
            "  1 test todo\n",
        ),
        Some((0, 0, 0)),
    );
    check(
        "ava-ok",
        concat!(
            "\n",
            "  ✔ ok\n",
            "  ✔ ok2\n",
            "  ─\n",
            "\n",
            "  2 tests passed\n",
        ),
        Some((2, 0, 0)),
    );
    check(
        "ava-tap",
        concat!(
            "TAP version 13\n",
            "ok 1 - s # SKIP\n",
            "not ok 2 - t # TODO\n",
            "ok 3 - ok\n",
            "not ok 4 - bad\n",
            "  ---\n",
            "    name: AssertionError\n",
            "    assertion: t.fail()\n",
            "    message: Test failed via `t.fail()`\n",
            "    at: >-\n",
            "      ExecutionContext.fail\n",
            "      (file://assert.js:287:15)\n",
            "  ...\n",
            "\n",
            "1..4\n",
            "# tests 3\n",
            "# pass 1\n",
            "# skip 1\n",
            "# fail 2\n",
        ),
        Some((1, 2, 1)),
    );
    check(
        "tap-fail",
        concat!(
            "    \n",
            "    # Subtest: two\n",
            "        not ok 1 - should be equal\n",
            "          ---\n",
            "          at:\n",
            "            fileName: tp.mjs\n",
            "            lineNumber: 2\n",
            "            columnNumber: 66\n",
            "            typeName: Test\n",
            "          stack: |\n",
            "            Test.<anonymous> (tp.mjs:2:66)\n",
            "            tp.mjs:2:45\n",
            "          source: >\n",
            "            import t from 'tap';\n",
            "          \n",
            "            t.test('one', t => { t.ok(1); t.end() }); t.test('two', t => { t.ok(0);\n",
            "            t.end() }); t.test('three', {skip: true}, t => t.end());\n",
            "          \n",
            "            -----------------------------------------------------------------^\n",
            "          ...\n",
            "        \n",
            "        1..1\n",
            "    not ok 2 - two # time=56.144ms\n",
            "      ---\n",
            "      at:\n",
            "        fileName: tp.mjs\n",
            "        lineNumber: 2\n",
            "        columnNumber: 45\n",
            "        isToplevel: true\n",
            "      source: >\n",
            "        import t from 'tap';\n",
            "      \n",
            "        t.test('one', t => { t.ok(1); t.end() }); t.test('two', t => { t.ok(0);\n",
            "        t.end() }); t.test('three', {skip: true}, t => t.end());\n",
            "      \n",
            "        --------------------------------------------^\n",
            "      ...\n",
            "    \n",
            "    ok 3 - three # SKIP\n",
            "    1..3\n",
            "    # time=110.88ms\n",
            "not ok 1 - tp.mjs # time=110.88ms\n",
            "  ---\n",
            "  stdio: inherit\n",
            "  cwd: js\n",
            "  externalID: tp.mjs\n",
            "  command: /usr/bin/node\n",
            "  args:\n",
            "    - --import=file://import.mjs\n",
            "    - --import=file://import.mjs\n",
            "    - --enable-source-maps\n",
            "    - --import=file://import.mjs\n",
            "    - tp.mjs\n",
            "  exitCode: 1\n",
            "  signal: null\n",
            "  ...\n",
            "\n",
            "# No coverage generated\n",
            "# { total: 3, pass: 1, fail: 1, skip: 1 }\n",
            "# time=4126.934ms\n",
        ),
        Some((1, 1, 1)),
    );
    check(
        "tap-node",
        concat!(
            "    not ok 1 - should be equal\n",
            "      ---\n",
            "      at:\n",
            "        fileName: tp.mjs\n",
            "        lineNumber: 2\n",
            "        columnNumber: 66\n",
            "        typeName: Test\n",
            "      stack: |\n",
            "        Test.<anonymous> (tp.mjs:2:66)\n",
            "        tp.mjs:2:45\n",
            "      source: >\n",
            "        import t from 'tap';\n",
            "      \n",
            "        t.test('one', t => { t.ok(1); t.end() }); t.test('two', t => { t.ok(0);\n",
            "        t.end() }); t.test('three', {skip: true}, t => t.end());\n",
            "      \n",
            "        -----------------------------------------------------------------^\n",
            "      ...\n",
            "    \n",
            "    1..1\n",
            "not ok 2 - two # time=47.805ms\n",
            "  ---\n",
            "  at:\n",
            "    fileName: tp.mjs\n",
            "    lineNumber: 2\n",
            "    columnNumber: 45\n",
            "    isToplevel: true\n",
            "  source: >\n",
            "    import t from 'tap';\n",
            "  \n",
            "    t.test('one', t => { t.ok(1); t.end() }); t.test('two', t => { t.ok(0);\n",
            "    t.end() }); t.test('three', {skip: true}, t => t.end());\n",
            "  \n",
            "    --------------------------------------------^\n",
            "  ...\n",
            "\n",
            "ok 3 - three # SKIP\n",
            "1..3\n",
            "# { total: 3, pass: 1, fail: 1, skip: 1 }\n",
            "# time=114.797ms\n",
        ),
        Some((1, 1, 1)),
    );
}

#[test]
fn what_runners_of_perl_and_shell_print() {
    check(
        "prove-fail",
        concat!(
            "\n",
            "#   Failed test 'bad'\n",
            "#   at t/a.t line 1.\n",
            "# Looks like you failed 1 test of 3.\n",
            "t/a.t .. \n",
            "Dubious, test returned 1 (wstat 256, 0x100)\n",
            "Failed 1/3 subtests \n",
            "\t(less 1 skipped subtest: 1 okay)\n",
            "t/b.t .. ok\n",
            "\n",
            "Test Summary Report\n",
            "-------------------\n",
            "t/a.t (Wstat: 256 (exited 1) Tests: 3 Failed: 1)\n",
            "  Failed test:  2\n",
            "  Non-zero exit status: 1\n",
            "Files=2, Tests=5,  1 wallclock secs ( 0.02 usr  0.01 sys +  0.04 cusr  0.05 csys =  0.12 CPU)\n",
            "Result: FAIL\n",
        ),
        Some((4, 1, 0)),
    );
    check(
        "prove-ok",
        concat!(
            "t/b.t .. ok\n",
            "All tests successful.\n",
            "Files=1, Tests=2,  0 wallclock secs ( 0.02 usr  0.00 sys +  0.04 cusr  0.00 csys =  0.06 CPU)\n",
            "Result: PASS\n",
        ),
        Some((2, 0, 0)),
    );
    check(
        "prove-v",
        concat!(
            "\n",
            "#   Failed test 'bad'\n",
            "#   at t/a.t line 1.\n",
            "# Looks like you failed 1 test of 3.\n",
            "t/a.t .. \n",
            "1..3\n",
            "ok 1\n",
            "not ok 2 - bad\n",
            "ok 3 # skip why\n",
            "Dubious, test returned 1 (wstat 256, 0x100)\n",
            "Failed 1/3 subtests \n",
            "\t(less 1 skipped subtest: 1 okay)\n",
            "t/b.t .. \n",
            "1..2\n",
            "ok 1\n",
            "ok 2\n",
            "ok\n",
            "\n",
            "Test Summary Report\n",
            "-------------------\n",
            "t/a.t (Wstat: 256 (exited 1) Tests: 3 Failed: 1)\n",
            "  Failed test:  2\n",
            "  Non-zero exit status: 1\n",
            "Files=2, Tests=5,  0 wallclock secs ( 0.01 usr  0.00 sys +  0.06 cusr  0.02 csys =  0.09 CPU)\n",
            "Result: FAIL\n",
        ),
        Some((4, 1, 0)),
    );
    check(
        "bats-tap",
        concat!(
            "1..3\n",
            "ok 1 ok\n",
            "not ok 2 bad\n",
            "# (in test file a.bats, line 2)\n",
            "#   `@test \"bad\" { false; }' failed\n",
            "ok 3 s # skip\n",
        ),
        Some((1, 1, 1)),
    );
    check(
        "bats-pretty",
        concat!(
            "\u{1b}[0m\u{1b}[1G   s\u{1b}[K\u{1b}[77G3/3\u{1b}[2G\u{1b}[1G - s (skipped)\u{1b}[K\n",
            "\u{1b}[0m\u{1b}[31;1m\n",
            "3 tests, 1 failure, 1 skipped\n",
            "\u{1b}[0m\n",
        ),
        Some((1, 1, 1)),
    );
}

#[test]
fn what_runners_of_go_print() {
    check(
        "go-fail",
        concat!(
            "--- FAIL: TestBad (0.00s)\n",
            "    a_test.go:4: x\n",
            "FAIL\n",
            "FAIL\tx/a\t0.007s\n",
            "ok  \tx/b\t0.007s\n",
            "?   \tx/c\t[no test files]\n",
            "FAIL\n",
        ),
        Some((1, 1, 0)),
    );
    check(
        "go-ok",
        concat!(
            "ok  \tx/b\t(cached)\n",
            "?   \tx/c\t[no test files]\n",
        ),
        Some((1, 0, 0)),
    );
    check(
        "go-v",
        concat!(
            "=== RUN   TestOk\n",
            "--- PASS: TestOk (0.00s)\n",
            "=== RUN   TestBad\n",
            "    a_test.go:4: x\n",
            "--- FAIL: TestBad (0.00s)\n",
            "=== RUN   TestS\n",
            "    a_test.go:5: \n",
            "--- SKIP: TestS (0.00s)\n",
            "FAIL\n",
            "FAIL\tx/a\t0.004s\n",
            "=== RUN   TestOk\n",
            "=== RUN   TestOk/sub\n",
            "--- PASS: TestOk (0.00s)\n",
            "    --- PASS: TestOk/sub (0.00s)\n",
            "PASS\n",
            "ok  \tx/b\t0.008s\n",
            "?   \tx/c\t[no test files]\n",
            "FAIL\n",
        ),
        Some((3, 1, 1)),
    );
    check(
        "go-json",
        concat!(
            "{\"Time\":\"2026-11-22T21:10:45.9697435Z\",\"Action\":\"run\",\"Package\":\"x/b\",\"Test\":\"TestOk\"}\n",
            "{\"Time\":\"2026-11-22T21:10:45.96983742Z\",\"Action\":\"output\",\"Package\":\"x/b\",\"Test\":\"TestOk\",\"Output\":\"=== RUN   TestOk\\n\"}\n",
            "{\"Time\":\"2026-11-22T21:10:45.96984449Z\",\"Action\":\"run\",\"Package\":\"x/b\",\"Test\":\"TestOk/sub\"}\n",
            "{\"Time\":\"2026-11-22T21:10:45.96984802Z\",\"Action\":\"output\",\"Package\":\"x/b\",\"Test\":\"TestOk/sub\",\"Output\":\"=== RUN   TestOk/sub\\n\"}\n",
            "{\"Time\":\"2026-11-22T21:10:45.96985496Z\",\"Action\":\"output\",\"Package\":\"x/b\",\"Test\":\"TestOk\",\"Output\":\"--- PASS: TestOk (0.00s)\\n\"}\n",
            "{\"Time\":\"2026-11-22T21:10:45.9698619Z\",\"Action\":\"output\",\"Package\":\"x/b\",\"Test\":\"TestOk/sub\",\"Output\":\"    --- PASS: TestOk/sub (0.00s)\\n\"}\n",
            "{\"Time\":\"2026-11-22T21:10:45.96986583Z\",\"Action\":\"pass\",\"Package\":\"x/b\",\"Test\":\"TestOk/sub\",\"Elapsed\":0}\n",
            "{\"Time\":\"2026-11-22T21:10:45.96987306Z\",\"Action\":\"pass\",\"Package\":\"x/b\",\"Test\":\"TestOk\",\"Elapsed\":0}\n",
            "{\"Time\":\"2026-11-22T21:10:45.96987675Z\",\"Action\":\"output\",\"Package\":\"x/b\",\"Output\":\"PASS\\n\"}\n",
            "{\"Time\":\"2026-11-22T21:10:45.96990695Z\",\"Action\":\"output\",\"Package\":\"x/b\",\"Output\":\"ok  \\tx/b\\t0.011s\\n\"}\n",
            "{\"Time\":\"2026-11-22T21:10:45.97022172Z\",\"Action\":\"pass\",\"Package\":\"x/b\",\"Elapsed\":0.011}\n",
        ),
        Some((2, 0, 0)),
    );
}

#[test]
fn what_runners_of_others_print() {
    check(
        "ctest-fail",
        concat!(
            "    Start 1: a\n",
            "1/2 Test #1: a ................................   Passed    0.00 sec\n",
            "    Start 2: b\n",
            "2/2 Test #2: b ................................***Failed    0.00 sec\n",
            "\n",
            "50% tests passed, 1 tests failed out of 2\n",
            "\n",
            "Total Test time (real) =   0.02 sec\n",
            "\n",
            "The following tests FAILED:\n",
            "\t  2 - b (Failed)\n",
            "Errors while running CTest\n",
            "Output from these tests are in: LastTest.log\n",
            "Use \"--rerun-failed --output-on-failure\" to re-run the failed cases verbosely.\n",
        ),
        Some((1, 1, 0)),
    );
    check(
        "ctest-ok",
        concat!(
            "Internal ctest changing into directory: build\n",
            "Test project build\n",
            "    Start 1: a\n",
            "1/1 Test #1: a ................................   Passed    0.00 sec\n",
            "\n",
            "100% tests passed, 0 tests failed out of 1\n",
            "\n",
            "Total Test time (real) =   0.03 sec\n",
        ),
        Some((1, 0, 0)),
    );
    check(
        "rspec",
        concat!(
            "     RuntimeError:\n",
            "       x\n",
            "     # ./spec/a_spec.rb:3:in `block (2 levels) in <top (required)>'\n",
            "\n",
            "Finished in 0.04742 seconds (files took 0.61462 seconds to load)\n",
            "3 examples, 1 failure, 1 pending\n",
            "\n",
            "Failed examples:\n",
            "\n",
            "rspec ./spec/a_spec.rb:3 # a bad\n",
        ),
        Some((1, 1, 1)),
    );
    check(
        "minitest",
        concat!(
            "\n",
            "Finished in 0.000600s, 5000.5000 runs/s, 3333.6667 assertions/s.\n",
            "\n",
            "  1) Failure:\n",
            "T#test_bad [mini.rb:4]:\n",
            "Expected false to be truthy.\n",
            "\n",
            "3 runs, 2 assertions, 1 failures, 0 errors, 1 skips\n",
            "\n",
            "You have skipped tests. Run with --verbose for details.\n",
        ),
        Some((1, 1, 1)),
    );
    check(
        "phpunit-fail",
        concat!(
            "\n",
            "1) ATest::testBad\n",
            "Failed asserting that false is true.\n",
            "\n",
            "ATest.php:2\n",
            "\n",
            "FAILURES!\n",
            "Tests: 4, Assertions: 3, Failures: 1, Skipped: 1.\n",
        ),
        Some((2, 1, 1)),
    );
    check(
        "phpunit-ok",
        concat!(
            "PHPUnit 9.6.7 by Sebastian Bergmann and contributors.\n",
            "\n",
            ".                                                                   1 / 1 (100%)\n",
            "\n",
            "Time: 00:00.041, Memory: 4.00 MB\n",
            "\n",
            "OK (1 test, 1 assertion)\n",
        ),
        Some((1, 0, 0)),
    );
    check(
        "busted",
        concat!(
            "+-.\n",
            "1 success / 1 failure / 0 errors / 1 pending : 0.000884 seconds\n",
            "\n",
            "Pending -> a_spec.lua @ 1\n",
            "a s\n",
            "\n",
            "Failure -> a_spec.lua @ 1\n",
            "a bad\n",
            "a_spec.lua:1: Expected objects to be the same.\n",
            "Passed in:\n",
            "(boolean) false\n",
            "Expected:\n",
            "(boolean) true\n",
        ),
        Some((1, 1, 1)),
    );
}

