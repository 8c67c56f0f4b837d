//! Goals, launches and tasks whose branch gets the commits that the agent made by itself.

use serde_json::json;

use crate::environment::{Environment, write};
use crate::launch::launch;

/// Commits once in each turn, with a message of its own, and leaves the last change uncommitted.
const AGENT: &str = "command:if git log --format=%s | grep -q '^try'; then n=42; else n=41; fi; \
     echo $n > answer.txt; git add -A; git commit -qm \"try $n\" -m 'because it has to be'; \
     if [ $n = 42 ]; then echo later > notes.txt; fi";

fn messages(env: &Environment, branch: &str) -> Vec<String> {
    let log = env.git(&["log", "--format=%an|%s|%b", &format!("main..{branch}")]);
    let lines = log.lines().filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

#[test]
fn the_agents_own_commits_are_on_the_branch() {
    let env = Environment::new();
    let args = ["run", "make it right", "--agent", AGENT, "--judge", "none"];
    let verify = [
        "--verify",
        "grep -q 42 answer.txt",
        "--keep-commits",
        "--yes",
    ];
    let output = env.kapi(&[&args[..], &verify].concat());
    assert_eq!(output.code, 0, "{output:?}");
    assert!(
        output.stderr.contains("commits   the agent's own"),
        "{output:?}"
    );
    let goal = env.json(&["show", "1"]);
    let branch = goal["branch"].as_str().unwrap();
    let subjects: Vec<String> = messages(&env, branch)
        .into_iter()
        .filter(|line| line.contains('|'))
        .collect();
    assert_eq!(subjects.len(), 3, "{subjects:?}");
    assert!(subjects[0].contains("make it right"), "{subjects:?}");
    assert!(
        subjects[1].contains("|try 42|because it has to be"),
        "{subjects:?}"
    );
    assert!(
        subjects[2].contains("|try 41|because it has to be"),
        "{subjects:?}"
    );
    let trailers = env.git(&[
        "log",
        "--format=%(trailers:key=Kapi-Goal)",
        &format!("main..{branch}"),
    ]);
    assert_eq!(trailers.matches("Kapi-Goal: ").count(), 3, "{trailers}");
    assert_eq!(goal["commit"], env.git(&["rev-parse", branch]).trim());
    assert_eq!(env.show(branch, "answer.txt"), "42");
    assert_eq!(env.show(branch, "notes.txt"), "later");
}

#[test]
fn without_the_option_there_is_one_commit() {
    let env = Environment::new();
    let args = ["run", "make it right", "--agent", AGENT, "--judge", "none"];
    let verify = ["--verify", "test -s answer.txt", "--yes"];
    let output = env.kapi(&[&args[..], &verify].concat());
    assert_eq!(output.code, 0, "{output:?}");
    let branch = env.json(&["show", "1"])["branch"]
        .as_str()
        .unwrap()
        .to_owned();
    let count = env.git(&["rev-list", "--count", &format!("main..{branch}")]);
    assert_eq!(count.trim(), "1");
}

/// Commits twice and leaves a change, and a file that git ignores, uncommitted.
const STEPS: &str = "echo 41 > answer.txt; git add -A; git commit -qm 'first step' -m 'it begins'; \
     echo 42 > answer.txt; git commit -qam 'second step'; echo later > notes.txt; echo k > key.env";

/// Returns the subjects of the commits on a branch, the last first.
fn subjects(env: &Environment, branch: &str) -> Vec<String> {
    let log = env.git(&["log", "--format=%s", &format!("main..{branch}")]);
    log.lines().map(str::to_owned).collect()
}

#[test]
fn a_launch_keeps_the_agents_own_commits_in_every_mode() {
    for mode in [
        &["--overlay-mode"][..],
        &["--worktree-mode"],
        &["--sandbox", "none"],
    ] {
        let env = Environment::new();
        env.write(".gitignore", "*.env\n");
        env.commit_all("ignore");
        let options = [&["--branch", "b", "--keep-commits"], mode].concat();
        let output = launch(&env, "1", STEPS, &options);
        assert_eq!(output.code, 0, "{mode:?}: {output:?}");
        assert_eq!(
            subjects(&env, "b"),
            ["feat: make the answer right", "second step", "first step"],
            "{mode:?}"
        );
        assert_eq!(env.git(&["log", "-1", "--format=%b", "b~2"]), "it begins");
        let changed = env.git(&["diff", "--name-only", "main", "b"]);
        assert_eq!(changed, "answer.txt\nnotes.txt", "{mode:?}");
        let document = output.document();
        assert_eq!(
            document["branch"]["commit"],
            env.commit_of("b"),
            "{document:#}"
        );
        // The next launch goes on behind them, on a branch that is there.
        let next = "test $(git log --format=%s | grep -c step) = 2 || exit 1; echo 43 > answer.txt; \
                    git commit -qam 'third step'";
        let output = launch(&env, "1", next, &options);
        assert_eq!(output.code, 0, "{mode:?}: {output:?}");
        assert_eq!(subjects(&env, "b").len(), 4, "{mode:?}");
        assert_eq!(subjects(&env, "b")[0], "third step", "{mode:?}");
        // Without it there is one commit more, whatever the agent does.
        let options = [&["--branch", "b"], mode].concat();
        let agent = "echo 1 > one; git add one; git commit -qm one; echo 2 > two; git add two; git commit -qm two";
        let output = launch(&env, "1", agent, &options);
        assert_eq!(output.code, 0, "{mode:?}: {output:?}");
        assert_eq!(subjects(&env, "b")[0], "feat: make the answer right");
        assert_eq!(subjects(&env, "b").len(), 5, "{mode:?}");
    }
}

#[test]
fn a_commit_of_an_ignored_file_is_left_out_and_that_is_said() {
    let env = Environment::new();
    env.write(".gitignore", "*.env\n");
    env.commit_all("ignore");
    let agent = "echo 42 > answer.txt; git commit -qam work; echo key > a.env; git add -f a.env; \
                 git commit -qm 'with the key'; git rm -q --cached a.env; echo 43 > answer.txt; \
                 git commit -qam 'without it'";
    let output = launch(&env, "1", agent, &["--branch", "b", "--keep-commits"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(subjects(&env, "b"), ["without it", "work"]);
    assert!(
        output.stderr.contains("One of the agent's own commits"),
        "{output:?}"
    );
    let everything = env.git(&["log", "--format=", "--name-only", "main..b"]);
    assert!(!everything.contains("a.env"), "{everything}");
}

#[test]
fn what_an_agent_makes_of_its_git_directory_never_costs_the_work() {
    // Of each the work is one commit, and the person is told why.
    let cases = [
        "git checkout -q --orphan else; git add -A; git commit -qm lost",
        "git commit -qam x; d=$(git rev-parse --git-dir); rm -rf $d/objects; ln -s /etc $d/objects",
        "git commit -qam x; d=$(git rev-parse --git-dir); for f in $d/objects/??/*; do chmod u+w $f; echo no > $f; done",
        "git commit -qam x; i=0; while [ $i -lt 200 ]; do git commit -q --allow-empty -m $i; i=$((i+1)); done",
    ];
    for case in cases {
        let env = Environment::new();
        let agent = format!("echo 42 > answer.txt; {case}");
        let output = launch(&env, "1", &agent, &["--branch", "b", "--keep-commits"]);
        assert_eq!(output.code, 0, "{case}: {output:?}");
        assert_eq!(
            subjects(&env, "b"),
            ["feat: make the answer right"],
            "{case}"
        );
        assert_eq!(env.show("b", "answer.txt"), "42", "{case}");
        assert!(
            output.stderr.contains("the work becomes one commit"),
            "{case}: {output:?}"
        );
    }
    // Of these nothing is believed and nothing runs; whether a commit is found does not matter.
    let cases = [
        "d=$(git rev-parse --git-dir); printf '#!/bin/sh\\ntouch /tmp/../../ran\\n' > $d/hooks/post-commit; chmod +x $d/hooks/post-commit; git commit -qam x",
        "git commit -qam x; d=$(git rev-parse --git-dir); rm $d/HEAD; ln -s /etc/passwd $d/HEAD",
        "git commit -qam x; d=$(git rev-parse --git-dir); rm -rf $d; ln -s / $d || true",
        "git commit -qam x; d=$(git rev-parse --git-dir); git config core.fsmonitor 'touch ran'; git config extensions.worktreeConfig true",
    ];
    for case in cases {
        let env = Environment::new();
        let agent = format!("echo 42 > answer.txt; {case}");
        let output = launch(&env, "1", &agent, &["--branch", "b", "--keep-commits"]);
        assert_eq!(output.code, 0, "{case}: {output:?}");
        assert_eq!(subjects(&env, "b").len(), 1, "{case}");
        assert_eq!(env.show("b", "answer.txt"), "42", "{case}");
    }
}

#[test]
fn a_profile_keeps_them_and_a_merge_does_not() {
    let env = Environment::new();
    let profile = env.root().join("mine.yaml");
    let text = "agent: {command: \"echo 42 > answer.txt; git commit -qam mine; cat {task} > /dev/null || true\"}\n\
                git: {keep_commits: true, co_authors: [\"B <b@c.example>\"]}\n";
    write(&profile, text);
    let (project, config) = (env.repository(), profile.display().to_string());
    let project = project.display().to_string();
    let fixed = ["launch", "1", &project, "--task", "t", "--config", &config];
    let output = env.kapi(&[&fixed[..], &["--branch", "b", "--json"]].concat());
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(subjects(&env, "b"), ["mine"]);
    let body = env.git(&["log", "-1", "--format=%b", "b"]);
    assert_eq!(body.trim(), "Co-authored-by: B <b@c.example>");
    let explained = env.kapi(&["launch", "--explain", &project, "--config", &config]);
    assert!(
        explained
            .stdout
            .contains("the agent's own, with their messages"),
        "{explained:?}"
    );
    let options = ["--branch", "b", "--merge", "main", "--keep-commits"];
    let refused = launch(&env, "2", "true", &options);
    assert_eq!(refused.code, 2, "{refused:?}");
    let refused = launch(&env, "2", "true", &["--keep-commits"]);
    assert_eq!(refused.code, 2, "{refused:?}");
}

/// Makes a repository whose tasks have the agent of [`STEPS`], with a loop that keeps its commits.
fn with_loop() -> Environment {
    let env = Environment::new();
    let agent = format!("command:{STEPS}");
    env.configure(&format!("[kernel]\ndefault_backend = {agent:?}\n"));
    env.write(".gitignore", "*.env\n");
    let text = "---\nname: steps\nkeep_commits: true\nverify: [\"grep -q 42 answer.txt\"]\n---\nMake it right.\n";
    env.write(".pi/loops/steps.md", text);
    env.commit_all("a loop");
    env
}

#[test]
fn a_task_and_a_loops_run_keep_them_and_are_proved_and_shown_as_a_whole() {
    let env = with_loop();
    let task = ["task", "run", "make it right", "--json"];
    let verify = ["--verify", "grep -q 42 answer.txt"];
    let output = env.kapi(&[&task[..], &verify, &["--keep-commits"]].concat());
    assert_eq!(output.code, 0, "{output:?}");
    let output = env.kapi(&["loop", "run", "steps", "--json"]);
    assert_eq!(output.code, 0, "{output:?}");
    // Asked for otherwise, it is another task.
    let output = env.kapi(&[&task[..], &verify].concat());
    assert_eq!(output.code, 0, "{output:?}");
    let cases = [
        ("task_1", "kapi/task_1", "make it right"),
        ("task_2", "kapi/steps-task_2", "loop steps"),
    ];
    let main = env.commit_of("main");
    for (id, branch, last) in cases {
        let expected = [last, "second step", "first step"];
        assert_eq!(subjects(&env, branch), expected, "{id}");
        let first = format!("{branch}~2");
        assert_eq!(env.git(&["log", "-1", "--format=%b", &first]), "it begins");
        let diff = env.json(&["diff", id]);
        assert_eq!(diff["base"], main, "{diff:#}");
        assert_eq!(diff["paths"], json!(["answer.txt", "notes.txt"]));
        let shown = env.json(&["show", id]);
        assert_eq!(shown["work"]["grade"], "red_to_green", "{shown:#}");
    }
    assert_eq!(subjects(&env, "kapi/task_3"), ["make it right"]);
    let again = env.kapi(&["task", "retry", "task_1", "--json"]);
    assert_eq!(again.code, 0, "{again:?}");
    assert_eq!(subjects(&env, "kapi/task_4").len(), 3, "{again:?}");
    let log = env.git(&["show", "--name-only", "--format=", "kapi/task_1~1"]);
    assert!(!log.contains("key.env"), "{log}");
}

#[test]
fn what_a_task_may_not_commit_is_left_out_of_its_agents_own_commits() {
    let env = with_loop();
    let agent = "command:echo 41 > answer.txt; git commit -qam 'the first'; echo key > a.env; git add -f a.env; \
                 git commit -qm 'with the key'; git rm -q --cached a.env; \
                 mkdir sub && cd sub && git init -q && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && cd .. && \
                 git add sub; echo 42 > answer.txt; git commit -qam 'with a submodule'; rm -rf sub; git rm -q --cached sub; \
                 git commit -qm 'without it'";
    let task = ["task", "run", "make it right", "--agent", agent];
    let output = env.kapi(&[&task[..], &["--keep-commits"]].concat());
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(
        subjects(&env, "kapi/task_1"),
        ["without it", "the first"],
        "{output:?}"
    );
    assert!(
        output
            .stderr
            .contains("2 of the agent's own commits contain"),
        "{output:?}"
    );
    assert_eq!(env.show("kapi/task_1", "answer.txt"), "42");
}
