//! A bare sandbox: no goal, no agent, only the walls around one program.
//!
//! Timed here, in a process that lives on, a sandbox costs what a harness pays for it; timed from outside,
//! the start of this program is added. Does not judge what it measures.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::mem::forget;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use anyhow::{Context as _, bail, ensure};
use kapi_sandbox::callbacks::RunCallbacks;
use kapi_sandbox::error::SandboxError;
use kapi_sandbox::launch;
use kapi_sandbox::outcome::SandboxRun;
use kapi_sandbox::spec::{IsolationLevel, Mount, MountAccess, OverlayLayer, SandboxSpec};
use kapi_sys::cancel::Cancel;
use kapi_sys::process::{self, ProcessEnd, ProcessLimits, Program};

use super::BenchDirectory;
use super::invocation::Invocation;
use crate::output::say;

/// The word with which this program is started to run a program in a native sandbox, whose home is the
/// directory for temporary files.
///
/// `KAPI [OPTION]… [--] /bin/true`, where the sandbox's inner end is `KAPI`, with these options:
///
/// - `--overlay LOWER UPPER WORK` mounts a workspace; as in a launch, each run gets a work directory of
///   its own, made in `WORK`.
/// - `--repeat N` runs it N times and prints the microseconds of each on a line.
/// - `--peer PROGRAM ARGUMENT… --` runs this, too, after each, and prints its microseconds beside.
/// - `--at-once N` runs N of them together and prints the microseconds until the last has ended.
pub(super) const WALLS: &str = "__walls";

/// The longest that one program may run.
const DEADLINE: Duration = Duration::from_secs(60);
/// Bytes of output that are kept.
const OUTPUT_BYTES_MAX: usize = 4096;
/// The most sandboxes at once; each has a thread.
const AT_ONCE_MAX: usize = 4096;

/// What was asked for.
#[derive(Debug, Default)]
struct WallRequest {
    /// The program that each sandbox enters.
    kapi: PathBuf,
    /// Lower, upper and work directory of a workspace.
    overlay: Option<[PathBuf; 3]>,
    repeat: Option<usize>,
    at_once: Option<usize>,
    peer: Vec<OsString>,
    command: Vec<OsString>,
}

impl WallRequest {
    fn parse(words: &[&str]) -> Option<Self> {
        let mut args = words.iter().copied();
        let mut asked = Self {
            kapi: args.next().map(PathBuf::from)?,
            ..Self::default()
        };
        while let Some(word) = args.next() {
            match word {
                "--overlay" => {
                    let mut path = || args.next().map(PathBuf::from);
                    asked.overlay = Some([path()?, path()?, path()?]);
                }
                "--repeat" => asked.repeat = Some(number(&mut args)?),
                "--at-once" => {
                    asked.at_once = Some(number(&mut args).filter(|count| *count <= AT_ONCE_MAX)?);
                }
                "--peer" => {
                    let peer = args.by_ref().take_while(|word| *word != "--");
                    asked.peer = peer.map(OsString::from).collect();
                }
                "--" => break,
                word => {
                    asked.command.push(word.into());
                    break;
                }
            }
        }
        asked.command.extend(args.map(OsString::from));
        // Two sandboxes at once cannot share a layer.
        let is_possible = asked.at_once.is_none() || asked.overlay.is_none();
        (is_possible && !asked.command.is_empty()).then_some(asked)
    }

    /// Runs the program once.
    fn sandboxed(&self, name: &str) -> Result<SandboxRun, SandboxError> {
        let kapi = self.kapi.clone();
        let mut spec = SandboxSpec::new(IsolationLevel::Native, name, env::temp_dir(), kapi);
        if let Some([lower, upper, works]) = &self.overlay {
            let work = fresh_directory(works, name);
            spec.mounts.push(Mount {
                host: lower.clone(),
                inside: PathBuf::from("/workspace"),
                access: MountAccess::CopyOnWrite(OverlayLayer {
                    upper: upper.clone(),
                    work,
                    beneath: Vec::new(),
                }),
            });
        }
        let callbacks = RunCallbacks {
            on_line: &mut |_| {},
            on_listeners: &mut drop,
        };
        launch::run(&spec, program(&self.command), &Cancel::new(), callbacks)
    }

    /// Runs it once and waits until nothing is left of it.
    fn sandboxed_whole(&self, name: &str) -> Result<ProcessEnd, SandboxError> {
        self.sandboxed(name).map(|ran| ran.finished.end)
    }

    fn run(&self) -> anyhow::Result<()> {
        // Unique among everything that runs now, whatever the pid namespace.
        let name = format!("bare-{}", std::process::id());
        match (self.repeat, self.at_once) {
            (None, None) => {
                let ran = self.sandboxed(&name)?;
                // This process ends now, so nobody needs its mounts gone.
                forget(ran.remains);
                succeed(ran.finished.end)
            }
            (Some(rounds), _) => self.by_turns(rounds, &name),
            (None, Some(count)) => self.together(count, &name),
        }
    }

    /// Runs sandbox and peer by turns, each timed on its own. Ends at the first that does not succeed.
    fn by_turns(&self, rounds: usize, name: &str) -> anyhow::Result<()> {
        for round in 0..rounds {
            let started = Instant::now();
            let end = self.sandboxed_whole(&format!("{name}-{round}"))?;
            let mut times = vec![started.elapsed().as_micros().to_string()];
            succeed(end)?;
            if !self.peer.is_empty() {
                let started = Instant::now();
                let peer = process::run_quiet(program(&self.peer))?;
                times.push(started.elapsed().as_micros().to_string());
                succeed(peer.end)?;
            }
            say(&times.join(" "));
        }
        Ok(())
    }

    fn together(&self, count: usize, name: &str) -> anyhow::Result<()> {
        let started = Instant::now();
        let ends: Vec<Result<ProcessEnd, SandboxError>> = thread::scope(|scope| {
            let running: Vec<_> = (0..count)
                .map(|index| {
                    let name = format!("{name}-{index}");
                    scope.spawn(move || self.sandboxed_whole(&name))
                })
                .collect();
            let ended = running.into_iter().filter_map(|one| one.join().ok());
            ended.collect()
        });
        let elapsed = started.elapsed().as_micros();
        ensure!(ends.len() == count, "run {count} sandboxes: one panicked");
        for end in ends {
            succeed(end?)?;
        }
        say(&elapsed.to_string());
        Ok(())
    }
}

/// Names this program as one that runs another in a sandbox.
pub(super) fn invocation(shown: &str, location: &BenchDirectory, words: &[&str]) -> Invocation {
    let kapi = location.kapi.to_string_lossy();
    let args = [&["bench", WALLS, &*kapi], words].concat();
    Invocation::new(
        shown,
        &location.scratch,
        &location.program.to_string_lossy(),
        &args,
    )
}

/// Does what the words ask for.
pub(super) fn run(words: &[&str]) -> anyhow::Result<()> {
    let asked = WallRequest::parse(words);
    asked.with_context(|| format!("read {words:?}"))?.run()
}

/// Makes a directory that nobody has used. If it cannot be made, the sandbox says what is wrong with it.
fn fresh_directory(parent: &Path, name: &str) -> PathBuf {
    let path = parent.join(name);
    let made = fs::create_dir(&path);
    drop(made);
    path
}

fn number<'a>(args: &mut impl Iterator<Item = &'a str>) -> Option<usize> {
    args.next()?.parse().ok()
}

fn program(command: &[OsString]) -> Program {
    let (path, args) = command.split_first().unzip();
    Program {
        path: path.map(PathBuf::from).unwrap_or_default(),
        args: args.unwrap_or_default().to_vec(),
        env: BTreeMap::new(),
        cwd: PathBuf::from("/"),
        stdin: Vec::new(),
        pass_fds: Vec::new(),
        limits: ProcessLimits {
            deadline: DEADLINE,
            idle: None,
            tail_bytes_max: OUTPUT_BYTES_MAX,
            line_bytes_max: OUTPUT_BYTES_MAX,
        },
    }
}

fn succeed(end: ProcessEnd) -> anyhow::Result<()> {
    match end {
        ProcessEnd::Exited(0) => Ok(()),
        end => bail!("run the program: {end:?}"),
    }
}
