//! An integration with real CLIs: they do the work of two goals that do not fit, one of them resolves the
//! conflict that git leaves in the files, another reviews and argues, and the result lands on `dev`.
//!
//! The resolver reads both histories within its sandbox.

use std::fs;

use kapi_testkit::agent_tools::Cli;
use kapi_testkit::model_server::record::RecordedRequest;
use kapi_testkit::model_server::scenario::{AssistantTurn, JudgeRule, ModelScenario, Route};
use serde_json::{Value, json};

use crate::environment::write;
use crate::machine::Machine;

const RESOLVER: &str = "# Your part: resolver";
const REVIEWER: &str = "# Your part: review";
const THESIS: &str = "# Your part: thesis";
const ANTITHESIS: &str = "# Your part: antithesis";
const SYNTHESIS: &str = "# Your part: synthesis";

/// What both goals change at the same line.
const LIST: &str = "first\nlast\n";
/// Reads both sides in the history, and keeps the lines of both.
const RESOLVE: &str = "git show HEAD^1:list.txt HEAD^2:list.txt && \
    sed -i -e '/^<<<<<<< /d' -e '/^||||||| /d' -e '/^=======$/d' -e '/^>>>>>>> /d' list.txt";

fn adds(word: &str) -> Route {
    Route::new(
        &format!("add {word}"),
        vec![
            AssistantTurn::bash(&format!("sed -i '1a {word}' list.txt")),
            AssistantTurn::text("It is in the list."),
        ],
    )
}

fn resolution() -> AssistantTurn {
    let answer = json!({ "options": ["Keep one of the two", "Keep both"], "choice": "Keep both",
        "rationale": "Each goal adds a word of its own.", "unresolvable": false });
    AssistantTurn::text(&format!("Both are kept.\n\n```json\n{answer:#}\n```\n"))
}

fn says(marker: &str, answer: &Value) -> JudgeRule {
    let text = format!("I read all of it.\n\n```json\n{answer:#}\n```\n");
    JudgeRule::new(marker, vec![json!(text)])
}

fn scenario() -> ModelScenario {
    let mut scenario = ModelScenario::new(vec![AssistantTurn::text("I do not know.")]);
    // The resolver is told what both goals are, so that its words come first.
    scenario.routes = vec![
        Route::new(RESOLVER, vec![AssistantTurn::bash(RESOLVE), resolution()]),
        adds("one"),
        adds("two"),
    ];
    scenario.judges = vec![
        says(
            REVIEWER,
            &json!({ "summary": "Both words are there.", "justified": [], "problems": [] }),
        ),
        says(
            THESIS,
            &json!({ "defence": "Both words are in the list.", "points": ["The checks of both pass."] }),
        ),
        says(
            ANTITHESIS,
            &json!({ "strongest": "The order is nobody's wish.", "objections": [] }),
        ),
        says(
            SYNTHESIS,
            &json!({ "verdict": "approve", "why": "Both words are there.", "answers": [] }),
        ),
    ];
    scenario
}

/// Returns the requests whose prompt has a mark.
fn of<'a>(asked: &'a [RecordedRequest], mark: &str) -> Vec<&'a RecordedRequest> {
    let of_mark = asked.iter().filter(|it| it.last_user.contains(mark));
    of_mark.collect()
}

/// Lets a CLI do the work and resolve what does not fit, and another one review it.
fn integrate(worker: Cli, reviewer: Cli) {
    let machine = Machine::new(scenario());
    let env = &machine.env;
    write(&env.repository().join("list.txt"), LIST);
    env.commit_all("a list");
    for word in ["one", "two"] {
        let (what, holds) = (format!("add {word}"), format!("grep -qx {word} list.txt"));
        let agent = worker.name();
        let run = env.kapi(&[
            "run", &what, "--yes", "--agent", agent, "--judge", "none", "--verify", &holds,
        ]);
        assert_eq!(run.code, 0, "{run:?}");
    }
    let main = env.commit_of("main");
    let proposed = env.kapi(&[
        "integrate",
        "1",
        "2",
        "--create-dev",
        "main",
        "--agent",
        worker.name(),
        "--reviewer",
        reviewer.name(),
    ]);
    assert_eq!(proposed.code, 5, "{proposed:?}");
    assert_eq!(env.kapi(&["integrate", "approve", "3", "--yes"]).code, 0);
    let done = env.kapi(&["integrate", "resume", "3"]);
    assert_eq!(done.code, 0, "{done:?}");

    assert_eq!(env.show("dev", "list.txt"), "first\none\ntwo\nlast");
    let parents = env.git(&["show", "--no-patch", "--format=%P", "dev"]);
    assert_eq!(parents.split_whitespace().count(), 2, "{parents}");
    assert_eq!(env.commit_of("main"), main);
    let id = env.json(&["status", "3"])["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let workflows = env.repository().join(".ilchul/workflows/integrate");
    let matrix = fs::read_to_string(workflows.join(id).join("conflict-matrix.md")).unwrap();
    for part in [
        "Keep one of the two",
        "> Keep both",
        "> Each goal adds a word of its own.",
    ] {
        assert!(matrix.contains(part), "{part}\n{matrix}");
    }

    let asked = machine.asked();
    let resolving = of(&asked, RESOLVER);
    // It read what the branch has and what the source brings.
    let both = "first\none\nlast\nfirst\ntwo\nlast";
    let is_read = |it: &&RecordedRequest| it.last_tool_result.contains(both);
    assert!(resolving.iter().any(is_read), "{resolving:#?}");
    let api = |mark: &str| of(&asked, mark).first().map(|it| it.api);
    assert!(api(RESOLVER).is_some() && api(REVIEWER).is_some());
    assert_ne!(api(RESOLVER), api(REVIEWER));
    assert_eq!(api(RESOLVER), api(THESIS));
    assert_ne!(api(THESIS), api(ANTITHESIS));
    machine.assert_key_is_in_no_file();
    let audit = env.kapi(&["audit"]);
    assert_eq!(audit.code, 0, "{audit:?}");
    env.await_no_process();
}

#[test]
fn a_conflict_that_claude_resolves_lands_on_dev() {
    integrate(Cli::Claude, Cli::Codex);
}

#[test]
fn a_conflict_that_codex_resolves_lands_on_dev() {
    integrate(Cli::Codex, Cli::Claude);
}
