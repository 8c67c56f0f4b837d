//! The Pi package against the types of the pinned Pi, as strict as TypeScript can be, by the package's own
//! `npm run check`.
//!
//! The compiler is the one that the package pins, installed once per checkout beside the real CLIs.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use kapi_testkit::agent_tools::{Cli, path_with};
use serde_json::Value;

use crate::environment::{Environment, write};
use crate::pi_host::{PiVersion, checkout, package};
use crate::program::finish;

#[expect(
    clippy::disallowed_methods,
    reason = "npm and the compiler are tools of the test, with the machine's own configuration"
)]
fn tool(program: &Path) -> Command {
    Command::new(program)
}

fn check(command: Command) {
    let words = format!("{command:?}");
    let output = finish(command);
    assert_eq!(
        output.code, 0,
        "{words}\n{}\n{}",
        output.stdout, output.stderr
    );
}

/// Installs the compiler beside its place and moves it there, one process at a time; returns where its
/// programs are.
fn compiler(version: &str) -> PathBuf {
    let tools = checkout().join(".test-tools");
    let home = tools.join(format!("typescript-{version}"));
    fs::create_dir_all(&tools).unwrap();
    let lock = File::create(home.with_added_extension("lock")).unwrap();
    lock.lock().unwrap();
    if !home.exists() {
        let partial = home.with_added_extension("partial");
        fs::create_dir_all(&partial).unwrap();
        let mut npm = tool(Path::new("npm"));
        npm.args(["install", "--no-audit", "--no-fund", "--prefix"]);
        npm.arg(&partial).arg(format!("typescript@{version}"));
        check(npm);
        fs::rename(&partial, &home).unwrap();
    }
    home.join("node_modules/.bin")
}

/// Returns the package's own check of its types, on a copy of it.
fn check_of(copy: &Path, compiler: &Path) -> Command {
    let mut npm = tool(Path::new("npm"));
    npm.current_dir(copy).args(["run", "--silent", "check"]);
    npm.env("PATH", path_with(compiler));
    npm
}

#[test]
fn the_package_fits_the_types_of_pi() {
    fits(PiVersion::Pinned);
}

pub(crate) fn fits(version: PiVersion) {
    let (pi, _) = version.program();
    let modules = pi.parent().and_then(Path::parent).unwrap();
    let manifest = fs::read(package().join("package.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let pinned = |name: &str| {
        manifest["devDependencies"][name]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        pinned("@earendil-works/pi-coding-agent"),
        Cli::Pi.version(Cli::Pi.usual())
    );
    // A copy, so that the types of the pinned Pi are the ones that are found above it.
    let env = Environment::bare();
    let copy = env.root().join("package");
    for name in ["package.json", "tsconfig.json"] {
        write(&copy.join(name), fs::read(package().join(name)).unwrap());
    }
    let mut count = 0;
    for entry in fs::read_dir(package().join("kapi")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            // What differs from mode to mode is data, and has no types.
            continue;
        }
        let name = path.file_name().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            text.starts_with("// "),
            "{} says what it is",
            path.display()
        );
        write(&copy.join("kapi").join(name), text);
        count += 1;
    }
    assert!(count > 5, "{count} files");
    std::os::unix::fs::symlink(modules, copy.join("node_modules")).unwrap();
    let compiler = compiler(&pinned("typescript"));
    check(check_of(&copy, &compiler));
    // It would be seen: a word that no type has.
    write(
        &copy.join("kapi/wrong.ts"),
        "export const wrong: number = \"a word\";\n",
    );
    let output = finish(check_of(&copy, &compiler));
    assert!(output.stdout.contains("kapi/wrong.ts"), "{output:?}");
}
