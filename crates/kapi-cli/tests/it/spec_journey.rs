//! Pi-until-done's "Live YAML on disk" and its looking verbs, on a goal whose plan is being worked on.
//!
//! What the files say field by field is tested beside the rules that write them.

use std::fs;

use serde_json::json;

use crate::environment::{Environment, FIRST, await_some};
use crate::program::Run;

/// Plans, replans and notes in its first attempt and stays there; finishes in the next.
const AGENT: &str = r##"command:
call() { printf '%s' "$2" | kapi agent $1 > "$HOME/last.json" || cat "$HOME/last.json" >&2; }
case $KAPI_RUN_ID in
*-agent-a1)
  call plan '{"tasks":[{"id":"T-1","title":"one","phase":"red"},{"id":"T-2","title":"two","phase":"green","dependencies":["T-1"]}]}'
  call task-update '{"id":"T-1","patch":{"status":"done","addLearning":"the port is taken"}}'
  call replan '{"operations":[{"op":"insert","task":{"id":"T-3","title":"three","phase":"cleanup","dependencies":["T-2"]}}],"reason":"a third one surfaced"}'
  call progress '{"note":"half way","phase":"refactor"}'
  sleep 3000;;
*-agent-*)
  call task-update '{"id":"T-2","patch":{"status":"done"}}'
  call task-update '{"id":"T-3","patch":{"status":"skipped"}}'
  call complete '{"evidence":"it is 42"}'
  echo 42 > answer.txt;;
*-distill-*)
  call distill '{"prdMarkdown":"# What the agent would do next time"}';;
esac"##;

#[test]
fn tasks_yaml_and_the_looking_verbs_follow_the_plan_while_the_goal_runs() {
    let env = Environment::new();
    let running = env.start_run(AGENT, &[]);
    env.await_event(FIRST, &|event| event["type"] == "progress_noted");
    let path = env.json(&["goal", "plan"])["path"].clone();
    let path = path.as_str().unwrap().to_owned();
    assert!(
        path.ends_with(&format!("goals/{FIRST}/tasks.yaml")),
        "{path}"
    );
    let yaml = await_some("the file shows the note's phase", || {
        let text = fs::read_to_string(&path).ok()?;
        text.contains("phase: refactor\n").then_some(text)
    });
    for line in [
        "\ncurrentTaskId: T-2\n",
        "budget: { used: 0, max: 20 }\n",
        "  - id: T-3\n",
        "the port is taken",
        "replan: a third one surfaced",
    ] {
        assert!(yaml.contains(line), "{line} in {yaml}");
    }
    let line = env.kapi(&["goal", "slash", "status"]).stdout;
    assert_eq!(
        line,
        "◴ 001-make-answer-right active 0/20 [↺ refactor] 1/3: make the answer right\n"
    );
    let shown = env.json(&["goal", "tasks"]);
    assert_eq!(shown["tasks"].as_array().unwrap().len(), 3, "{shown}");
    let shown = env.kapi(&["goal", "tasks"]).stdout;
    assert!(shown.contains("T-3"), "{shown}");
    let log = env.kapi(&["goal", "replan-log"]).stdout;
    assert!(log.contains("a third one surfaced"), "{log}");
    assert_eq!(
        env.json(&["goal", "replan-log"])["replans"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    env.kapi(&["pause"]);
    running.finish();
    // The next attempt goes on with the plan that was made.
    let run = Run::from(env.kapi(&["resume", "--json"]));
    run.assert_status("done", 0);
    let yaml = fs::read_to_string(&path).unwrap();
    assert!(yaml.contains("\ncurrentTaskId: null\n"), "{yaml}");
    let distilled = fs::read_to_string(env.goal_dir(FIRST).join("distilled.md")).unwrap();
    for words in [
        "What the agent would do next time",
        "the port is taken",
        "sh test.sh",
    ] {
        assert!(distilled.contains(words), "{words} in {distilled}");
    }
    assert_eq!(
        env.json(&["show", "1"])["standing"]["turns"],
        json!({"used": 1, "max": 20})
    );
}
