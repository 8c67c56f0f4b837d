//! The real agent CLIs before the gateway, and the scripted model server behind it.
//!
//! Each CLI holds the placeholder alone and must do its work; and once the budget is spent, it must
//! end instead of asking again and again. The programs come from the package registry once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use kapi_gateway::model::dialect::ModelDialect;
use kapi_gateway::model::event::{GatewayEvent, GatewayRefusal};
use kapi_testkit::agent_tools::{AgentTools, Cli};
use kapi_testkit::model_server::ModelServer;
use kapi_testkit::model_server::record::{RecordedRequest, ServedAnswer};
use kapi_testkit::model_server::scenario::{AssistantTurn, ModelScenario, ReplyUsage};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tempfile::TempDir;

use crate::model_rig::{PLACEHOLDER, Provide, Rig, SECRET, Setup, run};

/// How long a CLI may take; one session is a matter of seconds.
const DEADLINE_S: i64 = 90;
const NOT_THIS_ONE: Provide<'_> = &|_, _| panic!("the scripted server is another");
const USAGE: ReplyUsage = ReplyUsage {
    input: 100,
    output: 20,
    cache_read: 3000,
    cache_write: 400,
    reasoning: 7,
};

/// A CLI's command line, environment and files.
struct Launch {
    args: Vec<String>,
    environment: Vec<(&'static str, String)>,
    file: Option<(&'static str, String)>,
}

/// How a CLI is made to speak to a gateway.
struct Driven {
    cli: Cli,
    dialect: ModelDialect,
    /// What the scripted server's own base URL ends with.
    version: &'static str,
    launch: fn(&str) -> Launch,
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

const CLAUDE: Driven = Driven {
    cli: Cli::Claude,
    dialect: ModelDialect::Anthropic,
    version: "",
    launch: |url| Launch {
        args: words(
            "-p --output-format stream-json --verbose --dangerously-skip-permissions \
             --setting-sources user --strict-mcp-config Begin",
        ),
        environment: vec![
            ("ANTHROPIC_BASE_URL", url.to_owned()),
            ("ANTHROPIC_API_KEY", PLACEHOLDER.to_owned()),
            ("IS_SANDBOX", "1".to_owned()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
        ],
        file: None,
    },
};

const CODEX: Driven = Driven {
    cli: Cli::Codex,
    dialect: ModelDialect::Responses,
    version: "/v1",
    launch: |url| Launch {
        args: words(
            "exec --json --dangerously-bypass-approvals-and-sandbox --skip-git-repo-check \
             -m scripted Begin",
        ),
        environment: vec![("SCRIPTED_KEY", PLACEHOLDER.to_owned())],
        file: Some((
            ".codex/config.toml",
            format!(
                "model_provider = \"gateway\"\ncheck_for_update_on_startup = false\n\
                 [analytics]\nenabled = false\n\
                 [features]\nplugins = false\napps = false\n\
                 [model_providers.gateway]\nname = \"gateway\"\nbase_url = \"{url}/v1\"\n\
                 env_key = \"SCRIPTED_KEY\"\nwire_api = \"responses\"\n"
            ),
        )),
    },
};

const GEMINI: Driven = Driven {
    cli: Cli::Gemini,
    dialect: ModelDialect::Gemini,
    version: "",
    launch: |url| Launch {
        args: words("-y --skip-trust -m gemini-2.5-pro -o stream-json -p Begin"),
        environment: vec![
            ("GEMINI_API_KEY", PLACEHOLDER.to_owned()),
            ("GOOGLE_GEMINI_BASE_URL", url.to_owned()),
            ("GEMINI_CLI_NO_RELAUNCH", "true".to_owned()),
        ],
        file: Some((
            ".gemini/settings.json",
            r#"{"security":{"auth":{"selectedType":"gemini-api-key"},"folderTrust":{"enabled":
            false}},"privacy":{"usageStatisticsEnabled":false},"telemetry":{"enabled":false},
            "general":{"enableAutoUpdate":false,"enableAutoUpdateNotification":false}}"#
                .to_owned(),
        )),
    },
};

const PI: Driven = Driven {
    cli: Cli::Pi,
    dialect: ModelDialect::Chat,
    version: "/v1",
    launch: |url| Launch {
        args: words("-p --mode json --provider gateway --model scripted Begin"),
        environment: vec![
            ("SCRIPTED_KEY", PLACEHOLDER.to_owned()),
            ("PI_OFFLINE", "1".to_owned()),
            ("PI_TELEMETRY", "0".to_owned()),
        ],
        file: Some((
            ".pi/agent/models.json",
            format!(
                r#"{{"providers":{{"gateway":{{"baseUrl":"{url}/v1","api":"openai-completions",
                "apiKey":"SCRIPTED_KEY","compat":{{"supportsDeveloperRole":false,
                "supportsReasoningEffort":false}},"models":[{{"id":"scripted","contextWindow":
                128000,"maxTokens":8192,"cost":{{"input":1,"output":2,"cacheRead":0.1,
                "cacheWrite":0}}}}]}}}}}}"#
            ),
        )),
    },
};

/// A home and a workspace, and the program.
struct Place {
    folder: TempDir,
    binary: PathBuf,
}

impl Place {
    fn new(cli: Cli) -> Self {
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let checkout = checkout.canonicalize().expect("the checkout is there");
        let tools = AgentTools::ensure(&checkout, &[cli]).expect("the CLI can be installed");
        // Codex makes no helper binaries for a home under the system's temporary folder.
        let homes = checkout.join(".test-tools/homes");
        fs::create_dir_all(&homes).expect("a folder for homes");
        let mut named = tempfile::Builder::new();
        let folder = named.prefix(cli.name()).tempdir_in(homes);
        let folder = folder.expect("a folder");
        for part in ["home", "workspace"] {
            fs::create_dir(folder.path().join(part)).expect("a folder");
        }
        let binary = tools.binary(cli).expect("it was required").to_path_buf();
        Self { folder, binary }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the test drives the CLI itself, and its files need not survive a crash"
    )]
    fn start(&self, launch: &Launch) -> Child {
        let home = self.folder.path().join("home");
        if let Some((name, content)) = &launch.file {
            let path = home.join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, content).expect("a file");
        }
        Command::new(&self.binary)
            .args(&launch.args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").expect("a path"))
            .env("HOME", home)
            .env("LANG", "C.UTF-8")
            .env("TERM", "dumb")
            .envs(launch.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(self.folder.path().join("workspace"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the CLI starts")
    }
}

/// Waits for a CLI's end, and makes one where it takes too long.
fn wait(mut child: Child) -> ExitStatus {
    let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).expect("a child");
    let mut ended = [PollFd::new(&process, PollFlags::IN)];
    let deadline = Timespec {
        tv_sec: DEADLINE_S,
        tv_nsec: 0,
    };
    if poll(&mut ended, Some(&deadline)).expect("a descriptor") == 0 {
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
        panic!("the CLI does not end by itself");
    }
    child.wait().expect("it has ended")
}

/// Runs a CLI against a scripted server through a gateway.
fn drive(
    driven: &Driven,
    tokens_max: u64,
    test: &dyn Fn(&Rig<'_>, &ModelServer, ExitStatus, &Path),
) {
    let location = Place::new(driven.cli);
    let server = ModelServer::start(ModelScenario {
        usage: USAGE,
        require_key: Some(SECRET.to_owned()),
        ..ModelScenario::new(vec![
            AssistantTurn::bash("printf done > made.txt"),
            AssistantTurn::text("It is made."),
        ])
    });
    let server = server.expect("a server");
    let setup = Setup {
        base_url: Some(format!("{}{}", server.base_url(), driven.version)),
        tokens_max,
        ..Setup::new(driven.dialect)
    };
    run(setup, NOT_THIS_ONE, &|rig| {
        let launch = (driven.launch)(&format!("http://{}", rig.address));
        let status = wait(location.start(&launch));
        let made = location.folder.path().join("workspace/made.txt");
        test(rig, &server, status, &made);
    });
}

fn answered(request: &&RecordedRequest) -> bool {
    matches!(
        request.answer,
        ServedAnswer::Step | ServedAnswer::Side | ServedAnswer::Judge
    )
}

fn works(driven: &Driven) {
    drive(driven, u64::MAX, &|rig, server, status, made| {
        assert!(status.success(), "{status} {:#?}", rig.events());
        assert_eq!(fs::read_to_string(made).expect("the agent's work"), "done");
        let requests = server.requests();
        let n_calls = requests.iter().filter(answered).count() as u64;
        assert!(n_calls >= 2, "{requests:#?}");
        let totals = rig.totals();
        assert_eq!(
            (totals.n_calls, totals.n_unmetered),
            (n_calls, 0),
            "{:#?}",
            rig.events()
        );
        assert_eq!(totals.usage.input_tokens, n_calls * USAGE.prompt_total());
        assert_eq!(totals.usage.output_tokens, n_calls * USAGE.answer_total());
    });
}

fn ends_when_spent(driven: &Driven) {
    drive(driven, 1, &|rig, server, _status, _made| {
        let refused = GatewayEvent::Refused {
            why: GatewayRefusal::Spent,
        };
        let events = rig.events();
        let n_refused = events.iter().filter(|event| **event == refused).count();
        // Once, and at most once more for a side request; none of them waits and asks again.
        assert!((1..=2).contains(&n_refused), "{events:#?}");
        assert_eq!(server.requests().iter().filter(answered).count(), 1);
    });
}

/// Slow because the programs are.
mod real {
    use super::{CLAUDE, CODEX, GEMINI, PI, ends_when_spent, works};

    #[test]
    fn claude_works_with_the_placeholder_alone() {
        works(&CLAUDE);
    }

    #[test]
    fn codex_works_with_the_placeholder_alone() {
        works(&CODEX);
    }

    #[test]
    fn gemini_works_with_the_placeholder_alone() {
        works(&GEMINI);
    }

    #[test]
    fn pi_works_with_the_placeholder_alone() {
        works(&PI);
    }

    #[test]
    fn claude_ends_when_the_budget_is_spent() {
        ends_when_spent(&CLAUDE);
    }

    #[test]
    fn codex_ends_when_the_budget_is_spent() {
        ends_when_spent(&CODEX);
    }

    #[test]
    fn gemini_ends_when_the_budget_is_spent() {
        ends_when_spent(&GEMINI);
    }

    #[test]
    fn pi_ends_when_the_budget_is_spent() {
        ends_when_spent(&PI);
    }
}
