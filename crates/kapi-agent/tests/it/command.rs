//! Any program as an agent: its exit code and its output.

use kapi_agent::agent::AgentKind;
use kapi_agent::stream::{StreamEvent, StreamParser};
use kapi_agent::verdict::{VerdictToken, judge_answer};
use kapi_core::agent_end::AgentEnd;
use kapi_core::verdict::{JudgeAnswer, JudgeVerdict};
use kapi_sys::process::ProcessEnd;

fn ended(end: ProcessEnd, stdout: &str) -> kapi_core::agent_end::AgentRun {
    let mut parser = StreamParser::new(&AgentKind::Command("true".to_owned()), None);
    for line in stdout.lines() {
        let text = StreamEvent::Text(line.to_owned());
        assert_eq!(parser.stdout_line(line.as_bytes()), [text]);
    }
    parser.finish(end, "API Error: 500", stdout)
}

#[test]
fn exit_code_0_ends_a_turn_even_in_silence() {
    let run = ended(ProcessEnd::Exited(0), "");
    assert_eq!(
        (run.end, run.tools, run.session),
        (AgentEnd::Finished, 0, None)
    );
    assert_eq!(ended(ProcessEnd::Exited(0), "one\ntwo").message, "one\ntwo");
}

#[test]
fn anything_else_is_a_crash_or_a_limit() {
    for (end, expected) in [
        (ProcessEnd::Exited(7), AgentEnd::Crashed { code: 7 }),
        (ProcessEnd::Signaled(15), AgentEnd::Crashed { code: 143 }),
        (ProcessEnd::DeadlinePassed, AgentEnd::DeadlinePassed),
    ] {
        assert_eq!(ended(end, "words").end, expected);
    }
}

#[test]
fn as_a_judge_its_output_is_the_answer() {
    let token = VerdictToken::Optional("7f3a");
    let said = ended(
        ProcessEnd::Exited(0),
        "{\"verdict\":\"done\",\n\"reason\":\"r\"}",
    );
    let answer = judge_answer(&said, token);
    let expected = JudgeAnswer::Verdict {
        verdict: JudgeVerdict::Done,
        reason: "r".to_owned(),
    };
    assert_eq!(answer, expected);
    let failed = ended(
        ProcessEnd::Exited(1),
        "{\"verdict\":\"done\",\"reason\":\"r\"}",
    );
    let answer = judge_answer(&failed, token);
    assert!(matches!(answer, JudgeAnswer::Unavailable(_)), "{answer:?}");
}
