//! What has ended, in segments that are looked up by number.
//!
//! Lines in, lines out: as in a file of a history directory, a line may stand in its segment
//! twice, and the last one counts. Does not know what a line means.

use std::sync::Arc;

use crate::client::{FleetClient, random_hex};
use crate::error::FleetError;
use crate::jetstream::{ExpectedPosition, JetStream, PublishOutcome};
use crate::names::SubjectNames;

/// Bytes of lines that go into one message.
const MESSAGE_BYTES: usize = 256 * 1024;
/// Messages of one segment that are read at most.
const MESSAGES_MAX: u32 = 100_000;

/// What has ended in one project.
#[derive(Clone)]
pub struct FleetHistory {
    client: Arc<FleetClient>,
    names: SubjectNames,
}

impl FleetHistory {
    pub(crate) const fn of(client: Arc<FleetClient>, names: SubjectNames) -> Self {
        Self { client, names }
    }

    /// Adds lines, each with its newline, to a segment. They are durable when this returns.
    ///
    /// # Errors
    /// When the cluster does not answer or refuses.
    pub fn add(&self, segment: u64, lines: &[Vec<u8>]) -> Result<(), FleetError> {
        let stream = self.stream();
        let subject = self.subject(segment);
        let mut rest = lines;
        while let Some((bytes, after)) = fill(rest) {
            match stream.publish(&subject, &bytes, &random_hex()?, ExpectedPosition::Any)? {
                PublishOutcome::At(_) | PublishOutcome::Taken => rest = after,
            }
        }
        Ok(())
    }

    /// Returns the bytes of a segment; empty when there is none.
    ///
    /// # Errors
    /// When the cluster does not answer.
    pub fn read(&self, segment: u64) -> Result<Vec<u8>, FleetError> {
        let stream = self.stream();
        let subject = self.subject(segment);
        let mut bytes = Vec::new();
        let mut from = 1;
        for _ in 0..MESSAGES_MAX {
            let Some(kept) = stream.next(&subject, from)? else {
                break;
            };
            bytes.extend_from_slice(&kept.payload);
            from = kept.seq + 1;
        }
        Ok(bytes)
    }

    /// Returns the numbers of the segments there are, the oldest first.
    ///
    /// # Errors
    /// When the cluster does not answer.
    pub fn segments(&self) -> Result<Vec<u64>, FleetError> {
        let above = self.names.file("past");
        let subjects = self.stream().subjects(&format!("{above}.*"))?;
        let number = |subject: &String| subject.rsplit('.').next()?.parse().ok();
        let mut numbers: Vec<u64> = subjects.iter().filter_map(number).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Returns how errors name a segment.
    #[must_use]
    pub fn name(&self, segment: u64) -> String {
        self.subject(segment)
    }

    fn subject(&self, segment: u64) -> String {
        self.names.file(&format!("past.{segment}"))
    }

    fn stream(&self) -> JetStream<'_> {
        JetStream {
            client: &self.client,
            name: self.names.file_stream(),
        }
    }
}

/// Takes as many lines from the front as go into one message, and one at least.
fn fill(lines: &[Vec<u8>]) -> Option<(Vec<u8>, &[Vec<u8>])> {
    let (first, mut rest) = lines.split_first()?;
    let mut bytes = first.clone();
    while let Some((line, after)) = rest.split_first()
        && bytes.len() + line.len() <= MESSAGE_BYTES
    {
        bytes.extend_from_slice(line);
        rest = after;
    }
    Some((bytes, rest))
}
