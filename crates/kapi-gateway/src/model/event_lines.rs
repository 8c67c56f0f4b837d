//! Finds the data of server-sent events in bytes that arrive in pieces.
//!
//! Keeps no event: data is handed on as it comes, and the end of each event is told. It does not
//! know what the data means, and ignores event names, ids and comments.

/// What was met, in order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EventToken<'a> {
    /// Bytes of the event's data; a line break between two data lines is one byte of it.
    Data(&'a [u8]),
    /// The event ended; `offset` is the place after it in the piece that was fed.
    End {
        /// Bytes of the piece up to and with the end of the event.
        offset: usize,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinePosition {
    /// At the start of a line; so many bytes of the field's name have matched.
    Name(usize),
    /// After `data:`, where one space is not part of the data.
    Space,
    Data,
    Other,
}

const FIELD: &[u8] = b"data:";

/// The state between two pieces.
#[derive(Debug)]
pub(crate) struct EventLines {
    line: LinePosition,
    /// A carriage return ended the last line; a line feed right after it belongs to it.
    after_return: bool,
    /// The event being read has some line.
    has_lines: bool,
    /// The event being read has some data.
    has_data: bool,
}

impl EventLines {
    pub(crate) const fn new() -> Self {
        Self {
            line: LinePosition::Name(0),
            after_return: false,
            has_lines: false,
            has_data: false,
        }
    }

    /// Tells whether everything fed so far is whole events.
    pub(crate) fn is_between_events(&self) -> bool {
        !self.has_lines && self.line == LinePosition::Name(0)
    }

    /// Reads on, telling what it meets.
    pub(crate) fn feed(&mut self, bytes: &[u8], on: &mut dyn FnMut(EventToken<'_>)) {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            if byte == b'\n' && self.after_return {
                self.after_return = false;
                at += 1;
                continue;
            }
            self.after_return = byte == b'\r';
            if byte == b'\n' || byte == b'\r' {
                at += 1;
                self.end_line(at, on);
                continue;
            }
            at += match self.line {
                LinePosition::Name(matched) => self.name(matched, byte, on),
                LinePosition::Space => {
                    self.line = LinePosition::Data;
                    usize::from(byte == b' ')
                }
                LinePosition::Data => {
                    let text = until_break(bytes, at);
                    on(EventToken::Data(text));
                    text.len()
                }
                LinePosition::Other => until_break(bytes, at).len(),
            };
        }
    }

    /// Reads a byte of a field's name; returns how many bytes were used.
    fn name(&mut self, matched: usize, byte: u8, on: &mut dyn FnMut(EventToken<'_>)) -> usize {
        self.has_lines = true;
        if FIELD.get(matched) != Some(&byte) {
            self.line = LinePosition::Other;
            return 0;
        }
        self.line = LinePosition::Name(matched + 1);
        if matched + 1 == FIELD.len() {
            self.line = LinePosition::Space;
            if self.has_data {
                on(EventToken::Data(b"\n"));
            }
            self.has_data = true;
        }
        1
    }

    fn end_line(&mut self, offset: usize, on: &mut dyn FnMut(EventToken<'_>)) {
        let was_empty = self.line == LinePosition::Name(0);
        self.line = LinePosition::Name(0);
        if was_empty && self.has_lines {
            self.has_lines = false;
            self.has_data = false;
            on(EventToken::End { offset });
        }
    }
}

fn until_break(bytes: &[u8], from: usize) -> &[u8] {
    let rest = bytes.get(from..).unwrap_or_default();
    let length = rest
        .iter()
        .position(|&byte| byte == b'\n' || byte == b'\r')
        .unwrap_or(rest.len());
    rest.get(..length).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{EventLines, EventToken};

    /// The data of each event, whole.
    fn events(pieces: &[&[u8]]) -> Vec<String> {
        let mut lines = EventLines::new();
        let mut done = Vec::new();
        let mut data = Vec::new();
        for piece in pieces {
            lines.feed(piece, &mut |met| match met {
                EventToken::Data(bytes) => data.extend_from_slice(bytes),
                EventToken::End { offset } => {
                    assert!(offset <= piece.len());
                    done.push(String::from_utf8(std::mem::take(&mut data)).expect("text"));
                }
            });
        }
        done
    }

    #[test]
    fn data_of_events_however_the_bytes_are_split() {
        let check = |text: &str, expected: &[&str]| {
            for first in 0..=text.len() {
                let (one, two) = text.as_bytes().split_at(first);
                assert_eq!(events(&[one, two]), expected, "split at {first}: {text:?}");
            }
            let single: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert_eq!(events(&single), expected, "single bytes: {text:?}");
        };
        check("data: {\"a\":1}\n\n", &["{\"a\":1}"]);
        check("event: x\ndata: 1\n\ndata:2\n\n", &["1", "2"]);
        check("event: x\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", &["1", "2"]);
        check("data: 1\r\rdata: 2\r\r", &["1", "2"]);
        check("data: 1\ndata: 2\n\n", &["1\n2"]);
        check("data:  two spaces\n\n", &[" two spaces"]);
        check(": ping\n\n\n\ndata\n\ndatum: x\n\n", &["", "", ""]);
        check("id: 7\ndata: 1\nretry: 3\n\n", &["1"]);
        check("data: not ended\n", &[]);
        check("data: [DONE]\n\n", &["[DONE]"]);
    }

    #[test]
    fn the_place_between_events() {
        let mut lines = EventLines::new();
        let mut after = |bytes: &[u8]| {
            let mut ends = Vec::new();
            lines.feed(bytes, &mut |met| match met {
                EventToken::End { offset } => ends.push(offset),
                EventToken::Data(_) => {}
            });
            (lines.is_between_events(), ends)
        };
        assert_eq!(after(b""), (true, vec![]));
        assert_eq!(after(b"da"), (false, vec![]));
        assert_eq!(after(b"ta: 1\n"), (false, vec![]));
        assert_eq!(after(b"\ndata: 2\n\ndata"), (false, vec![1, 10]));
        assert_eq!(after(b": 3\n\n"), (true, vec![5]));
    }
}
