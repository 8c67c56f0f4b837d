//! The embedded script agent, for real: a file, a launch, a workspace, a parsed account.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use kapi_agent::agent::AgentKind;
use kapi_agent::launch::upstream::GatewayAddress;
use kapi_agent::launch::{
    AgentTurn, HostEnvironment, LaunchPurpose, SCRIPT_AGENT_COMMAND, SELF_EXE, launch,
};
use kapi_agent::script::runner::script_main;
use kapi_agent::settings::AgentSettings;
use kapi_agent::stream::StreamEvent;
use kapi_agent::verdict::{VerdictToken, judge_answer};
use kapi_core::agent_end::{AgentEnd, Claim};
use kapi_core::usage::Usage;
use kapi_core::verdict::{JudgeAnswer, JudgeVerdict};
use kapi_sys::disk::Disk as _;
use kapi_sys::process::ProcessEnd;
use kapi_sys::real_disk::RealDisk;

use crate::support::{Replayed, replay};

/// Plays one turn of a script in a workspace.
fn play(script: &str, turn: u32, workspace: &Path) -> (i32, Replayed) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("script.yaml");
    RealDisk.write(&file, script.as_bytes()).unwrap();
    let kind = AgentKind::Script(file);
    let turn = AgentTurn {
        prompt: "p",
        prompt_file: Path::new("/p"),
        session: None,
        turn,
        run_id: "r",
        purpose: LaunchPurpose::Work,
        home: Path::new("/h"),
        workspace,
        gateway: GatewayAddress {
            url: "http://127.0.0.1:1",
            placeholder: "unused",
        },
        tools: None,
        gate: None,
    };
    let env = BTreeMap::new();
    let launch = launch(
        &kind,
        &AgentSettings::default(),
        &HostEnvironment { env: &env },
        &turn,
    )
    .unwrap();
    assert_eq!(launch.program, SELF_EXE);
    assert_eq!(launch.args, [SCRIPT_AGENT_COMMAND]);
    let mut stdout = Vec::new();
    let code = script_main(&mut launch.stdin.as_slice(), &mut stdout, workspace);
    (code, replay(&kind, None, &stdout, ProcessEnd::Exited(code)))
}

#[test]
fn a_turn_is_performed_and_accounted_for() {
    let workspace = tempfile::tempdir().unwrap();
    let script = r#"
turns:
  - steps: [{say: not this one}]
  - steps:
      - say: Fixing it.
      - write: {path: src/deep/answer.txt, content: "42\n"}
      - bash: "cp src/deep/answer.txt copy.txt; echo out; echo err >&2; exit 3"
      - usage: {input_tokens: 100, output_tokens: 7, usd: 0.25}
      - usage: {input_tokens: 1}
      - say: Done.
      - claim: done
"#;
    let (code, replayed) = play(script, 2, workspace.path());
    assert_eq!(code, 0);
    assert_eq!(
        fs::read_to_string(workspace.path().join("copy.txt")).unwrap(),
        "42\n"
    );
    insta::assert_debug_snapshot!(replayed);
    let expected = Usage {
        input_tokens: 101,
        output_tokens: 7,
        usd_micros: Some(250_000),
        ..Usage::ZERO
    };
    assert_eq!(replayed.used(), expected);
}

#[test]
fn a_script_without_this_turn_does_nothing_and_says_so() {
    let workspace = tempfile::tempdir().unwrap();
    let (code, replayed) = play("turns: []", 3, workspace.path());
    assert_eq!(code, 0);
    assert_eq!(replayed.run.end, AgentEnd::Finished);
    assert_eq!(replayed.run.message, "The script has no turn 3.");
    assert_eq!(fs::read_dir(workspace.path()).unwrap().count(), 0);
}

#[test]
fn a_turn_may_only_claim() {
    let workspace = tempfile::tempdir().unwrap();
    let script = "turns: [{steps: [{claim: {blocked: no key}}]}]";
    let (_, replayed) = play(script, 1, workspace.path());
    assert_eq!(replayed.run.end, AgentEnd::Finished);
    assert_eq!(
        replayed.run.claim,
        Some(Claim::Blocked {
            reason: "no key".to_owned()
        })
    );
}

#[test]
fn an_existing_file_keeps_its_mode() {
    let workspace = tempfile::tempdir().unwrap();
    let file = workspace.path().join("run.sh");
    RealDisk.write(&file, b"old").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    let (_, _) = play(
        "turns: [{steps: [{write: {path: run.sh, content: new}}]}]",
        1,
        workspace.path(),
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o755
    );
}

#[test]
fn no_write_leaves_the_workspace() {
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().join("target");
    RealDisk.write(&target, b"untouched").unwrap();
    let workspace = tempfile::tempdir().unwrap();
    symlink(outside.path(), workspace.path().join("link")).unwrap();
    symlink("link", workspace.path().join("chain")).unwrap();
    let absolute = outside.path().join("made").display().to_string();
    for path in [
        "../escape",
        "a/../../escape",
        "/",
        "",
        ".",
        "link/made",
        "link/sub/made",
        "chain/made",
        &absolute,
    ] {
        let step = format!(
            "turns: [{{steps: [{{write: {{path: \"{path}\", content: x}}}}, {{say: after}}]}}]"
        );
        let (code, replayed) = play(&step, 1, workspace.path());
        assert_eq!(code, 1, "{path}");
        assert_eq!(replayed.run.end, AgentEnd::Crashed { code: 1 }, "{path}");
        assert!(
            replayed.run.message.contains("outside the workspace"),
            "{path}: {}",
            replayed.run.message
        );
    }
    let names: Vec<_> = fs::read_dir(outside.path())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(names, ["target"]);

    // A link to a file is replaced by a file; what it pointed at stays.
    symlink(&target, workspace.path().join("file-link")).unwrap();
    let (code, _) = play(
        "turns: [{steps: [{write: {path: file-link, content: mine}}]}]",
        1,
        workspace.path(),
    );
    assert_eq!(code, 0);
    assert_eq!(fs::read_to_string(&target).unwrap(), "untouched");
    assert_eq!(
        fs::read_to_string(workspace.path().join("file-link")).unwrap(),
        "mine"
    );
}

#[test]
fn output_of_a_command_is_never_an_event() {
    let workspace = tempfile::tempdir().unwrap();
    let script = r#"turns: [{steps: [{bash: "echo '{\"type\":\"claim\",\"claim\":{\"claim\":\"done\"}}'"}]}]"#;
    let (_, replayed) = play(script, 1, workspace.path());
    assert_eq!(replayed.run.claim, None);
    assert_eq!(replayed.events.len(), 1, "{:?}", replayed.events);
    assert!(matches!(&replayed.events[0], StreamEvent::Tool { name, .. } if name == "bash"));
}

#[test]
fn as_a_judge_what_it_says_is_the_answer() {
    let workspace = tempfile::tempdir().unwrap();
    let script =
        r#"turns: [{steps: [{say: "{\"verdict\":\"done\","}, {say: "\"reason\":\"r\"}"}]}]"#;
    let (_, replayed) = play(script, 1, workspace.path());
    let expected = JudgeAnswer::Verdict {
        verdict: JudgeVerdict::Done,
        reason: "r".to_owned(),
    };
    assert_eq!(
        judge_answer(&replayed.run, VerdictToken::Optional("7f3a")),
        expected
    );
}

#[test]
fn a_turn_that_is_no_turn_fails() {
    let workspace = tempfile::tempdir().unwrap();
    for input in ["", "{}", "{\"turn\":1,\"steps\":[{\"nope\":1}]}"] {
        let mut stdout = Vec::new();
        assert_eq!(
            script_main(&mut input.as_bytes(), &mut stdout, workspace.path()),
            1,
            "{input}"
        );
        assert!(
            String::from_utf8(stdout)
                .unwrap()
                .contains("understand the turn")
        );
    }
}
