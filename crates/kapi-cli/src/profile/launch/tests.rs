//! From files and flags to one set-up: who wins, who only narrows, and what never comes through.

mod layers;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kapi_agent::agent::AgentKind;
use kapi_core::actor::Actor;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_sys::clock::SystemClock;
use kapi_sys::real_disk::RealDisk;

use super::{LaunchProfile, resolve};
use crate::config::deliver::DeliverArgs;
use crate::config::notify::NotifyArgs;
use crate::config::source::ValueSource;
use crate::context::Context;
use crate::contract::flags::Sandbox;
use crate::error::Error;
use crate::profile::flags::ProfileFlags;
use crate::profile::message::Values;
use crate::ui::charset::Charset;
use crate::ui::screen::ScreenKind;
use crate::ui::{Format, Ui};

struct Machine {
    root: tempfile::TempDir,
    env: BTreeMap<OsString, OsString>,
}

impl Machine {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("app/.git")).unwrap();
        fs::create_dir_all(root.path().join("person")).unwrap();
        Self {
            root,
            env: BTreeMap::new(),
        }
    }

    fn home(&self) -> PathBuf {
        self.root.path().join("person")
    }

    fn project(&self) -> PathBuf {
        self.root.path().join("app")
    }

    #[expect(clippy::disallowed_methods, reason = "a fixture needs no durability")]
    fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn configure(&self, text: &str) -> PathBuf {
        self.write("person/.config/kapi/config.toml", text)
    }

    fn profile(&self, name: &str, text: &str) -> PathBuf {
        self.write(&format!("person/.config/kapi/profiles/{name}.yaml"), text)
    }

    fn set(&mut self, name: &str, value: &str) {
        self.env.insert(name.into(), value.into());
    }

    fn context(&self) -> Context {
        Context {
            registries: Arc::default(),
            ui: Ui {
                format: Format::Human,
                charset: Charset::Unicode,
                screen: ScreenKind::Lines,
            },
            env: self.env.clone(),
            cwd: self.project(),
            home: self.home(),
            self_exe: PathBuf::from("/kapi"),
            actor: Actor::Human {
                user: "somebody".to_owned(),
            },
            disk: RealDisk,
            clock: SystemClock,
            config_path: self.home().join(".config/kapi/config.toml"),
            store: None,
            notify: NotifyArgs::default(),
            deliver: DeliverArgs::default(),
        }
    }

    fn try_resolve(&self, flags: &ProfileFlags) -> Result<LaunchProfile, Error> {
        resolve(&self.context(), &self.project(), flags)
    }

    fn resolve(&self, flags: &ProfileFlags) -> LaunchProfile {
        self.try_resolve(flags)
            .unwrap_or_else(|error| panic!("{error} {:?}", error.hint))
    }

    fn refused(&self, flags: &ProfileFlags) -> String {
        let error = self.try_resolve(flags).expect_err("it is refused");
        format!("{error} | {}", error.hint.clone().unwrap_or_default())
    }
}

fn named(agent: &str) -> ProfileFlags {
    ProfileFlags {
        agent: Some(agent.to_owned()),
        ..ProfileFlags::default()
    }
}

fn file(path: &Path) -> ProfileFlags {
    ProfileFlags {
        config: Some(path.to_path_buf()),
        ..ProfileFlags::default()
    }
}

#[test]
fn a_launch_without_anything_is_claude_in_a_native_filtered_sandbox() {
    let profile = Machine::new().resolve(&ProfileFlags::default());
    assert_eq!(profile.agent.value, AgentKind::Claude);
    assert_eq!(
        profile.agent.source,
        ValueSource::BuiltIn("profile claude".to_owned())
    );
    assert_eq!(profile.level.value, SandboxLevel::Native);
    assert_eq!(profile.network.value, NetworkMode::Filtered);
    assert_eq!(profile.grant.resources.memory_bytes, Some(8 << 30));
    assert!(!profile.push.value && !profile.is_interactive && profile.notes.is_empty());
    assert_eq!(
        (profile.profile.source, profile.level.source),
        (ValueSource::Default, ValueSource::Default)
    );
}

#[test]
fn agents_are_what_a_profile_says() {
    let machine = Machine::new();
    let kind = |flags: &ProfileFlags| machine.resolve(flags).agent.value;
    for (name, expected) in [
        ("codex-cli", AgentKind::Codex),
        ("Google Gemini", AgentKind::Gemini),
        ("pi", AgentKind::Pi),
        ("command:make x", AgentKind::Command("make x".to_owned())),
        (
            "command:a {task}",
            AgentKind::Command("a \"${KAPI_TASK}\"".to_owned()),
        ),
        (
            "script:/a.yaml",
            AgentKind::Script(PathBuf::from("/a.yaml")),
        ),
        ("interactive", AgentKind::Command("bash".to_owned())),
    ] {
        assert_eq!(kind(&named(name)), expected, "{name}");
    }
    assert!(machine.resolve(&named("interactive")).is_interactive);
    assert!(
        machine
            .refused(&named("nobody"))
            .starts_with("there is no profile \"nobody\" | available profiles:")
    );
    assert!(
        machine
            .refused(&named("../x"))
            .starts_with("there is no profile")
    );
    machine.profile("odd", "resources: {pids: 9}\n");
    assert!(
        machine
            .refused(&named("odd"))
            .contains("does not name an agent to start")
    );
    machine.profile(
        "claude",
        "agent:\n  command: claude -p {task} --model opus\n",
    );
    let profile = machine.resolve(&named("claude"));
    assert_eq!(
        (profile.agent.value, profile.settings.model.as_deref()),
        (AgentKind::Claude, Some("opus"))
    );
    assert!(
        profile.notes[0].contains("adapter of claude"),
        "{:?}",
        profile.notes
    );
}

#[test]
fn a_key_that_the_gateway_holds_does_not_come_in() {
    let machine = Machine::new();
    let text = "agent:\n  type: claude\nenvironment:\n  passthrough: [ANTHROPIC_API_KEY, GITHUB_TOKEN, TZ]\n  set: {A: b}\n";
    machine.profile("mine", text);
    let profile = machine.resolve(&named("mine"));
    assert_eq!(profile.settings.pass_env, ["GITHUB_TOKEN", "TZ"]);
    assert_eq!(profile.settings.env["A"], "b");
    assert!(
        profile.notes[0].starts_with("ANTHROPIC_API_KEY is not passed in"),
        "{:?}",
        profile.notes
    );
    assert!(profile.notes[1].starts_with("GITHUB_TOKEN is passed into the sandbox unchanged"));
    assert_eq!(profile.notes.len(), 2);
    machine.profile(
        "mine",
        &text.replace("type: claude", "command: mine {task}"),
    );
    let profile = machine.resolve(&named("mine"));
    assert_eq!(
        profile.settings.pass_env,
        ["ANTHROPIC_API_KEY", "GITHUB_TOKEN", "TZ"]
    );
}

#[test]
fn a_home_is_lent_in_parts() {
    let machine = Machine::new();
    machine.write("person/.gitconfig", "");
    machine.write("person/.claude/settings.json", "{}");
    machine.profile(
        "mine",
        "agent: {type: claude}\nfilesystem:\n  include: [~/.gitconfig, ~/.claude, ~/.zshrc]\n",
    );
    let profile = machine.resolve(&named("mine"));
    assert_eq!(profile.grant.read_only, [machine.home().join(".gitconfig")]);
    assert_eq!(profile.grant.home_copies, [PathBuf::from(".claude")]);
    assert!(profile.notes[0].ends_with(".zshrc does not exist, so it is not shared."));
}

#[test]
fn what_becomes_of_the_work_is_said_by_profile_and_flags() {
    let machine = Machine::new();
    machine.profile(
        "mine",
        "agent: {command: \"run {task}\"}\nimage: {name: localhost/x, tag: '1'}\n\
         git: {auto_push: {enabled: true, remote: fork, commit_message: \"fix({agent_id}): {task} on {branch}\"}, \
         co_authors: [\"B <b@c>\"], keep_commits: true}\nmaven: {mirror_url: \"https://m\"}\n",
    );
    let flags = ProfileFlags {
        sandbox: Some(Sandbox::Podman),
        interactive: true,
        ..named("mine")
    };
    let profile = machine.resolve(&flags);
    let task = "# Do `it`\nmore";
    let values = Values {
        task,
        agent: "mine",
        agent_id: "7",
        branch: "feature/x",
        timestamp: "2026-01-31T12:00:00Z",
    };
    assert_eq!(profile.settings_for(task).env["KAPI_TASK"], task);
    assert_eq!(
        profile.commit_message(&values),
        "fix(7): Do `it` on feature/x\n\nCo-authored-by: B <b@c>\n"
    );
    assert_eq!(
        (profile.remote.value.as_str(), profile.push.value),
        ("fork", true)
    );
    assert!(profile.keep_commits.value);
    assert_eq!(
        (profile.level.value, profile.is_interactive),
        (SandboxLevel::Podman, true)
    );
    assert_eq!(profile.grant.podman.image, "localhost/x:1");
    assert_eq!(profile.grant.maven_mirror.as_deref(), Some("https://m"));
    let no_push = ProfileFlags {
        no_push: true,
        ..named("mine")
    };
    let stays = machine.resolve(&no_push);
    assert!(!stays.push.value);
    assert_eq!(
        stays.notes,
        [format!(
            "`image` in {} only applies with `--sandbox podman`.",
            stays_at(&machine)
        )]
    );
    machine.write(
        "app/agent-sandbox.yaml",
        "git: {auto_push: {enabled: false}}\n",
    );
    assert!(!machine.resolve(&named("mine")).push.value);
    let push = ProfileFlags {
        push: true,
        ..named("mine")
    };
    assert!(
        machine.resolve(&push).push.value,
        "a flag is the person's own word"
    );
    machine.profile("mine", "agent: {type: pi}\nimage: {tag: '1'}\n");
    assert!(
        machine
            .refused(&named("mine"))
            .contains("mine.yaml:2: `image.tag` needs `image.name`")
    );
}

fn stays_at(machine: &Machine) -> String {
    machine
        .home()
        .join(".config/kapi/profiles/mine.yaml")
        .display()
        .to_string()
}

#[test]
fn the_persons_own_tool_mapping_is_read() {
    let machine = Machine::new();
    let read = |text: &str| {
        machine.configure(text);
        machine.try_resolve(&ProfileFlags::default())?.mapping()
    };
    assert!(read("").is_ok());
    let missing = read("[status]\nmapping = \"~/none.yaml\"\n")
        .unwrap_err()
        .to_string();
    assert!(
        missing.contains("none.yaml is not absolute or does not exist"),
        "{missing}"
    );
    machine.write(
        "person/map.yaml",
        "version: \"1.0\"\ndefault_category: testing\n",
    );
    read("[status]\nmapping = \"~/map.yaml\"\n").unwrap();
    machine.write("person/map.yaml", "surely: not\n");
    let error = read("[status]\nmapping = \"~/map.yaml\"\n").unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("failed to read the tool mapping"),
        "{error}"
    );
    assert!(error.hint.unwrap().contains("config.toml:2"));
}
