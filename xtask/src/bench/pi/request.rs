//! What a request of the real Pi carries: its tools and its system prompt, as a scripted model server
//! receives them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use kapi_sys::disk::replace_durably;
use kapi_sys::real_disk::RealDisk;
use kapi_testkit::model_server::ModelServer;
use kapi_testkit::model_server::scenario::{AssistantTurn, ModelScenario, Route, ToolUse};
use serde_json::json;

use crate::tool::ToolCommand;

/// The words that begin the setup of a goal, and its first turn.
const SETUP: &str = "Draft a contract for a goal";
const BEGIN: &str = "The contract is approved.";
/// What the person wants.
const TASK: &str = "make the answer right";

/// The parts of a request that an extension can add to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestParts {
    /// The JSON of all tools.
    pub(super) tools: String,
    /// The system prompt.
    pub(super) system: String,
}

/// What is needed to start a Pi.
pub(super) struct PiProgram<'a> {
    /// The program.
    pub(super) pi: &'a Path,
    /// Kapi, for its package.
    pub(super) kapi: &'a Path,
    /// A directory for it, which is made.
    pub(super) scratch: PathBuf,
}

impl PiProgram<'_> {
    /// Returns the request of an ordinary prompt.
    pub(super) fn ordinary(&self, extension: Option<&Path>) -> anyhow::Result<RequestParts> {
        self.request(extension, "hello", "hello")
    }

    /// Returns the request with which the first turn of a goal begins.
    pub(super) fn of_goal(&self, extension: &Path) -> anyhow::Result<RequestParts> {
        let line = format!("/until-done {TASK}");
        self.request(Some(extension), &line, BEGIN)
    }

    fn request(
        &self,
        extension: Option<&Path>,
        typed: &str,
        begins: &str,
    ) -> anyhow::Result<RequestParts> {
        let server = ModelServer::start(scenario()).context("start the model server")?;
        self.prepare(&server.base_url())?;
        let tool = |program: &Path, args: &[&str]| self.tool(program, args);
        // Nobody is asked, and nothing of an earlier goal is in the way.
        tool(self.kapi, &["goal", "autopilot", "on"]).run()?;
        let mut args = vec!["-p", "--no-session", "--provider", "scripted"];
        args.extend(["--model", "scripted", "-ne", "-ns", "-np", "-nc"]);
        let extension = extension.map(|path| path.to_string_lossy().into_owned());
        if let Some(extension) = &extension {
            args.extend(["-e", extension]);
        }
        args.push(typed);
        tool(self.pi, &args).run()?;
        let requests = server.requests();
        let mut asked = requests.iter().filter(|request| request.api.is_some());
        let request = asked.find(|request| request.last_user.contains(begins));
        let body = &request
            .with_context(|| format!("find a request that begins with {begins:?}"))?
            .body;
        let messages = body["messages"].as_array().into_iter().flatten();
        let mut system = messages.filter(|message| message["role"] == "system");
        let system = system.next().context("find the system prompt")?["content"].to_string();
        ensure!(body["tools"].is_array(), "find the tools");
        Ok(RequestParts {
            tools: body["tools"].to_string(),
            system,
        })
    }

    /// Makes a home and a repository anew.
    fn prepare(&self, base_url: &str) -> anyhow::Result<()> {
        let (home, app) = (self.scratch.join("home"), self.scratch.join("app"));
        if self.scratch.exists() {
            fs::remove_dir_all(&self.scratch)?;
        }
        for made in [&home.join(".pi/agent"), &home.join(".config/kapi"), &app] {
            fs::create_dir_all(made).with_context(|| format!("create {}", made.display()))?;
        }
        let models = json!({ "providers": { "scripted": {
            "baseUrl": format!("{base_url}/v1"), "api": "openai-completions", "apiKey": "sk-pi",
            "compat": { "supportsDeveloperRole": false, "supportsReasoningEffort": false },
            "models": [{ "id": "scripted", "contextWindow": 128_000, "maxTokens": 8192 }],
        } } });
        let config = format!(
            "[judges.mine]\napi = \"openai\"\nbase_url = \"{base_url}/v1\"\napi_key_env = \"JUDGE_KEY\"\n"
        );
        let write = |path: PathBuf, text: &str| replace_durably(&RealDisk, &path, text.as_bytes());
        write(home.join(".pi/agent/models.json"), &models.to_string())?;
        write(home.join(".config/kapi/config.toml"), &config)?;
        write(app.join("test.sh"), "grep -q 42 answer.txt\n")?;
        let git = |args: &[&str]| self.tool(Path::new("git"), args).without_stdout().run();
        git(&["init", "--quiet", "--initial-branch=main"])?;
        git(&["add", "--all"])?;
        let identity = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"];
        git(&[&identity[..], &["commit", "--quiet", "--message=base"]].concat())
    }

    fn tool(&self, program: &Path, args: &[&str]) -> ToolCommand {
        let program = program.to_string_lossy();
        ToolCommand::new(&self.scratch.join("app"), &program, args)
            .env("HOME", self.scratch.join("home"))
            .env("KAPI_BIN", self.kapi)
            .env("JUDGE_KEY", "sk-judge")
            .env("PI_OFFLINE", "1")
            .env("PI_TELEMETRY", "0")
            .without_stdout()
    }
}

/// A model that drafts a contract and then only talks.
fn scenario() -> ModelScenario {
    let contract = json!({
        "goal": TASK,
        "doneCriteria": "sh test.sh exits 0",
        "askBefore": ["git push"],
        "decisionStyle": "the simplest way",
        "goalType": "ticket",
        "surfaces": [],
        "verifyCommand": "sh test.sh",
        "judgeModel": {"provider": "mine", "modelId": "judge"},
    });
    let set = ToolUse::Named {
        name: "until_done_set".to_owned(),
        arguments: contract,
    };
    let mut scenario = ModelScenario::new(vec![AssistantTurn::text("Hello.")]);
    scenario.routes = vec![Route::new(
        SETUP,
        vec![
            AssistantTurn::tools(vec![set]),
            AssistantTurn::text("It is drafted."),
        ],
    )];
    scenario
}
