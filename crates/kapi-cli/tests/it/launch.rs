//! `kapi launch` with the built binary: the table of modes, branches, remotes, and what agents leave.
//!
//! Agents are shell commands; sandboxes, git and remotes are real.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::environment::{Environment, write};
use crate::program::Output;

/// The task of every launch.
pub(crate) const TASK: &str = "make the answer right";

/// Launches an agent on the repository and returns what was said.
pub(crate) fn launch(env: &Environment, id: &str, agent: &str, options: &[&str]) -> Output {
    launch_on(env, id, &env.repository(), agent, options)
}

/// Launches an agent on a directory.
pub(crate) fn launch_on(
    env: &Environment,
    id: &str,
    project: &Path,
    agent: &str,
    options: &[&str],
) -> Output {
    let agent = format!("command:{agent}");
    let project = project.display().to_string();
    let fixed = [
        "launch", id, &project, "--task", TASK, "--agent", &agent, "--json",
    ];
    env.kapi(&[&fixed, options].concat())
}

/// Makes a plain directory beside the repository.
pub(crate) fn plain_project(env: &Environment) -> PathBuf {
    let project = env.root().join("plain");
    write(&project.join("a.txt"), "one\n");
    write(&project.join("sub/b.txt"), "two\n");
    project
}

/// Commits a file to a branch at the remote, as a reviewer would.
pub(crate) fn review(env: &Environment, branch: &str, is_rewrite: bool) -> String {
    let clone = env.root().join(format!("reviewer-{is_rewrite}"));
    let (bare, at) = (env.root().join("remote.git"), clone.display().to_string());
    env.git(&[
        "clone",
        "--quiet",
        "--branch",
        branch,
        &bare.display().to_string(),
        &at,
    ]);
    write(&clone.join("review.txt"), "read\n");
    env.git(&["-C", &at, "add", "--all"]);
    let commit: &[&str] = if is_rewrite {
        &["commit", "--quiet", "--amend", "--message", "rewritten"]
    } else {
        &["commit", "--quiet", "--message", "review"]
    };
    env.git(&[&["-C", &at], commit].concat());
    env.git(&["-C", &at, "push", "--quiet", "--force", "origin", branch]);
    env.git(&["-C", &at, "rev-parse", "HEAD"])
}

pub(crate) fn status(env: &Environment, document: &Value) -> Value {
    let path = document["status_file"].as_str().unwrap();
    assert!(Path::new(path).starts_with(env.home()), "{path}");
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

pub(crate) fn paths(document: &Value) -> Vec<String> {
    let changed = document["changed"].as_array().unwrap().iter();
    let path = |one: &Value| {
        format!(
            "{} {}",
            one["change"].as_str().unwrap(),
            one["path"].as_str().unwrap()
        )
    };
    changed.map(path).collect()
}

#[test]
fn the_table_of_modes_holds_with_and_without_force() {
    let env = Environment::new();
    let plain = plain_project(&env);
    let repository = env.repository();
    for (n, (project, options, mode, workspace)) in [
        (&repository, &["--branch", "b0"][..], "worktree", "layer"),
        (&repository, &[], "overlay", "layer"),
        (&plain, &[], "overlay", "layer"),
        (
            &repository,
            &["--branch", "b4", "--worktree-mode"],
            "worktree",
            "checkout",
        ),
        (
            &repository,
            &["--branch", "b5", "--overlay-mode"],
            "overlay",
            "layer",
        ),
        (&repository, &["--overlay-mode"], "overlay", "layer"),
        (
            &repository,
            &["--branch", "b7", "--sandbox", "none"],
            "worktree",
            "checkout",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let output = launch_on(
            &env,
            &format!("m{n}"),
            project,
            "echo 42 > made.txt",
            options,
        );
        let document = output.document();
        let found = (
            document["mode"].as_str().unwrap(),
            document["workspace"].as_str().unwrap(),
        );
        assert_eq!(found, (mode, workspace), "{options:?} {output:?}");
        assert_eq!(output.code, 0, "{output:?}");
        assert_eq!(paths(&document), ["added made.txt"], "{options:?}");
        let status = status(&env, &document);
        assert_eq!(status["sandbox_mode"], mode);
        assert_eq!(
            (&status["phase"], &status["progress"]),
            (&"complete".into(), &100.into())
        );
        assert!(
            !project.join("made.txt").exists(),
            "the project is as it was"
        );
    }
    for branch in ["b0", "b4", "b5", "b7"] {
        assert_eq!(env.show(branch, "made.txt"), "42", "{branch}");
    }
    assert_eq!(env.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_mode_that_cannot_be_is_refused_with_advice() {
    let env = Environment::new();
    // The other directories of a test lie below this repository.
    let elsewhere = tempfile::tempdir().unwrap();
    let plain = elsewhere.path().to_path_buf();
    let repository = env.repository();
    for (project, options, words) in [
        (
            &repository,
            &["--worktree-mode"][..],
            ["needs a branch", "--branch"],
        ),
        (
            &plain,
            &["--worktree-mode", "--branch", "x"],
            ["not a git repository", "--worktree-mode"],
        ),
        (
            &repository,
            &["--sandbox", "none"],
            ["no overlay", "--branch"],
        ),
        (&repository, &["--push"], ["no branch to push", "--branch"]),
        (
            &plain,
            &["--branch", "x", "--push"],
            [
                "branch x cannot be created: the project is not a git repository",
                "kapi sandbox merge",
            ],
        ),
        (
            &repository,
            &["--branch", "-x"],
            ["not a branch name", "check-ref-format"],
        ),
        (
            &repository,
            &["--branch", "x", "--base-branch", "nowhere"],
            ["nowhere", "git fetch"],
        ),
    ] {
        let output = launch_on(&env, "1", project, "true", options);
        let is_flag =
            output.stderr.contains("unexpected") || output.stderr.contains("a value is required");
        if !is_flag {
            output.assert_error(2, &words);
        }
        assert_eq!(output.code, 2, "{options:?} {output:?}");
    }
    let output = launch(&env, "1", "true", &["--branch", "main"]);
    output.assert_error(3, &["main is checked out at", "another"]);
    for id in ["", "a/b", "..", "a b"] {
        assert_eq!(launch(&env, id, "true", &[]).code, 2, "{id:?}");
    }
}

#[test]
fn a_dry_run_leaves_no_trace() {
    let env = Environment::new();
    let refs = env.git(&["for-each-ref"]);
    for options in [
        &["--dry-run"][..],
        &["--dry-run", "--branch", "feature/x", "--push"],
    ] {
        let output = launch(&env, "1", "touch ran", options);
        let document = output.document();
        assert_eq!(
            (output.code, &document["dry_run"]),
            (0, &true.into()),
            "{output:?}"
        );
    }
    assert!(!env.home().join(".ilchul").exists(), "nothing is made");
    assert_eq!(env.git(&["for-each-ref"]), refs);
    assert_eq!(env.git(&["status", "--porcelain", "--ignored"]), "");
}

#[test]
fn a_workspace_shows_the_project_its_ignored_trees_and_its_ports_and_no_secret() {
    let env = Environment::new();
    env.write(".gitignore", "deps\n.env\n");
    env.commit_all("rules");
    env.write("deps/lib", "built\n");
    env.write(".env", "SECRET=1\n");
    env.write(".kapiexclude", ".env\n");
    env.write("notes.txt", "mine\n");
    env.git(&["config", "http.extraHeader", "token-in-config"]);
    let real = env.repository().display().to_string();
    let agent = format!(
        "cat deps/lib; cat /task-spec.md; echo env:$(cat .env); ls notes.txt; echo port:$KAPI_PORT_BASE; cat {real}/deps/lib; \
         grep -r token-in-config .git; git log --oneline | wc -l; git status --porcelain; echo x > deps/lib"
    );
    for (id, options) in [
        ("1", &["--branch", "b"][..]),
        ("2", &["--branch", "c", "--worktree-mode"]),
    ] {
        let document = launch(&env, id, &agent, options).document();
        let said = document["message"].as_str().unwrap();
        assert!(
            said.contains(TASK) && said.contains("built") && !said.contains("SECRET"),
            "{document:#}"
        );
        assert!(
            !said.contains("token-in-config") && !said.contains("mine"),
            "{said}"
        );
        assert!(
            said.contains(&format!("port:{}", document["port_base"])),
            "{said}"
        );
        assert_eq!(paths(&document), Vec::<String>::new(), "{document:#}");
    }
    assert_eq!(env.read("deps/lib"), "built\n");
    let ports = env.json(&["sandbox", "list"]);
    assert_ne!(ports[0]["port_base"], ports[1]["port_base"]);
}

#[test]
fn uncommitted_work_of_the_person_is_neither_seen_nor_committed() {
    let env = Environment::new();
    env.write("answer.txt", "mine, half done\n");
    env.write("draft.txt", "mine\n");
    let agent = "cat answer.txt; ls; echo 42 > answer.txt";
    let document = launch(&env, "1", agent, &["--branch", "b"]).document();
    let said = document["message"].as_str().unwrap();
    assert!(
        said.starts_with("wrong") && !said.contains("draft"),
        "{document:#}"
    );
    assert_eq!(document["workspace"], "layer");
    assert_eq!(env.show("b", "answer.txt"), "42");
    assert_eq!(env.git(&["diff", "--name-only", "main", "b"]), "answer.txt");
    assert_eq!(env.read("answer.txt"), "mine, half done\n");
    // What the project wants to be seen is seen.
    env.write(".kapiinclude", "draft.txt\n");
    let document = launch(&env, "2", "cat draft.txt", &["--branch", "c"]).document();
    assert_eq!(document["message"], "mine", "{document:#}");
    assert_eq!(env.git(&["diff", "--name-only", "main", "c"]), "");
}

#[test]
fn a_worktree_shows_what_the_project_includes_and_does_not_commit_it() {
    let env = Environment::new();
    env.write(".gitignore", ".env.*\n");
    env.write(".kapiinclude", ".env.test\nnotes/\n*.link\nanswer.txt\n");
    env.commit_all("rules");
    env.write(".env.test", "A=1\n");
    env.write(".env.other", "B=2\n");
    env.write("notes/deep/one.txt", "one\n");
    env.write("notes/two.txt", "two\n");
    env.write("answer.txt", "mine, half done\n");
    let outside = env.root().join("outside.txt");
    write(&outside, "outside\n");
    std::os::unix::fs::symlink(&outside, env.repository().join("x.link")).unwrap();
    std::os::unix::fs::symlink(&outside, env.repository().join("notes/y")).unwrap();
    let agent = "cat .env.test notes/deep/one.txt notes/two.txt answer.txt; ls -a | grep -c other; \
                 ls x.link notes/y; git status --porcelain --ignored; echo changed > notes/two.txt; \
                 echo 42 > answer.txt";
    for (id, more) in [("1", &[][..]), ("2", &["--sandbox", "none"])] {
        let options = [&["--branch", id, "--worktree-mode"][..], more].concat();
        let document = launch(&env, id, agent, &options).document();
        let said = document["message"].as_str().unwrap();
        assert!(said.starts_with("A=1\none\ntwo\nwrong\n0"), "{document:#}");
        assert!(
            !said.contains("outside") && !said.contains("x.link"),
            "{said}"
        );
        // What was only shown is not the agent's work; what it changed is.
        assert_eq!(
            paths(&document),
            ["modified answer.txt", "added notes/two.txt"],
            "{document:#}"
        );
        let notes = document["notes"].to_string();
        assert!(notes.contains("3 files outside git"), "{notes}");
        assert!(notes.contains("1 file listed in .kapiinclude,"), "{notes}");
        let worktree = PathBuf::from(document["worktree"].as_str().unwrap());
        assert!(!worktree.join(".env.test").exists() && !worktree.join("notes/deep").exists());
    }
    assert_eq!(env.read("notes/two.txt"), "two\n");
    let listed = env.kapi(&["sandbox", "exec", "1", "--", "cat", ".env.test"]);
    assert_eq!(listed.stdout, "A=1\n", "{listed:?}");
    let diff = env.json(&["diff", "launch/1", "--stat"]);
    assert_eq!(diff["changed"].as_array().unwrap().len(), 2, "{diff:#}");
}

#[test]
fn what_an_agent_leaves_behind_acts_on_nobody() {
    let env = Environment::new();
    env.write("husky/.keep", "");
    env.commit_all("hooks");
    env.git(&["config", "core.hooksPath", "husky"]);
    let planted = env.root().join("planted").display().to_string();
    let agent = format!(
        "mkfifo pipe; ln -s /etc/passwd link; cp /bin/true run; chmod 4755 run; mkdir -p sub/.git; \
         printf '#!/bin/sh\\ntouch {planted}\\n' > husky/reference-transaction; chmod 755 husky/*; \
         cp husky/reference-transaction husky/post-index-change; git config core.fsmonitor /bin/false; \
         echo '* filter=evil' > .gitattributes; git commit -qam inside; echo 42 > answer.txt"
    );
    for (id, options) in [
        ("1", &["--branch", "b"][..]),
        ("2", &["--branch", "c", "--worktree-mode"]),
    ] {
        let output = launch(&env, id, &agent, options);
        let document = output.document();
        assert_eq!(output.code, 0, "{output:?}");
        let left: Vec<&str> = document["left_out"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        assert!(
            left.iter().any(|line| line.starts_with("pipe: ")),
            "{left:?}"
        );
        assert!(left.iter().any(|line| line.starts_with("sub")), "{left:?}");
        let branch = options[1];
        assert_eq!(env.show(branch, "answer.txt"), "42");
        assert_eq!(
            env.git(&["ls-tree", branch, "run"]).split(' ').next(),
            Some("100755")
        );
        let log = env.git(&["log", "--format=%s", branch]);
        assert!(
            !log.contains("inside"),
            "the agent's own commits are its own: {log}"
        );
        assert!(!Path::new(&planted).exists(), "a hook of the agent's ran");
    }
}

#[test]
fn the_progress_file_is_read_and_never_committed() {
    let env = Environment::new();
    let agent = r#"mkdir .kapsis; echo '{"current_step":2,"total_steps":4,"description":"Half"}' > .kapsis/progress.json; echo 42 > answer.txt"#;
    for (id, options) in [
        ("1", &["--branch", "b"][..]),
        ("2", &["--branch", "c", "--worktree-mode"]),
        ("3", &[]),
    ] {
        let document = launch(&env, id, agent, options).document();
        assert_eq!(paths(&document), ["modified answer.txt"], "{document:#}");
    }
}

#[test]
fn an_interactive_launch_has_a_terminal_of_its_own() {
    let env = Environment::new();
    let kapi = env!("CARGO_BIN_EXE_kapi");
    let project = env.repository().display().to_string();
    let agent = "command:[ -t 0 ] && [ -t 1 ] && echo at a terminal; stty size; read word; echo got $word > answer.txt";
    let line = format!(
        "stty rows 33 cols 99; exec {kapi} launch 1 {project} --interactive --branch b --agent '{agent}'"
    );
    let mut command = env.command("python3", &env.repository());
    let driver = "import os, pty, select, sys\n\
        pid, fd = pty.fork()\n\
        if pid == 0: os.execv('/bin/sh', ['sh', '-c', sys.argv[1]])\n\
        said, is_typed = b'', False\n\
        while select.select([fd], [], [], 60)[0]:\n\
        \ttry: more = os.read(fd, 1024)\n\
        \texcept OSError: break\n\
        \tsaid += more\n\
        \tif b'33 99' in said and not is_typed:\n\
        \t\tis_typed = True\n\
        \t\tos.write(fd, b'typed\\n')\n\
        \tif not more: break\n\
        os.close(fd)\n\
        sys.stdout.write(said.decode(errors='replace'))\n\
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n";
    command.args(["-c", driver, &line]);
    let output = crate::program::finish(command);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stdout.contains("at a terminal"), "{output:?}");
    assert_eq!(env.show("b", "answer.txt"), "got typed", "{output:?}");
}
