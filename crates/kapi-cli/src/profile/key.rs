//! Every key of `agent-sandbox.yaml`: who may set it, or why it is refused and what to do instead.
//!
//! The whole of what the format has, and `git.keep_commits` of Kapi's own; a key that is not here
//! does not exist. What a key's value means is read elsewhere.

/// What becomes of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyDisposition {
    /// It counts when the person says it: it widens what a run may do, or chooses what runs.
    Person,
    /// It counts when the person says it; a project may say it to narrow.
    Narrows,
    /// What happens anyway is one of these values; another one is refused, with advice.
    Fixed(&'static [FixedValue], &'static str),
    /// It is refused, with advice.
    Refused(&'static str),
}

/// A value that asks for nothing but what happens anyway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FixedValue {
    /// `true`.
    True,
    /// `false`.
    False,
    /// Nothing, an empty text, list or table.
    Empty,
    /// This text.
    Text(&'static str),
}

use KeyDisposition::{Fixed as Only, Narrows, Person, Refused};

const OFF: &[FixedValue] = &[FixedValue::False];
const ON: &[FixedValue] = &[FixedValue::True];
const EMPTY: &[FixedValue] = &[FixedValue::Empty];

const NO_SECRET_STORE: &str = "export the secret and name its variable in \
    `environment.passthrough`; the key of a model is read through `api_key_env` in \
    [agents.<name>] and stays outside the sandbox";
const NO_DNS: &str = "remove it: the proxy outside the sandbox resolves names, checks the \
    addresses and connects itself";
const NO_WATCHDOG: &str = "remove it: Kapi stops a silent agent itself";
const NO_IMAGE: &str = "build your own image and name it with `image.name` and `image.tag`";
const NO_CLEANUP: &str = "use an option of the cleanup: `kapi cleanup --older-than 7d`";
const NO_HOST_COMMAND: &str = "remove it: no configuration runs a command on the host";
const NO_FORGE: &str = "remove it: Kapi records the address that the remote prints";
const NO_GIST: &str = "remove it: live activity comes from the agent's own output";
const NO_PLUGINS: &str = "remove it: Kapi does not start agent plugins";

/// The keys, by their dotted path. A key with a table below it that is not listed owns all of it.
pub(super) const KEYS: &[(&str, KeyDisposition)] = &[
    ("agent.command", Person),
    ("agent.type", Person),
    (
        "agent.workdir",
        Only(
            &[FixedValue::Text("/workspace")],
            "the working directory is always /workspace",
        ),
    ),
    ("agent.inject_gist", Only(OFF, NO_GIST)),
    ("agent.gist_llm", Only(OFF, NO_GIST)),
    ("agent.gist_llm_interval", Refused(NO_GIST)),
    ("agent.install_plugins", Only(OFF, NO_PLUGINS)),
    ("agent.plugin_whitelist", Only(EMPTY, NO_PLUGINS)),
    ("filesystem.include", Person),
    (
        "filesystem.exclude",
        Only(
            EMPTY,
            "list only what should be visible in `filesystem.include`",
        ),
    ),
    ("environment.passthrough", Person),
    ("environment.set", Person),
    ("environment.keychain", Only(EMPTY, NO_SECRET_STORE)),
    ("environment.inject_to", Refused(NO_SECRET_STORE)),
    ("resources.memory", Narrows),
    ("resources.cpus", Narrows),
    ("resources.pids", Narrows),
    (
        "sandbox.upper_dir_base",
        Refused(
            "remove it: layers are in ~/.ilchul/sandboxes, where `kapi sandbox list` and `kapi \
             cleanup` find them; to store them elsewhere, make that directory a symbolic link",
        ),
    ),
    (
        "sandbox.cleanup_after_merge",
        Only(OFF, "discard it yourself: `kapi sandbox discard <id>`"),
    ),
    (
        "sandbox.interactive_merge",
        Only(
            OFF,
            "review the changes, then run `kapi sandbox merge <id>`",
        ),
    ),
    ("image.name", Person),
    ("image.tag", Person),
    ("image.base", Refused(NO_IMAGE)),
    ("image.java_versions", Refused(NO_IMAGE)),
    ("image.default_java", Refused(NO_IMAGE)),
    ("image.extra_packages", Only(EMPTY, NO_IMAGE)),
    ("git.auto_push.enabled", Narrows),
    ("git.auto_push.remote", Person),
    ("git.auto_push.commit_message", Person),
    (
        "git.auto_push.stage_all",
        Only(
            ON,
            "Kapi commits everything that git does not ignore; hide files with .kapiexclude",
        ),
    ),
    (
        "git.auto_push.push_flags",
        Only(
            EMPTY,
            "remove it: Kapi never forces a push and passes no flags",
        ),
    ),
    ("git.co_authors", Person),
    ("git.keep_commits", Person),
    (
        "git.attribution.commit",
        Only(
            EMPTY,
            "put it in `git.auto_push.commit_message`; Kapi adds nothing by itself",
        ),
    ),
    (
        "git.attribution.pr",
        Only(
            EMPTY,
            "remove it: Kapi adds nothing to the pull request of `kapi launch --pr`",
        ),
    ),
    (
        "git.branch.prefix",
        Refused("name the branch: `kapi launch --branch <name>`"),
    ),
    (
        "git.branch.include_timestamp",
        Only(OFF, "name the branch: `kapi launch --branch <name>`"),
    ),
    (
        "git.commit_exclude",
        Only(
            EMPTY,
            "list what must not be committed in .gitignore or .kapiexclude",
        ),
    ),
    ("git.post_push_hook", Only(EMPTY, NO_HOST_COMMAND)),
    ("git.provider", Refused(NO_FORGE)),
    ("git.pr_url_template", Refused(NO_FORGE)),
    (
        "git.fork_workflow.enabled",
        Only(OFF, "push to a fork with `git.auto_push.remote`"),
    ),
    (
        "git.fork_workflow.fallback",
        Refused("push to a fork with `git.auto_push.remote`"),
    ),
    ("network.mode", Narrows),
    ("network.allowlist.hosts", Person),
    ("network.allowlist.registries", Person),
    ("network.allowlist.containers", Person),
    ("network.allowlist.ai", Person),
    ("network.allowlist.custom", Person),
    ("network.dns_servers", Only(EMPTY, NO_DNS)),
    (
        "network.log_dns_queries",
        Only(
            ON,
            "remove it: Kapi records every decision about a connection",
        ),
    ),
    ("network.dns_pinning", Refused(NO_DNS)),
    (
        "network.proxy",
        Only(EMPTY, "remove it: the proxy is built in"),
    ),
    (
        "network.allowed_ports",
        Only(
            EMPTY,
            "add the host with its port to an allow-list: `example.com:8443`",
        ),
    ),
    (
        "network.ssh",
        Refused("add `host:22` to an allow-list; the push itself happens outside the sandbox"),
    ),
    (
        "security.profile",
        Only(
            &[FixedValue::Text("standard")],
            "remove it: there is one profile, which uses every layer the host supports; see \
             `kapi doctor`",
        ),
    ),
    (
        "security.capabilities.add",
        Only(EMPTY, "remove it: nothing in a sandbox has capabilities"),
    ),
    (
        "security.seccomp.enabled",
        Only(
            ON,
            "remove it: the filter is always on; `--sandbox none` turns off all isolation",
        ),
    ),
    (
        "security.seccomp.profile",
        Refused("remove it: the filter is built in"),
    ),
    ("security.seccomp.allow_userns", Narrows),
    ("security.process.pids_limit", Narrows),
    (
        "security.process.no_new_privileges",
        Only(ON, "remove it: no program in a sandbox can gain privileges"),
    ),
    (
        "security.filesystem.noexec_tmp",
        Only(
            OFF,
            "remove it: build tools run programs from /tmp, which is private",
        ),
    ),
    (
        "security.filesystem.readonly_root",
        Only(ON, "remove it: the root is always read-only"),
    ),
    (
        "security.lsm.required",
        Only(
            OFF,
            "run `kapi doctor`; Landlock is on wherever the kernel supports it",
        ),
    ),
    ("security.userns", Person),
    ("liveness", Refused(NO_WATCHDOG)),
    ("cleanup", Refused(NO_CLEANUP)),
    (
        "audit.enabled",
        Only(ON, "remove it: the log is always kept"),
    ),
    (
        "ssh.verify_hosts",
        Only(
            EMPTY,
            "remove it: the push uses your own known_hosts, outside the sandbox",
        ),
    ),
    (
        "claude.hooks.include",
        Only(
            EMPTY,
            "remove it: Kapi does not run the repository's hooks; your own come with ~/.claude",
        ),
    ),
    (
        "claude.mcp_servers.include",
        Only(
            EMPTY,
            "remove it: Kapi does not start the repository's servers",
        ),
    ),
    (
        "lsp_servers",
        Only(EMPTY, "remove it: Kapi does not start language servers"),
    ),
    (
        "prevent_sleep",
        Only(OFF, "run Kapi under a system tool such as systemd-inhibit"),
    ),
    (
        "vm.max_parallel_agents",
        Refused("remove it: there is no virtual machine"),
    ),
    ("maven.mirror_url", Person),
    (
        "maven.block_remote_snapshots",
        Only(ON, "remove it: SNAPSHOTs are always refused"),
    ),
    (
        "maven.block_deploy",
        Only(ON, "remove it: deploying is always refused"),
    ),
    (
        "gradle_enterprise.server_url",
        Refused("set it in the build and add its host to an allow-list"),
    ),
    (
        "gradle_enterprise.build_scans_enabled",
        Refused("set it in the build and add its host to an allow-list"),
    ),
    (
        "gradle_enterprise.remote_cache_disabled",
        Only(ON, "remove it: the remote build cache is always off"),
    ),
];

/// Returns what becomes of a key.
pub(super) fn disposition(path: &str) -> Option<KeyDisposition> {
    let found = KEYS.iter().find(|(key, _)| *key == path);
    found.map(|(_, disposition)| *disposition)
}

/// Tells whether there are keys below a path.
pub(super) fn is_table(path: &str) -> bool {
    KEYS.iter().any(|(key, _)| is_below(key, path))
}

/// Returns what stands beside a key that does not exist, for a person to choose from.
pub(super) fn beside(path: &str) -> Vec<&'static str> {
    let parent = path.rsplit_once('.').map_or("", |(parent, _)| parent);
    let mut names: Vec<&str> = Vec::new();
    for (key, _) in KEYS {
        let rest = match parent {
            "" => Some(*key),
            parent if is_below(key, parent) => key.get(parent.len() + 1..),
            _ => None,
        };
        let name = rest.and_then(|rest| rest.split('.').next());
        if let Some(name) = name.filter(|name| !names.contains(name)) {
            names.push(name);
        }
    }
    names
}

fn is_below(key: &str, parent: &str) -> bool {
    let rest = key.strip_prefix(parent);
    rest.is_some_and(|rest| rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::{KEYS, KeyDisposition, beside, disposition, is_table};

    #[test]
    fn a_key_stands_once_and_is_no_table_of_others() {
        for (n, (key, _)) in KEYS.iter().enumerate() {
            assert!(!is_table(key), "{key}");
            assert!(
                KEYS.iter().skip(n + 1).all(|(other, _)| other != key),
                "{key}"
            );
        }
    }

    #[test]
    fn the_document_of_the_configuration_names_every_key() {
        let document = include_str!("../../../../docs/configuration.md");
        for (key, _) in KEYS {
            assert!(
                document.contains(&format!("`{key}`")),
                "`{key}` in docs/configuration.md"
            );
        }
    }

    #[test]
    fn what_is_beside_a_wrong_key_is_named() {
        assert_eq!(beside("resources.ram"), ["memory", "cpus", "pids"]);
        assert_eq!(beside("agent.x").first(), Some(&"command"));
        let top = beside("agnet");
        assert!(
            top.contains(&"agent") && top.contains(&"liveness"),
            "{top:?}"
        );
        assert_eq!(disposition("agent.command"), Some(KeyDisposition::Person));
        assert_eq!(disposition("agent"), None);
        assert!(is_table("agent") && is_table("git.auto_push") && !is_table("git.auto"));
    }
}
