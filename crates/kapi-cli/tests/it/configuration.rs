//! Configuration that is refused: each value with its file and line, before anything happens, and
//! a file that is none without waiting for it.

use std::fs;
use std::os::unix::fs::symlink;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::environment::{Environment, usual, write};

#[test]
fn values_that_no_goal_could_have_are_told_with_their_lines() {
    let env = Environment::new();
    let path = env.configure(
        "[goal]\nagent = \"\"\nturns = 0\nusd = -1.0\nwall = \"2 weeks\"\nstall_after = 1\nverify = [\"\"]\n",
    );
    let faults = [
        (2, "`goal.agent`: it is empty"),
        (3, "`goal.turns`: 0 is out of range"),
        (4, "`goal.usd`: -1 is no amount of US dollars"),
        (5, "`goal.wall`: \"2 weeks\" is not a duration"),
        (6, "`goal.stall_after`: 1 is out of range"),
        (7, "`goal.verify`: a command is empty"),
    ];
    let words = faults.map(|(line, words)| format!("{}:{line}: {words}", path.display()));
    let output = env.kapi(&["run", "x", "--agent", "command:true", "--verify", "true"]);
    output.assert_error(2, &words.each_ref().map(String::as_str));
}

#[test]
fn a_wrong_value_is_named_with_its_line_and_what_to_do() {
    let env = Environment::bare();
    for (text, line, words) in [
        (
            "[sandbox]\n\nmemory = \"lots\"\n",
            3,
            &["`sandbox.memory`"][..],
        ),
        ("[sandbox]\ndisk = \"-1\"\n", 2, &["`sandbox.disk`"]),
        ("[sandbox]\n\ncpus = 0.0\n", 3, &["`sandbox.cpus`"]),
        (
            "[sandbox]\nlevel = \"native\"\nread_only = [\"/proc\"]\n",
            3,
            &["/proc"],
        ),
        ("[sandbox]\nread_only = [\"/nowhere\"]\n", 2, &["/nowhere"]),
        (
            "[sandbox]\nulimits = [\"x\"]\n",
            2,
            &["`sandbox.ulimits[0]`", "hint: "],
        ),
        (
            "[network]\nallow = [\"a b\"]\n",
            2,
            &["network.allow", "hint: "],
        ),
        (
            "[network]\nregistries = [\"node\", \"rst\"]\n",
            2,
            &["network.registries[1]", "did you mean `rust`?"],
        ),
        ("[network]\n\nrecord = \"/nowhere\"\n", 3, &["/nowhere"]),
        (
            "[network]\nforward = [11434, 0]\n",
            2,
            &["network.forward", "hint: "],
        ),
        (
            "[network]\nforward = [41317]\n",
            2,
            &["Kapi itself listens", "hint: "],
        ),
        (
            "[network]\nforward = [41318]\n",
            2,
            &["Kapi itself listens", "hint: "],
        ),
        (
            "[launch]\ntrust = [\"x\"]\n",
            2,
            &["launch.trust", "hint: "],
        ),
        (
            "[integrate.conflicts]\n\"a\" = \"union\"\n\"b\" = \"mine\"\n",
            3,
            &["\"mine\" settles no conflict", "`regenerate: <command>`"],
        ),
        ("[goal]\n[agents.nobody]\n", 2, &["\"nobody\"", "hint: "]),
    ] {
        let path = env.configure(text);
        let location = format!("{}:{line}: ", path.display());
        let words = [&[location.as_str()][..], words].concat();
        env.kapi(&["doctor"]).assert_error(2, &words);
    }
}

#[test]
fn a_variable_that_is_kapis_own_is_refused_where_it_is_named() {
    let env = Environment::bare();
    for (agent, text, words) in [
        (
            "claude",
            "pass_env = [\"ANTHROPIC_API_KEY\"]",
            "api_key_env",
        ),
        ("claude", "env = { ANTHROPIC_BASE_URL = \"x\" }", "base_url"),
        ("codex", "pass_env = [\"HTTPS_PROXY\"]", "[network]"),
        (
            "command",
            "env = { KAPI_RUN_ID = \"x\" }",
            "Kapi sets it itself",
        ),
    ] {
        let path = env.configure(&format!("[agents.{agent}]\nargs = []\n{text}\n"));
        let location = format!("{}:3: ", path.display());
        env.kapi(&["doctor"])
            .assert_error(2, &[&location, words, "hint: remove"]);
    }
    env.configure("[agents.command]\npass_env = [\"ANTHROPIC_API_KEY\"]\n");
    let output = env.kapi(&["run", "--explain", "x", "--agent", "command:true"]);
    assert!(!output.stderr.contains("ANTHROPIC_API_KEY"), "{output:?}");
}

#[test]
fn a_pipe_or_a_link_is_not_waited_for() {
    let env = Environment::new();
    let path = env.repository().join(".ilchul/config.toml");
    let named = path.display().to_string();
    fs::create_dir(path.parent().unwrap()).unwrap();
    let wanted = usual("command:true", &[]);
    let mode = Mode::RUSR | Mode::WUSR;
    mknodat(CWD, &path, FileType::Fifo, mode, 0).unwrap();
    env.kapi(&wanted)
        .assert_error(2, &[&named, "it is not a regular file"]);
    fs::remove_file(&path).unwrap();
    write(&env.root().join("elsewhere.toml"), "");
    symlink(env.root().join("elsewhere.toml"), &path).unwrap();
    env.kapi(&wanted).assert_error(2, &[&named, "it is a link"]);
    fs::remove_file(&path).unwrap();
    write(&path, "[sandbox]\n\nmemory = \"lots\"\n");
    env.kapi(&wanted)
        .assert_error(2, &[&format!("{named}:3: ")]);
}
