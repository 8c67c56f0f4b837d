//! Parts of the product that no command does alone, measured in a process of their own.
//!
//! Makes the calls that a launch makes and prints how long they took; start and end of the
//! process are not counted. Compares nothing and judges nothing.

use std::ffi::OsStr;
use std::fmt::Display;
use std::io::Read as _;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, io, thread};

use anyhow::{Context as _, bail, ensure};
use kapi_gateway::egress::EgressLimits;
use kapi_gateway::egress::dial::system_resolve;
use kapi_gateway::egress::policy::{EgressMode, EgressPolicy};
use kapi_gateway::egress::proxy::{Proxy, ProxyConfig};
use kapi_gateway::egress::rule::EgressRule;
use kapi_gateway::serve::StopSignal;
use kapi_git::author::Author;
use kapi_git::candidate::CandidatePlan;
use kapi_git::command::Git;
use kapi_git::id::{CommitId, RefPart};
use kapi_git::layer::commit::LayerPlan;
use kapi_git::layer::lower::LowerStack;
use kapi_git::layer::{Layer, Marks, walk};
use kapi_git::reachable::frozen::{FrozenBase, FrozenPlan};
use kapi_git::repository::Repository;
use kapi_git::workspace::{GitWorkspace, WorkspacePlan};
use kapi_sys::cancel::Cancel;
use kapi_sys::clock::SystemClock;
use kapi_sys::process;

use super::BenchDirectory;
use super::invocation::Invocation;
use crate::output::say;

/// The word with which this program is started to measure a part: `create|commit|freeze PROJECT LAYER NAME`,
/// `extract PROJECT LAYER` or `proxy PORT`.
pub(super) const PART: &str = "__part";

/// Who uses a measured layer.
const OWNER: &str = "cargo xtask bench";
/// Walks of one process: all but the last bring the code and the directories into memory, as a
/// warm `git status` has them.
const N_WALKS: usize = 3;
const NAME: &str = "Kapi";
const EMAIL: &str = "kapi@localhost";
const AT_UNIX_SECONDS: i64 = 1_700_000_000;

/// Names this program as one that measures a part.
pub(super) fn invocation(
    location: &BenchDirectory,
    directory: &Path,
    words: &[&str],
) -> Invocation {
    let shown = words.first().copied().unwrap_or(PART);
    let args = [&["bench", PART], words].concat();
    Invocation::new(shown, directory, &location.program.to_string_lossy(), &args)
}

/// Measures one part and prints one line: nanoseconds, and what was found.
pub(super) fn run(words: &[&str]) -> anyhow::Result<()> {
    match words {
        ["create", project, layer, name] => create(Path::new(project), Path::new(layer), name),
        ["commit", project, layer, name] => commit(Path::new(project), Path::new(layer), name),
        ["freeze", project, layer, name] => freeze(Path::new(project), Path::new(layer), name),
        ["extract", project, layer] => extract(Path::new(project), Path::new(layer)),
        ["proxy", port] => serve_proxy(port),
        _ => bail!("read the part {words:?}"),
    }
}

/// Makes an instant branch: finds the repository and its frozen base, takes a layer, makes the
/// branch.
fn create(project: &Path, layer: &Path, name: &str) -> anyhow::Result<()> {
    let started = Instant::now();
    let repository = open(project)?;
    let head = repository.resolve_commit("HEAD")?;
    let _base = base(&repository, layer, &head)?;
    let layer = Layer::open(layer, Marks::User, OWNER)?;
    claim(&repository, &layer, name)?;
    let _work = layer.fresh_work()?;
    print(started.elapsed(), "created");
    Ok(())
}

/// Commits what is in the layer of an instant branch, as after an agent's end.
fn commit(project: &Path, layer: &Path, name: &str) -> anyhow::Result<()> {
    let started = Instant::now();
    let repository = open(project)?;
    let head = repository.resolve_commit("HEAD")?;
    let base = base(&repository, layer, &head)?;
    let layer = Layer::open(layer, Marks::User, OWNER)?;
    let workspace = claim(&repository, &layer, name)?;
    let candidate = CandidatePlan {
        name: RefPart::parse("turn-1")?,
        message: "measured\n".to_owned(),
        author: Author {
            name: NAME.to_owned(),
            email: EMAIL.to_owned(),
        },
        at_unix_seconds: AT_UNIX_SECONDS,
    };
    let plan = LayerPlan {
        layer: &layer,
        lower: &base.lower,
        workspace: &workspace,
        candidate: &candidate,
        own: &[],
    };
    let made = repository.commit_layer(&plan)?;
    let took = started.elapsed();
    print(
        took,
        format_args!("{} {}", made.candidate.commit, made.candidate.changed.len()),
    );
    Ok(())
}

/// Makes the frozen base of what was committed from a layer, and removes it again.
fn freeze(project: &Path, layer: &Path, name: &str) -> anyhow::Result<()> {
    let repository = open(project)?;
    let commit = repository.resolve_commit(&format!("refs/kapi/{name}/turn-1"))?;
    let started = Instant::now();
    let made = base(&repository, layer, &commit)?;
    let took = started.elapsed();
    ensure!(made.is_new, "make a base that is not there");
    print(took, made.depth());
    let dir = made.dir.clone();
    drop(made);
    std::fs::remove_dir_all(&dir).with_context(|| format!("remove {}", dir.display()))
}

fn base(repository: &Repository, layer: &Path, commit: &CommitId) -> anyhow::Result<FrozenBase> {
    let stores = layer.with_file_name("stores");
    let plan = FrozenPlan {
        stores: &stores,
        commit,
        wait_ms: 0,
    };
    Ok(repository.frozen_base(&plan)?)
}

/// Lists what a layer changes.
fn extract(project: &Path, layer: &Path) -> anyhow::Result<()> {
    let layer = Layer::open(layer, Marks::User, OWNER)?;
    let mut last = (Duration::ZERO, 0);
    for _ in 0..N_WALKS {
        let started = Instant::now();
        let walk = walk::walk(&layer, &LowerStack::project(project))?;
        last = (started.elapsed(), walk.changes.len());
    }
    print(last.0, last.1);
    Ok(())
}

/// Serves a proxy on a free port until standard input ends; only one port of loopback is allowed.
fn serve_proxy(port: &str) -> anyhow::Result<()> {
    let port: u16 = port.parse().context("read the port")?;
    let rule = EgressRule::parse(&format!("private:127.0.0.1:{port}"))?;
    let config = ProxyConfig {
        policy: EgressPolicy {
            mode: EgressMode::Filtered,
            rules: vec![rule],
        },
        resolve: system_resolve(),
        limits: EgressLimits::usual(),
    };
    let proxy = Proxy::new(config, &SystemClock, &drop);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let stop = StopSignal::new()?;
    say(&listener.local_addr()?.port().to_string());
    thread::scope(|scope| {
        let serving = scope.spawn(|| proxy.serve(&listener, &stop));
        let waited = io::stdin().lock().read_to_end(&mut Vec::new());
        stop.raise();
        let served = serving.join();
        waited?;
        match served {
            Ok(served) => Ok(served?),
            Err(_panic) => bail!("serve the proxy: it panicked"),
        }
    })
}

fn open(project: &Path) -> anyhow::Result<Repository> {
    let path = env::var_os("PATH").unwrap_or_default();
    let binary = process::find_in_path(OsStr::new("git"), &path).context("find git on PATH")?;
    let git = Git::open(&binary, &Cancel::new())?;
    Ok(Repository::discover(&git, project)?)
}

fn claim(repository: &Repository, layer: &Layer, name: &str) -> anyhow::Result<GitWorkspace> {
    let base: CommitId = repository.resolve_commit("HEAD")?;
    let plan = WorkspacePlan {
        goal: RefPart::parse(name)?,
        branch: format!("bench/{name}"),
        base: base.clone(),
        content: base,
        path: PathBuf::from("/nonexistent"),
    };
    Ok(repository.claim_layer(layer, &plan)?)
}

fn print(took: Duration, found: impl Display) {
    say(&format!("{} {found}", took.as_nanos()));
}
