//! Commands and patterns typed in a subdirectory of the project are meant there.

use crate::environment::Environment;
use crate::program::Run;

const AGENT: &str = "command:echo 42 > web/answer.txt; echo other > answer.txt";

fn monorepo() -> Environment {
    let env = Environment::new();
    env.write("web/test.sh", "grep -qx 42 answer.txt\n");
    env.commit_all("web");
    env
}

#[test]
fn a_verify_command_runs_in_the_directory_where_it_was_typed() {
    let env = monorepo();
    let web = env.repository().join("web");
    let typed = [
        "run",
        "the answer",
        "--verify",
        "sh test.sh",
        "--agent",
        AGENT,
        "--judge",
        "none",
        "--yes",
        "--json",
    ];
    let run = Run::from(env.kapi_in(&web, &typed));
    run.assert_status("done", 0);
    let shown = env.json(&["show", "1"]);
    let contract = &shown["contract"];
    assert_eq!(contract["verify"][0], "cd web && sh test.sh");
    let protected = contract["protect"].as_array().unwrap();
    assert!(protected.contains(&"web/test.sh".into()), "{contract}");
    // The same for a change that is there already.
    let proved = env.kapi_in(&web, &["prove", run.commit(), "--verify", "sh test.sh"]);
    assert_eq!(proved.code, 0, "{proved:?}");
    let wrong = env.kapi(&["prove", run.commit(), "--verify", "sh test.sh"]);
    assert_ne!(wrong.code, 0, "{wrong:?}");
}

#[test]
fn a_task_is_verified_where_it_was_typed() {
    let env = monorepo();
    let web = env.repository().join("web");
    let typed = [
        "task",
        "run",
        "the answer",
        "--verify",
        "sh test.sh",
        "--protect",
        "test.sh",
        "--agent",
        AGENT,
    ];
    let done = env.kapi_in(&web, &typed);
    assert_eq!(done.code, 0, "{done:?}");
    let shown = env.json(&["show", "task_1"]);
    assert_eq!(shown["request"]["verify"][0], "cd web && sh test.sh");
    assert_eq!(shown["request"]["protect"][0], "web/test.sh");
}
