//! The words of every refusal of a profile.

use super::refused;

/// What is wrong, and how the answer begins: the message, a bar, and the hint.
const REFUSALS: &[(&str, &str)] = &[
    (
        "agnet: {}\n",
        "F:1: `agnet`: unknown key | did you mean `agent`?",
    ),
    (
        "agent:\n  type: claude\n  comand: x\n",
        "F:3: `agent.comand`: unknown key | did you mean `command`?",
    ),
    (
        "agent: claude\n",
        "F:1: `agent`: it is text | give a table of settings.",
    ),
    (
        "- a\n",
        "F:1: it must be a table of settings, not a list | ",
    ),
    (
        "agent:\n  type: clod\n",
        "F:2: `agent.type`: unknown agent type \"clod\" | available: claude",
    ),
    (
        "agent: {command: \"\"}\n",
        "F:1: `agent.command`: it must not be empty | ",
    ),
    (
        "agent:\n  command: sh -c \"claude -p {task}\"\n",
        "F:2: `agent.command`: `{task}` is inside quotes with other words | write it as",
    ),
    (
        "agent: {workdir: /src}\n",
        "F:1: `agent.workdir`: it cannot be set to this | the working directory is always /work",
    ),
    (
        "filesystem:\n  include:\n    - ~/.x\n    - ../..\n",
        "F:4: `filesystem.include[1]`: it must be absolute or start with ~/ | ",
    ),
    (
        "filesystem: {include: /}\n",
        "F:1: `filesystem.include`: it is text | give a list.",
    ),
    (
        "filesystem: {include: [1]}\n",
        "F:1: `filesystem.include[0]`: it is a whole number | give text",
    ),
    (
        "filesystem: {exclude: [~/.ssh/id_rsa]}\n",
        "F:1: `filesystem.exclude`: it cannot be set to this | list only what should be visible",
    ),
    (
        "environment: {passthrough: [\"A=B\"]}\n",
        "F:1: `environment.passthrough[0]`: a variable name contains only letters, digits and _",
    ),
    (
        "environment:\n  set:\n    KAPI_RUN_ID: x\n",
        "F:3: `environment.set.KAPI_RUN_ID`: Kapi sets this variable itself | ",
    ),
    (
        "environment: {set: {V: 1.10}}\n",
        "F:1: `environment.set.V`: it is a number with decimals | put the value in quotes",
    ),
    (
        "environment: {set: {V: true}}\n",
        "F:1: `environment.set.V`: it is true or false | put the value in quotes",
    ),
    (
        "environment: {set: {V: [a]}}\n",
        "F:1: `environment.set.V`: it is a list | give text",
    ),
    (
        "environment: {set: {V: \"a\\0b\"}}\n",
        "F:1: `environment.set.V`: it contains a zero byte",
    ),
    (
        "environment:\n  keychain:\n    T: {service: s}\n",
        "F:2: `environment.keychain`: it cannot be set to this | export the secret and name its",
    ),
    (
        "resources: {memory: 8x}\n",
        "F:1: `resources.memory`: \"8x\" is not a size | give a size such as 512m or 8g",
    ),
    (
        "resources: {memory: 0}\n",
        "F:1: `resources.memory`: \"0\" is not a size | ",
    ),
    (
        "resources: {cpus: 0}\n",
        "F:1: `resources.cpus`: 0 is out of range | give 0.01 to 1024 processors",
    ),
    (
        "resources: {cpus: [4]}\n",
        "F:1: `resources.cpus`: it is a list | ",
    ),
    (
        "resources: {pids: -5}\n",
        "F:1: `resources.pids`: -5 is out of range | give a whole number from 1",
    ),
    (
        "resources: {pids: many}\n",
        "F:1: `resources.pids`: it is text | give a whole number from 1",
    ),
    ("resources: {pids: 99999999999999999999}\n", "F:1: "),
    (
        "image: {name: --privileged}\n",
        "F:1: `image.name`: use letters, digits, _, ., /, :, @ and -, and start with a",
    ),
    (
        "git: {auto_push: {remote: \"https://evil.example/x\"}}\n",
        "F:1: `git.auto_push.remote`: it must name a remote of the repository",
    ),
    (
        "git: {auto_push: {remote: --force}}\n",
        "F:1: `git.auto_push.remote`: it must name a remote",
    ),
    (
        "git: {auto_push: {commit_message: \"{who}\"}}\n",
        "F:1: `git.auto_push.commit_message`: `{who}` is not a placeholder | available: {task}",
    ),
    (
        "git: {co_authors: [\"A <a@b>\", \"B\\nX: y <b@c>\"]}\n",
        "F:1: `git.co_authors[1]`: \"B\\nX: y <b@c>\" is not written as",
    ),
    (
        "git: {post_push_hook: \"make\"}\n",
        "F:1: `git.post_push_hook`: it cannot be set to this | remove it: no configuration",
    ),
    (
        "network: {mode: on}\n",
        "F:1: `network.mode`: unknown value \"on\" | use none, filtered, open",
    ),
    (
        "network: {allowlist: {hosts: [\"*.com\"]}}\n",
        "F:1: `network.allowlist.hosts[0]`: its star is not one `*.` before at least",
    ),
    (
        "network: {dns_servers: [8.8.8.8]}\n",
        "F:1: `network.dns_servers`: it cannot be set to this | remove it: the proxy outside",
    ),
    (
        "security: {profile: paranoid}\n",
        "F:1: `security.profile`: it cannot be set to this | remove it: there is one profile",
    ),
    (
        "security: {userns: host}\n",
        "F:1: `security.userns`: \"host\" is not auto, keep-id or keep-id:uid=<n>,gid=<n> | ",
    ),
    (
        "security: {userns: \"keep-id:uid=1,gid=2 --privileged\"}\n",
        "F:1: `security.userns`: \"keep-id:uid=1,gid=2 --privileged\" is not auto",
    ),
    (
        "liveness:\n  enabled: false\n",
        "F:1: `liveness`: it is not supported | remove it: Kapi stops a silent agent",
    ),
    (
        "maven: {mirror_url: ftp://x}\n",
        "F:1: `maven.mirror_url`: give an address that starts",
    ),
    ("a: 1\nagent: {}\na: 2\n", "F:3: "),
    ("agent: [\n", "F:"),
];

#[test]
fn the_words_of_every_refusal() {
    for (text, expected) in REFUSALS {
        let error = refused(text);
        assert!(
            error.starts_with(expected),
            "{text}\n  gives {error}\n  and not {expected}"
        );
    }
}
