//! The shapes of the log's questions and answers, as far as they are used.
//!
//! Only data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The window within which the cluster knows a message that it has seen before, in nanoseconds.
const DUPLICATES_NS: u64 = 120 * 1_000_000_000;

/// What a stream is like.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct StreamConfig {
    pub(crate) name: String,
    pub(crate) subjects: Vec<String>,
    pub(crate) retention: String,
    pub(crate) storage: String,
    pub(crate) discard: String,
    pub(crate) max_consumers: i64,
    pub(crate) max_msgs: i64,
    pub(crate) max_bytes: i64,
    pub(crate) max_age: u64,
    pub(crate) max_msgs_per_subject: i64,
    pub(crate) max_msg_size: i64,
    pub(crate) num_replicas: u8,
    pub(crate) duplicate_window: u64,
    pub(crate) allow_direct: bool,
    pub(crate) deny_delete: bool,
    pub(crate) deny_purge: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) republish: Option<Republish>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Republish {
    pub(crate) src: String,
    pub(crate) dest: String,
    pub(crate) headers_only: bool,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct ApiResponse {
    #[serde(default)]
    pub(crate) error: Option<ApiError>,
    #[serde(default)]
    pub(crate) seq: u64,
    #[serde(default)]
    pub(crate) message: Option<EncodedMessage>,
    #[serde(default)]
    pub(crate) config: Option<StreamConfig>,
    #[serde(default)]
    pub(crate) state: Option<StreamState>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ApiError {
    #[serde(default)]
    pub(crate) code: u16,
    #[serde(default)]
    pub(crate) err_code: u32,
    #[serde(default)]
    pub(crate) description: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct EncodedMessage {
    pub(crate) seq: u64,
    #[serde(default)]
    pub(crate) hdrs: String,
    #[serde(default)]
    pub(crate) data: String,
    #[serde(default)]
    pub(crate) time: String,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct StreamState {
    #[serde(default)]
    pub(crate) subjects: Option<BTreeMap<String, u64>>,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct MessageRequest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_by_subj: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_by_subj: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) subjects_filter: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) filter: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) keep: Option<u64>,
}

impl StreamConfig {
    /// A stream without any limit, kept on disk.
    pub(crate) fn of(name: String, subject: String, replicas: u8) -> Self {
        Self {
            name,
            subjects: vec![subject],
            retention: "limits".to_owned(),
            storage: "file".to_owned(),
            discard: "new".to_owned(),
            max_consumers: -1,
            max_msgs: -1,
            max_bytes: -1,
            max_age: 0,
            max_msgs_per_subject: -1,
            max_msg_size: -1,
            num_replicas: replicas,
            duplicate_window: DUPLICATES_NS,
            allow_direct: false,
            deny_delete: false,
            deny_purge: false,
            republish: None,
        }
    }

    /// Makes it a log: nothing can be taken out, and what is accepted is told to `news`.
    pub(crate) fn into_log(mut self, news: String) -> Self {
        self.deny_delete = true;
        self.deny_purge = true;
        self.republish = self.subjects.first().map(|subject| Republish {
            src: subject.clone(),
            dest: news,
            headers_only: true,
        });
        self
    }
}
