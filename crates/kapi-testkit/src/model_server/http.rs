//! HTTP/1.1 as far as model clients use it: requests read, answers written.
//! It does not know any API, and refuses what it cannot read.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

/// The most bytes a request head may have.
const HEAD_BYTES_MAX: u64 = 64 * 1024;
/// The most headers a request may have.
const HEADERS_MAX: usize = 128;
/// The most bytes a request body may have.
const BODY_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A connection that cannot be used any further.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    /// The client went away, or the server is ending.
    #[error("use the connection")]
    Connection {
        #[from]
        source: io::Error,
    },
    /// What came is not HTTP.
    #[error("parse the request head")]
    Head {
        #[from]
        source: httparse::Error,
    },
    /// The request ends early, breaks a limit or frames its body in an unknown way.
    #[error("read the request: {reason}")]
    Framing { reason: &'static str },
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HttpRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl HttpRequest {
    /// Returns a header by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(header, _)| header == name)
            .map(|(_, value)| value.as_str())
    }
}

/// Reads the next request of a connection; nothing where the client has closed it.
pub(crate) fn read_request(
    reader: &mut BufReader<TcpStream>,
) -> Result<Option<HttpRequest>, HttpError> {
    let Some(head) = read_head(reader)? else {
        return Ok(None);
    };
    let mut slots = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut slots);
    if parsed.parse(&head)?.is_partial() {
        return Err(HttpError::Framing {
            reason: "the head is incomplete",
        });
    }
    let target = parsed.path.unwrap_or("/");
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut request = HttpRequest {
        method: parsed.method.unwrap_or_default().to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        headers: parsed
            .headers
            .iter()
            .map(|header| {
                let value = String::from_utf8_lossy(header.value).into_owned();
                (header.name.to_ascii_lowercase(), value)
            })
            .collect(),
        body: Vec::new(),
    };
    request.body = read_body(reader, &request)?;
    Ok(Some(request))
}

fn read_head(reader: &mut BufReader<TcpStream>) -> Result<Option<Vec<u8>>, HttpError> {
    let mut head = Vec::new();
    let mut limited = reader.take(HEAD_BYTES_MAX);
    loop {
        let read = limited.read_until(b'\n', &mut head)?;
        if read == 0 && head.is_empty() {
            return Ok(None);
        }
        if read == 0 {
            return Err(HttpError::Framing {
                reason: "the head ends early or is too long",
            });
        }
        if head.ends_with(b"\r\n\r\n") {
            return Ok(Some(head));
        }
    }
}

fn read_body(
    reader: &mut BufReader<TcpStream>,
    request: &HttpRequest,
) -> Result<Vec<u8>, HttpError> {
    if let Some(coding) = request.header("transfer-encoding") {
        if coding.eq_ignore_ascii_case("chunked") {
            return read_chunks(reader);
        }
        return Err(HttpError::Framing {
            reason: "the transfer coding is unknown",
        });
    }
    let length = match request.header("content-length") {
        Some(length) => length.trim().parse().map_err(|_| HttpError::Framing {
            reason: "the content length is not a number",
        })?,
        None => 0,
    };
    let mut body = Vec::new();
    read_exactly(reader, length, &mut body)?;
    Ok(body)
}

fn read_chunks(reader: &mut BufReader<TcpStream>) -> Result<Vec<u8>, HttpError> {
    let mut body = Vec::new();
    loop {
        let line = read_line(reader)?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let length = u64::from_str_radix(digits, 16).map_err(|_| HttpError::Framing {
            reason: "a chunk length is not a number",
        })?;
        if length == 0 {
            // Trailers, if any, end with an empty line.
            while !read_line(reader)?.trim().is_empty() {}
            return Ok(body);
        }
        read_exactly(reader, length, &mut body)?;
        read_line(reader)?;
    }
}

fn read_line(reader: &mut BufReader<TcpStream>) -> Result<String, HttpError> {
    let mut line = String::new();
    if reader.take(HEAD_BYTES_MAX).read_line(&mut line)? == 0 {
        return Err(HttpError::Framing {
            reason: "the body ends early",
        });
    }
    Ok(line)
}

fn read_exactly(
    reader: &mut BufReader<TcpStream>,
    length: u64,
    body: &mut Vec<u8>,
) -> Result<(), HttpError> {
    let before = body.len() as u64;
    if before + length > BODY_BYTES_MAX {
        return Err(HttpError::Framing {
            reason: "the body is too long",
        });
    }
    reader.take(length).read_to_end(body)?;
    if body.len() as u64 - before < length {
        return Err(HttpError::Framing {
            reason: "the body ends early",
        });
    }
    Ok(())
}

/// Writes the head of an answer; one of the headers must say where the body ends.
pub(crate) fn write_head(
    stream: &mut TcpStream,
    status: u16,
    headers: &[(&str, &str)],
) -> Result<(), HttpError> {
    let mut head = Vec::new();
    write!(head, "HTTP/1.1 {status} {}\r\n", reason_phrase(status))?;
    for (name, value) in headers {
        write!(head, "{name}: {value}\r\n")?;
    }
    head.extend_from_slice(b"\r\n");
    stream.write_all(&head)?;
    Ok(())
}

/// Writes one chunk of a body; an empty one ends it.
pub(crate) fn write_chunk(stream: &mut TcpStream, bytes: &[u8]) -> Result<(), HttpError> {
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    stream.write_all(&chunk)?;
    Ok(())
}

fn reason_phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        415 => "Unsupported Media Type",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        // The phrase carries no meaning; it only has to be there.
        _ => "Status",
    }
}
