//! One table of a file's settings, read key by key.
//!
//! What was not asked for is unknown, so the code that reads is the list of keys. A wrong value is a
//! fault and counts as absent; nothing is guessed. Knows no key by name.

use std::collections::BTreeSet;

use kapi_core::kernel::definition::eval::Millionths;
use kapi_core::kernel::value::Value;

use kapi_settings::fault::{Faults, nearest, short};
use kapi_settings::node::{Entry, Node, Value as Yaml};

/// The longest text of one setting in bytes.
const TEXT_BYTES_MAX: usize = 16 * 1024;

/// One table.
#[derive(Debug)]
pub(in crate::kernel) struct Table<'a> {
    prefix: String,
    entries: &'a [Entry],
    asked: BTreeSet<&'static str>,
}

/// One setting.
#[derive(Debug, Clone)]
pub(in crate::kernel) struct Said<'a> {
    /// Its key, with those above it.
    pub(in crate::kernel) key: String,
    /// Its line.
    pub(in crate::kernel) line: usize,
    /// What it is set to.
    pub(in crate::kernel) node: &'a Node,
}

impl<'a> Table<'a> {
    /// Begins with what stands in a table below a key; the outermost has none.
    pub(in crate::kernel) fn new(key: &str, entries: &'a [Entry]) -> Self {
        Self {
            prefix: match key {
                "" => String::new(),
                key => format!("{key}."),
            },
            entries,
            asked: BTreeSet::new(),
        }
    }

    /// Returns a setting; one that is set to nothing is absent.
    pub(in crate::kernel) fn take(&mut self, name: &'static str) -> Option<Said<'a>> {
        self.asked.insert(name);
        let is_meant = |entry: &&Entry| entry.key == name && entry.node.value != Yaml::Null;
        let entry = self.entries.iter().find(is_meant)?;
        Some(Said {
            key: format!("{}{}", self.prefix, entry.key),
            line: entry.line,
            node: &entry.node,
        })
    }

    /// Returns a setting that has two names; a file uses one of them.
    pub(in crate::kernel) fn take_either(
        &mut self,
        names: [&'static str; 2],
        faults: &mut Faults,
    ) -> Option<Said<'a>> {
        match names.map(|name| self.take(name)) {
            [Some(first), Some(second)] => {
                let what = format!("`{}` on line {} says the same", first.key, first.line);
                second.refuse(faults, what, "keep one of them");
                Some(first)
            }
            [first, second] => first.or(second),
        }
    }

    /// Returns the keys that nobody asked for.
    pub(in crate::kernel) fn unasked(&self) -> Vec<String> {
        let is_unknown = |entry: &&Entry| !self.asked.contains(entry.key.as_str());
        let unknown = self.entries.iter().filter(is_unknown);
        unknown.map(|entry| entry.key.clone()).collect()
    }

    /// Reports every key that nobody asked for.
    pub(in crate::kernel) fn finish(self, faults: &mut Faults) {
        let is_unknown = |entry: &&Entry| !self.asked.contains(entry.key.as_str());
        for entry in self.entries.iter().filter(is_unknown) {
            let known = self.asked.iter().copied();
            let remedy = match nearest(&entry.key, known) {
                Some(name) => format!("did you mean `{}{name}`?", self.prefix),
                None => {
                    let names: Vec<&str> = self.asked.iter().copied().collect();
                    format!("there are {}", names.join(", "))
                }
            };
            let key = format!("{}{}", self.prefix, entry.key);
            faults.at_key(entry.line, &key, "there is no such key", remedy);
        }
    }
}

impl<'a> Said<'a> {
    /// Reports what is wrong with it.
    pub(in crate::kernel) fn refuse(&self, faults: &mut Faults, what: String, remedy: &str) {
        faults.at_key(self.line, &self.key, what, remedy);
    }

    /// Reports that it is of another kind.
    pub(in crate::kernel) fn refuse_kind(&self, faults: &mut Faults, remedy: &str) {
        let what = format!("it is {}", self.node.value.kind());
        self.refuse(faults, what, remedy);
    }

    /// Returns its text, without blanks around it.
    pub(in crate::kernel) fn text(&self, faults: &mut Faults) -> Option<&'a str> {
        let text = match &self.node.value {
            Yaml::Text(text) => text.trim(),
            _ => {
                self.refuse_kind(faults, "give text, in quotes where it looks like a number");
                return None;
            }
        };
        let what = match text {
            "" => "it is empty".to_owned(),
            text if text.len() > TEXT_BYTES_MAX => "it is longer than 16 KiB".to_owned(),
            text if text.contains('\0') => "it has a zero byte".to_owned(),
            text => return Some(text),
        };
        self.refuse(faults, what, "give a short text, or leave the key out");
        None
    }

    /// Returns its texts: one, or a list of them.
    pub(in crate::kernel) fn texts(&self, max: usize, faults: &mut Faults) -> Option<Vec<String>> {
        let items = self.items(max, faults)?;
        let read = |said: &Said<'a>| said.text(faults).map(str::to_owned);
        items.iter().map(read).collect()
    }

    /// Returns the items of a list; what is no list is one item.
    pub(in crate::kernel) fn items(&self, max: usize, faults: &mut Faults) -> Option<Vec<Self>> {
        let Yaml::List(nodes) = &self.node.value else {
            return Some(vec![self.clone()]);
        };
        if nodes.is_empty() || nodes.len() > max {
            let what = format!("it has {} entries", nodes.len());
            self.refuse(faults, what, &format!("give 1 to {max}"));
            return None;
        }
        let item = |(place, node): (usize, &'a Node)| Self {
            key: format!("{}[{place}]", self.key),
            line: node.line,
            node,
        };
        Some(nodes.iter().enumerate().map(item).collect())
    }

    /// Returns the table that it holds.
    pub(in crate::kernel) fn table(&self, faults: &mut Faults) -> Option<Table<'a>> {
        match &self.node.value {
            Yaml::Map(entries) => Some(Table::new(&self.key, entries)),
            _ => {
                self.refuse_kind(faults, "give a table of settings");
                None
            }
        }
    }

    /// Returns whether it is true.
    pub(in crate::kernel) fn truth(&self, faults: &mut Faults) -> Option<bool> {
        match self.node.value {
            Yaml::Bool(truth) => Some(truth),
            _ => {
                self.refuse_kind(faults, "give true or false");
                None
            }
        }
    }

    /// Returns the one of some words that it is.
    pub(in crate::kernel) fn word<T: Copy>(
        &self,
        words: &[(&'static str, T)],
        faults: &mut Faults,
    ) -> Option<T> {
        let text = self.text(faults)?;
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let remedy = match nearest(text, names.iter().copied()) {
                Some(word) => format!("did you mean `{word}`?"),
                None => format!("use {}", names.join(", ")),
            };
            self.refuse(faults, format!("there is no {:?}", short(text)), &remedy);
        }
        found.map(|(_, meaning)| *meaning)
    }

    /// Returns a whole number between two others, both included.
    pub(in crate::kernel) fn whole(&self, from: i64, to: i64, faults: &mut Faults) -> Option<i64> {
        let remedy = format!("give a whole number from {from} to {to}");
        match self.node.value {
            Yaml::Whole(number) if (from..=to).contains(&number) => Some(number),
            Yaml::Whole(number) => {
                self.refuse(faults, format!("{number} is out of range"), &remedy);
                None
            }
            _ => {
                self.refuse_kind(faults, &remedy);
                None
            }
        }
    }

    /// Returns a count between two others, both included.
    pub(in crate::kernel) fn count(&self, from: u32, to: u32, faults: &mut Faults) -> Option<u32> {
        let number = self.whole(i64::from(from), i64::from(to), faults)?;
        u32::try_from(number).ok()
    }

    /// Returns milliseconds: a whole number of seconds, or one with its unit, `90s`, `15m`, `2h`.
    pub(in crate::kernel) fn duration_ms(&self, max_ms: u64, faults: &mut Faults) -> Option<u64> {
        let remedy = format!(
            "give 0 to {} whole seconds, or a number with ms, s, m or h",
            max_ms / 1_000
        );
        let found = match &self.node.value {
            Yaml::Whole(seconds) => u64::try_from(*seconds)
                .ok()
                .and_then(|seconds| seconds.checked_mul(1_000)),
            Yaml::Text(text) => milliseconds(text.trim()),
            _ => {
                self.refuse_kind(faults, &remedy);
                return None;
            }
        };
        let in_range = found.filter(|ms| *ms <= max_ms);
        if in_range.is_none() {
            self.refuse(faults, "it is no duration in range".to_owned(), &remedy);
        }
        in_range
    }

    /// Returns a number with up to six decimals, exactly.
    pub(in crate::kernel) fn number(&self, faults: &mut Faults) -> Option<Millionths> {
        let text = match &self.node.value {
            Yaml::Whole(number) => number.to_string(),
            Yaml::Real(number) => number.to_string(),
            Yaml::Text(text) => text.trim().to_owned(),
            _ => {
                self.refuse_kind(faults, "give a number with up to six decimals");
                return None;
            }
        };
        let parsed = Millionths::parse(&text);
        if parsed.is_err() {
            let what = format!("{text} is no number that can be kept exactly");
            self.refuse(faults, what, "give a number with up to six decimals");
        }
        parsed.ok()
    }

    /// Returns what it is set to, whatever it is.
    pub(in crate::kernel) fn value(&self, faults: &mut Faults) -> Option<Value> {
        let value = value(self.node);
        if value.is_none() {
            let what = "it has a number that is infinite or none".to_owned();
            self.refuse(faults, what, "put it in quotes");
        }
        value
    }
}

fn milliseconds(text: &str) -> Option<u64> {
    let n_digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, unit) = text.split_at_checked(n_digits)?;
    let factor = match unit.trim_start() {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

fn value(node: &Node) -> Option<Value> {
    Some(match &node.value {
        Yaml::Null => Value::Null,
        Yaml::Bool(truth) => Value::Bool(*truth),
        Yaml::Whole(number) => Value::Integer(*number),
        Yaml::Real(number) => Value::from_float(*number)?,
        Yaml::Text(text) => Value::Text(text.clone()),
        Yaml::List(items) => Value::List(items.iter().map(value).collect::<Option<_>>()?),
        Yaml::Map(entries) => {
            let pair = |entry: &Entry| Some((entry.key.clone(), value(&entry.node)?));
            Value::Map(entries.iter().map(pair).collect::<Option<_>>()?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::milliseconds;

    #[test]
    fn durations_have_a_unit() {
        for (text, expected) in [
            ("90s", Some(90_000)),
            ("15 m", Some(900_000)),
            ("2h", Some(7_200_000)),
            ("250ms", Some(250)),
            ("5", None),
            ("-5s", None),
            ("s", None),
            ("1.5h", None),
            ("99999999999999999999h", None),
        ] {
            assert_eq!(milliseconds(text), expected, "{text}");
        }
    }
}
