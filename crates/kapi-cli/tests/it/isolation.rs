//! What the agent can see and touch in the native sandbox, for root and for an ordinary user.
//!
//! The agent looks for itself and writes down what it found; its commit is the report.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::chown;

use crate::environment::{BRANCH, Environment, usual, write};

/// What must never be seen inside.
const SECRET: &str = "the-planted-secret";
/// An ordinary user and group of every system: nobody.
const NOBODY: u32 = 65_534;

/// What the agent tries: each line is a name and a command; `yes` is written if it succeeds.
const ATTEMPTS: &str = r#"
read_home: grep -q secret "$HOST_HOME/.netrc"
read_home_key: cat "$HOST_HOME/.ssh/id_ed25519"
list_home: ls "$HOST_HOME/.ssh"
read_shadow: cat /etc/shadow
read_elsewhere: cat "$HOST_ROOT/elsewhere/secret.txt"
read_tmp: cat "$HOST_TMP_FILE"
read_repository: cat "$HOST_ROOT/app/.git/config"
read_uncommitted: cat "$HOST_ROOT/app/uncommitted.txt"
read_state: ls "$HOST_ROOT/app/.ilchul"
find_state: find / -name .ilchul -not -path '/proc/*' 2>/dev/null | grep -q .
find_log: find / -name events.jsonl -not -path '/proc/*' 2>/dev/null | grep -q .
write_repository: echo x > "$HOST_ROOT/app/.git/config"
write_workspace_where_the_project_is: echo x > "$HOST_ROOT/app/planted.txt"
write_etc: echo x > /etc/planted
write_usr: echo x > /usr/planted
write_root: echo x > /planted
write_bin: echo x >> /bin/sh
write_proc: echo 0 > /proc/sys/kernel/printk
see_variable: env | grep -q UNNAMED
see_variable_of_others: cat /proc/[0-9]*/environ 2>/dev/null | grep -q the-planted-secret
see_host_processes: ls -d /proc/[0-9]* | wc -l | grep -qE '[0-9]{3}'
mount: mount -t tmpfs none /mnt
make_namespace: unshare --user --map-root-user true
make_device: mknod device c 1 3
raise_privilege: grep -q 'NoNewPrivs:.*0' /proc/self/status
keep_capabilities: grep 'CapEff:' /proc/self/status | grep -qv 0000000000000000
see_named_variable: [ "$NAMED" = passed-on ]
see_set_variable: [ "$SET" = set-inside ]
write_workspace: echo x > written.txt
write_private_home: echo x > "$HOME/written.txt"
write_private_tmp: echo x > /tmp/written.txt
git_status: git status --porcelain
git_commit: git add written.txt && git commit -qm inside && git log --oneline | grep -q inside
git_log: git log --oneline | grep -q base
git_branch: git branch planted && git tag planted
git_config: git config core.hooksPath /planted
reach_host: bash -c 'exec 3<>/dev/tcp/127.0.0.1/'$HOST_PORT
"#;
/// The attempts that must succeed: an agent needs them to work.
const GRANTED: &[&str] = &[
    "see_named_variable",
    "see_set_variable",
    "write_workspace",
    "write_workspace_where_the_project_is",
    "write_private_home",
    "write_private_tmp",
    "git_status",
    "git_commit",
    "git_log",
    "git_branch",
    "git_config",
];

#[test]
fn an_agent_started_by_root_is_confined() {
    let mut env = if is_root() {
        Environment::new()
    } else {
        // Root of a user namespace is what root is in a container.
        Environment::started_with(&["unshare", "--user", "--map-root-user", "--"], None)
    };
    assert_confined(&mut env);
}

#[test]
fn an_agent_started_by_an_ordinary_user_is_confined() {
    assert_confined(&mut ordinary());
}

#[test]
fn verify_commands_have_no_network_and_no_more_than_the_agent() {
    for mut env in [Environment::new(), ordinary()] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        plant(&mut env);
        // A forwarded port is for the agent, and for checks only where the contract says so.
        env.configure(&format!("[network]\nforward = [{port}]\n"));
        let reach = format!("bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'");
        let home = env.home().display().to_string();
        let verify = format!(
            "! {reach} 2>/dev/null && ! cat {home}/.netrc 2>/dev/null && ! env | grep UNNAMED \
             && ! env | grep NAMED && ! cat {home}/left.txt 2>/dev/null && [ ! -e /tmp/left.txt ] \
             && [ ! -e ignored.txt ] && git status > /dev/null && sh test.sh"
        );
        // What the agent leaves outside the commit is not there for the checks.
        let agent = "command:echo x > $HOME/left.txt; echo x > /tmp/left.txt; echo 42 > answer.txt; \
                     echo ignored.txt > .gitignore; echo x > ignored.txt";
        env.run(agent, &["--verify", &verify])
            .assert_status("done", 0);
        let options = [
            "--verify",
            reach.as_str(),
            "--verify-network",
            "--already-green",
        ];
        env.run(agent, &options).assert_status("done", 0);
    }
}

#[test]
fn the_judge_can_look_and_not_touch() {
    let mut env = Environment::new();
    plant(&mut env);
    let home = env.home().display().to_string();
    let judge = format!(
        "command:if echo x >> answer.txt || cat {home}/.netrc || ls /run/kapi/git || env | grep UNNAMED; \
         then exit 1; fi 2>/dev/null; grep -q 42 answer.txt && \
         echo '{{\"verdict\":\"done\",\"reason\":\"looked\"}}'"
    );
    let run = env.run("command:echo 42 > answer.txt", &["--judge", &judge]);
    run.assert_status("done", 0);
    assert_eq!(run.result["judge"]["reason"], "looked");
}

#[test]
fn a_home_of_an_agent_is_kept_for_the_goal_and_no_other() {
    let env = Environment::new();
    let agent = "command:ls -A $HOME >> seen.txt; echo $KAPI_TURN >> $HOME/session; \
                 [ $KAPI_TURN = 1 ] || echo 42 > answer.txt";
    for _ in 0..2 {
        let run = env.run(agent, &[]);
        run.assert_status("done", 0);
        let branch = run.result["branch"].as_str().unwrap();
        assert_eq!(
            env.show(branch, "seen.txt"),
            "session",
            "nothing in the first turn"
        );
    }
    assert!(!env.home().join("session").exists());
}

#[test]
fn nothing_hostile_comes_out_of_the_workspace() {
    let env = Environment::new();
    let outside = env.root().join("target.txt");
    write(&outside, "mine\n");
    let agent = format!(
        "command:echo 42 > answer.txt; ln -s {} link.txt; mkfifo pipe; mkdir -p sub/.git; \
         echo x > sub/.git/config; mkdir -p .git 2>/dev/null; echo '* filter=x' > .gitattributes; \
         cp answer.txt suid; chmod 4755 suid; chmod 000 test.sh; chmod 644 test.sh",
        outside.display()
    );
    let run = env.run(&agent, &[]);
    run.assert_status("done", 0);
    assert_eq!(fs::read_to_string(&outside).unwrap(), "mine\n");
    let listed = env.git(&["ls-tree", "-r", BRANCH]);
    assert!(
        !listed.contains("pipe") && !listed.contains("sub/.git"),
        "{listed}"
    );
    assert!(
        !listed.contains("120000") && !listed.contains("160000"),
        "{listed}"
    );
    let left_out = run.events("candidate_committed")[0]["candidate"]["left_out"].to_string();
    assert!(
        left_out.contains("pipe") && left_out.contains("link.txt"),
        "{left_out}"
    );
}

/// Makes a machine that belongs to an ordinary user.
fn ordinary() -> Environment {
    if !is_root() {
        return Environment::new();
    }
    let user = NOBODY.to_string();
    let (uid, gid) = (format!("--reuid={user}"), format!("--regid={user}"));
    Environment::started_with(
        &["setpriv", &uid, &gid, "--clear-groups", "--"],
        Some(NOBODY),
    )
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Plants secrets where a careless sandbox would show them.
fn plant(env: &mut Environment) {
    write(&env.home().join(".netrc"), format!("secret {SECRET}\n"));
    write(&env.home().join(".ssh/id_ed25519"), SECRET);
    write(&env.root().join("elsewhere/secret.txt"), SECRET);
    write(&env.repository().join("uncommitted.txt"), SECRET);
    env.set("UNNAMED", SECRET);
}

fn assert_confined(env: &mut Environment) {
    plant(env);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let shared = tempfile::Builder::new()
        .prefix("kapi-secret-")
        .tempfile_in("/tmp")
        .unwrap();
    write(shared.path(), SECRET);
    chown_if_root(shared.path());
    env.set("NAMED", "passed-on");
    env.configure(&format!(
        "[agents.command]\npass_env = [\"NAMED\"]\n[agents.command.env]\nSET = \"set-inside\"\n\
         HOST_HOME = {:?}\nHOST_ROOT = {:?}\nHOST_TMP_FILE = {:?}\nHOST_PORT = \"{port}\"\n",
        env.home(),
        env.root(),
        shared.path(),
    ));
    let config = env.read(".git/config");
    let mut agent = String::from("command:");
    for line in ATTEMPTS.trim().lines() {
        let (name, attempt) = line.split_once(": ").unwrap();
        let tried = format!("if ( {attempt} ) >> said.txt 2>&1; then echo {name}=yes");
        writeln!(agent, "{tried}; else echo {name}=no; fi >> report.txt").unwrap();
    }
    agent.push_str("echo 42 > answer.txt\n");
    let run = env.run(&agent, &[]);
    run.assert_status("done", 0);
    let report = env.show(BRANCH, "report.txt");
    let said = env.show(BRANCH, "said.txt");
    let found: BTreeMap<&str, &str> = report
        .lines()
        .filter_map(|line| line.split_once('='))
        .collect();
    assert_eq!(found.len(), ATTEMPTS.trim().lines().count(), "{report}");
    for (name, answer) in found {
        let expected = if GRANTED.contains(&name) { "yes" } else { "no" };
        assert_eq!(answer, expected, "{name}\n{said}");
    }
    assert!(!said.contains(SECRET), "{said}");
    assert!(!env.repository().join("planted.txt").exists());
    assert!(!env.home().join("written.txt").exists());
    assert_eq!(env.read(".git/config"), config);
    assert_eq!(env.git(&["tag"]), "");
    assert!(!env.git(&["branch", "--all"]).contains("planted"));
    assert_eq!(
        env.git(&["log", "--format=%s", BRANCH]),
        "feat: make the answer right\nbase"
    );
}

/// Gives a file to the ordinary user, so that only the sandbox keeps it from the agent.
fn chown_if_root(path: &std::path::Path) {
    if is_root() {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
}

#[test]
fn the_program_a_person_names_is_visible_and_nothing_beside_it() {
    let env = Environment::new();
    let tools = env.root().join("tools");
    write(&tools.join("secret.txt"), SECRET);
    let secret = tools.join("secret.txt").display().to_string();
    write(
        &tools.join("agent.sh"),
        format!("#!/bin/sh\necho 42 > answer.txt\ncat {secret} > leak.txt; true\n"),
    );
    let program = tools.join("agent.sh").display().to_string();
    let run = env.run(&format!("command:sh {program} now"), &[]);
    run.assert_status("done", 0);
    assert_eq!(env.show(BRANCH, "leak.txt"), "");
    let run = env.run(
        &format!("command:cat {secret} > answer.txt"),
        &["--turns", "1"],
    );
    run.assert_status("paused", 5);
}

#[test]
fn a_run_reaches_the_hosts_it_is_allowed_and_no_others() {
    reaches(|env, port| {
        env.configure(&format!(
            "[network]\nallow = [\"private:127.0.0.1:{port}\"]\n"
        ));
    });
}

#[test]
fn a_run_reaches_the_registry_that_the_persons_client_asks() {
    reaches(|env, port| {
        env.configure("[network]\nregistries = [\"python\"]\n");
        env.set("PIP_INDEX_URL", &format!("http://127.0.0.1:{port}/simple"));
    });
}

/// Runs an agent that asks a server of this machine, directly and through the proxy, and another host;
/// `allow` is given the server's port.
fn reaches(allow: impl FnOnce(&mut Environment, u16)) {
    let mut env = Environment::new();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        let mut seen = [0_u8; 1024];
        let n = stream.read(&mut seen).unwrap();
        let body = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello";
        stream.write_all(body.as_bytes()).unwrap();
        String::from_utf8_lossy(&seen[..n]).into_owned()
    });
    allow(&mut env, port);
    // A tunnel through the proxy, spoken by hand: no client of any kind is needed inside.
    let agent = format!(
        "command:bash -c 'p=${{HTTP_PROXY##*:}}; \
         exec 3<>/dev/tcp/127.0.0.1/$p; printf \"CONNECT elsewhere.example:443 HTTP/1.1\\r\\nhost: elsewhere.example:443\\r\\n\\r\\n\" >&3; \
         head -1 <&3 > refused.txt; \
         exec 4<>/dev/tcp/127.0.0.1/$p; printf \"GET http://127.0.0.1:{port}/x HTTP/1.1\\r\\nhost: 127.0.0.1:{port}\\r\\nconnection: close\\r\\n\\r\\n\" >&4; \
         cat <&4 > allowed.txt; \
         (exec 5<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo direct > direct.txt; \
         echo 42 > answer.txt'"
    );
    let run = env.run(&agent, &[]);
    run.assert_status("done", 0);
    assert!(env.show(BRANCH, "refused.txt").contains("403"));
    assert!(env.show(BRANCH, "allowed.txt").contains("hello"));
    assert!(
        !env.git(&["ls-tree", "--name-only", BRANCH])
            .contains("direct.txt")
    );
    let heard = answering.join().unwrap();
    assert!(heard.starts_with("GET /x HTTP/1.1"), "{heard}");
    let log = env.read(".ilchul/runs/001-make-answer-right-t001-agent-a1/network.jsonl");
    assert!(
        log.contains("elsewhere.example") && log.contains("denied"),
        "{log}"
    );
    let is_reported = |line: &serde_json::Value| {
        line["kind"] == "note"
            && line["text"]
                .as_str()
                .is_some_and(|text| text.contains("elsewhere.example"))
    };
    assert!(run.lines.iter().any(is_reported), "{:?}", run.lines);
}

#[test]
fn ignored_directories_are_there_to_build_with_and_stay_as_they_are() {
    for (env, is_ordinary) in [(Environment::new(), false), (ordinary(), true)] {
        env.write(".gitignore", "node_modules/\nsecrets/\ndist/\nvendor/\n");
        env.git(&["add", ".gitignore"]);
        env.git(&["commit", "-qm", "ignore"]);
        env.write("node_modules/lib/index.js", "the library\n");
        env.write("secrets/key", SECRET);
        env.write("dist/kept-back", SECRET);
        env.write("vendor/dep/.git/config", SECRET);
        env.write(".kapiexclude", "dist/\n");
        if is_ordinary {
            for path in [
                "node_modules",
                "node_modules/lib",
                "node_modules/lib/index.js",
            ] {
                chown_if_root(&env.repository().join(path));
            }
        }
        // The first turn builds something beside the library; the second finds it.
        let agent = "command:cat node_modules/lib/index.js > seen.txt; cat secrets/key dist/kept-back vendor/dep/.git/config >> seen.txt 2>&1; \
                     if [ -e node_modules/built ]; then echo 42 > answer.txt; fi; echo x > node_modules/built; \
                     rm -f node_modules/lib/index.js; git status --porcelain >> status.txt";
        let hidden = env.kapi(&usual(agent, &["--hidden", "node_modules"]));
        hidden.assert_error(2, &["node_modules", "hidden checks"]);
        let run = env.run(agent, &[]);
        run.assert_status("done", 0);
        assert_eq!(run.result["turns"], 2);
        assert!(run.stderr.contains("copy-on-write"), "{}", run.stderr);
        let seen = env.show(BRANCH, "seen.txt");
        assert!(!seen.contains(SECRET), "{seen}");
        assert!(
            !env.git(&["ls-tree", "-r", "--name-only", BRANCH])
                .contains("node_modules")
        );
        assert_eq!(env.read("node_modules/lib/index.js"), "the library\n");
        assert!(!env.repository().join("node_modules/built").exists());
    }
}
