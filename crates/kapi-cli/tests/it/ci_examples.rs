//! The example pipelines in `docs/examples`: they parse, and their own commands do on two fresh machines in
//! a row what their comments say. What a test cannot have, such as a host's cache, is done by hand.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::environment::{Environment, await_some, write};
use crate::kernel_unattended::{copy, runs};
use crate::program::finish;

/// The loop that both examples enable, due every ten seconds.
const NIGHTLY: &str = "---\nname: nightly\ntrigger:\n  type: cron\n  schedule: \"*/10 * * * * *\"\n\
                       ---\nLook around.\n";
/// What works here instead of a model.
const BACKEND: &str = "[kernel]\ndefault_backend = \"command:echo looked\"\n";

fn example(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples");
    let text = fs::read_to_string(path.join(name)).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

/// Makes a machine that knows the program by its name, with nothing but a clone of the project.
fn runner(project: &Environment) -> Environment {
    let mut env = Environment::bare();
    let bin = env.root().join("bin");
    fs::create_dir(&bin).unwrap();
    symlink(env!("CARGO_BIN_EXE_kapi"), bin.join("kapi")).unwrap();
    let path = std::env::var("PATH").unwrap();
    env.set("PATH", &format!("{}:{path}", bin.display()));
    let url = project.repository().display().to_string();
    env.git(&["pull", "--quiet", &url, "main"]);
    env.git(&["remote", "add", "origin", &url]);
    env
}

fn project() -> Environment {
    let env = Environment::new();
    env.write(".ilchul/loops/nightly.md", NIGHTLY);
    env.git(&["add", "--force", ".ilchul/loops"]);
    env.git(&["commit", "--quiet", "-m", "a loop"]);
    env
}

/// Runs lines of a pipeline as its host does, and returns what they print.
fn shell(env: &Environment, lines: &str) -> String {
    let mut command = env.command("sh", &env.repository());
    command.args(["-e", "-c", lines]);
    let output = finish(command);
    assert_eq!(output.code, 0, "{lines}: {output:?}");
    output.stdout
}

/// Has the model's place taken by a program of the person's own configuration.
fn without_model(env: &Environment) {
    let path: PathBuf = env.home().join(".config/kapi/config.toml");
    let said = fs::read_to_string(&path).unwrap();
    write(&path, format!("{said}{BACKEND}"));
}

/// Does on a machine what its host does between two runs, and checks that the second goes on.
fn goes_on(run: impl Fn(&Environment), cached: &str) {
    let project = project();
    let first = runner(&project);
    run(&first);
    let before = runs(&first, "nightly");
    let second = runner(&project);
    copy(
        &first.repository().join(cached),
        &second.repository().join(cached),
    );
    await_some("a run of the second machine", || {
        run(&second);
        (runs(&second, "nightly") > before).then_some(())
    });
}

#[test]
fn the_example_for_github_goes_on_where_the_last_run_stopped() {
    let pipeline = example("github-loops.yml");
    assert!(
        pipeline["on"]["schedule"][0]["cron"].is_string(),
        "{pipeline:#}"
    );
    let steps = pipeline["jobs"]["loops"]["steps"].as_array().unwrap();
    let line = |name: &str| {
        let step = steps.iter().find(|step| step["name"] == name).unwrap();
        let text = step["run"].as_str().unwrap();
        text.replace("${{ github.actor }}", "someone")
    };
    let cached: Vec<&str> = steps
        .iter()
        .filter_map(|step| step["with"]["path"].as_str())
        .collect();
    let [restored, saved] = cached.as_slice() else {
        panic!("{cached:?}");
    };
    assert_eq!(restored, saved);
    assert!(line("install").contains("cargo install --locked"));
    let run = |env: &Environment| {
        shell(env, &line("configure"));
        without_model(env);
        shell(env, &line("run"));
        assert!(shell(env, &line("report")).contains("nightly"));
    };
    goes_on(run, saved);
}

#[test]
fn the_example_for_gitlab_goes_on_where_the_last_run_stopped() {
    let pipeline = example("gitlab-loops.yml");
    let job = &pipeline["loops"];
    let lines = |key: &str| -> Vec<String> {
        let lines = job[key].as_array().unwrap().iter();
        lines
            .map(|line| line.as_str().unwrap().to_owned())
            .collect()
    };
    let cached = job["cache"]["paths"][0].as_str().unwrap();
    let run = |env: &Environment| {
        let key = env.root().join("key");
        write(&key, "sk-test\n");
        let set = format!(
            "ANTHROPIC_KEY_FILE='{}' CI_SERVER_HOST=localhost\n",
            key.display()
        );
        // Neither is there here: the sources, and a host that takes a push.
        let is_here = |line: &&String| !line.starts_with("cargo ") && !line.contains("set-url");
        let before: Vec<String> = lines("before_script")
            .iter()
            .filter(is_here)
            .cloned()
            .collect();
        assert_eq!(before.len() + 2, lines("before_script").len());
        shell(env, &(set + &before.join("\n")));
        without_model(env);
        shell(env, &lines("script").join("\n"));
        assert!(shell(env, &lines("after_script").join("\n")).contains("nightly"));
    };
    goes_on(run, cached);
}
