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
    during_on(env, id, id, agent, person)
}

/// Does the same with a branch of another name.
fn during_on(
    env: &Environment,
    id: &str,
    branch: &str,
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
        launch(env, id, &agent, &["--branch", branch]).document()
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

#[test]
fn a_branch_that_moved_or_went_keeps_the_work_on_one_of_its_own() {
    let env = Environment::new();
    let moved = |env: &Environment| {
        let tree = env.git(&["rev-parse", "main^{tree}"]);
        let mine = env.git(&["commit-tree", &tree, "-p", "main", "-m", "mine"]);
        env.git(&["update-ref", "refs/heads/b1", &mine]);
    };
    let document = during(&env, "b1", "echo 42 > answer.txt", moved);
    assert_eq!(
        (&document["exit_code"], &document["agent_exit_code"]),
        (&4.into(), &0.into()),
        "{document:#}"
    );
    assert_eq!(document["branch"]["landed"], "b1-kapi-1", "{document:#}");
    assert_eq!(
        document["changed"].as_array().unwrap().len(),
        1,
        "{document:#}"
    );
    let hint = document["hint"].as_str().unwrap();
    assert!(hint.contains("git rebase b1 b1-kapi-1"), "{hint}");
    assert_eq!(env.show("b1-kapi-1", "answer.txt"), "42");
    assert_eq!(env.git(&["log", "-1", "--format=%s", "b1"]), "mine");
    // The line that is named does what it says, and the next launch goes on from the branch.
    env.git(&["rebase", "--quiet", "b1", "b1-kapi-1"]);
    assert_eq!(
        env.git(&["log", "--format=%s", "main..b1-kapi-1"]),
        "feat: make the answer right\nmine"
    );
    env.git(&["checkout", "--quiet", "main"]);
    let again = launch(&env, "b1", "ls", &["--branch", "b1"]);
    assert_eq!(again.code, 0, "{again:?}");
    // One that was deleted is made again.
    let gone = |env: &Environment| drop(env.git(&["branch", "-D", "b2"]));
    let document = during(&env, "b2", "echo 43 > answer.txt", gone);
    assert_eq!(document["branch"]["landed"], "b2", "{document:#}");
    assert_eq!(env.show("b2", "answer.txt"), "43");
}

#[test]
fn two_launches_on_one_branch_both_keep_their_work() {
    let env = Environment::new();
    env.git(&["branch", "shared"]);
    let second = |env: &Environment| {
        let other = launch(env, "second", "echo 2 > two.txt", &["--branch", "shared"]);
        assert_eq!(other.code, 0, "{other:?}");
    };
    let first = during_on(&env, "first", "shared", "echo 1 > one.txt", second);
    assert_eq!(first["branch"]["landed"], "shared-kapi-1", "{first:#}");
    assert_eq!(env.show("shared", "two.txt"), "2");
    assert_eq!(env.show("shared-kapi-1", "one.txt"), "1");
}

#[test]
fn half_done_work_is_not_pushed_unless_that_was_asked_for() {
    let env = Environment::new();
    let bare = env.root().join("remote.git").display().to_string();
    env.git(&["init", "--quiet", "--bare", &bare]);
    env.git(&["remote", "add", "origin", &bare]);
    let push = |id: &str, more: &[&str]| {
        let options = [&["--branch", id, "--push"][..], more].concat();
        let document = launch(&env, id, "echo half > half.txt; exit 7", &options).document();
        assert_eq!(document["agent_exit_code"], 7, "{document:#}");
        assert_eq!(env.show(id, "half.txt"), "half");
        let there = env.git(&["ls-remote", "--heads", "origin", id]);
        (!there.is_empty(), document["notes"].to_string())
    };
    let (is_there, notes) = push("b1", &[]);
    assert!(
        !is_there && notes.contains("git push origin b1:b1"),
        "{notes}"
    );
    let (is_there, _) = push("b2", &["--push-failed"]);
    assert!(is_there);
}

#[test]
fn a_checked_out_submodule_does_not_break_git_inside() {
    let env = Environment::new();
    let library = env.root().join("library").display().to_string();
    env.git(&["init", "--quiet", &library]);
    env.git(&[
        "-C",
        &library,
        "commit",
        "--quiet",
        "--allow-empty",
        "--message",
        "library",
    ]);
    env.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        &library,
        "sub",
    ]);
    env.commit_all("a submodule");
    let agent = "git status --porcelain; git log --oneline | wc -l; echo 42 > answer.txt";
    let document = launch(&env, "1", agent, &["--branch", "b"]).document();
    assert_eq!(
        (&document["message"], &document["exit_code"]),
        (&"2".into(), &0.into()),
        "{document:#}"
    );
    assert_eq!(env.git(&["diff", "--name-only", "main", "b"]), "answer.txt");
}

#[test]
fn the_status_names_a_worktree_only_where_there_is_one() {
    let env = Environment::new();
    for (id, options, is_there) in [
        ("1", &["--branch", "b"][..], false),
        ("2", &["--branch", "c", "--worktree-mode"], true),
    ] {
        let document = launch(&env, id, "true", options).document();
        let path = document["status_file"].as_str().unwrap();
        let status: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!(status["worktree_path"].is_string(), is_there, "{status:#}");
    }
}

#[test]
fn a_review_is_whole_and_names_text_that_is_not_what_it_seems() {
    let env = Environment::new();
    env.write("old/deep/a.txt", "a\n");
    env.write("old/b.bin", "b\0b");
    env.commit_all("a directory");
    let agent = "rm -r old; printf 'is\\342\\200\\213Admin\\n' > check.js; printf 'x\\0y' > blob";
    for (id, options) in [("1", &["--branch", "b"][..]), ("2", &[])] {
        launch(&env, id, agent, options).document();
        let diff = env.json(&["diff", &format!("launch/{id}")]);
        assert_eq!(
            (&diff["cut"], &diff["left_out"]),
            (&false.into(), &serde_json::json!([])),
            "{diff:#}"
        );
        assert_eq!(
            diff["deceptive"],
            serde_json::json!([{"path": "check.js", "line": 1, "what": "invisible characters"}]),
            "{diff:#}"
        );
        // Applied to what the launch began with, it gives what the agent made.
        let patch = env.root().join(format!("patch-{id}"));
        crate::environment::write(&patch, diff["patch"].as_str().unwrap());
        env.git(&["apply", "--index", &patch.display().to_string()]);
        assert_eq!(
            env.git(&["diff", "--cached", "--name-status"]),
            "A\tblob\nA\tcheck.js\nD\told/b.bin\nD\told/deep/a.txt"
        );
        env.git(&["reset", "--quiet", "--hard"]);
    }
    let merged = env.kapi(&["sandbox", "merge", "2"]);
    assert!(
        merged
            .stdout
            .contains("caution   deceptive: check.js: line 1"),
        "{merged:?}"
    );
}

#[test]
fn git_inside_sees_every_change_and_looks_at_no_other_file() {
    let env = Environment::new();
    for n in 0..40 {
        env.write(&format!("many/{n}.txt"), &format!("{n}\n"));
    }
    env.write("src/deep/a.txt", "a\n");
    env.write("src/gone/b.txt", "b\n");
    env.commit_all("files");
    // Each status is compared with that of a git that looks at everything.
    let check = "git status --porcelain > $HOME/ours; \
                 git -c core.fsmonitor= status --porcelain > $HOME/all; \
                 cmp $HOME/ours $HOME/all || { cat $HOME/ours; echo --; cat $HOME/all; }";
    let agent = format!(
        "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b\n\
         {check}\n\
         echo more >> src/deep/a.txt; {check}\n\
         rm -r src/gone; {check}; mkdir -p src/gone; echo again > src/gone/c.txt; {check}\n\
         git checkout --quiet -- src; {check}\n\
         echo new > new.txt; echo n > src/deep/n.txt; git add -A; git commit --quiet -m new; {check}\n\
         rm new.txt src/deep/n.txt; {check}; git checkout --quiet HEAD~1; {check}\n\
         git mv many other; {check}; git reset --quiet --hard; {check}\n\
         git status --porcelain=v2 --branch | head -1; echo 42 > answer.txt"
    );
    let document = launch(&env, "1", &agent, &["--branch", "b"]).document();
    let said = document["message"].as_str().unwrap();
    assert!(
        said.starts_with("# branch.oid") && said.lines().count() == 1,
        "{document:#}"
    );
    assert_eq!(env.git(&["diff", "--name-only", "main", "b"]), "answer.txt");
}
