//! A contract that stands in a file: the shape that `contract.yaml` is written in, or a short form.
//!
//! Every key is honoured or refused with its line. Flags override the file; lists of what
//! is protected or asked about add up. Creates nothing and approves nothing.

mod form;

use std::path::Path;

use kapi_core::agent_models::AgentModels;
use kapi_core::hidden_checks::HiddenCheckSet;
use kapi_goal::rules::contract::{AgentSurface, Base};
use kapi_settings::fault::Faults;
use kapi_settings::scalar::NonBlankText;
use kapi_settings::setting::Setting;
use kapi_settings::{amount, read as settings, yaml};

use crate::config::Config;
use crate::config::file::{Links, read};
use crate::context::Context;
use crate::contract::agent_name::kind;
use crate::contract::file::form::{
    AgentModelsForm, BaseForm, ContractForm, JudgeWord, Number, SurfaceForm, Texts, WorkingForm,
};
use crate::contract::flags::Args;
use crate::contract::flags::names::parse_surface;
use crate::contract::models;
use crate::error::Error;
use crate::exit_code::Exit;

/// Flags filled with what a file says, and what only a file can say.
#[derive(Debug)]
pub(crate) struct MergedFlags {
    /// The flags.
    pub(crate) args: Args,
    /// What is held to exactly.
    pub(crate) pinned: FilePins,
}

/// What a file can hold a contract to, beyond flags.
#[derive(Debug, Default)]
pub(crate) struct FilePins {
    /// The file and the line that names a branch, and the branch.
    pub(crate) branch: Option<(String, String)>,
    /// The place, the revision, and the tree that the base must have.
    base: Option<PinnedBase>,
    /// The place and the hash that the hidden checks must have.
    hidden: Option<(String, String)>,
    /// The models that the agents may ask.
    models: Vec<AgentModels>,
}

#[derive(Debug)]
struct PinnedBase {
    location: String,
    revision: Option<String>,
    tree: Option<String>,
}

impl FilePins {
    /// Refuses a base that is another one than the file names; keeps the name it has there.
    pub(crate) fn check_base(&self, mut base: Base) -> Result<Base, Error> {
        let Some(pinned) = &self.base else {
            return Ok(base);
        };
        if pinned.tree.as_ref().is_some_and(|tree| *tree != base.tree) {
            return Err(Error::usage(format!(
                "{}: commit {} has the tree {}, not the one given here",
                pinned.location, base.commit, base.tree
            ))
            .with_hint("remove `tree`, or give the commit it belongs to."));
        }
        if let Some(revision) = &pinned.revision {
            base.revision.clone_from(revision);
        }
        Ok(base)
    }

    /// Keeps each agent to the models that the file names for it, unless a flag named another; the
    /// person's own lists hold over the file.
    pub(crate) fn keep_models(&self, config: &mut Config) -> Result<(), Error> {
        for models in &self.models {
            let kind = kind(&models.agent)?;
            let settings = config.agents.entry(models.agent.clone()).or_default();
            if let Some(model) = &models.model {
                models::of_settings(settings, &kind, model)?;
            }
            if settings.models.is_empty() {
                settings.models.clone_from(&models.may_ask);
            }
        }
        Ok(())
    }

    /// Refuses hidden checks that are others than the file names.
    pub(crate) fn check_hidden(&self, hidden: Option<&HiddenCheckSet>) -> Result<(), Error> {
        match (&self.hidden, hidden) {
            (Some((location, sha256)), Some(hidden)) if *sha256 != hidden.sha256 => {
                Err(Error::usage(format!(
                    "{location}: the hidden checks in {} have the hash {}, not the one given here",
                    hidden.source, hidden.sha256
                ))
                .with_hint("remove `sha256`, or restore the checks."))
            }
            (_, _) => Ok(()),
        }
    }
}

/// Returns flags filled with what the file they name says.
pub(crate) fn filled(context: &Context, flags: &Args) -> Result<MergedFlags, Error> {
    let mut filled = MergedFlags {
        args: flags.clone(),
        pinned: FilePins::default(),
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

fn fill(filled: &mut MergedFlags, flags: &Args, path: &Path, text: &str) -> Result<(), Error> {
    let mut faults = Faults::of(path.display().to_string());
    let root = yaml::parse(text, &mut faults);
    let form: Option<ContractForm> = root.and_then(|root| settings::read(&root, &mut faults));
    if let Some(mut form) = form {
        let mut reader = ContractReader {
            path,
            flags,
            filled,
            faults: &mut faults,
        };
        reader.one_form(&mut form);
        reader.proof(&mut form);
        reader.participants(&mut form);
        reader.limits(&form);
        reader.working(form.working);
        reader.location(form.base, form.branch);
    }
    faults
        .instead_of(Some(()))
        .map_err(|faults| Error::settings(&faults))
}

/// Reads one file into the flags.
struct ContractReader<'a> {
    path: &'a Path,
    flags: &'a Args,
    filled: &'a mut MergedFlags,
    faults: &'a mut Faults,
}

impl ContractReader<'_> {
    /// Brings the short form into the whole one; a file says each thing once.
    fn one_form(&mut self, form: &mut ContractForm) {
        let (checks, budget, working) = (&mut form.checks, &mut form.budget, &mut form.working);
        let faults = &mut *self.faults;
        once(&mut checks.tests, form.tests.take(), faults);
        once(&mut checks.already_green, form.already_green.take(), faults);
        once(
            &mut checks.changed_steering,
            form.allow_changed_setup.take(),
            faults,
        );
        once(
            &mut checks.flagged_code,
            form.allow_flagged_code.take(),
            faults,
        );
        once(&mut checks.strength, form.prove_diff.take(), faults);
        once(&mut budget.turns, form.turns.take(), faults);
        once(&mut budget.tokens, form.tokens.take(), faults);
        once(&mut budget.usd, form.usd.take(), faults);
        once(&mut budget.wall, form.wall.take(), faults);
        once(&mut working.goal_type, form.goal_type.take(), faults);
        once(&mut working.surfaces, form.surfaces.take(), faults);
        once(&mut working.ask_before, form.ask_before.take(), faults);
        once(
            &mut working.decision_style,
            form.decision_style.take(),
            faults,
        );
        once(&mut working.start_phase, form.start_phase.take(), faults);
        once(&mut working.mise, form.mise.take(), faults);
        once(&mut working.keep_commits, form.keep_commits.take(), faults);
        once(&mut working.reminders, form.reminders.take(), faults);
        once(&mut working.distill, form.distill.take(), faults);
        if let Some(race) = &form.race {
            let what = "a contract file cannot describe one lane of a race";
            let remedy = "remove it; start a race with `kapi run --race`";
            self.faults.at(race, what, remedy);
        }
    }

    /// Takes what is wanted and what proves it.
    fn proof(&mut self, form: &mut ContractForm) {
        let (flags, args) = (self.flags, &mut self.filled.args);
        if let (Some(intent), true) = (form.intent.take(), flags.intent.is_empty()) {
            args.intent = intent.0;
        }
        keep(
            &mut args.criteria,
            form.done_criteria.take().map(|text| text.0),
        );
        let verify = form.verify.take();
        if let Some(commands) = verify.filter(|_| flags.verify.is_empty() && !flags.unverified) {
            args.unverified = commands.0.is_empty();
            args.verify = texts(commands);
        }
        args.verify_network |= form.verify_network;
        args.protect
            .extend(texts(std::mem::take(&mut form.protect)));
        if let Some(hidden) = form.hidden.take() {
            let dir = self.path.parent().unwrap_or(Path::new(""));
            keep(
                &mut args.hidden,
                hidden.source.map(|source| dir.join(source.0)),
            );
            let sha256 = hidden
                .sha256
                .map(|said| (location(self.path, &said), said.value.0));
            self.filled.pinned.hidden = sha256;
        }
        let checks = &form.checks;
        let is_on = |said: &Option<Setting<bool>>| value(said.as_ref()) == Some(true);
        keep(&mut args.checks.tests, value(checks.tests.as_ref()));
        args.checks.already_green |= is_on(&checks.already_green);
        args.checks.allow_changed_setup |= is_on(&checks.changed_steering);
        args.checks.allow_flagged_code |= is_on(&checks.flagged_code);
        args.checks.prove_diff |= is_on(&checks.strength);
    }

    /// Takes who works and who judges.
    fn participants(&mut self, form: &mut ContractForm) {
        let agent = form.agent.take().map(|agent| self.named(agent.0));
        let judge = form.judge.take().and_then(|judge| match judge.by {
            Some(JudgeWord::None) => Some("none".to_owned()),
            Some(JudgeWord::Same) => Some("same".to_owned()),
            Some(JudgeWord::Agent) | None => judge.agent.map(|agent| self.named(agent.0)),
        });
        let args = &mut self.filled.args;
        keep(&mut args.agent, agent);
        keep(&mut args.judge, judge);
        // A model that was named anew is another choice than the file's.
        if args.model.is_none() {
            let models = std::mem::take(&mut form.models).into_iter();
            self.filled.pinned.models = models.map(pinned).collect();
        }
        keep(&mut args.model, form.model.take().map(|model| model.0));
        keep(&mut args.judge_unavailable, form.judge_unavailable);
        keep(&mut args.branch_type, form.branch_type);
        keep(&mut args.sandbox, form.sandbox);
        keep(&mut args.network, form.network);
    }

    /// Takes limits.
    fn limits(&mut self, form: &ContractForm) {
        let (args, faults) = (&mut self.filled.args, &mut *self.faults);
        let budget = &form.budget;
        keep(&mut args.turns, count32(budget.turns.as_ref(), faults));
        keep(
            &mut args.stall_after,
            count32(form.stall_after.as_ref(), faults),
        );
        keep(
            &mut args.tokens,
            number(budget.tokens.as_ref(), amount::parse_count, faults),
        );
        let usd = match budget
            .usd
            .as_ref()
            .filter(|usd| usd.key.ends_with("_micros"))
        {
            Some(micros) => number(Some(micros), whole, faults),
            None => number(budget.usd.as_ref(), amount::parse_usd_micros, faults),
        };
        keep(&mut args.usd, usd);
        keep(&mut args.wall, milliseconds(budget.wall.as_ref(), faults));
        keep(
            &mut args.turn_timeout,
            milliseconds(form.turn_timeout.as_ref(), faults),
        );
        keep(
            &mut args.verify_timeout,
            milliseconds(form.verify_timeout.as_ref(), faults),
        );
    }

    /// Takes how it is worked on.
    fn working(&mut self, form: WorkingForm) {
        let (args, faults) = (&mut self.filled.args, &mut *self.faults);
        keep(&mut args.goal_type, value(form.goal_type.as_ref()));
        let surfaces = form.surfaces.into_iter().flat_map(|said| said.value);
        args.surface
            .extend(surfaces.filter_map(|said| surface(&said, faults)));
        let ask_before = form.ask_before.map(|said| texts(said.value));
        args.ask_before.extend(ask_before.unwrap_or_default());
        keep(
            &mut args.decision_style,
            form.decision_style.map(|said| said.value.0),
        );
        keep(&mut args.start_phase, value(form.start_phase.as_ref()));
        keep(&mut args.reminders, value(form.reminders.as_ref()));
        args.keep_commits |= value(form.keep_commits.as_ref()) == Some(true);
        args.mise |= value(form.mise.as_ref()) == Some(true);
        args.no_distill |= form.distill.is_some_and(|said| !said.value.0);
    }

    /// Takes where it happens.
    fn location(&mut self, base: Option<Setting<BaseForm>>, branch: Option<Setting<NonBlankText>>) {
        let filled = &mut *self.filled;
        filled.pinned.branch = branch.map(|said| (location(self.path, &said), said.value.0));
        let Some(base) = base.filter(|_| self.flags.base.is_none()) else {
            return;
        };
        let location = location(self.path, &base);
        let BaseForm {
            revision,
            commit,
            tree,
        } = base.value;
        let revision = revision.map(|text| text.0);
        // A commit says more than the name it once had.
        let named = commit.map(|text| text.0).or_else(|| revision.clone());
        filled.args.base = named.or(filled.args.base.take());
        filled.pinned.base = Some(PinnedBase {
            location,
            revision,
            tree: tree.map(|text| text.0),
        });
    }

    /// A script is named from where the file is.
    fn named(&self, reference: String) -> String {
        match reference.strip_prefix("script:") {
            Some(file) => {
                let dir = self.path.parent().unwrap_or(Path::new(""));
                format!("script:{}", dir.join(file).display())
            }
            None => reference,
        }
    }
}

fn pinned(form: AgentModelsForm) -> AgentModels {
    AgentModels {
        agent: form.agent.0,
        model: form.model.map(|model| model.0),
        may_ask: texts(form.may_ask),
    }
}

/// Keeps what a flag said already.
fn keep<T>(kept: &mut Option<T>, said: Option<T>) {
    *kept = kept.take().or(said);
}

/// Takes what the short form says, unless the whole one says it too.
fn once<T>(whole: &mut Option<Setting<T>>, short: Option<Setting<T>>, faults: &mut Faults) {
    if let (Some(whole), Some(short)) = (&*whole, &short) {
        let what = format!("`{}` on line {} already sets this", whole.key, whole.line);
        faults.at(short, what, "keep one of them");
    }
    *whole = whole.take().or(short);
}

fn location<T>(path: &Path, said: &Setting<T>) -> String {
    format!("{}:{}: `{}`", path.display(), said.line, said.key)
}

fn texts(texts: Texts) -> Vec<String> {
    texts.0.into_iter().map(|text| text.0).collect()
}

fn value<T: Copy>(said: Option<&Setting<T>>) -> Option<T> {
    said.map(|said| said.value)
}

/// Returns a number that is more than 0.
fn number(
    said: Option<&Number>,
    parse: impl Fn(&str) -> Result<u64, String>,
    faults: &mut Faults,
) -> Option<u64> {
    let said = said?;
    let read = parse(&said.value.0);
    match read {
        Ok(0) => faults.at(said, "0 is out of range", "give 1 or more"),
        Ok(_) => {}
        Err(ref rule) => faults.at(said, rule, "fix it"),
    }
    read.ok()
}

fn whole(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is not a whole number"))
}

fn count32(said: Option<&Number>, faults: &mut Faults) -> Option<u32> {
    let small = |text: &str| {
        whole(text).and_then(|count| match u32::try_from(count) {
            Ok(_) => Ok(count),
            Err(_) => Err(format!("{count} is too large")),
        })
    };
    number(said, small, faults).and_then(|count| u32::try_from(count).ok())
}

/// Returns a time: `90s`, `2h`, or a whole number of milliseconds under a key that says so.
fn milliseconds(said: Option<&Number>, faults: &mut Faults) -> Option<u64> {
    let is_ms = said.is_some_and(|said| said.key.ends_with("_ms"));
    let parse = |text: &str| match whole(text) {
        Ok(ms) if is_ms => Ok(ms),
        Ok(_) => Err(format!(
            "{text} has no unit: write a duration such as 90s, 15m, 2h or 1d"
        )),
        Err(_) => amount::parse_duration_ms(text),
    };
    number(said, parse, faults)
}

fn surface(said: &Setting<SurfaceForm>, faults: &mut Faults) -> Option<AgentSurface> {
    let SurfaceForm {
        kind,
        location,
        notes,
    } = &said.value;
    if let Some(kind) = kind {
        return Some(AgentSurface {
            kind: kind.0.clone(),
            location: location.0.clone(),
            notes: notes.as_ref().map(|notes| notes.0.clone()),
        });
    }
    let parsed = parse_surface(&location.0);
    if let Err(rule) = &parsed {
        faults.at(said, rule, "give a table with kind and location");
    }
    parsed.ok()
}
