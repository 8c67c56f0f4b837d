//! A run and the tool service: drafts and their refusals, whose turn it is, and hostile lines at the endpoint.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, thread};

use kapi_check::rules::proof::attribution::Attribution;
use kapi_check::rules::proof::policy::CheckPolicy;
use kapi_core::actor::Actor;
use kapi_core::id::{GoalId, Slug};
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::judge::{Judge, JudgeUnavailable};
use kapi_gateway::serve::StopSignal;
use kapi_run::run_service::RunService as _;
use kapi_run::tool_client;
use kapi_run::tool_client::CALL_BYTES_MAX;
use kapi_run::tool_endpoint::ToolEndpoint;
use kapi_store::layout::ProjectLayout;
use kapi_sys::clock::SystemClock;
use kapi_sys::real_disk::RealDisk;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{TaskTools, ToolCaller, ToolService};
use crate::record::project::Project;
use crate::rules::budget::Budget;
use crate::rules::command::GoalCommand;
use crate::rules::contract::{Base, CONTRACT_VERSION, Contract, Working};
use crate::rules::effect::next;
use crate::rules::event::ApprovalMeans;
use crate::rules::state::{Goal, GoalStatus};

struct ToolsRig {
    folder: TempDir,
}

fn person() -> Actor {
    Actor::Human {
        user: "ada".to_owned(),
    }
}

fn contract(judge: Judge) -> Contract {
    Contract {
        version: CONTRACT_VERSION,
        intent: "vague".to_owned(),
        done_criteria: "vague".to_owned(),
        verify: vec!["true".to_owned()],
        verify_timeout_ms: 1_000,
        verify_network: false,
        protect: Vec::new(),
        hidden: None,
        budget: Budget {
            turns: 3,
            tokens: None,
            usd_micros: None,
            wall_ms: None,
        },
        stall_after: 3,
        turn_timeout_ms: 1_000,
        agent: "command:true".to_owned(),
        models: Vec::new(),
        judge,
        judge_unavailable: JudgeUnavailable::Closed,
        base: Base {
            revision: "HEAD".to_owned(),
            commit: "c".repeat(40),
            tree: "t".repeat(40),
        },
        branch: "feat/x".to_owned(),
        sandbox: SandboxLevel::Native,
        network: NetworkMode::None,
        working: Working::default(),
        checks: CheckPolicy::default(),
        attribution: Attribution::default(),
        race: None,
        delivery: None,
    }
}

fn draft() -> Value {
    json!({
        "goal": "sharp", "doneCriteria": "it is 42", "askBefore": [], "decisionStyle": "decide",
        "goalType": "ticket", "surfaces": [], "sameModelJudge": true,
    })
}

impl ToolsRig {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join(".ilchul/goals")).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn tool_service(&self, autopilot: Option<Actor>) -> ToolService<'static> {
        ToolService {
            project: Project {
                disk: &RealDisk,
                clock: &SystemClock,
                layout: ProjectLayout::new(self.folder.path().to_path_buf()),
                owner: "test".to_owned(),
                home: None,
            },
            autopilot,
            judge_default: None,
            person: None,
            named_checks: Arc::new(|_| Ok(Vec::new())),
            tasks: TaskTools {
                are_offered: false,
                call: Arc::new(|_, _, _| None),
            },
        }
    }
}

/// Begins a goal whose drafting run is under way, and returns it with the run's name.
fn drafting(tool_service: &ToolService<'_>, judge: Judge) -> (GoalId, String) {
    let slug = Slug::parse("fix-it").unwrap();
    let project = &tool_service.project;
    let id = project
        .begin_setup(&person(), &slug, &contract(judge))
        .unwrap();
    let run = intended(project, &id);
    (id, run)
}

/// Records that what is due next is under way, and returns its run's name.
fn intended(project: &Project<'_>, id: &GoalId) -> String {
    let effect = next(&project.load(id).unwrap()).unwrap().id;
    let intend = GoalCommand::Intend {
        effect: effect.clone(),
    };
    let goal = project.submit(id, &Actor::Engine, &intend).unwrap().goal;
    goal.run_name(&effect)
}

fn caller<'a>(tool_service: &'a ToolService<'a>, goal: &'a GoalId, run: &'a str) -> ToolCaller<'a> {
    ToolCaller {
        tool_service,
        goal,
        run,
        hidden: Path::new("/nowhere"),
    }
}

fn loaded(tool_service: &ToolService<'_>, id: &GoalId) -> Goal {
    tool_service.project.load(id).unwrap()
}

#[test]
fn not_confirmed_records_the_draft_and_says_how_it_is_approved() {
    let rig = ToolsRig::new();
    let tool_service = rig.tool_service(None);
    let (id, run) = drafting(&tool_service, Judge::None);
    let answer = caller(&tool_service, &id, &run).call("until_done_set", draft());
    assert_eq!(answer["reason"], "not_confirmed", "{answer}");
    let goal = loaded(&tool_service, &id);
    assert_eq!(goal.status, GoalStatus::Proposed);
    assert_eq!(goal.contract.intent, "sharp");
    assert_eq!(answer["contractHash"], goal.contract_hash);
    let line = format!("kapi goal approve {id} --hash {}", goal.contract_hash);
    assert!(
        answer["message"].as_str().unwrap().contains(&line),
        "{answer}"
    );
}

#[test]
fn judge_unspecified_unless_a_person_named_one() {
    let rig = ToolsRig::new();
    let mut tool_service = rig.tool_service(None);
    let (id, run) = drafting(&tool_service, Judge::None);
    let mut unsaid = draft();
    unsaid["sameModelJudge"] = json!(false);
    let answer = caller(&tool_service, &id, &run).call("until_done_set", unsaid.clone());
    assert_eq!(answer["reason"], "judge_unspecified", "{answer}");
    assert_eq!(
        loaded(&tool_service, &id).status,
        GoalStatus::Setup,
        "nothing was recorded"
    );
    tool_service.judge_default = Some(Judge::Agent("codex".to_owned()));
    let answer = caller(&tool_service, &id, &run).call("until_done_set", unsaid.clone());
    assert_eq!(answer["reason"], "not_confirmed", "{answer}");
    let judge = loaded(&tool_service, &id).contract.judge;
    assert_eq!(judge, Judge::Agent("codex".to_owned()));

    let other = ToolsRig::new();
    let tool_service = other.tool_service(None);
    let (id, run) = drafting(&tool_service, Judge::Agent("gemini".to_owned()));
    let answer = caller(&tool_service, &id, &run).call("until_done_set", unsaid);
    assert_eq!(answer["reason"], "not_confirmed", "{answer}");
    let judge = loaded(&tool_service, &id).contract.judge;
    assert_eq!(judge, Judge::Agent("gemini".to_owned()));
}

#[test]
fn autopilot_approves_in_the_persons_name() {
    let rig = ToolsRig::new();
    let tool_service = rig.tool_service(Some(person()));
    let (id, run) = drafting(&tool_service, Judge::None);
    let answer = caller(&tool_service, &id, &run).call("until_done_set", draft());
    assert_eq!(answer["ok"], true, "{answer}");
    assert_eq!(answer["status"], "active");
    let goal = loaded(&tool_service, &id);
    assert_eq!(goal.approval, Some(ApprovalMeans::Autopilot));
    let log = tool_service.project.log(&id).unwrap();
    assert_eq!(log.last().unwrap().actor, person());
    let answer = caller(&tool_service, &id, &run).call("until_done_set", draft());
    assert_eq!(answer["reason"], "goal_exists", "{answer}");
}

#[test]
fn a_hidden_check_that_cannot_be_kept_lets_autopilot_approve_nothing() {
    let rig = ToolsRig::new();
    let tool_service = rig.tool_service(Some(person()));
    let slug = Slug::parse("fix-it").unwrap();
    let mut with_checks = contract(Judge::None);
    with_checks.hidden = Some(kapi_core::hidden_checks::HiddenCheckSet {
        source: "/no/such/directory".to_owned(),
        sha256: "0".repeat(64),
        files: 1,
    });
    let project = &tool_service.project;
    let id = project.begin_setup(&person(), &slug, &with_checks).unwrap();
    let run = intended(project, &id);
    let hidden = rig.path("hidden");
    let caller = ToolCaller {
        hidden: &hidden,
        ..caller(&tool_service, &id, &run)
    };
    let answer = caller.call("until_done_set", draft());
    assert_eq!(answer["reason"], "failed", "{answer}");
    assert_eq!(loaded(&tool_service, &id).status, GoalStatus::Proposed);
}

#[test]
fn wrong_run_for_whoever_has_no_turn() {
    let rig = ToolsRig::new();
    let tool_service = rig.tool_service(None);
    let (id, run) = drafting(&tool_service, Judge::None);
    let stranger = caller(&tool_service, &id, "001-other-t1-agent-1");
    assert_eq!(
        stranger.call("until_done_set", draft())["reason"],
        "wrong_run"
    );
    caller(&tool_service, &id, &run).call("until_done_set", draft());
    let hash = loaded(&tool_service, &id).contract_hash;
    let approve = GoalCommand::Approve {
        contract_hash: hash,
        means: ApprovalMeans::NamedHash,
    };
    tool_service
        .project
        .submit(&id, &person(), &approve)
        .unwrap();
    for speaker in [run.as_str(), "001-other-t1-agent-1"] {
        let answer =
            caller(&tool_service, &id, speaker).call("until_done_progress", json!({"note": "n"}));
        assert_eq!(answer["reason"], "wrong_run", "{answer}");
    }
}

#[test]
fn a_goal_that_is_not_there_is_not_invented() {
    let rig = ToolsRig::new();
    let tool_service = rig.tool_service(None);
    let id = GoalId::new(9, Slug::parse("nobody").unwrap());
    for tool in ["until_done_status", "until_done_set", "until_done_progress"] {
        let input = match tool {
            "until_done_set" => draft(),
            "until_done_progress" => json!({"note": "n"}),
            _ => Value::Null,
        };
        let answer = caller(&tool_service, &id, "r").call(tool, input);
        assert_eq!(answer["reason"], "no_active_goal", "{tool}: {answer}");
    }
}

/// Opens an endpoint for a drafting run and lets somebody use its socket.
fn at_counter(use_it: impl FnOnce(&Path)) {
    let rig = ToolsRig::new();
    let tool_service = rig.tool_service(None);
    let (id, run) = drafting(&tool_service, Judge::None);
    let directory = rig.path("tools");
    let caller = caller(&tool_service, &id, &run);
    let level = SandboxLevel::None;
    let endpoint = ToolEndpoint::open(&caller, level, &directory, Path::new("/bin/true")).unwrap();
    let socket = PathBuf::from(&endpoint.leading_here()[tool_client::SOCKET_VARIABLE]);
    let mode = fs::metadata(socket.parent().unwrap())
        .unwrap()
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o700);
    let stop = StopSignal::new().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| endpoint.serve(&stop));
        use_it(&socket);
        stop.raise();
    });
    drop(endpoint);
    assert!(!directory.exists(), "the counter is gone with its run");
    let status = tool_client::call(&socket, "until_done_status", &Value::Null);
    assert!(
        matches!(status, Err(tool_client::ClientError::Unreachable { .. })),
        "{status:?}"
    );
}

fn said(socket: &Path, bytes: &[u8]) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    // The other side may refuse before it has read everything.
    drop(stream.write_all(bytes));
    drop(stream.shutdown(Shutdown::Write));
    let mut answer = String::new();
    // One that is broken off says nothing.
    drop(stream.read_to_string(&mut answer));
    answer
}

#[test]
fn hostile_lines_are_refused_and_the_next_call_is_answered() {
    at_counter(|socket| {
        for line in [
            "\n",
            "{}\n",
            "[1]\n",
            "\u{0}\n",
            "{\"tool\":7,\"input\":{}}\n",
            "{\"tool\":\"until_done_status\",\"input\":{},\"run\":\"another\"}\n",
        ] {
            let answer: Value = serde_json::from_str(&said(socket, line.as_bytes())).unwrap();
            assert_eq!(answer["reason"], "bad_input", "{line:?}");
        }
        let unknown = said(socket, b"{\"tool\":\"rm\",\"input\":{}}\n");
        assert!(unknown.contains("unknown_tool"), "{unknown}");
        assert_eq!(
            said(socket, b"{\"tool\":\"until_done_status\""),
            "",
            "half a call"
        );
        assert_eq!(said(socket, b""), "");
        let status = tool_client::call(socket, "until_done_status", &json!({})).unwrap();
        assert_eq!(status["ok"], true);
        assert_eq!(status["state"]["status"], "setup");
    });
}

#[test]
fn a_call_without_end_is_not_kept() {
    at_counter(|socket| {
        let long = vec![b'x'; CALL_BYTES_MAX + 64 * 1024];
        let answer = said(socket, &long);
        assert!(
            answer.is_empty() || answer.contains("bad_input"),
            "{answer}"
        );
        let big = json!({"goal": "x".repeat(CALL_BYTES_MAX)});
        let refused = tool_client::call(socket, "until_done_set", &big);
        assert!(matches!(
            refused,
            Err(tool_client::ClientError::TooLong { .. })
        ));
        let status = tool_client::call(socket, "until_done_status", &json!({})).unwrap();
        assert_eq!(status["ok"], true);
    });
}

#[test]
fn connections_that_say_nothing_do_not_keep_others_waiting_nor_the_run_from_ending() {
    at_counter(|socket| {
        let silent: Vec<UnixStream> = (0..4)
            .map(|_| UnixStream::connect(socket).unwrap())
            .collect();
        let status = tool_client::call(socket, "until_done_status", &json!({})).unwrap();
        assert_eq!(status["ok"], true);
        drop(silent);
    });
}

#[test]
fn a_long_path_leads_to_the_socket_too() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("d".repeat(120)).join("e".repeat(120));
    fs::create_dir_all(&deep).unwrap();
    let rig = ToolsRig::new();
    let tool_service = rig.tool_service(None);
    let (id, run) = drafting(&tool_service, Judge::None);
    let caller = caller(&tool_service, &id, &run);
    let endpoint = ToolEndpoint::open(
        &caller,
        SandboxLevel::None,
        &deep.join("t"),
        Path::new("/bin/true"),
    )
    .unwrap();
    let socket = PathBuf::from(&endpoint.leading_here()[tool_client::SOCKET_VARIABLE]);
    let stop = StopSignal::new().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| endpoint.serve(&stop));
        let status = tool_client::call(&socket, "until_done_status", &json!({})).unwrap();
        assert_eq!(status["ok"], true);
        stop.raise();
    });
}

#[test]
fn the_kernels_tools_are_asked_in_the_name_of_the_goal_or_not_there() {
    let rig = ToolsRig::new();
    let mut tool_service = rig.tool_service(None);
    let (id, run) = drafting(&tool_service, Judge::None);
    let input = json!({"taskId": "task_1"});
    tool_service.tasks.call = Arc::new(|goal: &GoalId, tool: &str, input| {
        let details = json!({"goal": goal, "tool": tool, "input": input});
        (tool == "background_status").then(|| json!({"ok": true, "details": details}))
    });
    let answer = caller(&tool_service, &id, &run).call("background_status", input.clone());
    assert_eq!(answer["ok"], true, "{answer}");
    let details = json!({"goal": id, "tool": "background_status", "input": input});
    assert_eq!(answer["details"], details);
    let unknown = caller(&tool_service, &id, &run).call("background_fly", json!({}));
    assert_eq!(unknown["reason"], "unknown_tool", "{unknown}");
}
