//! What is the same for every run: how its model is asked, what it sees, and its limits.
//!
//! An agent is planned as for a launch, without any of it happening; keys are looked for, never
//! shown.

use std::path::Path;

use kapi_agent::agent::AgentKind;
use kapi_agent::launch::upstream::GatewayAddress;
use kapi_agent::launch::{self, AgentLaunch, AgentTurn, HostEnvironment, LaunchPurpose};
use kapi_agent::settings::AgentSettings;
use kapi_core::failure::chain;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_gateway::egress::address::AddressReach;
use kapi_gateway::egress::rule::EgressRule;
use kapi_run::grant::{Cassettes, Grant, PASSED_VARIABLES};
use kapi_sandbox::podman::options::Userns;
use kapi_sandbox::toolchain;

use super::ExplainRows;
use crate::amount;
use crate::config::source::{Origins, ValueSource};
use crate::context::Context;

/// A run to explain.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExplainSubject<'a> {
    pub(super) agent: &'a AgentKind,
    pub(super) agent_source: &'a ValueSource,
    pub(super) settings: &'a AgentSettings,
    pub(super) level: SandboxLevel,
    pub(super) network: NetworkMode,
    pub(super) grant: &'a Grant,
    pub(super) origins: &'a Origins,
}

/// Adds how the model is asked, and the hosts that the agent reaches by itself.
pub(super) fn model(context: &Context, subject: &ExplainSubject<'_>, rows: &mut ExplainRows) {
    let name = subject.agent.name();
    let said = |key: &str| subject.origins.first(&format!("agents.{name}.{key}"));
    if let Some(model) = &subject.settings.model {
        let source = match said("model") {
            ValueSource::Default => subject.agent_source.clone(),
            source => source,
        };
        rows.add("model", model, &source);
    }
    let route = match planned(context, subject) {
        Ok(AgentLaunch {
            upstream: Some(upstream),
            ..
        }) => format!("through Kapi's gateway to {}", upstream.base_url),
        Ok(launch) if !launch.login_files.is_empty() => {
            "your login, copied for the agent; it contacts its vendor directly".to_owned()
        }
        Ok(_) => "the program contacts its model directly, if it uses one".to_owned(),
        Err(why) => format!("not ready: failed to {why}"),
    };
    rows.add("model route", route, &said("base_url"));
}

/// Adds what can be reached.
pub(super) fn reach(context: &Context, subject: &ExplainSubject<'_>, rows: &mut ExplainRows) {
    if subject.network != NetworkMode::Filtered || subject.level == SandboxLevel::None {
        return;
    }
    if let Ok(launch) = planned(context, subject) {
        let source = ValueSource::BuiltIn(subject.agent.name().to_owned());
        for host in &launch.hosts {
            rows.add("allow", host, &source);
        }
    }
    for ecosystem in &subject.grant.registries {
        let sources = subject.origins.of("network.registries");
        let rules = context.registry_rules(ecosystem);
        let hosts = rules
            .iter()
            .filter(|rule| rule.reach() == AddressReach::Public);
        let hosts: Vec<&str> = hosts.map(EgressRule::text).collect();
        let found = match hosts.as_slice() {
            [] => "no client here says which it asks".to_owned(),
            hosts => hosts.join(", "),
        };
        rows.add_all("registries", format!("{ecosystem}: {found}"), &sources);
    }
    for port in &subject.grant.forward {
        let sources = subject.origins.of("network.forward");
        rows.add_all("forward", format!("127.0.0.1:{port}"), &sources);
    }
}

/// Adds the paths that are visible by themselves.
pub(super) fn sight(context: &Context, subject: &ExplainSubject<'_>, rows: &mut ExplainRows) {
    match subject.level {
        SandboxLevel::Native => {
            rows.add(
                "visible",
                "/usr, /bin, /lib*, /opt, some of /etc",
                &ValueSource::Default,
            );
            for mount in toolchain::toolchains(&context.home) {
                rows.add(
                    "visible",
                    mount.host.display().to_string(),
                    &ValueSource::Default,
                );
            }
        }
        SandboxLevel::Podman => {}
        SandboxLevel::None => rows.add("visible", "everything you can see", &ValueSource::Default),
    }
}

/// Adds the names of the variables that every program may see.
pub(super) fn variables(context: &Context, rows: &mut ExplainRows) {
    for name in PASSED_VARIABLES {
        if context.variable(name).is_some() {
            rows.add("variable passed", *name, &ValueSource::Default);
        }
    }
}

/// Adds what may be used, and what only a container has.
pub(super) fn limits(subject: &ExplainSubject<'_>, rows: &mut ExplainRows) {
    if subject.level == SandboxLevel::None {
        return;
    }
    let resources = subject.grant.resources;
    let bytes = |value: Option<u64>| value.map(amount::bytes);
    let count = |value: Option<u64>| value.map(|value| value.to_string());
    let cpus = resources.cpu_millis.map(|millis| {
        let text = format!("{}.{:03}", millis / 1000, millis % 1000);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    });
    for (key, value) in [
        ("memory", bytes(resources.memory_bytes)),
        ("cpus", cpus),
        ("processes", count(resources.processes)),
        ("open_files", count(resources.open_files)),
        ("file_size", bytes(resources.file_bytes)),
        ("disk", bytes(resources.disk_bytes)),
    ] {
        let sources = subject.origins.of(&format!("sandbox.{key}"));
        rows.add_all(
            key,
            value.unwrap_or_else(|| "no limit".to_owned()),
            &sources,
        );
    }
    let nested = if subject.grant.nested_namespaces {
        "allowed"
    } else {
        "refused"
    };
    let sources = subject.origins.of("sandbox.nested_namespaces");
    rows.add_all("sandboxes inside", nested, &sources);
    if subject.level == SandboxLevel::Podman {
        container(subject, rows);
    }
}

/// Adds where what is said to models is kept.
pub(super) fn cassettes(subject: &ExplainSubject<'_>, rows: &mut ExplainRows) {
    match &subject.grant.cassettes {
        None => {}
        Some(Cassettes::Record(dir)) => {
            let sources = subject.origins.of("network.record");
            rows.add_all(
                "model traffic",
                format!("recorded in {}", dir.display()),
                &sources,
            );
        }
        Some(Cassettes::Replay(dir)) => {
            let sources = subject.origins.of("network.replay");
            rows.add_all(
                "model traffic",
                format!("replayed from {}", dir.display()),
                &sources,
            );
        }
    }
}

fn container(subject: &ExplainSubject<'_>, rows: &mut ExplainRows) {
    let podman = &subject.grant.podman;
    let image = if podman.image.is_empty() {
        "none: `kapi sandbox image`"
    } else {
        &podman.image
    };
    rows.add_all("image", image, &subject.origins.of("sandbox.image"));
    if let Some(runtime) = &podman.runtime {
        rows.add_all("runtime", runtime, &subject.origins.of("sandbox.runtime"));
    }
    for limit in &podman.ulimits {
        let text = format!("{}={}:{}", limit.name, limit.soft, limit.hard);
        rows.add_all("ulimit", text, &subject.origins.of("sandbox.ulimits"));
    }
    let userns = match podman.userns {
        Userns::Auto => "auto".to_owned(),
        Userns::KeepId => "keep-id".to_owned(),
        Userns::KeepIdAs { uid, gid } => format!("keep-id:uid={uid},gid={gid}"),
    };
    rows.add_all("userns", userns, &subject.origins.of("sandbox.userns"));
}

fn planned(context: &Context, subject: &ExplainSubject<'_>) -> Result<AgentLaunch, String> {
    let nowhere = Path::new("/");
    let turn = AgentTurn {
        prompt: "",
        prompt_file: nowhere,
        session: None,
        turn: 1,
        run_id: "explain",
        purpose: LaunchPurpose::Work,
        home: nowhere,
        workspace: nowhere,
        gateway: GatewayAddress {
            url: "http://127.0.0.1:1",
            placeholder: "explain",
        },
        tools: None,
        gate: None,
    };
    let host = HostEnvironment { env: &context.env };
    launch::launch(subject.agent, subject.settings, &host, &turn).map_err(|error| chain(&error))
}
