//! Every key of `agent-sandbox.yaml`: what it comes to, and the words of every refusal.

mod refusals;

use std::collections::BTreeSet;
use std::path::Path;

use kapi_core::isolation::NetworkMode;
use kapi_sandbox::podman::options::Userns;

use super::key::{KEYS, KeyDisposition};
use super::read::{ProfileOrigin, read};
use super::{AgentName, ProfileFile, ProfileOwner, built_in};
use crate::config::source::{ValueSource, at};

const PATH: &str = "/p/agent-sandbox.yaml";

const HOME: &str = "/nonexistent/somebody";

fn location(owner: ProfileOwner) -> ProfileOrigin<'static> {
    ProfileOrigin {
        name: "agent-sandbox",
        path: Some(Path::new(PATH)),
        owner,
        home: Path::new(HOME),
        trust_hint: "TRUST",
    }
}

fn person(text: &str) -> ProfileFile {
    read(text, &location(ProfileOwner::Person)).unwrap_or_else(|error| panic!("{error} in {text}"))
}

/// Returns the error and its hint, without the path.
fn refused_by(owner: ProfileOwner, text: &str) -> String {
    let error = read(text, &location(owner)).expect_err(text);
    let hint = error.hint.clone().unwrap_or_default();
    format!("{error} | {hint}").replace(PATH, "F")
}

fn refused(text: &str) -> String {
    refused_by(ProfileOwner::Person, text)
}

/// Writes a dotted key as YAML.
fn yaml(key: &str, value: &str) -> String {
    let parts: Vec<&str> = key.split('.').collect();
    let mut text = String::new();
    for (depth, part) in parts.iter().enumerate() {
        let indent = "  ".repeat(depth);
        let end = if depth + 1 == parts.len() {
            format!(" {value}\n")
        } else {
            "\n".to_owned()
        };
        text.push_str(&indent);
        text.push_str(part);
        text.push(':');
        text.push_str(&end);
    }
    text
}

/// A profile that says everything there is to say.
const WHOLE: &str = r#"
agent:
  command: "aider --message {task}"
  type: Aider Chat
  workdir: /workspace
filesystem:
  include: [~/.gitconfig]
  exclude: []
environment:
  passthrough:
    - OPENAI_API_KEY
  set:
    PORT: 8080
    MAVEN_OPTS: "-Xmx4g a=b"
    EMPTY:
    LINES: "a\nb"
resources: { memory: 8g, cpus: 1.5, pids: 300 }
image: { name: localhost/mine, tag: "2" }
git:
  auto_push:
    enabled: false
    remote: upstream
    commit_message: "fix: {task}"
    stage_all: true
  co_authors: ["Zoë Şahin <z@x.example>"]
network:
  mode: filtered
  allowlist:
    hosts: [github.com, "*.example.org"]
    custom: ["db.example.org:5432"]
  log_dns_queries: true
security:
  profile: standard
  userns: keep-id:uid=1000,gid=100
  process: { pids_limit: 200, no_new_privileges: true }
  seccomp: { enabled: true, allow_userns: true }
maven: { mirror_url: "https://m.example.org/r", block_deploy: true }
prevent_sleep: false
"#;

#[test]
fn a_profile_is_read_as_it_is() {
    let profile = person(WHOLE);
    let line = |line: usize| at(Path::new(PATH), line);
    let command = profile.command.clone().unwrap();
    assert_eq!(
        (command.value.as_str(), command.source),
        ("aider --message {task}", line(3))
    );
    assert!(matches!(
        profile.agent_type.clone().unwrap().value,
        AgentName::Of(_)
    ));
    let pass: Vec<_> = profile
        .pass
        .iter()
        .map(|at| (at.value.as_str(), at.source.clone()))
        .collect();
    assert_eq!(pass, [("OPENAI_API_KEY", line(11))]);
    let set: Vec<_> = profile
        .set
        .iter()
        .map(|at| (at.value.0.as_str(), at.value.1.as_str()))
        .collect();
    assert_eq!(
        set,
        [
            ("PORT", "8080"),
            ("MAVEN_OPTS", "-Xmx4g a=b"),
            ("EMPTY", ""),
            ("LINES", "a\nb")
        ]
    );
    assert_eq!(profile.memory_bytes.clone().unwrap().value, 8 << 30);
    assert_eq!(profile.cpu_millis.clone().unwrap().value, 1_500);
    assert_eq!(
        profile.processes.clone().unwrap().value,
        200,
        "the smaller of two names"
    );
    assert_eq!(profile.image_name.clone().unwrap().value, "localhost/mine");
    assert_eq!(profile.image_tag.clone().unwrap().value, "2");
}

#[test]
fn the_rest_of_a_profile_is_read_as_it_is() {
    let profile = person(WHOLE);
    assert!(!profile.push.clone().unwrap().value);
    assert_eq!(profile.remote.clone().unwrap().value, "upstream");
    assert_eq!(profile.commit_message.clone().unwrap().value, "fix: {task}");
    assert_eq!(
        profile.co_authors[0].value.to_string(),
        "Zoë Şahin <z@x.example>"
    );
    assert_eq!(
        profile.network.clone().unwrap().value,
        NetworkMode::Filtered
    );
    let rules: Vec<&str> = profile.allow.iter().map(|at| at.value.text()).collect();
    assert_eq!(
        rules,
        ["github.com", "*.example.org", "db.example.org:5432"]
    );
    assert!(profile.nested_namespaces.clone().unwrap().value);
    let ids = Userns::KeepIdAs {
        uid: 1000,
        gid: 100,
    };
    assert_eq!(profile.userns.clone().unwrap().value, ids);
    assert_eq!(
        profile.mirror.clone().unwrap().value,
        "https://m.example.org/r"
    );
    assert_eq!(profile.location(), PATH);
}

#[test]
fn false_is_false() {
    for (key, read) in [
        (
            "git.auto_push.enabled",
            &(|p: &ProfileFile| p.push.clone()) as &dyn Fn(&ProfileFile) -> _,
        ),
        ("security.seccomp.allow_userns", &|p: &ProfileFile| {
            p.nested_namespaces.clone()
        }),
    ] {
        for (value, expected) in [("false", false), ("true", true)] {
            let found = read(&person(&yaml(key, value))).unwrap();
            assert_eq!(found.value, expected, "{key}: {value}");
        }
        let error = refused(&yaml(key, "\"false\""));
        assert!(error.contains("it is text | give true or false"), "{error}");
    }
}

#[test]
fn every_key_is_honoured_or_refused_with_its_line_and_a_remedy() {
    for (key, disposition) in KEYS {
        let odd = yaml(key, "{ surely: [not, this] }");
        let error = refused(&odd);
        let line = key.split('.').count();
        assert!(error.starts_with(&format!("F:{line}: `{key}")), "{error}");
        match disposition {
            KeyDisposition::Refused(advice) | KeyDisposition::Fixed(_, advice) => {
                assert!(error.contains(advice), "{error}");
            }
            // `environment.set` is a table, whose names are checked one by one.
            KeyDisposition::Person | KeyDisposition::Narrows => {
                assert!(
                    ["it is a table", "it is a list", "unknown key"]
                        .iter()
                        .any(|what| error.contains(what)),
                    "{error}"
                );
            }
        }
        // A key without a value says nothing, unless it is refused as a whole.
        let empty = read(&yaml(key, ""), &location(ProfileOwner::Person));
        assert_eq!(
            empty.is_err(),
            matches!(disposition, KeyDisposition::Refused(_)),
            "{key}"
        );
    }
}

#[test]
fn what_happens_anyway_may_be_said() {
    for (key, value) in [
        ("agent.inject_gist", "false"),
        ("agent.plugin_whitelist", "[]"),
        ("environment.keychain", "{}"),
        ("security.capabilities.add", "[]"),
        ("security.seccomp.enabled", "true"),
        ("security.filesystem.readonly_root", "true"),
        ("git.attribution.commit", "\"\""),
        ("gradle_enterprise.remote_cache_disabled", "true"),
        ("audit.enabled", "true"),
    ] {
        let text = yaml(key, value);
        for owner in [ProfileOwner::Person, ProfileOwner::Project] {
            assert!(read(&text, &location(owner)).is_ok(), "{text}");
        }
    }
}

#[test]
fn a_project_may_only_narrow() {
    for (key, value) in [
        ("agent.command", "sh -c id"),
        ("agent.type", "claude"),
        ("filesystem.include", "[~/.ssh]"),
        ("environment.passthrough", "[GITHUB_TOKEN]"),
        ("environment.set", "{ LD_PRELOAD: /workspace/x.so }"),
        ("image.name", "evil"),
        ("git.auto_push.enabled", "true"),
        ("git.auto_push.remote", "fork"),
        ("git.auto_push.commit_message", "x"),
        ("git.co_authors", "[]"),
        ("git.keep_commits", "true"),
        ("network.allowlist.hosts", "[evil.example]"),
        ("security.userns", "keep-id"),
        ("security.seccomp.allow_userns", "true"),
        ("maven.mirror_url", "https://evil.example"),
    ] {
        let line = key.split('.').count();
        let expected = format!(
            "F:{line}: `{key}`: a project's file cannot set this, because it would extend what \
             a run may do \
             | TRUST."
        );
        assert_eq!(
            refused_by(ProfileOwner::Project, &yaml(key, value)),
            expected
        );
    }
    let narrow = "resources: {memory: 1g, cpus: 1, pids: 9}\nnetwork: {mode: none}\n\
                  git: {auto_push: {enabled: false}}\nsecurity: {seccomp: {allow_userns: false}}\n";
    let profile = read(narrow, &location(ProfileOwner::Project)).unwrap();
    assert_eq!(profile.network.unwrap().value, NetworkMode::None);
    assert_eq!(profile.owner, ProfileOwner::Project);
    for (key, value) in [
        ("git.post_push_hook", "\"curl evil.example\""),
        ("security.capabilities.add", "[SYS_ADMIN]"),
        ("security.userns", "host"),
        ("environment.keychain", "{ X: { service: s } }"),
    ] {
        assert!(
            read(&yaml(key, value), &location(ProfileOwner::Project)).is_err(),
            "{key}"
        );
    }
}

#[test]
fn built_in_profiles_are_found_by_every_name_of_their_agent() {
    let names: BTreeSet<&str> = built_in::ALL.iter().map(|profile| profile.name).collect();
    assert_eq!(
        names,
        BTreeSet::from(["aider", "claude", "codex", "gemini", "interactive", "pi"])
    );
    for (name, expected) in [
        ("claude", "claude"),
        ("Claude Code", "claude"),
        ("claude-cli", "claude"),
        ("openai codex", "codex"),
        ("google-gemini", "gemini"),
        ("aider-chat", "aider"),
        ("pi", "pi"),
        ("bash", "interactive"),
    ] {
        let found = built_in::find(name).map(|profile| profile.name);
        assert_eq!(found, Some(expected), "{name}");
    }
    assert!(built_in::find("python").is_none() && built_in::find("../claude").is_none());
}

#[test]
fn every_built_in_profile_can_be_read_and_says_so() {
    for profile in built_in::ALL {
        let read = built_in::read(profile, Path::new(HOME)).unwrap();
        let source = read.agent_type.clone().unwrap().source;
        assert_eq!(
            source,
            ValueSource::BuiltIn(format!("profile {}", profile.name))
        );
        assert!(
            profile.text.starts_with("# "),
            "the first line says what it is: {}",
            profile.name
        );
    }
}
