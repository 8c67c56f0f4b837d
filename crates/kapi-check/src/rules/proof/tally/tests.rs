//! What real runners printed, and what somebody might print to look like them.

use super::{TestTally, TestsLost, junit, lost, tally};

/// Real runs: each with its name, what it comes to, and what was printed.
const RUNS: &str = include_str!("runs.txt");

const fn counted(passed: u64, failed: u64, skipped: u64) -> TestTally {
    TestTally {
        passed,
        failed,
        skipped,
        only_red: false,
        broken_off: false,
    }
}

/// Compares the tally of a run with passed, failed and skipped, or with nothing.
fn check(output: &str, expected: &str) {
    let found = tally(output).map_or_else(
        || "none".to_owned(),
        |tally| format!("{} {} {}", tally.passed, tally.failed, tally.skipped),
    );
    assert_eq!(found, expected, "{output}");
}

#[test]
fn real_runs() {
    let runs: Vec<&str> = RUNS.split("=====> ").skip(1).collect();
    assert_eq!(runs.len(), 41);
    for run in runs {
        let (head, output) = run.split_once('\n').unwrap();
        let (name, expected) = head.split_once(": ").unwrap();
        let output = output.replace("<ESC>", "\u{1b}").replace("<CR>", "\r");
        check(&format!("{name}\n{output}"), expected);
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn forms_that_were_read_in_manuals() {
    for (output, expected) in [
        (
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
            "3 0 1",
        ),
        (
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 5 filtered out\n",
            "1 2 0",
        ),
        (
            "     Summary [   2.617s] 29 tests run: 28 passed (1 slow), 1 failed, 613 skipped\n",
            "28 1 613",
        ),
        (
            "     Summary [   0.5s] 3/9 tests run: 2 passed, 1 failed, 0 skipped\n",
            "2 1 0",
        ),
        (
            "==== 1 passed, 2 warnings in 62.10s (0:01:02) ====\n",
            "1 0 0",
        ),
        ("==== 1 failed, 2 errors in 1.00s ====\n", "0 3 0"),
        (
            "[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s - in ATest\n[INFO] Results:\n[INFO]\n[INFO] Tests run: 5, Failures: 1, Errors: 0, Skipped: 1\n",
            "3 1 1",
        ),
        ("3 tests completed, 1 failed, 1 skipped\n", "1 1 1"),
        (
            "Passed!  - Failed:     0, Passed:     3, Skipped:     1, Total:     4, Duration: 8 ms - x.dll (net8.0)\n",
            "3 0 1",
        ),
        (
            "Test summary: total: 3, failed: 1, succeeded: 2, skipped: 0, duration: 1.2s\n",
            "2 1 0",
        ),
        (
            "ok | 3 passed (2 steps) | 0 failed | 1 ignored (12ms)\n",
            "3 0 1",
        ),
        ("FAILED | 2 passed | 1 failed (15ms)\n", "2 1 0"),
        (
            " 3 pass\n 1 skip\n 2 fail\n 4 expect() calls\nRan 6 tests across 1 file. [12.00ms]\n",
            "3 2 1",
        ),
        ("All 3 tests passed.\n", "3 0 0"),
        ("1 passed; 1 skipped; 1 failed.\n", "1 1 1"),
        (
            "Finished in 0.1 seconds\n2 doctests, 3 tests, 1 failure, 1 skipped\n",
            "3 1 1",
        ),
        (
            "3 tests, 3 assertions, 0 failures, 0 errors, 0 pendings, 1 omissions, 0 notifications\n",
            "2 0 1",
        ),
        ("OK (5 tests)\n", "5 0 0"),
        (
            "Executed 1 test, with 0 failures (0 unexpected) in 0.1 (0.1) seconds\nExecuted 4 tests, with 1 test skipped and 1 failure (0 unexpected) in 0.1 (0.2) seconds\n",
            "2 1 1",
        ),
        (
            "\u{2714} Test run with 3 tests in 1 suite passed after 0.1 seconds.\n",
            "3 0 0",
        ),
        (
            "\u{2718} Test run with 3 tests failed after 0.1 seconds with 1 issue.\n",
            "2 1 0",
        ),
        ("66%: Checks: 3, Failures: 1, Errors: 0\n", "2 1 0"),
        (
            "[====] Synthesis: Tested: 3 | Passing: 2 | Failing: 1 | Crashing: 0\n",
            "2 1 0",
        ),
        (
            "[  PASSED  ] 3 tests.\n[  SKIPPED ] 1 test, listed below:\n[  FAILED  ] 2 tests, listed below:\n[  FAILED  ] A.b\n",
            "3 2 1",
        ),
        ("All tests passed (9 assertions in 3 test cases)\n", "3 0 0"),
        (
            "test cases: 3 | 2 passed | 1 failed\nassertions: 9 | 8 passed | 1 failed\n",
            "2 1 0",
        ),
        (
            "[doctest] test cases:  3 |  2 passed | 1 failed | 0 skipped\n",
            "2 1 0",
        ),
        ("3 Tests 1 Failures 1 Ignored\nFAIL\n", "1 1 1"),
        (
            "# TOTAL: 5\n# PASS:  2\n# SKIP:  1\n# XFAIL: 0\n# FAIL:  2\n# XPASS: 0\n# ERROR: 0\n",
            "2 2 1",
        ),
        (
            "Ok:                 3   \nExpected Fail:      0   \nFail:               1   \nUnexpected Pass:    0   \nSkipped:            1   \nTimeout:            0   \n",
            "3 1 1",
        ),
        (
            "100% tests passed, 0 tests failed out of 2\n\nThe following tests did not run:\n\t  2 - b (Skipped)\n",
            "1 0 1",
        ),
        ("Ran 3 tests.\n\nOK\n", "3 0 0"),
        (
            "TAP version 13\nok 1 - a\nok 2 - b # SKIP no\nnot ok 3 - c # TODO\nnot ok 4 d\n1..4\n",
            "1 1 2",
        ),
        ("1..2\n# tests 2\n# pass  2\n\n# ok\n", "2 0 0"),
        ("5 passed, 0 failed\n", "5 0 0"),
    ] {
        check(output, expected);
    }
}

#[test]
fn several_closing_lines_are_summed() {
    check(
        "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\ntest result: ok. 4 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
        "7 0 1",
    );
    check(
        "==== 1 passed in 0.1s ====\n==== 2 passed in 0.1s ====\n",
        "3 0 0",
    );
}

#[test]
fn text_that_only_speaks_of_tests_is_no_closing_line() {
    for output in [
        "",
        "all 3 tests passed, hooray",
        "I ran pytest and 3 passed in 0.1s",
        "> 3 passed in 0.1s",
        "echo 'test result: ok. 3 passed; 0 failed'",
        "Tests: many, I think",
        "Ran 3 tests in 0.1s\nand they were fine\nOK",
        "ok 1 - a point without a plan",
        "1 file changed, 3 insertions(+)",
        "3 warnings generated.",
        "  Compiling x v1.0.0",
        "Downloaded 3 crates (1.0 MB) in 0.33s",
        "added 749 packages in 2m",
        "999999999999999999999999 passed in 0.1s",
        "Files=two, Tests=3",
    ] {
        check(output, "none");
    }
}

#[test]
fn what_was_lost() {
    let base = counted(3, 1, 1);
    let now = |passed, failed, skipped| lost(Some(&base), Some(&counted(passed, failed, skipped)));
    assert_eq!(now(4, 0, 1), None);
    assert_eq!(now(9, 0, 0), None);
    assert_eq!(
        now(3, 0, 1),
        Some(TestsLost::Fewer {
            before: base,
            now: counted(3, 0, 1)
        })
    );
    assert_eq!(
        now(5, 0, 2),
        Some(TestsLost::MoreSkipped {
            before: base,
            now: counted(5, 0, 2)
        })
    );
    assert_eq!(
        lost(Some(&base), None),
        Some(TestsLost::NoClosingLine { before: base })
    );
    assert_eq!(lost(None, None), None);
    assert_eq!(lost(None, Some(&base)), None);
}

#[test]
fn a_base_whose_tests_could_not_be_loaded_says_nothing_of_skipped_ones() {
    let interrupted = "\
        ERROR tests/test_one.py\n\
        !!!!!!!!!!!!!!!!!!!! Interrupted: 1 error during collection !!!!!!!!!!!!!!!!!!!!\n\
        =============================== 1 error in 0.12s ===============================\n";
    let now = tally("====== 180 passed, 37 skipped in 1.02s ======\n");
    assert_eq!(lost(tally(interrupted).as_ref(), now.as_ref()), None);
    // Where every test was collected, or hardly more are passed now, they were skipped by the change.
    let failed = tally("====== 1 failed in 0.12s ======\n");
    let few = tally("====== 1 passed, 3 skipped in 0.12s ======\n");
    for (base, now) in [(&failed, &now), (&tally(interrupted), &few)] {
        let found = lost(base.as_ref(), now.as_ref());
        assert!(
            matches!(found, Some(TestsLost::MoreSkipped { .. })),
            "{found:?}"
        );
    }
}

#[test]
fn a_runner_that_is_silent_when_green_may_fall_silent() {
    let base = tally("3 tests completed, 1 failed\n");
    assert!(base.unwrap().only_red);
    assert_eq!(lost(base.as_ref(), None), None);
    let base = tally("[ERROR] Tests run: 5, Failures: 1, Errors: 0, Skipped: 0\n");
    assert_eq!(lost(base.as_ref(), None), None);
    let base = tally("5 passed, 1 failed\n");
    assert!(lost(base.as_ref(), None).is_some());
}

#[test]
fn reports_in_xml() {
    let report = r#"<?xml version="1.0"?><!-- <testcase/> --><testsuites><testsuite name="a > b" tests="9">
      <testcase name="x"/><testcase name="y"><failure message="m">&gt; <![CDATA[<testcase/>]]></failure></testcase>
      <testcase name="z"><skipped/></testcase><testcase name="w"><system-out>s</system-out></testcase>
      </testsuite></testsuites>"#;
    assert_eq!(junit(report), Some(counted(2, 1, 1)));
    assert_eq!(junit("<html><testcase/></html>"), None);
    assert_eq!(junit("<testsuite><testcase"), Some(counted(0, 0, 0)));
    assert_eq!(junit(""), None);
}

#[test]
fn words() {
    let (before, now) = (counted(3, 1, 0), counted(2, 0, 4));
    assert_eq!(
        TestsLost::Fewer { before, now }.to_string(),
        "4 tests ran on the base, 2 with the change"
    );
    let lost = TestsLost::NoClosingLine { before };
    let json = serde_json::to_string(&lost).unwrap();
    assert_eq!(
        json,
        r#"{"kind":"no_closing_line","before":{"passed":3,"failed":1,"skipped":0,"only_red":false}}"#
    );
    assert_eq!(serde_json::from_str::<TestsLost>(&json).unwrap(), lost);
}
