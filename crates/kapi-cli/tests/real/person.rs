//! A CLI as a person starts it in their repository, with their own settings and Kapi set up in them.
//!
//! No run of Kapi's is around it: what it knows of Kapi, `kapi setup` has told it.

use std::path::{Path, PathBuf};
use std::process::Command;

use kapi_testkit::agent_tools::{AgentTools, Cli};
use serde_json::json;

use crate::environment::write;
use crate::machine::{Machine, model};

/// Returns the program of a CLI.
pub(crate) fn binary(cli: Cli) -> PathBuf {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tools = AgentTools::ensure(&checkout.canonicalize().unwrap(), &[cli]);
    tools.unwrap().binary(cli).unwrap().to_path_buf()
}

/// Writes a person's settings of a CLI, and has Kapi set up in it.
pub(crate) fn setup(machine: &Machine, cli: Cli) {
    let env = &machine.env;
    match cli {
        Cli::Claude => write(&env.home().join(".claude.json"), "{\"numStartups\": 1}\n"),
        Cli::Codex => write(&env.home().join(".codex/config.toml"), codex(machine)),
        Cli::Gemini => write(&env.home().join(".gemini/settings.json"), GEMINI),
        Cli::Pi => panic!("Pi has no servers"),
    }
    let set_up = env.kapi(&["setup", cli.name(), "--yes"]);
    assert_eq!(set_up.code, 0, "{set_up:?}");
}

fn codex(machine: &Machine) -> String {
    format!(
        "model = {:?} # mine\nmodel_provider = \"scripted\"\ncheck_for_update_on_startup = false\n\
         [model_providers.scripted]\nname = \"scripted\"\nbase_url = \"{}/v1\"\n\
         env_key = \"OPENAI_API_KEY\"\nwire_api = \"responses\"\n\
         [features]\napps = false\nplugins = false\n[analytics]\nenabled = false\n",
        model(Cli::Codex),
        machine.server.base_url(),
    )
}

const GEMINI: &str = "{\n  // mine\n  \"security\": {\n    \"auth\": {\"selectedType\": \"gemini-api-key\"},\n    \
    \"folderTrust\": {\"enabled\": false}\n  },\n  \"privacy\": {\"usageStatisticsEnabled\": false},\n  \
    \"general\": {\"enableAutoUpdate\": false, \"enableAutoUpdateNotification\": false}\n}\n";

/// Returns a CLI in the person's repository, with their settings and the scripted model.
pub(crate) fn program(machine: &Machine, cli: Cli) -> Command {
    let env = &machine.env;
    let mut command = env.command(binary(cli).to_str().unwrap(), &env.repository());
    let url = machine.server.base_url();
    match cli {
        Cli::Claude => command
            .env("ANTHROPIC_BASE_URL", url)
            .env("ANTHROPIC_API_KEY", machine.key())
            .env("IS_SANDBOX", "1")
            .env("DISABLE_AUTOUPDATER", "1")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        Cli::Codex => command
            .env("CODEX_HOME", env.home().join(".codex"))
            .env("OPENAI_API_KEY", machine.key()),
        Cli::Gemini => command
            .env("GEMINI_API_KEY", machine.key())
            .env("GOOGLE_GEMINI_BASE_URL", url)
            .env("GEMINI_CLI_NO_RELAUNCH", "true"),
        Cli::Pi => panic!("Pi has no servers"),
    };
    command
}

/// Returns a CLI that is given something to do, and may use every tool.
pub(crate) fn started(machine: &Machine, cli: Cli, prompt: &str) -> Command {
    let mut command = program(machine, cli);
    match cli {
        Cli::Claude => command
            .args(["-p", prompt, "--model", model(cli)])
            .arg("--dangerously-skip-permissions"),
        Cli::Codex => command
            .args(["exec", "--skip-git-repo-check"])
            .args(["--dangerously-bypass-approvals-and-sandbox", prompt]),
        Cli::Gemini => command.args(["-p", prompt, "-y", "--skip-trust", "-m", model(cli)]),
        Cli::Pi => panic!("Pi has no servers"),
    };
    command
}

/// Has the CLI itself say which servers it knows.
pub(crate) fn servers(machine: &Machine, cli: Cli) -> Command {
    let mut command = program(machine, cli);
    command.args(["mcp", "list"]);
    if cli == Cli::Gemini {
        // It looks at no server in a directory that it does not trust.
        let trusted = json!({ machine.env.repository().to_str().unwrap(): "TRUST_FOLDER" });
        let file = machine.env.home().join(".gemini/trustedFolders.json");
        write(&file, trusted.to_string());
    }
    command
}
