//! Reads what the embedded script agent prints (see `script::event`).

use kapi_core::usage::Usage;
use serde_json::Value;

use super::{StreamTally, TurnEnd};
use crate::script::event::ScriptEvent;
use crate::text::{MESSAGE_BYTES_MAX, message};

/// What is known so far.
#[derive(Debug, Default)]
pub(super) struct ScriptStream {
    /// Everything said, which is the answer.
    said: String,
    has_ended: bool,
}

impl ScriptStream {
    pub(super) fn line(&mut self, value: &Value, tally: &mut StreamTally) {
        let Ok(event) = serde_json::from_value::<ScriptEvent>(value.clone()) else {
            return;
        };
        match event {
            ScriptEvent::Tool { name, detail } => tally.tool(&name, &detail),
            ScriptEvent::Output {
                text: _,
                exit_code: _,
            } => {}
            ScriptEvent::Say { text } => {
                tally.say(&text);
                if self.said.len() < MESSAGE_BYTES_MAX {
                    self.said.push_str(text.trim_end());
                    self.said.push('\n');
                }
                tally.message = message(&self.said);
            }
            ScriptEvent::Claim { claim } => tally.claim = Some(claim),
            ScriptEvent::Used {
                input_tokens,
                output_tokens,
                usd_micros,
            } => {
                tally.used(Usage {
                    input_tokens,
                    output_tokens,
                    usd_micros,
                    ..Usage::ZERO
                });
            }
            ScriptEvent::End => self.has_ended = true,
        }
    }

    pub(super) fn terminal(self) -> Option<TurnEnd> {
        // A turn that only claims, or does nothing, is a turn all the same.
        self.has_ended.then_some(TurnEnd::Silent)
    }
}
