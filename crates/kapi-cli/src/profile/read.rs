//! From the text of an `agent-sandbox.yaml` to a profile: every key honoured or refused.
//!
//! Whoever owns the file decides what counts: a project's may only narrow. Knows nothing of where
//! files are found.

use std::path::Path;

use kapi_agent::hook::agent_type::AgentType;
use kapi_core::goal::contract::NetworkMode;
use kapi_settings::fault::Faults;
use kapi_settings::node::{Entry, Node, Value};
use kapi_settings::yaml;
use kapi_gateway::egress::rule::EgressRule;
use kapi_sandbox::podman::options::Userns;

use crate::amount;
use crate::config::grant::parse_cpu_millis;
use crate::config::source::{At, Source};
use crate::error::Error;
use crate::profile::key::{self, Fate, Fixed};
use crate::profile::message::{self, CoAuthor};
use crate::profile::{AgentName, Owner, Profile, include};

/// Variables that Kapi itself sets inside, or that decide who somebody is.
const OWN_VARIABLES: &[&str] = &["HOME", "GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR"];
/// The longest value of a variable: what a program can be given.
const VALUE_BYTES_MAX: usize = 128 * 1024 - 1;

/// Where a profile's text is from, for its messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The name of the profile.
    pub(crate) name: &'a str,
    /// The file; `None` for a built-in one.
    pub(crate) path: Option<&'a Path>,
    /// Whose it is.
    pub(crate) owner: Owner,
    /// The person's home.
    pub(crate) home: &'a Path,
    /// What a person can do to make a project's file count in full.
    pub(crate) trust_hint: &'a str,
}

/// Reads a profile.
pub(crate) fn read(text: &str, place: &Place<'_>) -> Result<Profile, Error> {
    let mut faults = Faults::of(place.file());
    let root = yaml::parse(text, &mut faults).ok_or_else(|| {
        Error::settings(&faults.into_list())
    })?;
    let mut reader = Reader {
        place,
        profile: Profile::named(place.name, place.path.map(Path::to_path_buf), place.owner),
    };
    reader.table("", root.entries())?;
    Ok(reader.profile)
}

impl Place<'_> {
    fn file(&self) -> String {
        match self.path {
            Some(path) => path.display().to_string(),
            None => format!("built-in profile {}", self.name),
        }
    }

    fn at(&self, line: usize) -> String {
        match self.path {
            Some(path) => format!("{}, line {line}", path.display()),
            None => format!("built-in profile {}, line {line}", self.name),
        }
    }

    fn source(&self, line: usize) -> Source {
        match self.path {
            Some(path) => Source::Line {
                path: path.to_path_buf(),
                line,
            },
            None => Source::BuiltIn(format!("profile {}", self.name)),
        }
    }
}

struct Reader<'a> {
    place: &'a Place<'a>,
    profile: Profile,
}

/// A key that counts, and what it is set to.
#[derive(Clone, Copy)]
struct Said<'a> {
    path: &'a str,
    line: usize,
    node: &'a Node,
    place: &'a Place<'a>,
}

impl Reader<'_> {
    fn table(&mut self, prefix: &str, entries: &[Entry]) -> Result<(), Error> {
        for entry in entries {
            let path = match prefix {
                "" => entry.key.clone(),
                prefix => format!("{prefix}.{}", entry.key),
            };
            let said = Said {
                path: &path,
                line: entry.line,
                node: &entry.node,
                place: self.place,
            };
            match (key::fate(&path), &entry.node.value) {
                (Some(fate), _) => self.key(said, fate)?,
                (None, Value::Map(inner)) if key::is_table(&path) => self.table(&path, inner)?,
                (None, Value::Null) if key::is_table(&path) => {}
                (None, other) if key::is_table(&path) => {
                    return Err(said.refused(&format!("it must be a table, not {}", other.kind())));
                }
                (None, _) => {
                    let names = key::beside(&path).join(", ");
                    let text = format!("{}: there is no key `{path}`", self.place.at(entry.line));
                    return Err(
                        Error::usage(text).with_hint(format!("beside it there are: {names}."))
                    );
                }
            }
        }
        Ok(())
    }

    fn key(&mut self, said: Said<'_>, fate: Fate) -> Result<(), Error> {
        match fate {
            Fate::Refused(advice) => Err(said.unsupported("is not supported", advice)),
            Fate::Fixed(values, advice) => {
                if values
                    .iter()
                    .any(|fixed| is_fixed(&said.node.value, *fixed))
                {
                    return Ok(());
                }
                Err(said.unsupported("cannot be set to this", advice))
            }
            Fate::Person | Fate::Narrows if said.node.value == Value::Null => Ok(()),
            Fate::Person if self.place.owner == Owner::Project => Err(said.only_person()),
            Fate::Person => self.person_key(said),
            Fate::Narrows => self.narrowing_key(said),
        }
    }

    fn person_key(&mut self, said: Said<'_>) -> Result<(), Error> {
        let profile = &mut self.profile;
        match said.path {
            "agent.command" => profile.command = Some(said.checked_text(check_command)?),
            "agent.type" => profile.agent_type = Some(said.parsed(agent_name)?),
            "filesystem.include" => {
                let home = said.place.home;
                profile.include = said.list(|text| include::include(text, home))?;
            }
            "environment.passthrough" => profile.pass = said.list(variable_name)?,
            "environment.set" => profile.set = said.variables()?,
            "image.name" => profile.image_name = Some(said.checked_text(check_image_word)?),
            "image.tag" => profile.image_tag = Some(said.checked_text(check_image_word)?),
            "git.auto_push.remote" => profile.remote = Some(said.checked_text(check_remote)?),
            "git.auto_push.commit_message" => {
                profile.commit_message = Some(said.checked_text(message::check)?);
            }
            "git.co_authors" => profile.co_authors = said.list(CoAuthor::parse)?,
            "security.userns" => profile.userns = Some(said.parsed(userns)?),
            "maven.mirror_url" => profile.mirror = Some(said.checked_text(check_address)?),
            path if path.starts_with("network.allowlist.") => {
                profile.allow.extend(said.list(rule)?);
            }
            _ => return Err(said.unsupported("is not supported", "leave it out")),
        }
        Ok(())
    }

    fn narrowing_key(&mut self, said: Said<'_>) -> Result<(), Error> {
        let is_project = self.place.owner == Owner::Project;
        let profile = &mut self.profile;
        match said.path {
            "resources.memory" => profile.memory_bytes = Some(said.bytes()?),
            "resources.cpus" => profile.cpu_millis = Some(said.cpu_millis()?),
            // Two names of one limit: the smaller holds.
            "resources.pids" | "security.process.pids_limit" => {
                let count = said.count()?;
                let old = profile.processes.take();
                profile.processes = old.filter(|old| old.value < count.value).or(Some(count));
            }
            "network.mode" => profile.network = Some(said.parsed(network_mode)?),
            "git.auto_push.enabled" => {
                let push = said.truth()?;
                if is_project && push.value {
                    return Err(said.only_person());
                }
                profile.push = Some(push);
            }
            "security.seccomp.allow_userns" => {
                let nested = said.truth()?;
                if is_project && nested.value {
                    return Err(said.only_person());
                }
                profile.nested_namespaces = Some(nested);
            }
            _ => return Err(said.unsupported("is not supported", "leave it out")),
        }
        Ok(())
    }
}

impl Said<'_> {
    fn refused(&self, rule: &str) -> Error {
        self.refused_at(self.line, rule)
    }

    fn refused_at(&self, line: usize, rule: &str) -> Error {
        Error::usage(format!("{}: `{}`: {rule}", self.place.at(line), self.path))
    }

    fn unsupported(&self, what: &str, advice: &str) -> Error {
        let text = format!("{}: `{}` {what}", self.place.at(self.line), self.path);
        Error::usage(text).with_hint(format!("{advice}."))
    }

    fn only_person(&self) -> Error {
        let text = format!(
            "{}: a project's own file cannot set `{}`: it would widen what a run may do",
            self.place.at(self.line),
            self.path
        );
        Error::usage(text).with_hint(self.place.trust_hint)
    }

    fn kind_is(&self, wanted: &str) -> Error {
        self.refused(&format!(
            "it must be {wanted}, not {}",
            self.node.value.kind()
        ))
    }

    fn at<T>(&self, value: T) -> At<T> {
        At::new(value, self.place.source(self.line))
    }

    fn text(&self) -> Result<&str, Error> {
        match &self.node.value {
            Value::Text(text) => Ok(text),
            _ => Err(self.kind_is("text")),
        }
    }

    fn parsed<T>(&self, parse: impl Fn(&str) -> Result<T, String>) -> Result<At<T>, Error> {
        let parsed = parse(self.text()?).map_err(|rule| self.refused(&rule))?;
        Ok(self.at(parsed))
    }

    fn checked_text(
        &self,
        check: impl Fn(&str) -> Result<(), String>,
    ) -> Result<At<String>, Error> {
        self.parsed(|text| check(text).map(|()| text.to_owned()))
    }

    fn truth(&self) -> Result<At<bool>, Error> {
        match self.node.value {
            Value::Bool(value) => Ok(self.at(value)),
            _ => Err(self.kind_is("true or false")),
        }
    }

    fn count(&self) -> Result<At<u64>, Error> {
        match self.node.value {
            Value::Whole(value) => u64::try_from(value)
                .ok()
                .filter(|count| *count > 0)
                .map(|count| self.at(count))
                .ok_or_else(|| self.refused("it must be 1 or more")),
            _ => Err(self.kind_is("a whole number")),
        }
    }

    fn bytes(&self) -> Result<At<u64>, Error> {
        match self.node.value {
            Value::Whole(_) => self.count(),
            _ => self.parsed(amount::parse_bytes),
        }
    }

    fn cpu_millis(&self) -> Result<At<u64>, Error> {
        let text = match &self.node.value {
            Value::Whole(count) => count.to_string(),
            Value::Real(count) => count.to_string(),
            Value::Text(text) => text.clone(),
            _ => return Err(self.kind_is("a number")),
        };
        let millis = parse_cpu_millis(&text).map_err(|rule| self.refused(&rule))?;
        Ok(self.at(millis))
    }

    fn list<T>(&self, parse: impl Fn(&str) -> Result<T, String>) -> Result<Vec<At<T>>, Error> {
        let Value::List(items) = &self.node.value else {
            return Err(self.kind_is("a list"));
        };
        let read = |item: &Node| {
            let Value::Text(text) = &item.value else {
                let rule = format!("each must be text, not {}", item.value.kind());
                return Err(self.refused_at(item.line, &rule));
            };
            let value = parse(text)
                .map_err(|rule| self.refused_at(item.line, &format!("{text:?}: {rule}")))?;
            Ok(At::new(value, self.place.source(item.line)))
        };
        items.iter().map(read).collect()
    }

    fn variables(&self) -> Result<Vec<At<(String, String)>>, Error> {
        let Value::Map(entries) = &self.node.value else {
            return Err(self.kind_is("a table"));
        };
        let read = |entry: &Entry| {
            let refused =
                |rule: &str| self.refused_at(entry.line, &format!("{}: {rule}", entry.key));
            let name = variable_name(&entry.key).map_err(|rule| refused(&rule))?;
            let value = match &entry.node.value {
                Value::Text(text) => text.clone(),
                Value::Whole(number) => number.to_string(),
                Value::Null => String::new(),
                // 1.10 would become 1.1, and yes is not what every program calls true.
                Value::Bool(_) | Value::Real(_) => return Err(refused("put the value in quotes")),
                Value::List(_) | Value::Map(_) => return Err(refused("it must be text")),
            };
            if value.contains('\0') || value.len() > VALUE_BYTES_MAX {
                return Err(refused("it has a zero byte or is longer than 128 KiB"));
            }
            Ok(At::new((name, value), self.place.source(entry.line)))
        };
        entries.iter().map(read).collect()
    }
}

fn is_fixed(value: &Value, fixed: Fixed) -> bool {
    match (fixed, value) {
        (_, Value::Null) => true,
        (Fixed::True, Value::Bool(value)) => *value,
        (Fixed::False, Value::Bool(value)) => !value,
        (Fixed::Empty, Value::Text(text)) => text.is_empty(),
        (Fixed::Empty, Value::List(items)) => items.is_empty(),
        (Fixed::Empty, Value::Map(entries)) => entries.is_empty(),
        (Fixed::Text(wanted), Value::Text(text)) => text == wanted,
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
            "{text:?} is no kind of agent; there are claude, codex, gemini, pi, aider, python and \
             interactive"
        )),
        known => Ok(AgentName::Of(known)),
    }
}

/// Reads the name of a variable.
pub(super) fn variable_name(text: &str) -> Result<String, String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins_well = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !begins_well || !text.chars().all(is_word) {
        return Err("a variable's name has letters, digits and _ only".to_owned());
    }
    if text.starts_with("KAPI_") || OWN_VARIABLES.contains(&text) {
        return Err("Kapi sets this variable itself".to_owned());
    }
    Ok(text.to_owned())
}

fn rule(text: &str) -> Result<EgressRule, String> {
    EgressRule::parse(text).map_err(|error| format!("{}; {}", error.problem, error.problem.hint()))
}

fn network_mode(text: &str) -> Result<NetworkMode, String> {
    match text {
        "none" => Ok(NetworkMode::None),
        "filtered" => Ok(NetworkMode::Filtered),
        "open" => Ok(NetworkMode::Open),
        _ => Err(format!("{text:?} is not none, filtered or open")),
    }
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
    Err("use letters, digits, _, ., /, :, @ and -, and begin with a letter or digit".to_owned())
}

fn check_remote(text: &str) -> Result<(), String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let begins_well = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins_well && text.chars().all(is_word) {
        return Ok(());
    }
    Err("it must be the name of a remote that the repository has, never an address".to_owned())
}

fn check_address(text: &str) -> Result<(), String> {
    let is_web = text.starts_with("https://") || text.starts_with("http://");
    let is_odd = |c: char| c.is_whitespace() || c.is_control();
    if is_web && !text.contains(is_odd) {
        return Ok(());
    }
    Err("give an address that begins with https:// or http://".to_owned())
}
