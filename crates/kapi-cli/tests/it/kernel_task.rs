//! `kapi task`: one agent run that somebody asked for, from its submission to its end.

use serde_json::{Value, json};

use crate::environment::{Environment, for_each};
use crate::program::{Output, finish, parse};

/// Makes the answer right.
pub(crate) const HONEST: &str = "command:echo 42 > answer.txt; echo it is right";

/// Runs `kapi task run … --json` and returns its lines.
pub(crate) fn task(env: &Environment, agent: &str, options: &[&str]) -> (Output, Vec<Value>) {
    let usual = ["task", "run", "make it right", "--agent", agent, "--json"];
    let output = env.kapi(&[&usual[..], options].concat());
    let lines = output.stdout.lines().map(parse).collect();
    (output, lines)
}

/// Returns the last line of a run, which must have exited so.
pub(crate) fn result(env: &Environment, agent: &str, options: &[&str], code: i32) -> Value {
    // Which agent works is no part of what makes two requests the same.
    let is_said = options.contains(&"--key") || options.contains(&"--again");
    let again: &[&str] = if is_said { &[] } else { &["--again"] };
    let (output, lines) = task(env, agent, &[options, again].concat());
    assert_eq!(output.code, code, "{output:?}");
    let result = lines.last().cloned().unwrap_or_default();
    assert_eq!(result["type"], "result", "{output:?}");
    result
}

/// Runs `kapi` as a process of an agent's run does.
pub(crate) fn as_agent(env: &Environment, run: &str, args: &[&str]) -> Output {
    let mut command = env.command(env!("CARGO_BIN_EXE_kapi"), &env.repository());
    command.args(args).env("KAPI_RUN_ID", run);
    finish(command)
}

/// Returns the branches of tasks.
pub(crate) fn branches(env: &Environment) -> Vec<String> {
    let listed = env.git(&[
        "for-each-ref",
        "--format=%(refname:short)",
        "refs/heads/kapi",
    ]);
    listed.lines().map(str::to_owned).collect()
}

#[test]
fn a_task_is_done_on_a_branch_of_its_own_and_told_field_by_field() {
    let env = Environment::new();
    let (output, lines) = task(
        &env,
        HONEST,
        &["--description", "the answer", "--priority", "high"],
    );
    assert_eq!(output.code, 0, "{output:?}");
    let kinds: Vec<&str> = lines
        .iter()
        .map(|line| line["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds.first(), Some(&"task_submitted"), "{kinds:?}");
    assert!(kinds.contains(&"task_changed"), "{kinds:?}");
    let last = lines.last().unwrap();
    for (key, value) in [
        ("type", json!("result")),
        ("id", json!("task_1")),
        ("status", json!("completed")),
        ("agent", json!("sisyphus")),
        ("output", json!("it is right")),
        ("error", Value::Null),
        ("description", json!("the answer")),
        ("attempts", json!(1)),
        ("next", json!(["git merge kapi/task_1"])),
    ] {
        assert_eq!(last[key], value, "{key} in {last:#}");
    }
    assert_eq!(last["request"]["priority"], "high");
    assert!(last["duration"].as_u64().unwrap() > 0);
    let commit = last["work"]["commit"].as_str().unwrap();
    assert_eq!(env.commit_of("kapi/task_1"), commit);
    assert_eq!(env.show("kapi/task_1", "answer.txt"), "42");
    assert_eq!(
        env.read("answer.txt"),
        "wrong\n",
        "nothing of the checkout has changed"
    );
    assert_eq!(
        env.git(&["status", "--short"]),
        "",
        "the state ignores itself"
    );

    let mut shown = env.json(&["show", "task_1"]);
    shown["type"] = json!("result");
    assert_eq!(&shown, last);
    let log = env.kapi(&["log", "task_1"]);
    // In words, not as the transcript holds it.
    assert!(
        log.stdout.lines().any(|line| line.trim() == "it is right"),
        "{log:?}"
    );
    env.await_no_process();
}

#[test]
fn a_branch_that_cannot_be_made_is_told_before_an_agent_runs() {
    let env = Environment::new();
    env.git(&["branch", "kapi"]);
    let agent = "command:echo 42 > answer.txt; echo it ran";
    let failed = result(&env, agent, &["--retries", "2"], 5);
    assert_eq!(failed["error_kind"], "not_launched", "{failed:#}");
    let error = failed["error"].as_str().unwrap();
    assert!(error.contains("kapi/task_1"), "{failed:#}");
    assert!(failed["hint"].as_str().unwrap().contains("git branch -m"));
    assert_eq!(failed["attempts"], 1, "{failed:#}");
}

#[test]
fn work_without_a_commit_to_begin_at_stays_in_a_sandbox_that_is_named() {
    let env = Environment::bare();
    env.write("answer.txt", "wrong\n");
    let done = result(&env, HONEST, &[], 0);
    assert_eq!(done["work"]["branch"], Value::Null, "{done:#}");
    assert_eq!(done["next"], json!(["kapi sandbox merge task_1-1"]));
    let merged = env.kapi(&["sandbox", "merge", "task_1-1"]);
    assert_eq!(merged.code, 0, "{merged:?}");
    assert_eq!(env.read("answer.txt"), "42\n");
}

#[test]
fn the_same_request_is_run_once_and_answered_with_the_first_result() {
    let env = Environment::new();
    let (_, lines) = task(&env, HONEST, &[]);
    let first = lines.last().unwrap().clone();
    assert_eq!(first["status"], "completed", "{first:#}");
    let (output, lines) = task(&env, HONEST, &[]);
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(lines[0]["duplicate"], true);
    assert_eq!(lines.last().unwrap(), &first);
    let words = env.kapi(&["task", "run", "make it right", "--agent", HONEST]);
    assert!(
        words.stderr.contains("exists: task_1, completed"),
        "{words:?}"
    );
    assert!(words.stdout.contains("it is right"), "{words:?}");
    assert_eq!(branches(&env), ["kapi/task_1"]);
    // A key of the caller's is another request, and `--again` is one each time.
    assert_eq!(result(&env, HONEST, &["--key", "mine"], 0)["id"], "task_2");
    assert_eq!(result(&env, HONEST, &["--key", "mine"], 0)["id"], "task_2");
    assert_eq!(result(&env, HONEST, &["--again"], 0)["id"], "task_3");
    assert_eq!(branches(&env).len(), 3);
}

#[test]
fn how_an_attempt_fails_is_told_and_a_retry_names_what_it_repeats() {
    let env = Environment::new();
    let cases: [(&str, &[&str], &str, &str); 3] = [
        ("command:echo no; exit 3", &[], "agent", "3"),
        ("command:sleep 60", &["--timeout", "1s"], "timed_out", ""),
        (
            "command:echo 41 > answer.txt",
            &["--verify", "sh test.sh"],
            "eval_failed",
            "the answer is 41",
        ),
    ];
    for_each(&cases, |(agent, options, kind, words)| {
        let failed = result(&env, agent, options, 5);
        assert_eq!(failed["status"], "error", "{failed:#}");
        assert_eq!(failed["error_kind"], *kind, "{failed:#}");
        assert!(
            failed["error"].as_str().unwrap().contains(words),
            "{failed:#}"
        );
    });
    let unknown = env.kapi(&["task", "run", "x", "--profile", "nobody"]);
    unknown.assert_error(6, &["unknown agent profile: nobody", "oracle"]);

    let flaky = "command:[ -e again ] || { touch again; exit 3; }; echo 42 > answer.txt";
    // Each attempt begins with a workspace of its own, so it fails the same way again.
    let failed = result(&env, flaky, &["--retries", "1", "--backoff", "1ms"], 5);
    assert_eq!(
        (&failed["attempts"], &failed["retries"]),
        (&json!(2), &json!(1))
    );
    let id = failed["id"].as_str().unwrap();
    let output = env.kapi(&["task", "retry", id, "--json"]);
    let last = parse(output.stdout.lines().last().unwrap());
    assert_eq!(output.code, 5);
    assert_eq!(last["request"]["retry_of"], id, "{last:#}");
    let again = env.json(&["task", "list", "--state", "error", "--limit", "2"]);
    assert_eq!(again["tasks"].as_array().unwrap().len(), 2);
    assert_eq!(again["more"], true);
}

#[test]
fn a_proved_task_passes_on_a_clean_checkout() {
    let env = Environment::new();
    let proved = result(&env, HONEST, &["--verify", "sh test.sh"], 0);
    assert_eq!(proved["status"], "completed");
    // What is right only by a file that git does not see is not right.
    env.write(".gitignore", "hidden.txt\n");
    env.commit_all("ignore");
    let cheat = "command:echo 42 > hidden.txt; echo x > other.txt";
    let failed = result(&env, cheat, &["--verify", "grep -q 42 hidden.txt"], 5);
    assert_eq!(failed["error_kind"], "eval_failed", "{failed:#}");
}

#[test]
fn a_read_only_profile_changes_nothing_whatever_it_runs() {
    let env = Environment::new();
    let agent = "command:echo 42 > answer.txt; echo tried";
    let (output, lines) = task(&env, agent, &["--profile", "oracle"]);
    let last = lines.last().unwrap();
    assert_eq!(last["work"]["n_files"], 0, "{output:?}");
    assert_eq!(last["work"]["branch"], Value::Null, "{output:?}");
    assert_eq!(branches(&env), Vec::<String>::new());
    assert_eq!(env.read("answer.txt"), "wrong\n");
}

#[test]
fn what_is_asked_wrong_is_refused_before_anything_is_written() {
    let env = Environment::new();
    let cases: [(&[&str], i32, &str); 9] = [
        (
            &["task", "run", "   "],
            2,
            "description and prompt are required",
        ),
        (&["task", "run", "x", "--timeout", "25h"], 2, "24 hours"),
        (&["task", "run", "x", "--retries", "17"], 2, "17"),
        (&["task", "run", "x", "--priority", "soon"], 2, "soon"),
        (&["show", "task_99"], 6, "task not found: task_99"),
        (&["show", "nonsense"], 6, "there are no goals"),
        (&["task", "retry", "nonsense"], 2, "task_ and a number"),
        (&["cancel", "task_99"], 6, "task not found: task_99"),
        (&["task", "retry", "99"], 6, "task not found: task_99"),
    ];
    for (args, code, words) in cases {
        let output = env.kapi(args);
        assert_eq!(output.code, code, "{args:?}: {output:?}");
        assert!(output.stderr.contains(words), "{args:?}: {output:?}");
    }
    let log = env.repository().join(".ilchul/kernel/events.jsonl");
    assert!(!log.exists(), "a refusal leaves no record");
    // The tests' own directory may lie within a repository.
    let nowhere = tempfile::tempdir().unwrap();
    let output = env.kapi_in(nowhere.path(), &["task", "list"]);
    output.assert_error(6, &["there is no project", "git init"]);
}

#[test]
fn an_agent_runs_and_cancels_its_own_tasks_and_nobody_elses() {
    const RUN: &str = "launch-1-other-1";
    let env = Environment::new();
    let detached = |words| {
        [
            "task", "run", words, "--detach", "--json", "--agent", HONEST,
        ]
    };
    assert_eq!(env.kapi(&detached("a person's")).code, 0);
    let own = as_agent(&env, RUN, &detached("an agent's"));
    assert_eq!(own.document()["id"], "task_2", "{own:?}");
    let shown = env.json(&["show", "task_2"]);
    assert_eq!(
        shown["request"]["origin"],
        json!({"by": "agent", "run": RUN})
    );
    assert_eq!(shown["request"]["depth"], 1);
    let refused = as_agent(&env, RUN, &["cancel", "task_1"]);
    refused.assert_error(3, &["agent launch-1-other-1 cannot cancel task_1"]);
    // Another run is another agent, and a person may cancel whatever there is.
    let other = as_agent(&env, "launch-2-other-1", &["cancel", "task_2"]);
    other.assert_error(3, &["cannot cancel task_2"]);
    let cancelled = as_agent(&env, RUN, &["cancel", "task_2", "--json"]);
    assert_eq!(cancelled.document()["status"], "cancelled");
    assert_eq!(env.json(&["cancel", "task_1"])["status"], "cancelled");
}

#[test]
fn tasks_are_listed_by_where_they_stand_the_ended_ones_newest_first() {
    let env = Environment::new();
    result(&env, HONEST, &[], 0);
    result(&env, "command:exit 3", &[], 5);
    let detached = ["task", "run", "later", "--detach", "--agent", HONEST];
    assert_eq!(env.kapi(&detached).code, 0);
    let ids = |options: &[&str]| -> Vec<String> {
        let listed = env.json(&[&["task", "list"], options].concat());
        let tasks = listed["tasks"].as_array().unwrap().iter();
        tasks
            .map(|task| task["id"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(ids(&[]), ["task_3"]);
    assert_eq!(ids(&["--all"]), ["task_3", "task_2", "task_1"]);
    assert_eq!(ids(&["--all", "--limit", "2"]), ["task_3", "task_2"]);
    assert_eq!(ids(&["--state", "error"]), ["task_2"]);
    assert_eq!(
        ids(&["--state", "completed", "--state", "queued"]),
        ["task_3", "task_1"]
    );
    assert_eq!(ids(&["--all", "--loop", "nightly"]), Vec::<String>::new());
    assert_eq!(env.kapi(&["task", "list", "--state", "nowhere"]).code, 2);
    let words = env.kapi(&["task", "list", "--all"]).stdout;
    assert!(words.starts_with("○ task_3  queued  sisyphus"), "{words}");
}

#[test]
fn the_log_of_an_agent_that_said_nothing_says_so() {
    let env = Environment::new();
    result(&env, "command:true", &[], 0);
    let log = env.kapi(&["log", "task_1"]);
    assert_eq!((log.code, log.stdout.as_str()), (0, ""), "{log:?}");
    let told = "The agent of task_1 has said nothing; see `kapi show task_1`.\n";
    assert_eq!(log.stderr, told);
}

#[test]
fn a_followed_log_shows_what_is_written_and_ends_with_the_task() {
    let env = Environment::new();
    let slow = "command:echo first; while [ ! -e stop ] && [ $((n=n+1)) -lt 10 ]; do sleep 0.05; done; echo last";
    let worker = env.start(&["task", "run", "x", "--json", "--agent", slow]);
    crate::environment::await_some("the task", || {
        (env.kapi(&["show", "task_1"]).code == 0).then_some(())
    });
    let followed = env.start(&["log", "task_1", "-f", "--json"]).finish();
    assert_eq!(followed.code, 0, "{followed:?}");
    let lines: Vec<Value> = followed.stdout.lines().map(parse).collect();
    assert!(
        lines
            .iter()
            .all(|line| line["type"] == "transcript" && line["task"] == "task_1")
    );
    for word in ["first", "last"] {
        assert!(followed.stdout.contains(word), "{followed:?}");
    }
    assert_eq!(worker.finish().code, 0);
}

#[test]
fn what_a_day_may_cost_holds_the_tasks_after_it() {
    let mut env = Environment::new();
    env.at_noon();
    env.configure("[kernel]\nusd_per_day = 0.5\n");
    let dear = env.script(
        "dear.yaml",
        "turns:\n  - steps:\n      - usage: {input_tokens: 10, output_tokens: 1, usd: 1.0}\n      \
         - bash: echo 42 > answer.txt\n      - say: done\n",
    );
    assert_eq!(result(&env, &dear, &[], 0)["status"], "completed");
    let (output, _) = task(&env, &dear, &["--detach", "--again"]);
    assert_eq!(output.code, 0, "{output:?}");
    let once = env.kapi(&["up", "--once"]);
    assert_eq!(once.code, 0, "{once:?}");
    let waits = env.json(&["show", "task_2"]);
    assert_eq!(waits["status"], "queued", "{waits:#}");
    assert!(waits["waits"].to_string().contains("spend"), "{waits:#}");
    // Its person gives more, and it goes on.
    env.configure("[kernel]\nusd_per_day = 5.0\n");
    let once = env.kapi(&["up", "--once"]);
    assert_eq!(once.code, 0, "{once:?}");
    assert_eq!(env.json(&["show", "task_2"])["status"], "completed");
}
