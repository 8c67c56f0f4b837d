//! The machine of a soak: a home, a project and the program, on a disk of their own.
//!
//! Runs commands and starts processes; what they are for is not known here.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use kapi_sys::cancel::Cancel;
use kapi_sys::process::{self, ProcessEnd, ProcessLimits, Program};
use serde_json::Value;

/// The longest that one command may take.
const PATIENCE: Duration = Duration::from_secs(600);
/// Bytes of output that are kept: every task of a long soak is in one list.
const OUTPUT_BYTES_MAX: usize = 256 << 20;
/// What loops and tasks do that name no agent: the number in the prompt becomes a file.
const AGENT: &str = "command:n=$(sed -n 's/.*number \\\\([0-9][0-9]*\\\\).*/\\\\1/p' \\\"$KAPI_PROMPT_FILE\\\" | tail -n 1); [ -n \\\"$n\\\" ] || exit 1; sleep 0.3; echo \\\"$n\\\" > \\\"loop-$n.txt\\\"";
const LOOP: &str = "---\nname: echo\nagent: worker\ndescription: writes a number\n---\nWrite number {payload.n} down.\n";
/// The reviewer of a workflow that nothing disturbs, and an approval for each review more: a check
/// of which a process was killed may fail, which is mended and reviewed again.
const REVIEWER: &str = include_str!("../../../kapi-cli/tests/fixtures/workflows/reviewer.yaml");
const APPROVAL: &str =
    "    - steps: [{answer: {approve: true, summary: It greets., findings: []}}]\n";
const APPROVALS: usize = 50;
const PROFILE: &str = "---\nname: worker\ndescription: works\n---\nYou work.\n";

/// The machine.
#[derive(Debug)]
pub(super) struct SoakMachine {
    kapi: PathBuf,
    root: PathBuf,
}

/// A command that has ended.
#[derive(Debug)]
pub(super) struct CommandRun {
    pub(super) code: i32,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl SoakMachine {
    /// Makes the machine in an empty directory.
    pub(super) fn new(kapi: &Path, root: &Path) -> Result<Self, String> {
        let machine = Self {
            kapi: kapi.to_path_buf(),
            root: root.to_path_buf(),
        };
        let config = format!(
            "[kernel]\ndefault_backend = \"{AGENT}\"\nmax_concurrency = 4\n\n[sandbox]\nprocesses = 200\n"
        );
        let app = machine.project();
        let reviewer = [REVIEWER, &APPROVAL.repeat(APPROVALS)].concat();
        for (path, text) in [
            (
                machine.home().join(".config/kapi/config.toml"),
                config.as_str(),
            ),
            (machine.clock(), "+0"),
            (app.join("answer.txt"), "wrong\n"),
            (app.join("test.sh"), "test -f answer.txt\n"),
            (app.join(".pi/agents/worker.md"), PROFILE),
            (app.join(".pi/loops/echo.md"), LOOP),
            (
                machine.root.join("agent.yaml"),
                include_str!("../../../kapi-cli/tests/fixtures/workflows/agent.yaml"),
            ),
            (machine.root.join("reviewer.yaml"), reviewer.as_str()),
        ] {
            put(&path, text)?;
        }
        let temporary = machine.temporary();
        fs::create_dir(&temporary)
            .map_err(|error| format!("create {}: {error}", temporary.display()))?;
        for args in [
            &["init", "--quiet", "--initial-branch", "main"][..],
            &["add", "--all"],
            &["commit", "--quiet", "--message", "base"],
        ] {
            machine.git(args)?;
        }
        Ok(machine)
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    pub(super) fn project(&self) -> PathBuf {
        self.root.join("app")
    }

    /// Returns the file that says how far off the time of day is.
    pub(super) fn clock(&self) -> PathBuf {
        self.root.join("clock")
    }

    /// Returns the directory for temporary files.
    pub(super) fn temporary(&self) -> PathBuf {
        self.root.join("tmp")
    }

    /// Runs the program to its end.
    pub(super) fn kapi(&self, args: &[&str]) -> CommandRun {
        match self.run(&self.kapi, args, Vec::new()) {
            Ok(run) => run,
            Err(stderr) => CommandRun {
                code: -1,
                stdout: String::new(),
                stderr,
            },
        }
    }

    /// Runs git and returns what it says.
    pub(super) fn git(&self, args: &[&str]) -> Result<String, String> {
        self.git_asked(args, Vec::new())
    }

    /// Runs git with questions on its standard input, and returns what it says.
    pub(super) fn git_asked(&self, args: &[&str], questions: Vec<u8>) -> Result<String, String> {
        let path = process::environment().remove(OsStr::new("PATH"));
        let git = process::find_in_path(OsStr::new("git"), &path.unwrap_or_default());
        let run = self.run(&git.ok_or("find git")?, args, questions)?;
        match run.code {
            0 => Ok(run.stdout.trim_end().to_owned()),
            code => Err(format!("git {}: {code}: {}", args.join(" "), run.stderr)),
        }
    }

    /// Starts the program and does not wait for it; what it says on standard error is kept beside the
    /// disk.
    #[expect(
        clippy::disallowed_methods,
        reason = "the door has no background processes to offer"
    )]
    pub(super) fn start(&self, args: &[&str]) -> Result<Child, String> {
        // Beside the disk, which may be full.
        let said = self.root.with_extension("said");
        let said = fs::OpenOptions::new().create(true).append(true).open(said);
        let said = said.map_or_else(|_| Stdio::null(), Stdio::from);
        let mut command = Command::new(&self.kapi);
        command.args(args).current_dir(self.project());
        command.env_clear().envs(self.environment());
        command.stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(said);
        let child = command.spawn();
        child.map_err(|error| format!("start kapi {}: {error}", args.join(" ")))
    }

    fn environment(&self) -> BTreeMap<OsString, OsString> {
        let path = process::environment().remove(OsStr::new("PATH"));
        let mut env: BTreeMap<OsString, OsString> = BTreeMap::new();
        env.insert("PATH".into(), path.unwrap_or_default());
        env.insert("HOME".into(), self.home().into());
        env.insert("KAPI_TEST_CLOCK".into(), self.clock().into());
        env.insert("KAPI_SESSION".into(), "soak".into());
        env.insert("TMPDIR".into(), self.temporary().into());
        env.insert("GIT_CONFIG_NOSYSTEM".into(), "1".into());
        for role in ["AUTHOR", "COMMITTER"] {
            env.insert(format!("GIT_{role}_NAME").into(), "Person".into());
            let address = "person@example.invalid";
            env.insert(format!("GIT_{role}_EMAIL").into(), address.into());
        }
        env
    }

    fn run(&self, path: &Path, args: &[&str], stdin: Vec<u8>) -> Result<CommandRun, String> {
        let program = Program {
            path: path.to_path_buf(),
            args: args.iter().map(OsString::from).collect(),
            env: self.environment(),
            cwd: self.project(),
            stdin,
            pass_fds: Vec::new(),
            limits: ProcessLimits {
                deadline: PATIENCE,
                idle: None,
                tail_bytes_max: OUTPUT_BYTES_MAX,
                line_bytes_max: 1 << 20,
            },
        };
        let finished = process::run(program, &Cancel::new(), &mut |_line| {});
        let finished = finished.map_err(|error| format!("start {}: {error}", path.display()))?;
        Ok(CommandRun {
            code: match finished.end {
                ProcessEnd::Exited(code) => code,
                ProcessEnd::Signaled(signal) => 128 + signal,
                ProcessEnd::DeadlinePassed | ProcessEnd::IdlePassed | ProcessEnd::Cancelled => -1,
            },
            stdout: String::from_utf8_lossy(&finished.stdout.tail).into_owned(),
            stderr: String::from_utf8_lossy(&finished.stderr.tail).into_owned(),
        })
    }

    /// Returns the processes of this machine, with the words of their command lines.
    pub(super) fn processes(&self) -> Vec<(u32, String)> {
        let root = self.root.display().to_string();
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            // A process may end, or belong to somebody else, while we look.
            let read = |name: &str| fs::read(path.join(name)).unwrap_or_default();
            let (environ, words) = (read("environ"), read("cmdline"));
            let holds = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(&root);
            if pid != std::process::id() && (holds(&environ) || holds(&words)) {
                found.push((pid, String::from_utf8_lossy(&words).replace('\0', " ")));
            }
        }
        found
    }
}

impl CommandRun {
    /// Returns the last JSON document that was printed.
    pub(super) fn last(&self) -> Value {
        let line = self.stdout.lines().last().unwrap_or_default();
        serde_json::from_str(line).unwrap_or_default()
    }

    /// Returns the first JSON document that was printed.
    pub(super) fn first(&self) -> Value {
        let line = self.stdout.lines().next().unwrap_or_default();
        serde_json::from_str(line).unwrap_or_default()
    }
}

/// Returns with what a child ended, if it has: a signal is told as a shell does.
pub(super) fn exit_code(child: &mut Child) -> Option<i32> {
    let ended = child.try_wait().ok()??;
    let signal = ended.signal().unwrap_or_default();
    Some(ended.code().unwrap_or(128 + signal))
}

/// Writes a file whose directories may be missing.
pub(super) fn put(path: &Path, text: &str) -> Result<(), String> {
    let failed = |error| format!("write {}: {error}", path.display());
    let dir = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(dir).map_err(failed)?;
    let file = fs::File::create(path).map_err(failed)?;
    std::io::Write::write_all(&mut &file, text.as_bytes()).map_err(failed)
}
