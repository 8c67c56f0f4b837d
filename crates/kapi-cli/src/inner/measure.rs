//! Parts of the product that no command does alone, for `cargo xtask bench` to measure.
//!
//! Makes the calls that a launch makes and prints how long they took in this very program; start
//! and end of the process are not counted. Compares nothing and judges nothing.

use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, io, thread};

use kapi_gateway::egress::Limits;
use kapi_gateway::egress::dial::system_resolve;
use kapi_gateway::egress::policy::{Mode, Policy};
use kapi_gateway::egress::proxy::{Config, Proxy};
use kapi_gateway::egress::rule::Rule;
use kapi_gateway::serve::Stop;
use kapi_git::candidate::{Author, CandidatePlan};
use kapi_git::command::Git;
use kapi_git::id::{CommitId, RefPart};
use kapi_git::layer::commit::{Dirtied, LayerPlan};
use kapi_git::layer::{Layer, Marks, walk};
use kapi_git::repository::Repository;
use kapi_git::workspace::{Workspace, WorkspacePlan};
use kapi_sys::cancel::Cancel;
use kapi_sys::clock::SystemClock;
use kapi_sys::process;

use crate::exit_code::Exit;

/// `kapi __measure create|commit PROJECT LAYER NAME`, `kapi __measure extract PROJECT LAYER`,
/// `kapi __measure proxy PORT`.
pub(super) const ARGUMENT: &str = "__measure";

/// Who uses a measured layer.
const OWNER: &str = "kapi __measure";
/// Walks of one process: all but the last bring the code and the directories into memory, as a
/// warm `git status` has them.
const N_WALKS: usize = 3;
const NAME: &str = "Kapi";
const EMAIL: &str = "kapi@localhost";
const AT_UNIX_SECONDS: i64 = 1_700_000_000;

type Measured<T> = Result<T, Box<dyn Error>>;

/// Measures one part and prints one line: nanoseconds, and what was found.
pub(super) fn enter(args: impl Iterator<Item = OsString>) -> i32 {
    let words: Vec<OsString> = args.collect();
    let words: Vec<&OsStr> = words.iter().map(OsString::as_os_str).collect();
    let measured = match words.as_slice() {
        [what, project, layer, name] if *what == "create" => {
            create(Path::new(project), Path::new(layer), name)
        }
        [what, project, layer, name] if *what == "commit" => {
            commit(Path::new(project), Path::new(layer), name)
        }
        [what, project, layer] if *what == "extract" => {
            extract(Path::new(project), Path::new(layer))
        }
        [what, port] if *what == "proxy" => serve_proxy(port),
        _ => return i32::from(Exit::Usage.code()),
    };
    let said = match measured {
        Ok(()) => return i32::from(Exit::Success.code()),
        Err(error) => writeln!(io::stderr(), "error: {error}"),
    };
    i32::from(said.map_or(Exit::Internal, |()| Exit::Failed).code())
}

/// Makes an instant branch: finds the repository, takes a layer, makes the branch.
fn create(project: &Path, layer: &Path, name: &OsStr) -> Measured<()> {
    let started = Instant::now();
    let repository = open(project)?;
    let layer = Layer::open(layer, Marks::User, OWNER)?;
    claim(&repository, &layer, name)?;
    let _work = layer.fresh_work()?;
    print(started.elapsed(), "created")
}

/// Commits what is in the layer of an instant branch, as after an agent's end.
fn commit(project: &Path, layer: &Path, name: &OsStr) -> Measured<()> {
    let started = Instant::now();
    let repository = open(project)?;
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
        lower: project,
        workspace: &workspace,
        masks: &[],
        already: None,
        candidate: &candidate,
        dirtied: Dirtied::Refuse,
    };
    let made = repository.commit_layer(&plan)?;
    let took = started.elapsed();
    print(
        took,
        format_args!("{} {}", made.candidate.commit, made.candidate.changed.len()),
    )
}

/// Lists what a layer changes.
fn extract(project: &Path, layer: &Path) -> Measured<()> {
    let layer = Layer::open(layer, Marks::User, OWNER)?;
    let mut last = (Duration::ZERO, 0);
    for _ in 0..N_WALKS {
        let started = Instant::now();
        let walk = walk::walk(&layer, project)?;
        last = (started.elapsed(), walk.changes.len());
    }
    print(last.0, last.1)
}

/// Serves a proxy on a free port until standard input ends; only one port of loopback is allowed.
fn serve_proxy(port: &OsStr) -> Measured<()> {
    let port: u16 = port.to_str().unwrap_or_default().parse()?;
    let rule = Rule::parse(&format!("private:127.0.0.1:{port}"))?;
    let config = Config {
        policy: Policy {
            mode: Mode::Filtered,
            rules: vec![rule],
        },
        resolve: system_resolve(),
        limits: Limits::usual(),
    };
    let proxy = Proxy::new(config, &SystemClock, &drop);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let stop = Stop::new()?;
    writeln!(io::stdout(), "{}", listener.local_addr()?.port())?;
    thread::scope(|scope| {
        let serving = scope.spawn(|| proxy.serve(&listener, &stop));
        let waited = io::stdin().lock().read_to_end(&mut Vec::new());
        stop.raise();
        let served = serving.join().map_err(|_panic| "serve the proxy")?;
        waited?;
        Ok(served?)
    })
}

fn open(project: &Path) -> Measured<Repository> {
    let path = env::var_os("PATH").unwrap_or_default();
    let binary = process::find_in_path(OsStr::new("git"), &path).ok_or("find git on PATH")?;
    let git = Git::open(&binary, &Cancel::new())?;
    Ok(Repository::discover(&git, project)?)
}

fn claim(repository: &Repository, layer: &Layer, name: &OsStr) -> Measured<Workspace> {
    let name = name.to_str().ok_or("read the branch's name")?;
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

fn print(took: Duration, found: impl Display) -> Measured<()> {
    Ok(writeln!(io::stdout(), "{} {found}", took.as_nanos())?)
}
