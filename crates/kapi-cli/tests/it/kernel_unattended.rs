//! Tasks and loops where nobody is there: services that begin before there is anything to do, loops that
//! come with the repository, runners that keep nothing but a restored queue, keys in files.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::process::Signal;
use serde_json::json;

use crate::environment::{Environment, await_some, write};
use crate::kernel_task::{HONEST, branches, result};

/// A loop that is due every ten seconds.
const OFTEN: &str = "---\nname: often\ntrigger:\n  type: cron\n  schedule: \"*/10 * * * * *\"\n\
                        backend: claude\n---\nLook around.\n";

/// Writes a loop file, with the agent that the person's own configuration names.
fn often() -> String {
    OFTEN.replace("backend: claude\n", "")
}

/// Returns how many runs of a loop have ended.
pub(crate) fn runs(env: &Environment, name: &str) -> usize {
    let history = env.json(&["loop", "history", name]);
    history["runs"].as_array().map_or(0, Vec::len)
}

#[test]
fn up_waits_in_a_project_where_there_is_nothing_to_do_yet() {
    let env = Environment::new();
    env.kapi(&["up", "--once"])
        .assert_error(6, &["there are no goals, tasks or loops"]);
    let mut up = env.start(&["up"]);
    up.await_notice(&|line| line.contains("Waiting: there are no goals"));
    let detached = [
        "task",
        "run",
        "make it right",
        "--detach",
        "--agent",
        HONEST,
    ];
    assert_eq!(env.kapi(&detached).code, 0);
    up.await_line(&|line| line.contains("task_1  completed"));
    assert_eq!(env.kapi(&["wait", "task_1"]).code, 0);
    up.signal(Signal::INT);
    assert_eq!(up.finish().code, 130);
}

#[test]
fn a_loop_that_the_repository_brings_runs_by_hand_and_by_itself_once_it_is_enabled() {
    let env = Environment::new();
    env.configure("[kernel]\ndefault_backend = \"command:echo looked\"\n");
    env.write(".ilchul/loops/often.md", &often());
    env.git(&["add", "--force", ".ilchul/loops"]);
    env.git(&["commit", "--quiet", "-m", "a loop for everybody"]);
    let once = env.kapi(&["up", "--once"]);
    assert_eq!(once.code, 0, "{once:?}");
    let listed = env.kapi(&["loop", "list"]);
    assert!(
        listed.stdout.contains("kapi loop enable often"),
        "{listed:?}"
    );
    let by_hand = env.kapi(&["loop", "run", "often"]);
    assert_eq!(by_hand.code, 0, "{by_hand:?}");
    assert_eq!(env.kapi(&["loop", "enable", "often"]).code, 0);
    await_some("a run by the clock", || {
        assert_eq!(env.kapi(&["up", "--once"]).code, 0);
        (runs(&env, "often") >= 2).then_some(())
    });
    // Goals in the same place are still nobody's.
    env.run("command:true", &["--turns", "1"]);
    env.git(&["add", "--force", ".ilchul/goals"]);
    env.git(&["commit", "--quiet", "-m", "and a goal"]);
    env.kapi(&["up", "--once"])
        .assert_error(3, &["the repository contains goals", "hint: "]);
}

/// Copies a directory with everything in it.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_fresh_runner_goes_on_with_a_restored_queue() {
    let first = Environment::new();
    let backend = "[kernel]\ndefault_backend = \"command:echo looked\"\n";
    first.configure(backend);
    first.write(".ilchul/loops/often.md", &often());
    first.git(&["add", "--force", ".ilchul/loops"]);
    first.git(&["commit", "--quiet", "-m", "a loop for everybody"]);
    assert_eq!(first.kapi(&["loop", "enable", "often"]).code, 0);
    assert_eq!(first.kapi(&["up", "--once", "--restored"]).code, 0);
    let before = runs(&first, "often");

    // Another machine, with a clone of its own: only the queue is brought there.
    let second = Environment::bare();
    second.configure(backend);
    let url = first.repository().display().to_string();
    second.git(&["pull", "--quiet", &url, "main"]);
    let kernel = ".ilchul/kernel";
    copy(
        &first.repository().join(kernel),
        &second.repository().join(kernel),
    );
    second
        .kapi(&["up", "--once"])
        .assert_error(3, &["come from elsewhere", "kapi task adopt"]);
    await_some("a run of the second machine", || {
        let once = second.kapi(&["up", "--once", "--restored"]);
        assert_eq!(once.code, 0, "{once:?}");
        (runs(&second, "often") > before).then_some(())
    });
    second
        .kapi(&["up", "--restored"])
        .assert_error_among_talk(2, &["--once"]);
}

#[test]
fn a_task_starts_from_the_commit_that_is_named() {
    let env = Environment::new();
    let base = env.commit_of("HEAD");
    env.write("later.txt", "later\n");
    env.commit_all("later");
    let ended = result(
        &env,
        HONEST,
        &["--base", "HEAD~1", "--verify", "sh test.sh"],
        0,
    );
    assert_eq!(ended["work"]["branch"], "kapi/task_1", "{ended:#}");
    assert_eq!(env.commit_of("kapi/task_1~1"), base);
    assert_eq!(branches(&env), ["kapi/task_1"]);
    let args = ["task", "run", "x", "--agent", HONEST, "--base", "nowhere"];
    env.kapi(&args).assert_error_among_talk(2, &["nowhere"]);
}

#[test]
fn a_key_in_a_file_is_found_by_a_service_and_refused_where_others_can_read_it() {
    let env = Environment::new();
    let path = env.home().join(".config/kapi/keys/ANTHROPIC_API_KEY");
    write(&path, "sk-from-a-file\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    env.kapi(&["doctor", "--agents", "--json"])
        .assert_error(2, &["others can read the key", "chmod 600"]);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let shown = env.kapi(&["doctor", "--agents", "--json"]).document();
    let agents = shown["backends"].as_array().unwrap();
    let claude = agents
        .iter()
        .find(|agent| agent["name"] == "claude")
        .unwrap();
    assert_eq!(claude["logged_in"], true, "{claude:#}");
}

#[test]
fn an_agent_that_is_not_installed_is_named_where_it_is_written() {
    let mut env = Environment::new();
    // Only what the system needs, and so no agent.
    env.set("PATH", "/usr/bin:/bin");
    env.write(".pi/loops/often.md", OFTEN);
    env.write(
        ".pi/agents/own.md",
        "---\nname: own\ndescription: mine\nbackend: codex\n---\nWork.\n",
    );
    env.configure("[kernel]\ndefault_backend = \"gemini\"\n");
    let listed = env.kapi(&["loop", "list"]);
    assert_eq!(listed.code, 0, "{listed:?}");
    for place in [
        ".pi/loops/often.md:6: `backend`: claude is not installed; install it with",
        ".pi/agents/own.md:4: `backend`: codex is not installed",
        "config.toml:2: `default_backend`: gemini is not installed",
    ] {
        assert!(listed.stdout.contains(place), "{place}: {listed:?}");
    }
    let warnings = env.json(&["dashboard"])["warnings"].to_string();
    assert!(warnings.contains("claude is not installed"), "{warnings}");
}

#[test]
fn a_loop_whose_limit_nobody_could_measure_is_not_triggered_and_told_where() {
    let env = Environment::new();
    env.configure("[kernel]\ndefault_backend = \"command:echo looked\"\n");
    let limited = often().replace("trigger:", "budget: {maxCostUsd: 2}\ntrigger:");
    env.write(".ilchul/loops/often.md", &limited);
    let place = ".ilchul/loops/often.md:3: `budget`: command does not report its cost";
    let listed = env.kapi(&["loop", "list"]);
    assert!(listed.stdout.contains(place), "{listed:?}");
    env.kapi(&["loop", "run", "often"])
        .assert_error(2, &["command does not report its cost"]);
    for _ in 0..2 {
        let once = env.kapi(&["up", "--once"]);
        assert_eq!(once.code, 0, "{once:?}");
        assert!(
            once.stderr.contains(place) || once.stdout.contains(place),
            "{once:?}"
        );
    }
    assert_eq!(env.json(&["task", "list", "--all"])["tasks"], json!([]));
}

#[test]
fn the_shipped_profiles_work_with_the_agent_that_works_on_goals() {
    let env = Environment::new();
    env.configure("[goal]\nagent = \"command:echo 42 > answer.txt\"\n");
    let done = env.kapi(&["task", "run", "make it right", "--verify", "sh test.sh"]);
    assert_eq!(done.code, 0, "{done:?}");
    env.kapi(&["task", "run", "again", "--usd", "2"])
        .assert_error_among_talk(
            2,
            &["command does not report its cost", "`--tokens` or `--time`"],
        );
}
