//! The workspace at the person's own path of the project, for every kind of program.

use std::fs;

use crate::environment::{BRANCH, Environment, write};

#[test]
fn agent_checks_and_judge_work_at_the_path_of_the_project() {
    let env = Environment::new();
    let here = env.repository().display().to_string();
    let agent = format!(
        "command:echo 42 > /workspace/answer.txt; pwd > seen.txt; cat {here}/seen.txt > again.txt; \
         git -C {here} status --short >> again.txt; git -C /workspace status --short >> again.txt"
    );
    let verify = format!(
        "[ $PWD = {here} ] && grep -q 42 {here}/answer.txt && grep -q 42 /workspace/answer.txt \
         && git -C {here} log -1 && git -C /workspace log -1 && sh test.sh"
    );
    let judge = "command:grep -q 42 /workspace/answer.txt && \
                 echo \"{\\\"verdict\\\":\\\"done\\\",\\\"reason\\\":\\\"$PWD\\\"}\"";
    let run = env.run(&agent, &["--verify", &verify, "--judge", judge]);
    run.assert_status("done", 0);
    assert_eq!(run.result["judge"]["reason"], here);
    assert_eq!(env.show(BRANCH, "seen.txt"), here);
    let again = env.show(BRANCH, "again.txt");
    let changed = again.lines().filter(|line| line.contains("answer.txt"));
    assert_eq!(changed.count(), 2, "{again}");
    assert_eq!(
        fs::read_to_string(env.repository().join("answer.txt")).unwrap(),
        "wrong\n"
    );
}

#[test]
fn a_judge_that_lies_uncommitted_in_the_project_is_visible_and_cannot_be_replaced() {
    let env = Environment::new();
    let judge = env.repository().join("judge.sh");
    write(
        &judge,
        "grep -q 42 answer.txt && echo '{\"verdict\":\"done\",\"reason\":\"mine\"}'\n",
    );
    let agent = "command:echo 42 > answer.txt; mkdir -p sub; \
                 echo 'echo {\\\"verdict\\\":\\\"done\\\",\\\"reason\\\":\\\"theirs\\\"}' > judge.sh";
    let judge = format!("command:sh {}", judge.display());
    let run = env.run(agent, &["--judge", &judge]);
    run.assert_status("done", 0);
    assert_eq!(run.result["judge"]["reason"], "mine");
    // One that is not in the candidate at all is there for the judge alone.
    let run = env.run("command:echo 42 > answer.txt", &["--judge", &judge]);
    run.assert_status("done", 0);
    let branch = run.result["branch"].as_str().unwrap();
    let listed = env.git(&["ls-tree", "--name-only", branch]);
    assert!(!listed.contains("judge.sh"), "{listed}");
}
