//! Merging hooks into homes as runs leave them, good and bad.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::path::Path;
use std::time::Duration;

use kapi_agent::hook::HookAgent;
use kapi_agent::hook::inject::settings_file;
use kapi_agent::launch::HomeFile;
use kapi_core::isolation::SandboxLevel;
use kapi_run::confine;
use kapi_run::confine::{SandboxConfig, WorksAt};
use kapi_run::run_socket::RunSocket;
use kapi_sandbox::spec::MountAccess;
use serde_json::{Value, json};

use super::{HookSettings, Hooks, PRIVATE_MODE, rival};

const THEIRS: &str =
    r#"{"theme":"dark","hooks":{"Stop":[{"hooks":[{"type":"command","command":"say done"}]}]}}"#;

struct Fixture {
    root: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("home/.claude")).unwrap();
        Self { root }
    }

    fn at(&self, name: &str) -> std::path::PathBuf {
        self.root.path().join(name)
    }

    #[expect(clippy::disallowed_methods, reason = "a fixture needs no durability")]
    fn write(&self, name: &str, content: &str) {
        fs::write(self.at(name), content).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap()
    }

    fn hooks(&self, agent: HookAgent, level: SandboxLevel) -> Hooks {
        let run_socket =
            RunSocket::open_for_hooks(level, &self.at("hook"), Path::new("/opt/kapi")).unwrap();
        Hooks { agent, run_socket }
    }

    fn merge(&self, agent: HookAgent) -> HookSettings {
        let hooks = self.hooks(agent, SandboxLevel::Native);
        hooks.merge(&self.at("home")).unwrap()
    }
}

#[test]
fn each_agent_reports_to_the_post_and_a_second_launch_changes_nothing() {
    let command = "[ ! -x /run/kapi/hook/bin/kapi ] || /run/kapi/hook/bin/kapi hook --agent";
    for agent in HookAgent::ALL {
        let fixture = Fixture::new();
        let merged = fixture.merge(agent);
        assert_eq!(merged.note, None);
        assert_eq!(!merged.args.is_empty(), agent == HookAgent::Codex);
        let file = Path::new("home").join(settings_file(agent));
        let first = fixture.read(file.to_str().unwrap());
        let line = format!(
            "{command} {} --socket /run/kapi/hook/socket/hook.sock",
            agent.name()
        );
        assert!(first.contains(&line), "{first}");
        assert_eq!(fixture.merge(agent).note, None);
        assert_eq!(fixture.read(file.to_str().unwrap()), first);
    }
}

#[test]
fn what_the_person_has_stays_beside_them() {
    let fixture = Fixture::new();
    fixture.write("home/.claude/settings.json", THEIRS);
    fixture.merge(HookAgent::Claude);
    let settings: Value =
        serde_json::from_str(&fixture.read("home/.claude/settings.json")).unwrap();
    assert_eq!(settings["theme"], "dark");
    let stops = settings["hooks"]["Stop"].as_array().unwrap();
    assert_eq!(stops.len(), 2, "{settings}");
    assert_eq!(stops[0]["hooks"][0]["command"], "say done");
}

#[test]
fn settings_that_lead_elsewhere_are_neither_read_nor_written() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.at("outside")).unwrap();
    fixture.write("outside/settings.json", THEIRS);
    let home = fixture.at("home/.claude");
    fs::remove_dir(&home).unwrap();
    symlink(fixture.at("outside"), &home).unwrap();
    assert_eq!(fixture.merge(HookAgent::Claude).note, None);
    assert_eq!(fixture.read("outside/settings.json"), THEIRS);
    assert!(!home.is_symlink());
    assert!(
        !fixture
            .read("home/.claude/settings.json")
            .contains("say done")
    );
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let fixture = Fixture::new();
    let location = fixture.at("home/.claude/settings.json");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &location,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    assert_eq!(fixture.merge(HookAgent::Claude).note, None);
    assert!(location.symlink_metadata().unwrap().is_file());
}

#[test]
fn settings_that_cannot_be_read_stay_and_are_told_of() {
    let fixture = Fixture::new();
    fixture.write("home/.claude/settings.json", "{\n  oops");
    let note = fixture.merge(HookAgent::Claude).note.unwrap();
    assert!(
        note.starts_with(
            "Hooks do not report status: failed to read ~/.claude/settings.json, line 2"
        ),
        "{note}"
    );
    assert_eq!(fixture.read("home/.claude/settings.json"), "{\n  oops");
    fixture.write("home/.claude/settings.json", r#"{"disableAllHooks":true}"#);
    let note = fixture.merge(HookAgent::Claude).note.unwrap();
    assert_eq!(
        note,
        "Hooks do not report status, because disableAllHooks in ~/.claude/settings.json turns them off."
    );
}

#[test]
fn a_project_with_hooks_of_its_own_gets_none_of_ours_with_them() {
    let fixture = Fixture::new();
    let (workspace, home) = (fixture.at("work"), fixture.at("home"));
    fs::create_dir(&workspace).unwrap();
    let mut config = SandboxConfig {
        name: "run",
        level: SandboxLevel::Native,
        workspace: &workspace,
        workspace_access: MountAccess::ReadOnly,
        project: None,
        works_at: WorksAt::Workspace,
        home: &home,
        git_view: None,
        mounts: Vec::new(),
        deadline: Duration::from_secs(1),
        idle: None,
    };
    for agent in HookAgent::ALL {
        assert_eq!(rival(agent, &config), None);
    }
    for dir in ["work/.claude", "work/.codex", "work/.gemini"] {
        fs::create_dir(fixture.at(dir)).unwrap();
    }
    assert_eq!(rival(HookAgent::Gemini, &config), None);
    fixture.write("work/.gemini/settings.json", "{}");
    fixture.write("work/.claude/settings.json", THEIRS);
    assert_eq!(rival(HookAgent::Claude, &config), None);
    assert_eq!(rival(HookAgent::Codex, &config), Some(".codex"));
    let settings = ".gemini/settings.json";
    assert_eq!(rival(HookAgent::Gemini, &config), Some(settings));
    let inside = Path::new("/workspace").join(settings);
    config
        .mounts
        .push(confine::read_only(Path::new("/empty"), &inside));
    assert_eq!(rival(HookAgent::Gemini, &config), None);
    config.mounts.clear();
    fs::remove_dir_all(workspace.join(".gemini")).unwrap();
    symlink(".claude", workspace.join(".gemini")).unwrap();
    assert_eq!(rival(HookAgent::Gemini, &config), Some(settings));
}

#[test]
fn hooks_that_the_adapter_turned_off_are_turned_on() {
    let fixture = Fixture::new();
    let off = json!({"hooksConfig": {"enabled": false}, "privacy": {"a": 1}});
    let mut files = [HomeFile {
        path: ".gemini/settings.json".into(),
        content: off.to_string().into_bytes(),
        mode: PRIVATE_MODE,
    }];
    let hooks = fixture.hooks(HookAgent::Gemini, SandboxLevel::Native);
    hooks.unmute(&mut files).unwrap();
    let on: Value = serde_json::from_slice(&files[0].content).unwrap();
    assert_eq!(
        on,
        json!({"hooksConfig": {"enabled": true}, "privacy": {"a": 1}})
    );
}

#[test]
fn the_socket_is_where_the_agent_is_told_and_gone_with_the_post() {
    let fixture = Fixture::new();
    let hooks = fixture.hooks(HookAgent::Claude, SandboxLevel::None);
    let socket = hooks.run_socket.socket();
    assert!(socket.symlink_metadata().unwrap().file_type().is_socket());
    let program = fs::read_link(hooks.run_socket.program()).unwrap();
    assert_eq!(program, Path::new("/opt/kapi"));
    drop(hooks);
    assert!(!fixture.at("hook").exists());
}
