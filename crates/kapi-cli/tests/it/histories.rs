//! Repositories with little history: one commit, or a clone that was cut short, as CI makes it.

use crate::environment::Environment;

#[test]
fn the_first_commit_is_no_change_and_a_shallow_clone_is_said_to_be_one() {
    let env = Environment::new();
    env.write("more.txt", "more\n");
    env.commit_all("more");
    let first = env.git(&["rev-list", "--max-parents=0", "HEAD"]);
    env.kapi(&["prove", first.trim(), "--verify", "true"])
        .assert_error(
            4,
            &["it is the first commit", "commit the change on top of it"],
        );
    let from = format!("file://{}", env.repository().display());
    let clone = env.root().join("shallow");
    let to = clone.display().to_string();
    env.git(&["clone", "--quiet", "--depth", "1", &from, &to]);
    env.kapi_in(&clone, &["prove", "HEAD", "--verify", "true"])
        .assert_error(4, &["this clone is shallow", "git fetch --unshallow"]);
}

#[test]
fn a_goal_out_of_turns_is_not_in_a_turn_beyond_them() {
    let env = Environment::new();
    let run = env.run("command:echo 1 > answer.txt", &["--turns", "1"]);
    run.assert_status("paused", 5);
    let status = env.kapi(&["status"]).stdout;
    assert!(status.contains("turn 1 of 1"), "{status}");
}
