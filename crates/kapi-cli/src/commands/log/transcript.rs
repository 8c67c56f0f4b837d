//! One transcript of an agent, printed as far as it is written, whole lines only.
//!
//! For people in the words of the agent's own events, and with `--json` line by line as it wrote
//! them; nothing is decided by what is read.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use serde_json::{Map, Value};

use crate::commands::log::transcript_entry;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::{Format, Ui};

/// The name of a transcript in the directory of its run.
pub(super) const TRANSCRIPT: &str = "transcript.jsonl";
/// Bytes that are read at once.
const CHUNK_BYTES: u64 = 1 << 20;

/// How much of a transcript was printed.
#[derive(Debug, Default)]
pub(super) struct TranscriptPosition {
    offset: u64,
    /// A line whose end has not come yet.
    begun: Vec<u8>,
}

impl TranscriptPosition {
    /// Tells whether nothing has been written yet.
    pub(super) const fn is_empty(&self) -> bool {
        self.offset == 0
    }

    /// Prints what was added; `whose` says in JSON whose it is.
    pub(super) fn print(
        &mut self,
        ui: Ui,
        path: &Path,
        whose: &[(&str, Value)],
    ) -> Result<(), Error> {
        let unread = |error: std::io::Error| {
            let text = format!("failed to read {}: {error}", path.display());
            Error::new(Exit::Failed, text)
        };
        let mut file = File::open(path).map_err(unread)?;
        file.seek(SeekFrom::Start(self.offset)).map_err(unread)?;
        loop {
            let mut chunk = Vec::new();
            let reader = std::io::Read::by_ref(&mut file);
            let n_bytes = reader
                .take(CHUNK_BYTES)
                .read_to_end(&mut chunk)
                .map_err(unread)?;
            if n_bytes == 0 {
                return Ok(());
            }
            self.offset += u64::try_from(n_bytes).unwrap_or(u64::MAX);
            self.begun.extend(chunk);
            while let Some(end) = self.begun.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.begun.drain(..=end).collect();
                print(ui, String::from_utf8_lossy(&line).trim_end(), whose);
            }
        }
    }
}

fn print(ui: Ui, line: &str, whose: &[(&str, Value)]) {
    match ui.format {
        Format::Human => transcript_entry::lines(line)
            .iter()
            .for_each(|line| ui.line(line)),
        Format::Json => ui.json(&document(line, whose)),
    }
}

fn document(line: &str, whose: &[(&str, Value)]) -> Value {
    let mut object = Map::new();
    object.insert("type".to_owned(), "transcript".into());
    for (key, value) in whose {
        object.insert((*key).to_owned(), value.clone());
    }
    // A line is the JSON it is, or else text.
    let line = serde_json::from_str(line).unwrap_or_else(|_| Value::String(line.to_owned()));
    object.insert("line".to_owned(), line);
    Value::Object(object)
}
