//! Rules that keep one machine's names out of the repository.
//!
//! A path or a host that exists for one person only makes a build that works for one person
//! only. Forbidden names are spelled in pieces here, so that this file keeps its own rules.

use super::TidyFault;
use super::tree::{SourceTree, TextFile};

/// Directories whose children belong to one machine.
const MACHINE_ROOTS: &[&str] = &[
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/Us", "ers/"),
    concat!("/fa", "rm/"),
    concat!("/wo", "rk/"),
];
/// Names that stand for nobody in particular, for examples, recordings and tests.
const NOBODY: &[&str] = &["agent", "kapi", "linuxbrew", "somebody", "user", "you"];
/// The public registry that Cargo records.
const CARGO_REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";
/// Ends of host names that only a private network resolves.
const PRIVATE_SUFFIXES: &[&str] = &[".internal", ".corp", ".lan", ".intranet"];

/// No path below somebody's home or a workplace's own directories.
pub(super) fn no_path_of_one_machine(tree: &SourceTree) -> Vec<TidyFault> {
    let mut faults = Vec::new();
    for file in &tree.files {
        for (line, text) in file.numbered() {
            let found = MACHINE_ROOTS
                .iter()
                .filter_map(|root| machine_path(text, root));
            faults.extend(found.map(|path| TidyFault {
                path: file.path.clone(),
                line,
                message: format!("`{path}` is a path of one machine: pass it in, or say `user`"),
            }));
        }
    }
    faults
}

/// Returns the first absolute path in `line` that starts with `root` and a real name.
fn machine_path<'a>(line: &'a str, root: &str) -> Option<&'a str> {
    line.match_indices(root).find_map(|(at, _)| {
        let before = line.get(..at)?.chars().next_back();
        if before.is_some_and(|c| is_name(c) || matches!(c, '/' | '}' | '>' | '~' | '*' | '$')) {
            return None;
        }
        let after = line.get(at + root.len()..)?;
        let name = after.split(|c| !is_name(c)).next()?;
        // A name of dots alone is prose.
        if name.chars().all(|c| c == '.') || NOBODY.contains(&name) {
            return None;
        }
        line.get(at..at + root.len() + name.len())
    })
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// No address that only one network can reach.
pub(super) fn no_private_host(tree: &SourceTree) -> Vec<TidyFault> {
    let mut faults = Vec::new();
    for file in &tree.files {
        for (line, text) in file.numbered() {
            let hosts = text
                .split("://")
                .skip(1)
                .map(host_of)
                .filter(|host| is_private(host));
            faults.extend(hosts.map(|host| TidyFault {
                path: file.path.clone(),
                line,
                message: format!("`{host}` can be reached from one network only"),
            }));
        }
    }
    faults
}

fn host_of(address: &str) -> &str {
    let authority = address
        .split(['/', '?', '#', '"', '\'', '`', ' ', ')', '<'])
        .next();
    let authority = authority.unwrap_or_default();
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    host.split(':').next().unwrap_or_default()
}

fn is_private(host: &str) -> bool {
    let parts: Vec<&str> = host.split('.').collect();
    let is_address = parts.len() == 4 && parts.iter().all(|part| part.parse::<u8>().is_ok());
    if !is_address {
        return PRIVATE_SUFFIXES.iter().any(|suffix| host.ends_with(suffix));
    }
    match (parts[0], parts[1]) {
        ("10", _) | ("192", "168") => true,
        ("172", second) => second
            .parse::<u8>()
            .is_ok_and(|second| (16..32).contains(&second)),
        _ => false,
    }
}

/// What is locked comes from where everybody can get it.
pub(super) fn locks_name_public_registries(tree: &SourceTree) -> Vec<TidyFault> {
    let mut faults = Vec::new();
    for file in &tree.files {
        for (line, text) in file.numbered() {
            if let Some(message) = lock_fault(file, text.trim()) {
                let message = message.to_owned();
                faults.push(TidyFault {
                    path: file.path.clone(),
                    line,
                    message,
                });
            }
        }
    }
    faults
}

fn lock_fault(file: &TextFile, line: &str) -> Option<&'static str> {
    let name = file.path.rsplit('/').next().unwrap_or_default();
    match name {
        "Cargo.lock" => {
            let source = line.strip_prefix("source = ")?.trim_matches('"');
            (source != CARGO_REGISTRY).then_some("lock the package to the public registry")
        }
        "package-lock.json" | "npm-shrinkwrap.json" => line
            .starts_with(r#""resolved":"#)
            .then_some("leave the address out: it names a mirror"),
        ".npmrc" => line
            .contains("registry")
            .then_some("leave the registry to the machine"),
        "config.toml" if file.path.contains(".cargo/") => {
            let is_source = line.starts_with("[source") || line.starts_with("[registries");
            is_source.then_some("leave the registry to the machine")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::faults;
    use super::{locks_name_public_registries, no_path_of_one_machine, no_private_host};

    #[test]
    fn paths_of_one_machine_are_found() {
        let own = concat!("see /ho", "me/alice/notes and (/ro", "ot/.cargo)");
        let location = concat!("\"/wo", "rk/main\"");
        assert_eq!(
            faults(
                no_path_of_one_machine,
                &[("a.md", own), ("b.json", location)]
            ),
            [
                concat!(
                    "a.md:1: `/ho",
                    "me/alice` is a path of one machine: pass it in, or say `user`"
                ),
                concat!(
                    "a.md:1: `/ro",
                    "ot/.cargo` is a path of one machine: pass it in, or say `user`"
                ),
                concat!(
                    "b.json:1: `/wo",
                    "rk/main` is a path of one machine: pass it in, or say `user`"
                ),
            ]
        );
    }

    #[test]
    fn paths_of_nobody_and_relative_paths_pass() {
        let lines = [
            concat!("/ho", "me/user/project"),
            concat!("/ho", "me/agent/.claude"),
            concat!("sandbox/ho", "me/alice"),
            concat!("${upper}/wo", "rk/tmp"),
            concat!("below /ho", "me/ and /ro", "ot/"),
            concat!("/ho", "me/…"),
        ];
        let text = lines.join("\n");
        assert_eq!(faults(no_path_of_one_machine, &[("a.rs", &text)]), [""; 0]);
    }

    #[test]
    fn hosts_of_one_network_are_found() {
        let text = [
            "http://127.0.0.1:80 https://example.com/10.0.0.1 http://172.32.0.1\n",
            concat!(
                "http:/",
                "/10.1.2.3/x https:/",
                "/me@mirror.corp:8080/ `http:/",
                "/172.20.0.1`"
            ),
        ];
        let text = text.concat();
        assert_eq!(
            faults(no_private_host, &[("a.toml", &text)]),
            [
                "a.toml:2: `10.1.2.3` can be reached from one network only",
                "a.toml:2: `mirror.corp` can be reached from one network only",
                "a.toml:2: `172.20.0.1` can be reached from one network only",
            ]
        );
    }

    #[test]
    fn locks_of_a_mirror_are_found() {
        let public =
            r#"source = "registry+https://github.com/rust-lang/crates.io-index""#.to_owned();
        let lock = format!("{public}\nsource = \"sparse+https://mirror.example/\"\n");
        let files = [
            ("Cargo.lock", lock.as_str()),
            (
                "x/package-lock.json",
                "  \"resolved\": \"https://mirror.example/a.tgz\",",
            ),
            (".cargo/config.toml", "[alias]\n[source.crates-io]\n"),
        ];
        assert_eq!(
            faults(locks_name_public_registries, &files),
            [
                "Cargo.lock:2: lock the package to the public registry",
                "x/package-lock.json:1: leave the address out: it names a mirror",
                ".cargo/config.toml:2: leave the registry to the machine",
            ]
        );
    }
}
