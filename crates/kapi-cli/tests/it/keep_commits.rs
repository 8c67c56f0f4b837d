//! Goals whose branch gets the commits that the agent made by itself.

use crate::environment::Environment;

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
