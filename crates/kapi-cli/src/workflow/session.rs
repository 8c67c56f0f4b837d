//! Which session this process belongs to: the one a host names, else the terminal it runs at.
//!
//! A session is only ever attached to a workflow; it owns nothing.

use std::fs;

use crate::context::Context;

/// The variable by which a host names its session.
pub(crate) const VARIABLE: &str = "KAPI_SESSION";
/// Characters of a session's name.
const NAME_CHARS_MAX: usize = 128;

/// Returns the name of this session; none where no host names one and there is no terminal.
pub(crate) fn session(context: &Context) -> Option<String> {
    let named = context.variable(VARIABLE).map(tidy);
    if let Some(name) = named.filter(|name| !name.is_empty()) {
        return Some(name);
    }
    let own = fs::read_to_string("/proc/self/stat").ok()?;
    let own = Stat::read(&own)?;
    let terminal = terminal_name(own.terminal)?;
    let leader = fs::read_to_string(format!("/proc/{}/stat", own.session)).ok();
    // A leader that has ended leaves its number, which no other process has while the session lives.
    let started = leader
        .as_deref()
        .and_then(Stat::read)
        .map_or(0, |stat| stat.started);
    Some(format!("{terminal}.{}.{started}", own.session))
}

fn tidy(name: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/');
    name.trim()
        .chars()
        .filter(is_plain)
        .take(NAME_CHARS_MAX)
        .collect()
}

/// What a process's line in the system's table says.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    session: u32,
    terminal: u32,
    started: u64,
}

impl Stat {
    /// Reads `/proc/<pid>/stat`: the name, in brackets, may itself hold spaces and brackets.
    fn read(line: &str) -> Option<Self> {
        let (_, rest) = line.rsplit_once(')')?;
        let mut fields = rest.split_whitespace();
        // After the name come state, parent, group; then session and terminal.
        let session = fields.nth(3)?.parse().ok()?;
        let terminal: i64 = fields.next()?.parse().ok()?;
        let started = fields.nth(14)?.parse().ok()?;
        Some(Self {
            session,
            terminal: u32::try_from(terminal & 0xffff_ffff).ok()?,
            started,
        })
    }
}

/// Names a terminal by its device number; none where a process has no terminal.
fn terminal_name(device: u32) -> Option<String> {
    const PTS_FIRST: u32 = 136;
    const PTS_LAST: u32 = 143;
    if device == 0 {
        return None;
    }
    let major = (device >> 8) & 0xfff;
    let minor = (device & 0xff) | ((device >> 12) & 0xf_ff00);
    Some(match major {
        PTS_FIRST..=PTS_LAST => format!("pts/{}", (major - PTS_FIRST) * 256 + minor),
        4 => format!("tty{minor}"),
        major => format!("tty-{major}-{minor}"),
    })
}

#[cfg(test)]
mod tests {
    use super::{Stat, terminal_name, tidy};

    #[test]
    fn a_line_of_the_process_table_is_read_past_any_name() {
        let line = "4242 (a) b (c)) S 1 4242 4200 34819 4242 4194560 1 0 0 0 0 0 0 0 20 0 1 0 \
                    987654 1 1";
        assert_eq!(
            Stat::read(line),
            Some(Stat {
                session: 4200,
                terminal: 34819,
                started: 987_654,
            })
        );
        assert_eq!(Stat::read("1 (x) S 1"), None);
    }

    #[test]
    fn terminals_have_the_names_that_people_know() {
        assert_eq!(terminal_name(0), None);
        assert_eq!(terminal_name(34819).unwrap(), "pts/3");
        assert_eq!(terminal_name((137 << 8) | 5).unwrap(), "pts/261");
        assert_eq!(terminal_name((4 << 8) | 1).unwrap(), "tty1");
        assert_eq!(tidy(" pi:a/b \u{1b}[2J"), "pi:a/b2J");
    }
}
