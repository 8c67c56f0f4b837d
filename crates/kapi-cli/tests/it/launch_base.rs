//! Launches on a branch and what the person does meanwhile: the commit is the base and the agent's
//! changes, nothing else.

use crate::environment::Environment;
use crate::launch::launch;

/// Waits inside for the person, who is done when the file is there.
const MEANWHILE: &str =
    "echo > \"$HOME/started\"; while [ ! -e \"$HOME/go\" ]; do sleep 0.05; done";

/// Runs an agent that waits for the person, and does what the person does.
fn during(
    env: &Environment,
    id: &str,
    agent: &str,
    person: impl Fn(&Environment) + Sync,
) -> serde_json::Value {
    let home = || {
        let sandboxes = env.home().join(".ilchul/sandboxes");
        let projects = std::fs::read_dir(sandboxes).ok()?.flatten();
        let mut homes = projects.map(|project| project.path().join(id).join("home"));
        homes.find(|home| home.join("started").exists())
    };
    let agent = format!("{MEANWHILE}; {agent}");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let home = crate::environment::await_some("the agent has started", home);
            person(env);
            std::fs::File::create(home.join("go")).unwrap();
        });
        launch(env, id, &agent, &["--branch", id]).document()
    })
}

#[test]
fn what_the_person_does_meanwhile_is_neither_seen_nor_committed() {
    let env = Environment::new();
    env.write(".gitignore", ".env\nsecrets/\n");
    env.write("a.txt", "one\ntwo\nthree\n");
    env.commit_all("a file");
    let agent = "sed -i s/^two/AGENT/ a.txt; cat .env secrets/key; ls; cat a.txt";
    let document = during(&env, "b1", agent, |env| {
        env.write("a.txt", "one\ntwo\nthree\nPERSON\n");
        env.write(".env", "SECRET\n");
        env.write("secrets/key", "SECRET\n");
        env.write("new.txt", "mine\n");
    });
    let said = document.to_string();
    assert!(
        !said.contains("SECRET") && !said.contains("PERSON") && !said.contains("new.txt"),
        "{document:#}"
    );
    assert_eq!(env.show("b1", "a.txt"), "one\nAGENT\nthree");
    assert_eq!(env.git(&["diff", "--name-only", "main", "b1"]), "a.txt");
}

#[test]
fn another_branch_that_the_person_switches_to_stays_out_of_the_commit() {
    let env = Environment::new();
    env.write("a.txt", "base\n");
    env.commit_all("a file");
    env.git(&["branch", "other"]);
    let document = during(
        &env,
        "b1",
        "echo agent > made.txt; cat a.txt; git status --porcelain",
        |env| {
            env.git(&["checkout", "--quiet", "other"]);
            env.git(&["rm", "--quiet", "answer.txt"]);
            env.write("a.txt", "other\n");
            env.commit_all("other");
        },
    );
    assert_eq!(document["message"], "base\n?? made.txt", "{document:#}");
    assert_eq!(
        env.git(&["diff", "--name-status", "main", "b1"]),
        "A\tmade.txt"
    );
    // The commit that is checked out now is another one; what was left is gone on with all the same.
    let again = launch(
        &env,
        "b1",
        "ls made.txt; cat a.txt; echo 2 > second.txt",
        &["--branch", "b1"],
    );
    let again = again.document();
    assert_eq!(
        (&again["workspace"], &again["message"]),
        (&"layer".into(), &"made.txt\nbase".into()),
        "{again:#}"
    );
    assert_eq!(
        env.git(&["diff", "--name-status", "main", "b1"]),
        "A\tmade.txt\nA\tsecond.txt"
    );
}

#[test]
fn what_is_chosen_to_be_shown_is_the_same_at_every_launch() {
    let env = Environment::new();
    env.write(".gitignore", ".env\nnode_modules/\ntarget/\n");
    env.write(".kapiinclude", ".env\n");
    env.commit_all("rules");
    env.write(".env", "A=1\n");
    env.write("node_modules/x/index.js", "x\n");
    env.write("target/built", "old\n");
    let agent = "cat .env node_modules/x/index.js; ls -d target; git status --porcelain; echo $(date +%N) > t";
    for _ in 0..2 {
        let document = launch(&env, "1", agent, &["--branch", "b"]).document();
        assert_eq!(
            document["message"]
                .as_str()
                .unwrap()
                .lines()
                .take(2)
                .collect::<Vec<_>>(),
            ["A=1", "x"],
            "{document:#}"
        );
        assert!(
            !document["message"].as_str().unwrap().contains("target\n"),
            "{document:#}"
        );
        assert_eq!(
            env.git(&[
                "ls-tree",
                "-r",
                "--name-only",
                "b",
                ".env",
                "node_modules",
                "target"
            ]),
            ""
        );
    }
}
