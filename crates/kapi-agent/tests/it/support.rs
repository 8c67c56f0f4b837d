//! Feeding recorded output to a parser, and checking what must hold for every run.

use kapi_agent::agent::AgentKind;
use kapi_agent::stream::{StreamEvent, StreamParser};
use kapi_core::agent_end::AgentRun;
use kapi_core::usage::Usage;
use kapi_sys::process::ProcessEnd;

/// A run as the caller sees it.
#[derive(Debug)]
pub(crate) struct Replayed {
    pub(crate) events: Vec<StreamEvent>,
    pub(crate) run: AgentRun,
}

impl Replayed {
    /// Returns everything that was used: what was reported and what was left.
    pub(crate) fn used(&self) -> Usage {
        let mut used = self.run.usage;
        for event in &self.events {
            if let StreamEvent::Used(usage) = event {
                used.add(usage);
            }
        }
        used
    }
}

/// Feeds lines to a new parser and ends the run.
pub(crate) fn replay(
    kind: &AgentKind,
    session: Option<&str>,
    output: &[u8],
    end: ProcessEnd,
) -> Replayed {
    let mut parser = StreamParser::new(kind, session);
    let mut events = Vec::new();
    for line in output.split(|byte| *byte == b'\n') {
        events.extend(parser.stdout_line(line));
    }
    let run = parser.finish(end, "", "");
    check_invariants(&events, &run);
    Replayed { events, run }
}

/// What holds for every run of every agent, however strange its output.
pub(crate) fn check_invariants(events: &[StreamEvent], run: &AgentRun) {
    let n_tools = events
        .iter()
        .filter(|event| matches!(event, StreamEvent::Tool { .. }))
        .count();
    assert_eq!(usize::try_from(run.tools).unwrap(), n_tools);
    assert!(run.message.len() <= 64 * 1024);
    for event in events {
        match event {
            StreamEvent::Tool { name, detail } => {
                check_line(name);
                check_line(detail);
            }
            StreamEvent::Retrying { message } => check_line(message),
            StreamEvent::Text(text) => assert!(text.len() <= 64 * 1024),
            StreamEvent::Session(session) => assert!(!session.is_empty()),
            StreamEvent::Used(usage) => assert!(!usage.is_zero()),
        }
    }
}

fn check_line(line: &str) {
    assert!(!line.contains(|c: char| c.is_control()), "{line:?}");
    assert!(line.chars().count() <= 200, "{line:?}");
}
