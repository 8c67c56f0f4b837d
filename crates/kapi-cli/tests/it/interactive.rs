//! `kapi launch --interactive` with a built-in agent: its own screen, behind the same doors as
//! without one.
//!
//! The agent is a script of ours under the name of the real one, which looks for itself.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};
use std::{fs, thread};

use kapi_testkit::model_server::ModelServer;
use kapi_testkit::model_server::scenario::ModelScenario;

use crate::containers::Containers;
use crate::environment::{Environment, write};
use crate::program::Output;

/// The key of the host; its beginning is what the agent looks for.
const KEY: &str = "sk-planted-0123456789abcdef";

/// Writes down what it finds, shows that it has a terminal, asks the model, and waits to be typed to.
const AGENT: &str = r#"#!/bin/sh
{
    echo "args $*"
    echo "task $(cat /task-spec.md)"
    echo "variable $EXTRA"
    echo "keys $(cat /proc/[0-9]*/environ "$HOME"/.[a-z]* /task-spec.md 2>/dev/null | tr '\0' '\n' | grep -c 'sk-[p]lanted')"
    echo "placeholder ${ANTHROPIC_API_KEY%-*}"
} > found.txt
[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo "screen $(stty size) $TERM"
ask() {
    body='{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}'
    printf 'POST /v1/messages HTTP/1.1\r\nhost: %s\r\nx-api-key: %s\r\nanthropic-version: 2023-06-01\r\n' "$at" "$1"
    printf 'content-type: application/json\r\ncontent-length: %s\r\nconnection: close\r\n\r\n%s' "${#body}" "$body"
}
at=${ANTHROPIC_BASE_URL#http://}
speak() {
    if command -v bash > /dev/null; then
        bash -c 'exec 3<>/dev/tcp/${0%:*}/${0#*:}; cat >&3; cat <&3' "$at"
    else
        nc "${at%:*}" "${at#*:}"
    fi
}
ask "$ANTHROPIC_API_KEY" | speak > answer.http
echo "with $(head -n 1 answer.http | cut -d ' ' -f 2) $(grep -c output_tokens answer.http)" >> found.txt
ask wrong | speak > answer.http
echo "without $(head -n 1 answer.http | cut -d ' ' -f 2)" >> found.txt
rm answer.http
echo ready
read word
echo "typed $word" | tee -a found.txt
"#;

/// Runs its own hooks as the real one does, with recorded payloads, and waits after each.
const HOOKED: &str = r#"#!/bin/sh
hook() {
    line=$(sed -n "s/.*\"$1\": .*\"command\":\"\([^\"]*kapi hook[^\"]*\)\".*/\1/p" "$HOME/.claude/settings.json")
    sh -c "$line" < "$2" || exit 9
    echo "told $2"
    read word
}
hook SessionStart payloads/session
hook PreToolUse payloads/read
hook PreToolUse payloads/write
hook PreToolUse payloads/test
hook PreToolUse payloads/forged
hook Stop payloads/stop
grep -o 'say done' "$HOME/.claude/settings.json" > found.txt
grep -o 'kapi hook --agent claude' "$HOME/.claude/settings.json" | wc -l | tr -d ' ' >> found.txt
exit 7
"#;

/// Lets the agent go on once the status says something else than before, and prints each.
const WATCHER: &str = r"
import glob, json, os, pty, select, sys, time
pid, fd = pty.fork()
if pid == 0: os.execv('/bin/sh', ['sh', '-c', sys.argv[1]])
said, last, n_told = b'', 'Starting the agent', 0
while select.select([fd], [], [], 60)[0]:
    try: more = os.read(fd, 1024)
    except OSError: break
    said += more
    if said.count(b'told payloads/') > n_told:
        n_told += 1
        end = time.monotonic() + 30
        while True:
            path, = glob.glob(sys.argv[2])
            seen = json.load(open(path))
            if seen['message'] != last or time.monotonic() > end: break
            time.sleep(0.01)
        last = seen['message']
        print('STATUS', seen['phase'], seen['progress'], seen['exit_code'], last, flush=True)
        os.write(fd, b'\n')
    if not more: break
os.close(fd)
print(said.decode(errors='replace'))
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
path, = glob.glob(sys.argv[2])
seen = json.load(open(path))
print('STATUS', seen['phase'], seen['progress'], seen['exit_code'], seen['agent_id'])
sys.exit(code)
";

/// What the person has already.
const SETTINGS: &str =
    r#"{"theme":"dark","hooks":{"Stop":[{"hooks":[{"type":"command","command":"say done"}]}]}}"#;

/// Gives the repository the payloads that real hooks were given.
fn bring_payloads(env: &Environment) {
    let tool = |name: &str, key: &str, value: &str| {
        let mut payload = recorded("PreToolUse.Write");
        payload["tool_name"] = name.into();
        payload["tool_input"] = serde_json::json!({ key: value });
        payload
    };
    let mut forged = tool("Bash", "command", "echo on");
    for (key, value) in [("phase", "complete"), ("agent_id", "other")] {
        forged[key] = value.into();
    }
    forged["progress"] = 100.into();
    forged["exit_code"] = 0.into();
    for (name, payload) in [
        ("session", recorded("SessionStart")),
        ("read", tool("Read", "file_path", "/workspace/answer.txt")),
        ("write", recorded("PreToolUse.Write")),
        ("test", tool("Bash", "command", "cargo test")),
        ("forged", forged),
        ("stop", recorded("Stop")),
    ] {
        env.write(&format!("payloads/{name}"), &payload.to_string());
    }
    env.commit_all("payloads");
}

fn recorded(event: &str) -> serde_json::Value {
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let hooks = crates.join("kapi-agent/tests/fixtures/hooks");
    let text = fs::read_to_string(hooks.join(format!("claude.hook.{event}.json"))).unwrap();
    let recorded: serde_json::Value = serde_json::from_str(&text).unwrap();
    recorded["stdin"].clone()
}

/// Launches the agent that runs its hooks and checks how its status moved meanwhile.
fn check_hooks(env: &Environment, id: &str, options: &str) {
    let kapi = env!("CARGO_BIN_EXE_kapi");
    let project = env.repository().display().to_string();
    let line = format!(
        "exec {kapi} launch {id} {project} --interactive --branch {id} --task 'make it right' {options}"
    );
    let status = env.home().join(".ilchul/status/kapi-*.json");
    let mut command = env.command("python3", &env.repository());
    command.args(["-c", WATCHER, &line, &status.display().to_string()]);
    let output = crate::program::finish(command);
    let seen = output
        .stdout
        .lines()
        .filter(|line| line.starts_with("STATUS "));
    let seen: Vec<&str> = seen.collect();
    assert_eq!(
        seen,
        [
            "STATUS starting 22 None The agent started a session",
            "STATUS exploring 25 None Exploring: /workspace/answer.txt",
            "STATUS implementing 35 None Implementing: /workspace/hello.txt",
            "STATUS testing 60 None Testing: cargo test",
            "STATUS testing 60 None Using a tool: echo on",
            "STATUS testing 60 None The agent ended its turn",
            &format!("STATUS complete 100 107 {id}"),
        ],
        "{output:?}"
    );
    assert_eq!(output.code, 107, "{output:?}");
    // The person's hook is there beside ours, one for each event.
    assert_eq!(
        env.show(id, "found.txt"),
        "say done
7"
    );
}

/// A machine whose agent runs hooks, with settings of the person's that are lent to it.
fn hooked(env: &Environment, more: &str) {
    machine(env, more);
    write(&env.root().join("bin/claude"), HOOKED);
    write(&env.home().join(".claude/settings.json"), SETTINGS);
    write(
        &env.home().join("lend.yaml"),
        "agent: {type: claude}
filesystem: {include: [~/.claude]}
",
    );
    bring_payloads(env);
}

/// Tells that no launch changed what the person has, nor left anybody listening.
fn assert_untouched(env: &Environment) {
    let theirs = fs::read_to_string(env.home().join(".claude/settings.json")).unwrap();
    assert_eq!(theirs, SETTINGS);
    let left = files_with(&env.home().join(".ilchul/sandboxes"), "run/kapi/hook");
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].ends_with("home/.claude/settings.json"), "{left:?}");
}

#[test]
fn the_status_of_an_agent_on_its_own_screen_comes_from_its_hooks() {
    let mut env = Environment::new();
    env.set("HOST_KEY", KEY);
    hooked(&env, "");
    let options = format!("--config {}", env.home().join("lend.yaml").display());
    check_hooks(&env, "hooked", &options);
    // A second launch finds its hooks there.
    check_hooks(&env, "hooked", &options);
    assert_untouched(&env);
}

#[test]
fn the_status_of_an_agent_on_its_own_screen_in_a_container_does_too() {
    let mut env = Environment::new();
    env.set("HOST_KEY", KEY);
    let containers = Containers::new(&mut env);
    let script = env.root().join("bin").display().to_string();
    hooked(
        &env,
        &format!(
            "{}read_only = [{script:?}]
",
            Containers::CONFIG
        ),
    );
    let config = env.home().join("lend.yaml");
    let options = format!("--sandbox podman --config {}", config.display());
    check_hooks(&env, "inside", &options);
    assert_untouched(&env);
    assert_eq!(containers.podman(&env, &["ps", "--all", "--quiet"]), "");
}

/// A machine whose agent is the script, and the model that it asks.
fn machine(env: &Environment, more: &str) -> ModelServer {
    let server = model();
    configure(env, more, &server.base_url());
    server
}

fn model() -> ModelServer {
    ModelServer::start(ModelScenario {
        require_key: Some(KEY.to_owned()),
        ..ModelScenario::new(Vec::new())
    })
    .unwrap()
}

fn configure(env: &Environment, more: &str, url: &str) {
    let agent = env.root().join("bin/claude");
    write(&agent, AGENT);
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    env.configure(&format!(
        "{more}[agents.claude]\ncommand = {:?}\nbase_url = {:?}\napi_key_env = \"HOST_KEY\"\n\
         env = {{ EXTRA = \"from the configuration\" }}\n",
        agent.display().to_string(),
        url,
    ));
}

/// Launches it at a terminal and types a word when it is ready.
fn at_terminal(env: &Environment, id: &str, options: &str) -> Output {
    let kapi = env!("CARGO_BIN_EXE_kapi");
    let project = env.repository().display().to_string();
    let line = format!(
        "stty rows 33 cols 99; exec {kapi} launch {id} {project} --interactive --agent claude --branch {id} \
         --task 'make it right' {options}"
    );
    let driver = "import os, pty, select, sys\n\
        pid, fd = pty.fork()\n\
        if pid == 0: os.execv('/bin/sh', ['sh', '-c', sys.argv[1]])\n\
        said, is_typed = b'', False\n\
        while select.select([fd], [], [], 60)[0]:\n\
        \ttry: more = os.read(fd, 1024)\n\
        \texcept OSError: break\n\
        \tsaid += more\n\
        \tif b'ready' in said and not is_typed:\n\
        \t\tis_typed = True\n\
        \t\tos.write(fd, b'hello\\n')\n\
        \tif not more: break\n\
        os.close(fd)\n\
        sys.stdout.write(said.decode(errors='replace'))\n\
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n";
    let mut command = env.command("python3", &env.repository());
    command.args(["-c", driver, &line]);
    crate::program::finish(command)
}

fn check(env: &Environment, server: &ModelServer, id: &str, options: &str) {
    let output = at_terminal(env, id, options);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stdout.contains("screen 33 99 vt-test"), "{output:?}");
    let found = env.show(id, "found.txt");
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(
        lines,
        [
            "args Do what the file /task-spec.md describes. --dangerously-skip-permissions \
             --setting-sources user --strict-mcp-config --add-dir /workspace",
            "task make it right",
            "variable from the configuration",
            "keys 0",
            "placeholder kapi-placeholder",
            "with 200 1",
            "without 403",
            "typed hello",
        ],
        "{output:?}"
    );
    // The provider saw the real key, and only the one call that had the right placeholder.
    let asked = server.requests();
    let asked = asked.iter().filter(|request| request.api.is_some());
    assert_eq!(asked.count(), 1);
}

#[test]
fn an_agent_on_its_own_screen_has_the_gateway_and_no_key() {
    let mut env = Environment::new();
    env.set("HOST_KEY", KEY);
    env.set("TERM", "vt-test");
    check(&env, &machine(&env, ""), "native", "");
    check(&env, &machine(&env, ""), "open", "--network open");
    let home = env.home().join(".ilchul/sandboxes");
    assert_eq!(files_with(&home, KEY), Vec::<String>::new());
}

#[test]
fn an_agent_on_its_own_screen_in_a_container_has_the_same() {
    let mut env = Environment::new();
    env.set("HOST_KEY", KEY);
    env.set("TERM", "vt-test");
    let containers = Containers::new(&mut env);
    let script = env.root().join("bin").display().to_string();
    let more = format!("{}read_only = [{script:?}]\n", Containers::CONFIG);
    check(&env, &machine(&env, &more), "inside", "--sandbox podman");
    assert_eq!(containers.podman(&env, &["ps", "--all", "--quiet"]), "");
}

/// Returns the files below a directory that hold a text.
fn files_with(dir: &std::path::Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let kind = fs::symlink_metadata(&path).unwrap();
        if kind.is_dir() {
            found.extend(files_with(&path, text));
        } else if kind.is_file() {
            let bytes = fs::read(&path).unwrap();
            if String::from_utf8_lossy(&bytes).contains(text) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

/// Passes each CONNECT on to an address and notes what was asked for.
fn host_proxy(to: SocketAddr) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, asked) = (listener.local_addr().unwrap(), Arc::default());
    let noted: Arc<Mutex<Vec<String>>> = Arc::clone(&asked);
    // Ends with the test's process, as its client does.
    thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, mut head, mut byte) = (client.unwrap(), Vec::new(), [0]);
            while !head.ends_with(b"\r\n\r\n") && client.read_exact(&mut byte).is_ok() {
                head.push(byte[0]);
            }
            let line = String::from_utf8_lossy(&head)
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned();
            noted.lock().unwrap().push(line);
            let mut server = TcpStream::connect(to).unwrap();
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            let (mut up, mut down) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || std::io::copy(&mut up, &mut down));
            thread::spawn(move || std::io::copy(&mut server, &mut client));
        }
    });
    (address, asked)
}

#[test]
fn a_host_that_needs_a_proxy_asks_the_model_through_it() {
    let mut env = Environment::new();
    let server = model();
    let (proxy, asked) = host_proxy(
        server
            .base_url()
            .trim_start_matches("http://")
            .parse()
            .unwrap(),
    );
    env.set("HOST_KEY", KEY);
    env.set("TERM", "vt-test");
    env.set("https_proxy", &format!("http://{proxy}"));
    configure(&env, "", "http://provider.test:8080");
    check(&env, &server, "behind", "");
    let asked = asked.lock().unwrap().clone();
    assert_eq!(asked, ["CONNECT provider.test:8080 HTTP/1.1"]);
    env.set("https_proxy", "socks5://127.0.0.1:1");
    let output = at_terminal(&env, "1", "");
    assert_eq!(output.code, 2, "{output:?}");
    assert!(output.stdout.contains("only http:// proxies"), "{output:?}");
}

#[test]
fn an_agent_without_its_key_does_not_begin() {
    let env = Environment::new();
    let server = machine(&env, "");
    let output = at_terminal(&env, "1", "");
    assert_eq!(output.code, 4, "{output:?}");
    assert!(output.stdout.contains("HOST_KEY is not set"), "{output:?}");
    assert!(server.requests().is_empty());
}
