//! The first lines of a request or response, as they were sent.
//!
//! Header order, case and bytes are kept. Knows how a head frames its body, and refuses a head whose
//! body two readers could cut at different places.

use super::{HeadLimits, HttpMessageError};

/// Header lines of one message, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers(pub Vec<HttpHeader>);

/// One header line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpHeader {
    /// Its name in the case it was sent in.
    pub name: String,
    /// Its value without the white space around it; never with a line break.
    pub value: Vec<u8>,
}

/// The versions that are spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpVersion {
    /// HTTP/1.0, where a connection ends with its answer.
    Http10,
    /// HTTP/1.1.
    Http11,
}

/// Where a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    Empty,
    /// After so many bytes.
    Length(u64),
    /// After the chunk of length zero.
    Chunked,
    /// Where the connection ends; only a response may end so.
    UntilClose,
}

/// The head of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHead {
    /// The method, in the case it was sent in.
    pub method: String,
    /// The target, printable ASCII.
    pub target: String,
    /// The version.
    pub version: HttpVersion,
    /// The header lines.
    pub headers: Headers,
}

/// The head of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseHead {
    /// The version.
    pub version: HttpVersion,
    /// The status code.
    pub status: u16,
    /// The words after it, without meaning.
    pub reason: String,
    /// The header lines.
    pub headers: Headers,
}

impl Headers {
    /// Returns the values of every line called `name`, in any case.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.0
            .iter()
            .filter(move |header| header.name.eq_ignore_ascii_case(name))
            .map(|header| header.value.as_slice())
    }

    /// Returns the first value called `name`.
    #[must_use]
    pub fn first<'a>(&'a self, name: &'a str) -> Option<&'a [u8]> {
        self.all(name).next()
    }

    /// Returns whether one of the comma-separated words under `name` is `word`, in any case.
    #[must_use]
    pub fn has_word(&self, name: &str, word: &str) -> bool {
        self.all(name)
            .flat_map(|value| value.split(|byte| *byte == b','))
            .any(|item| item.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
    }

    /// Removes every line called `name`.
    pub fn remove(&mut self, name: &str) {
        self.0
            .retain(|header| !header.name.eq_ignore_ascii_case(name));
    }

    /// Adds a line at the end. The caller vouches that neither part has a line break.
    pub fn add(&mut self, name: &str, value: &[u8]) {
        let breaks = |bytes: &[u8]| bytes.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0));
        assert!(
            !breaks(name.as_bytes()) && !breaks(value),
            "header lines are made of parsed text or our own"
        );
        self.0.push(HttpHeader {
            name: name.to_owned(),
            value: value.to_vec(),
        });
    }

    /// Replaces every line called `name` by one at the end.
    pub fn replace(&mut self, name: &str, value: &[u8]) {
        self.remove(name);
        self.add(name, value);
    }

    /// Removes the lines that speak of one connection only, named ones included.
    ///
    /// Naming the lines that say whose message it is and where it ends does not remove them: the
    /// receiver would cut the same bytes into other messages.
    pub fn remove_hop_by_hop(&mut self) {
        const HOP_BY_HOP: [&str; 9] = [
            "connection",
            "keep-alive",
            "proxy-authenticate",
            "proxy-authorization",
            "proxy-connection",
            "te",
            "trailer",
            "transfer-encoding",
            "upgrade",
        ];
        const END_TO_END: [&str; 2] = ["content-length", "host"];
        let named: Vec<String> = ["connection", "proxy-connection"]
            .iter()
            .flat_map(|name| self.all(name))
            .flat_map(|value| value.split(|byte| *byte == b','))
            .map(|word| String::from_utf8_lossy(word.trim_ascii()).into_owned())
            .filter(|word| !END_TO_END.contains(&word.to_ascii_lowercase().as_str()))
            .collect();
        for name in HOP_BY_HOP
            .iter()
            .copied()
            .chain(named.iter().map(String::as_str))
        {
            self.remove(name);
        }
    }

    fn write_to(&self, bytes: &mut Vec<u8>) {
        for header in &self.0 {
            bytes.extend_from_slice(header.name.as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(&header.value);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
    }
}

impl RequestHead {
    /// Parses the bytes up to and with the empty line.
    pub fn parse(bytes: &[u8], limits: &HeadLimits) -> Result<Self, HttpMessageError> {
        check_lines(bytes)?;
        let mut lines = vec![httparse::EMPTY_HEADER; limits.headers_max];
        let mut request = httparse::Request::new(&mut lines);
        let parsed = request
            .parse(bytes)
            .map_err(|error| of_parse(error, limits))?;
        let (Some(method), Some(target), Some(minor)) =
            (request.method, request.path, request.version)
        else {
            return Err(malformed("its first line is not complete"));
        };
        if parsed != httparse::Status::Complete(bytes.len()) {
            return Err(malformed("its head does not end where its empty line is"));
        }
        if !target.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(malformed(
                "its target has bytes that are not printable ASCII",
            ));
        }
        Ok(Self {
            method: method.to_owned(),
            target: target.to_owned(),
            version: version(minor),
            headers: headers(request.headers),
        })
    }

    /// Returns where the body ends, or why nobody can tell.
    pub fn framing(&self) -> Result<Framing, HttpMessageError> {
        let declared = declared_framing(&self.headers, self.version)?;
        Ok(declared.unwrap_or(Framing::Empty))
    }

    /// Returns whether the client wants to send another request on this connection.
    #[must_use]
    pub fn keeps_alive(&self) -> bool {
        keeps_alive(&self.headers, self.version)
    }

    /// Returns the head as it goes over the wire.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let version = version_text(self.version);
        let mut bytes = format!("{} {} {version}\r\n", self.method, self.target).into_bytes();
        self.headers.write_to(&mut bytes);
        bytes
    }
}

impl ResponseHead {
    /// Parses the bytes up to and with the empty line.
    pub fn parse(bytes: &[u8], limits: &HeadLimits) -> Result<Self, HttpMessageError> {
        check_lines(bytes)?;
        let mut lines = vec![httparse::EMPTY_HEADER; limits.headers_max];
        let mut response = httparse::Response::new(&mut lines);
        let parsed = response
            .parse(bytes)
            .map_err(|error| of_parse(error, limits))?;
        let (Some(status), Some(minor)) = (response.code, response.version) else {
            return Err(malformed("its first line is not complete"));
        };
        if parsed != httparse::Status::Complete(bytes.len()) {
            return Err(malformed("its head does not end where its empty line is"));
        }
        Ok(Self {
            version: version(minor),
            status,
            reason: response.reason.unwrap_or_default().to_owned(),
            headers: headers(response.headers),
        })
    }

    /// Returns where the body of the answer to a request with `method` ends.
    pub fn framing(&self, method: &str) -> Result<Framing, HttpMessageError> {
        let declared = declared_framing(&self.headers, self.version)?;
        if method == "HEAD" || self.status < 200 || matches!(self.status, 204 | 304) {
            return Ok(Framing::Empty);
        }
        Ok(declared.unwrap_or(Framing::UntilClose))
    }

    /// Returns whether the server takes another request on this connection.
    #[must_use]
    pub fn keeps_alive(&self) -> bool {
        keeps_alive(&self.headers, self.version)
    }

    /// Returns the head as it goes over the wire.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let version = version_text(self.version);
        let mut bytes = format!("{version} {} {}\r\n", self.status, self.reason).into_bytes();
        self.headers.write_to(&mut bytes);
        bytes
    }
}

/// Returns the reason phrase of a status of our own answers.
const fn reason(status: u16) -> &'static str {
    match status {
        202 => "Accepted",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "",
    }
}

/// Returns a whole answer of our own that closes the connection after it.
#[must_use]
pub fn closing_answer(status: u16, content_type: &str, body: &[u8]) -> Vec<u8> {
    let mut headers = Headers::default();
    headers.add("Content-Type", content_type.as_bytes());
    headers.add("Content-Length", body.len().to_string().as_bytes());
    headers.add("Connection", b"close");
    let head = ResponseHead {
        version: HttpVersion::Http11,
        status,
        reason: reason(status).to_owned(),
        headers,
    };
    let mut bytes = head.to_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// Refuses line ends that some readers take for one and others do not, and folded lines.
fn check_lines(head: &[u8]) -> Result<(), HttpMessageError> {
    let mut before = 0_u8;
    for (byte_idx, byte) in head.iter().copied().enumerate() {
        if (byte == b'\n') != (before == b'\r') {
            return Err(malformed("a line of its head does not end with CR LF"));
        }
        let after_line = before == b'\n' && byte_idx > 0;
        if after_line && matches!(byte, b' ' | b'\t') {
            return Err(malformed("a line of its head is folded"));
        }
        before = byte;
    }
    Ok(())
}

fn declared_framing(
    headers: &Headers,
    version: HttpVersion,
) -> Result<Option<Framing>, HttpMessageError> {
    let mut encodings = headers.all("transfer-encoding");
    let mut lengths = headers.all("content-length");
    match (encodings.next(), lengths.next()) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(malformed("it has both a length and a transfer encoding")),
        (Some(encoding), None) => {
            if encodings.next().is_some() || !encoding.eq_ignore_ascii_case(b"chunked") {
                return Err(malformed("its transfer encoding is not just `chunked`"));
            }
            match version {
                HttpVersion::Http10 => Err(malformed("HTTP/1.0 has no transfer encoding")),
                HttpVersion::Http11 => Ok(Some(Framing::Chunked)),
            }
        }
        (None, Some(length)) => {
            if lengths.next().is_some() {
                return Err(malformed("it has more than one length"));
            }
            parse_length(length).map(|length| Some(Framing::Length(length)))
        }
    }
}

fn parse_length(text: &[u8]) -> Result<u64, HttpMessageError> {
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text)
        .ok()
        .filter(|_| digits)
        .and_then(|text| text.parse().ok())
        .ok_or(malformed("its length is not a number"))
}

fn keeps_alive(headers: &Headers, version: HttpVersion) -> bool {
    match version {
        HttpVersion::Http11 => !headers.has_word("connection", "close"),
        HttpVersion::Http10 => headers.has_word("connection", "keep-alive"),
    }
}

fn headers(lines: &[httparse::Header<'_>]) -> Headers {
    Headers(
        lines
            .iter()
            .map(|line| HttpHeader {
                name: line.name.to_owned(),
                value: line.value.trim_ascii().to_vec(),
            })
            .collect(),
    )
}

fn version(minor: u8) -> HttpVersion {
    if minor == 0 {
        HttpVersion::Http10
    } else {
        HttpVersion::Http11
    }
}

fn version_text(version: HttpVersion) -> &'static str {
    match version {
        HttpVersion::Http10 => "HTTP/1.0",
        HttpVersion::Http11 => "HTTP/1.1",
    }
}

fn of_parse(error: httparse::Error, limits: &HeadLimits) -> HttpMessageError {
    let headers_max = limits.headers_max;
    match error {
        httparse::Error::HeaderName => malformed("a header name has bytes that no name has"),
        httparse::Error::HeaderValue => malformed("a header value has control bytes"),
        httparse::Error::TooManyHeaders => HttpMessageError::TooManyHeaders { headers_max },
        httparse::Error::Version => malformed("it is not HTTP/1.1"),
        httparse::Error::NewLine | httparse::Error::Status | httparse::Error::Token => {
            malformed("its first line is not one of HTTP")
        }
    }
}

fn malformed(problem: &'static str) -> HttpMessageError {
    HttpMessageError::Malformed { problem }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Framing, HttpVersion, RequestHead, ResponseHead};
    use crate::http::HeadLimits;

    const LIMITS: HeadLimits = HeadLimits {
        bytes_max: 1000,
        headers_max: 4,
        time_max: Duration::from_secs(1),
    };

    #[test]
    fn a_head_keeps_its_order_case_and_bytes() {
        let bytes = b"GET /a?b HTTP/1.1\r\nX-B: \xff\r\nx-a: 1\r\nX-B: 2\r\n\r\n";
        let head = RequestHead::parse(bytes, &LIMITS).expect("a head");
        assert_eq!(head.to_bytes(), bytes);
        assert_eq!(
            head.headers.all("x-b").collect::<Vec<_>>(),
            [&b"\xff"[..], b"2"]
        );
        let bytes = b"HTTP/1.0 200 Very Fine\r\nA: b\r\n\r\n";
        let head = ResponseHead::parse(bytes, &LIMITS).expect("a head");
        assert_eq!(head.to_bytes(), bytes);
    }

    #[test]
    fn words_and_hop_by_hop_lines_are_found_in_any_case() {
        let bytes = b"GET / HTTP/1.1\r\nCONNECTION: a, Close\r\nA: 1\r\nb: 2\r\n\r\n";
        let mut head = RequestHead::parse(bytes, &LIMITS).expect("a head");
        assert!(head.headers.has_word("connection", "close"));
        assert!(!head.headers.has_word("connection", "clos"));
        assert!(!head.keeps_alive());
        head.headers.remove_hop_by_hop();
        assert_eq!(head.to_bytes(), b"GET / HTTP/1.1\r\nb: 2\r\n\r\n");
        let bytes = b"GET / HTTP/1.1\r\nConnection: Content-Length, HOST\r\nHost: a\r\nContent-Length: 1\r\n\r\n";
        let mut head = RequestHead::parse(bytes, &LIMITS).expect("a head");
        head.headers.remove_hop_by_hop();
        let kept = b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n";
        assert_eq!(head.to_bytes(), kept, "what frames a message stays");
    }

    #[test]
    fn where_an_answer_ends_depends_on_what_was_asked() {
        let check = |method: &str, bytes: &str, expected: Option<Framing>| {
            let head = ResponseHead::parse(bytes.as_bytes(), &LIMITS).expect("a head");
            assert_eq!(head.framing(method).ok(), expected, "{method} {bytes}");
        };
        let length = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n";
        check("GET", length, Some(Framing::Length(7)));
        check("HEAD", length, Some(Framing::Empty));
        let bare = "HTTP/1.1 200 OK\r\n\r\n";
        check("GET", bare, Some(Framing::UntilClose));
        check("GET", "HTTP/1.1 204 None\r\n\r\n", Some(Framing::Empty));
        check("GET", "HTTP/1.1 100 Continue\r\n\r\n", Some(Framing::Empty));
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        check("GET", chunked, Some(Framing::Chunked));
        check("GET", &chunked.replace("1.1", "1.0"), None);
        check(
            "HEAD",
            &length.replace("\r\n\r\n", "\r\nContent-Length: 7\r\n\r\n"),
            None,
        );
    }

    #[test]
    fn old_clients_say_when_they_stay() {
        let keeps = |text: &str| {
            let head = RequestHead::parse(text.as_bytes(), &LIMITS).expect("a head");
            (head.version, head.keeps_alive())
        };
        assert_eq!(
            keeps("GET / HTTP/1.0\r\n\r\n"),
            (HttpVersion::Http10, false)
        );
        let kept = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
        assert_eq!(keeps(kept), (HttpVersion::Http10, true));
        assert_eq!(keeps("GET / HTTP/1.1\r\n\r\n"), (HttpVersion::Http11, true));
    }
}
