//! Images and files that the provider would fetch or has stored, replaced by words.
//!
//! What stands in the request itself stays. Looks into every part, however it is nested: results of
//! tools hold images too.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::json;

use super::{TakeOutError, string};
use crate::model::dialect::ModelDialect;
use crate::model::members::{Members, array, elements};

/// How deep content may be nested.
const DEPTH_MAX: u32 = 64;
/// What stands in place of an image or a file.
const REPLACEMENT: &str = "[left out by kapi: an image or file outside of the request]";
/// What it is called when it is told.
const TOLD: &str = "a remote image or file";

/// Returns content without parts that lie outside of the request; `None` where there are none.
pub(super) fn without_remote(
    dialect: ModelDialect,
    text: &str,
    parts: &mut BTreeSet<String>,
) -> Result<Option<String>, TakeOutError> {
    let mut walk = Walk { dialect, parts };
    walk.value(text, DEPTH_MAX)
}

struct Walk<'w> {
    dialect: ModelDialect,
    parts: &'w mut BTreeSet<String>,
}

impl Walk<'_> {
    fn value(&mut self, text: &str, depth: u32) -> Result<Option<String>, TakeOutError> {
        let depth = depth.checked_sub(1).ok_or(TakeOutError::Depth)?;
        match text.as_bytes().first() {
            Some(b'{') => self.object(text, depth),
            Some(b'[') => self.list(text, depth),
            Some(_) | None => Ok(None),
        }
    }

    fn object(&mut self, text: &str, depth: u32) -> Result<Option<String>, TakeOutError> {
        let mut members = Members::parse(text)?;
        if is_remote(self.dialect, &members) {
            self.parts.insert(TOLD.to_owned());
            return Ok(Some(replacement(self.dialect)));
        }
        let mut is_changed = false;
        for member in &mut members.0 {
            if let Some(own) = self.value(&member.value, depth)? {
                member.value = Cow::Owned(own);
                is_changed = true;
            }
        }
        Ok(is_changed.then(|| members.text()))
    }

    fn list(&mut self, text: &str, depth: u32) -> Result<Option<String>, TakeOutError> {
        let mut is_changed = false;
        let mut own: Vec<Cow<'_, str>> = Vec::new();
        for element in elements(text)? {
            own.push(match self.value(element, depth)? {
                Some(changed) => {
                    is_changed = true;
                    Cow::Owned(changed)
                }
                None => Cow::Borrowed(element),
            });
        }
        Ok(is_changed.then(|| array(&own)))
    }
}

/// Tells whether a part of the content lies outside of the request.
fn is_remote(dialect: ModelDialect, part: &Members<'_>) -> bool {
    let kind = part.get("type").and_then(string).unwrap_or_default();
    match dialect {
        ModelDialect::Anthropic => match kind.as_str() {
            "image" | "document" => {
                source_kind(part).is_some_and(|kind| kind == "url" || kind == "file")
            }
            "container_upload" => true,
            _ => false,
        },
        ModelDialect::Responses => match kind.as_str() {
            "input_image" | "input_file" | "computer_screenshot" => {
                is_address(part.get("image_url"))
                    || is_said(part.get("file_id"))
                    || is_said(part.get("file_url"))
            }
            _ => false,
        },
        ModelDialect::Chat => match kind.as_str() {
            "image_url" | "video_url" | "audio_url" => {
                let holder = part.get(&kind).unwrap_or("null");
                let inner = Members::parse(holder).ok();
                match inner {
                    Some(inner) => is_address(inner.get("url")),
                    None => is_address(Some(holder)),
                }
            }
            "file" => {
                let inner = part.get("file").and_then(|file| Members::parse(file).ok());
                inner.is_some_and(|file| {
                    is_said(file.get("file_id")) || is_address(file.get("file_data"))
                })
            }
            _ => false,
        },
        ModelDialect::Gemini => ["fileData", "file_data"]
            .iter()
            .any(|name| is_said(part.get(name))),
    }
}

fn source_kind(part: &Members<'_>) -> Option<String> {
    let source = Members::parse(part.get("source")?).ok()?;
    source.get("type").and_then(string)
}

/// Tells whether a value is an address and not the thing itself.
fn is_address(value: Option<&str>) -> bool {
    let Some(text) = value.and_then(string) else {
        return false;
    };
    let scheme = text.split_once(':').map(|(scheme, _)| scheme.trim());
    scheme.is_some_and(|scheme| !scheme.eq_ignore_ascii_case("data"))
}

fn is_said(value: Option<&str>) -> bool {
    value.is_some_and(|text| text != "null")
}

fn replacement(dialect: ModelDialect) -> String {
    match dialect {
        ModelDialect::Anthropic | ModelDialect::Chat => {
            json!({ "type": "text", "text": REPLACEMENT })
        }
        ModelDialect::Responses => json!({ "type": "input_text", "text": REPLACEMENT }),
        ModelDialect::Gemini => json!({ "text": REPLACEMENT }),
    }
    .to_string()
}
