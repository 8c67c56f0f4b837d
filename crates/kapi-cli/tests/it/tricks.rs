//! Ways to a false "done", to the person's files and to the person's authority, each tried for real.
//!
//! What an agent can write into its worktree is the only weapon here.

use std::fs;

use crate::environment::{Environment, FIRST, write};

#[test]
fn attributes_cannot_change_what_a_protected_file_holds() {
    for attributes in [
        "test.sh working-tree-encoding=UTF-7",
        "test.sh text eol=crlf",
    ] {
        let env = Environment::new();
        let agent = format!("command:echo '{attributes}' > .gitattributes");
        let run = env.run(&agent, &["--turns", "2"]);
        run.assert_status("paused", 5);
        run.assert_nothing_published(&env);
    }
}

#[test]
fn an_earlier_verify_command_cannot_prepare_the_next() {
    let env = Environment::new();
    write(
        &env.root().join("hidden/test.sh"),
        "grep -q because answer.txt || exit 1\n",
    );
    let hidden = env.root().join("hidden").display().to_string();
    let trap =
        "mkdir -p $HOME/.local/lib; for f in test.sh $HOME/.profile; do echo exit 0 > $f; done";
    let agent = format!("command:echo '{trap}' > build.sh; echo 42 > answer.txt");
    let verify = [
        "--verify",
        "sh build.sh",
        "--verify",
        "sh test.sh",
        "--turns",
        "2",
    ];
    let run = env.run(&agent, &[&verify[..], &["--hidden", &hidden]].concat());
    run.assert_status("paused", 5);
    assert_eq!(run.verdicts(), ["hidden_failed", "hidden_failed"]);
    let agent = format!("command:echo '{trap}' > build.sh");
    let run = env.run(&agent, &verify);
    run.assert_status("paused", 5);
    assert_eq!(run.verdicts(), ["verify_failed", "verify_failed"]);
}

#[test]
fn a_planted_record_never_gets_into_a_commit() {
    let env = Environment::new();
    let plant = "mkdir -p .ilchul/goals/009-evil .ILCHUL; echo x > .ilchul/goals/009-evil/events.jsonl; \
                 echo y > .ilchul/config.toml; echo z > .ILCHUL/a; echo 42 > answer.txt";
    let run = env.run(&format!("command:{plant}"), &[]);
    run.assert_status("done", 0);
    let files = env.git(&["ls-tree", "-r", "--name-only", run.commit()]);
    assert!(!files.to_lowercase().contains(".ilchul"), "{files}");
    let left_out = &run.events("candidate_committed")[0]["candidate"]["left_out"];
    assert!(
        left_out.to_string().contains("Kapi's own state"),
        "{left_out}"
    );
}

#[test]
fn a_worktree_swapped_for_a_link_is_not_followed() {
    let env = Environment::new();
    let victim = env.root().join("victim");
    write(&victim.join("precious"), "keep me");
    let swap = format!(
        "command:D=$PWD; cd /; rm -rf \"$D\"; ln -s {} \"$D\"",
        victim.display()
    );
    let run = env.run(&swap, &["--sandbox", "none"]);
    run.assert_status("blocked", 4);
    let run = env.resume("1");
    assert_ne!(run.status(), "done");
    let left: Vec<_> = fs::read_dir(&victim)
        .unwrap()
        .map(|it| it.unwrap().file_name())
        .collect();
    assert_eq!(left, ["precious"], "nothing was written or removed there");
}

#[test]
fn work_so_far_survives_a_removed_worktree() {
    let env = Environment::new();
    let agent = "command:[ $KAPI_TURN = 1 ] && echo so far > work.txt || echo 42 > answer.txt";
    env.run(agent, &["--turns", "1"]).assert_status("paused", 5);
    let worktree = env.json(&["show", "1"])["worktree"]
        .as_str()
        .unwrap()
        .to_owned();
    env.git(&["worktree", "remove", "--force", &worktree]);
    assert_eq!(env.kapi(&["budget", "1", "--turns", "+1"]).code, 0);
    let run = env.resume("1");
    run.assert_status("done", 0);
    assert_eq!(env.show(run.commit(), "work.txt"), "so far");
}

#[test]
fn hidden_checks_must_be_hidden_and_ordinary() {
    let env = Environment::new();
    env.write("checks/test.sh", "exit 1\n");
    env.commit_all("checks in plain sight");
    let refuse = |dir: &str, words: &[&str]| {
        let args = [
            "run",
            "x",
            "--yes",
            "--agent",
            "command:true",
            "--verify",
            "sh test.sh",
        ];
        let output = env.kapi(&[&args[..], &["--hidden", dir]].concat());
        output.assert_error(2, words);
        assert!(!env.goal_dir(FIRST).exists());
    };
    refuse("checks", &["checks/test.sh", "would see"]);
    let own = env.root().join("own");
    write(&own.join(".git/config"), "");
    refuse(&own.display().to_string(), &[".git"]);
    refuse(&env.root().join("none").display().to_string(), &["none"]);
}

#[test]
fn a_file_that_a_command_names_is_protected_however_it_is_written() {
    for verify in [
        "sh test.sh;true",
        "(sh test.sh)",
        "bash -c 'sh test.sh'",
        "sh \"$PWD/test.sh\"",
    ] {
        let env = Environment::new();
        env.run("command:true", &["--turns", "1", "--verify", verify]);
        let contract = &env.json(&["show", "1"])["contract"];
        assert_eq!(contract["protect"][0], "test.sh", "{verify}");
    }
}

#[test]
fn a_repository_in_the_home_and_one_within_another_are_projects_of_their_own() {
    let env = Environment::new();
    env.run("command:true", &["--turns", "1"]);
    let inner = env.repository().join("inner");
    fs::create_dir_all(inner.join(".git")).unwrap();
    env.kapi_in(&inner, &["show", "1"])
        .assert_error(6, &["no goals"]);
    let mut at_home = Environment::new();
    let home = at_home.repository().display().to_string();
    at_home.set("HOME", &home);
    at_home.run("command:true", &["--turns", "1"]);
    assert_eq!(at_home.json(&["show", "1"])["id"], FIRST);
}
