//! What the configuration of a repository says, read without git where its text is plain.
//!
//! Understands less of the language than git on purpose: whatever is not surely understood is
//! for git to read. Knows what the settings mean only as far as drivers and conversions go.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

/// Settings that change what a file looks like in the working tree; the only ones of the person's
/// that are carried over to work on a workspace.
const CONVERSIONS: [&[u8]; 3] = [b"core.autocrlf", b"core.eol", b"core.sharedrepository"];

/// Settings that name a program for git to run on a file: the section, then the last word.
const DRIVERS: [(&[u8], &[&[u8]]); 3] = [
    (
        b"filter.",
        &[b".clean", b".smudge", b".process", b".required"],
    ),
    (b"diff.", &[b".command", b".textconv"]),
    (b"merge.", &[b".driver"]),
];

/// One setting, its key as git writes it: section and name in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GitSetting {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

/// Reads the text of a configuration file; nothing when git has to read it.
///
/// Plain are comments, section headers on a line of their own, and values without quotes,
/// escapes, comments after them or unusual space. A file that includes another is not plain.
pub(super) fn parse(text: &[u8]) -> Option<Vec<GitSetting>> {
    let mut settings = Vec::new();
    let mut section: Option<Vec<u8>> = None;
    for line in text.split(|&b| b == b'\n') {
        let line = trim(line);
        if line.iter().any(u8::is_ascii_control) {
            return None;
        }
        match line.first() {
            None | Some(b'#' | b';') => {}
            Some(b'[') => section = Some(header(line)?),
            Some(_) => {
                let (name, value) = pair(line)?;
                let key = [section.as_deref()?, b".", &name].concat();
                settings.push(GitSetting { key, value });
            }
        }
    }
    Some(settings)
}

/// Reads what `git config -z --list` says.
pub(super) fn listed(output: &[u8]) -> Vec<GitSetting> {
    let entries = output.split(|&b| b == 0).filter(|entry| !entry.is_empty());
    let settings = entries.map(|entry| {
        let mut parts = entry.splitn(2, |&b| b == b'\n');
        let key = parts.next().unwrap_or_default().to_vec();
        // A key alone is git's way of writing "true".
        let value = parts.next().unwrap_or(b"true").to_vec();
        GitSetting { key, value }
    });
    settings.collect()
}

/// Returns the conversions among them, in order.
pub(super) fn conversions(settings: &[GitSetting]) -> Vec<(String, String)> {
    let found = settings
        .iter()
        .filter(|setting| CONVERSIONS.contains(&setting.key.as_slice()));
    let pairs = found.filter_map(|GitSetting { key, value }| {
        Some((
            String::from_utf8(key.clone()).ok()?,
            String::from_utf8(value.clone()).ok()?,
        ))
    });
    pairs.collect()
}

/// Returns what switches off every driver that is named.
pub(super) fn disarmed(settings: &[GitSetting]) -> Vec<(OsString, OsString)> {
    let found = settings.iter().filter(|setting| is_driver(&setting.key));
    let pairs = found.map(|GitSetting { key, .. }| {
        let is_flag = key.ends_with(b".required");
        let value = if is_flag { "false" } else { "" };
        (OsString::from_vec(key.clone()), value.into())
    });
    pairs.collect()
}

/// Returns the last value of a setting.
pub(super) fn value<'a>(settings: &'a [GitSetting], key: &str) -> Option<&'a [u8]> {
    let mut found = settings.iter().rev();
    let found = found.find(|setting| setting.key == key.as_bytes())?;
    Some(&found.value)
}

fn is_driver(key: &[u8]) -> bool {
    DRIVERS.iter().any(|(section, words)| {
        let rest = key.strip_prefix(*section);
        rest.is_some_and(|rest| words.iter().any(|word| rest.ends_with(word)))
    })
}

fn header(line: &[u8]) -> Option<Vec<u8>> {
    let inner = line.strip_prefix(b"[")?.strip_suffix(b"]")?;
    let is_name = |name: &[u8]| {
        !name.is_empty() && name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-')
    };
    let (name, sub) = match inner.iter().position(|b| *b == b' ') {
        None => (inner, None),
        Some(at) => {
            let (name, sub) = inner.split_at(at);
            let sub = sub.strip_prefix(b" \"")?.strip_suffix(b"\"")?;
            (name, Some(sub))
        }
    };
    let is_odd = |b: &u8| matches!(b, b'"' | b'\\');
    let includes = name
        .get(..7)
        .is_some_and(|start| start.eq_ignore_ascii_case(b"include"));
    if !is_name(name) || includes || sub.is_some_and(|sub| sub.iter().any(is_odd)) {
        return None;
    }
    let name = name.to_ascii_lowercase();
    Some(match sub {
        None => name,
        Some(sub) => [&name, b".".as_slice(), sub].concat(),
    })
}

fn pair(line: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let is_of_name = |b: &u8| b.is_ascii_alphanumeric() || *b == b'-';
    let end = line
        .iter()
        .position(|b| !is_of_name(b))
        .unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    if !name.first().is_some_and(u8::is_ascii_alphabetic) {
        return None;
    }
    let name = name.to_ascii_lowercase();
    let rest = trim(rest);
    if rest.is_empty() {
        return Some((name, b"true".to_vec()));
    }
    let value = trim(rest.strip_prefix(b"=")?);
    let is_odd = |b: &u8| matches!(b, b'"' | b'\\' | b'#' | b';');
    let is_spaced = value.windows(2).any(|pair| pair == b"  ");
    (!value.iter().any(is_odd) && !is_spaced).then(|| (name, value.to_vec()))
}

fn trim(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{GitSetting, disarmed, parse, value};

    fn check(text: &str) -> Option<Vec<(String, String)>> {
        let text_of = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let settings = parse(text.as_bytes())?;
        let pairs = settings
            .iter()
            .map(|s| (text_of(&s.key), text_of(&s.value)));
        Some(pairs.collect())
    }

    #[test]
    fn plain_text_is_read_as_git_lists_it() {
        let text = "# first\n[core]\n\tbare = false\n  FileMode=true\n\n; more\n[remote \"My.Origin\"]\n\turl = https://example.invalid/x y\n\tmirror\n[Filter \"a b\"]\nclean = x\n";
        let expected = [
            ("core.bare", "false"),
            ("core.filemode", "true"),
            ("remote.My.Origin.url", "https://example.invalid/x y"),
            ("remote.My.Origin.mirror", "true"),
            ("filter.a b.clean", "x"),
        ];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(check(text), Some(expected.to_vec()));
    }

    #[test]
    fn whatever_is_not_plain_is_left_to_git() {
        for text in [
            "[include]\n\tpath = x\n",
            "[includeIf \"gitdir:/\"]\n\tpath = x\n",
            "[INCLUDE]\npath = x\n",
            "[core] bare = false\n",
            "[core]\n\teditor = \"a b\"\n",
            "[core]\n\teditor = a\\\nb\n",
            "[core]\n\teditor = a ; b\n",
            "[core]\n\teditor = a # b\n",
            "[core]\n\teditor = a  b\n",
            "[core]\n\teditor = a\tb\n",
            "[core]\r\n\tbare = false\r\n",
            "[section.Sub]\n\tx = y\n",
            "[a \"x\\\"y\"]\n\tx = y\n",
            "[a\t\"x\"]\n\tx = y\n",
            "[core\n\tx = y\n",
            "x = y\n",
            "[core]\n\tx y\n",
            "[core]\n\t1x = y\n",
            "\u{feff}[core]\n\tx = y\n",
        ] {
            assert_eq!(check(text), None, "{text:?}");
        }
    }

    #[test]
    fn every_driver_is_switched_off_and_nothing_else() {
        let keys = [
            "filter.lfs.clean",
            "filter.lfs.required",
            "filter..process",
            "filter.a.b.smudge",
            "diff.x.textconv",
            "diff.x.command",
            "merge.x.driver",
            "merge.x.name",
            "filter.clean",
            "diff.tool",
            "core.autocrlf",
        ];
        let setting = |key: &str| GitSetting {
            key: key.into(),
            value: b"x".to_vec(),
        };
        let settings: Vec<GitSetting> = keys.iter().map(|key| setting(key)).collect();
        let off = disarmed(&settings);
        let off: Vec<&str> = off.iter().filter_map(|(key, _)| key.to_str()).collect();
        assert_eq!(off, keys[..7]);
    }

    #[test]
    fn the_last_value_counts() {
        let settings = parse(b"[a]\nx = 1\n[a]\nx = 2\n").unwrap_or_default();
        assert_eq!(value(&settings, "a.x"), Some(b"2".as_slice()));
        assert_eq!(value(&settings, "a.y"), None);
    }
}
