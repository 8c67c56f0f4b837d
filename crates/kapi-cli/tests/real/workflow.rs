//! The durable modes with real CLIs: an interview, its spec, a plan with one revision, three tasks of
//! which two are done at once, a review that finds what was planted, and a closeout; and the same
//! with `kill -9` in every phase.

use std::fs;
use std::path::PathBuf;

use kapi_testkit::agent_tools::Cli;
use kapi_testkit::model_server::record::RecordedRequest;
use kapi_testkit::model_server::scenario::{AssistantTurn, JudgeRule, ModelScenario, Route};
use serde_json::{Value, json};

use crate::environment::{await_some, write};
use crate::machine::{JUDGE_MARK, Machine};
use crate::program::Output;

/// The exit code of what waits for a person.
const NOT_DONE: i32 = 5;
const INTERVIEW: &str = "001-greet-visitors-properly";
const BUILD: &str = "002-greet-visitors-everywhere";
const BRANCH: &str = "feat/ralph-greet-visitors-everywhere";

/// What only the prompt of each role holds.
const INTERVIEWER: &str = "You interview a person until it is clear what they want";
const THESIS: &str = "# Your part: thesis";
const ANTITHESIS: &str = "# Your part: antithesis";
const SYNTHESIS: &str = "# Your part: synthesis";
const REVIEWER: &str = "# Your part: review";
const ACCOUNTANT: &str = "# Your part: account";

/// An answer as agents give it: words, and one document in a fence.
fn answer(document: &Value) -> Value {
    json!(format!(
        "I looked at everything.\n\n```json\n{document:#}\n```\n"
    ))
}

fn ask(dimension: &str, text: &str, proposed: &str) -> Value {
    json!({ "do": "ask", "question": { "text": text, "dimension": dimension,
        "perspective": "breadth", "proposed": proposed } })
}

/// What the interviewer proposes, step by step.
fn interview() -> Vec<Value> {
    let item = |text: &str, round: u32| json!([{ "text": text, "rounds": [round] }]);
    let fact = json!({ "question": { "text": "How are things checked here?", "dimension": "context",
        "perspective": "researcher", "proposed": null }, "answer": "By test.sh.", "refs": ["test.sh"] });
    let steps = [
        json!({ "facts": [fact], "next": ask("goal", "Who is greeted?", "Every visitor.") }),
        json!({ "next": ask("constraints", "What must not happen?", "No new dependency.") }),
        json!({ "next": ask("success", "How does one see that it works?", "Both words, in order.") }),
        json!({ "clarity": { "goal": 950, "constraints": 900, "success": 900, "context": 900 },
            "next": { "do": "restate", "goal": "Every visitor is greeted and dismissed politely." } }),
        json!({ "clarity": { "goal": 950, "constraints": 900, "success": 900, "context": 900 },
            "next": { "do": "draft", "spec": {
            "goal": "Every visitor is greeted and dismissed politely.",
            "intent": item("Visitors should feel welcome.", 2),
            "constraints": item("No new dependency.", 3),
            "preferences": item("None stated.", 2),
            "success_criteria": [{ "text": "both.txt greets before it dismisses.",
                "verify": "test -s both.txt", "exempt": null, "rounds": [4] }],
            "methods": item("None stated; left to planning.", 2),
            "boundaries": { "may": item("Name files.", 3), "must_ask": [], "never": item("Touch answer.txt.", 3) },
            "open_questions": [],
            "non_goals": item("Other languages.", 2),
            "context": [{ "text": "Things are checked by test.sh.", "rounds": [1] }] } } }),
    ];
    steps.iter().map(answer).collect()
}

fn task(id: &str, title: &str, depends_on: &Value, file: &str) -> Value {
    json!({ "id": id, "title": title, "description": format!("Write {file}."),
        "depends_on": depends_on, "touches": [file], "isolation": "own",
        "verify": [format!("test -s {file}")], "criteria": ["AC-1"] })
}

fn plan(summary: &str) -> Value {
    json!({
        "summary": summary, "branch_type": "feat", "context": "Nothing is greeted yet.",
        "options": [
            { "name": "files", "summary": "One file for each word.", "rejected": null },
            { "name": "program", "summary": "A program that greets.", "rejected": "More than is asked." },
        ],
        "tasks": [
            task("T-001", "Greet", &json!([]), "hello.txt"),
            task("T-002", "Dismiss", &json!([]), "bye.txt"),
            task("T-003", "Both", &json!(["T-001", "T-002"]), "both.txt"),
        ],
        "criteria": [{ "id": "AC-1", "text": "both.txt greets before it dismisses.",
            "verify": "test -s both.txt", "exempt": null }],
        "excluded": ["other languages"], "risks": ["nobody reads it"],
        "verify": ["test -s hello.txt && test -s bye.txt"],
    })
}

fn synthesis(plan: &Value) -> Value {
    json!({ "verdict": "consensus", "answers": ["It stays small."], "dissent": [], "plan": plan })
}

/// What the review says first: what T-003 left is the wrong way round.
fn bug() -> Value {
    json!({ "approve": false, "summary": "Read all of it.", "replan": null, "findings": [
        { "category": "simplification", "must_fix": false, "file": null, "line": null,
          "title": "Two files would do", "detail": "hello.txt and bye.txt are only read once." },
        { "category": "correctness", "must_fix": true, "file": "both.txt", "line": 1,
          "title": "It dismisses before it greets", "detail": "both.txt begins with bye." },
    ] })
}

fn fine() -> Value {
    json!({ "approve": true, "summary": "Now it greets first.", "replan": null, "findings": [] })
}

fn work(mark: &str, command: &str) -> Route {
    Route::new(
        mark,
        vec![
            AssistantTurn::bash(command),
            AssistantTurn::text("It is there."),
        ],
    )
}

/// A model that plays every part; planners and reviewers say these things one after another.
fn scenario(plans: &[Value], reviews: &[Value]) -> ModelScenario {
    let mut scenario = ModelScenario::new(vec![AssistantTurn::text(
        "I do not know what this is about.",
    )]);
    scenario.routes = vec![
        work("Task T-001 of workflow", "echo hello > hello.txt"),
        work("Task T-002 of workflow", "echo bye > bye.txt"),
        work("Task T-003 of workflow", "cat bye.txt hello.txt > both.txt"),
        work("Task F-001 of workflow", "cat hello.txt bye.txt > both.txt"),
        work("Task F-002 of workflow", "echo mended >> both.txt"),
    ];
    let objections = json!({ "strongest": "It is a lot for two words.",
        "tension": "Files are simple, and nothing runs them.",
        "objections": [{ "text": "Why three tasks?", "blocking": false }] });
    let account = json!({ "rationale": "Each file is there and in order.",
        "risks": ["Nobody greets back."], "follow_up": ["Other languages."] });
    let verdict = json!({ "verdict": "done", "reason": "the file is there", "token": "{{token}}" });
    let all = |documents: &[Value]| documents.iter().map(answer).collect::<Vec<_>>();
    let decided: Vec<Value> = plans.iter().map(synthesis).collect();
    scenario.judges = vec![
        JudgeRule::new(INTERVIEWER, interview()),
        JudgeRule::new(THESIS, all(plans)),
        JudgeRule::new(ANTITHESIS, all(&[objections])),
        JudgeRule::new(SYNTHESIS, all(&decided)),
        JudgeRule::new(REVIEWER, all(reviews)),
        JudgeRule::new(ACCOUNTANT, all(&[account])),
        JudgeRule::new(JUDGE_MARK, vec![verdict]),
    ];
    scenario
}

const PARTIES: [&str; 6] = [
    "--agent",
    "claude",
    "--reviewer",
    "codex",
    "--judge",
    "codex",
];

fn directory(machine: &Machine, mode: &str, id: &str) -> PathBuf {
    let workflows = machine.env.repository().join(".ilchul/workflows");
    workflows.join(mode).join(id)
}

fn read(machine: &Machine, mode: &str, id: &str, name: &str) -> String {
    let file = directory(machine, mode, id).join(name);
    fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn snapshot(machine: &Machine, mode: &str, id: &str) -> Value {
    serde_json::from_str(&read(machine, mode, id, "snapshot.json")).unwrap()
}

fn events(machine: &Machine) -> Vec<Value> {
    let file = directory(machine, "ralph", BUILD).join("events.jsonl");
    let text = fs::read_to_string(file).unwrap_or_default();
    let whole = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    whole.collect()
}

fn expect(code: i32, output: &Output) {
    assert_eq!(output.code, code, "{}\n{}", output.stdout, output.stderr);
}

/// Interviews with answers from a file and approves the spec.
fn interviewed(machine: &Machine) {
    let env = &machine.env;
    let answers = env.root().join("answers.yaml");
    write(
        &answers,
        "answers:\n  - Everyone who comes in.\n  - No new dependency.\n  - Both words, in order.\n\
         otherwise: accept\n",
    );
    let answers = answers.to_str().unwrap();
    let mut args = vec![
        "deep-interview",
        "greet visitors properly",
        "--answers",
        answers,
    ];
    args.extend(&PARTIES[..2]);
    expect(NOT_DONE, &env.kapi(&args));
    let state = snapshot(machine, "deep-interview", INTERVIEW);
    assert_eq!(
        state["pendingDecision"]["decision"], "approve_interview_spec",
        "{state:#}"
    );
    let asked = read(machine, "deep-interview", INTERVIEW, "interview.md");
    for words in ["Who is greeted?", "Everyone who comes in.", "test.sh"] {
        assert!(asked.contains(words), "{words}: {asked}");
    }
    let spec = read(machine, "deep-interview", INTERVIEW, "spec.md");
    assert!(
        spec.contains("Every visitor is greeted and dismissed politely."),
        "{spec}"
    );
    expect(
        0,
        &env.kapi(&["deep-interview", "approve", "1", "--yes", "--accept-risks"]),
    );
}

/// Checks that the interviewer went on with its conversation: what it said before is in each of its
/// next requests.
fn assert_conversation(asked: &[RecordedRequest]) {
    let interviewer = asked
        .iter()
        .filter(|request| request.last_user.contains(INTERVIEWER) && !request.tools.is_empty());
    let said = interviewer.map(|request| {
        let messages = request.body["messages"].as_array().unwrap().iter();
        messages.filter(|it| it["role"] == "assistant").count()
    });
    assert_eq!(said.collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
}

/// Checks what stands in the end, for people and for programs.
fn assert_complete(machine: &Machine) {
    let state = snapshot(machine, "ralph", BUILD);
    assert_eq!(state["status"], "completed", "{state:#}");
    let env = &machine.env;
    assert_eq!(env.show(BRANCH, "hello.txt"), "hello");
    assert!(env.show(BRANCH, "both.txt").starts_with("hello\nbye"));
    // Nothing else of the repository changed, and the person's branch stands where it stood.
    let changed = env.git(&["diff", "--name-only", "main", BRANCH]);
    assert_eq!(changed, "both.txt\nbye.txt\nhello.txt");
    let linked = snapshot(machine, "deep-interview", INTERVIEW);
    assert_eq!(linked["status"], "linked", "{linked:#}");
    for name in [
        "context.md",
        "plan.md",
        "consensus.md",
        "review.md",
        "verify.md",
        "acceptance.md",
        "decision-report.md",
        "state.json",
        "snapshot.json",
        "events.jsonl",
    ] {
        assert!(!read(machine, "ralph", BUILD, name).is_empty(), "{name}");
    }
    let acceptance = read(machine, "ralph", BUILD, "acceptance.md");
    assert!(
        acceptance.contains("AC-1") && acceptance.contains("test -s both.txt"),
        "{acceptance}"
    );
    let report = read(machine, "ralph", BUILD, "decision-report.md");
    for section in [
        "Scope",
        "Inputs",
        "Conditions",
        "Options",
        "decision",
        "Rationale",
        "Verification",
        "Risks",
        "Follow-up",
    ] {
        assert!(report.contains(section), "{section}: {report}");
    }
    assert!(
        report.contains("Each file is there and in order."),
        "{report}"
    );
    machine.assert_key_is_in_no_file();
    expect(0, &env.kapi(&["audit"]));
    expect(0, &env.kapi(&["doctor", "--modes"]));
    env.await_no_process();
}

/// Tells whether both effects were under way at the same time.
fn were_together(events: &[Value], first: &str, second: &str) -> bool {
    let location = |kind: &str, name: &str| {
        events.iter().position(|event| {
            let effect = event["data"]["effect"].as_str().unwrap_or_default();
            event["type"] == kind && effect.contains(name)
        })
    };
    let begun = [first, second].map(|name| location("effect_intended", name).expect("it began"));
    let ended = [first, second].map(|name| location("effect_ended", name).expect("it ended"));
    begun.iter().max() < ended.iter().min()
}

#[test]
fn from_an_interview_to_a_closeout() {
    let plans = [
        plan("Two files and a third."),
        plan("Two files, and a third of both."),
    ];
    let machine = Machine::new(scenario(&plans, &[bug(), fine()]));
    let env = &machine.env;
    interviewed(&machine);

    let mut args = vec![
        "ralph",
        "greet visitors everywhere",
        "--from",
        "1",
        "--jobs",
        "2",
    ];
    args.extend(PARTIES);
    expect(NOT_DONE, &env.kapi(&args));
    let first = snapshot(&machine, "ralph", BUILD);
    assert_eq!(
        first["pendingDecision"]["decision"], "approve_ralph_plan",
        "{first:#}"
    );
    assert!(read(&machine, "ralph", BUILD, "plan.md").contains("Two files and a third."));

    let revised = env.kapi(&[
        "ralph",
        "resume",
        "2",
        "--revise",
        "say what the third is of",
    ]);
    expect(NOT_DONE, &revised);
    let second = snapshot(&machine, "ralph", BUILD);
    assert_ne!(
        first["pendingDecision"]["sha256"],
        second["pendingDecision"]["sha256"]
    );
    assert!(read(&machine, "ralph", BUILD, "plan.md").contains("a third of both"));
    // What was shown first is not what waits now.
    let stale = first["pendingDecision"]["sha256"].as_str().unwrap();
    assert_ne!(
        env.kapi(&["ralph", "approve", "2", "--hash", stale]).code,
        0
    );

    expect(0, &env.kapi(&["ralph", "approve", "2", "--yes"]));
    expect(0, &env.kapi(&["ralph", "resume", "2"]));
    assert_complete(&machine);
    let events = events(&machine);
    assert!(
        were_together(&events, "work-T-001", "work-T-002"),
        "{events:#?}"
    );
    let review = read(&machine, "ralph", BUILD, "review.md");
    assert!(review.contains("It dismisses before it greets"), "{review}");
    let asked = machine.asked();
    assert_conversation(&asked);
    // Both objected to and reviewed by another one than who planned and worked.
    let of = |mark: &str| {
        let of_mark = asked
            .iter()
            .filter(|request| request.last_user.contains(mark));
        of_mark.map(|request| request.api).collect::<Vec<_>>()
    };
    assert_ne!(of(THESIS).first(), of(ANTITHESIS).first());
    assert_ne!(of("Task T-001 of workflow").first(), of(REVIEWER).first());
    assert_eq!(Cli::ALL.len(), 4);
}

#[test]
fn from_an_interview_to_a_closeout_killed_in_every_phase() {
    const PHASES: [&str; 9] = [
        "thesis",
        "antithesis",
        "synthesis",
        "work-T-001",
        "land-T-001",
        "work-T-003",
        "reviewer",
        "verify-all",
        "accountant",
    ];
    let plans = [plan("Two files and a third.")];
    let machine = Machine::new(scenario(&plans, &[bug(), bug(), fine()]));
    let env = &machine.env;
    interviewed(&machine);
    let mut args = vec![
        "ralph",
        "greet visitors everywhere",
        "--from",
        "1",
        "--approve-plan",
        "auto",
    ];
    args.extend(PARTIES);
    let mut running = env.start(&args);
    for phase in PHASES {
        await_some(phase, || {
            let is_begun = |event: &Value| {
                let effect = event["data"]["effect"].as_str().unwrap_or_default();
                event["type"] == "effect_intended" && effect.contains(phase)
            };
            let begun = events(&machine).iter().any(is_begun);
            assert!(begun || !running.has_ended(), "it ended before {phase}");
            begun.then_some(())
        });
        running.kill();
        env.await_no_process();
        running = env.start(&["ralph", "resume", "2"]);
    }
    expect(0, &running.finish());
    assert_complete(&machine);
}
