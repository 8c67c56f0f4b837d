//! The package as npm publishes it: what is in it, and that the real Pi runs it from there.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::environment::Environment;
use crate::pi_host::{Options, package, pi};
use crate::program::{finish, parse};

#[expect(
    clippy::disallowed_methods,
    reason = "npm and tar are tools of the test, with the machine's own configuration"
)]
fn tool(program: &str, dir: &Path, args: &[&str]) -> String {
    let mut command = Command::new(program);
    command.current_dir(dir).args(args);
    let output = finish(command);
    assert_eq!(output.code, 0, "{program} {args:?}: {output:?}");
    output.stdout
}

/// Packs the package into a directory, and returns what npm says of the archive.
fn packed(into: &Path) -> Value {
    let into = into.to_str().unwrap();
    let args = ["pack", "--json", "--offline", "--pack-destination", into];
    let said = parse(&tool("npm", &package(), &args));
    said[0].clone()
}

/// Returns the modules that a file imports from beside it.
fn imports(text: &str) -> Vec<String> {
    let quoted = text.split("from \"./").skip(1);
    quoted
        .filter_map(|rest| rest.split('"').next())
        .map(|name| format!("kapi/{name}"))
        .collect()
}

#[test]
fn the_archive_holds_what_pi_runs_and_nothing_else() {
    let env = Environment::bare();
    let said = packed(env.root());
    assert_eq!(said["version"], env!("CARGO_PKG_VERSION"));
    let files = said["files"].as_array().unwrap().iter();
    let files: BTreeSet<String> = files
        .map(|file| file["path"].as_str().unwrap().to_owned())
        .collect();
    let is_wanted = |file: &String| {
        let is_code = file.starts_with("kapi/") && (file.ends_with(".ts") || is_mode(file));
        let is_skill = file.starts_with("skills/") && file.ends_with("/SKILL.md");
        is_code || is_skill || file == "package.json" || file == "README.md"
    };
    let others: Vec<&String> = files.iter().filter(|file| !is_wanted(file)).collect();
    assert!(others.is_empty(), "{others:?}");
    // Whatever the entry imports, directly or not, came along, and nothing that it does not.
    let mut reached = BTreeSet::from(["kapi/index.ts".to_owned()]);
    let mut open = vec!["kapi/index.ts".to_owned()];
    while let Some(file) = open.pop() {
        assert!(files.contains(&file), "{file} is imported and not packed");
        let text = fs::read_to_string(package().join(&file)).unwrap();
        for import in imports(&text) {
            if reached.insert(import.clone()) {
                open.push(import);
            }
        }
    }
    let code: BTreeSet<String> = files
        .iter()
        .filter(|file| file.ends_with(".ts"))
        .cloned()
        .collect();
    reached.retain(|file| file.ends_with(".ts"));
    assert_eq!(code, reached);
}

fn is_mode(file: &str) -> bool {
    file.starts_with("kapi/modes/") && file.ends_with(".json")
}

#[test]
fn pi_runs_it_from_the_archive_without_anything_else_of_the_checkout() {
    let env = Environment::new();
    let said = packed(env.root());
    let archive = said["filename"].as_str().unwrap();
    tool("tar", env.root(), &["-xzf", archive]);
    let unpacked = env.root().join("package");
    let args = ["-e", unpacked.to_str().unwrap(), "-p", "/until-done help"];
    let options = Options {
        is_bare: true,
        args: &args,
        ..Options::default()
    };
    let output = finish(pi(&env, &options));
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stderr.contains("/until-done <intent>"), "{output:?}");
    env.await_no_process();
}
