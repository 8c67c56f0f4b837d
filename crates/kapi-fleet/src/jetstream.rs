//! What the cluster's log can be asked: make a stream, publish, read, purge.
//!
//! Requests and answers are JSON over the client. What the cluster cannot answer at the moment,
//! for want of a leader, is asked again until the deadline.

pub(crate) mod api;

use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client::{FleetClient, millis};
use crate::error::{FleetError, LinkError};
use crate::jetstream::api::{ApiError, ApiResponse, MessageRequest, StreamConfig};
use crate::wire::{self, DeliveredMessage, Publication};

/// The pause before the cluster is asked again.
const PAUSE: Duration = Duration::from_millis(100);
/// Codes of the cluster: a place in the log was taken, by either of its two names.
const WRONG_LOCATION: [u32; 2] = [10071, 10164];
/// No such message.
const NO_MESSAGE: u32 = 10037;
/// A stream of this name has another configuration.
const OTHER_CONFIGURATION: u32 = 10058;
/// Too few servers are up to place a stream.
const NO_PEERS: u32 = 10005;
/// The same message is being taken in at this moment.
const IN_PROCESS: u32 = 10158;
/// Parts under way at once: the servers hold in memory what they have not written yet.
const PARTS_AT_ONCE: usize = 16;
/// The class of answers that mean: not now.
const NOT_NOW: u16 = 503;

/// One project's stream, by name.
pub(crate) struct JetStream<'a> {
    pub(crate) client: &'a FleetClient,
    pub(crate) name: String,
}

/// The position that a publication asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ExpectedPosition {
    /// Any position.
    Any,
    /// The position after this message, with nothing of any subject between.
    ///
    /// Servers before 2.10 check this when a message is taken in, and what a subject's last
    /// message is only before: two could pass there at once.
    After(u64),
    /// The first of its subject, as far as the server knows at the moment: a courtesy, no promise.
    First,
}

/// What became of a publication that asked for a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PublishOutcome {
    /// It is there, and was made durable by as many servers as the stream asks for.
    At(u64),
    /// Another message has the position.
    Taken,
}

/// A message as it is kept.
#[derive(Debug, Clone)]
pub(crate) struct StoredMessage {
    pub(crate) seq: u64,
    pub(crate) headers: Vec<u8>,
    pub(crate) payload: Vec<u8>,
    /// When the cluster took it in.
    pub(crate) time: String,
}

impl JetStream<'_> {
    /// Makes the stream, or finds it as it should be.
    pub(crate) fn ensure(&self, config: &StreamConfig) -> Result<(), FleetError> {
        const ACTION: &str = "make the stream";
        let json = self.encode(config)?;
        let deadline = self.client.deadline();
        let answer = self.request(ACTION, "STREAM.CREATE", &json, deadline)?;
        match answer.error {
            None => Ok(()),
            Some(error) if error.err_code == OTHER_CONFIGURATION => {
                let answer = self.request(ACTION, "STREAM.INFO", b"", deadline)?;
                self.check(config, answer.config.as_ref())
            }
            Some(error) => Err(self.refused(ACTION, error)),
        }
    }

    /// A person may have changed on how many servers it is kept; what it means must be the same.
    fn check(&self, ours: &StreamConfig, theirs: Option<&StreamConfig>) -> Result<(), FleetError> {
        let other = |what| FleetError::OtherStream {
            stream: self.name.clone(),
            what,
        };
        let theirs = theirs.ok_or_else(|| other("it does not describe itself"))?;
        if theirs.subjects != ours.subjects {
            return Err(other("it takes other subjects"));
        }
        if theirs.retention != ours.retention || theirs.max_age != 0 {
            return Err(other("it does not keep everything"));
        }
        if theirs.max_msgs != -1 || theirs.max_bytes != -1 || theirs.max_msgs_per_subject != -1 {
            return Err(other("it has limits"));
        }
        let news = |config: &StreamConfig| config.republish.as_ref().map(|it| it.dest.clone());
        if news(theirs) != news(ours) {
            return Err(other("it does not list what it accepts"));
        }
        Ok(())
    }

    /// Publishes under an id: however often it is sent, it is there once.
    pub(crate) fn publish(
        &self,
        subject: &str,
        payload: &[u8],
        id: &str,
        wanted: ExpectedPosition,
    ) -> Result<PublishOutcome, FleetError> {
        let deadline = self.client.deadline();
        let (name, last) = match wanted {
            ExpectedPosition::Any => (None, 0),
            ExpectedPosition::After(last) => (Some("Nats-Expected-Last-Sequence"), last),
            ExpectedPosition::First => (Some("Nats-Expected-Last-Subject-Sequence"), 0),
        };
        let location = last.to_string();
        let mut headers = vec![
            ("Nats-Msg-Id", id),
            ("Nats-Expected-Stream", self.name.as_str()),
        ];
        headers.extend(name.map(|name| (name, location.as_str())));
        let publication = Publication {
            subject,
            headers: &headers,
            payload,
        };
        let unknown = |source| self.unknown(deadline, source);
        loop {
            let message = self.client.ask(&publication, deadline);
            let answer = self.answer("publish", &message.map_err(unknown)?)?;
            let said = match answer.error {
                None => return Ok(PublishOutcome::At(answer.seq)),
                Some(error) if WRONG_LOCATION.contains(&error.err_code) => {
                    match self.find(subject, last + 1, id).map_err(unknown)? {
                        Some(published) => return Ok(published),
                        None => error.description,
                    }
                }
                Some(error) if is_later(&error) => error.description,
                Some(error) => return Err(self.refused("publish", error)),
            };
            if Instant::now() + PAUSE >= deadline {
                return Err(unknown(self.unreachable(said)));
            }
            thread::sleep(PAUSE);
        }
    }

    /// Publishes several messages, each under its own id, and returns the lowest of their places.
    pub(crate) fn publish_all(
        &self,
        messages: &[(String, &[u8])],
        id: &str,
    ) -> Result<u64, FleetError> {
        let deadline = self.client.deadline().max(Instant::now() + pace(messages));
        let ids: Vec<String> = (0..messages.len()).map(|at| format!("{id}-{at}")).collect();
        let headers: Vec<[(&str, &str); 2]> = ids
            .iter()
            .map(|id| {
                [
                    ("Nats-Msg-Id", id.as_str()),
                    ("Nats-Expected-Stream", &self.name),
                ]
            })
            .collect();
        let publications: Vec<Publication<'_>> = messages
            .iter()
            .zip(&headers)
            .map(|((subject, payload), headers)| Publication {
                subject,
                headers,
                payload,
            })
            .collect();
        let mut lowest = u64::MAX;
        for window in publications.chunks(PARTS_AT_ONCE) {
            for answer in self.answers("publish", window, deadline)? {
                let location = answer
                    .error
                    .map_or(Ok(answer.seq), |error| Err(self.refused("publish", error)))?;
                lowest = lowest.min(location);
            }
        }
        Ok(lowest)
    }

    /// Tells what became of a publication whose place is taken. An earlier try may have been
    /// accepted though its answer was lost: then it is our own message that stands there. `None`
    /// when whoever we asked has not heard of it yet.
    fn find(
        &self,
        subject: &str,
        from: u64,
        id: &str,
    ) -> Result<Option<PublishOutcome>, FleetError> {
        let kept = self.next(subject, from)?;
        Ok(kept.map(|kept| {
            let is_ours = wire::header(&kept.headers, "Nats-Msg-Id").as_deref() == Some(id);
            if is_ours {
                PublishOutcome::At(kept.seq)
            } else {
                PublishOutcome::Taken
            }
        }))
    }

    /// Returns the message at a place.
    pub(crate) fn get(&self, seq: u64) -> Result<Option<StoredMessage>, FleetError> {
        self.read(&MessageRequest {
            seq: Some(seq),
            ..MessageRequest::default()
        })
    }

    /// Returns the messages at some places.
    pub(crate) fn get_all(
        &self,
        locations: Range<u64>,
    ) -> Result<Vec<Option<StoredMessage>>, FleetError> {
        let asks = locations.map(|seq| MessageRequest {
            seq: Some(seq),
            ..MessageRequest::default()
        });
        self.read_all(asks)
    }

    /// Returns the last message of each subject.
    pub(crate) fn last_all(
        &self,
        subjects: &[String],
    ) -> Result<Vec<Option<StoredMessage>>, FleetError> {
        let asks = subjects.iter().map(|subject| MessageRequest {
            last_by_subj: Some(subject),
            ..MessageRequest::default()
        });
        self.read_all(asks)
    }

    /// Returns the last message of a subject.
    pub(crate) fn last(&self, subject: &str) -> Result<Option<StoredMessage>, FleetError> {
        self.read(&MessageRequest {
            last_by_subj: Some(subject),
            ..MessageRequest::default()
        })
    }

    /// Returns the first message of a subject at a place or after it.
    pub(crate) fn next(
        &self,
        subject: &str,
        from: u64,
    ) -> Result<Option<StoredMessage>, FleetError> {
        self.read(&MessageRequest {
            seq: Some(from),
            next_by_subj: Some(subject),
            ..MessageRequest::default()
        })
    }

    /// Returns the subjects that have messages.
    pub(crate) fn subjects(&self, filter: &str) -> Result<Vec<String>, FleetError> {
        const ACTION: &str = "list subjects";
        let json = self.encode(&MessageRequest {
            subjects_filter: Some(filter),
            ..MessageRequest::default()
        })?;
        let answer = self.request(ACTION, "STREAM.INFO", &json, self.client.deadline())?;
        if let Some(error) = answer.error {
            return Err(self.refused(ACTION, error));
        }
        let subjects = answer.state.and_then(|state| state.subjects);
        Ok(subjects.unwrap_or_default().into_keys().collect())
    }

    /// Takes out a subject's messages before a place.
    pub(crate) fn purge_before(&self, filter: &str, seq: u64) -> Result<(), FleetError> {
        // Nothing is before the first, but the servers take that for no limit at all.
        if seq <= 1 {
            return Ok(());
        }
        self.purge(&MessageRequest {
            filter: Some(filter),
            seq: Some(seq),
            ..MessageRequest::default()
        })
    }

    /// Takes out all of a subject's messages but the last `n`.
    pub(crate) fn purge_but(&self, filter: &str, n: u64) -> Result<(), FleetError> {
        self.purge(&MessageRequest {
            filter: Some(filter),
            keep: (n > 0).then_some(n),
            ..MessageRequest::default()
        })
    }

    fn purge(&self, ask: &MessageRequest<'_>) -> Result<(), FleetError> {
        const ACTION: &str = "purge";
        let json = self.encode(ask)?;
        let answer = self.request(ACTION, "STREAM.PURGE", &json, self.client.deadline())?;
        answer
            .error
            .map_or(Ok(()), |error| Err(self.refused(ACTION, error)))
    }

    fn read(&self, ask: &MessageRequest<'_>) -> Result<Option<StoredMessage>, FleetError> {
        let json = self.encode(ask)?;
        let answer = self.request("read", "STREAM.MSG.GET", &json, self.client.deadline())?;
        self.kept(answer)
    }

    fn read_all<'a>(
        &self,
        asks: impl Iterator<Item = MessageRequest<'a>>,
    ) -> Result<Vec<Option<StoredMessage>>, FleetError> {
        let subject = format!("$JS.API.STREAM.MSG.GET.{}", self.name);
        let asks: Vec<Vec<u8>> = asks
            .map(|ask| self.encode(&ask))
            .collect::<Result<_, _>>()?;
        let publications: Vec<Publication<'_>> = asks
            .iter()
            .map(|ask| Publication {
                subject: &subject,
                headers: &[],
                payload: ask,
            })
            .collect();
        let answers = self.answers("read", &publications, self.client.deadline())?;
        answers
            .into_iter()
            .map(|answer| self.kept(answer))
            .collect()
    }

    fn kept(&self, answer: ApiResponse) -> Result<Option<StoredMessage>, FleetError> {
        match (answer.error, answer.message) {
            (Some(error), _) if error.err_code == NO_MESSAGE => Ok(None),
            (Some(error), _) => Err(self.refused("read", error)),
            (None, None) => Ok(None),
            (None, Some(encoded)) => {
                let decode = |text: &str| {
                    STANDARD.decode(text).map_err(|_| FleetError::OtherStream {
                        stream: self.name.clone(),
                        what: "a message is not encoded as it should be",
                    })
                };
                Ok(Some(StoredMessage {
                    headers: decode(&encoded.hdrs)?,
                    payload: decode(&encoded.data)?,
                    seq: encoded.seq,
                    time: encoded.time,
                }))
            }
        }
    }

    /// Asks the stream's leader, until there is one.
    fn request(
        &self,
        action: &'static str,
        verb: &str,
        payload: &[u8],
        deadline: Instant,
    ) -> Result<ApiResponse, FleetError> {
        let subject = format!("$JS.API.{verb}.{}", self.name);
        let publication = Publication {
            subject: &subject,
            headers: &[],
            payload,
        };
        let one = std::slice::from_ref(&publication);
        let answers = self.answers(action, one, deadline)?;
        // As many answers come as were asked for.
        Ok(answers.into_iter().next().unwrap_or_default())
    }

    /// Asks all at once, and again while the cluster cannot answer one of them: each bears it.
    fn answers(
        &self,
        action: &'static str,
        publications: &[Publication<'_>],
        deadline: Instant,
    ) -> Result<Vec<ApiResponse>, FleetError> {
        loop {
            let messages = self.client.ask_all(publications, deadline)?;
            let answers = messages.iter().map(|message| self.answer(action, message));
            let answers = answers.collect::<Result<Vec<ApiResponse>, _>>()?;
            let is_later = answers
                .iter()
                .any(|answer| answer.error.as_ref().is_some_and(is_later));
            if !is_later || Instant::now() + PAUSE >= deadline {
                return Ok(answers);
            }
            thread::sleep(PAUSE);
        }
    }

    fn answer(
        &self,
        action: &'static str,
        message: &DeliveredMessage,
    ) -> Result<ApiResponse, FleetError> {
        self.parse(action, &message.payload)
    }

    pub(crate) fn parse<T: DeserializeOwned>(
        &self,
        action: &'static str,
        json: &[u8],
    ) -> Result<T, FleetError> {
        serde_json::from_slice(json).map_err(|source| FleetError::Answer {
            action,
            stream: self.name.clone(),
            source,
        })
    }

    pub(crate) fn encode(&self, value: &impl Serialize) -> Result<Vec<u8>, FleetError> {
        serde_json::to_vec(value).map_err(|source| FleetError::Encode {
            stream: self.name.clone(),
            source,
        })
    }

    /// What to tell of an error: what may be answered later was only not answered in time.
    fn refused(&self, action: &'static str, error: ApiError) -> FleetError {
        if is_later(&error) {
            return self.unreachable(error.description);
        }
        FleetError::Refused {
            action,
            stream: self.name.clone(),
            said: error.description,
            code: error.err_code,
        }
    }

    fn unreachable(&self, said: String) -> FleetError {
        let settings = self.client.settings();
        FleetError::Unreachable {
            servers: settings.address.to_string(),
            waited_ms: millis(settings.patience),
            source: LinkError::Said {
                server: self.name.clone(),
                said,
            },
        }
    }

    /// A publication that nobody answered may have been accepted all the same.
    fn unknown(&self, deadline: Instant, source: FleetError) -> FleetError {
        let patience = self.client.settings().patience;
        let waited = patience.saturating_sub(deadline.saturating_duration_since(Instant::now()));
        match source {
            source @ FleetError::Unreachable { .. } => FleetError::Unknown {
                stream: self.name.clone(),
                waited_ms: millis(waited),
                source: Box::new(source),
            },
            source => source,
        }
    }
}

/// Tells whether the same question may be answered later.
const fn is_later(error: &ApiError) -> bool {
    error.code == NOT_NOW || error.err_code == NO_PEERS || error.err_code == IN_PROCESS
}

/// A large upload may take longer than one request, at a rate that any network of use has.
fn pace(messages: &[(String, &[u8])]) -> Duration {
    let bytes: usize = messages.iter().map(|(_, payload)| payload.len()).sum();
    Duration::from_millis(u64::try_from(bytes / 500).unwrap_or(u64::MAX))
}
