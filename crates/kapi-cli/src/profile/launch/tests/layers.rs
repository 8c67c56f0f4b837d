//! Whose word counts: each layer over those before it, and what a project may only narrow.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use kapi_agent::agent::AgentKind;
use kapi_core::isolation::NetworkMode;
use kapi_store::hash::sha256_hex;

use super::{Machine, file, named};
use crate::contract::flags::{Network, Sandbox};
use crate::profile::flags::ProfileFlags;

#[test]
fn each_layer_wins_over_those_before_it() {
    let mut machine = Machine::new();
    let mode = |machine: &Machine, flags: &ProfileFlags| {
        let network = machine.resolve(flags).network;
        let source = network.source.to_string();
        (
            network.value,
            source.replace(&machine.root.path().display().to_string(), ""),
        )
    };
    let flags = ProfileFlags::default();
    assert_eq!(
        mode(&machine, &flags),
        (NetworkMode::Filtered, "default".to_owned())
    );
    machine.configure("[network]\nmode = \"open\"\n");
    let location = "/person/.config/kapi/config.toml:2".to_owned();
    assert_eq!(mode(&machine, &flags), (NetworkMode::Open, location));
    machine.profile(
        "default",
        "agent: {type: claude}\nnetwork: {mode: filtered}\n",
    );
    let location = "/person/.config/kapi/profiles/default.yaml:2".to_owned();
    assert_eq!(mode(&machine, &flags), (NetworkMode::Filtered, location));
    machine.set("KAPI_NETWORK", "open");
    assert_eq!(
        mode(&machine, &flags),
        (NetworkMode::Open, "environment KAPI_NETWORK".to_owned())
    );
    machine.write(
        "app/.ilchul/config.toml",
        "[network]\nmode = \"filtered\"\n",
    );
    let location = "/app/.ilchul/config.toml:2".to_owned();
    assert_eq!(mode(&machine, &flags), (NetworkMode::Filtered, location));
    machine.write("app/agent-sandbox.yaml", "\nnetwork: {mode: none}\n");
    let location = "/app/agent-sandbox.yaml:2".to_owned();
    assert_eq!(mode(&machine, &flags), (NetworkMode::None, location));
    let open = ProfileFlags {
        network: Some(Network::Open),
        ..ProfileFlags::default()
    };
    assert_eq!(
        mode(&machine, &open),
        (NetworkMode::Open, "flag --network".to_owned())
    );
    let bare = ProfileFlags {
        sandbox: Some(Sandbox::None),
        ..ProfileFlags::default()
    };
    assert_eq!(machine.resolve(&bare).network.value, NetworkMode::Open);
    machine.set("KAPI_NETWORK", "wide");
    assert!(
        machine
            .refused(&flags)
            .starts_with("the variable KAPI_NETWORK: unknown variant `wide`")
    );
}

#[test]
fn a_project_lowers_limits_and_never_raises_them() {
    let machine = Machine::new();
    machine.configure("[sandbox]\nmemory = \"4g\"\ncpus = 2\n");
    machine.profile(
        "default",
        "agent: {type: pi}\nresources: {memory: 3g, pids: 100}\n",
    );
    machine.write(
        "app/.ilchul/config.toml",
        "[sandbox]\nmemory = \"16g\"\nprocesses = 50\ndisk = \"1g\"\n",
    );
    machine.write(
        "app/.kapsis/config.yaml",
        "resources: {memory: 2g, cpus: 8, pids: 70}\n",
    );
    let profile = machine.resolve(&ProfileFlags::default());
    let resources = profile.grant.resources;
    assert_eq!(resources.memory_bytes, Some(2 << 30));
    assert_eq!(resources.cpu_millis, Some(2_000));
    assert_eq!(resources.processes, Some(50));
    assert_eq!(resources.disk_bytes, Some(1 << 30));
    let source = |key: &str| {
        let source = profile.origins.first(key).to_string();
        source.replace(&machine.root.path().display().to_string(), "")
    };
    assert_eq!(source("sandbox.memory"), "/app/.kapsis/config.yaml:1");
    assert_eq!(source("sandbox.cpus"), "/person/.config/kapi/config.toml:3");
    assert_eq!(source("sandbox.processes"), "/app/.ilchul/config.toml:3");
    assert_eq!(source("sandbox.disk"), "/app/.ilchul/config.toml:4");
    assert_eq!(source("sandbox.open_files"), "default");
    assert_eq!(
        profile.narrowed_by,
        [machine.project().join(".kapsis/config.yaml")]
    );
}

#[test]
fn a_file_of_the_project_widens_nothing_however_it_is_named() {
    let machine = Machine::new();
    let text = "agent:\n  command: make agent\n";
    let path = machine.write("app/agent-sandbox.yaml", text);
    let hash = sha256_hex(text.as_bytes());
    let expected = format!(
        "{path}:2: `agent.command`: a project's file cannot set this, because it would extend what \
         a run may do | read the file; to trust it as it is now, run `kapi sandbox profile --trust \
         {path}`, or add `trust = [\"{hash}\"]` under [launch]",
        path = path.display()
    );
    for flags in [
        ProfileFlags::default(),
        file(&path),
        file(Path::new("agent-sandbox.yaml")),
        named("pi"),
    ] {
        let refused = machine.refused(&flags);
        assert!(refused.starts_with(&expected), "{refused}");
    }
    // Neither does a link to it from outside, one in the project to outside, nor one of Kapi's own.
    let outside = machine.home().join("link.yaml");
    symlink(&path, &outside).unwrap();
    machine.write("app/agent-sandbox.yaml", "");
    let own = machine.write("person/own.yaml", text);
    let inside = machine.project().join("sub.yaml");
    symlink(&own, &inside).unwrap();
    let up = machine.project().join("../person/own.yaml");
    assert_eq!(
        machine.resolve(&file(&up)).agent.value,
        AgentKind::Command("make agent".to_owned())
    );
    let state = machine.write("person/.ilchul/worktrees/x/agent.yaml", text);
    assert_eq!(
        machine.resolve(&file(&own)).agent.value,
        AgentKind::Command("make agent".to_owned())
    );
    let down = machine.home().join("../app/sub.yaml");
    for path in [&inside, &state, &down] {
        assert!(
            machine.refused(&file(path)).contains("a project's file"),
            "{path:?}"
        );
    }
    machine.write("app/agent-sandbox.yaml", text);
    assert!(
        machine
            .refused(&file(&outside))
            .contains("a project's file")
    );
}

#[test]
fn a_trusted_content_counts_in_full_until_it_changes() {
    let machine = Machine::new();
    let text = "agent: {command: make agent}\ngit: {auto_push: {enabled: true}}\n";
    let path = machine.write("app/agent-sandbox.yaml", text);
    machine.configure(&format!(
        "[launch]\ntrust = [\"{}\"]\n",
        sha256_hex(text.as_bytes())
    ));
    for flags in [ProfileFlags::default(), file(&path)] {
        let profile = machine.resolve(&flags);
        assert_eq!(
            profile.agent.value,
            AgentKind::Command("make agent".to_owned())
        );
        assert!(profile.push.value && profile.narrowed_by.is_empty());
    }
    let other = machine.resolve(&named("codex"));
    assert_eq!(other.agent.value, AgentKind::Codex);
    assert!(
        other.notes[0].ends_with("is not used because you named another profile."),
        "{other:?}"
    );
    machine.write(
        "app/agent-sandbox.yaml",
        &text.replace("make agent", "curl evil"),
    );
    assert!(
        machine
            .refused(&ProfileFlags::default())
            .contains("`agent.command`: a project's file cannot set this")
    );
    machine.configure("[launch]\ntrust = [\"all\"]\n");
    assert!(
        machine
            .refused(&ProfileFlags::default())
            .contains("\"all\" is not a SHA-256")
    );
}

#[test]
fn files_that_cannot_be_the_persons_are_refused() {
    let machine = Machine::new();
    let path = machine.write("person/own.yaml", "agent: {type: pi}\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    assert!(
        machine
            .refused(&file(&path))
            .starts_with("others can write ")
    );
    let missing = machine.refused(&file(Path::new("/nonexistent/x.yaml")));
    assert_eq!(missing, "there is no file /nonexistent/x.yaml | ");
    assert!(
        machine
            .refused(&file(&machine.home()))
            .contains("it is not a file")
    );
    let pipe = machine.project().join("agent-sandbox.yaml");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from(0o600)).unwrap();
    assert!(
        machine
            .refused(&ProfileFlags::default())
            .contains("it is not a file")
    );
    fs::remove_file(&pipe).unwrap();
    machine.write("app/agent-sandbox.yaml", &"#".repeat(300 * 1024));
    assert!(
        machine
            .refused(&ProfileFlags::default())
            .contains("longer than 256 KiB")
    );
}
