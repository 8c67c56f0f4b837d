//! How checks run: isolated, capped, a few at a time, and gone when they are no longer wanted.
//!
//! Limits that a person cannot lower are reached through the function that the goal loop calls.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::net::TcpListener;
use std::sync::Mutex;

use kapi_check::perform::checks;
use kapi_check::perform::checks::{CheckEvent, CheckObserver, CheckRunSettings, Discovery};
use kapi_check::rules::checks::report::{CheckOutcome, ChecksReport};
use kapi_check::rules::checks::{Check, CheckDisposition, CheckVerb, PlannedCheck, ProjectRoot};
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_run::grant::Grant;
use kapi_run::host_grants::HostGrants;
use kapi_spend::rules::prices::Prices;
use kapi_sys::cancel::Cancel;
use rustix::process::Signal;

use crate::check::{assert_nothing_left, check, machine, one, own_programs, program, reported};
use crate::environment::{Environment, await_some, processes_with};
use crate::room::with_room;

/// Runs shell lines as checks, with a limit and so many at a time.
fn run(
    env: &Environment,
    lines: &[&str],
    (timeout_ms, jobs): (u64, usize),
    reported: &CheckObserver<'_>,
) -> ChecksReport {
    let root = ProjectRoot {
        path: String::new(),
        profiles: Vec::new(),
        choices: Vec::new(),
        first_on_path: Vec::new(),
        caches: Vec::new(),
    };
    let discovery = Discovery {
        top: env.repository(),
        roots: vec![root],
        notes: Vec::new(),
    };
    let planned: Vec<PlannedCheck> = lines
        .iter()
        .map(|line| PlannedCheck {
            check: Check {
                root: String::new(),
                verb: CheckVerb::Test,
                provider: "test".to_owned(),
                command: (*line).to_owned(),
                timeout_ms,
                needs: Vec::new(),
                nothing: None,
                otherwise: None,
            },
            disposition: CheckDisposition::Run,
        })
        .collect();
    let home = env.home();
    let mark = (OsString::from("LANG"), OsString::from(env.marker()));
    let path = (OsString::from("PATH"), OsString::from("/usr/bin:/bin"));
    let grants = HostGrants {
        agents: BTreeMap::new(),
        judges: BTreeMap::new(),
        prices: Prices::built_in(),
        grant: Grant::default(),
        env: BTreeMap::from([mark, path]),
        home: home.clone(),
        self_exe: env!("CARGO_BIN_EXE_kapi").into(),
    };
    let setting = CheckRunSettings {
        scratch: home.join(".ilchul/checks/here"),
        level: SandboxLevel::Native,
        network: NetworkMode::None,
        jobs,
        only: BTreeSet::new(),
        timeout_ms_min: 0,
    };
    checks::run(&grants, &discovery, &planned, &setting, reported).unwrap()
}

#[test]
fn a_time_limit_kills_everything_that_a_check_started() {
    let env = machine();
    let cancel = Cancel::new();
    let reported = CheckObserver {
        cancel: &cancel,
        notice: &|_| {},
    };
    let hung =
        "trap '' TERM; echo begun; setsid sleep 3000 & (trap '' HUP; sleep 3001) & sleep 3002";
    let hung = with_room(400, |limit_ms| {
        let report = run(&env, &[hung], (limit_ms, 1), &reported);
        assert_eq!(report.checks[0].outcome, CheckOutcome::TimedOut);
        assert!(report.checks[0].duration_ms >= limit_ms);
        (!report.checks[0].output.is_empty()).then_some(report)
    });
    assert_eq!(hung.checks[0].output, "begun\n");
    assert_eq!(hung.counts().failed, 1);
    assert_nothing_left(&env);
    let report = run(&env, &["exit 7", "kill -9 $$"], (60_000, 2), &reported);
    let outcomes: Vec<&CheckOutcome> = report.checks.iter().map(|one| &one.outcome).collect();
    let expected = [
        &CheckOutcome::Failed { code: 7 },
        &CheckOutcome::Failed { code: 137 },
    ];
    assert_eq!(outcomes, expected);
    assert_eq!(report.counts().failed, 2);
}

#[test]
fn no_more_are_under_way_than_allowed() {
    let env = machine();
    let cancel = Cancel::new();
    let seen = Mutex::new((0_usize, 0_usize));
    let notice = |event: CheckEvent<'_>| {
        let mut seen = seen.lock().unwrap();
        match event {
            CheckEvent::Began(_) => seen.0 += 1,
            CheckEvent::Ended(_) => seen.0 -= 1,
            CheckEvent::Note(_) => {}
        }
        seen.1 = seen.1.max(seen.0);
    };
    let reported = CheckObserver {
        cancel: &cancel,
        notice: &notice,
    };
    let report = run(&env, &["true"; 7], (60_000, 2), &reported);
    assert_eq!(report.counts().passed, 7);
    let (under_way, most) = *seen.lock().unwrap();
    assert_eq!(under_way, 0);
    assert!((1..=2).contains(&most), "{most}");
}

#[test]
fn a_raised_flag_ends_what_runs_and_begins_nothing_more() {
    let env = machine();
    let cancel = Cancel::new();
    let notice = |event: CheckEvent<'_>| {
        if matches!(event, CheckEvent::Began(_)) {
            cancel.raise();
        }
    };
    let reported = CheckObserver {
        cancel: &cancel,
        notice: &notice,
    };
    let report = run(&env, &["sleep 3000"; 3], (60_000, 1), &reported);
    assert_eq!(report.counts().cancelled, 3);
    assert_nothing_left(&env);
}

#[test]
fn long_output_is_cut_to_its_end_after_a_marker() {
    let env = machine();
    let line = "test:\n\t@i=0; while [ $$i -lt 3000 ]; do echo line-$$i; i=$$((i+1)); done; echo last >&2; exit 1\n";
    env.write("Makefile", line);
    let (_, document) = check(&env, &["--only", "test"]);
    let output = one(&document, ".", "test")["output"].as_str().unwrap();
    let (marker, end) = output.split_once('\n').unwrap();
    assert!(
        marker.starts_with("[truncated: only the end of ")
            && marker.ends_with("of output is kept]"),
        "{marker}"
    );
    assert_eq!(end.chars().count(), 4_000);
    assert!(end.contains("line-2999\nlast\n"), "{end}");
    assert!(!output.contains("line-100\n"));
}

#[test]
fn a_check_sees_the_tree_as_it_is_and_can_change_nothing() {
    let env = machine();
    env.write(".ilchul/goals/001-x/hidden/secret.sh", "the-hidden-check");
    env.write("uncommitted.txt", "as it is\n");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    crate::environment::write(&env.home().join(".netrc"), "the-secret");
    let script = format!(
        "#!/bin/bash\nset -eu\ncat uncommitted.txt\npwd\necho changed > uncommitted.txt; rm Makefile; touch new\n\
         test ! -e .ilchul/goals; test ! -e {home}/.netrc; test -n \"$KAPI_RUN_ID\"; test \"$CI\" = 1\n\
         ! (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null\ngit status --short | grep -q uncommitted\n",
        home = env.home().display()
    );
    env.write("look.sh", &script);
    env.write("Makefile", "test:\n\t@bash look.sh\n");
    let (output, document) = check(&env, &["--only", "test"]);
    let found = one(&document, ".", "test");
    assert_eq!(
        (output.code, &found["status"]),
        (0, &"passed".into()),
        "{found}"
    );
    let said = format!("as it is\n{}\n", env.repository().display());
    assert_eq!(found["output"], said.as_str());
    assert_eq!(env.read("uncommitted.txt"), "as it is\n");
    assert!(env.repository().join("Makefile").exists());
    assert!(!env.repository().join("new").exists());
}

#[test]
fn what_was_downloaded_before_is_lent_and_stays_as_it_is() {
    let env = machine();
    let registry = env.home().join(".cargo/registry");
    crate::environment::write(&registry.join("crate.txt"), "a crate\n");
    crate::environment::write(&env.home().join(".cargo/credentials.toml"), "the-secret");
    let cargo = "[ $1 = check ] || exit 1; cd ~/.cargo; cat registry/crate.txt; test ! -e credentials.toml \
                 && echo spoilt > registry/crate.txt && cat registry/crate.txt";
    program(&own_programs(&env).join("cargo"), cargo);
    env.write("Cargo.toml", "[package]\n");
    let (_, document) = check(&env, &["--only", "compile,typecheck"]);
    // Each has its own view: neither sees what the other spoilt.
    for verb in ["compile", "typecheck"] {
        let found = one(&document, ".", verb);
        assert_eq!(found["output"], "a crate\nspoilt\n", "{found}");
        assert_eq!(found["status"], "passed");
    }
    let kept = fs::read_to_string(registry.join("crate.txt")).unwrap();
    assert_eq!(kept, "a crate\n");
}

#[test]
fn an_interrupt_ends_everything_and_is_130() {
    let env = machine();
    let makefile = "test:\n\t@sleep 3000 & sleep 3001\nbuild:\n\t@sleep 3002\n";
    env.write("Makefile", makefile);
    for signal in [Signal::INT, Signal::TERM] {
        let running = env.start(&["check", "--jobs", "2"]);
        for number in ["3000", "3001", "3002"] {
            await_some("all of the checks' processes", || {
                let found = processes_with(&env.marker());
                found
                    .iter()
                    .any(|line| line.contains(&format!("sleep {number}")))
                    .then_some(())
            });
        }
        running.signal(signal);
        let output = running.finish();
        assert_eq!(output.code, 130, "{output:?}");
        assert!(output.stderr.contains("Interrupted"), "{output:?}");
        assert!(
            output
                .stdout
                .contains("0 passed, 0 failed, 0 skipped, 2 stopped"),
            "{output:?}"
        );
        assert_nothing_left(&env);
    }
}

#[test]
fn what_a_killed_check_left_is_removed_by_the_next() {
    let env = machine();
    env.write(
        "Makefile",
        "test:\n\t@touch made; sleep 3000\nbuild:\n\t@true\n",
    );
    let running = env.start(&["check", "--only", "test"]);
    await_some("the check's process", || {
        let found = processes_with(&env.marker());
        found
            .iter()
            .any(|line| line.contains("sleep 3000"))
            .then_some(())
    });
    running.kill();
    env.await_no_process();
    let (_, document) = check(&env, &["--only", "build"]);
    assert_eq!(reported(&document), [". build make passed"]);
    assert_nothing_left(&env);
}

#[test]
fn without_isolation_checks_write_into_the_project_and_it_is_said() {
    let env = machine();
    env.write("Makefile", "test:\n\t@touch made; pwd\n");
    let (output, document) = check(&env, &["--only", "test", "--sandbox", "none"]);
    assert_eq!(reported(&document), [". test make passed"], "{output:?}");
    assert!(
        output.stderr.contains("note: without isolation"),
        "{output:?}"
    );
    assert!(env.repository().join("made").exists());
}
