//! Every key of `agent-sandbox.yaml`: who may set it, or why it is refused and what to do instead.
//!
//! The whole of what the format has; a key that is not here does not exist. What a key's value
//! means is read elsewhere.

/// What becomes of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It counts when the person says it: it widens what a run may do, or chooses what runs.
    Person,
    /// It counts when the person says it; a project may say it to narrow.
    Narrows,
    /// What happens anyway is one of these values; another one is refused, with advice.
    Fixed(&'static [Fixed], &'static str),
    /// It is refused, with advice.
    Refused(&'static str),
}

/// A value that asks for nothing but what happens anyway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fixed {
    /// `true`.
    True,
    /// `false`.
    False,
    /// Nothing, an empty text, list or table.
    Empty,
    /// This text.
    Text(&'static str),
}

use Fate::{Fixed as Only, Narrows, Person, Refused};

const OFF: &[Fixed] = &[Fixed::False];
const ON: &[Fixed] = &[Fixed::True];
const EMPTY: &[Fixed] = &[Fixed::Empty];

const NO_SECRET_STORE: &str = "export the secret and name its variable in `environment.passthrough`; a model's key is found \
     through `api_key_env` in [agents.<name>] and stays outside of the sandbox";
const NO_DNS: &str = "leave it out: names are looked up outside by the proxy, which checks and dials \
     the address itself";
const NO_WATCHDOG: &str =
    "leave it out: a silent agent is ended by its adapter's own limit, from outside";
const NO_IMAGE: &str = "build an image of your own and name it with `image.name` and `image.tag`";
const NO_CLEANUP: &str = "say it when you clean up: `kapi cleanup --older-than 7d`";
const NO_HOST_COMMAND: &str = "leave it out: no configuration runs a command on the host";
const NO_FORGE: &str = "leave it out: the address that the remote prints is recorded";
const NO_GIST: &str = "leave it out: live activity comes from the agent's own stream";
const NO_PLUGINS: &str = "leave it out: an agent's plugins are not started here";

/// The keys, by their dotted path. A key with a table below it that is not listed owns all of it.
pub(super) const KEYS: &[(&str, Fate)] = &[
    ("agent.command", Person),
    ("agent.type", Person),
    (
        "agent.workdir",
        Only(
            &[Fixed::Text("/workspace")],
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
            "name what should be visible, and no more, in `filesystem.include`",
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
            "leave it out: layers lie below ~/.ilchul/sandboxes, where `kapi sandbox list` and \
             `kapi cleanup` find them; make that directory a link to keep them elsewhere",
        ),
    ),
    (
        "sandbox.cleanup_after_merge",
        Only(OFF, "discard it yourself: `kapi sandbox discard <id>`"),
    ),
    (
        "sandbox.interactive_merge",
        Only(OFF, "merge when you have looked: `kapi sandbox merge <id>`"),
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
            "everything that git does not ignore is committed; hide files with .kapiexclude",
        ),
    ),
    (
        "git.auto_push.push_flags",
        Only(
            EMPTY,
            "leave it out: a push is never forced and takes no flags",
        ),
    ),
    ("git.co_authors", Person),
    (
        "git.attribution.commit",
        Only(
            EMPTY,
            "write it into `git.auto_push.commit_message`; nothing is added by itself",
        ),
    ),
    (
        "git.attribution.pr",
        Only(EMPTY, "leave it out: Kapi opens no pull request"),
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
            "name what must not be committed in .gitignore or .kapiexclude",
        ),
    ),
    ("git.post_push_hook", Only(EMPTY, NO_HOST_COMMAND)),
    ("git.provider", Refused(NO_FORGE)),
    ("git.pr_url_template", Refused(NO_FORGE)),
    (
        "git.fork_workflow.enabled",
        Only(OFF, "push to a fork by its name: `git.auto_push.remote`"),
    ),
    (
        "git.fork_workflow.fallback",
        Refused("push to a fork by its name: `git.auto_push.remote`"),
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
            "leave it out: every decision about a connection is recorded",
        ),
    ),
    ("network.dns_pinning", Refused(NO_DNS)),
    (
        "network.proxy",
        Only(EMPTY, "leave it out: the proxy is Kapi's own"),
    ),
    (
        "network.allowed_ports",
        Only(
            EMPTY,
            "write the port with its host in an allow-list: `example.com:8443`",
        ),
    ),
    (
        "network.ssh",
        Refused("write `host:22` in an allow-list; the push itself is made outside"),
    ),
    (
        "security.profile",
        Only(
            &[Fixed::Text("standard")],
            "leave it out: there is one profile, with every layer the host gives; see `kapi doctor`",
        ),
    ),
    (
        "security.capabilities.add",
        Only(EMPTY, "leave it out: nothing in a sandbox has capabilities"),
    ),
    (
        "security.seccomp.enabled",
        Only(
            ON,
            "leave it out: the filter is always on; without isolation say `--sandbox none`",
        ),
    ),
    (
        "security.seccomp.profile",
        Refused("leave it out: the filter is Kapi's own"),
    ),
    ("security.seccomp.allow_userns", Narrows),
    ("security.process.pids_limit", Narrows),
    (
        "security.process.no_new_privileges",
        Only(ON, "leave it out: no program in a sandbox gains privileges"),
    ),
    (
        "security.filesystem.noexec_tmp",
        Only(
            OFF,
            "leave it out: build tools run programs from /tmp, which is private",
        ),
    ),
    (
        "security.filesystem.readonly_root",
        Only(ON, "leave it out: the root is always read-only"),
    ),
    (
        "security.lsm.required",
        Only(
            OFF,
            "look at `kapi doctor`; Landlock is on wherever the kernel has it",
        ),
    ),
    ("security.userns", Person),
    ("liveness", Refused(NO_WATCHDOG)),
    ("cleanup", Refused(NO_CLEANUP)),
    (
        "audit.enabled",
        Only(ON, "leave it out: the record is always kept"),
    ),
    (
        "ssh.verify_hosts",
        Only(
            EMPTY,
            "leave it out: the push uses your own known_hosts, outside",
        ),
    ),
    (
        "claude.hooks.include",
        Only(
            EMPTY,
            "leave it out: the repository's hooks are not run; your own come with ~/.claude",
        ),
    ),
    (
        "claude.mcp_servers.include",
        Only(
            EMPTY,
            "leave it out: the repository's servers are not started",
        ),
    ),
    (
        "lsp_servers",
        Only(EMPTY, "leave it out: language servers are not started here"),
    ),
    (
        "prevent_sleep",
        Only(
            OFF,
            "start Kapi under your system's own tool, as systemd-inhibit",
        ),
    ),
    (
        "vm.max_parallel_agents",
        Refused("leave it out: there is no virtual machine"),
    ),
    ("maven.mirror_url", Person),
    (
        "maven.block_remote_snapshots",
        Only(ON, "leave it out: SNAPSHOTs are always refused"),
    ),
    (
        "maven.block_deploy",
        Only(ON, "leave it out: deploying is always refused"),
    ),
    (
        "gradle_enterprise.server_url",
        Refused("set it in the build; its host goes into an allow-list"),
    ),
    (
        "gradle_enterprise.build_scans_enabled",
        Refused("set it in the build; its host goes into an allow-list"),
    ),
    (
        "gradle_enterprise.remote_cache_disabled",
        Only(ON, "leave it out: the remote build cache is always off"),
    ),
];

/// Returns what becomes of a key.
pub(super) fn fate(path: &str) -> Option<Fate> {
    let found = KEYS.iter().find(|(key, _)| *key == path);
    found.map(|(_, fate)| *fate)
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
    use super::{Fate, KEYS, beside, fate, is_table};

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
        assert_eq!(fate("agent.command"), Some(Fate::Person));
        assert_eq!(fate("agent"), None);
        assert!(is_table("agent") && is_table("git.auto_push") && !is_table("git.auto"));
    }
}
