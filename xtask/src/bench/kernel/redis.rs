//! A redis of our own that syncs every write, and as much of its protocol as measuring takes.
//!
//! Listens on a socket in its directory and nowhere else.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context as _, bail, ensure};

use crate::bench::invocation::{Invocation, RunningProgram};
use crate::tool::{ToolCommand, find};

/// The program, and the package that brings it.
pub(super) const PROGRAM: &str = "redis-server";
/// The longest until it listens.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(10);
/// Bytes of the longest answer: what is pushed is far shorter.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;
/// Parts of the longest answer.
const PARTS_MAX: usize = 16;

/// A server, ended when it is dropped.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) socket: PathBuf,
    pub(super) version: String,
    _started: RunningProgram,
}

impl Server {
    /// Starts a server on an empty directory.
    pub(super) fn start(directory: &Path) -> anyhow::Result<Self> {
        ensure!(
            find(PROGRAM).is_some(),
            "it is not installed; `--with redis` installs it"
        );
        fs::create_dir_all(directory).with_context(|| format!("create {}", directory.display()))?;
        let args = [
            &["--port", "0", "--unixsocket", "redis.sock", "--dir", "."][..],
            &["--appendonly", "yes", "--appendfsync", "always"],
            &["--save", "", "--daemonize", "no"],
        ]
        .concat();
        let version = ToolCommand::new(directory, PROGRAM, &["--version"]).read()?;
        let started = Invocation::new("redis", directory, PROGRAM, &args).start()?;
        let socket = directory.join("redis.sock");
        let deadline = Instant::now() + PATIENCE;
        while Client::connect(&socket).is_err() {
            ensure!(Instant::now() < deadline, "reach redis at its socket");
            thread::sleep(PAUSE);
        }
        Ok(Self {
            socket,
            version: word_after(&version, "v="),
            _started: started,
        })
    }
}

/// Installs the server from the system's packages.
pub(super) fn install(directory: &Path) -> anyhow::Result<()> {
    let front = "DEBIAN_FRONTEND=noninteractive";
    for args in [
        &["update", "-q"][..],
        &["install", "-y", "-q", "--no-install-recommends", PROGRAM],
    ] {
        let words = [&[front, "apt-get"], args].concat();
        let tool = ToolCommand::new(directory, "env", &words).without_stdout();
        tool.run().context("install redis-server")?;
    }
    Ok(())
}

fn word_after(text: &str, mark: &str) -> String {
    let mut words = text.split_whitespace();
    let found = words.find_map(|word| word.strip_prefix(mark));
    found.unwrap_or("of an unknown version").to_owned()
}

/// One connection.
#[derive(Debug)]
pub(super) struct Client {
    stream: BufReader<UnixStream>,
}

impl Client {
    /// Connects to a server.
    pub(super) fn connect(socket: &Path) -> anyhow::Result<Self> {
        let stream = UnixStream::connect(socket).context("reach redis")?;
        Ok(Self {
            stream: BufReader::new(stream),
        })
    }

    /// Asks something and waits for the answer, which is read and not looked at.
    pub(super) fn ask(&mut self, words: &[&[u8]]) -> anyhow::Result<()> {
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            bytes.extend(format!("${}\r\n", word.len()).as_bytes());
            bytes.extend(*word);
            bytes.extend(b"\r\n");
        }
        let stream = self.stream.get_mut();
        stream.write_all(&bytes).context("ask redis")?;
        self.answer()
    }

    fn answer(&mut self) -> anyhow::Result<()> {
        let mut n_left = 1_usize;
        while n_left > 0 {
            n_left -= 1;
            let mut line = String::new();
            self.stream.read_line(&mut line).context("hear redis")?;
            let Some((mark, rest)) = line.trim_end().split_at_checked(1) else {
                bail!("hear redis: it said nothing");
            };
            match mark {
                "+" | ":" => {}
                "$" => {
                    let n_bytes: usize = rest.parse().context("read redis's answer")?;
                    ensure!(
                        n_bytes < ANSWER_BYTES_MAX,
                        "read an answer of {n_bytes} bytes"
                    );
                    // The line's end stands after them.
                    let mut bytes = vec![0; n_bytes + 2];
                    self.stream.read_exact(&mut bytes).context("hear redis")?;
                }
                "*" => {
                    n_left += rest.parse::<usize>().context("read redis's answer")?;
                    ensure!(n_left < PARTS_MAX, "read an answer of {n_left} parts");
                }
                _ => bail!("ask redis: {}", line.trim_end()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    use super::{Client, word_after};

    fn ask(answer: &[u8]) -> (anyhow::Result<()>, Vec<u8>) {
        let (near, mut far) = UnixStream::pair().unwrap();
        far.write_all(answer).unwrap();
        let mut client = Client {
            stream: BufReader::new(near),
        };
        let asked = client.ask(&[b"LPUSH", b"q", b"abc"]);
        drop(client);
        let mut bytes = Vec::new();
        far.read_to_end(&mut bytes).unwrap();
        (asked, bytes)
    }

    #[test]
    fn requests_and_answers_are_framed() {
        let (asked, bytes) = ask(b":1\r\n");
        asked.unwrap();
        let expected = b"*3\r\n$5\r\nLPUSH\r\n$1\r\nq\r\n$3\r\nabc\r\n";
        assert_eq!(bytes, expected);
        ask(b"*2\r\n$1\r\nq\r\n$3\r\na\nb\r\n").0.unwrap();
    }

    #[test]
    fn refusals_are_errors() {
        for answer in [&b"-ERR no\r\n"[..], b"?\r\n", b"*900\r\n", b"$x\r\n"] {
            assert!(ask(answer).0.is_err(), "{answer:?}");
        }
    }

    #[test]
    fn the_version_is_found() {
        let reported = "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0";
        assert_eq!(word_after(reported, "v="), "7.0.15");
    }
}
