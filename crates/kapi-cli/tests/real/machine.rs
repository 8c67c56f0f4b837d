//! A person's machine on which the four real CLIs are configured to ask a scripted model.
//!
//! Knows how to configure them and to look at what they left; what should happen is each test's
//! affair.

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use kapi_testkit::agent_tools::{AgentTools, Cli, Edition};
use kapi_testkit::model_server::ModelServer;
use kapi_testkit::model_server::record::{KeyFingerprint, RecordedRequest, ServedAnswer};
use kapi_testkit::model_server::scenario::{ModelScenario, ReplyUsage};
use rustix::net::{AddressFamily, SocketType};
use serde_json::Value;

use crate::environment::Environment;
use crate::pi_host::checkout;
use crate::program::Run;

/// The variable of the host that holds the key.
const KEY_VARIABLE: &str = "SCRIPTED_MODEL_KEY";
/// Words that only a question to a judge holds.
pub(crate) const JUDGE_MARK: &str = "You are the judge of a goal";
/// Words that only a prompt after a failed verification holds.
pub(crate) const VERIFY_FAILED: &str = "Not done: Kapi ran the checks";
/// Words that only a prompt after a judge's refusal holds.
pub(crate) const JUDGE_REFUSED: &str = "Not done: the checks pass, but the judge says";
/// What every answer of the scripted model claims to have cost.
pub(crate) const USAGE: ReplyUsage = ReplyUsage {
    input: 1_000,
    output: 50,
    cache_read: 200,
    cache_write: 0,
    reasoning: 10,
};

/// A machine, and the server its agents ask.
pub(crate) struct Machine {
    pub(crate) env: Environment,
    pub(crate) server: ModelServer,
    /// The folder of the Node.js that the CLIs run on, where the machine's may be too old.
    pub(crate) node: Option<PathBuf>,
    key: String,
    binaries: BTreeMap<Cli, PathBuf>,
}

/// A port of the loopback that refuses connections for as long as this lives.
pub(crate) struct ClosedPort {
    _bound: OwnedFd,
    port: u16,
}

impl Machine {
    /// Installs the CLIs if need be and makes a machine with a repository whose answer is wrong.
    pub(crate) fn new(scenario: ModelScenario) -> Self {
        let tools = AgentTools::ensure(&checkout(), &Cli::ALL).expect("the CLIs can be installed");
        Self::with(scenario, &tools, &Cli::ALL)
    }

    /// Makes the same with one CLI alone, in a pinned version.
    pub(crate) fn of_edition(scenario: ModelScenario, cli: Cli, edition: Edition) -> Self {
        let tools = AgentTools::ensure_edition(&checkout(), cli, edition);
        Self::with(scenario, &tools.expect("the CLI can be installed"), &[cli])
    }

    fn with(mut scenario: ModelScenario, tools: &AgentTools, clis: &[Cli]) -> Self {
        let binaries = clis
            .iter()
            .map(|cli| (*cli, tools.binary(*cli).unwrap().to_path_buf()));
        scenario.usage = USAGE;
        let mut env = Environment::new();
        if let Some(node) = tools.path_first() {
            let path = std::env::var("PATH").unwrap();
            env.set("PATH", &format!("{}:{path}", node.display()));
        }
        let name = env.root().file_name().unwrap().to_str().unwrap();
        // Longer than what CLIs keep of a key they were given.
        let key = format!("sk-scripted-0123456789abcdef0123456789abcdef-{name}");
        env.set(KEY_VARIABLE, &key);
        let machine = Self {
            env,
            server: ModelServer::start(scenario).unwrap(),
            node: tools.path_first().map(Path::to_path_buf),
            key,
            binaries: binaries.collect(),
        };
        machine.configure(&|_| machine.server.base_url());
        machine
    }

    /// Writes the person's configuration, with the server that each CLI asks.
    pub(crate) fn configure(&self, base_url: &dyn Fn(Cli) -> String) {
        let tables: Vec<String> = self
            .binaries
            .iter()
            .map(|(cli, binary)| {
                format!(
                    "[agents.{}]\ncommand = {:?}\nbase_url = {:?}\napi_key_env = {KEY_VARIABLE:?}\n\
                     model = {:?}\n",
                    cli.name(),
                    binary,
                    base_url(*cli),
                    model(*cli)
                )
            })
            .collect();
        self.env.configure(&tables.concat());
    }

    /// Runs the usual task with a CLI to its end.
    pub(crate) fn run(&self, cli: Cli, judge: &str, options: &[&str]) -> Run {
        self.env
            .run(cli.name(), &[&["--judge", judge], options].concat())
    }

    /// Returns the program of a CLI.
    pub(crate) fn binary(&self, cli: Cli) -> &Path {
        &self.binaries[&cli]
    }

    /// Returns the key that the CLIs are given.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Returns the fingerprint of that key.
    pub(crate) fn key_fingerprint(&self) -> KeyFingerprint {
        KeyFingerprint::of(&self.key)
    }

    /// Returns the requests for an answer so far.
    pub(crate) fn asked(&self) -> Vec<RecordedRequest> {
        let mut requests = self.server.requests();
        requests.retain(|request| request.api.is_some());
        requests
    }

    /// Returns the private homes that Kapi made for agents.
    pub(crate) fn private_home(&self, cli: Cli) -> PathBuf {
        let sandboxes = self.env.home().join(".ilchul/sandboxes");
        let project = only_entry(&sandboxes);
        only_entry(&project).join(format!("home-{}", cli.name()))
    }

    /// Returns the subjects of the commits that a branch has on top of the main one.
    pub(crate) fn commits_on(&self, branch: &str) -> Vec<String> {
        let range = format!("main..{branch}");
        let subjects = self.env.git(&["log", "--format=%s", &range]);
        subjects.lines().map(str::to_owned).collect()
    }

    /// Checks that what a run reports as used is what the model claims for its whole answers.
    pub(crate) fn assert_usage(&self, run: &Run, answers: u64) {
        let asked = self.asked();
        let whole = asked
            .iter()
            .filter(|request| matches!(request.answer, ServedAnswer::Step | ServedAnswer::Judge));
        assert_eq!(
            u64::try_from(whole.count()).unwrap(),
            answers,
            "{:#?}",
            answers_of(&asked)
        );
        let usage = &run.result["usage"];
        assert_eq!(usage["input_tokens"], answers * USAGE.prompt_total());
        assert_eq!(usage["output_tokens"], answers * USAGE.answer_total());
    }

    /// Checks that no file of the machine holds the key, nor the part of it that CLIs keep.
    pub(crate) fn assert_key_is_in_no_file(&self) {
        let tail = self.key.split_at(self.key.len() - 20).1;
        for (path, content) in files_under(self.env.root()) {
            assert!(!holds(&content, tail), "the key is in {}", path.display());
        }
    }
}

impl ClosedPort {
    /// Reserves a port without listening on it.
    pub(crate) fn new() -> Self {
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        rustix::net::bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let address = rustix::net::getsockname(&socket).unwrap();
        let address = SocketAddr::try_from(address).unwrap();
        Self {
            _bound: socket,
            port: address.port(),
        }
    }

    /// Returns the URL of the server that is not there.
    pub(crate) fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

/// Returns the model each CLI is told to ask for; it decides which tools codex offers.
pub(crate) const fn model(cli: Cli) -> &'static str {
    match cli {
        Cli::Claude => "claude-sonnet-4-5",
        Cli::Codex => "gpt-5.5",
        Cli::Gemini => "gemini-2.5-flash",
        Cli::Pi => "scripted-model",
    }
}

/// Returns the texts of a run's activities of a kind.
pub(crate) fn activities<'run>(run: &'run Run, kind: &str) -> Vec<&'run str> {
    let is_kind = |line: &&Value| line["type"] == "activity" && line["kind"] == kind;
    let activities = run.lines.iter().filter(is_kind);
    activities
        .filter_map(|line| line["text"].as_str())
        .collect()
}

/// Returns what requests were answered with, for messages.
pub(crate) fn answers_of(requests: &[RecordedRequest]) -> Vec<&ServedAnswer> {
    requests.iter().map(|request| &request.answer).collect()
}

/// Returns all files under a directory with their content, links with their target.
pub(crate) fn files_under(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut open = vec![dir.to_path_buf()];
    while let Some(path) = open.pop() {
        let kind = fs::symlink_metadata(&path).unwrap().file_type();
        if kind.is_dir() {
            let entries = fs::read_dir(&path).unwrap();
            open.extend(entries.map(|entry| entry.unwrap().path()));
        } else if kind.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            files.insert(path, target.into_os_string().into_encoded_bytes());
        } else if kind.is_file() {
            let content = fs::read(&path).unwrap();
            files.insert(path, content);
        }
    }
    files
}

/// Tells whether bytes hold a text.
pub(crate) fn holds(bytes: &[u8], text: &str) -> bool {
    let text = text.as_bytes();
    bytes.windows(text.len()).any(|window| window == text)
}

fn only_entry(dir: &Path) -> PathBuf {
    let mut entries = fs::read_dir(dir).unwrap();
    let entry = entries.next().unwrap().unwrap().path();
    assert!(
        entries.next().is_none(),
        "more than one in {}",
        dir.display()
    );
    entry
}
