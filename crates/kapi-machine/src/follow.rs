//! Reading a log from its beginning, and on from where reading ended.

use kapi_store::stream::{LogStream, StreamCursor};
use serde::de::DeserializeOwned;

use crate::error::StreamError;
use crate::logged::{EventRecord, read};

/// How far a reader of a log has come.
#[derive(Debug, Clone, Default)]
pub struct LogCursor(Option<StreamCursor>);

impl LogCursor {
    /// Returns the events since, and moves on; `None` while there are none at all.
    pub fn follow<E: DeserializeOwned>(
        &mut self,
        stream: &LogStream<'_>,
    ) -> Result<Option<Vec<EventRecord<E>>>, StreamError> {
        let (records, cursor) = match &self.0 {
            Some(cursor) if !stream.has_changed(cursor)? => return Ok(Some(Vec::new())),
            Some(cursor) => {
                let mut cursor = cursor.clone();
                (stream.read_more(&mut cursor)?, cursor)
            }
            None => {
                let loaded = stream.load_all()?;
                if loaded.records.is_empty() {
                    return Ok(None);
                }
                (loaded.records, loaded.cursor)
            }
        };
        let logged = read(&stream.log(), &records)?;
        self.0 = Some(cursor);
        Ok(Some(logged))
    }
}
