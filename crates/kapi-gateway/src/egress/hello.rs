//! The name inside a TLS ClientHello, read without taking part in the handshake.
//!
//! A client that names one host to the proxy and another to the server would reach whatever the
//! server's front door fetches. A message that cannot be read to its end is refused, not waved through.

/// Most bytes of records that are waited for; real hellos are a tenth of it.
pub const BYTES_MAX: usize = 64 * 1024;

/// What the first bytes of a connection are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hello {
    /// Not TLS.
    NotTls,
    /// TLS so far; more bytes are needed.
    Incomplete,
    /// A whole ClientHello and the name it asks for, if it names one.
    Complete {
        /// The name as it was sent.
        server_name: Option<String>,
    },
    /// It begins as TLS and is no ClientHello.
    Malformed,
}

const RECORD_HANDSHAKE: u8 = 22;
const HANDSHAKE_CLIENT_HELLO: u8 = 1;
const EXTENSION_SERVER_NAME: u16 = 0;
const NAME_TYPE_HOST: u8 = 0;

/// Reads as much as has arrived.
#[must_use]
pub fn read(bytes: &[u8]) -> Hello {
    match bytes.first() {
        None => return Hello::Incomplete,
        Some(&RECORD_HANDSHAKE) => {}
        Some(_) => return Hello::NotTls,
    }
    let mut message = Vec::new();
    let mut records = HelloCursor(bytes);
    loop {
        if let Some(hello) = whole_message(&message) {
            return hello;
        }
        let Some(fragment) = records.record() else {
            return Hello::Malformed;
        };
        match fragment {
            None if bytes.len() >= BYTES_MAX => return Hello::Malformed,
            None => return Hello::Incomplete,
            Some(fragment) => message.extend_from_slice(fragment),
        }
    }
}

/// Returns the answer once the handshake message is complete, whatever the records cut it into.
fn whole_message(message: &[u8]) -> Option<Hello> {
    let mut cursor = HelloCursor(message);
    if cursor.byte()? != HANDSHAKE_CLIENT_HELLO {
        return Some(Hello::Malformed);
    }
    let length = cursor.number(3)?;
    if length > BYTES_MAX {
        return Some(Hello::Malformed);
    }
    let body = cursor.bytes(length)?;
    Some(
        server_name(body).map_or(Hello::Malformed, |server_name| Hello::Complete {
            server_name,
        }),
    )
}

/// Returns the name in a ClientHello's body, or nothing where the body cannot be read.
fn server_name(body: &[u8]) -> Option<Option<String>> {
    let mut cursor = HelloCursor(body);
    cursor.bytes(2 + 32)?;
    for length_bytes in [1, 2, 1] {
        let length = cursor.number(length_bytes)?;
        cursor.bytes(length)?;
    }
    if cursor.0.is_empty() {
        return Some(None);
    }
    let length = cursor.number(2)?;
    let mut extensions = HelloCursor(cursor.bytes(length)?);
    let mut found = None;
    while !extensions.0.is_empty() {
        let kind = extensions.number(2)?;
        let length = extensions.number(2)?;
        let content = extensions.bytes(length)?;
        if kind == usize::from(EXTENSION_SERVER_NAME) {
            // Which of two a server would take is its secret.
            if found.is_some() {
                return None;
            }
            found = Some(host_name(content)?);
        }
    }
    cursor.0.is_empty().then_some(found)
}

fn host_name(content: &[u8]) -> Option<String> {
    let mut cursor = HelloCursor(content);
    let length = cursor.number(2)?;
    let mut names = HelloCursor(cursor.bytes(length)?);
    let kind = names.byte()?;
    let length = names.number(2)?;
    let name = names.bytes(length)?;
    let is_only = names.0.is_empty() && cursor.0.is_empty() && kind == NAME_TYPE_HOST;
    String::from_utf8(name.to_vec()).ok().filter(|_| is_only)
}

struct HelloCursor<'a>(&'a [u8]);

impl<'a> HelloCursor<'a> {
    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.bytes(1)?.first().copied()
    }

    fn number(&mut self, n_bytes: usize) -> Option<usize> {
        let bytes = self.bytes(n_bytes)?;
        Some(
            bytes
                .iter()
                .fold(0, |number, byte| number << 8 | usize::from(*byte)),
        )
    }

    /// Returns the content of the next handshake record: the inner nothing when more must arrive,
    /// the outer when it is no such record.
    #[expect(
        clippy::option_option,
        reason = "no record, half a record and a record are three answers"
    )]
    fn record(&mut self) -> Option<Option<&'a [u8]>> {
        let mut ahead = Self(self.0);
        let Some(kind) = ahead.byte() else {
            return Some(None);
        };
        if kind != RECORD_HANDSHAKE {
            return None;
        }
        let (Some(_version), Some(length)) = (ahead.number(2), ahead.number(2)) else {
            return Some(None);
        };
        if length == 0 {
            return None;
        }
        let content = ahead.bytes(length);
        if content.is_some() {
            self.0 = ahead.0;
        }
        Some(content)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::any;
    use proptest::proptest;

    use super::{Hello, read};

    /// The hello of a common client, with its name, key share and other extensions.
    fn hello(extensions: &[u8]) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend([9; 32]);
        body.extend([4, 1, 2, 3, 4]);
        body.extend([0, 4, 0x13, 0x01, 0x13, 0x02]);
        body.extend([1, 0]);
        body.extend([0, u8::try_from(extensions.len()).expect("short")]);
        body.extend(extensions);
        let mut message = vec![1, 0, 0, u8::try_from(body.len()).expect("short")];
        message.extend(body);
        message
    }

    fn records(message: &[u8], fragment: usize) -> Vec<u8> {
        let record = |content: &[u8]| {
            let mut record = vec![22, 3, 1, 0, u8::try_from(content.len()).expect("short")];
            record.extend(content);
            record
        };
        message.chunks(fragment).flat_map(record).collect()
    }

    const NAMED: &[u8] = &[
        0, 43, 0, 3, 2, 3, 4, 0, 0, 0, 11, 0, 9, 0, 0, 6, b'a', b'.', b't', b'e', b's', b't', 0,
        16, 0, 0,
    ];

    #[test]
    fn the_name_is_found_however_the_hello_is_cut() {
        let expected = Hello::Complete {
            server_name: Some("a.test".to_owned()),
        };
        let message = hello(NAMED);
        for fragment in 1..message.len() {
            let bytes = records(&message, fragment);
            assert_eq!(read(&bytes), expected, "{fragment}");
            for length in 0..bytes.len() {
                assert_eq!(
                    read(&bytes[..length]),
                    Hello::Incomplete,
                    "{fragment} {length}"
                );
            }
            let mut with_more = bytes.clone();
            with_more.extend([20, 3, 3, 0, 1, 1]);
            assert_eq!(read(&with_more), expected);
        }
    }

    #[test]
    fn no_extension_is_no_name() {
        let unnamed = Hello::Complete { server_name: None };
        assert_eq!(read(&records(&hello(&[]), 100)), unnamed);
        assert_eq!(read(&records(&hello(&[0, 43, 0, 1, 1]), 100)), unnamed);
        assert_eq!(read(b"GET / HTTP/1.1"), Hello::NotTls);
        assert_eq!(read(b""), Hello::Incomplete);
    }

    #[test]
    fn what_a_server_could_read_otherwise_is_malformed() {
        let twice = [&NAMED[7..], &NAMED[7..]].concat();
        let mut wrong_type = NAMED.to_vec();
        wrong_type[13] = 1;
        let mut short_list = NAMED.to_vec();
        short_list[12] = 8;
        let mut long_name = NAMED.to_vec();
        long_name[15] = 7;
        for extensions in [
            &twice[..],
            &wrong_type,
            &short_list,
            &long_name,
            &[0, 0, 0, 0],
        ] {
            assert_eq!(
                read(&records(&hello(extensions), 200)),
                Hello::Malformed,
                "{extensions:?}"
            );
        }
        let mut other_record = records(&hello(NAMED), 20);
        other_record[25] = 23;
        assert_eq!(read(&other_record), Hello::Malformed);
        assert_eq!(
            read(&[22, 3, 1, 0, 4, 2, 0, 0, 0]),
            Hello::Malformed,
            "a server's hello"
        );
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(bytes: Vec<u8>, at in any::<usize>(), byte: u8) {
            let _answered: Hello = read(&bytes);
            let mut bent = records(&hello(NAMED), 30);
            let at = at % bent.len();
            bent[at] = byte;
            let _answered: Hello = read(&bent);
        }
    }
}
