//! What a remote says, read without trust.
//!
//! Everything here is foreign text: it is cut, searched for the one thing that is wanted, and
//! never obeyed. Runs nothing.

use crate::id::CommitId;

/// The longest address that is taken.
const URL_BYTES_MAX: usize = 2048;

/// The most lines of an answer that are read.
const LINES_MAX: usize = 200;

/// Parts of an address that stand for a pull or merge request, on the forges in use.
const REQUEST_WORDS: [&str; 6] = [
    "/pull/",
    "/pulls",
    "/compare/",
    "merge_requests",
    "/pull-requests",
    "pullrequestcreate",
];

/// Returns the commit of `name` in the answer of `ls-remote`.
pub(super) fn tip_of(answer: &[u8], name: &str) -> Option<CommitId> {
    let text = String::from_utf8_lossy(answer);
    let mut lines = text.lines().take(LINES_MAX);
    lines.find_map(|line| {
        let (commit, found) = line.split_once('\t')?;
        let commit = CommitId::parse(commit).ok()?;
        (found == name).then_some(commit)
    })
}

/// Returns the address of a page for a pull request that the remote printed.
///
/// One that looks like such a page goes before any other address.
pub(super) fn pull_request_url(message: &str) -> Option<String> {
    let lines = message.lines().take(LINES_MAX);
    let words = lines
        .filter_map(|line| line.trim_start().strip_prefix("remote:"))
        .flat_map(str::split_whitespace);
    let found: Vec<&str> = words.filter(|word| is_web_address(word)).collect();
    let likely = found
        .iter()
        .find(|url| REQUEST_WORDS.iter().any(|part| url.contains(part)));
    likely.or(found.first()).map(|url| (*url).to_owned())
}

fn is_web_address(word: &str) -> bool {
    let rest = word
        .strip_prefix("https://")
        .or_else(|| word.strip_prefix("http://"));
    let Some(rest) = rest else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_host = |b: u8| b.is_ascii_alphanumeric() || b".-:[]".contains(&b);
    word.len() <= URL_BYTES_MAX
        && word.bytes().all(|b| b.is_ascii_graphic())
        && authority.bytes().any(|b| b.is_ascii_alphanumeric())
        // Before an `@` stands a name or a password, or something made to look like a host.
        && authority.bytes().all(is_host)
}

/// Returns a message without the user names and passwords of addresses in it.
pub(super) fn without_credentials(message: &str) -> String {
    let mut clean = String::with_capacity(message.len());
    let mut rest = message;
    while let Some((before, after)) = rest.split_once("://") {
        clean.push_str(before);
        clean.push_str("://");
        let is_end = |c: char| c == '/' || c.is_whitespace() || c == '\'' || c == '"';
        let end = after.find(is_end).unwrap_or(after.len());
        let (authority, tail) = after.split_at(end);
        match authority.rsplit_once('@') {
            Some((_secret, host)) => {
                clean.push_str("***@");
                clean.push_str(host);
            }
            None => clean.push_str(authority),
        }
        rest = tail;
    }
    clean.push_str(rest);
    clean
}

#[cfg(test)]
mod tests {
    use super::{pull_request_url, tip_of, without_credentials};

    #[test]
    fn only_a_web_address_the_remote_printed_is_a_page() {
        let long = format!("remote: https://a.example/{}", "x".repeat(3000));
        for (message, expected) in [
            (
                "remote: https://a.example/u/r/pull/new/x",
                Some("https://a.example/u/r/pull/new/x"),
            ),
            (
                "remote: see https://docs.example/help\nremote:   https://g.example/-/merge_requests/new?b=x",
                Some("https://g.example/-/merge_requests/new?b=x"),
            ),
            (
                "remote: see http://h.example:8080/x",
                Some("http://h.example:8080/x"),
            ),
            ("To https://a.example/u/r/pull/1", None),
            (
                "remote: javascript:alert(1) file:///etc/passwd ssh://x/pull/1",
                None,
            ),
            ("remote: https://user:pw@a.example/pull/1", None),
            ("remote: https://a.example\u{1b}[2J/pull/1", None),
            ("remote: https://ä.example/pull/1", None),
            ("remote: https:///pull/1", None),
            (long.as_str(), None),
        ] {
            assert_eq!(pull_request_url(message).as_deref(), expected, "{message}");
        }
    }

    #[test]
    fn a_tip_is_of_exactly_the_branch_that_was_asked_for() {
        let one = "1".repeat(40);
        let two = "2".repeat(40);
        let answer = format!("{one}\trefs/heads/a/refs/heads/x\n{two}\trefs/heads/x\n");
        let tip = tip_of(answer.as_bytes(), "refs/heads/x").expect("a tip");
        assert_eq!(tip.as_str(), two);
        assert_eq!(tip_of(b"garbage\nx\trefs/heads/x\n", "refs/heads/x"), None);
    }

    #[test]
    fn a_message_holds_no_credentials() {
        assert_eq!(
            without_credentials(
                "fatal: unable to access 'https://u:p@h/x': no; https://h/y ssh://git@h"
            ),
            "fatal: unable to access 'https://***@h/x': no; https://h/y ssh://***@h"
        );
    }
}
