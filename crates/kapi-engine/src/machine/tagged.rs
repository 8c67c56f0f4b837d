//! Events as a log holds them: a type's name beside its data.
//!
//! Translates between the rules' enumerations and the store's records, whatever they mean.

use kapi_store::record::{Payload, Record};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Tagged {
    #[serde(rename = "type")]
    kind: String,
    data: Option<Box<RawValue>>,
}

/// Returns an event as the store records it.
pub(crate) fn to_payload<E: Serialize>(event: &E) -> Result<Payload, serde_json::Error> {
    let tagged: Tagged = serde_json::from_str(&serde_json::to_string(event)?)?;
    let data = match tagged.data {
        Some(data) => data,
        None => RawValue::from_string("null".to_owned())?,
    };
    Ok(Payload {
        kind: tagged.kind,
        data,
    })
}

/// Reads a record as an event.
pub(crate) fn from_record<E: DeserializeOwned>(record: &Record) -> Result<E, serde_json::Error> {
    let kind = serde_json::to_string(&record.kind)?;
    let data = record.data.get();
    let text = if data == "null" {
        format!(r#"{{"type":{kind}}}"#)
    } else {
        format!(r#"{{"type":{kind},"data":{data}}}"#)
    };
    serde_json::from_str(&text)
}
