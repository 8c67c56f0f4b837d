//! What stands against checks that pass, and what they show, by tables of reports.

use std::collections::BTreeSet;

use super::{Grade, ProofObjection, grade, objection};
use crate::rules::proof::fixture::{report, run};
use crate::rules::proof::inspection::Inspection;
use crate::rules::proof::policy::{CheckPolicy, TestPolicy};
use crate::rules::proof::tally::TestTally;
use crate::rules::proof::verify_report::VerifyReport;
use crate::rules::proof::verify_run::VerifyRun;

fn ran(exit_code: i32, passed: u64) -> VerifyRun {
    VerifyRun {
        tally: Some(TestTally {
            passed,
            failed: u64::from(exit_code != 0),
            ..TestTally::default()
        }),
        ..run(Some(exit_code), "")
    }
}

fn passes() -> Vec<VerifyRun> {
    vec![ran(0, 3)]
}

fn fails() -> Vec<VerifyRun> {
    vec![ran(1, 2)]
}

fn paths(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// Returns a report whose commands pass, and in which this was seen.
fn green(inspection: Inspection) -> VerifyReport {
    VerifyReport {
        inspection: Box::new(inspection),
        ..report(passes())
    }
}

fn against(
    policy: &CheckPolicy,
    inspection: Inspection,
    is_judged: bool,
) -> Option<ProofObjection> {
    let (base, nothing) = (report(fails()), BTreeSet::new());
    objection(policy, Some(&base), &green(inspection), &nothing, is_judged)
}

fn objected(inspection: Inspection) -> Option<ProofObjection> {
    against(&CheckPolicy::default(), inspection, false)
}

#[test]
fn a_run_that_ends_well_although_tests_fail_is_no_proof() {
    let still = |failed, exit_code| VerifyRun {
        tally: Some(TestTally {
            passed: 5 - failed,
            failed,
            ..TestTally::default()
        }),
        ..run(Some(exit_code), "")
    };
    let nothing = BTreeSet::new();
    let against = |base: VerifyRun, now: VerifyRun| {
        let (base, now) = (report(vec![base]), report(vec![now]));
        objection(&CheckPolicy::default(), Some(&base), &now, &nothing, false)
    };
    let Some(ProofObjection::TestsVanished { lost, .. }) = against(still(1, 1), still(1, 0)) else {
        panic!("a test that still fails is an objection");
    };
    assert_eq!(
        lost.to_string(),
        "1 tests failed on the base and 1 with the change, although the command exited with 0"
    );
    // What a runner that is tested says of its own runs is no verdict.
    assert_eq!(against(still(1, 0), still(1, 0)), None);
    assert_eq!(against(still(3, 1), still(1, 0)), None);
}

#[test]
fn tests_that_pass_whatever_they_expect_are_a_judge_s_or_a_person_s_to_allow() {
    let seen = || Inspection {
        cannot_fail: paths(&["tests/test_a.py:3"]),
        ..Inspection::default()
    };
    let found = Some(ProofObjection::CannotFail {
        lines: paths(&["tests/test_a.py:3"]),
    });
    assert_eq!(objected(seen()), found);
    assert_eq!(against(&CheckPolicy::default(), seen(), true), None);
    let allowed = CheckPolicy {
        flagged_code: true,
        ..CheckPolicy::default()
    };
    assert_eq!(against(&allowed, seen(), false), None);
}

#[test]
fn a_change_that_leaves_the_checks_alone_meets_no_objection() {
    assert_eq!(objected(Inspection::default()), None);
}

#[test]
fn fewer_tests_are_an_objection_unless_they_were_free_to_go() {
    let base = report(vec![ran(0, 4)]);
    let nothing = BTreeSet::new();
    let policy = CheckPolicy::default();
    let report = green(Inspection::default());
    let found = objection(&policy, Some(&base), &report, &nothing, true).unwrap();
    assert_eq!(
        found.words(),
        "`test`: 4 tests ran on the base, 3 with the change"
    );
    let free = CheckPolicy {
        tests: TestPolicy::Free,
        ..policy
    };
    let removed = green(Inspection {
        tests_changed: paths(&["tests/a.py"]),
        ..Inspection::default()
    });
    assert_eq!(
        objection(&free, Some(&base), &removed, &nothing, false),
        None
    );
}

#[test]
fn extended_tests_stand_where_the_base_tests_pass_in_full() {
    let extended = |with_base_checks, with_base_tests| Inspection {
        tests_extended: paths(&["tests/a.py"]),
        with_base_checks,
        with_base_tests,
        ..Inspection::default()
    };
    assert_eq!(objected(extended(passes(), Vec::new())), None);
    assert_eq!(objected(extended(fails(), passes())), None);
    let changed = Some(ProofObjection::TestsChanged {
        paths: paths(&["tests/a.py"]),
    });
    assert_eq!(objected(extended(fails(), fails())), changed);
    assert_eq!(objected(extended(vec![ran(0, 2)], Vec::new())), changed);
    assert_eq!(objected(extended(Vec::new(), Vec::new())), changed);
}

#[test]
fn added_tests_do_not_carry_the_base_s() {
    let added = |with_base_checks| Inspection {
        tests_added: paths(&["tests/new.py"]),
        with_base_checks,
        ..Inspection::default()
    };
    assert_eq!(objected(added(Vec::new())), None);
    assert_eq!(objected(added(passes())), None);
    let rests = Some(ProofObjection::RestsOnAddedTests {
        paths: paths(&["tests/new.py"]),
    });
    assert_eq!(objected(added(fails())), rests);
    assert_eq!(against(&CheckPolicy::default(), added(fails()), true), None);
    let free = CheckPolicy {
        tests: TestPolicy::Free,
        ..CheckPolicy::default()
    };
    assert_eq!(against(&free, added(fails()), false), None);
}

#[test]
fn what_fails_with_the_base_s_steering_is_not_blamed_on_added_tests() {
    let both = |with_base_steering| Inspection {
        tests_added: paths(&["tests/new.py"]),
        steering_changed: paths(&["Makefile"]),
        with_base_checks: fails(),
        with_base_steering,
        ..Inspection::default()
    };
    let steering = ProofObjection::RestsOnSteering {
        paths: paths(&["Makefile"]),
    };
    assert_eq!(objected(both(fails())), Some(steering));
    let added = ProofObjection::RestsOnAddedTests {
        paths: paths(&["tests/new.py"]),
    };
    assert_eq!(objected(both(passes())), Some(added));
}

#[test]
fn steering_is_a_judge_s_or_a_person_s_to_allow() {
    let steered = || Inspection {
        steering_changed: paths(&["Makefile"]),
        with_base_checks: fails(),
        with_base_steering: fails(),
        ..Inspection::default()
    };
    assert!(objected(steered()).is_some());
    assert_eq!(against(&CheckPolicy::default(), steered(), true), None);
    let allowing = CheckPolicy {
        changed_steering: true,
        ..CheckPolicy::default()
    };
    assert_eq!(against(&allowing, steered(), false), None);
}

#[test]
fn flagged_code_is_a_judge_s_or_a_person_s_to_allow_where_the_proof_rests_on_it() {
    let flagged = |without_flagged_code| Inspection {
        flagged_code: paths(&["calc.py:3"]),
        without_flagged_code,
        ..Inspection::default()
    };
    let rests = Some(ProofObjection::RestsOnFlaggedCode {
        lines: paths(&["calc.py:3"]),
    });
    assert_eq!(objected(flagged(fails())), rests);
    assert_eq!(objected(flagged(passes())), None);
    // Logs of before say nothing of it.
    assert_eq!(objected(flagged(Vec::new())), None);
    assert_eq!(
        against(&CheckPolicy::default(), flagged(fails()), true),
        None
    );
    let allowing = CheckPolicy {
        flagged_code: true,
        ..CheckPolicy::default()
    };
    assert_eq!(against(&allowing, flagged(fails()), false), None);
}

#[test]
fn the_grade_says_what_was_red_before() {
    let graded = |base: Vec<VerifyRun>, on_base_code: Vec<VerifyRun>| {
        let report = green(Inspection {
            on_base_code,
            ..Inspection::default()
        });
        grade(Some(&self::report(base)), &report)
    };
    assert_eq!(graded(fails(), Vec::new()), Grade::RedToGreen);
    assert_eq!(graded(passes(), Vec::new()), Grade::KeptGreen);
    assert_eq!(graded(passes(), passes()), Grade::KeptGreen);
    assert_eq!(graded(passes(), fails()), Grade::OwnTests);
    let cannot_run = vec![run(Some(127), "/bin/sh: 1: pytest: not found")];
    assert_eq!(graded(passes(), cannot_run), Grade::KeptGreen);
    assert_eq!(graded(passes(), vec![run(None, "")]), Grade::KeptGreen);
    assert_eq!(
        grade(None, &green(Inspection::default())),
        Grade::BaseUnknown
    );
}
