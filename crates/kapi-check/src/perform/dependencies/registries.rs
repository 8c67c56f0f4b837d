//! Which registries the person's own clients ask: no address of one is written down in Kapi.
//!
//! A client is asked with the person's settings, away from every project: a file of the work must not
//! say where from its dependencies come.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kapi_core::failure::Failure;
use kapi_gateway::egress::rule::EgressRule;
use kapi_sys::process::{self, ProcessEnd, ProcessLimits, Program};

use crate::perform::ecosystems;

/// The longest that a client may take to say which registries it asks.
const ASKING: Duration = Duration::from_secs(20);
/// Bytes of its answer.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Returns the names of the ecosystems whose clients can be asked.
///
/// # Errors
/// When the table of ecosystems cannot be read.
pub fn ecosystems() -> Result<Vec<&'static str>, Failure> {
    let all = ecosystems::table()?.all.iter();
    let known = all.filter(|one| one.prepare.iter().any(|it| !it.registries.is_empty()));
    Ok(known.map(|one| one.id.as_str()).collect())
}

/// Returns what has to be allowed for the clients of an ecosystem, by its name, to reach their
/// registries; nothing where none of them says which it asks. `away` is a directory without settings.
///
/// # Errors
/// When the table of ecosystems cannot be read.
pub fn rules_of(
    ecosystem: &str,
    env: &BTreeMap<OsString, OsString>,
    away: &Path,
) -> Result<Vec<EgressRule>, Failure> {
    let found = ecosystems::table()?.get(ecosystem);
    let lines = found.iter().flat_map(|one| &one.prepare);
    let lines: BTreeSet<&String> = lines.flat_map(|one| &one.registries).collect();
    let hosts = hosts(lines, env, away);
    Ok(hosts.iter().flat_map(|host| rules(host)).collect())
}

/// Returns the hosts of registries that clients name when they are asked by these shell lines, as
/// `host:port` or `host`.
pub(crate) fn hosts<'l>(
    lines: impl IntoIterator<Item = &'l String>,
    env: &BTreeMap<OsString, OsString>,
    away: &Path,
) -> BTreeSet<String> {
    let answers = lines.into_iter().filter_map(|line| {
        let finished = process::run_quiet(Program {
            path: PathBuf::from("/bin/sh"),
            args: vec!["-c".into(), OsString::from(line)],
            env: env.clone(),
            cwd: away.to_path_buf(),
            stdin: Vec::new(),
            pass_fds: Vec::new(),
            limits: ProcessLimits {
                deadline: ASKING,
                idle: None,
                tail_bytes_max: ANSWER_BYTES_MAX,
                line_bytes_max: ANSWER_BYTES_MAX,
            },
        });
        let finished = finished.ok()?;
        (finished.end == ProcessEnd::Exited(0)).then(|| finished.stdout.text())
    });
    answers.flat_map(|answer| hosts_in(&answer)).collect()
}

/// Returns what has to be allowed for a registry's host to be reached, whatever network it is in; nothing
/// where it is no host.
pub(crate) fn rules(host: &str) -> Vec<EgressRule> {
    let port = if host.contains(':') { "" } else { ":443" };
    let rules = [host.to_owned(), format!("private:{host}{port}")];
    let read = rules.iter().flat_map(|rule| EgressRule::parse(rule));
    read.collect()
}

/// Returns the hosts of the addresses in a text.
fn hosts_in(text: &str) -> Vec<String> {
    let after_scheme = text.split("://").skip(1);
    let authorities = after_scheme.filter_map(|rest| {
        let ends = |c: char| c.is_whitespace() || "/,\"'?#|".contains(c);
        let authority = rest.split(ends).next()?;
        let host = authority.rsplit('@').next()?;
        (!host.is_empty()).then(|| host.to_owned())
    });
    authorities.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::{ecosystems, hosts, hosts_in, rules_of};

    #[test]
    fn hosts_are_read_from_what_a_client_says() {
        let text = "https://user:secret@npm.example.com:8080/path/\n\
                    {\"registry\":\"sparse+https://index.example.org/\"}\n\
                    https://a.example|https://b.example,direct\nnot a host\n";
        assert_eq!(
            hosts_in(text),
            [
                "npm.example.com:8080",
                "index.example.org",
                "a.example",
                "b.example"
            ]
        );
    }

    #[test]
    fn a_client_that_fails_names_nothing_and_the_next_is_asked() {
        let lines = [
            "echo https://a.example/; false",
            "no-such-client --registries",
            "echo 'sparse+https://b.example/'",
        ];
        let lines = lines.map(str::to_owned);
        let found = hosts(&lines, &kapi_sys::process::environment(), Path::new("/"));
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["b.example"]);
    }

    #[test]
    fn an_ecosystem_without_a_client_here_allows_nothing() {
        let names = ecosystems().unwrap();
        assert!(names.contains(&"node") && names.contains(&"python") && !names.contains(&"shell"));
        let env = BTreeMap::from([("PATH".into(), "/nowhere".into())]);
        let rules = rules_of("node", &env, Path::new("/")).unwrap();
        assert!(rules.is_empty(), "{rules:?}");
    }
}
