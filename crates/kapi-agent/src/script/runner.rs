//! Plays one turn of a script in the workspace: writes the files, runs the commands, says the
//! words.
//!
//! Runs as `kapi __script-agent` inside the sandbox, like any other agent. Knows nothing of the
//! goal; the turn's steps come on standard input and events go to standard output.

use std::ffi::OsString;
use std::io;
use std::io::{Read, Write};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use kapi_core::agent_end::Claim;
use kapi_sys::cancel::Cancel;
use kapi_sys::disk::{Disk as _, DiskError, replace_derived};
use kapi_sys::process::{
    CapturedOutput, ProcessEnd, ProcessError, ProcessLimits, Program, environment, run,
};
use kapi_sys::real_disk::RealDisk;
use serde_json::{Value, json};

use super::event::ScriptEvent;
use super::{ClaimStep, ScriptStep, TurnInput};
use crate::stream::usd_micros;
use crate::text::without_controls;

/// The largest turn in bytes.
const INPUT_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// The longest a command may run; the turn's own deadline is the harness's business.
const COMMAND_DEADLINE: Duration = Duration::from_secs(60 * 60);
/// What a command exits with that was not run.
const DENIED: i32 = 2;
/// Bytes kept of each output of a command.
const OUTPUT_BYTES_MAX: usize = 8 * 1024;

/// Why a turn could not be played to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunnerError {
    #[error("read the turn")]
    Input(#[source] io::Error),
    #[error("understand the turn")]
    Form(#[source] serde_json::Error),
    #[error("print an event")]
    Output(#[source] io::Error),
    #[error("encode an event")]
    Encode(#[source] serde_json::Error),
    #[error("write {path}: it is outside the workspace")]
    OutsideWorkspace { path: String },
    #[error("find the real place of {}", path.display())]
    RealPlace { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error(transparent)]
    Process(#[from] ProcessError),
}

/// Plays the turn that stands on `stdin` in the directory `cwd` and returns the exit code.
///
/// A step that cannot be done ends the turn with code 1 and a `say` that tells why; a command
/// that fails is only an output, as with any agent.
pub fn script_main(stdin: &mut dyn Read, stdout: &mut dyn Write, cwd: &Path) -> i32 {
    let mut player = TurnPlayer {
        stdout,
        cwd,
        gate: Vec::new(),
    };
    match player.play(stdin) {
        Ok(()) => 0,
        Err(error) => {
            let mut text = format!("script: failed to {error}");
            let mut source = std::error::Error::source(&error);
            while let Some(cause) = source {
                text = format!("{text}: {cause}");
                source = cause.source();
            }
            // Nobody is left to tell when even this cannot be printed; the code tells.
            drop(player.print(&ScriptEvent::Say { text }));
            1
        }
    }
}

struct TurnPlayer<'a> {
    stdout: &'a mut dyn Write,
    cwd: &'a Path,
    /// The words that ask before a command is run.
    gate: Vec<String>,
}

impl TurnPlayer<'_> {
    fn play(&mut self, stdin: &mut dyn Read) -> Result<(), RunnerError> {
        let mut input = Vec::new();
        stdin
            .take(INPUT_BYTES_MAX)
            .read_to_end(&mut input)
            .map_err(RunnerError::Input)?;
        let input: TurnInput = serde_json::from_slice(&input).map_err(RunnerError::Form)?;
        self.gate = input.gate.unwrap_or_default();
        match input.steps {
            Some(steps) => {
                for step in steps {
                    self.step(step)?;
                }
            }
            None => {
                let text = format!("The script has no turn {}.", input.turn);
                self.print(&ScriptEvent::Say { text })?;
            }
        }
        self.print(&ScriptEvent::End)
    }

    fn step(&mut self, step: ScriptStep) -> Result<(), RunnerError> {
        match step {
            ScriptStep::Write { path, content } => {
                self.print(&ScriptEvent::Tool {
                    name: "write".to_owned(),
                    detail: path.clone(),
                })?;
                write(self.cwd, &path, content.as_bytes())
            }
            ScriptStep::Bash(command) => {
                self.print(&ScriptEvent::Tool {
                    name: "bash".to_owned(),
                    detail: command.clone(),
                })?;
                let output = match refusal(self.cwd, &self.gate, &command)? {
                    Some(refusal) => refusal,
                    None => bash(self.cwd, &command)?,
                };
                self.print(&output)
            }
            ScriptStep::Say(text) => self.print(&ScriptEvent::Say { text }),
            ScriptStep::Answer(value) => {
                let answer = serde_json::to_string_pretty(&value).map_err(RunnerError::Encode)?;
                let text = format!("```json\n{answer}\n```");
                self.print(&ScriptEvent::Say { text })
            }
            ScriptStep::Claim(claim) => {
                let claim = match claim {
                    ClaimStep::Done => Claim::Done,
                    ClaimStep::Blocked(reason) => Claim::Blocked { reason },
                };
                self.print(&ScriptEvent::Claim { claim })
            }
            ScriptStep::Usage {
                input_tokens,
                output_tokens,
                usd,
            } => {
                let usd_micros = usd.and_then(|usd| usd_micros(&usd.into()));
                self.print(&ScriptEvent::Used {
                    input_tokens,
                    output_tokens,
                    usd_micros,
                })
            }
        }
    }

    /// Prints one event and hands it on at once, so that progress is live.
    fn print(&mut self, event: &ScriptEvent) -> Result<(), RunnerError> {
        let mut line = serde_json::to_vec(event).map_err(RunnerError::Encode)?;
        line.push(b'\n');
        self.stdout.write_all(&line).map_err(RunnerError::Output)?;
        self.stdout.flush().map_err(RunnerError::Output)
    }
}

/// Writes a file in the workspace, in place, so that an existing file keeps its mode.
fn write(workspace: &Path, path: &str, content: &[u8]) -> Result<(), RunnerError> {
    let outside = || RunnerError::OutsideWorkspace {
        path: path.to_owned(),
    };
    let relative = Path::new(path);
    let is_inside = relative
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    let Some(name) = relative.file_name().filter(|_| is_inside) else {
        return Err(outside());
    };
    let workspace = real_location(workspace)?;
    let directory = relative.parent().unwrap_or(Path::new(""));
    // A symbolic link on the way must not lead out, not even while directories are being made.
    let mut location = workspace.clone();
    for part in directory.components() {
        let next = location.join(part);
        if next.symlink_metadata().is_err() {
            RealDisk.create_dir(&next)?;
        }
        location = real_location(&next)?;
        if !location.starts_with(&workspace) {
            return Err(outside());
        }
    }
    let target = location.join(name);
    if target.symlink_metadata().is_ok_and(|found| found.is_file()) {
        RealDisk.write(&target, content)?;
    } else {
        // A link is replaced, not followed.
        replace_derived(&RealDisk, &target, content)?;
    }
    Ok(())
}

fn real_location(path: &Path) -> Result<PathBuf, RunnerError> {
    let location = path.canonicalize();
    location.map_err(|source| RunnerError::RealPlace {
        path: path.to_path_buf(),
        source,
    })
}

/// What the gate of a run says.
pub(crate) enum GateAnswer {
    /// The tool may run.
    Allowed,
    /// It may not.
    Denied {
        /// Why.
        reason: String,
    },
}

/// Asks at the gate, by the words that do, whether a tool may run.
pub(crate) fn ask_gate(
    cwd: &Path,
    gate: &[String],
    question: &Value,
) -> Result<GateAnswer, RunnerError> {
    let Some((program, words)) = gate.split_first() else {
        return Ok(GateAnswer::Allowed);
    };
    let args = words.iter().map(OsString::from).collect();
    let asked = run_program(cwd, program, args, question.to_string().into_bytes())?;
    Ok(match asked {
        ScriptEvent::Output {
            exit_code: Some(0), ..
        } => GateAnswer::Allowed,
        ScriptEvent::Output { text, .. } => GateAnswer::Denied { reason: text },
        _ => GateAnswer::Denied {
            reason: String::new(),
        },
    })
}

/// Asks whether a command may be run and returns what is printed if not.
fn refusal(cwd: &Path, gate: &[String], command: &str) -> Result<Option<ScriptEvent>, RunnerError> {
    let question = json!({"tool_name": "bash", "tool_input": {"command": command}});
    Ok(match ask_gate(cwd, gate, &question)? {
        GateAnswer::Allowed => None,
        GateAnswer::Denied { reason } => Some(ScriptEvent::Output {
            text: reason,
            exit_code: Some(DENIED),
        }),
    })
}

/// Runs a shell command to its end and returns what it printed.
fn bash(cwd: &Path, command: &str) -> Result<ScriptEvent, RunnerError> {
    let args = vec!["-c".into(), command.into()];
    run_program(cwd, "/bin/sh", args, Vec::new())
}

/// Runs a program to its end and returns what it printed.
fn run_program(
    cwd: &Path,
    program: &str,
    args: Vec<OsString>,
    stdin: Vec<u8>,
) -> Result<ScriptEvent, RunnerError> {
    let program = Program {
        path: PathBuf::from(program),
        args,
        env: environment(),
        cwd: cwd.to_path_buf(),
        stdin,
        pass_fds: Vec::new(),
        limits: ProcessLimits {
            deadline: COMMAND_DEADLINE,
            idle: None,
            tail_bytes_max: OUTPUT_BYTES_MAX,
            line_bytes_max: OUTPUT_BYTES_MAX,
        },
    };
    let finished = run(program, &Cancel::new(), &mut |_| {})?;
    let exit_code = match finished.end {
        ProcessEnd::Exited(code) => Some(code),
        ProcessEnd::Signaled(signal) => Some(128_i32.saturating_add(signal)),
        ProcessEnd::DeadlinePassed | ProcessEnd::IdlePassed | ProcessEnd::Cancelled => None,
    };
    let text = format!(
        "{}{}",
        CapturedOutput::text(&finished.stdout),
        CapturedOutput::text(&finished.stderr)
    );
    Ok(ScriptEvent::Output {
        text: without_controls(&text),
        exit_code,
    })
}
