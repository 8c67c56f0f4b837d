//! The agent's tools from a shell inside a real run: every tool accepted once, and every refusal by
//! its code.

use std::fmt::Write as _;

use serde_json::Value;

use crate::containers::Containers;
use crate::environment::{BRANCH, Environment, FIRST};
use crate::program::Run;

/// One call: what it is called here, the words after `kapi agent`, and its standard input.
type Call<'a> = (&'a str, &'a str, &'a str);

const TASKS: &str = r#"{"tasks":[{"id":"T-1","title":"one","phase":"red"},
    {"id":"T-2","title":"two","phase":"green","dependencies":["T-1"]}]}"#;

/// An agent that makes these calls in its turn and others once the goal is done, and says each
/// answer: `@@`, the call, the exit code, the answer.
fn agent(work: &[Call<'_>], after: &[Call<'_>]) -> String {
    let lines = |calls: &[Call<'_>]| {
        let mut script = String::new();
        for (name, words, input) in calls {
            let input = input.replace('\n', " ");
            writeln!(
                script,
                "said=$(printf '%s' '{input}' | kapi agent {words}); echo \"@@{name} $? $said\""
            )
            .unwrap();
        }
        script
    };
    format!(
        "command:if kapi agent status < /dev/null | grep -q '\"status\":\"done\"'; then :\n{}\
         else\n{}echo 42 > answer.txt; fi",
        lines(after),
        lines(work)
    )
}

/// Returns the answer to a call, having checked that its exit code says the same.
fn answer(run: &Run, name: &str) -> Value {
    let said = run.said();
    let mark = format!("@@{name} ");
    let mut lines = said.lines().filter_map(|line| line.strip_prefix(&mark));
    let line = lines
        .next()
        .unwrap_or_else(|| panic!("no answer called {name} in {said}"));
    let (code, text) = line.split_once(' ').unwrap();
    let answer: Value = serde_json::from_str(text).unwrap();
    let is_ok = answer["ok"] == true;
    assert_eq!(code, if is_ok { "0" } else { "1" }, "{name}: {answer}");
    answer
}

fn assert_refused(run: &Run, name: &str, code: &str) {
    let answer = answer(run, name);
    assert_eq!(answer["reason"], code, "{name}: {answer}");
    assert!(!answer["message"].as_str().unwrap().is_empty());
}

fn kinds(env: &Environment) -> Vec<String> {
    let events = env.events(FIRST);
    let kinds = events.iter().map(|event| event["type"].as_str().unwrap());
    kinds.map(str::to_owned).collect()
}

/// A call and the code it is refused with; `None` where it is accepted.
type Case<'a> = (Call<'a>, Option<&'a str>);

fn calls<'a>(cases: &[Case<'a>]) -> Vec<Call<'a>> {
    cases.iter().map(|(call, _)| *call).collect()
}

/// Runs a goal by its tools to its end, on a level.
fn check_level(env: &Environment, options: &[&str]) -> Run {
    let work = [
        ("plan", "plan", TASKS),
        (
            "update",
            "task-update T-1 --status done --learning seen",
            "",
        ),
        (
            "last",
            "task-update",
            r#"{"id":"T-2","patch":{"status":"done"}}"#,
        ),
        ("progress", "progress 'half way' --phase green", ""),
        (
            "complete",
            "complete --evidence 'it is 42' --summary done",
            "",
        ),
    ];
    let after = [(
        "distill",
        "distill",
        r##"{"prdMarkdown":"# What was learnt"}"##,
    )];
    let run = env.run(&agent(&work, &after), options);
    run.assert_status("done", 0);
    assert_eq!(run.result["turns"], 1);
    for name in ["plan", "update", "last", "progress", "complete", "distill"] {
        assert_eq!(answer(&run, name)["ok"], true, "{name}");
    }
    let plan = answer(&run, "plan");
    assert_eq!(plan["currentTask"]["id"], "T-1");
    assert_eq!(plan["tasks"]["total"], 2);
    assert_eq!(answer(&run, "update")["currentTask"]["id"], "T-2");
    assert_eq!(answer(&run, "progress")["phase"], "green");
    run
}

#[test]
fn a_goal_goes_by_its_tools_at_the_native_level() {
    let env = Environment::new();
    check_level(&env, &[]);
    let kinds = kinds(&env);
    for kind in [
        "plan_made",
        "task_updated",
        "progress_noted",
        "turn_declared",
        "journey_distilled",
    ] {
        assert!(kinds.iter().any(|it| it == kind), "{kind} in {kinds:?}");
    }
    let runs: Vec<String> = env
        .events(FIRST)
        .iter()
        .filter(|event| event["actor"]["kind"] == "agent")
        .map(|event| event["actor"]["run"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(runs.len(), 6, "{runs:?}");
    assert!(runs.iter().all(|run| run.starts_with(FIRST)), "{runs:?}");
    env.await_no_process();
}

#[test]
fn a_goal_goes_by_its_tools_without_isolation() {
    let env = Environment::new();
    check_level(&env, &["--sandbox", "none"]);
}

#[test]
fn a_goal_goes_by_its_tools_in_a_container() {
    let mut env = Environment::new();
    let _containers = Containers::new(&mut env);
    check_level(&env, &["--sandbox", "podman"]);
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table of every tool and code")]
fn every_refusal_within_a_turn_has_its_code() {
    let env = Environment::new();
    let task = |id: &str, more: &str| format!(r#"{{"id":"{id}","title":"t","phase":"red"{more}}}"#);
    let tasks = |list: &[String]| format!(r#"{{"tasks":[{}]}}"#, list.join(","));
    let unknown = tasks(&[task("T-1", r#","dependencies":["T-9"]"#)]);
    let twice = tasks(&[task("T-1", ""), task("T-1", "")]);
    let circle = tasks(&[
        task("T-1", r#","dependencies":["T-2"]"#),
        task("T-2", r#","dependencies":["T-1"]"#),
    ]);
    let early = tasks(&[task("T-1", r#","status":"done""#)]);
    let blank = tasks(&[r#"{"id":"T-1","title":" ","phase":"red"}"#.to_owned()]);
    let insert = |id: &str| {
        let task = task(id, "");
        format!(r#"{{"operations":[{{"op":"insert","task":{task}}}],"reason":"r"}}"#)
    };
    let reorder =
        r#"{"operations":[{"op":"reorder","taskId":"T-1","dependencies":["T-2"]}],"reason":"r"}"#;
    let no_reason = insert("T-5").replace(r#""reason":"r""#, r#""reason":" ""#);
    let remove_unknown = r#"{"operations":[{"op":"remove","taskId":"T-9"}],"reason":"r"}"#;
    let set = r#"{"goal":"g","doneCriteria":"d","askBefore":[],"decisionStyle":"s",
        "goalType":"ticket","surfaces":[],"sameModelJudge":true}"#;
    let (insert_new, done) = (insert("T-5"), r#"{"id":"T-1","patch":{"status":"done"}}"#);
    let work: &[Case<'_>] = &[
        (("set", "set", set), Some("goal_exists")),
        (("no-plan", "replan", &insert_new), Some("preflight")),
        (
            ("no-task", "task-update T-1 --status done", ""),
            Some("not_found"),
        ),
        (("empty", "plan", r#"{"tasks":[]}"#), Some("empty_plan")),
        (("unknown", "plan", &unknown), Some("unknown_dep")),
        (("twice", "plan", &twice), Some("duplicate_id")),
        (("circle", "plan", &circle), Some("cycle")),
        (("early", "plan", &early), Some("done_already")),
        (("blank", "plan", &blank), Some("task_invalid")),
        (
            ("shape", "plan", r#"{"tasks":[{"id":"T-1"}]}"#),
            Some("bad_input"),
        ),
        (("json", "plan", "{"), Some("bad_input")),
        (
            ("field", "plan", r#"{"tasks":[],"force":true}"#),
            Some("bad_input"),
        ),
        (("plan", "plan", TASKS), None),
        (("again", "plan", TASKS), Some("plan_exists")),
        (("reason", "replan", &no_reason), Some("preflight")),
        (("remove", "replan", remove_unknown), Some("op_invalid")),
        (("reorder", "replan", reorder), Some("cycle")),
        (("replan", "replan", &insert_new), None),
        (("update", "task-update", done), None),
        (
            ("reopen", "task-update T-1 --status pending", ""),
            Some("done_immutable"),
        ),
        (
            ("status-word", "task-update T-2 --status finished", ""),
            Some("bad_input"),
        ),
        (("note", "progress ' '", ""), Some("bad_input")),
        (
            ("block", "block", r#"{"question":"","reason":"r"}"#),
            Some("bad_input"),
        ),
        (
            ("outside", "wait --file ../x --reason r", ""),
            Some("bad_wait"),
        ),
        (
            ("past", "wait --seconds 0 --reason r", ""),
            Some("bad_wait"),
        ),
        (
            ("often", "wait --command true --every 1 --reason r", ""),
            Some("bad_wait"),
        ),
        (
            ("evidence", "complete --evidence ' '", ""),
            Some("bad_input"),
        ),
        (("distil", "distill --markdown text", ""), Some("not_done")),
        (("skip", "task-update T-2 --status skipped", ""), None),
        (("skip5", "task-update T-5 --status skipped", ""), None),
        (("status", "status", ""), None),
        (("complete", "complete --evidence seen", ""), None),
    ];
    let after: &[Case<'_>] = &[
        (("d-set", "set", set), Some("goal_exists")),
        (("d-plan", "plan", TASKS), Some("wrong_status")),
        (("d-replan", "replan", &insert_new), Some("preflight")),
        (("d-update", "task-update", done), Some("no_active_goal")),
        (("d-progress", "progress n", ""), Some("no_active_goal")),
        (
            ("d-complete", "complete --evidence e", ""),
            Some("no_active_goal"),
        ),
        (
            ("d-block", "block --question q --reason r", ""),
            Some("no_active_goal"),
        ),
        (
            ("d-wait", "wait --seconds 60 --reason r", ""),
            Some("no_active_goal"),
        ),
        (("d-blank", "distill --markdown ' '", ""), Some("bad_input")),
    ];
    let run = env.run(
        &agent(&calls(work), &calls(after)),
        &["--turn-timeout", "120s"],
    );
    run.assert_status("done", 0);
    for ((name, _, _), code) in work.iter().chain(after) {
        match code {
            Some(code) => assert_refused(&run, name, code),
            None => assert_eq!(answer(&run, name)["ok"], true, "{name}"),
        }
    }
    // A refused call leaves no event.
    let n_reported = |kind: &str| kinds(&env).iter().filter(|it| *it == kind).count();
    assert_eq!(
        (
            n_reported("plan_made"),
            n_reported("replanned"),
            n_reported("task_updated")
        ),
        (1, 1, 3)
    );
    let message = answer(&run, "shape")["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(message.starts_with("tasks[0]"), "{message}");
}

#[test]
fn a_question_blocks_the_goal_when_the_turn_ends() {
    let env = Environment::new();
    let calls = [(
        "block",
        "block --question 'Which answer?' --reason 'two fit'",
        "",
    )];
    let run = env.run(
        &agent(&calls, &[]).replace("echo 42 > answer.txt", "true"),
        &[],
    );
    run.assert_status("blocked", 5);
    assert!(run.reason().contains("Which answer?"), "{}", run.reason());
    assert_eq!(answer(&run, "block")["ok"], true);
}

#[test]
fn outside_of_a_run_an_agent_proposes_and_looks() {
    let env = Environment::new();
    env.configure("[goal]\nagent = \"command:echo 42 > answer.txt\"\n");
    let call = |words: &[&str], input: &str| {
        let file = env.root().join("input.json");
        crate::environment::write(&file, input);
        let mut command = env.command(env!("CARGO_BIN_EXE_kapi"), &env.repository());
        command.arg("agent").args(words);
        command.stdin(std::fs::File::open(file).unwrap());
        let output = crate::program::finish(command);
        let answer: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(output.code, i32::from(answer["ok"] != true), "{answer}");
        answer
    };
    assert_eq!(call(&["status"], "")["reason"], "no_active_goal");
    let set = r#"{"goal":"make the answer right","doneCriteria":"it is 42","askBefore":[],
        "decisionStyle":"decide","goalType":"ticket","surfaces":[],
        "verifyCommand":"sh test.sh","maxTurns":7,"sameModelJudge":false}"#;
    let proposed = call(&["set"], set);
    assert_eq!(proposed["reason"], "not_confirmed", "{proposed}");
    let hash = proposed["contractHash"].as_str().unwrap();
    let message = proposed["message"].as_str().unwrap();
    let line = format!("kapi goal approve {FIRST} --hash {hash}");
    assert!(message.contains(&line), "{message}");
    let status = call(&["status", "1"], "");
    assert_eq!(status["state"]["status"], "proposed", "{status}");
    assert_eq!(status["state"]["maxTurns"], 7);
    assert_eq!(status["contractHash"], hash);
    assert_eq!(status["verify"], serde_json::json!(["sh test.sh"]));
    assert_eq!(env.events(FIRST)[0]["actor"]["kind"], "agent");
    for (verb, input) in [
        ("plan", TASKS),
        ("complete", r#"{"evidence":"e"}"#),
        ("distill", r#"{"prdMarkdown":"m"}"#),
    ] {
        assert_eq!(call(&[verb], input)["reason"], "wrong_run", "{verb}");
    }
    assert_eq!(call(&["set"], r#"{"goal":"g"}"#)["reason"], "bad_input");
    assert_eq!(call(&["status", "99"], "")["reason"], "not_found");
}

#[test]
fn a_process_of_a_run_whose_tools_are_gone_is_told_so() {
    let env = Environment::new();
    let verify = "kapi_tools=$KAPI_AGENT_TOOLS; test -z \"$kapi_tools\" && sh test.sh";
    let kapi = env!("CARGO_BIN_EXE_kapi");
    let agent = format!(
        "command:echo 42 > answer.txt; KAPI_AGENT_TOOLS=$PWD/gone {kapi} agent progress n > said; \
         env -u KAPI_AGENT_TOOLS {kapi} agent set < /dev/null > unsaid; true"
    );
    let options = ["--sandbox", "none", "--verify", verify];
    env.run(&agent, &options).assert_status("done", 0);
    let said: Value = serde_json::from_str(&env.show(BRANCH, "said")).unwrap();
    assert_eq!(said["reason"], "unreachable", "{said}");
    let unsaid: Value = serde_json::from_str(&env.show(BRANCH, "unsaid")).unwrap();
    assert_eq!(unsaid["ok"], false, "{unsaid}");
}
