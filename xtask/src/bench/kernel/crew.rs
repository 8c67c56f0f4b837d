//! Further processes of a measurement, and what is said between them and this one.
//!
//! A process that is dropped is ended by force.

use std::env;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::member::READY;
use crate::bench::invocation::{Invocation, RunningProgram};

/// The word with which a member of this program is started.
pub(in crate::bench) const MEMBER: &str = "__member";

/// One process.
#[derive(Debug)]
pub(super) struct Member {
    shown: String,
    started: RunningProgram,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Member {
    /// Starts a program that speaks like a member.
    pub(super) fn start(invocation: &Invocation) -> anyhow::Result<Self> {
        let (started, to, from) = invocation.start_piped()?;
        Ok(Self {
            shown: invocation.shown.clone(),
            started,
            to,
            from: BufReader::new(from),
        })
    }

    /// Reads its output up to this word.
    pub(super) fn hear(&mut self, word: &str) -> anyhow::Result<()> {
        let mut line = String::new();
        loop {
            line.clear();
            let read = self.from.read_line(&mut line).context("hear a process")?;
            if read == 0 {
                bail!("hear {word:?} of {}: it has ended", self.shown);
            }
            if line.trim() == word {
                return Ok(());
            }
        }
    }

    /// Tells it to begin, or to go on.
    pub(super) fn notify(&mut self) -> anyhow::Result<()> {
        self.to.write_all(b"\n").context("tell a process")?;
        self.to.flush().context("tell a process")
    }
}

/// Names this program as a member that does what the words say.
pub(super) fn member(directory: &Path, words: &[&str]) -> anyhow::Result<Invocation> {
    let program = env::current_exe().context("find this program")?;
    let args = [&["bench", MEMBER], words].concat();
    let shown = words.first().copied().unwrap_or(MEMBER);
    let program = program.to_string_lossy();
    Ok(Invocation::new(shown, directory, &program, &args))
}

/// Starts several, lets them begin at the same moment, and returns how long it took until all had
/// ended.
pub(super) fn time(invocations: &[Invocation]) -> anyhow::Result<Duration> {
    let mut members: Vec<Member> = invocations
        .iter()
        .map(Member::start)
        .collect::<Result<_, _>>()?;
    for member in &mut members {
        member.hear(READY)?;
    }
    let began = Instant::now();
    for member in &mut members {
        member.notify()?;
    }
    for member in members {
        member.started.finish()?;
    }
    Ok(began.elapsed())
}
