//! The text protocol of a NATS server: bytes to operations and back.
//!
//! Pure. Knows no socket, no time and nothing of what a message is for.

/// The longest line of the protocol; a server's own description is the longest there is.
const LINE_BYTES_MAX: usize = 64 * 1024;
/// The most bytes of one message that are taken in.
const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What a server says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServerMessage {
    /// Its description of itself, as JSON.
    Info(Vec<u8>),
    /// A message.
    Message(DeliveredMessage),
    /// Are you there?
    Ping,
    /// I am here.
    Pong,
    /// So be it.
    Ok,
    /// Something is wrong.
    Error(String),
}

/// A message as it was delivered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DeliveredMessage {
    /// What it was sent to.
    pub(crate) subject: String,
    /// Its headers, with the first line.
    pub(crate) headers: Vec<u8>,
    /// What it carries.
    pub(crate) payload: Vec<u8>,
}

/// A message to send.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Publication<'a> {
    /// What to send it to.
    pub(crate) subject: &'a str,
    /// Its headers.
    pub(crate) headers: &'a [(&'a str, &'a str)],
    /// What it carries.
    pub(crate) payload: &'a [u8],
}

impl DeliveredMessage {
    /// Returns the number in the first line of the headers: `NATS/1.0 503`.
    pub(crate) fn status(&self) -> Option<u16> {
        let line = self.headers.split(|&byte| byte == b'\r').next()?;
        let rest = line.strip_prefix(b"NATS/1.0 ")?;
        str::from_utf8(rest.get(..3)?).ok()?.parse().ok()
    }
}

/// Returns the value of a header in a block of them.
pub(crate) fn header(block: &[u8], name: &str) -> Option<String> {
    let text = str::from_utf8(block).ok()?;
    text.split("\r\n").find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name)
            .then(|| value.trim().to_owned())
    })
}

/// Takes the first operation from the front of `bytes`, if it is there as a whole.
pub(crate) fn take(bytes: &mut Vec<u8>) -> Result<Option<ServerMessage>, &'static str> {
    let Some(line_bytes) = bytes.windows(2).position(|pair| pair == b"\r\n") else {
        return if bytes.len() > LINE_BYTES_MAX {
            Err("a line is too long")
        } else {
            Ok(None)
        };
    };
    let line = bytes.get(..line_bytes).unwrap_or_default();
    let line = str::from_utf8(line).map_err(|_| "a line is not text")?;
    let (verb, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    let after = line_bytes + 2;
    let said = match verb.to_ascii_uppercase().as_str() {
        "INFO" => ServerMessage::Info(rest.trim().as_bytes().to_vec()),
        "PING" => ServerMessage::Ping,
        "PONG" => ServerMessage::Pong,
        "+OK" => ServerMessage::Ok,
        "-ERR" => ServerMessage::Error(rest.trim().trim_matches('\'').to_owned()),
        "MSG" => return take_message(bytes, after, Layout::Plain),
        "HMSG" => return take_message(bytes, after, Layout::Headers),
        _ => return Err("an operation is unknown"),
    };
    bytes.drain(..after);
    Ok(Some(said))
}

#[derive(Clone, Copy)]
enum Layout {
    Plain,
    Headers,
}

/// `MSG subject sid [reply] bytes`, `HMSG subject sid [reply] header-bytes bytes`.
fn take_message(
    bytes: &mut Vec<u8>,
    after: usize,
    layout: Layout,
) -> Result<Option<ServerMessage>, &'static str> {
    let line = bytes.get(..after - 2).unwrap_or_default();
    let line = str::from_utf8(line).map_err(|_| "a line is not text")?;
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let n_sizes = match layout {
        Layout::Plain => 1,
        Layout::Headers => 2,
    };
    let (Some(subject), Some(sizes)) = (
        words.get(1),
        words.get(words.len().saturating_sub(n_sizes)..),
    ) else {
        return Err("a message has too few words");
    };
    if !(3 + n_sizes..=4 + n_sizes).contains(&words.len()) {
        return Err("a message has too few or too many words");
    }
    let mut numbers = sizes.iter().map(|size| size.parse::<usize>());
    let (Some(Ok(first)), last) = (numbers.next(), numbers.next()) else {
        return Err("a message has no size");
    };
    let (header_bytes, total) = match (layout, last) {
        (Layout::Plain, _) => (0, first),
        (Layout::Headers, Some(Ok(total))) if first <= total => (first, total),
        (Layout::Headers, _) => return Err("a message has no size"),
    };
    if total > MESSAGE_BYTES_MAX {
        return Err("a message is too long");
    }
    let end = after + total;
    let Some(body) = bytes.get(after..end) else {
        return Ok(None);
    };
    match bytes.get(end..end + 2) {
        None => return Ok(None),
        Some(b"\r\n") => {}
        Some(_) => return Err("a message does not end where it says"),
    }
    let (headers, payload) = body.split_at(header_bytes);
    let message = DeliveredMessage {
        subject: (*subject).to_owned(),
        headers: headers.to_vec(),
        payload: payload.to_vec(),
    };
    bytes.drain(..end + 2);
    Ok(Some(ServerMessage::Message(message)))
}

/// Returns a publication as bytes; `reply` is where an answer is to go.
pub(crate) fn encode(publication: &Publication<'_>, reply: &str) -> Vec<u8> {
    let Publication {
        subject,
        headers,
        payload,
    } = publication;
    let mut bytes = Vec::with_capacity(payload.len() + 256);
    if headers.is_empty() {
        bytes.extend(format!("PUB {subject} {reply} {}\r\n", payload.len()).into_bytes());
    } else {
        let lines = headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"));
        let block = format!("NATS/1.0\r\n{}\r\n", lines.collect::<String>());
        let total = block.len() + payload.len();
        let line = format!("HPUB {subject} {reply} {} {total}\r\n", block.len());
        bytes.extend(line.into_bytes());
        bytes.extend(block.into_bytes());
    }
    bytes.extend_from_slice(payload);
    bytes.extend_from_slice(b"\r\n");
    bytes
}

#[cfg(test)]
mod tests {
    use super::{DeliveredMessage, Publication, ServerMessage, encode, header, take};

    fn all(text: &str) -> Result<Vec<ServerMessage>, &'static str> {
        let mut bytes = text.as_bytes().to_vec();
        let mut said = Vec::new();
        while let Some(one) = take(&mut bytes)? {
            said.push(one);
        }
        assert_eq!(bytes, b"", "everything is taken");
        Ok(said)
    }

    #[test]
    fn what_a_server_says_is_read() {
        let text = "INFO {\"a\":1}\r\nPING\r\nPONG\r\n+OK\r\n-ERR 'Stale Connection'\r\n\
                    MSG a.b 1 5\r\nhello\r\nHMSG c 1 r 12 14\r\nNATS/1.0\r\n\r\nhi\r\n\
                    HMSG c 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n";
        let said = all(text).unwrap();
        let message = |subject: &str, headers: &str, payload: &str| {
            ServerMessage::Message(DeliveredMessage {
                subject: subject.to_owned(),
                headers: headers.as_bytes().to_vec(),
                payload: payload.as_bytes().to_vec(),
            })
        };
        let nobody = message("c", "NATS/1.0 503\r\n\r\n", "");
        let expected = [
            ServerMessage::Info(b"{\"a\":1}".to_vec()),
            ServerMessage::Ping,
            ServerMessage::Pong,
            ServerMessage::Ok,
            ServerMessage::Error("Stale Connection".to_owned()),
            message("a.b", "", "hello"),
            message("c", "NATS/1.0\r\n\r\n", "hi"),
            nobody.clone(),
        ];
        assert_eq!(said, expected);
        let ServerMessage::Message(nobody) = nobody else {
            unreachable!()
        };
        assert_eq!(nobody.status(), Some(503));
    }

    #[test]
    fn every_beginning_of_a_message_waits_for_its_rest() {
        let whole = b"HMSG c 1 r 12 14\r\nNATS/1.0\r\n\r\nhi\r\n";
        for length in 0..whole.len() {
            let mut bytes = whole[..length].to_vec();
            assert_eq!(take(&mut bytes), Ok(None), "{length}");
            assert_eq!(bytes, whole[..length], "{length}");
        }
    }

    #[test]
    fn what_is_not_the_protocol_is_refused() {
        for text in [
            "HELLO\r\n",
            "MSG a 1\r\n",
            "MSG a 1 x\r\n",
            "MSG a 1 2\r\nabcd\r\n",
            "HMSG a 1 5 2\r\nab\r\n",
            "MSG a 1 99999999999\r\n",
        ] {
            assert!(all(text).is_err(), "{text:?}");
        }
        let mut long = vec![b'a'; 64 * 1024 + 1];
        assert!(take(&mut long).is_err());
    }

    #[test]
    fn publications_are_written_and_headers_found() {
        let plain = Publication {
            subject: "a",
            headers: &[],
            payload: b"xy",
        };
        assert_eq!(encode(&plain, "r"), b"PUB a r 2\r\nxy\r\n");
        let headers = Publication {
            headers: &[("Nats-Msg-Id", "1")],
            ..plain
        };
        let bytes = encode(&headers, "r");
        assert_eq!(
            bytes,
            b"HPUB a r 28 30\r\nNATS/1.0\r\nNats-Msg-Id: 1\r\n\r\nxy\r\n"
        );
        assert_eq!(header(&bytes, "nats-msg-id").as_deref(), Some("1"));
        assert_eq!(header(&bytes, "other"), None);
    }
}
