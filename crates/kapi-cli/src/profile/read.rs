//! From the text of an `agent-sandbox.yaml` to a profile: every key honoured or refused.
//!
//! Whoever owns the file decides what counts: a project's may only narrow. Knows nothing of where
//! files are found.

use std::path::Path;

use kapi_agent::hook::agent_type::AgentType;
use kapi_gateway::egress::rule::EgressRule;
use kapi_sandbox::podman::options::Userns;
use kapi_settings::fault::{Faults, did_you_mean};
use kapi_settings::node::{SettingValue, TableEntry, ValueNode, below};
use kapi_settings::read::read_at;
use kapi_settings::scalar::{ByteCount, CpuMillis, RangedCount};
use kapi_settings::setting::Setting;
use kapi_settings::yaml;
use serde::de::DeserializeOwned;

use crate::config::source::{self, SourcedValue, ValueSource};
use crate::error::Error;
use crate::profile::key::{self, FixedValue, KeyDisposition};
use crate::profile::message::{self, CoAuthor};
use crate::profile::{AgentName, ProfileFile, ProfileOwner, include};

/// Variables that Kapi itself sets inside, or that decide who somebody is.
const OWN_VARIABLES: &[&str] = &["HOME", "GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR"];
/// The longest value of a variable: what a program can be given.
const VALUE_BYTES_MAX: usize = 128 * 1024 - 1;

/// Where a profile's text is from, for its messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProfileOrigin<'a> {
    /// The name of the profile.
    pub(crate) name: &'a str,
    /// The file; `None` for a built-in one.
    pub(crate) path: Option<&'a Path>,
    /// Whose it is.
    pub(crate) owner: ProfileOwner,
    /// The person's home.
    pub(crate) home: &'a Path,
    /// What a person can do to make a project's file count in full.
    pub(crate) trust_hint: &'a str,
}

/// Reads a profile.
pub(crate) fn read(text: &str, location: &ProfileOrigin<'_>) -> Result<ProfileFile, Error> {
    let mut faults = Faults::of(location.file());
    let profile = yaml::parse(text, &mut faults).map(|root| {
        let mut reader = ProfileReader {
            location,
            profile: ProfileFile::named(
                location.name,
                location.path.map(Path::to_path_buf),
                location.owner,
            ),
            faults: &mut faults,
        };
        reader.table("", root.entries());
        reader.profile
    });
    let read = faults.instead_of(profile);
    read.map_err(|faults| Error::settings(&faults))
}

impl ProfileOrigin<'_> {
    fn file(&self) -> String {
        match self.path {
            Some(path) => path.display().to_string(),
            None => format!("built-in profile {}", self.name),
        }
    }

    fn source(&self, line: usize) -> ValueSource {
        match self.path {
            Some(path) => source::at(path, line),
            None => ValueSource::BuiltIn(format!("profile {}", self.name)),
        }
    }
}

/// A key that counts, and what it is set to.
type Said<'a> = Setting<&'a ValueNode>;

struct ProfileReader<'a> {
    location: &'a ProfileOrigin<'a>,
    profile: ProfileFile,
    faults: &'a mut Faults,
}

impl ProfileReader<'_> {
    fn table(&mut self, prefix: &str, entries: &[TableEntry]) {
        for entry in entries {
            let key = below(prefix, &entry.key);
            let said = Setting {
                value: &entry.node,
                line: entry.line,
                key,
            };
            match (key::disposition(&said.key), &entry.node.value) {
                (Some(disposition), _) => self.key(&said, disposition),
                (None, SettingValue::Map(inner)) if key::is_table(&said.key) => {
                    self.table(&said.key, inner);
                }
                (None, SettingValue::Null) if key::is_table(&said.key) => {}
                (None, other) if key::is_table(&said.key) => {
                    let what = format!("it is {}", other.kind());
                    self.faults.at(&said, what, "give a table of settings");
                }
                (None, _) => {
                    let names = key::beside(&said.key);
                    let remedy = did_you_mean(&entry.key, &names, "valid keys:");
                    self.faults.at(&said, "unknown key", remedy);
                }
            }
        }
    }

    fn key(&mut self, said: &Said<'_>, disposition: KeyDisposition) {
        let value = &said.value.value;
        match disposition {
            KeyDisposition::Refused(advice) => self.faults.at(said, "it is not supported", advice),
            KeyDisposition::Fixed(values, _)
                if values.iter().any(|fixed| is_fixed(value, *fixed)) => {}
            KeyDisposition::Fixed(_, advice) => {
                self.faults.at(said, "it cannot be set to this", advice);
            }
            KeyDisposition::Person | KeyDisposition::Narrows if *value == SettingValue::Null => {}
            KeyDisposition::Person if self.location.owner == ProfileOwner::Project => {
                self.only_person(said);
            }
            KeyDisposition::Person => self.person_key(said),
            KeyDisposition::Narrows => self.narrowing_key(said),
        }
    }

    fn only_person(&mut self, said: &Said<'_>) {
        let what = "a project's file cannot set this, because it would extend what a run may do";
        let remedy = self.location.trust_hint.trim_end_matches('.');
        self.faults.at(said, what, remedy);
    }

    fn person_key(&mut self, said: &Said<'_>) {
        match said.key.as_str() {
            "agent.command" => self.profile.command = self.text(said, check_command),
            "agent.type" => self.profile.agent_type = self.parsed(said, agent_name),
            "filesystem.include" => {
                let home = self.location.home;
                self.profile.include = self.list(said, |text| include::include(text, home));
            }
            "environment.passthrough" => self.profile.pass = self.list(said, variable_name),
            "environment.set" => self.profile.set = self.variables(said),
            "image.name" => self.profile.image_name = self.text(said, check_image_word),
            "image.tag" => self.profile.image_tag = self.text(said, check_image_word),
            "git.auto_push.remote" => self.profile.remote = self.text(said, check_remote),
            "git.auto_push.commit_message" => {
                self.profile.commit_message = self.text(said, message::check);
            }
            "git.co_authors" => self.profile.co_authors = self.list(said, CoAuthor::parse),
            "git.keep_commits" => self.profile.keep_commits = self.take(said),
            "security.userns" => self.profile.userns = self.parsed(said, userns),
            "maven.mirror_url" => self.profile.mirror = self.text(said, check_address),
            key if key.starts_with("network.allowlist.") => {
                let rules = self.list(said, rule);
                self.profile.allow.extend(rules);
            }
            _ => self.faults.at(said, "it is not supported", "remove it"),
        }
    }

    fn narrowing_key(&mut self, said: &Said<'_>) {
        match said.key.as_str() {
            "resources.memory" => {
                let memory: Option<SourcedValue<ByteCount>> = self.take(said);
                self.profile.memory_bytes =
                    memory.map(|at| SourcedValue::new(at.value.0, at.source));
            }
            "resources.cpus" => {
                let cpus: Option<SourcedValue<CpuMillis>> = self.take(said);
                self.profile.cpu_millis = cpus.map(|at| SourcedValue::new(at.value.0, at.source));
            }
            // Two names of one limit: the smaller holds.
            "resources.pids" | "security.process.pids_limit" => {
                let count: Option<SourcedValue<RangedCount<1, { u32::MAX }>>> = self.take(said);
                let count = count.map(|at| SourcedValue::new(u64::from(at.value.0), at.source));
                let both = self.profile.processes.take().into_iter().chain(count);
                self.profile.processes = both.min_by_key(|at| at.value);
            }
            "network.mode" => self.profile.network = self.take(said),
            "git.auto_push.enabled" => self.profile.push = self.switch(said),
            "security.seccomp.allow_userns" => {
                self.profile.nested_namespaces = self.switch(said);
            }
            _ => self.faults.at(said, "it is not supported", "remove it"),
        }
    }

    /// Reads what a project may only switch off.
    fn switch(&mut self, said: &Said<'_>) -> Option<SourcedValue<bool>> {
        let is_on: SourcedValue<bool> = self.take(said)?;
        if is_on.value && self.location.owner == ProfileOwner::Project {
            self.only_person(said);
        }
        Some(is_on)
    }

    fn take<T: DeserializeOwned>(&mut self, said: &Said<'_>) -> Option<SourcedValue<T>> {
        let value = read_at(said, self.faults)?;
        Some(SourcedValue::new(value, self.location.source(said.line)))
    }

    fn parsed<T>(
        &mut self,
        said: &Said<'_>,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<SourcedValue<T>> {
        let text: SourcedValue<String> = self.take(said)?;
        let parsed = parse(&text.value).map_err(|rule| self.refuse(said, &rule));
        Some(SourcedValue::new(parsed.ok()?, text.source))
    }

    fn text(
        &mut self,
        said: &Said<'_>,
        check: impl Fn(&str) -> Result<(), String>,
    ) -> Option<SourcedValue<String>> {
        self.parsed(said, |text| check(text).map(|()| text.to_owned()))
    }

    fn list<T>(
        &mut self,
        said: &Said<'_>,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Vec<SourcedValue<T>> {
        let items: Option<Vec<Setting<String>>> = read_at(said, self.faults);
        let mut list = Vec::new();
        for item in items.unwrap_or_default() {
            match parse(&item.value) {
                Ok(value) => list.push(SourcedValue::new(value, self.location.source(item.line))),
                Err(rule) => self.refuse(&item, &rule),
            }
        }
        list
    }

    /// Notes a rule that is broken, and what to do where the rule says it.
    fn refuse<T>(&mut self, said: &Setting<T>, rule: &str) {
        let (what, remedy) = rule.split_once("; ").unwrap_or((rule, "fix it"));
        self.faults.at(said, what, remedy);
    }

    fn variables(&mut self, said: &Said<'_>) -> Vec<SourcedValue<(String, String)>> {
        let mut list = Vec::new();
        if !matches!(said.value.value, SettingValue::Map(_)) {
            let what = format!("it is {}", said.value.value.kind());
            self.faults.at(said, what, "give a table of settings");
        }
        for entry in said.value.entries() {
            let variable = Setting {
                value: &entry.node,
                line: entry.line,
                key: below(&said.key, &entry.key),
            };
            match variable_of(entry) {
                Ok(pair) => list.push(SourcedValue::new(pair, self.location.source(entry.line))),
                Err(rule) => self.refuse(&variable, &rule),
            }
        }
        list
    }
}

fn variable_of(entry: &TableEntry) -> Result<(String, String), String> {
    let name = variable_name(&entry.key)?;
    let value = match &entry.node.value {
        SettingValue::Text(text) => text.clone(),
        SettingValue::Whole(number) => number.to_string(),
        SettingValue::Null => String::new(),
        // 1.10 would become 1.1, and yes is not what every program calls true.
        other @ (SettingValue::Bool(_) | SettingValue::Real(_)) => {
            return Err(format!("it is {}; put the value in quotes", other.kind()));
        }
        other => return Err(format!("it is {}; give text", other.kind())),
    };
    if value.contains('\0') || value.len() > VALUE_BYTES_MAX {
        return Err("it contains a zero byte or is longer than 128 KiB".to_owned());
    }
    Ok((name, value))
}

fn is_fixed(value: &SettingValue, fixed: FixedValue) -> bool {
    match (fixed, value) {
        (_, SettingValue::Null) => true,
        (FixedValue::True, SettingValue::Bool(value)) => *value,
        (FixedValue::False, SettingValue::Bool(value)) => !value,
        (FixedValue::Empty, SettingValue::Text(text)) => text.is_empty(),
        (FixedValue::Empty, SettingValue::List(items)) => items.is_empty(),
        (FixedValue::Empty, SettingValue::Map(entries)) => entries.is_empty(),
        (FixedValue::Text(wanted), SettingValue::Text(text)) => text == wanted,
        _ => false,
    }
}

fn check_command(line: &str) -> Result<(), String> {
    super::command::with_task(line).map(|_| ())
}

fn agent_name(text: &str) -> Result<AgentName, String> {
    if text.trim().eq_ignore_ascii_case("pi") {
        return Ok(AgentName::Pi);
    }
    match AgentType::from_name(text) {
        AgentType::Unknown => Err(format!(
            "unknown agent type {text:?}; available: claude, codex, gemini, pi, aider, python \
             and interactive"
        )),
        known => Ok(AgentName::Of(known)),
    }
}

/// Reads the name of a variable.
pub(super) fn variable_name(text: &str) -> Result<String, String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins_well = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !begins_well || !text.chars().all(is_word) {
        return Err("a variable name contains only letters, digits and _".to_owned());
    }
    if text.starts_with("KAPI_") || OWN_VARIABLES.contains(&text) {
        return Err("Kapi sets this variable itself".to_owned());
    }
    Ok(text.to_owned())
}

fn rule(text: &str) -> Result<EgressRule, String> {
    EgressRule::parse(text).map_err(|error| format!("{}; {}", error.problem, error.problem.hint()))
}

fn userns(text: &str) -> Result<Userns, String> {
    let rule = || format!("{text:?} is not auto, keep-id or keep-id:uid=<n>,gid=<n>");
    match text {
        "auto" => return Ok(Userns::Auto),
        "keep-id" => return Ok(Userns::KeepId),
        _ => {}
    }
    let numbers = text.strip_prefix("keep-id:").ok_or_else(rule)?;
    let (uid, gid) = numbers.split_once(',').ok_or_else(rule)?;
    let number = |text: &str, name: &str| {
        let digits = text.strip_prefix(name)?.strip_prefix('=')?;
        let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse().ok().filter(|_| is_plain)
    };
    match (number(uid, "uid"), number(gid, "gid")) {
        (Some(uid), Some(gid)) => Ok(Userns::KeepIdAs { uid, gid }),
        _ => Err(rule()),
    }
}

fn check_image_word(text: &str) -> Result<(), String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "._/:@-".contains(c);
    let begins_well = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins_well && text.chars().all(is_word) {
        return Ok(());
    }
    Err("use letters, digits, _, ., /, :, @ and -, and start with a letter or digit".to_owned())
}

fn check_remote(text: &str) -> Result<(), String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let begins_well = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins_well && text.chars().all(is_word) {
        return Ok(());
    }
    Err("it must name a remote of the repository, not an address".to_owned())
}

fn check_address(text: &str) -> Result<(), String> {
    let is_web = text.starts_with("https://") || text.starts_with("http://");
    let is_odd = |c: char| c.is_whitespace() || c.is_control();
    if is_web && !text.contains(is_odd) {
        return Ok(());
    }
    Err("give an address that starts with https:// or http://".to_owned())
}
