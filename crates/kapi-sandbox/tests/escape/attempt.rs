//! One attempt to get out, as its file describes it in the comment at its top.
//!
//! Only reads; what is not understood is an error, never passed over.

use std::fs;
use std::path::{Path, PathBuf};

use crate::place::{Level, Place};

/// How the wall that holds an attempt is taken away, to see that the attempt would notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Control {
    /// No isolation.
    None,
    /// No isolation but namespaces to play in, where it has every capability.
    Namespaces,
    /// The host's secret is mounted where it lies.
    Mounted,
    /// The host's network.
    Open,
    /// The project itself is the workspace, without a layer.
    Direct,
    /// No limits.
    Unlimited,
    /// A directory of the host's can be written at this place.
    Writable(String),
    /// A descriptor of the secret is passed on.
    Passed,
    /// The variable that must not be there is.
    Injected,
    /// Nothing of ours around it at all.
    Host,
    /// Its output is a file.
    ToFile,
}

impl Control {
    fn parse(text: &str) -> Option<Self> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        Some(match (word, rest) {
            ("none", "") => Self::None,
            ("namespaces", "") => Self::Namespaces,
            ("mounted", "") => Self::Mounted,
            ("open", "") => Self::Open,
            ("direct", "") => Self::Direct,
            ("unlimited", "") => Self::Unlimited,
            ("writable", location) if location.starts_with('/') => {
                Self::Writable(location.to_owned())
            }
            ("passed", "") => Self::Passed,
            ("injected", "") => Self::Injected,
            ("host", "") => Self::Host,
            ("to-file", "") => Self::ToFile,
            _ => return None,
        })
    }
}

/// A wall that is known not to stand.
#[derive(Debug, Clone)]
pub(crate) struct Hole {
    /// The level, or the level and `root` or `ordinary`.
    at: String,
    /// What a grade says where it is open; empty is always.
    pub when: String,
    /// Why it is open.
    pub why: String,
}

impl Hole {
    /// Reads `<at>[ when "<part of the grade>"]: <why>`.
    fn parse(text: &str) -> Option<Self> {
        let (location, why) = text.split_once(": ")?;
        let (at, when) = match location.split_once(" when ") {
            Some((at, when)) => (at, when.strip_prefix('"')?.strip_suffix('"')?),
            None => (location, ""),
        };
        Some(Self {
            at: at.to_owned(),
            when: when.to_owned(),
            why: why.to_owned(),
        })
    }
}

/// An attempt.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    /// The file's name.
    pub name: String,
    /// What it tries.
    pub says: String,
    /// The numbers of the cases it stands for.
    pub cases: Vec<String>,
    /// Where it is tried.
    pub levels: Vec<Level>,
    /// The answers that are a refusal; any other means that the call got further than it should.
    pub refused: Vec<String>,
    /// What must let it out.
    pub control: Control,
    /// Where it is known to get out.
    pub holes: Vec<Hole>,
    /// Whether the workspace is a layer over the project.
    pub is_over_layer: bool,
    /// Whether nothing else may run in its sandbox.
    pub is_alone: bool,
    /// The limits of its sandbox.
    pub resources: Vec<(String, u64)>,
    /// The limit that it must be told to have met.
    pub exceeded: String,
    /// How its sandbox ends; empty is however it likes.
    pub ends: String,
    /// The longest it may run.
    pub deadline_ms: u64,
}

impl Attempt {
    /// Returns the hole it is known to get out by at this place, if there is one.
    pub(crate) fn hole_at(&self, location: &Place) -> Option<&Hole> {
        let level = location.level.name();
        let user = if location.is_root() {
            "root"
        } else {
            "ordinary"
        };
        let names = [level.to_owned(), format!("{level} {user}")];
        self.holes.iter().find(|hole| names.contains(&hole.at))
    }

    fn parse(name: &str, text: &str) -> Result<Self, String> {
        let mut attempt = Self {
            name: name.to_owned(),
            says: String::new(),
            cases: Vec::new(),
            levels: Vec::new(),
            refused: Vec::new(),
            control: Control::None,
            holes: Vec::new(),
            is_over_layer: false,
            is_alone: false,
            resources: Vec::new(),
            exceeded: String::new(),
            ends: "Exited(0)".to_owned(),
            deadline_ms: 120_000,
        };
        let mut has_control = false;
        for line in text.lines().map_while(|line| line.strip_prefix("# ")) {
            let (key, value) = line
                .split_once(": ")
                .ok_or_else(|| format!("{name}: what is `{line}`"))?;
            has_control |= key == "control";
            attempt
                .take(key, value)
                .ok_or_else(|| format!("{name}: what is `{line}`"))?;
        }
        let is_whole = !attempt.says.is_empty()
            && !attempt.cases.is_empty()
            && !attempt.levels.is_empty()
            && has_control;
        if !is_whole {
            return Err(format!("{name}: give says, cases, levels and control"));
        }
        Ok(attempt)
    }

    fn take(&mut self, key: &str, value: &str) -> Option<()> {
        let words = || value.split_whitespace();
        match key {
            "says" => self.says = value.to_owned(),
            "cases" => self.cases = words().map(str::to_owned).collect(),
            "levels" => self.levels = words().map(level).collect::<Option<_>>()?,
            "refused" => self.refused = words().map(str::to_owned).collect(),
            "control" => self.control = Control::parse(value)?,
            "known-hole" => self.holes.push(Hole::parse(value)?),
            "workspace" if value == "layer" => self.is_over_layer = true,
            "alone" => self.is_alone = true,
            "resources" => {
                let pair = |word: &str| {
                    let (name, number) = word.split_once('=')?;
                    Some((name.to_owned(), number.parse().ok()?))
                };
                self.resources = words().map(pair).collect::<Option<_>>()?;
            }
            "exceeded" => self.exceeded = value.to_owned(),
            "ends" if value == "anyhow" => self.ends.clear(),
            "ends" => self.ends = value.to_owned(),
            "deadline-ms" => self.deadline_ms = value.parse().ok()?,
            _ => return None,
        }
        Some(())
    }
}

fn level(word: &str) -> Option<Level> {
    [Level::Native, Level::Podman]
        .into_iter()
        .find(|level| level.name() == word)
}

/// Where the suite's own files lie.
pub(crate) fn own_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/escape")
}

/// Reads every attempt there is.
pub(crate) fn all() -> Vec<Attempt> {
    let mut attempts = Vec::new();
    for entry in fs::read_dir(own_directory().join("attempts")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let is_script = name.ends_with(".py") || name.ends_with(".sh");
        assert!(is_script, "{name}: an attempt ends in .py or .sh");
        let text = fs::read_to_string(&path).unwrap();
        attempts.push(Attempt::parse(&name, &text).unwrap_or_else(|error| panic!("{error}")));
    }
    attempts.sort_by(|one, other| one.name.cmp(&other.name));
    attempts
}

/// Copies the attempts to where a sandbox can read them, each behind what every attempt may use.
pub(crate) fn install(attempts: &[Attempt], location: &Place) {
    let own = own_directory();
    let read = |name: &str| fs::read_to_string(own.join(name)).unwrap();
    let (python, shell) = (read("preamble.py"), read("preamble.sh"));
    location.directory("attempts");
    location.file("attempts/batch.sh", &read("batch.sh"));
    for attempt in attempts {
        let text = read(&format!("attempts/{}", attempt.name));
        let before = if attempt.name.ends_with(".py") {
            &python
        } else {
            &shell
        };
        location.file(
            &format!("attempts/{}", attempt.name),
            &format!("{before}\n{text}"),
        );
    }
}
