//! What an agent's stream says, as people read it.
//!
//! Foreign text: shown, never acted on. A line that is no event of the agent's is shown as it is.

use kapi_agent::agent::Kind;
use kapi_agent::stream::{StreamEvent, StreamParser};
use kapi_core::kernel::task::Task;

use crate::kernel::Kernel;

/// Reads one transcript.
#[derive(Debug)]
pub(super) struct Said(Option<StreamParser>);

impl Said {
    /// Reads what the agent of a task says; of one that nobody knows, every line as it is.
    pub(super) fn of(kernel: &Kernel<'_>, task: &Task) -> Self {
        let request = &task.request;
        let of_profile = kernel.profiles.find(&request.agent).ok();
        let backend = request
            .backend
            .clone()
            .or_else(|| of_profile?.backend.clone())
            .or_else(|| kernel.terms.default_backend.clone());
        let kind = backend.and_then(|backend| Kind::parse(&backend).ok());
        // A program's own lines are what it says.
        let kind = kind.filter(|kind| !matches!(kind, Kind::Command(_)));
        Self(kind.map(|kind| StreamParser::new(&kind, None)))
    }

    /// Returns what a line says.
    pub(super) fn lines(&mut self, line: &str) -> Vec<String> {
        let is_event = line.trim_start().starts_with('{');
        let Some(parser) = self.0.as_mut().filter(|_| is_event) else {
            return vec![line.to_owned()];
        };
        let events = parser.stdout_line(line.as_bytes()).into_iter();
        events.flat_map(words).collect()
    }
}

fn words(event: StreamEvent) -> Vec<String> {
    match event {
        StreamEvent::Text(text) => text.lines().map(str::to_owned).collect(),
        StreamEvent::Tool { name, detail } => vec![format!("> {name} {detail}")],
        StreamEvent::Retrying { message } => vec![format!("> its provider failed: {message}")],
        StreamEvent::Session(_) | StreamEvent::Used(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use kapi_agent::agent::Kind;
    use kapi_agent::stream::StreamParser;

    use super::Said;

    #[test]
    fn events_are_told_in_words_and_everything_else_as_it_is() {
        let mut said = Said(Some(StreamParser::new(&Kind::Claude, None)));
        let line = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"One.\nTwo."},{"type":"tool_use","name":"Bash","input":{"command":"ls"}}]}}"#;
        assert_eq!(said.lines(line), ["One.", "Two.", "> Bash ls"]);
        assert_eq!(said.lines("plain"), ["plain"]);
        assert_eq!(said.lines(r#"{"type":"none of its events"}"#), [""; 0]);
        assert_eq!(Said(None).lines(line), [line]);
    }
}
