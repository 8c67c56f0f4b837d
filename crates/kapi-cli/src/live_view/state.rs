//! What the live view shows: the facts of each subject, what is heard of it, and what was said.
//!
//! News go in, a screen is drawn of it. Plain data; time arrives with the news.

use std::collections::{BTreeMap, VecDeque};

use kapi_core::usage::Usage;

use crate::event_words::first_line;
use crate::live_view::facts::SubjectFacts;
use crate::live_view::overview::Overview;
use crate::ui::harmless;
use crate::ui::screen::LineStream;

/// Tool calls of one subject that are kept, the last ones.
const CALLS_MAX: usize = 200;
/// Characters of an agent's last words.
const SAID_CHARS_MAX: usize = 2_000;
/// Lines that are kept for when the view is closed, the last ones.
pub(crate) const LINES_MAX: usize = 5_000;

/// Something that happened to a subject while somebody looks on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum News {
    /// Something begins, in a word or two.
    Began {
        /// What.
        phase: String,
    },
    /// It waits, in a word or two: no time of work goes by.
    Waits {
        /// For what.
        phase: String,
    },
    /// The agent begins to use a tool.
    Call {
        /// The tool.
        name: String,
        /// What it is used on.
        detail: String,
    },
    /// A command was refused because a person has to be asked first.
    Refused {
        /// The command.
        command: String,
    },
    /// The agent said something.
    Said {
        /// What.
        text: String,
    },
    /// The model was used; not yet part of the facts.
    Used(Usage),
    /// What was used so far is part of the facts from now on.
    Counted,
}

/// One use of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolCall {
    /// The tool.
    pub(crate) name: String,
    /// What it is used on, in one line.
    pub(crate) detail: String,
    /// Whether it was refused.
    pub(crate) is_refused: bool,
}

/// What is heard of one subject.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LiveActivity {
    /// What goes on, as its driver says it.
    pub(crate) phase: Option<String>,
    /// What its agent said last.
    pub(crate) said: String,
    /// Its tool calls, the last ones.
    pub(crate) calls: VecDeque<ToolCall>,
    /// What was used and is not part of the facts yet.
    pub(crate) used: Usage,
    /// Since when the time that it works is not part of the facts, in milliseconds since the epoch.
    pub(crate) since_ms: Option<i64>,
}

/// A line that was said while the view was open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SaidLine {
    /// Where it belongs.
    pub(crate) stream: LineStream,
    /// The line, with its end.
    pub(crate) text: String,
}

/// What the keys at the bottom mean now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Prompt {
    /// One key is one action.
    #[default]
    Keys,
    /// A message to the agent is typed.
    Message {
        /// What was typed so far.
        text: String,
    },
    /// A yes or no is asked.
    Question {
        /// What is asked.
        text: String,
    },
    /// It is asked what shall become of the work when the view is left.
    Leaving,
}

/// Everything that is shown.
#[derive(Debug, Default)]
pub(crate) struct ViewState {
    /// What is shown, in its order.
    pub(crate) subjects: Vec<SubjectFacts>,
    /// What is heard of each, by its id.
    pub(crate) heard: BTreeMap<String, LiveActivity>,
    /// The place of the one that is shown in full.
    pub(crate) selected: usize,
    /// What is told besides, where everything alive is shown.
    pub(crate) overview: Option<Overview>,
    /// Whether this process works while it is shown.
    pub(crate) is_at_work: bool,
    /// What was said, for the screen and for when it is closed.
    pub(crate) lines: VecDeque<SaidLine>,
    /// Lines that are not kept.
    pub(crate) n_dropped: usize,
    /// What the keys mean.
    pub(crate) prompt: Prompt,
    /// The command line that a yes to the view's own question runs.
    pub(crate) on_yes: Option<Vec<String>>,
    /// Whether what is asked has not been drawn yet: what was typed before is no answer to it.
    pub(crate) is_unseen: bool,
    /// What came of the last key, in a line.
    pub(crate) note: Option<String>,
}

impl ViewState {
    /// Takes the facts as they are now.
    pub(crate) fn put(&mut self, subjects: Vec<SubjectFacts>) {
        let selected = self.selected().map(|facts| facts.id.clone());
        self.subjects = subjects;
        let again = selected.and_then(|id| self.subjects.iter().position(|it| it.id == id));
        let last = self.subjects.len().saturating_sub(1);
        self.selected = again.unwrap_or(self.selected.min(last));
        let ids: Vec<&str> = self.subjects.iter().map(|it| it.id.as_str()).collect();
        self.heard.retain(|id, _| ids.contains(&id.as_str()));
    }

    /// Returns the one that is shown in full.
    pub(crate) fn selected(&self) -> Option<&SubjectFacts> {
        self.subjects.get(self.selected)
    }

    /// Returns what lets something go on that was stopped, where everything alive is shown.
    pub(crate) fn resume<'a>(&self, facts: &'a SubjectFacts) -> Option<&'a Vec<String>> {
        let verbs = self.overview.as_ref().map(|_| &facts.verbs)?;
        if self.is_at_work {
            verbs.resume_beside.as_ref()
        } else {
            verbs.resume.as_ref()
        }
    }

    /// Shows the next one in full; after the last comes the first.
    pub(crate) fn select_next(&mut self) {
        let n = self.subjects.len().max(1);
        self.selected = (self.selected + 1) % n;
    }

    /// Shows the one before in full.
    pub(crate) fn select_previous(&mut self) {
        let n = self.subjects.len().max(1);
        self.selected = (self.selected + n - 1) % n;
    }

    /// Takes news of a subject.
    pub(crate) fn hear(&mut self, id: &str, news: News, now_ms: i64) {
        let heard = self.heard.entry(id.to_owned()).or_default();
        match news {
            News::Began { phase } => {
                heard.phase = Some(clean(&phase));
                heard.since_ms = Some(now_ms);
            }
            News::Waits { phase } => {
                heard.phase = Some(clean(&phase));
                heard.since_ms = None;
            }
            News::Call { name, detail } => heard.call(ToolCall {
                name: clean(&name),
                detail: clean(&detail),
                is_refused: false,
            }),
            News::Refused { command } => heard.refuse(&clean(&command)),
            News::Said { text } => {
                let text = harmless(&text);
                let words: Vec<&str> = text.split_whitespace().collect();
                heard.said = words.join(" ").chars().take(SAID_CHARS_MAX).collect();
            }
            News::Used(usage) => heard.used.add(&usage),
            News::Counted => {
                heard.used = Usage::ZERO;
                heard.since_ms = heard.since_ms.map(|_| now_ms);
            }
        }
    }

    /// Keeps a line.
    pub(crate) fn say(&mut self, line: SaidLine) {
        if self.lines.len() == LINES_MAX {
            self.lines.pop_front();
            self.n_dropped += 1;
        }
        self.lines.push_back(line);
    }
}

impl LiveActivity {
    fn call(&mut self, call: ToolCall) {
        if self.calls.len() == CALLS_MAX {
            self.calls.pop_front();
        }
        self.calls.push_back(call);
    }

    /// Marks the last call that ran this command, or notes the command where no call is known.
    fn refuse(&mut self, command: &str) {
        let mut calls = self.calls.iter_mut().rev();
        match calls.find(|call| call.detail.contains(command)) {
            Some(call) => call.is_refused = true,
            None => self.call(ToolCall {
                name: "command".to_owned(),
                detail: command.to_owned(),
                is_refused: true,
            }),
        }
    }
}

fn clean(text: &str) -> String {
    harmless(first_line(text).trim())
}

#[cfg(test)]
mod tests {
    use kapi_core::usage::Usage;

    use super::{LINES_MAX, LineStream, LiveActivity, News, SaidLine, ViewState};
    use crate::live_view::facts::SubjectFacts;

    fn heard(all: &[News]) -> LiveActivity {
        let mut state = ViewState::default();
        for (now_ms, news) in (0..).zip(all) {
            state.hear("a", news.clone(), now_ms);
        }
        state.heard.remove("a").unwrap()
    }

    #[test]
    fn a_refusal_marks_the_call_that_it_is_of() {
        let call = |detail: &str| News::Call {
            name: "Bash".to_owned(),
            detail: detail.to_owned(),
        };
        let command = "git push".to_owned();
        let refused = News::Refused { command };
        let marked = heard(&[
            call("cd x && git push"),
            call("ls\nsecret"),
            refused.clone(),
        ]);
        let marks: Vec<bool> = marked.calls.iter().map(|call| call.is_refused).collect();
        assert_eq!(marks, [true, false]);
        assert_eq!(marked.calls[1].detail, "ls");
        // An agent whose calls are not told has its refusals told all the same.
        assert_eq!(heard(&[refused]).calls[0].detail, "git push");
    }

    #[test]
    fn what_was_counted_is_not_counted_twice() {
        let used = News::Used(Usage {
            input_tokens: 7,
            ..Usage::ZERO
        });
        let began = News::Began {
            phase: "working".to_owned(),
        };
        let running = heard(&[began.clone(), used.clone(), used.clone()]);
        assert_eq!((running.used.tokens(), running.since_ms), (14, Some(0)));
        let counted = heard(&[began, used.clone(), News::Counted, used]);
        assert_eq!((counted.used.tokens(), counted.since_ms), (7, Some(2)));
    }

    #[test]
    fn the_selected_one_stays_selected_where_it_stays_at_all() {
        let facts = |id: &str| SubjectFacts {
            id: id.to_owned(),
            ..SubjectFacts::default()
        };
        let mut state = ViewState::default();
        state.put(vec![facts("a"), facts("b")]);
        state.select_next();
        state.put(vec![facts("0"), facts("a"), facts("b")]);
        assert_eq!(state.selected().unwrap().id, "b");
        state.select_next();
        assert_eq!(state.selected().unwrap().id, "0");
        state.select_previous();
        state.put(vec![facts("a")]);
        assert_eq!(state.selected().unwrap().id, "a");
        state.put(Vec::new());
        assert_eq!(state.selected(), None);
    }

    #[test]
    fn the_last_lines_are_kept_and_the_others_counted() {
        let mut state = ViewState::default();
        for n in 0..LINES_MAX + 2 {
            state.say(SaidLine {
                stream: LineStream::Error,
                text: n.to_string(),
            });
        }
        assert_eq!((state.lines.len(), state.n_dropped), (LINES_MAX, 2));
        assert_eq!(state.lines[0].text, "2");
    }
}
