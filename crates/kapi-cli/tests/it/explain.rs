//! `kapi explain`: what would hold, where it was said, and that asking changes nothing.

use serde_json::Value;

use crate::environment::{Environment, write};

/// Returns the values of a key and their sources.
fn rows(document: &Value, key: &str) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let rows = document["rows"].as_array().unwrap().iter();
    let rows = rows.filter(|row| row["key"] == key);
    rows.map(|row| (text(&row["value"]), text(&row["source"])))
        .collect()
}

fn row(document: &Value, key: &str) -> (String, String) {
    let found = rows(document, key);
    assert_eq!(found.len(), 1, "{key} in {document:#}");
    found[0].clone()
}

fn pair(value: &str, source: &str) -> (String, String) {
    (value.to_owned(), source.to_owned())
}

#[test]
fn registries_are_those_that_the_persons_own_clients_ask() {
    let mut env = Environment::new();
    let person = env.configure("[network]\nregistries = [\"node\", \"lua\"]\n");
    let clients = env.root().join("clients");
    write(
        &clients.join("npm"),
        "#!/bin/sh\n[ ! -e .npmrc ] && echo https://npm.example.org:4873/\n",
    );
    write(&clients.join("luarocks"), "#!/bin/sh\nexit 1\n");
    for name in ["npm", "luarocks"] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(clients.join(name), mode).unwrap();
    }
    let path = std::env::var("PATH").unwrap();
    env.set("PATH", &format!("{}:{path}", clients.display()));
    // A project does not say where its dependencies come from.
    env.write(".npmrc", "registry=https://evil.example/\n");
    let source = format!("{}:2", person.display());
    for command in ["run", "launch"] {
        let found = env.json(&[command, "--explain", "--network", "filtered"]);
        let rows = rows(&found, "registries");
        let [node, lua] = rows.as_slice() else {
            panic!("{found:#}");
        };
        assert!(node.0.starts_with("node: npm.example.org:4873"), "{node:?}");
        assert!(!node.0.contains("evil"), "{node:?}");
        assert_eq!(lua.0, "lua: no client here says which it asks");
        assert_eq!((&node.1, &lua.1), (&source, &source));
    }
}

#[test]
fn a_run_says_where_each_value_comes_from() {
    let mut env = Environment::new();
    let person = env.configure(
        "[goal]\nturns = 9\nprotect = [\"a\"]\n[sandbox]\nmemory = \"4g\"\n\n[network]\n\
         allow = [\"github.com\", \"*.example.org\"]\nforward = [11434]\n[agents.codex]\n\
         env = { SECRET_VALUE = \"not-shown\" }\npass_env = [\"LANG\"]\n",
    );
    let project = env.repository().join(".ilchul/config.toml");
    write(
        &project,
        "[goal]\nturns = 5\nwall = \"1h\"\nprotect = [\"b\"]\n[sandbox]\nmemory = \"2g\"\n",
    );
    env.set("KAPI_AGENT", "codex");
    env.set("OPENAI_API_KEY", "sk-never-shown");
    let line = |path: &std::path::Path, line: u32| format!("{}:{line}", path.display());
    let typed = "run --explain --network filtered --tokens 5k";
    let found = env.json(&typed.split(' ').collect::<Vec<_>>());
    assert_eq!(
        (found["kind"].as_str(), found["command"].as_str()),
        (Some("policy"), Some("run"))
    );
    assert_eq!(
        row(&found, "agent"),
        pair("codex", "environment KAPI_AGENT")
    );
    assert_eq!(row(&found, "turns"), pair("5", &line(&project, 2)));
    assert_eq!(row(&found, "wall"), pair("1h", &line(&project, 3)));
    assert_eq!(row(&found, "tokens"), pair("5000", "flag --tokens"));
    let both = format!("{}, {}", line(&person, 3), line(&project, 4));
    assert_eq!(
        rows(&found, "protect"),
        [pair("a", &both), pair("b", &both)]
    );
    assert_eq!(row(&found, "memory"), pair("2 GiB", &line(&project, 6)));
    assert_eq!(row(&found, "cpus"), pair("4", "default"));
    assert_eq!(row(&found, "sandbox"), pair("native", "default"));
    assert_eq!(row(&found, "network"), pair("filtered", "flag --network"));
    let allow = rows(&found, "allow");
    let location = line(&person, 8);
    assert_eq!(
        allow,
        [
            pair("github.com", &location),
            pair("*.example.org", &location)
        ]
    );
    assert_eq!(
        row(&found, "forward"),
        pair("127.0.0.1:11434", &line(&person, 9))
    );
    let route = row(&found, "model route").0;
    assert!(
        route.starts_with("through Kapi's gateway to https://"),
        "{route}"
    );
    assert_eq!(
        row(&found, "variable set"),
        pair("SECRET_VALUE", &line(&person, 11))
    );
    let passed = rows(&found, "variable passed");
    assert_eq!(
        passed,
        [pair("PATH", "default"), pair("LANG", &line(&person, 12))]
    );
    let text = found.to_string();
    assert!(
        !text.contains("not-shown") && !text.contains("sk-never-shown"),
        "{text}"
    );
}

#[test]
fn what_is_explained_is_what_a_contract_gets() {
    let env = Environment::new();
    env.configure("[goal]\nagent = \"command:echo 42 > answer.txt\"\nturns = 4\nstall_after = 2\n[network]\nmode = \"none\"\n");
    let flags = ["--verify", "sh test.sh", "--turns", "2"];
    let explained = env.json(&[&["run", "--explain"][..], &flags].concat());
    let output = env.kapi(&[&["run", "do it", "--yes", "--json"][..], &flags].concat());
    assert_eq!(output.code, 0, "{output:?}");
    let contract = env.json(&["show", "1"])["contract"].clone();
    for (key, field) in [
        ("agent", "agent"),
        ("sandbox", "sandbox"),
        ("network", "network"),
    ] {
        assert_eq!(contract[field], row(&explained, key).0, "{key}");
    }
    assert_eq!(
        contract["budget"]["turns"].to_string(),
        row(&explained, "turns").0
    );
    assert_eq!(
        contract["stall_after"].to_string(),
        row(&explained, "stall after").0
    );
    assert_eq!(contract["verify"][0], row(&explained, "verify").0);
    assert_eq!(contract["judge"]["by"], row(&explained, "judge").0);
}

#[test]
fn a_launch_is_explained_whole_and_nothing_is_made() {
    let env = Environment::new();
    let profile = env.home().join(".config/kapi/profiles/mine.yaml");
    write(
        &profile,
        "agent:\n  command: run {task}\nnetwork:\n  allowlist:\n    hosts:\n      - github.com\n\
         environment:\n  set: { TOKEN_X: hush }\nfilesystem:\n  include: [~/.gitconfig]\n\
         resources: { cpus: 2.5 }\n",
    );
    write(&env.home().join(".gitconfig"), "");
    let before = snapshot(&env);
    let args = [
        "launch",
        "--explain",
        "--agent",
        "mine",
        "--branch",
        "b",
        "--push",
        "--sandbox",
        "native",
    ];
    let found = env.json(&args);
    let line = |line: u32| format!("{}:{line}", profile.display());
    assert_eq!(row(&found, "profile"), pair("mine", "flag --agent"));
    assert_eq!(
        row(&found, "agent"),
        pair("command:run \"${KAPI_TASK}\"", &line(2))
    );
    assert_eq!(
        row(&found, "workspace mode"),
        pair("worktree", "flag --branch")
    );
    assert_eq!(row(&found, "sandbox"), pair("native", "flag --sandbox"));
    assert_eq!(row(&found, "allow"), pair("github.com", &line(6)));
    assert_eq!(row(&found, "variable set"), pair("TOKEN_X", &line(8)));
    let shared_in = env.home().join(".gitconfig").display().to_string();
    assert_eq!(row(&found, "read-only"), pair(&shared_in, &line(10)));
    assert_eq!(row(&found, "cpus"), pair("2.5", &line(11)));
    assert_eq!(row(&found, "branch"), pair("b", "flag --branch"));
    assert_eq!(row(&found, "push"), pair("yes", "flag --push"));
    assert_eq!(row(&found, "remote"), pair("origin", "default"));
    assert!(!found.to_string().contains("hush"), "{found:#}");
    let human = env.kapi(&args);
    assert_eq!(human.code, 0, "{human:?}");
    assert!(
        human.stdout.contains("read-only") && human.stdout.contains("flag --branch"),
        "{human:?}"
    );
    for (flags, mode) in [
        (&["--overlay-mode", "--branch", "b"][..], "overlay"),
        (&[], "overlay"),
        (&["--worktree-mode"], "worktree"),
    ] {
        let found = env.json(&[&["launch", "--explain"][..], flags].concat());
        assert_eq!(row(&found, "workspace mode").0, mode, "{flags:?}");
    }
    assert_eq!(snapshot(&env), before, "asking leaves no trace");
}

#[test]
fn profiles_are_shown_as_they_are_written() {
    let env = Environment::new();
    let all = env.json(&["sandbox", "profile"]);
    let names: Vec<&str> = all["profiles"]
        .as_array()
        .unwrap()
        .iter()
        .map(|profile| profile["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["claude", "codex", "gemini", "aider", "pi", "interactive"]
    );
    let shown = env.kapi(&["sandbox", "profile", "aider"]);
    assert!(shown.stdout.contains("command: aider"), "{shown:?}");
    // What is shown is a profile of one's own, once it is kept.
    let own = env.home().join(".config/kapi/profiles/mine.yaml");
    write(&own, &shown.stdout);
    let found = env.json(&["launch", "--explain", "--agent", "mine"]);
    assert!(
        row(&found, "agent").0.starts_with("command:aider"),
        "{found:#}"
    );
    env.kapi(&["sandbox", "profile", "nobody"])
        .assert_error(2, &["nobody", "hint: available profiles: claude"]);
}

/// Returns the names of everything on the machine.
fn snapshot(env: &Environment) -> Vec<String> {
    let mut found = Vec::new();
    let mut left = vec![env.root().to_path_buf()];
    while let Some(dir) = left.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            found.push(path.display().to_string());
            if path.is_dir() && !path.is_symlink() {
                left.push(path);
            }
        }
    }
    found.sort();
    found
}
