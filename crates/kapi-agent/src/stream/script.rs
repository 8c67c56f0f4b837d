//! Reads what the embedded script agent prints (see `script::event`).

use kapi_core::usage::Usage;
use serde_json::Value;

use super::{Tally, Terminal};
use crate::script::event::Event;
use crate::text::{MESSAGE_BYTES_MAX, message};

/// What is known so far.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// Everything said, which is the answer.
    said: String,
    has_ended: bool,
}

impl Stream {
    pub(super) fn line(&mut self, value: &Value, tally: &mut Tally) {
        let Ok(event) = serde_json::from_value::<Event>(value.clone()) else {
            return;
        };
        match event {
            Event::Tool { name, detail } => tally.tool(&name, &detail),
            Event::Output {
                text: _,
                exit_code: _,
            } => {}
            Event::Say { text } => {
                tally.say(&text);
                if self.said.len() < MESSAGE_BYTES_MAX {
                    self.said.push_str(text.trim_end());
                    self.said.push('\n');
                }
                tally.message = message(&self.said);
            }
            Event::Claim { claim } => tally.claim = Some(claim),
            Event::Used {
                input_tokens,
                output_tokens,
                usd_micros,
            } => {
                tally.used(Usage {
                    input_tokens,
                    output_tokens,
                    usd_micros,
                });
            }
            Event::End => self.has_ended = true,
        }
    }

    pub(super) fn terminal(self) -> Option<Terminal> {
        // A turn that only claims, or does nothing, is a turn all the same.
        self.has_ended.then_some(Terminal::Silent)
    }
}
