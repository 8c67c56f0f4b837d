//! `kill -9` at any moment, then `kapi resume`: the same tree, one commit, nothing left behind.
//!
//! The agent appends to a file and leaves processes running, so that a turn played twice on top of
//! itself, or a tree that was not swept, would show.

use std::fs::File;
use std::hint::spin_loop;
use std::io::Read as _;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::environment::{
    BRANCH, Environment, FIRST, await_some, for_each, processes_with, usual, write,
};
use crate::program::{Run, Running};

/// Three turns, none of which can be repeated without a trace.
const AGENT: &str = "command:setsid sleep 3000 >/dev/null 2>&1 </dev/null &
(sleep 3000 >/dev/null 2>&1 </dev/null &)
for word in a b c; do echo $KAPI_TURN-$word >> diary.txt; sleep 0.02; done
[ $KAPI_TURN -lt 3 ] || echo 42 > answer.txt";
const JUDGE: &str = r#"command:sleep 0.05; echo '{"verdict": "done", "reason": "fine"}'"#;
const DIARY: &str = "1-a\n1-b\n1-c\n2-a\n2-b\n2-c\n3-a\n3-b\n3-c";
const VERIFY: &str = "sleep 0.05; sh test.sh";
/// How many moments there are.
const MOMENTS: usize = 10;
/// The longest time between an event and the kill, in microseconds.
const DELAY_US_MAX: u64 = 120_000;

/// When to kill: so long after the log has so many events.
#[derive(Debug, Clone, Copy)]
struct Moment {
    events: usize,
    delay: Duration,
}

#[test]
fn a_kill_at_any_moment_loses_nothing() {
    let seed = seed();
    let (tree, n_events) = undisturbed();
    let mut random = Random(seed);
    let moments: Vec<Moment> = (0..MOMENTS).map(|_| random.moment(1, n_events)).collect();
    for_each(&moments, |moment| {
        let reported = format!("KAPI_TEST_SEED={seed} {moment:?}");
        let env = Environment::new();
        kill_at(&env, *moment);
        if !is_done(&env) {
            let run = Run::from(env.kapi(&["resume", "1", "--yes", "--json"]));
            assert_eq!((run.status(), run.code), ("done", 0), "{reported}: {run:?}");
        }
        assert_as_if_nothing_had_happened(&env, &tree, &reported);
    });
}

#[test]
fn a_goal_that_is_killed_again_and_again_gets_there() {
    let seed = seed();
    let (tree, n_events) = undisturbed();
    let mut random = Random(seed);
    let env = Environment::new();
    kill_at(&env, random.moment(1, 4));
    for _ in 0..MOMENTS {
        if is_done(&env) {
            break;
        }
        // Most kills come before the next event, so that recovery itself is killed too.
        let events = env.events(FIRST).len();
        let moment = random.moment(events, (events + 3).min(n_events));
        let running = env.start(&["resume", "1", "--yes", "--json"]);
        await_moment(&env, moment);
        running.kill();
        env.await_no_process();
    }
    if !is_done(&env) {
        Run::from(env.kapi(&["resume", "1", "--yes", "--json"])).assert_status("done", 0);
    }
    assert_as_if_nothing_had_happened(&env, &tree, &format!("KAPI_TEST_SEED={seed}"));
}

#[test]
fn a_kill_inside_each_effect_is_repaired() {
    let (tree, _) = undisturbed();
    let effects = [
        "t000-workspace-a1",
        "t001-agent-a1",
        "t001-commit-a1",
        "t002-verify-a1",
        "t003-judge-a1",
        "t003-publish-a1",
    ];
    for_each(&effects, |&effect| {
        let env = Environment::new();
        let running = start(&env);
        env.await_event(FIRST, &|event| event["data"]["effect"] == effect);
        running.kill();
        env.await_no_process();
        // The last effect may be over before the kill arrives.
        if !is_done(&env) {
            let run = env.resume("1");
            assert_eq!((run.status(), run.code), ("done", 0), "{effect}: {run:?}");
        }
        assert_as_if_nothing_had_happened(&env, &tree, effect);
    });
}

#[test]
fn a_killed_run_without_a_sandbox_leaves_no_process_either() {
    let env = Environment::new();
    let agent = "command:setsid sleep 3000 >/dev/null 2>&1 </dev/null &
        [ -e ../second ] || { touch ../second; sleep 3000; }
        echo 42 > answer.txt";
    let running = env.start_run(agent, &["--sandbox", "none"]);
    await_some("the agent's sleeps", || {
        let processes = processes_with(&env.marker());
        let is_sleep = |line: &&String| line.ends_with(" sleep 3000 ");
        (processes.iter().filter(is_sleep).count() >= 2).then_some(())
    });
    running.kill();
    env.await_no_process();
    env.resume("1").assert_status("done", 0);
    env.await_no_process();
}

#[test]
fn a_polite_kill_stops_cleanly_after_the_agent() {
    let (tree, _) = undisturbed();
    // What it hears the signal in, and what does not end before it is let, should that be over already.
    let cases = [
        ("t001-verify-a1", "t001-verify-a1", Signal::TERM),
        ("t003-judge-a1", "t003-judge-a1", Signal::HUP),
        ("t003-commit-a1", "t003-verify-a1", Signal::INT),
    ];
    for_each(&cases, |&(effect, hangs, signal)| {
        let env = Environment::new();
        let gate = env.root().join("gate");
        write(&gate.join("shut"), "");
        env.configure(&format!("[sandbox]\nread_only = [{gate:?}]\n"));
        let open = gate.join("open");
        let waits = format!("until [ -e {} ]; do sleep 0.05; done", open.display());
        let hangs = format!("case $KAPI_RUN_ID in *-{hangs}) {waits};; esac; ");
        let judge = JUDGE.replacen("command:", &format!("command:{hangs}"), 1);
        let running = start_with(&env, &judge, &format!("{hangs}{VERIFY}"));
        env.await_event(FIRST, &|event| event["data"]["effect"] == effect);
        running.signal(signal);
        let stopped = Run::from(running.finish());
        assert_eq!(
            (stopped.status(), stopped.code),
            ("paused", 130),
            "{effect}: {stopped:?}"
        );
        assert_eq!(stopped.result["next"][0], "kapi resume 001");
        env.await_no_process();
        write(&open, "");
        env.resume("1").assert_status("done", 0);
        assert_as_if_nothing_had_happened(&env, &tree, effect);
    });
}

/// Runs the goal without any kill, and returns its tree and the number of its events.
fn undisturbed() -> (String, usize) {
    let env = Environment::new();
    let run = Run::from(start(&env).finish());
    run.assert_status("done", 0);
    let tree = env.commit_of(&format!("{BRANCH}^{{tree}}"));
    let n_events = env.events(FIRST).len();
    assert_as_if_nothing_had_happened(&env, &tree, "undisturbed");
    (tree, n_events)
}

fn start(env: &Environment) -> Running {
    start_with(env, JUDGE, VERIFY)
}

fn start_with(env: &Environment, judge: &str, verify: &str) -> Running {
    let options = [
        "--judge",
        judge,
        "--verify",
        verify,
        "--protect",
        "test.sh",
        "--json",
    ];
    env.start(&usual(AGENT, &options))
}

/// Starts the goal and kills it at a moment.
fn kill_at(env: &Environment, moment: Moment) {
    let running = start(env);
    await_moment(env, moment);
    running.kill();
    // Before anybody resumes: the kernel takes the agent's tree away, not a later command.
    env.await_no_process();
}

fn await_moment(env: &Environment, moment: Moment) {
    env.await_record(&env.goal_dir(FIRST), "enough events", || {
        (env.events(FIRST).len() >= moment.events).then_some(())
    });
    // This is the moment itself, not a wait for something.
    let began = Instant::now();
    while began.elapsed() < moment.delay {
        spin_loop();
        thread::yield_now();
    }
}

fn is_done(env: &Environment) -> bool {
    let events = env.events(FIRST);
    events
        .last()
        .is_some_and(|event| event["type"] == "goal_done")
}

fn assert_as_if_nothing_had_happened(env: &Environment, tree: &str, reported: &str) {
    env.await_no_process();
    let branch_tree = env.commit_of(&format!("{BRANCH}^{{tree}}"));
    assert_eq!(env.show(BRANCH, "diary.txt"), DIARY, "{reported}");
    assert_eq!(branch_tree, tree, "{reported}");
    assert_eq!(
        env.git(&["rev-list", "--count", &format!("main..{BRANCH}")]),
        "1",
        "{reported}"
    );
    assert_eq!(
        env.git(&["rev-parse", &format!("{BRANCH}^")]),
        env.commit_of("main"),
        "{reported}"
    );
    let events = env.events(FIRST);
    let done = events
        .iter()
        .filter(|event| event["type"] == "goal_done")
        .count();
    assert_eq!(done, 1, "{reported}");
    let worktrees = env.git(&["worktree", "list", "--porcelain"]);
    assert_eq!(
        worktrees.matches("worktree ").count(),
        2,
        "{reported}: {worktrees}"
    );
    assert!(!worktrees.contains("prunable"), "{reported}: {worktrees}");
    let audit = env.kapi(&["audit", "--json"]);
    assert_eq!(audit.code, 0, "{reported}: {audit:?}");
    let goals = env.json(&["status"])["goals"].as_array().unwrap().len();
    assert_eq!(goals, 1, "{reported}");
    assert_eq!(env.git(&["status", "--porcelain"]), "", "{reported}");
}

/// Returns the seed to repeat a failure with, or a new one.
fn seed() -> u64 {
    if let Ok(text) = std::env::var("KAPI_TEST_SEED") {
        return text.parse().unwrap();
    }
    let mut bytes = [0; 4];
    File::open("/dev/urandom")
        .unwrap()
        .read_exact(&mut bytes)
        .unwrap();
    u64::from(u32::from_le_bytes(bytes))
}

/// SplitMix64: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a moment after at least `from` and fewer than `to` events.
    fn moment(&mut self, from: usize, to: usize) -> Moment {
        let span = to.saturating_sub(from).max(1) as u64;
        let events = from + usize::try_from(self.next() % span).unwrap();
        let delay = Duration::from_micros(self.next() % DELAY_US_MAX);
        Moment { events, delay }
    }
}
