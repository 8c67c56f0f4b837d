//! State that came with a repository, or that an agent left, approves nothing.

use crate::environment::Environment;

const HONEST: &str = "command:echo 42 > answer.txt";

#[test]
fn goals_that_came_with_a_repository_are_not_gone_on_with() {
    let env = Environment::new();
    env.run("command:true", &["--turns", "1"])
        .assert_status("paused", 5);
    env.git(&["add", "--force", ".ilchul"]);
    env.git(&["commit", "--quiet", "-m", "a goal for everybody"]);
    for command in [
        &["resume", "1"][..],
        &["up", "--once"],
        &["say", "1", "go on"],
        &["budget", "1", "--turns", "+1"],
    ] {
        env.kapi(command)
            .assert_error(3, &["git tracks", ".ilchul", "hint: "]);
    }
    env.git(&["rm", "-r", "--quiet", "--cached", ".ilchul"]);
    env.git(&["commit", "--quiet", "-m", "without"]);
    env.kapi(&["budget", "1", "--turns", "+1"]);
    assert_eq!(
        env.json(&["show", "1"])["id"],
        env.json(&["show", "1"])["id"]
    );
}

#[test]
fn state_that_an_agent_left_in_its_worktree_is_not_believed() {
    let env = Environment::new();
    let run = env.run(HONEST, &["--turns", "1"]);
    let worktree = env.home().join(".ilchul/worktrees");
    let key = std::fs::read_dir(&worktree)
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let location = key.path().join(run.id());
    std::fs::create_dir_all(location.join(".ilchul/goals/001-x")).unwrap();
    env.kapi_in(&location, &["up", "--once"])
        .assert_error(3, &["the workspace of an agent"]);
}
