//! `kapi cleanup`: what goes, what stays and why, and that nothing is lost by it.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::containers::{Containers, IMAGE};
use crate::environment::{Environment, write};
use crate::kernel_leavings::{counted, lines};
use crate::launch::{launch, launch_on, plain_project};

fn names(document: &Value, list: &str) -> Vec<String> {
    let things = document[list].as_array().unwrap().iter();
    things
        .map(|thing| {
            format!(
                "{} {}",
                thing["what"].as_str().unwrap(),
                thing["name"].as_str().unwrap()
            )
        })
        .collect()
}

#[test]
fn only_what_is_elsewhere_goes_and_the_rest_says_why_it_stays() {
    let env = Environment::new();
    launch(&env, "merged", "echo 42 > answer.txt", &["--branch", "m"]);
    env.git(&["merge", "--quiet", "m"]);
    launch(&env, "unmerged", "echo 43 > answer.txt", &["--branch", "u"]);
    launch(&env, "pending", "echo 44 > answer.txt", &[]);
    launch(&env, "empty", "true", &[]);
    launch_on(&env, "elsewhere", &plain_project(&env), "true", &[]);
    let reported = env.json(&["cleanup", "--dry-run"]);
    assert_eq!(
        names(&reported, "removed"),
        ["sandbox empty", "sandbox merged"],
        "{reported:#}"
    );
    let kept = reported["kept"].as_array().unwrap();
    let why = |name: &str| {
        let thing = kept.iter().find(|thing| thing["name"] == name).unwrap();
        thing["why"].as_str().unwrap().to_owned()
    };
    assert!(
        why("unmerged").contains("neither pushed nor merged"),
        "{reported:#}"
    );
    assert!(why("pending").contains("unmerged"), "{reported:#}");
    assert_eq!(env.json(&["sandbox", "list"]).as_array().unwrap().len(), 5);
    let done = env.json(&["cleanup"]);
    assert_eq!(
        names(&done, "removed"),
        ["sandbox empty", "sandbox merged"],
        "{done:#}"
    );
    assert_eq!(names(&done, "failed"), Vec::<String>::new());
    let all = env.json(&["cleanup", "--all"]);
    assert_eq!(names(&all, "removed"), ["sandbox elsewhere"], "{all:#}");
    assert_eq!(env.json(&["sandbox", "list"]).as_array().unwrap().len(), 2);
}

#[test]
fn a_named_sandbox_goes_after_a_yes_and_its_commit_can_be_brought_back() {
    let env = Environment::new();
    launch(&env, "1", "echo 42 > answer.txt", &["--branch", "b"]);
    let commit = env.commit_of("b");
    let asked = env.kapi(&["cleanup", "1"]);
    assert_eq!(asked.code, 2, "{asked:?}");
    for word in ["neither pushed nor merged", "needs confirmation", "--yes"] {
        assert!(asked.stderr.contains(word), "{word} in {asked:?}");
    }
    env.git(&["branch", "--quiet", "--delete", "--force", "b"]);
    let done = env.json(&["cleanup", "1", "--yes"]);
    assert_eq!(names(&done, "removed"), ["sandbox 1"], "{done:#}");
    let line = done["restore"][0].as_str().unwrap();
    env.git(&line.split(' ').skip(1).collect::<Vec<&str>>());
    assert_eq!(env.commit_of("b"), commit);
    env.kapi(&["cleanup", "nothing"])
        .assert_error(6, &["no sandbox nothing"]);
}

#[test]
fn what_was_used_lately_stays_and_logs_go_alone() {
    let env = Environment::new();
    launch(&env, "1", "true", &[]);
    let reported = env.json(&["cleanup", "--older-than", "7d", "--dry-run"]);
    assert_eq!(
        names(&reported, "removed"),
        Vec::<String>::new(),
        "{reported:#}"
    );
    assert!(
        reported["kept"][0]["why"]
            .as_str()
            .unwrap()
            .contains("used recently"),
        "{reported:#}"
    );
    let done = env.json(&["cleanup", "--older-than", "7d", "--logs"]);
    assert_eq!(names(&done, "removed"), ["logs 1"], "{done:#}");
    let listed = env.json(&["sandbox", "list"]);
    let dir = PathBuf::from(listed[0]["sandbox"].as_str().unwrap());
    assert!(dir.is_dir() && !dir.join("runs").exists());
}

#[test]
fn the_worktree_of_an_ended_goal_goes_and_that_of_another_stays() {
    let env = Environment::new();
    env.run("command:echo 42 > answer.txt", &[])
        .assert_status("done", 0);
    let options = ["--turns", "1"];
    env.run("command:echo 41 > answer.txt", &options)
        .assert_status("paused", 5);
    let worktrees = || {
        let found = env.git(&["worktree", "list", "--porcelain"]);
        found.matches("worktree ").count()
    };
    assert_eq!(worktrees(), 3);
    let done = env.json(&["cleanup"]);
    assert_eq!(
        names(&done, "removed"),
        ["goal 001-make-answer-right"],
        "{done:#}"
    );
    let kept = done["kept"].as_array().unwrap();
    assert!(
        kept[0]["why"].as_str().unwrap().contains("has not ended"),
        "{done:#}"
    );
    assert_eq!(worktrees(), 2);
    assert_eq!(env.show("feat/goal-make-answer-right", "answer.txt"), "42");
}

#[test]
fn however_many_workspaces_are_kept_a_look_at_them_takes_as_many_git_processes() {
    let mut env = Environment::new();
    let file = counted(&mut env);
    let worktree = |goal: &str| {
        let shown = env.json(&["show", goal]);
        PathBuf::from(shown["worktree"].as_str().unwrap())
    };
    // One that may go, one with files that no commit has, and a launch that nobody merged.
    let add = |n: usize| {
        for _ in 0..2 {
            env.run("command:echo 42 > answer.txt", &[])
                .assert_status("done", 0);
        }
        write(&worktree(&(2 * n).to_string()).join("more.txt"), "more\n");
        let (id, branch) = (n.to_string(), format!("launched-{n}"));
        let options = ["--worktree-mode", "--branch", &branch];
        launch(&env, &id, "echo 43 > answer.txt", &options);
    };
    let look = || {
        let before = lines(&file);
        let told = env.json(&["cleanup", "--dry-run"]);
        (lines(&file) - before, told)
    };
    add(1);
    look();
    let (for_one, told) = look();
    assert_eq!(names(&told, "removed").len(), 1, "{told:#}");
    assert_eq!(names(&told, "kept").len(), 2, "{told:#}");
    add(2);
    add(3);
    // Files that were written in the very instant of a commit are compared once more.
    look();
    let (for_three, told) = look();
    assert_eq!(names(&told, "removed").len(), 3, "{told:#}");
    assert_eq!(names(&told, "kept").len(), 6, "{told:#}");
    let said = fs::read_to_string(&file).unwrap();
    assert_eq!(for_three, for_one, "{said}");
}

#[test]
fn containers_of_killed_launchers_go_and_those_of_others_stay() {
    let mut env = Environment::new();
    let containers = Containers::new(&mut env);
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap();
    let namespace: String = namespace
        .to_string_lossy()
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    // Nobody is this process, which began before the machine did.
    let dead = format!("kapi.owner={}/{namespace}/1/0", boot.trim());
    let make = |name: &str, labels: &[&str]| {
        let labels = labels.iter().flat_map(|label| ["--label", *label]);
        let args: Vec<&str> = ["create", "--name", name]
            .into_iter()
            .chain(labels)
            .collect();
        containers.podman(&env, &[&args[..], &[IMAGE, "true"]].concat());
    };
    make(
        "one",
        &[
            "kapi.managed=true",
            "kapi.run=killed",
            "kapi.room=0a",
            &dead,
        ],
    );
    make(
        "two",
        &["kapi.managed=true", "kapi.run=unknown", "kapi.room=0b"],
    );
    make("kapi-killed-2", &[]);
    let reported = env.json(&["cleanup", "--dry-run"]);
    assert_eq!(
        names(&reported, "removed"),
        ["container killed"],
        "{reported:#}"
    );
    assert_eq!(
        names(&reported, "kept"),
        ["container unknown"],
        "{reported:#}"
    );
    let lately = env.json(&["cleanup", "--older-than", "1d"]);
    assert_eq!(
        names(&lately, "removed"),
        Vec::<String>::new(),
        "{lately:#}"
    );
    let done = env.json(&["cleanup"]);
    assert_eq!(names(&done, "removed"), ["container killed"], "{done:#}");
    assert_eq!(names(&done, "failed"), Vec::<String>::new(), "{done:#}");
    let left = containers.podman(&env, &["ps", "--all", "--format", "{{.Names}}"]);
    let mut left: Vec<&str> = left.lines().collect();
    left.sort_unstable();
    assert_eq!(left, ["kapi-killed-2", "two"]);
}

#[test]
fn the_private_homes_of_a_goal_go_when_it_ends() {
    let env = Environment::new();
    let homes = || {
        let line = "find \"$HOME/.ilchul/sandboxes\" -name 'home-*' -o -name '*-home'";
        let mut command = env.command("sh", env.root());
        command.args(["-c", line]);
        crate::program::finish(command).stdout.lines().count()
    };
    env.run("command:echo 42 > answer.txt; echo secret > ~/log-in", &[])
        .assert_status("done", 0);
    assert_eq!(homes(), 0);
    let options = ["--turns", "1"];
    env.run(
        "command:echo 41 > answer.txt; echo secret > ~/log-in",
        &options,
    )
    .assert_status("paused", 5);
    assert!(homes() > 0, "its session may go on");
    assert_eq!(env.kapi(&["cancel", "2"]).code, 0);
    assert_eq!(homes(), 0);
}

#[test]
fn objects_that_no_sandbox_uses_go_and_those_of_living_ones_stay() {
    let env = Environment::new();
    let first = env.commit_of("main");
    launch(&env, "1", "git log --oneline", &[]);
    env.write("more.txt", "more\n");
    env.commit_all("more");
    launch(&env, "2", "git log --oneline", &[]);
    let stores = || {
        let line = "cd \"$HOME/.ilchul/objects\"; ls -d */????????????????????????????????????????";
        let mut command = env.command("sh", env.root());
        command.args(["-c", line]);
        let said = crate::program::finish(command).stdout;
        let names = said.lines().map(|line| line.rsplit('/').next().unwrap());
        names.map(str::to_owned).collect::<Vec<String>>()
    };
    let age = |days: u32| {
        let line = format!(
            "find \"$HOME/.ilchul/objects\" -name used -exec touch -d '{days} days ago' {{}} +"
        );
        let mut command = env.command("sh", env.root());
        command.args(["-c", &line]);
        assert_eq!(crate::program::finish(command).code, 0);
    };
    assert_eq!(stores().len(), 2);
    // Used lately: a sandbox may still run, whatever is on record.
    let done = env.json(&["cleanup", "1"]);
    assert_eq!(names(&done, "removed"), ["sandbox 1"], "{done:#}");
    let reported = env.json(&["cleanup", "--dry-run"]);
    assert_eq!(names(&reported, "removed"), ["sandbox 2"], "{reported:#}");
    age(9);
    // The second is a sandbox's, and made of the first.
    let reported = env.json(&["cleanup", "--dry-run"]);
    assert_eq!(names(&reported, "removed"), ["sandbox 2"], "{reported:#}");
    assert!(stores().contains(&first));
    assert_eq!(env.kapi(&["cleanup"]).code, 0);
    let reported = env.json(&["cleanup", "--dry-run", "--older-than", "30d"]);
    assert_eq!(
        names(&reported, "removed"),
        Vec::<String>::new(),
        "{reported:#}"
    );
    let reported = env.json(&["cleanup", "--dry-run"]);
    assert_eq!(names(&reported, "removed"), ["objects app"], "{reported:#}");
    assert_eq!(stores().len(), 2);
    let done = env.json(&["cleanup"]);
    assert_eq!(names(&done, "removed"), ["objects app"], "{done:#}");
    assert_eq!(stores(), Vec::<String>::new());
    // What is needed again is made again.
    let again = launch(&env, "3", "git log --oneline", &[]).document();
    assert!(
        again["message"].as_str().unwrap().contains("more"),
        "{again:#}"
    );
}
