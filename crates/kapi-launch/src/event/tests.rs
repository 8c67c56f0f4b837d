//! Events of launches as they stand in a log.

use kapi_core::evidence::EvidenceFile;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::usage::Usage;
use kapi_run::spending::usage_meter::UsageLimits;
use kapi_status::file::SandboxMode;

use super::{EndedAgent, LaunchEvent, LaunchRequest};
use crate::record::{LaunchState, SandboxRecord, VERSION, WorkState, WorkspaceKind};

const SANDBOX: &str = r#"{"version":1,"id":"7","project":"/p","mode":"overlay","made":"layer","level":"native","network":"filtered","agent":"claude","branch":null,"base":null,"below":null,"port_base":20000,"launches":1,"state":"running","work":"pending","created_at_ms":1,"updated_at_ms":2,"exit_code":null,"error":null,"error_class":null,"advice":null,"grade":null,"n_changed":0}"#;

fn golden(event: &LaunchEvent, line: &str) {
    assert_eq!(serde_json::to_string(event).unwrap(), line);
    assert_eq!(&serde_json::from_str::<LaunchEvent>(line).unwrap(), event);
}

fn sandbox() -> Box<SandboxRecord> {
    Box::new(SandboxRecord {
        version: VERSION,
        id: "7".to_owned(),
        project: "/p".into(),
        mode: SandboxMode::Overlay,
        made: WorkspaceKind::Layer,
        level: SandboxLevel::Native,
        network: NetworkMode::Filtered,
        agent: "claude".to_owned(),
        branch: None,
        base: None,
        below: None,
        port_base: 20_000,
        launches: 1,
        state: LaunchState::Running,
        work: WorkState::Pending,
        created_at_ms: 1,
        updated_at_ms: 2,
        exit_code: None,
        error: None,
        error_class: None,
        advice: None,
        grade: None,
        n_changed: 0,
    })
}

#[test]
fn golden_lines() {
    let request = LaunchRequest {
        task: "do it".to_owned(),
        command: vec!["launch".to_owned()],
        limits: UsageLimits {
            tokens: Some(5),
            usd_micros: None,
        },
        deadline_ms: 3,
        is_interactive: false,
    };
    let line = format!(
        r#"{{"type":"launched","data":{{"sandbox":{SANDBOX},"request":{{"task":"do it","command":["launch"],"limits":{{"tokens":5}},"deadline_ms":3}}}}}}"#
    );
    let launched = LaunchEvent::Launched {
        sandbox: sandbox(),
        request: Box::new(request),
    };
    golden(&launched, &line);
    let recorded = LaunchEvent::RunRecorded {
        run: "1".to_owned(),
        files: vec![EvidenceFile {
            name: "a".to_owned(),
            bytes: 0,
            sha256: "e3".to_owned(),
        }],
        used: Usage::ZERO,
    };
    golden(
        &recorded,
        r#"{"type":"run_recorded","data":{"run":"1","files":[{"name":"a","bytes":0,"sha256":"e3"}],"used":{"input_tokens":0,"output_tokens":0}}}"#,
    );
    let with = [
        ("committed", LaunchEvent::Committed { sandbox: sandbox() }),
        ("ended", LaunchEvent::Ended { sandbox: sandbox() }),
        ("entered", LaunchEvent::Entered { sandbox: sandbox() }),
        ("left", LaunchEvent::Left { sandbox: sandbox() }),
        ("merged", LaunchEvent::Merged { sandbox: sandbox() }),
    ];
    for (kind, event) in with {
        let line = format!(r#"{{"type":"{kind}","data":{{"sandbox":{SANDBOX}}}}}"#);
        golden(&event, &line);
    }
    let text = "use the old parser".to_owned();
    golden(
        &LaunchEvent::PersonSaid { text },
        r#"{"type":"person_said","data":{"text":"use the old parser"}}"#,
    );
    golden(
        &LaunchEvent::Told { messages: 2 },
        r#"{"type":"told","data":{"messages":2}}"#,
    );
    golden(&LaunchEvent::RunsRemoved, r#"{"type":"runs_removed"}"#);
}

#[test]
fn golden_lines_of_agents_and_limits() {
    let agent = EndedAgent {
        exit_code: 1,
        error: Some("the agent exited with code 1".to_owned()),
        message: "no".to_owned(),
        grade: Some("native".to_owned()),
    };
    golden(
        &LaunchEvent::AgentEnded {
            agent: Box::new(agent),
        },
        r#"{"type":"agent_ended","data":{"agent":{"exit_code":1,"error":"the agent exited with code 1","message":"no","grade":"native"}}}"#,
    );
    let well = EndedAgent {
        exit_code: 0,
        error: None,
        message: String::new(),
        grade: None,
    };
    golden(
        &LaunchEvent::AgentEnded {
            agent: Box::new(well),
        },
        r#"{"type":"agent_ended","data":{"agent":{"exit_code":0}}}"#,
    );
    let limits = UsageLimits {
        tokens: Some(9),
        usd_micros: None,
    };
    golden(
        &LaunchEvent::LimitsRaised { limits },
        r#"{"type":"limits_raised","data":{"limits":{"tokens":9}}}"#,
    );
    golden(&LaunchEvent::Settled, r#"{"type":"settled"}"#);
}
