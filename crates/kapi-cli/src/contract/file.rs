//! A contract that stands in a file: the shape that `contract.yaml` is written in, or a short form.
//!
//! Every key is honoured or refused with its line. Flags hold over what the file says; lists of what
//! is protected or asked about add up. Creates nothing and approves nothing.

mod key;
mod said;

use std::path::{Path, PathBuf};

use kapi_core::goal::contract::{Base, Hidden};
use kapi_settings::fault::Faults;
use kapi_settings::node::{Entry, Value};
use kapi_settings::yaml;

use crate::commands::run::Args;
use crate::config::file::{Links, read};
use crate::context::Context;
use crate::contract::file::said::{Said, Seen};
use crate::error::Error;
use crate::exit_code::Exit;

/// Flags filled with what a file says, and what only a file can say.
#[derive(Debug)]
pub(crate) struct Filled {
    /// The flags.
    pub(crate) args: Args,
    /// What is held to exactly.
    pub(crate) pinned: Pinned,
}

/// What a file can hold a contract to, beyond flags.
#[derive(Debug, Default)]
pub(crate) struct Pinned {
    /// The file and the line that names a branch, and the branch.
    pub(crate) branch: Option<(String, String)>,
    /// The place, the revision, and the tree that the base must have.
    base: Option<PinnedBase>,
    /// The place and the hash that the hidden checks must have.
    hidden: Option<(String, String)>,
}

#[derive(Debug)]
struct PinnedBase {
    place: String,
    revision: Option<String>,
    tree: Option<String>,
}

impl Pinned {
    /// Refuses a base that is another one than the file names; keeps the name it has there.
    pub(crate) fn check_base(&self, mut base: Base) -> Result<Base, Error> {
        let Some(pinned) = &self.base else {
            return Ok(base);
        };
        if pinned.tree.as_ref().is_some_and(|tree| *tree != base.tree) {
            return Err(Error::usage(format!(
                "{}: commit {} has the tree {}, not the one named here",
                pinned.place, base.commit, base.tree
            ))
            .with_hint("leave `tree` out, or name the commit it belongs to."));
        }
        if let Some(revision) = &pinned.revision {
            base.revision.clone_from(revision);
        }
        Ok(base)
    }

    /// Refuses hidden checks that are others than the file names.
    pub(crate) fn check_hidden(&self, hidden: Option<&Hidden>) -> Result<(), Error> {
        match (&self.hidden, hidden) {
            (Some((place, sha256)), Some(hidden)) if *sha256 != hidden.sha256 => {
                Err(Error::usage(format!(
                    "{place}: the hidden checks in {} have the hash {}, not the one named here",
                    hidden.source, hidden.sha256
                ))
                .with_hint("leave `sha256` out, or put the checks back as they were."))
            }
            (_, _) => Ok(()),
        }
    }
}

/// Returns flags filled with what the file they name says.
pub(crate) fn filled(context: &Context, flags: &Args) -> Result<Filled, Error> {
    let mut filled = Filled {
        args: flags.clone(),
        pinned: Pinned::default(),
    };
    let Some(path) = &flags.contract else {
        return Ok(filled);
    };
    let path = context.cwd.join(path);
    let Some(text) = read(&path, Links::Followed)? else {
        return Err(Error::new(
            Exit::NotFound,
            format!("there is no file {}", path.display()),
        ));
    };
    fill(&mut filled, flags, &path, &text)?;
    Ok(filled)
}

fn fill(filled: &mut Filled, flags: &Args, path: &Path, text: &str) -> Result<(), Error> {
    let mut faults = Faults::of(path.display().to_string());
    let root = yaml::parse(text, &mut faults).ok_or_else(|| {
        Error::settings(&faults.into_list())
    })?;
    let mut reader = Reader {
        path,
        dir: path.parent().map(Path::to_path_buf).unwrap_or_default(),
        flags,
        filled,
        seen: Seen::default(),
    };
    reader.table("", root.entries())
}

/// Reads one file into the flags.
struct Reader<'a> {
    path: &'a Path,
    /// Where relative paths of the file begin.
    dir: PathBuf,
    flags: &'a Args,
    filled: &'a mut Filled,
    seen: Seen,
}

impl Reader<'_> {
    fn table(&mut self, prefix: &str, entries: &[Entry]) -> Result<(), Error> {
        for entry in entries {
            let key = match prefix {
                "" => entry.key.clone(),
                prefix => format!("{prefix}.{}", entry.key),
            };
            let said = Said {
                path: self.path,
                key: &key,
                line: entry.line,
                node: &entry.node,
            };
            match (&entry.node.value, key::is_table(&key)) {
                (Value::Null, _) if key::is_known(&key) => {}
                (Value::Map(inner), true) => self.table(&key, inner)?,
                (_, _) => self.key(said)?,
            }
        }
        Ok(())
    }

    fn key(&mut self, said: Said<'_>) -> Result<(), Error> {
        let Some(name) = key::name(said.key) else {
            return Err(said
                .refused("there is no such key")
                .with_hint(format!("there are: {}.", key::beside(said.key))));
        };
        self.seen.note(name, said)?;
        let is_set = self.proof_key(name, said)?
            || self.party_key(name, said)?
            || self.limit_key(name, said)?
            || self.working_key(name, said)?
            || self.place_key(name, said)?;
        assert!(is_set, "every key of the table is read by one of these");
        Ok(())
    }

    /// Reads what is wanted and what proves it.
    fn proof_key(&mut self, name: &str, said: Said<'_>) -> Result<bool, Error> {
        let (flags, args) = (self.flags, &mut self.filled.args);
        match name {
            "version" => said.whole_within(1, 1).map(drop)?,
            "intent" if flags.intent.is_empty() => args.intent = said.text()?,
            "intent" => drop(said.text()?),
            "done_criteria" => keep(&mut args.criteria, said.text()?),
            "verify" => {
                let commands = said.texts()?;
                if flags.verify.is_empty() && !flags.unverified {
                    args.unverified = commands.is_empty();
                    args.verify = commands;
                }
            }
            "verify_network" => args.verify_network |= said.truth()?,
            "protect" => args.protect.extend(said.texts()?),
            "hidden" => keep(&mut args.hidden, self.dir.join(said.text()?)),
            "hidden.sha256" => self.filled.pinned.hidden = Some((said.at(), said.text()?)),
            "tests" => keep(&mut args.checks.tests, said.word()?),
            "already_green" => args.checks.already_green |= said.truth()?,
            "changed_steering" => args.checks.allow_changed_setup |= said.truth()?,
            "strength" => args.checks.prove_diff |= said.truth()?,
            // Whoever names a file makes all of it their own word.
            "attribution" => {}
            // Counted anew.
            "hidden.files" => drop(said.whole_within(0, u64::from(u32::MAX))?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads who works and who judges.
    fn party_key(&mut self, name: &str, said: Said<'_>) -> Result<bool, Error> {
        match name {
            "agent" => {
                let agent = self.named(said.text()?);
                keep(&mut self.filled.args.agent, agent);
            }
            "judge" | "judge.agent" => {
                let judge = self.named(said.text()?);
                keep(&mut self.filled.args.judge, judge);
            }
            "judge.by" => match said.text()?.as_str() {
                by @ ("none" | "same") => keep(&mut self.filled.args.judge, by.to_owned()),
                "agent" => {}
                _ => return Err(said.refused("it is `none`, `same` or `agent`")),
            },
            "judge_unavailable" => {
                keep(&mut self.filled.args.judge_unavailable, said.word()?);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads limits.
    fn limit_key(&mut self, name: &str, said: Said<'_>) -> Result<bool, Error> {
        let args = &mut self.filled.args;
        match name {
            "turns" => keep(&mut args.turns, said.count32()?),
            "tokens" => keep(&mut args.tokens, said.count()?),
            "usd" => keep(&mut args.usd, said.usd_micros()?),
            "usd_micros" => keep(&mut args.usd, said.whole_within(1, u64::MAX)?),
            "wall" | "wall_ms" => keep(&mut args.wall, said.milliseconds()?),
            "turn_timeout" | "turn_timeout_ms" => {
                keep(&mut args.turn_timeout, said.milliseconds()?);
            }
            "verify_timeout" | "verify_timeout_ms" => {
                keep(&mut args.verify_timeout, said.milliseconds()?);
            }
            "stall_after" => keep(&mut args.stall_after, said.count32()?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads how it is worked on.
    fn working_key(&mut self, name: &str, said: Said<'_>) -> Result<bool, Error> {
        let args = &mut self.filled.args;
        match name {
            "goal_type" => keep(&mut args.goal_type, said.word()?),
            "surfaces" => args.surface.extend(said.surfaces()?),
            "ask_before" => args.ask_before.extend(said.texts()?),
            "decision_style" => keep(&mut args.decision_style, said.text()?),
            "start_phase" => keep(&mut args.start_phase, said.word()?),
            "reminders" => keep(&mut args.reminders, said.word()?),
            "mise" => args.mise |= said.truth()?,
            "distill" => match &said.node.value {
                Value::Bool(on) => args.no_distill |= !on,
                _ => match said.text()?.as_str() {
                    "when_planned" => {}
                    "never" => args.no_distill = true,
                    _ => return Err(said.refused("it is `when_planned` or `never`")),
                },
            },
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads where it happens.
    fn place_key(&mut self, name: &str, said: Said<'_>) -> Result<bool, Error> {
        let (flags, args) = (self.flags, &mut self.filled.args);
        match name {
            "base" => keep(&mut args.base, said.text()?),
            "base.revision" | "base.commit" | "base.tree" if flags.base.is_some() => {
                drop(said.text()?);
            }
            "base.revision" => {
                let revision = said.text()?;
                keep(&mut args.base, revision.clone());
                self.pinned_base(said).revision = Some(revision);
            }
            // A commit says more than the name it once had.
            "base.commit" => args.base = Some(said.text()?),
            "base.tree" => self.pinned_base(said).tree = Some(said.text()?),
            "branch" => self.filled.pinned.branch = Some((said.at(), said.text()?)),
            "type" => keep(&mut args.branch_type, said.word()?),
            "sandbox" => keep(&mut args.sandbox, said.word()?),
            "network" => keep(&mut args.network, said.word()?),
            "race" => {
                return Err(said
                    .refused("a contract of its own cannot be one lane of a race")
                    .with_hint("leave it out; `kapi run --race` starts one."));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn pinned_base(&mut self, said: Said<'_>) -> &mut PinnedBase {
        self.filled.pinned.base.get_or_insert_with(|| PinnedBase {
            place: said.at(),
            revision: None,
            tree: None,
        })
    }

    /// A script is named from where the file is.
    fn named(&self, reference: String) -> String {
        match reference.strip_prefix("script:") {
            Some(file) => format!("script:{}", self.dir.join(file).display()),
            None => reference,
        }
    }
}

/// Keeps what a flag said already.
fn keep<T>(place: &mut Option<T>, said: T) {
    place.get_or_insert(said);
}
