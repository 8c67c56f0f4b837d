//! The ways by which work gets a proof from Kapi, each as a person would type it.
//!
//! Knows command lines, and nothing of what should come of them.

use std::path::Path;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::case_directory::{CaseDirectory, write};
use super::request::CorpusRequest;
use super::search::search;
use super::shell::{PARKED, ProgramEnd, Shell};

/// One way in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Entrance {
    /// Flags of `kapi run`.
    Run,
    /// A contract file.
    Contract,
    /// A contract that the agent drafts and a person approves.
    Draft,
    /// A goal that an agent proposes over MCP.
    Mcp,
    /// A race of two lanes.
    Race,
    /// A task of the queue.
    Task,
    /// A loop of the project.
    Loop,
    /// A Ralph workflow.
    Ralph,
    /// A commit that Kapi did not make.
    Prove,
    /// A search for a better number; only for changes that are measured.
    Autoresearch,
}

/// Every way of a proof, in the order of rotation.
pub(super) const ENTRIES: [Entrance; 9] = [
    Entrance::Run,
    Entrance::Task,
    Entrance::Prove,
    Entrance::Contract,
    Entrance::Loop,
    Entrance::Draft,
    Entrance::Mcp,
    Entrance::Race,
    Entrance::Ralph,
];

impl Entrance {
    /// Returns its name in tables.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Contract => "contract",
            Self::Draft => "draft",
            Self::Mcp => "mcp",
            Self::Race => "race",
            Self::Task => "task",
            Self::Loop => "loop",
            Self::Ralph => "ralph",
            Self::Prove => "prove",
            Self::Autoresearch => "autoresearch",
        }
    }

    /// Returns the option that names a directory which the agent never sees.
    pub(super) const fn hidden_option(self) -> &'static str {
        match self {
            Self::Autoresearch => "--held-back",
            Self::Run
            | Self::Contract
            | Self::Draft
            | Self::Mcp
            | Self::Race
            | Self::Task
            | Self::Loop
            | Self::Ralph
            | Self::Prove => "--hidden",
        }
    }

    /// Goes this way with a change, and returns how the last command ended.
    ///
    /// # Errors
    /// When something cannot be started or written.
    pub(super) fn perform(
        self,
        request: &CorpusRequest<'_>,
        location: &CaseDirectory,
        shell: &Shell,
    ) -> anyhow::Result<ProgramEnd> {
        let kapi = |words: &[&str], options: &[String]| {
            let mut words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            words.extend_from_slice(options);
            shell.run(request.kapi, &words, "")
        };
        let CorpusRequest { task, verify, .. } = *request;
        let agent = format!("command:{}", request.script);
        let options = request.options;
        match self {
            Self::Run => {
                let mut words = vec!["run", task, "--verify", verify, "--agent", &agent];
                words.extend(UNATTENDED);
                kapi(&words, options)
            }
            Self::Race => {
                let other = format!("{agent}\n:");
                let mut words = vec!["run", task, "--verify", verify];
                words.extend(["--race", &agent, "--race", &other]);
                words.extend(UNATTENDED);
                kapi(&words, options)
            }
            Self::Contract => {
                let file = contract(request, &agent, location)?;
                kapi(
                    &["run", "--contract", &file, "--yes", "--json", "--park"],
                    options,
                )
            }
            Self::Draft => {
                let agent = format!("command:{}", drafting(request));
                let words = ["goal", "new", task, "--draft", "--agent", &agent, "--json"];
                let drafted = kapi(&[&words[..], &["--judge", "none"]].concat(), options)?;
                if drafted.code == Some(5) {
                    approve(request, shell)
                } else {
                    Ok(drafted)
                }
            }
            Self::Mcp => propose(request, location, shell),
            Self::Task => {
                let words = ["task", "run", task, "--verify", verify, "--agent", &agent];
                kapi(&[&words[..], &["--json"]].concat(), options)
            }
            Self::Loop => {
                define_loop(request, &agent, location)?;
                kapi(&["loop", "run", "corpus", "--json"], options)
            }
            Self::Ralph => ralph(request, location, shell),
            Self::Autoresearch => search(request, location, shell),
            Self::Prove => {
                shell.must("git checkout --quiet -B change main")?;
                shell.must(request.script)?;
                shell.must("git add --all && git commit --quiet --no-verify --allow-empty --message change")?;
                let words = [
                    "prove", "HEAD", "--base", "main", "--verify", verify, "--json",
                ];
                kapi(&words, options)
            }
        }
    }
}

/// What every goal is begun with: nobody is asked, and one turn is all there is.
const UNATTENDED: [&str; 7] = [
    "--judge", "none", "--yes", "--json", "--turns", "1", "--park",
];

/// Returns what an agent drafts for this request.
fn draft(request: &CorpusRequest<'_>) -> Value {
    json!({
        "goal": request.task, "doneCriteria": "the verify command passes", "askBefore": [],
        "decisionStyle": "boring first", "goalType": "ticket", "surfaces": [],
        "verifyCommand": request.verify, "startPhase": "red", "maxTurns": 1,
        "sameModelJudge": true,
    })
}

/// What the agent does when it is asked to judge: it agrees, so that no refusal is a judge's.
const AGREES: &str = r#"if grep -q 'You are the judge' "$KAPI_PROMPT_FILE"; then
token=$(grep -o '"token": *"[^"]*"' "$KAPI_PROMPT_FILE" | head -n 1)
echo "{\"verdict\": \"done\", \"reason\": \"it is done\"${token:+, $token}}"
exit 0
fi"#;

/// Returns the script of an agent that drafts when it is asked to, agrees with itself, and works
/// otherwise.
fn drafting(request: &CorpusRequest<'_>) -> String {
    let draft = draft(request).to_string().replace('\'', r"'\''");
    format!(
        "if grep -q 'Draft a contract' \"$KAPI_PROMPT_FILE\"; then\n\
         printf '%s' '{draft}' | kapi agent set\nexit 0\nfi\n{AGREES}\n{}",
        request.script
    )
}

/// Writes a contract file and returns where it is.
fn contract(
    request: &CorpusRequest<'_>,
    agent: &str,
    location: &CaseDirectory,
) -> anyhow::Result<String> {
    // JSON is YAML.
    let contract = json!({"goal": request.task, "verify": request.verify, "agent": agent,
        "judge": "none", "turns": 1});
    let file = location.root().join("contract.yaml");
    write(&file, &contract.to_string())?;
    Ok(file.display().to_string())
}

/// Writes the definition of a loop.
fn define_loop(
    request: &CorpusRequest<'_>,
    agent: &str,
    location: &CaseDirectory,
) -> anyhow::Result<()> {
    let text = format!(
        "---\nname: corpus\nagent: sisyphus\nbackend: {}\nverify: [{}]\n---\n{}\n",
        json!(agent),
        json!(request.verify),
        request.task
    );
    write(
        &location.repository().join(".ilchul/loops/corpus.md"),
        &text,
    )
}

/// Proposes a goal as a client, whose agent the person's settings name, and approves it.
fn propose(
    request: &CorpusRequest<'_>,
    location: &CaseDirectory,
    shell: &Shell,
) -> anyhow::Result<ProgramEnd> {
    let agent = format!("command:{AGREES}\n{}", request.script);
    let settings = format!("[goal]\nagent = {}\njudge = \"none\"\n", json!(agent));
    write(&location.home().join(".config/kapi/config.toml"), &settings)?;
    let proposed = shell.run(request.kapi, &["mcp".to_owned()], &proposal(request))?;
    if proposed.stdout.contains("not_confirmed") {
        return approve(request, shell);
    }
    Ok(ProgramEnd {
        code: Some(1),
        ..proposed
    })
}

/// Returns what a client says to propose a goal.
fn proposal(request: &CorpusRequest<'_>) -> String {
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "corpus", "version": "1"}}});
    let set = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "until_done_set", "arguments": draft(request)}});
    format!("{hello}\n{set}\n")
}

/// Approves the first goal by the hash that is shown, and drives it.
fn approve(request: &CorpusRequest<'_>, shell: &Shell) -> anyhow::Result<ProgramEnd> {
    let words = |words: &[&str]| {
        words
            .iter()
            .map(|&word| word.to_owned())
            .collect::<Vec<_>>()
    };
    let detail = shell.run(request.kapi, &words(&["show", "1", "--all", "--json"]), "")?;
    let shown: Value = serde_json::from_str(&detail.stdout).with_context(|| {
        format!(
            "read the contract that was proposed: {}",
            detail.last_words()
        )
    })?;
    let hash = shown["contract_hash"].as_str();
    let hash = hash.context("find the hash of the contract")?;
    let approve = ["goal", "approve", "1", "--hash", hash, "--no-run", "--json"];
    let approved = shell.run(request.kapi, &words(&approve), "")?;
    if approved.code != Some(0) {
        return Ok(approved);
    }
    shell.run(
        request.kapi,
        &words(&["resume", "1", "--park", "--json"]),
        "",
    )
}

/// Plans one task with scripted agents and has it built.
fn ralph(
    request: &CorpusRequest<'_>,
    location: &CaseDirectory,
    shell: &Shell,
) -> anyhow::Result<ProgramEnd> {
    let plan = json!({
        "summary": request.task, "branch_type": "fix", "context": "A small repository.",
        "options": [{"name": "direct", "summary": "In one step."},
            {"name": "staged", "summary": "In two.", "rejected": "One is enough."}],
        "tasks": [{"id": "T-001", "title": "the fix", "description": request.task,
            "touches": ["**"], "isolation": "own", "verify": [request.verify],
            "criteria": ["AC-1"]}],
        "criteria": [{"id": "AC-1", "text": "The tests pass.", "verify": request.verify}],
        "excluded": ["Nothing else."], "risks": [], "verify": [request.verify],
    });
    let steps = |answer: Value| json!([{"steps": [{"answer": answer}]}]);
    let consensus = json!({"verdict": "consensus", "answers": ["It is in the plan."],
        "dissent": [], "plan": plan});
    let account = json!({"rationale": "It was verified.", "risks": ["None is known."],
        "follow_up": ["Nothing."]});
    let agent = json!({
        "turns": [{"steps": [{"bash": request.script}, {"claim": "done"}]}],
        "roles": {"thesis": steps(plan), "synthesis": steps(consensus),
            "accountant": steps(account)},
        "tasks": {"T-001": {"turns": [{"steps": [{"bash": request.script}, {"claim": "done"}]}]}},
    });
    let objections = json!({"strongest": "It could be larger.", "tension": "Small is easier.",
        "objections": [{"text": "Nothing blocks.", "blocking": false}]});
    let review = json!({"approve": true, "summary": "It is fine.", "findings": []});
    let reviewer = json!({"turns": [],
        "roles": {"antithesis": steps(objections), "reviewer": steps(review)}});
    let mut words = vec!["ralph".to_owned(), request.task.to_owned()];
    for (flag, script) in [("--agent", agent), ("--reviewer", reviewer)] {
        let file = location
            .root()
            .join(format!("{}.yaml", flag.trim_start_matches('-')));
        write(&file, &script.to_string())?;
        words.extend([flag.to_owned(), format!("script:{}", file.display())]);
    }
    let rest = "--judge none --unlinked --approve-plan auto --turns 1 --jobs 1 --json";
    words.extend(rest.split(' ').map(str::to_owned));
    words.extend_from_slice(request.options);
    words.insert(0, request.kapi.display().to_string());
    words.insert(0, PARKED.to_owned());
    words.insert(0, UNTIL_PARKED.to_owned());
    words.insert(0, "-c".to_owned());
    shell.run(Path::new("/bin/sh"), &words, "")
}

/// Runs a command, and interrupts it once it says `$0`, that it waits for a person: a workflow stays with
/// a task that does.
const UNTIL_PARKED: &str = r#": >../ralph.out; "$@" >../ralph.out 2>../ralph.err & pid=$!
while kill -0 $pid 2>/dev/null; do
    if grep -q "$0" ../ralph.out; then kill -INT $pid; break; fi
    sleep 0.1
done
wait $pid; code=$?
cat ../ralph.out; cat ../ralph.err >&2
exit $code"#;
