//! What a person asks of one run: how large the trees are, and which tables.

use anyhow::{Context as _, bail};

/// The trees of an ordinary run; larger ones take many minutes to make.
const TREES: [u32; 3] = [1_000, 10_000, 100_000];
/// The largest tree: what a few directories of thousands can hold without special care.
const FILES_MAX: u32 = 2_000_000;

/// A group of tables that is measured alone with `--only`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    Sandbox,
    Crowd,
    Tree,
    Integrate,
    Hook,
    Proxy,
    Launch,
    Command,
    Storage,
    Kernel,
    Workflow,
    Month,
    Screen,
    Search,
    Pi,
}

/// Every group by its name, in the order of the document.
pub(super) const GROUPS: [(&str, Group); 15] = [
    ("sandbox", Group::Sandbox),
    ("crowd", Group::Crowd),
    ("tree", Group::Tree),
    ("integrate", Group::Integrate),
    ("hook", Group::Hook),
    ("proxy", Group::Proxy),
    ("launch", Group::Launch),
    ("command", Group::Command),
    ("storage", Group::Storage),
    ("kernel", Group::Kernel),
    ("workflow", Group::Workflow),
    ("month", Group::Month),
    ("screen", Group::Screen),
    ("search", Group::Search),
    ("pi", Group::Pi),
];

/// A peer that is installed only when it is asked for with `--with`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extra {
    Redis,
    Rq,
    PiAutoresearch,
    PiUntilDone,
}

/// Every such peer by its name.
const EXTRAS: [(&str, Extra); 4] = [
    ("redis", Extra::Redis),
    ("rq", Extra::Rq),
    ("pi-autoresearch", Extra::PiAutoresearch),
    ("pi-until-done", Extra::PiUntilDone),
];

/// One run.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BenchOptions {
    /// How many files each tree has; the first is what the others are compared with.
    pub(super) trees: Vec<u32>,
    /// The groups to measure.
    pub(super) groups: Vec<Group>,
    /// The peers to install.
    pub(super) extras: Vec<Extra>,
    /// Whether the tables go into the document.
    pub(super) is_written: bool,
}

impl BenchOptions {
    /// Reads the words after `bench`.
    pub(super) fn parse(words: &[&str]) -> anyhow::Result<Self> {
        let mut options = Self {
            trees: TREES.to_vec(),
            groups: GROUPS.map(|(_, group)| group).to_vec(),
            extras: Vec::new(),
            is_written: false,
        };
        let mut rest = words;
        loop {
            rest = match rest {
                [] => return Ok(options),
                ["--trees", sizes, rest @ ..] => {
                    options.trees = sizes.split(',').map(size).collect::<Result<_, _>>()?;
                    rest
                }
                ["--only", names, rest @ ..] => {
                    options.groups = named(&GROUPS, names)?;
                    rest
                }
                ["--with", names, rest @ ..] => {
                    options.extras = named(&EXTRAS, names)?;
                    rest
                }
                ["--write", rest @ ..] => {
                    options.is_written = true;
                    rest
                }
                _ => bail!(
                    "read {:?}: use --trees 1k,10k, --only NAMES, --with redis,rq,pi-autoresearch,pi-until-done or --write",
                    rest.join(" ")
                ),
            };
        }
    }

    /// Tells whether everything is measured.
    pub(super) fn is_whole(&self) -> bool {
        GROUPS.iter().all(|(_, group)| self.groups.contains(group))
    }
}

/// Returns how a size is written: `10k`.
pub(super) fn size_name(n_files: u32) -> String {
    if n_files.is_multiple_of(1000) {
        format!("{}k", n_files / 1000)
    } else {
        n_files.to_string()
    }
}

fn size(text: &str) -> anyhow::Result<u32> {
    let (digits, factor) = text
        .strip_suffix('k')
        .map_or((text, 1), |digits| (digits, 1000));
    let number: Option<u32> = digits.parse().ok();
    number
        .and_then(|number| number.checked_mul(factor))
        // Changes are made to files of their own, so there must be enough of them.
        .filter(|n_files| (1000..=FILES_MAX).contains(n_files))
        .with_context(|| format!("read {text:?} as a number of files, as 10k; 1k to 2000k"))
}

/// Finds each of the names, which are separated by commas.
fn named<T: Copy>(known: &[(&str, T)], names: &str) -> anyhow::Result<Vec<T>> {
    let find = |name: &str| {
        let found = known.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| *value).with_context(|| {
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            format!("find {name:?} among {}", names.join(", "))
        })
    };
    names.split(',').map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::{BenchOptions, Extra, Group, size_name};

    #[test]
    fn trees_and_groups_are_read() {
        let options = BenchOptions::parse(&["--trees", "1k,2500", "--only", "tree,hook"]).unwrap();
        assert_eq!(options.trees, [1000, 2500]);
        assert_eq!(options.groups, [Group::Tree, Group::Hook]);
        assert!(!options.is_whole());
        assert!(!options.is_written);
        assert!(BenchOptions::parse(&[]).unwrap().is_whole());
        let options = BenchOptions::parse(&["--write", "--with", "rq,redis"]).unwrap();
        assert_eq!(options.extras, [Extra::Rq, Extra::Redis]);
        assert!(options.is_written);
        assert!(options.is_whole());
        assert_eq!([1000, 2500].map(size_name), ["1k", "2500"]);
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for words in [
            &["--trees"][..],
            &["--trees", "0k"],
            &["--trees", "10"],
            &["--trees", "9999999k"],
            &["--trees", "x"],
            &["--only", "trees"],
            &["--with", "kafka"],
            &["--fast"],
        ] {
            assert!(BenchOptions::parse(words).is_err(), "{words:?}");
        }
    }
}
