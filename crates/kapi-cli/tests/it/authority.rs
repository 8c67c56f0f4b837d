//! What an agent may not do, however it dresses up: decide what only a person decides.

use std::fmt::Write as _;

use crate::environment::{BRANCH, Environment};

const HONEST: &str = "command:echo 42 > answer.txt";

#[test]
fn an_agent_may_not_do_what_a_person_decides() {
    let env = Environment::new();
    let (kapi, repository) = (env!("CARGO_BIN_EXE_kapi"), env.repository());
    let attempts = [
        ("cancel", "cancel 1"),
        ("resume", "resume 1"),
        ("budget", "budget 1 --turns +100"),
        ("run", "run more --verify true --agent command:true --yes"),
        ("demo", "demo"),
    ];
    let disguises = [
        "",
        "env -u KAPI_RUN_ID",
        "env -i PATH=$PATH HOME=$HOME",
        "setsid -w env -u KAPI_RUN_ID",
    ];
    let mut script = format!("cd {}\n", repository.display());
    for (name, line) in attempts {
        for (n, disguise) in disguises.iter().enumerate() {
            writeln!(
                script,
                "{disguise} {kapi} {line} >> said 2>&1; echo {name}-{n}=$? >> codes"
            )
            .unwrap();
        }
    }
    // A daemon has no parent of the run left, and nothing in its environment tells.
    for (name, line) in attempts {
        let act = format!("{kapi} {line} >> said 2>&1; echo {name}-daemon=$? >> codes");
        let wait = "while [ $PPID != 1 ] && grep -qz KAPI_RUN_ID /proc/$PPID/environ; do :; done";
        writeln!(
            script,
            "( env -u KAPI_RUN_ID setsid sh -c '{wait}; {act}' & )"
        )
        .unwrap();
    }
    let n_attempts = attempts.len() * (disguises.len() + 1);
    writeln!(
        script,
        "while [ $(wc -l < codes) -lt {n_attempts} ]; do sleep 0.01; done"
    )
    .unwrap();
    script.push_str("cd - > /dev/null; echo 42 > answer.txt\n");
    let agent = format!("command:{script}");
    let run = env.run(&agent, &["--sandbox", "none", "--turn-timeout", "60s"]);
    run.assert_status("done", 0);
    let codes = env.read("codes");
    for line in codes.lines() {
        assert!(line.ends_with("=3"), "{codes}\n{}", env.read("said"));
    }
    assert_eq!(codes.lines().count(), n_attempts, "{codes}");
    assert_eq!(env.json(&["show", "1"])["contract"]["budget"]["turns"], 20);
    assert_eq!(env.json(&["budget", "1"])["budget"]["turns"], 20);
    assert_eq!(env.json(&["status"])["goals"].as_array().unwrap().len(), 1);
    // Looking is allowed to everybody.
    assert!(run.events("goal_stopped").is_empty());
}

#[test]
fn an_agent_in_the_sandbox_may_not_start_goals_either() {
    let env = Environment::new();
    let kapi = env!("CARGO_BIN_EXE_kapi");
    env.configure(&format!("[sandbox]\nread_only = [{kapi:?}]\n"));
    let agent = format!(
        "command:env -u KAPI_RUN_ID {kapi} run more --verify true --agent command:true --yes \
         > said.txt 2>&1; echo $? > code.txt; echo 42 > answer.txt"
    );
    let run = env.run(&agent, &[]);
    run.assert_status("done", 0);
    assert_eq!(
        env.show(BRANCH, "code.txt"),
        "3",
        "{}",
        env.show(BRANCH, "said.txt")
    );
}

#[test]
fn verify_commands_have_no_more_authority_than_the_agent() {
    let env = Environment::new();
    let (kapi, repository) = (env!("CARGO_BIN_EXE_kapi"), env.repository());
    let verify = format!(
        "cd {} && {kapi} budget 1 --turns +1; test $? = 3",
        repository.display()
    );
    let options = ["--sandbox", "none", "--already-green", "--verify", &verify];
    env.run(HONEST, &options).assert_status("done", 0);
}
