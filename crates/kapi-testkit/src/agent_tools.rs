//! Installs the pinned versions of the real agent CLIs from npm, once per checkout.
//! It does not know how a CLI is driven, and never skips: what cannot be installed
//! is an error.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use std::{env, thread};

/// Two versions of each CLI are pinned: flags, settings and streams change without notice.
const CLAUDE: NpmPackage = NpmPackage {
    npm: "@anthropic-ai/claude-code",
    binary: "claude",
    oldest: "2.1.197",
    recent: "2.1.332",
    usual: Edition::Oldest,
};
const CODEX: NpmPackage = NpmPackage {
    npm: "@openai/codex",
    binary: "codex",
    oldest: "0.150.0",
    recent: "0.169.0",
    usual: Edition::Recent,
};
const GEMINI: NpmPackage = NpmPackage {
    npm: "@google/gemini-cli",
    binary: "gemini",
    oldest: "0.51.0",
    recent: "0.61.0",
    usual: Edition::Recent,
};
/// The oldest is the newest that runs on Node 20; later ones want Node 22.19.
const PI: NpmPackage = NpmPackage {
    npm: "@earendil-works/pi-coding-agent",
    binary: "pi",
    oldest: "0.74.2",
    recent: "0.87.1",
    usual: Edition::Oldest,
};
/// What runs the CLIs that want a newer Node.js than the machine's.
const NODE: (&str, &str) = ("node", "24.9.0");

/// The variable that names other versions than those that most tests drive: `pi=0.87.1 codex=…`.
pub const VERSIONS_VARIABLE: &str = "KAPI_TEST_AGENT_VERSIONS";
/// The folder in the checkout that holds the CLIs.
pub(crate) const TOOLS_DIRECTORY: &str = ".test-tools";
/// How long one npm installation, or one sign of life of a CLI, may take.
const CHILD_DEADLINE: Duration = Duration::from_secs(600);
/// How much of a failed child's output is quoted.
const OUTPUT_BYTES_MAX: usize = 4 * 1024;

/// An agent CLI that the tests drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cli {
    /// Claude Code.
    Claude,
    /// OpenAI Codex CLI.
    Codex,
    /// Google Gemini CLI.
    Gemini,
    /// The Pi coding agent.
    Pi,
}

/// Which of the two pinned versions of a CLI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edition {
    /// The oldest that Kapi supports.
    Oldest,
    /// A recent one.
    Recent,
}

/// A package of the npm registry, with its pinned versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct NpmPackage {
    npm: &'static str,
    binary: &'static str,
    oldest: &'static str,
    recent: &'static str,
    /// The one that all tests drive; the other proves one goal.
    usual: Edition,
}

/// A package that is installed.
struct Installation<'a> {
    npm: &'a str,
    binary: &'a str,
    version: &'a str,
    /// The folder of a Node.js that runs it, where the machine's may be too old.
    node: Option<&'a Path>,
}

/// The installed CLIs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentTools {
    binaries: BTreeMap<Cli, PathBuf>,
    node: Option<PathBuf>,
}

/// A CLI that is not there and cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum AgentToolsError {
    /// A file or folder cannot be used.
    #[error("use {path}")]
    Disk {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// A program does not start; for npm, this means that Node.js is not installed.
    #[error("start {program}")]
    Start {
        /// The program.
        program: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// A program takes longer than it may.
    #[error("finish {program} within {deadline_s} seconds")]
    Deadline {
        /// The program.
        program: PathBuf,
        /// The limit.
        deadline_s: u64,
    },
    /// A program ran and failed.
    #[error("run {program} ({status}): {output}")]
    Status {
        /// The program.
        program: PathBuf,
        /// How it ended.
        status: std::process::ExitStatus,
        /// The end of what it wrote.
        output: String,
    },
    /// What was installed is not what is pinned.
    #[error("get version {expected} of {program}, which says {found:?}")]
    Version {
        /// The program.
        program: PathBuf,
        /// The pinned version.
        expected: String,
        /// What it says of itself.
        found: String,
    },
    /// The binary of a CLI that was not required is asked for.
    #[error("find {cli:?} among the required tools")]
    NotRequired {
        /// The CLI.
        cli: Cli,
    },
}

impl Cli {
    /// All CLIs, in their order.
    pub const ALL: [Self; 4] = [Self::Claude, Self::Codex, Self::Gemini, Self::Pi];

    /// Returns the name of the CLI's binary.
    pub fn name(self) -> &'static str {
        self.package().binary
    }

    /// Returns the name of its package in the npm registry.
    pub fn npm(self) -> &'static str {
        self.package().npm
    }

    /// Returns a pinned version.
    pub fn version(self, edition: Edition) -> &'static str {
        match edition {
            Edition::Oldest => self.package().oldest,
            Edition::Recent => self.package().recent,
        }
    }

    /// Returns the pinned version that all tests drive.
    pub fn usual(self) -> Edition {
        self.package().usual
    }

    fn package(self) -> &'static NpmPackage {
        match self {
            Self::Claude => &CLAUDE,
            Self::Codex => &CODEX,
            Self::Gemini => &GEMINI,
            Self::Pi => &PI,
        }
    }
}

impl AgentTools {
    /// Installs the required CLIs under a checkout, where they are not there yet, in the versions that
    /// all tests drive; the variable can name others.
    ///
    /// A CLI is there when its folder is: it gets its name only when it is complete.
    pub fn ensure(checkout: &Path, required: &[Cli]) -> Result<Self, AgentToolsError> {
        let named = env::var(VERSIONS_VARIABLE).unwrap_or_default();
        let version = |cli: Cli| {
            let found = named.split_whitespace().find_map(|word| {
                let (name, version) = word.split_once('=')?;
                (name == cli.name()).then(|| version.to_owned())
            });
            found.unwrap_or_else(|| cli.version(cli.usual()).to_owned())
        };
        let required: Vec<(Cli, String)> =
            required.iter().map(|cli| (*cli, version(*cli))).collect();
        Self::ensure_versions(checkout, &required)
    }

    /// Does the same with one of the pinned versions.
    pub fn ensure_edition(
        checkout: &Path,
        cli: Cli,
        edition: Edition,
    ) -> Result<Self, AgentToolsError> {
        Self::ensure_versions(checkout, &[(cli, cli.version(edition).to_owned())])
    }

    fn ensure_versions(
        checkout: &Path,
        required: &[(Cli, String)],
    ) -> Result<Self, AgentToolsError> {
        let mut binaries = BTreeMap::new();
        let is_new = |(cli, version): &(Cli, String)| *cli == Cli::Pi && version != PI.oldest;
        let node = required
            .iter()
            .any(is_new)
            .then(|| Self::node(checkout))
            .transpose()?;
        for (cli, version) in required {
            let package = cli.package();
            let installation = Installation {
                npm: package.npm,
                binary: package.binary,
                version,
                node: node.as_deref(),
            };
            binaries.insert(*cli, ensure(checkout, &installation)?);
        }
        Ok(Self { binaries, node })
    }

    /// Installs a Node.js that every CLI runs on, and returns the folder of its program.
    pub fn node(checkout: &Path) -> Result<PathBuf, AgentToolsError> {
        let (npm, version) = NODE;
        let installation = Installation {
            npm,
            binary: npm,
            version,
            node: None,
        };
        let mut folder = ensure(checkout, &installation)?;
        folder.pop();
        Ok(folder)
    }

    /// Returns the folder that must come first on `PATH`, where a CLI wants another Node.js than the
    /// machine's.
    pub fn path_first(&self) -> Option<&Path> {
        self.node.as_deref()
    }

    /// Returns the path of a required CLI's binary.
    pub fn binary(&self, cli: Cli) -> Result<&Path, AgentToolsError> {
        self.binaries
            .get(&cli)
            .map(PathBuf::as_path)
            .ok_or(AgentToolsError::NotRequired { cli })
    }
}

/// Returns the program of an installation, which is made where it is not there.
fn ensure(checkout: &Path, wanted: &Installation<'_>) -> Result<PathBuf, AgentToolsError> {
    let tools = checkout.join(TOOLS_DIRECTORY);
    let home = tools.join(format!("{}-{}", wanted.binary, wanted.version));
    once(&home, |partial| install(wanted, partial))?;
    Ok(binary_path(&home, wanted))
}

/// Returns a `PATH` in which a folder comes first.
pub fn path_with(first: &Path) -> OsString {
    let mut path = first.as_os_str().to_owned();
    path.push(":");
    path.push(env::var_os("PATH").unwrap_or_default());
    path
}

/// Fills a folder beside its place and moves it there once it is complete; one process at a time.
pub(crate) fn once(
    home: &Path,
    fill: impl FnOnce(&Path) -> Result<(), AgentToolsError>,
) -> Result<(), AgentToolsError> {
    if exists(home)? {
        return Ok(());
    }
    if let Some(tools) = home.parent() {
        fs::create_dir_all(tools).map_err(at(tools))?;
    }
    let lock_path = home.with_added_extension("lock");
    let lock = File::create(&lock_path).map_err(at(&lock_path))?;
    lock.lock().map_err(at(&lock_path))?;
    if exists(home)? {
        return Ok(());
    }
    let partial = home.with_added_extension("partial");
    if exists(&partial)? {
        fs::remove_dir_all(&partial).map_err(at(&partial))?;
    }
    fs::create_dir_all(&partial).map_err(at(&partial))?;
    announce(home)?;
    fill(&partial)?;
    fs::rename(&partial, home).map_err(at(home))
}

fn install(wanted: &Installation<'_>, into: &Path) -> Result<(), AgentToolsError> {
    let specification = format!("{}@{}", wanted.npm, wanted.version);
    let prefix = into.as_os_str();
    let mut npm = command(Path::new("npm"));
    npm.args(["install", "--no-audit", "--no-fund", "--prefix"])
        .args([prefix, specification.as_ref()])
        .current_dir(into);
    run(npm)?;
    let binary = binary_path(into, wanted);
    let mut version = command(&binary);
    version.arg("--version").current_dir(into);
    if let Some(node) = wanted.node {
        version.env("PATH", path_with(node));
    }
    let found = run(version)?;
    if found.contains(wanted.version) {
        return Ok(());
    }
    Err(AgentToolsError::Version {
        program: binary,
        expected: wanted.version.to_owned(),
        found,
    })
}

fn binary_path(home: &Path, wanted: &Installation<'_>) -> PathBuf {
    home.join("node_modules/.bin").join(wanted.binary)
}

/// Says what takes so long.
fn announce(home: &Path) -> Result<(), AgentToolsError> {
    writeln!(
        io::stderr(),
        "installing {} with npm (once per checkout)",
        home.display()
    )
    .map_err(at(home))
}

#[expect(
    clippy::disallowed_methods,
    reason = "npm needs the person's real environment: proxy, certificates, registry, cache"
)]
pub(crate) fn command(program: &Path) -> Command {
    Command::new(program)
}

/// Runs a child to its end and returns what it wrote to both of its outputs.
pub(crate) fn run(mut command: Command) -> Result<String, AgentToolsError> {
    let program = PathBuf::from(command.get_program());
    let (mut reader, writer) = io::pipe().map_err(at(&program))?;
    let errors = writer.try_clone().map_err(at(&program))?;
    command
        .stdin(Stdio::null())
        .stdout(Stdio::from(writer))
        .stderr(Stdio::from(errors));
    let mut child = command.spawn().map_err(|source| AgentToolsError::Start {
        program: program.clone(),
        source,
    })?;
    // The command holds our ends of the pipe, which would keep it open for ever.
    drop(command);
    let (sender, receiver) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let mut output = Vec::new();
        let read = reader.read_to_end(&mut output).map(|_| output);
        // Nobody listens after the deadline.
        let _sent: Result<(), mpsc::SendError<io::Result<Vec<u8>>>> = sender.send(read);
    });
    let Ok(read) = receiver.recv_timeout(CHILD_DEADLINE) else {
        child.kill().map_err(at(&program))?;
        child.wait().map_err(at(&program))?;
        return Err(AgentToolsError::Deadline {
            program,
            deadline_s: CHILD_DEADLINE.as_secs(),
        });
    };
    let status = child.wait().map_err(at(&program))?;
    let output = read.map_err(at(&program))?;
    let output = String::from_utf8_lossy(&output).into_owned();
    if status.success() {
        return Ok(output);
    }
    let start = output.floor_char_boundary(output.len().saturating_sub(OUTPUT_BYTES_MAX));
    Err(AgentToolsError::Status {
        program,
        status,
        output: output.get(start..).unwrap_or_default().to_owned(),
    })
}

fn exists(path: &Path) -> Result<bool, AgentToolsError> {
    path.try_exists().map_err(at(path))
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> AgentToolsError {
    |source| AgentToolsError::Disk {
        path: path.to_path_buf(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{AgentTools, AgentToolsError, Cli, command, run};

    #[test]
    fn children_that_fail_say_why() {
        let mut shell = command(Path::new("sh"));
        shell.args(["-c", "echo out; echo err >&2; exit 3"]);
        match run(shell) {
            Err(AgentToolsError::Status { status, output, .. }) => {
                assert_eq!((status.code(), output.as_str()), (Some(3), "out\nerr\n"));
            }
            other => panic!("{other:?}"),
        }
        let missing = run(command(Path::new("/nowhere/npm")));
        assert!(
            matches!(missing, Err(AgentToolsError::Start { .. })),
            "{missing:?}"
        );
    }

    #[test]
    fn a_checkout_that_is_no_folder_is_an_error() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let result = AgentTools::ensure(file.path(), &[Cli::Pi]);
        assert!(
            matches!(result, Err(AgentToolsError::Disk { .. })),
            "{result:?}"
        );
    }

    #[test]
    fn only_required_tools_are_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let tools = AgentTools::ensure(folder.path(), &[]).expect("nothing to do");
        let binary = tools.binary(Cli::Codex);
        assert!(matches!(
            binary,
            Err(AgentToolsError::NotRequired { cli: Cli::Codex })
        ));
        assert!(!folder.path().join(super::TOOLS_DIRECTORY).exists());
    }
}
