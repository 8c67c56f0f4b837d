//! The line of a schedule: its names such as `@daily`, its fields, and where each part stands.
//!
//! Knows how a line is cut; what a part may be is the field's matter.

use super::error::CronField;
use crate::record::cron::error::{CronError, CronFault};
use crate::record::cron::field::{CronFieldPart, parse_part};

/// The longest schedule. Every minute of an hour written as a list needs 169 bytes.
const TEXT_BYTES_MAX: usize = 512;

/// A line that was read field by field.
pub(crate) struct CronLine {
    /// The text with single spaces.
    pub(crate) text: String,
    /// The parts of each field, in the order of [`CronField::ALL`].
    pub(crate) fields: [Vec<CronFieldPart>; 6],
}

impl CronLine {
    /// Reads a line of five or six fields, or a name.
    pub(crate) fn parse(text: &str) -> Result<Self, CronError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(CronError::TooLong {
                bytes: text.len(),
                max: TEXT_BYTES_MAX,
            });
        }
        let trimmed = text.trim_ascii();
        if trimmed.starts_with('@') {
            let line = named(trimmed)?;
            return Ok(Self {
                text: trimmed.to_owned(),
                fields: read_fields(line)?,
            });
        }
        Ok(Self {
            text: trimmed
                .split_ascii_whitespace()
                .collect::<Vec<_>>()
                .join(" "),
            fields: read_fields(text)?,
        })
    }
}

fn named(text: &str) -> Result<&'static str, CronError> {
    match text.to_ascii_lowercase().as_str() {
        "@hourly" => Ok("0 * * * *"),
        "@daily" | "@midnight" => Ok("0 0 * * *"),
        "@weekly" => Ok("0 0 * * 0"),
        "@monthly" => Ok("0 0 1 * *"),
        "@yearly" | "@annually" => Ok("0 0 1 1 *"),
        _ => Err(CronError::Name {
            text: text.to_owned(),
        }),
    }
}

fn read_fields(text: &str) -> Result<[Vec<CronFieldPart>; 6], CronError> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let skipped = match words.len() {
        6 => 0,
        5 => 1,
        count => {
            return Err(CronError::FieldCount {
                text: text.to_owned(),
                count,
            });
        }
    };
    // Five fields fire at the beginning of their minute.
    let zero = CronFieldPart::Span {
        first: 0,
        last: 0,
        step: 1,
    };
    let mut fields = [vec![zero], vec![], vec![], vec![], vec![], vec![]];
    let slots = CronField::ALL
        .into_iter()
        .zip(fields.iter_mut())
        .skip(skipped);
    for (index, (word, (field, slot))) in words.iter().zip(slots).enumerate() {
        *slot = read_field(field, word).map_err(|(part, fault)| CronError::Part {
            text: text.to_owned(),
            field,
            number: index + 1,
            part: part.to_owned(),
            character: character_of(text, part),
            fault,
        })?;
    }
    Ok(fields)
}

fn read_field(field: CronField, word: &str) -> Result<Vec<CronFieldPart>, (&str, CronFault)> {
    let is_list = word.contains(',');
    let mut parts = Vec::new();
    for piece in word.split(',') {
        let part =
            parse_part(field, &piece.to_ascii_lowercase()).map_err(|fault| (piece, fault))?;
        if is_list && part == CronFieldPart::Star {
            return Err((piece, CronFault::StarInList));
        }
        parts.push(part);
    }
    Ok(parts)
}

/// Returns where a piece of a text begins, in characters from 1.
fn character_of(text: &str, piece: &str) -> usize {
    let bytes = piece.as_ptr().addr() - text.as_ptr().addr();
    text.get(..bytes).unwrap_or(text).chars().count() + 1
}
