//! Images and the container level before anything starts in it: what is asked of podman, and what
//! is refused while nothing has happened yet.
//!
//! Podman is a script here that notes what it is asked; real containers have suites of their own.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::environment::{Environment, usual, write};

const AGENT: &str = "command:echo 42 > answer.txt";

/// Notes its arguments and what it is given, and answers like podman 5 when asked about itself.
const PODMAN: &str = r#"#!/bin/sh
if [ "$1" = info ]; then
    echo '{"host": {"security": {"rootless": false}, "cgroupControllers": ["cpu", "memory", "pids"]},
           "version": {"Version": "5.0.0"}}'
    exit 0
fi
echo "$@" > "$HOME/asked.txt"
cat > "$HOME/given.txt"
echo "STEP 1: something"
case "$*" in *refused*) echo "Error: no such thing" >&2; exit 125;; esac
"#;

/// Puts a podman of ours before all others on the search path.
fn with_podman(env: &mut Environment) {
    let podman = env.root().join("bin/podman");
    write(&podman, PODMAN);
    fs::set_permissions(&podman, fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let dir = podman.parent().unwrap().display();
    env.set("PATH", &format!("{dir}:{path}"));
}

/// Leaves nothing but git on the search path.
fn with_git_alone(env: &mut Environment) {
    let path = std::env::var_os("PATH").unwrap();
    let git = std::env::split_paths(&path).map(|dir| dir.join("git"));
    let git: PathBuf = git.into_iter().find(|path| path.is_file()).unwrap();
    let dir = env.root().join("git-alone");
    fs::create_dir(&dir).unwrap();
    symlink(git, dir.join("git")).unwrap();
    env.set("PATH", &dir.display().to_string());
}

#[test]
fn a_dry_run_shows_the_command_and_the_containerfile() {
    let mut env = Environment::bare();
    env.set("PATH", "/nonexistent");
    let output = env.kapi(&["sandbox", "image", "--dry-run"]);
    assert_eq!(output.code, 0, "{output:?}");
    let first = "podman build --tag=localhost/kapi:latest --file=- <an empty directory>\n";
    assert!(output.stdout.starts_with(first), "{output:?}");
    assert!(output.stdout.contains("\nFROM ${BASE}\n"), "{output:?}");
    let directory = env.root().join("mine");
    write(&directory.join("Containerfile"), "FROM scratch\n");
    let directory = directory.display().to_string();
    let own = env.json(&[
        "sandbox",
        "image",
        "--dry-run",
        "--tag=mine:1",
        "--base=debian:12",
        "--build-arg=A=b=c",
        "--directory",
        &directory,
    ]);
    let build = format!(
        "podman build --tag=mine:1 --build-arg=A=b=c --build-arg=BASE=debian:12 \
         --file={directory}/Containerfile {directory}\n"
    );
    let config = "[sandbox]\nimage = \"mine:1\"";
    assert_eq!(
        own,
        json!({"dry_run": true, "image": "mine:1", "build": build, "config": config})
    );
}

#[test]
fn a_value_that_is_not_meant_for_podman_is_2() {
    let env = Environment::bare();
    for (options, words) in [
        (&["--tag=--privileged"][..], "as image"),
        (&["--tag="], "--tag"),
        (&["--base="], "--base"),
        (&["--build-arg=AGENTS"], "NAME=VALUE"),
        (&["--build-arg=A B=x"], "build argument"),
        (&["--build-arg=A=x\ny"], "build argument"),
        (&["--base=a", "--build-arg=BASE=b"], "BASE is set twice"),
        (&["--directory=nowhere"], "no Containerfile in"),
    ] {
        let args = [&["sandbox", "image", "--dry-run"][..], options].concat();
        env.kapi(&args).assert_error(2, &[words]);
    }
}

#[test]
fn a_build_gives_podman_the_containerfile_and_says_what_to_configure() {
    let mut env = Environment::bare();
    with_podman(&mut env);
    let output = env.kapi(&["sandbox", "image", "--build-arg=PACKAGES=tree"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stdout.contains("image = \"localhost/kapi:latest\""));
    assert!(output.stdout.contains(".config/kapi/config.toml"));
    assert!(output.stderr.contains("STEP 1: something"), "{output:?}");
    let asked = fs::read_to_string(env.home().join("asked.txt")).unwrap();
    let options = "build --tag=localhost/kapi:latest --build-arg=PACKAGES=tree --file=- ";
    assert!(asked.starts_with(options), "{asked}");
    let context = asked.strip_prefix(options).unwrap().trim();
    assert!(!Path::new(context).exists(), "{context} is left behind");
    let given = fs::read_to_string(env.home().join("given.txt")).unwrap();
    assert!(given.contains("FROM ${BASE}"), "{given}");
    let output = env.kapi(&["sandbox", "image", "--tag=refused"]);
    assert_eq!((output.code, output.stdout.as_str()), (4, ""), "{output:?}");
    let last = "error: failed to run podman build: Error: no such thing\n";
    assert!(output.stderr.ends_with(last), "{output:?}");
    env.set("PATH", "/nonexistent");
    env.kapi(&["sandbox", "image"])
        .assert_error(4, &["find podman", "hint: install it"]);
}

#[test]
fn what_podman_could_not_begin_is_not_made() {
    let mut env = Environment::new();
    let with_level = usual(AGENT, &["--sandbox", "podman"]);
    env.kapi(&with_level).assert_error(
        4,
        &[
            "no image is configured",
            "kapi sandbox image",
            "image = \"localhost/kapi:latest\"",
        ],
    );
    env.configure("[sandbox]\nlevel = \"podman\"\nimage = \"--privileged\"\n");
    env.kapi(&usual(AGENT, &[]))
        .assert_error(2, &["--privileged"]);
    env.configure("[sandbox]\nlevel = \"podman\"\nimage = \"localhost/kapi:latest\"\n");
    with_git_alone(&mut env);
    env.kapi(&usual(AGENT, &[]))
        .assert_error(4, &["find podman", "hint: install it"]);
    env.configure("");
    for options in [&["--dry-run"][..], &[]] {
        let launch = ["launch", "x", ".", "--agent", AGENT, "--task", "t"];
        let args = [&launch[..], &["--sandbox", "podman"], options].concat();
        env.kapi(&args)
            .assert_error(4, &["no image is configured", "kapi sandbox image"]);
    }
    assert!(!env.repository().join(".ilchul").exists());
    assert!(!env.home().join(".ilchul").exists());
}

#[test]
fn the_doctor_misses_an_image() {
    let mut env = Environment::bare();
    with_podman(&mut env);
    let podman = |env: &Environment| {
        let report = env.json(&["doctor"]);
        let checks = report["checks"].as_array().unwrap();
        let mut found = checks
            .iter()
            .filter(|check| check["name"] == "sandbox podman");
        found.next().cloned().unwrap()
    };
    let check = podman(&env);
    assert_eq!(
        (&check["ok"], &check["required"], &check["installed"]),
        (&json!(false), &json!(false), &json!(false))
    );
    let detail = check["detail"].as_str().unwrap();
    assert!(detail.starts_with("no image is configured"), "{detail}");
    assert!(
        check["hint"]
            .as_str()
            .unwrap()
            .contains("kapi sandbox image")
    );
    env.configure("[sandbox]\nimage = \"localhost/kapi:latest\"\n");
    let check = podman(&env);
    assert_eq!((&check["ok"], &check["hint"]), (&json!(true), &json!(null)));
}
