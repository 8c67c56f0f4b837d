//! A bare sandbox for measurements: no goal, no agent, only the walls around one program.
//!
//! Timed here, in a process that lives on, a sandbox costs what a harness pays for it; timed from outside,
//! the start of this program is added. Does not judge what it measures.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write as _;
use std::mem::forget;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

use kapi_sandbox::error::SandboxError;
use kapi_sandbox::launch::{self, Ears};
use kapi_sandbox::outcome::Ran;
use kapi_sandbox::spec::{Access, Layer, Level, Mount, Spec};
use kapi_sys::cancel::Cancel;
use kapi_sys::process::{self, End, Limits, Program};

use crate::exit_code::Exit;

/// Runs a program in a native sandbox whose home is the directory for temporary files.
///
/// `kapi __sandbox-run [OPTION]… [--] /bin/true`, with these options:
///
/// - `--overlay LOWER UPPER WORK` mounts a workspace; as in a launch, each run gets a work directory of
///   its own, made in `WORK`.
/// - `--repeat N` runs it N times and prints the microseconds of each on a line.
/// - `--peer PROGRAM ARGUMENT… --` runs this, too, after each, and prints its microseconds beside.
/// - `--at-once N` runs N of them together and prints the microseconds until the last has ended.
pub(super) const ARGUMENT: &str = "__sandbox-run";

/// The longest that one program may run.
const DEADLINE: Duration = Duration::from_secs(60);
/// Bytes of output that are kept.
const OUTPUT_BYTES_MAX: usize = 4096;
/// The most sandboxes at once; each has a thread.
const AT_ONCE_MAX: usize = 4096;

/// What was asked for.
#[derive(Debug, Default)]
struct Asked {
    /// Lower, upper and work directory of a workspace.
    overlay: Option<[PathBuf; 3]>,
    repeat: Option<usize>,
    at_once: Option<usize>,
    peer: Vec<OsString>,
    command: Vec<OsString>,
}

impl Asked {
    fn parse(args: Vec<OsString>) -> Option<Self> {
        let mut args = args.into_iter();
        let mut asked = Self::default();
        while let Some(word) = args.next() {
            match word.to_str() {
                Some("--overlay") => {
                    let mut path = || args.next().map(PathBuf::from);
                    asked.overlay = Some([path()?, path()?, path()?]);
                }
                Some("--repeat") => asked.repeat = Some(number(&mut args)?),
                Some("--at-once") => {
                    asked.at_once = Some(number(&mut args).filter(|count| *count <= AT_ONCE_MAX)?);
                }
                Some("--peer") => {
                    asked.peer = args.by_ref().take_while(|word| word != "--").collect();
                }
                Some("--") => break,
                Some(_) | None => {
                    asked.command.push(word);
                    break;
                }
            }
        }
        asked.command.extend(args);
        // Two sandboxes at once cannot share a layer.
        let is_possible = asked.at_once.is_none() || asked.overlay.is_none();
        (is_possible && !asked.command.is_empty()).then_some(asked)
    }

    /// Runs the program once.
    fn sandboxed(&self, name: &str) -> Result<Ran, SandboxError> {
        let self_exe = process::current_exe().map_err(SandboxError::Launch)?;
        let mut spec = Spec::new(Level::Native, name, env::temp_dir(), self_exe);
        if let Some([lower, upper, works]) = &self.overlay {
            let work = fresh_directory(works, name);
            spec.mounts.push(Mount {
                host: lower.clone(),
                inside: PathBuf::from("/workspace"),
                access: Access::CopyOnWrite(Layer {
                    upper: upper.clone(),
                    work,
                }),
            });
        }
        let ears = Ears {
            on_line: &mut |_| {},
            on_listeners: &mut drop,
        };
        launch::run(&spec, program(&self.command), &Cancel::new(), ears)
    }

    /// Runs it once and waits until nothing is left of it.
    fn sandboxed_whole(&self, name: &str) -> Result<End, SandboxError> {
        self.sandboxed(name).map(|ran| ran.finished.end)
    }

    fn run(&self) -> Result<i32, SandboxError> {
        // Unique among everything that runs now, whatever the pid namespace.
        let name = format!("bare-{}", std::process::id());
        match (self.repeat, self.at_once) {
            (None, None) => self.sandboxed(&name).map(|ran| {
                // This process ends now, so nobody needs its mounts gone.
                forget(ran.remains);
                code(ran.finished.end)
            }),
            (Some(rounds), _) => self.by_turns(rounds, &name),
            (None, Some(count)) => self.together(count, &name),
        }
    }

    /// Runs sandbox and peer by turns, each timed on its own. Ends at the first that does not succeed.
    fn by_turns(&self, rounds: usize, name: &str) -> Result<i32, SandboxError> {
        for round in 0..rounds {
            let started = Instant::now();
            let mut end = self.sandboxed_whole(&format!("{name}-{round}"))?;
            let mut times = vec![started.elapsed().as_micros().to_string()];
            if end != End::Exited(0) {
                return Ok(code(end));
            }
            let started = Instant::now();
            let has_peer = !self.peer.is_empty();
            let peer = has_peer.then(|| process::run_quiet(program(&self.peer)));
            if let Some(peer) = peer.transpose().map_err(SandboxError::Launch)? {
                times.push(started.elapsed().as_micros().to_string());
                end = peer.end;
            }
            if end != End::Exited(0) {
                return Ok(code(end));
            }
            if writeln!(io::stdout(), "{}", times.join(" ")).is_err() {
                return Ok(Exit::Failed.code().into());
            }
        }
        Ok(0)
    }

    fn together(&self, count: usize, name: &str) -> Result<i32, SandboxError> {
        let started = Instant::now();
        let ends: Vec<Result<End, SandboxError>> = thread::scope(|scope| {
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
        let ends = ends.into_iter().collect::<Result<Vec<End>, _>>()?;
        if ends.len() < count || writeln!(io::stdout(), "{elapsed}").is_err() {
            return Ok(Exit::Failed.code().into());
        }
        let unlike = ends.into_iter().find(|end| *end != End::Exited(0));
        Ok(unlike.map_or(0, code))
    }
}

/// Makes a directory that nobody has used. If it cannot be made, the sandbox says what is wrong with it.
fn fresh_directory(parent: &Path, name: &str) -> PathBuf {
    let path = parent.join(name);
    let made = fs::create_dir(&path);
    drop(made);
    path
}

fn number(args: &mut impl Iterator<Item = OsString>) -> Option<usize> {
    args.next()?.to_str()?.parse().ok()
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
        limits: Limits {
            deadline: DEADLINE,
            idle: None,
            tail_bytes_max: OUTPUT_BYTES_MAX,
            line_bytes_max: OUTPUT_BYTES_MAX,
        },
    }
}

fn code(end: End) -> i32 {
    match end {
        End::Exited(code) => code,
        End::Signaled(signal) => 128 + signal,
        End::DeadlinePassed | End::IdlePassed | End::Cancelled => Exit::Failed.code().into(),
    }
}

/// Does what the arguments ask for and returns the exit code.
pub(super) fn enter(args: Vec<OsString>) -> i32 {
    let Some(asked) = Asked::parse(args) else {
        return Exit::Usage.code().into();
    };
    asked.run().unwrap_or_else(|error| {
        let said = writeln!(io::stderr(), "error: {error}");
        said.map_or(Exit::Internal, |()| Exit::Failed).code().into()
    })
}
