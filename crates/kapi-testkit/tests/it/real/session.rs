//! One agent CLI with a home, a workspace and a model server of its own.
//! It does not know which CLI needs what.

use std::io::{Read, pipe};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use std::{fs, thread};

use kapi_testkit::agent_tools::{AgentTools, Cli};
use kapi_testkit::model_server::ModelServer;
use kapi_testkit::model_server::record::RecordedRequest;
use kapi_testkit::model_server::scenario::ModelScenario;
use serde_json::Value;
use tempfile::TempDir;

/// The key that every CLI is given.
pub(crate) const KEY: &str = "sk-scripted-key";
/// How long a CLI may take; one session is a matter of seconds.
const DEADLINE: Duration = Duration::from_secs(120);

/// One CLI and what belongs to it.
pub(crate) struct Session {
    server: ModelServer,
    binary: PathBuf,
    folder: TempDir,
}

/// How a CLI ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    /// The lines of standard output that are JSON.
    pub(crate) events: Vec<Value>,
    #[expect(dead_code, reason = "shown when an assertion fails")]
    stderr: String,
}

impl Session {
    /// Installs the CLI if need be, and makes a server, a home and a workspace for it.
    pub(crate) fn start(cli: Cli, scenario: ModelScenario) -> Self {
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let checkout = checkout.canonicalize().expect("the checkout is there");
        let tools = AgentTools::ensure(&checkout, &[cli]).expect("the CLI can be installed");
        // Codex makes no helper binaries for a home under the system's temporary folder.
        let homes = checkout.join(".test-tools/homes");
        fs::create_dir_all(&homes).expect("a folder for homes");
        let folder = tempfile::Builder::new()
            .prefix(cli.name())
            .tempdir_in(homes)
            .expect("a folder");
        let session = Self {
            server: ModelServer::start(scenario).expect("a server"),
            binary: tools.binary(cli).expect("it was required").to_path_buf(),
            folder,
        };
        for part in [session.home(), session.workspace()] {
            fs::create_dir(part).expect("a folder");
        }
        let workspace = session.workspace();
        let git = command(Path::new("git"))
            .args(["init", "--quiet"])
            .arg(&workspace)
            .status();
        assert!(git.expect("git starts").success());
        session
    }

    pub(crate) fn url(&self) -> String {
        self.server.base_url()
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        self.server.requests()
    }

    /// Returns the content of a file in the workspace.
    pub(crate) fn file(&self, name: &str) -> String {
        fs::read_to_string(self.workspace().join(name))
            .unwrap_or_else(|error| panic!("{name}: {error}; {:#?}", self.server.requests()))
    }

    pub(crate) fn has_file(&self, name: &str) -> bool {
        self.workspace().join(name).exists()
    }

    /// Writes a file into the home.
    #[expect(
        clippy::disallowed_methods,
        reason = "a test's file need not survive a crash"
    )]
    pub(crate) fn configure(&self, name: &str, content: &str) -> PathBuf {
        let path = self.home().join(name);
        fs::create_dir_all(path.parent().expect("a file has a folder")).expect("a folder");
        fs::write(&path, content).expect("a file");
        path
    }

    /// Runs the CLI to its end.
    pub(crate) fn run(&self, args: &[&str], environment: &[(&str, &str)]) -> Ended {
        let (reader, stdout) = pipe().expect("a pipe");
        let (error_reader, stderr) = pipe().expect("a pipe");
        let mut command = command(&self.binary);
        command
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").expect("a path"))
            .env("HOME", self.home())
            .env("LANG", "C.UTF-8")
            .env("TERM", "dumb")
            .envs(environment.iter().copied())
            .current_dir(self.workspace())
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr);
        let mut child = command.spawn().expect("the CLI starts");
        drop(command);
        let (output, errors) = (read_all(reader), read_all(error_reader));
        let Ok(output) = output.recv_timeout(DEADLINE) else {
            child.kill().expect("the CLI can be killed");
            child.wait().expect("the CLI ends");
            panic!("the CLI takes too long: {:#?}", self.server.requests());
        };
        Ended {
            code: child.wait().expect("the CLI ends").code(),
            events: output
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok())
                .collect(),
            stderr: errors.recv_timeout(DEADLINE).expect("the errors end"),
        }
    }
}

impl Ended {
    /// Returns the events of a type, in order.
    pub(crate) fn of_type(&self, kind: &str) -> Vec<&Value> {
        let is_kind = |event: &&Value| event["type"] == kind;
        self.events.iter().filter(is_kind).collect()
    }

    /// Returns the last event of a type.
    pub(crate) fn last_of_type(&self, kind: &str) -> &Value {
        self.of_type(kind)
            .pop()
            .unwrap_or_else(|| panic!("no event {kind}: {self:#?}"))
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test drives the CLI itself, without Kapi"
)]
fn command(program: &Path) -> Command {
    Command::new(program)
}

fn read_all(mut reader: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let mut output = String::new();
        reader
            .read_to_string(&mut output)
            .expect("the output is text");
        // Nobody listens after the deadline.
        sender.send(output).ok();
    });
    receiver
}
