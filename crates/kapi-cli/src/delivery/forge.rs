//! Who opens a pull request: `gh`, `glab`, or the person at the address where the forge compares.
//!
//! The programs are the person's own, run on the host with their login. Nothing is stored.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kapi_core::failure::chain;
use kapi_core::quote::visible_line;
use kapi_sys::process::{self, FinishedProcess, ProcessEnd, ProcessLimits, Program};

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// The longest one call of a forge's program may take.
const DEADLINE: Duration = Duration::from_secs(120);
/// Bytes kept of what it says.
const OUTPUT_BYTES_MAX: usize = 64 << 10;
/// The longest body that fits into an argument.
const ARGUMENT_BYTES_MAX: usize = 100 << 10;

/// A pull request to open.
#[derive(Debug, Clone)]
pub(crate) struct PullRequest {
    pub(crate) branch: String,
    /// The branch it is for; the forge's default where it is not said.
    pub(crate) target: Option<String>,
    pub(crate) title: String,
    pub(crate) body: String,
}

/// A pull request, or where a person opens it.
#[derive(Debug)]
pub(crate) struct OpenedRequest {
    pub(crate) address: String,
    pub(crate) is_open: bool,
}

/// Who opens pull requests.
#[derive(Debug)]
pub(crate) enum Forge {
    /// GitHub's program.
    Gh(PathBuf),
    /// GitLab's program.
    Glab(PathBuf),
    /// The person, at the forge's page for it.
    Page(WebAddress),
}

/// Where a repository is on the web.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WebAddress {
    host: String,
    path: String,
}

impl Forge {
    /// Finds who opens pull requests at a remote.
    ///
    /// # Errors
    /// When nobody could, so that nothing is begun for one.
    pub(crate) fn find(context: &Context, root: &Path, remote: &str) -> Result<Self, Error> {
        let web = WebAddress::of(remote);
        let is_gitlab = web.as_ref().is_some_and(|web| web.host.contains("gitlab"));
        let programs: &[&str] = if is_gitlab {
            &["glab"]
        } else {
            &["gh", "glab"]
        };
        // Logged in at that host: a login elsewhere opens nothing there.
        let host = web.as_ref().map(|web| web.host.as_str());
        let status = [
            &["auth", "status"][..],
            host.map_or(&[], |_| &["--hostname"][..]),
            host.as_slice(),
        ]
        .concat();
        let mut refused = Vec::new();
        for name in programs {
            let path = context.env.get(OsStr::new("PATH"));
            let Some(program) = path.and_then(|path| process::find_in_path(OsStr::new(name), path))
            else {
                continue;
            };
            match call(context, root, &program, &status, Vec::new()) {
                Ok(_) if *name == "gh" => return Ok(Self::Gh(program)),
                Ok(_) => return Ok(Self::Glab(program)),
                Err(error) => refused.push(error.message),
            }
        }
        if let Some(web) = web.filter(|web| web.compare("x", None).is_some()) {
            return Ok(Self::Page(web));
        }
        let why = if refused.is_empty() {
            "neither gh nor glab is installed".to_owned()
        } else {
            refused.join("; ")
        };
        Err(Error::new(
            Exit::Failed,
            format!(
                "no pull request could be opened at {}: {why}",
                visible_line(remote)
            ),
        )
        .with_hint("install and log in to `gh` or `glab`, or use `--push` alone."))
    }

    /// Returns what a person should know before the work.
    pub(crate) fn note(&self) -> Option<String> {
        match self {
            Self::Gh(_) | Self::Glab(_) => None,
            Self::Page(web) => Some(format!(
                "Neither gh nor glab is ready, so Kapi pushes and prints the address at {} where \
                 you open the pull request.",
                web.host
            )),
        }
    }

    /// Opens a pull request, or finds the one that is open already.
    pub(crate) fn open(
        &self,
        context: &Context,
        root: &Path,
        request: &PullRequest,
    ) -> Result<OpenedRequest, Error> {
        let open = |address| OpenedRequest {
            address,
            is_open: true,
        };
        let PullRequest {
            branch,
            target,
            title,
            body,
        } = request;
        match self {
            Self::Gh(program) => {
                let view = ["pr", "view", branch, "--json", "url", "--jq", ".url"];
                if let Ok(said) = call(context, root, program, &view, Vec::new())
                    && let Some(address) = address_in(&said)
                {
                    return Ok(open(address));
                }
                let mut args = vec!["pr", "create", "--head", branch, "--title", title];
                args.extend(["--body-file", "-"]);
                if let Some(target) = target {
                    args.extend(["--base", target]);
                }
                let said = call(context, root, program, &args, body.clone().into_bytes())?;
                found(&said).map(open)
            }
            Self::Glab(program) => {
                let view = ["mr", "view", branch, "--output", "json"];
                if let Ok(said) = call(context, root, program, &view, Vec::new())
                    && let Some(address) = web_url(&said)
                {
                    return Ok(open(address));
                }
                let end = body.floor_char_boundary(ARGUMENT_BYTES_MAX);
                let body = body.get(..end).unwrap_or_default();
                let mut args = vec!["mr", "create", "--source-branch", branch, "--title", title];
                args.extend(["--description", body, "--yes"]);
                if let Some(target) = target {
                    args.extend(["--target-branch", target]);
                }
                let said = call(context, root, program, &args, Vec::new())?;
                found(&said).map(open)
            }
            Self::Page(web) => {
                let address = web.compare(branch, target.as_deref());
                let address = address.ok_or_else(|| Error::usage("there is no page for it"))?;
                Ok(OpenedRequest {
                    address,
                    is_open: false,
                })
            }
        }
    }
}

impl WebAddress {
    /// Reads a remote's address; `None` of one that is no host's.
    fn of(remote: &str) -> Option<Self> {
        let (host, path) = if let Some((_, rest)) = remote.split_once("://") {
            if remote.starts_with("file:") {
                return None;
            }
            rest.split_once('/')?
        } else {
            let (host, path) = remote.split_once(':')?;
            if host.contains('/') {
                return None;
            }
            (host, path)
        };
        let host = host.rsplit('@').next()?.split(':').next()?;
        let path = path.trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        let is_plain = |text: &str, more: &str| {
            !text.is_empty()
                && text
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || more.contains(c))
        };
        (is_plain(host, ".-") && is_plain(path, "._-/~")).then(|| Self {
            host: host.to_owned(),
            path: path.to_owned(),
        })
    }

    /// Returns the page on which a person opens a pull request; `None` at an unknown forge.
    fn compare(&self, branch: &str, target: Option<&str>) -> Option<String> {
        let Self { host, path } = self;
        let branch = encoded(branch);
        let range = target.map_or_else(
            || branch.clone(),
            |target| format!("{}...{branch}", encoded(target)),
        );
        Some(if host.contains("github") {
            format!("https://{host}/{path}/compare/{range}?expand=1")
        } else if host.contains("gitlab") {
            let from = "merge_request%5Bsource_branch%5D";
            format!("https://{host}/{path}/-/merge_requests/new?{from}={branch}")
        } else if host.contains("bitbucket") {
            format!("https://{host}/{path}/pull-requests/new?source={branch}")
        } else if host.contains("codeberg") || host.contains("gitea") || host.contains("forgejo") {
            format!("https://{host}/{path}/compare/{range}")
        } else {
            return None;
        })
    }
}

/// Returns a branch's name as it stands in an address.
fn encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let parts = text.bytes().map(|byte| {
        if is_plain(byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    });
    parts.collect()
}

/// Calls a forge's program with arguments and standard input, and returns what it prints.
fn call(
    context: &Context,
    root: &Path,
    program: &Path,
    args: &[&str],
    stdin: Vec<u8>,
) -> Result<String, Error> {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let what = args.iter().take(2).copied().collect::<Vec<_>>().join(" ");
    let mut env = context.env.clone();
    env.insert("GH_PROMPT_DISABLED".into(), "1".into());
    env.insert("NO_PROMPT".into(), "1".into());
    let finished = process::run_quiet(Program {
        path: program.to_path_buf(),
        args: args.iter().map(OsString::from).collect(),
        env,
        cwd: root.to_path_buf(),
        stdin,
        pass_fds: Vec::new(),
        limits: ProcessLimits {
            deadline: DEADLINE,
            idle: None,
            tail_bytes_max: OUTPUT_BYTES_MAX,
            line_bytes_max: OUTPUT_BYTES_MAX,
        },
    });
    let finished = finished.map_err(|error| {
        Error::new(
            Exit::Failed,
            format!("failed to run {name} {what}: {}", chain(&error)),
        )
    })?;
    match finished.end {
        ProcessEnd::Exited(0) => Ok(format!(
            "{}\n{}",
            finished.stdout.text(),
            finished.stderr.text()
        )),
        end => Err(Error::new(
            Exit::Failed,
            format!("{name} {what} failed: {}", ended(end, &finished)),
        )),
    }
}

fn ended(end: ProcessEnd, finished: &FinishedProcess) -> String {
    let said = finished.stderr.text();
    let first = said.lines().find(|line| !line.trim().is_empty());
    match (end, first) {
        (_, Some(line)) => visible_line(line.trim()),
        (ProcessEnd::Exited(code), None) => format!("exit code {code}"),
        (ProcessEnd::DeadlinePassed, None) => format!("no end after {} s", DEADLINE.as_secs()),
        (ProcessEnd::Signaled(_) | ProcessEnd::IdlePassed | ProcessEnd::Cancelled, None) => {
            "it was ended".to_owned()
        }
    }
}

fn found(said: &str) -> Result<String, Error> {
    address_in(said).ok_or_else(|| {
        Error::new(
            Exit::Failed,
            "the forge's program ended well and named no pull request",
        )
    })
}

/// Returns the last web address in what a program says.
fn address_in(said: &str) -> Option<String> {
    let words = said.split_whitespace();
    let mut addresses = words.filter(|word| {
        let is_web = word.starts_with("https://") || word.starts_with("http://");
        is_web && word.chars().all(|c| c.is_ascii_graphic())
    });
    addresses.next_back().map(str::to_owned)
}

fn web_url(json: &str) -> Option<String> {
    let line = json
        .lines()
        .find(|line| line.trim_start().starts_with('{'))?;
    let view: serde_json::Value = serde_json::from_str(line).ok()?;
    view["web_url"].as_str().and_then(address_in)
}

#[cfg(test)]
mod tests {
    use super::{WebAddress, address_in};

    #[test]
    fn a_remote_s_page_for_a_pull_request_is_known() {
        let page = |remote: &str, target| {
            let web = WebAddress::of(remote)?;
            web.compare("feat/a b", target)
        };
        for (remote, target, expected) in [
            (
                "https://github.com/o/r.git",
                None,
                "https://github.com/o/r/compare/feat/a%20b?expand=1",
            ),
            (
                "git@github.com:o/r.git",
                Some("main"),
                "https://github.com/o/r/compare/main...feat/a%20b?expand=1",
            ),
            (
                "ssh://git@gitlab.example:2222/g/s/r",
                None,
                "https://gitlab.example/g/s/r/-/merge_requests/new?merge_request%5Bsource_branch%5D=feat/a%20b",
            ),
            (
                "https://u:token@codeberg.org/o/r",
                Some("dev"),
                "https://codeberg.org/o/r/compare/dev...feat/a%20b",
            ),
        ] {
            assert_eq!(page(remote, target).as_deref(), Some(expected), "{remote}");
        }
        for none in [
            "/srv/r.git",
            "../r.git",
            "file:///srv/r.git",
            "https://git.example/r",
        ] {
            assert_eq!(page(none, None), None, "{none}");
        }
    }

    #[test]
    fn the_last_address_counts() {
        let said = "Creating pull request\nWarning: see http://x\nhttps://github.com/o/r/pull/7\n";
        let expected = Some("https://github.com/o/r/pull/7".to_owned());
        assert_eq!(address_in(said), expected);
        assert_eq!(address_in("nothing"), None);
    }
}
