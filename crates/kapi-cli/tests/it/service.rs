//! `kapi up --install`: a file that a system can run, shown first, ours alone, and nothing by itself.

use std::fs;
use std::path::PathBuf;

use crate::environment::{Environment, write};
use crate::program::finish;

fn directory(env: &Environment) -> PathBuf {
    env.home().join(".config/systemd/user")
}

fn only_file(env: &Environment) -> PathBuf {
    let mut found = fs::read_dir(directory(env)).unwrap();
    let file = found.next().unwrap().unwrap().path();
    assert!(found.next().is_none());
    file
}

#[test]
fn a_service_is_written_when_asked_and_runs_up_in_this_project() {
    let env = Environment::new();
    let unasked = env.kapi(&["up", "--install", "--kind", "systemd"]);
    assert_eq!(unasked.code, 2, "{unasked:?}");
    assert!(unasked.stderr.contains("add `--yes`"), "{unasked:?}");
    assert!(!directory(&env).exists());
    let installed = env.kapi(&["up", "--install", "--yes", "--kind", "systemd"]);
    assert_eq!(installed.code, 0, "{installed:?}");
    let file = only_file(&env);
    let text = fs::read_to_string(&file).unwrap();
    assert!(
        installed.stdout.contains(text.trim_end()),
        "it is shown: {installed:?}"
    );
    assert!(installed.stdout.contains("not running"), "{installed:?}");
    assert!(
        installed
            .stdout
            .contains("systemctl --user enable --now kapi-app-"),
        "{installed:?}"
    );
    let line = |key: &str| {
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(key));
        lines.next().unwrap().to_owned()
    };
    assert_eq!(
        line("ExecStart="),
        format!("\"{}\" up", env!("CARGO_BIN_EXE_kapi"))
    );
    assert_eq!(
        line("WorkingDirectory="),
        env.repository().display().to_string()
    );
    // Nothing was enabled.
    assert_eq!(fs::read_dir(directory(&env)).unwrap().count(), 1);
    let shown = env.json(&["up", "--show-unit", "--kind", "systemd"]);
    assert_eq!(
        (shown["state"].as_str(), shown["text"].as_str()),
        (Some("installed"), Some(text.as_str()))
    );
    verify(&env, &file);

    let removed = env.kapi(&["up", "--uninstall", "--kind", "systemd"]);
    assert_eq!(removed.code, 0, "{removed:?}");
    assert!(!file.exists());
    env.kapi(&["up", "--uninstall", "--kind", "systemd"])
        .assert_error(6, &["does not exist"]);
}

/// Has systemd read the unit, where this machine has the tool; its keys are checked in any case.
fn verify(env: &Environment, file: &std::path::Path) {
    let text = fs::read_to_string(file).unwrap();
    for line in text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let is_section = line.starts_with('[') && line.ends_with(']');
        assert!(
            is_section || line.split_once('=').is_some_and(|(key, _)| !key.is_empty()),
            "{line}"
        );
    }
    let tool = PathBuf::from("/usr/bin/systemd-analyze");
    if !tool.exists() {
        return;
    }
    let mut command = env.command("/usr/bin/systemd-analyze", &env.home());
    command.arg("--user").arg("verify").arg(file);
    let run_dir = env.root().join("run");
    fs::create_dir(&run_dir).unwrap();
    command.env("XDG_RUNTIME_DIR", run_dir);
    let output = finish(command);
    let name = file.file_name().unwrap().to_str().unwrap();
    let about_it: Vec<&str> = output
        .stderr
        .lines()
        .filter(|line| line.contains(name))
        .collect();
    assert_eq!(about_it, [""; 0], "{output:?}");
}

#[test]
fn a_property_list_is_written_where_launchd_looks() {
    let env = Environment::new();
    let installed = env.kapi(&["up", "--install", "--yes", "--kind", "launchd"]);
    assert_eq!(installed.code, 0, "{installed:?}");
    let mut found = fs::read_dir(env.home().join("Library/LaunchAgents")).unwrap();
    let file = found.next().unwrap().unwrap().path();
    let text = fs::read_to_string(&file).unwrap();
    assert!(
        text.contains(&format!("<string>{}</string>", env.repository().display())),
        "{text}"
    );
    let count = |tag: &str| text.matches(tag).count();
    for tag in ["key", "string", "dict", "array", "plist"] {
        let opened = count(&format!("<{tag}>")) + count(&format!("<{tag} "));
        assert_eq!(opened, count(&format!("</{tag}>")), "{tag} in {text}");
    }
    assert_eq!(
        env.kapi(&["up", "--uninstall", "--kind", "launchd"]).code,
        0
    );
    assert!(!file.exists());
}

#[test]
fn a_file_of_somebody_else_is_not_touched_and_only_a_person_installs() {
    let mut env = Environment::new();
    env.kapi(&["up", "--install", "--yes", "--kind", "systemd"]);
    let file = only_file(&env);
    let theirs = "[Service]\nExecStart=/bin/true\n";
    write(&file, theirs);
    for verb in [
        &["--install", "--yes"][..],
        &["--uninstall"],
        &["--show-unit"],
    ] {
        let args = [&["up"], verb, &["--kind", "systemd"]].concat();
        env.kapi(&args)
            .assert_error(3, &["was not written by Kapi"]);
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), theirs);
    env.set("KAPI_RUN_ID", "001-x-t001-agent-a1");
    env.kapi(&["up", "--show-unit"])
        .assert_error(3, &["only the user may"]);
}
