//! A program of a test, running or ended, and what it said.
//!
//! Knows the outer form of what `kapi` prints, not what should stand in it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, ChildStdout, Command};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::environment::Environment;

/// How a program ended.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: i32,
}

/// What `kapi run --json` or `kapi resume --json` said.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) lines: Vec<Value>,
    pub(crate) result: Value,
    pub(crate) stderr: String,
    pub(crate) code: i32,
}

/// A program that runs beside the test, ended with it.
pub(crate) struct Running {
    child: Child,
    /// What it said and nobody has looked at yet: it may say several lines at once.
    stdout: BufReader<ChildStdout>,
    stderr: BufReader<ChildStderr>,
}

impl Output {
    /// Returns the one JSON document on standard output.
    pub(crate) fn document(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "one line: {self:?}");
        parse(self.stdout.trim_end())
    }

    /// Checks that it is an error of this exit code whose text holds all of `words`.
    pub(crate) fn assert_error(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, code, "{self:?}");
        self.assert_only_error_on_stdout();
        assert!(self.stderr.starts_with("error: "), "{self:?}");
        for word in words {
            assert!(self.stderr.contains(word), "{word:?} in {self:?}");
        }
    }
}

impl Output {
    /// Checks that nothing stands on standard output, or with `--json` the error alone, in the words
    /// of standard error.
    fn assert_only_error_on_stdout(&self) {
        if self.stdout.is_empty() {
            return;
        }
        let error = self.document();
        assert_eq!(error["type"], "error", "errors are talk: {self:?}");
        assert_eq!(error["exit_code"], self.code, "{self:?}");
        for part in ["message", "hint"] {
            let said = error[part].as_str().unwrap_or_default();
            let first = said.lines().next().unwrap_or_default();
            assert!(self.stderr.contains(first), "{part} {said:?} in {self:?}");
        }
    }

    /// Checks that it ends in an error of this exit code, whatever was said before.
    pub(crate) fn assert_error_among_talk(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, code, "{self:?}");
        assert!(
            self.stderr.contains("\nerror: ") || self.stderr.starts_with("error: "),
            "{self:?}"
        );
        for word in words {
            assert!(self.stderr.contains(word), "{word:?} in {self:?}");
        }
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        let lines: Vec<Value> = output.stdout.lines().map(parse).collect();
        // What went wrong after the result, such as its delivery, is an error behind it.
        let result = lines.iter().rfind(|line| line["type"] == "result");
        let Some(result) = result.cloned() else {
            panic!("a run prints at least its result: {output:?}");
        };
        Self {
            lines,
            result,
            stderr: output.stderr,
            code: output.code,
        }
    }
}

impl Run {
    /// Checks status and exit code.
    pub(crate) fn assert_status(&self, status: &str, code: i32) {
        assert_eq!(
            (self.status(), self.code),
            (status, code),
            "{:#}\n{}",
            self.result,
            self.stderr
        );
    }

    /// Checks that no commit is named and the branch is where it began.
    pub(crate) fn assert_nothing_published(&self, env: &Environment) {
        assert_eq!(self.result["commit"], Value::Null);
        let branch = self.result["branch"].as_str().unwrap();
        assert_eq!(env.commit_of(branch), env.commit_of("main"));
        assert!(self.events("goal_done").is_empty());
    }

    pub(crate) fn status(&self) -> &str {
        self.result["status"].as_str().unwrap()
    }

    pub(crate) fn id(&self) -> &str {
        self.result["id"].as_str().unwrap()
    }

    pub(crate) fn commit(&self) -> &str {
        self.result["commit"].as_str().unwrap()
    }

    pub(crate) fn reason(&self) -> &str {
        self.result["reason"].as_str().unwrap()
    }

    /// Returns everything the agent and the verify commands said.
    pub(crate) fn said(&self) -> String {
        let texts = self.lines.iter().filter(|line| line["type"] == "activity");
        let texts: Vec<&str> = texts.filter_map(|line| line["text"].as_str()).collect();
        texts.join("\n")
    }

    /// Returns the data of all events of a type.
    pub(crate) fn events(&self, kind: &str) -> Vec<&Value> {
        let events = self.lines.iter().filter(|line| line["type"] == kind);
        events.map(|line| &line["data"]).collect()
    }

    /// Returns the verdicts of the turns that ended without done.
    pub(crate) fn verdicts(&self) -> Vec<&str> {
        let turns = self.events("turn_ended");
        let verdicts = turns.iter().map(|turn| turn["verdict"].as_str().unwrap());
        verdicts.collect()
    }
}

impl Running {
    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self {
            child,
            stdout,
            stderr,
        }
    }

    /// Returns its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// Tells whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Kills it at once and takes it away.
    pub(crate) fn kill(mut self) {
        // It may have ended already; then there is nothing to kill.
        drop(self.child.kill());
        self.child.wait().unwrap();
    }

    /// Reads lines of its standard output until one is wanted, and returns that line.
    pub(crate) fn await_line(&mut self, is_it: &dyn Fn(&str) -> bool) -> String {
        read_until(&mut self.stdout, is_it)
    }

    /// Does the same with its standard error.
    pub(crate) fn await_notice(&mut self, is_it: &dyn Fn(&str) -> bool) -> String {
        read_until(&mut self.stderr, is_it)
    }

    /// Waits for its end, and returns what it said since it was last looked at.
    pub(crate) fn finish(mut self) -> Output {
        let (stdout, stderr) = (&mut self.stdout, &mut self.stderr);
        let (stdout, stderr) = thread::scope(|scope| {
            let reader = scope.spawn(|| read_all(stdout));
            let stderr = read_all(stderr);
            (reader.join().unwrap(), stderr)
        });
        let status = self.child.wait().unwrap();
        let code = status.code().unwrap_or(-1);
        Output {
            stdout,
            stderr,
            code,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A test that failed half-way leaves nothing behind; one that passed has nothing left.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Runs a prepared command to its end.
pub(crate) fn finish(mut command: Command) -> Output {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    Output {
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        code: output.status.code().unwrap_or(-1),
    }
}

pub(crate) fn parse(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line:?}"))
}

fn read_until(reader: &mut impl BufRead, is_it: &dyn Fn(&str) -> bool) -> String {
    loop {
        let mut line = String::new();
        let count = reader.read_line(&mut line).unwrap();
        assert_ne!(count, 0, "it ended before the line that was waited for");
        if is_it(&line) {
            return line;
        }
    }
}

fn read_all(pipe: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    pipe.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}
