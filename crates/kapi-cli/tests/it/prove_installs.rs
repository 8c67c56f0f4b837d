//! A change that asks for another dependency: it is installed once for its lock file, from the registry
//! that the person's own client asks, and kept.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, thread};

use crate::dialogs::at_terminal;
use crate::environment::{Environment, write};
use crate::program::{Output, finish};

/// An address of this machine that no client takes for the sandbox's own.
const HOST: &str = "127.0.0.2";

/// What the change is proved by.
const CHECK: &str = "node -e \"require('assert').equal(require('./index.js'), 7)\"";

/// A registry of npm with one package.
struct Registry {
    port: u16,
    asked: Arc<AtomicUsize>,
}

impl Registry {
    fn start(env: &Environment) -> Self {
        let package = env.root().join("package");
        write(
            &package.join("package.json"),
            r#"{"name": "seven", "version": "1.0.0", "main": "index.js"}"#,
        );
        write(&package.join("index.js"), "module.exports = 7;\n");
        let mut tar = env.command("tar", env.root());
        tar.args(["-czf", "seven.tgz", "package"]);
        assert_eq!(finish(tar).code, 0);
        let tarball = fs::read(env.root().join("seven.tgz")).unwrap();
        let listener = TcpListener::bind((HOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counter.fetch_add(1, Ordering::Relaxed);
                answer(stream, &tarball);
            }
        });
        Self { port, asked }
    }

    fn n_asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

/// Answers every request with the one package there is.
fn answer(mut stream: TcpStream, tarball: &[u8]) {
    let mut request = [0; 4096];
    // A client that has gone is no concern of the registry's.
    drop(stream.read(&mut request));
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        tarball.len()
    );
    drop(stream.write_all(head.as_bytes()));
    drop(stream.write_all(tarball));
}

/// Returns a project whose branch `change` takes a dependency that `main` does not have.
fn with_new_dependency(env: &Environment, registry: &Registry) {
    let manifest = |dependencies: &str| {
        format!(
            "{{\"name\": \"app\", \"version\": \"1.0.0\", \"dependencies\": {{{dependencies}}}}}\n"
        )
    };
    let lock = |dependencies: &str, package: &str| {
        format!(
            "{{\"name\": \"app\", \"version\": \"1.0.0\", \"lockfileVersion\": 3, \"requires\": true, \
             \"packages\": {{\"\": {{\"name\": \"app\", \"version\": \"1.0.0\", \"dependencies\": \
             {{{dependencies}}}}}{package}}}}}\n"
        )
    };
    env.write(".gitignore", "node_modules\n");
    env.write("package.json", &manifest(""));
    env.write("package-lock.json", &lock("", ""));
    env.write("index.js", "module.exports = 6;\n");
    env.commit_all("base");
    env.git(&["checkout", "--quiet", "-b", "change"]);
    let dependency = "\"seven\": \"1.0.0\"";
    let package = format!(
        ", \"node_modules/seven\": {{\"version\": \"1.0.0\", \"resolved\": \
         \"http://{HOST}:{}/seven.tgz\"}}",
        registry.port
    );
    env.write("package.json", &manifest(dependency));
    env.write("package-lock.json", &lock(dependency, &package));
    env.write("index.js", "module.exports = require('seven');\n");
    env.commit_all("seven");
    env.git(&["checkout", "--quiet", "main"]);
}

fn prove(env: &Environment, more: &[&str]) -> Output {
    let words = ["prove", "change", "--base", "main", "--verify", CHECK];
    env.kapi(&[&words[..], more].concat())
}

#[test]
fn what_a_lock_file_names_is_installed_once_and_kept() {
    let mut env = Environment::new();
    let registry = Registry::start(&env);
    with_new_dependency(&env, &registry);
    env.set(
        "NPM_CONFIG_REGISTRY",
        &format!("http://{HOST}:{}/", registry.port),
    );
    let first = prove(&env, &[]);
    assert_eq!(first.code, 0, "{first:?}");
    assert!(
        first.stdout.starts_with("proved: red on the base"),
        "{first:?}"
    );
    let n_asked = registry.n_asked();
    assert!(n_asked > 0);
    let second = prove(&env, &["--network", "none"]);
    assert_eq!(second.code, 0, "{second:?}");
    assert_eq!(registry.n_asked(), n_asked, "it was asked again");
    assert!(!env.repository().join("node_modules").exists());
}

#[test]
fn what_may_not_be_downloaded_is_said_in_one_sentence() {
    let mut env = Environment::new();
    let registry = Registry::start(&env);
    with_new_dependency(&env, &registry);
    // The client asks another registry, so nobody allowed this one.
    env.set("NPM_CONFIG_REGISTRY", &format!("http://{HOST}:9/"));
    let refused = prove(&env, &[]);
    assert_eq!(refused.code, 4, "{refused:?}");
    let host = format!("{HOST}:{}", registry.port);
    let whole = "cannot run: package-lock.json changed and `npm ci` could not install its \
        dependencies: ";
    let said = format!("{whole}{host} was refused: ");
    assert!(refused.stdout.starts_with(&said), "{refused:?}");
    let hint = format!("hint: if you trust it, add `--registry {host}` to install from there");
    assert!(refused.stdout.contains(&hint), "{refused:?}");
    assert_eq!(registry.n_asked(), 0);
    let offline = prove(&env, &["--network", "none"]);
    assert_eq!(offline.code, 4, "{offline:?}");
    assert!(offline.stdout.starts_with(whole), "{offline:?}");
    assert_eq!(registry.n_asked(), 0);
    let allowed = prove(&env, &["--registry", &host]);
    assert_eq!(allowed.code, 0, "{allowed:?}");
    assert!(registry.n_asked() > 0);
    assert!(!env.repository().join("node_modules").exists());
}

#[test]
fn at_a_terminal_it_is_asked_and_goes_on_with_a_yes() {
    let mut env = Environment::new();
    let registry = Registry::start(&env);
    with_new_dependency(&env, &registry);
    env.set("NPM_CONFIG_REGISTRY", &format!("http://{HOST}:9/"));
    let question = format!("Install from {HOST}:{} this time? [y/N] ", registry.port);
    let words = ["prove", "change", "--base", "main", "--verify", CHECK];
    let refused = at_terminal(&env, &words, &[(&question, "n\n")]);
    assert_eq!((refused.code, registry.n_asked()), (4, 0), "{refused:?}");
    let allowed = at_terminal(&env, &words, &[(&question, "y\n")]);
    assert_eq!(allowed.code, 0, "{allowed:?}");
    assert!(registry.n_asked() > 0);
}

#[test]
fn a_goal_asks_once_for_a_registry_and_goes_on_when_it_is_allowed() {
    let mut env = Environment::new();
    let registry = Registry::start(&env);
    with_new_dependency(&env, &registry);
    // The client asks another registry, so nobody allowed this one.
    env.set("NPM_CONFIG_REGISTRY", &format!("http://{HOST}:9/"));
    let write = |file: &str| {
        let content = env.show("change", file).replace('\'', "'\\''");
        format!("printf '%s\\n' '{content}' > {file}; ")
    };
    let files = ["package.json", "package-lock.json", "index.js"];
    let agent = format!("command:{}", files.map(write).concat());
    let options = ["--verify", CHECK, "--judge", "none", "--park"];
    let parked = env.run(&agent, &options);
    parked.assert_status("waiting", 5);
    assert_eq!(registry.n_asked(), 0);
    let id = parked.id().to_owned();
    let what = format!("dependencies from {HOST}:{}", registry.port);
    let reported = env.kapi(&["show", &id]);
    assert!(reported.stdout.contains(&what), "{reported:?}");
    let allowed = env.kapi(&["goal", "allow", &id, &what]);
    assert_eq!(allowed.code, 0, "{allowed:?}");
    env.resume(&id).assert_status("done", 0);
    assert!(registry.n_asked() > 0);
    let turns: Vec<_> = env
        .events(&id)
        .into_iter()
        .filter(|it| it["type"] == "agent_ended")
        .collect();
    assert_eq!(turns.len(), 1, "the agent was asked to mend what it cannot");
}

#[test]
fn nothing_of_the_change_runs_while_its_dependencies_are_installed() {
    let mut env = Environment::new();
    let registry = Registry::start(&env);
    with_new_dependency(&env, &registry);
    env.git(&["checkout", "--quiet", "change"]);
    let manifest = fs::read_to_string(env.repository().join("package.json")).unwrap();
    let scripts = "{\"scripts\": {\"postinstall\": \"echo module.exports=8 > node_modules/seven/index.js\"}, ";
    env.write("package.json", &manifest.replacen('{', scripts, 1));
    env.commit_all("a script of its own");
    env.git(&["checkout", "--quiet", "main"]);
    env.set(
        "NPM_CONFIG_REGISTRY",
        &format!("http://{HOST}:{}/", registry.port),
    );
    let output = prove(&env, &[]);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(
        output.stdout.contains("package.json (scripts"),
        "{output:?}"
    );
}

#[test]
fn a_lock_file_among_what_steers_the_checks_is_not_installed_from() {
    let env = Environment::new();
    env.write("sum.sh", "echo 2\n");
    env.commit_all("a sum that is wrong");
    env.write("sum.sh", "echo 3\n");
    env.write(".circleci/requirements.txt", "seven==1.0.0\n");
    env.commit_all("a sum that is right");
    let check = "sh sum.sh | grep 3";
    let output = env.kapi(&["prove", "HEAD", "--base", "HEAD~1", "--verify", check]);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stdout.starts_with("proved"), "{output:?}");
}

#[test]
fn a_lock_file_beside_what_is_checked_is_installed_from_only_where_a_command_names_it() {
    let env = Environment::new();
    env.write("sum.sh", "echo 2\n");
    env.write("docs/package-lock.json", "{}\n");
    env.commit_all("a sum that is wrong");
    env.write("sum.sh", "echo 4\n");
    // What no client can install from.
    env.write("docs/package-lock.json", "no lock file\n");
    env.commit_all("a sum that is still wrong");
    let prove = |check| env.kapi(&["prove", "HEAD", "--base", "HEAD~1", "--verify", check]);
    let output = prove("sh sum.sh | grep 3");
    assert_eq!(output.code, 5, "{output:?}");
    assert!(output.stdout.starts_with("refused"), "{output:?}");
    assert!(
        !format!("{output:?}").contains("package-lock"),
        "{output:?}"
    );
    let output = prove("cd docs && sh ../sum.sh | grep 3");
    assert_eq!(output.code, 4, "{output:?}");
    let said = "docs/package-lock.json changed and `cd docs && npm ci` could not install";
    assert!(output.stdout.contains(said), "{output:?}");
}
