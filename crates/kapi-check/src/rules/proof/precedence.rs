//! Whose word counts where several say what proves a goal and what it may spend.
//!
//! A person's word holds: their flags over a contract file, and that over their settings. An agent's
//! draft and a project's files may add checks and narrow what nobody fixed; they never replace a
//! check, loosen a rule or choose another judge. Where the words come from is not known here.

use kapi_core::judge::Judge;
use kapi_core::text::holds_command;

use super::attribution::{Addition, Authority, CheckPart, RefusedSetting};
use crate::rules::proof::policy::{CheckPolicy, TestPolicy};

/// What somebody says of a goal's checks and limits; what is absent was left open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckSettings {
    /// Verify commands; an empty list says that there are to be none.
    pub verify: Option<Vec<String>>,
    /// Protected pathspecs.
    pub protect: Vec<String>,
    /// Who judges.
    pub judge: Option<Judge>,
    /// What may happen to the project's tests.
    pub tests: Option<TestPolicy>,
    /// Whether checks that pass on the base are proof enough.
    pub already_green: Option<bool>,
    /// Whether the proof may rest on changed scripts and settings.
    pub changed_steering: Option<bool>,
    /// Whether the proof may rest on flagged code.
    pub flagged_code: Option<bool>,
    /// Whether each hunk is taken back in turn.
    pub strength: Option<bool>,
    /// Agent turns at most.
    pub turns: Option<u32>,
    /// Tokens at most.
    pub tokens: Option<u64>,
    /// Millionths of a US dollar at most.
    pub usd_micros: Option<u64>,
    /// Milliseconds at most.
    pub wall_ms: Option<u64>,
}

impl CheckSettings {
    /// Returns the policy of the checks.
    #[must_use]
    pub fn policy(&self) -> CheckPolicy {
        CheckPolicy {
            tests: self.tests.unwrap_or_default(),
            already_green: self.already_green.unwrap_or_default(),
            changed_steering: self.changed_steering.unwrap_or_default(),
            flagged_code: self.flagged_code.unwrap_or_default(),
            strength: self.strength.unwrap_or_default(),
        }
    }
}

/// What one party says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsLayer {
    /// Who.
    pub by: Authority,
    /// What.
    pub settings: CheckSettings,
}

/// What holds in the end, and what became of the words of those who do not decide.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResolvedChecks {
    /// What holds.
    pub settings: CheckSettings,
    /// What the draft or the project added or narrowed.
    pub additions: Vec<Addition>,
    /// What they asked for and did not get.
    pub refusals: Vec<RefusedSetting>,
}

/// Returns what holds when several parties speak, whatever their order.
#[must_use]
pub fn resolve(layers: &[SettingsLayer]) -> ResolvedChecks {
    let mut layers: Vec<&SettingsLayer> = layers.iter().collect();
    layers.sort_by_key(|layer| layer.by);
    let mut resolver = PrecedenceResolver::default();
    for layer in layers {
        if layer.by.is_person() {
            resolver.apply_person(layer);
        } else {
            resolver.apply_other(layer);
        }
    }
    resolver.resolved
}

#[derive(Default)]
struct PrecedenceResolver {
    resolved: ResolvedChecks,
    /// Parts that the person fixed for this very goal.
    fixed: Vec<CheckPart>,
}

/// One part with a single value, and when another value is the narrower one.
struct Single<T> {
    part: CheckPart,
    location: fn(&mut CheckSettings) -> &mut Option<T>,
    /// What holds where nobody says anything.
    usual: Option<T>,
    /// Tells whether the first narrows the second, which holds now.
    narrows: fn(T, Option<T>) -> bool,
}

const TESTS: Single<TestPolicy> = Single {
    part: CheckPart::Tests,
    location: |settings| &mut settings.tests,
    usual: Some(TestPolicy::Additive),
    narrows: |wanted, now| wanted > now.unwrap_or_default(),
};
const TURNS: Single<u32> = Single {
    part: CheckPart::Turns,
    location: |settings| &mut settings.turns,
    usual: None,
    narrows: |wanted, now| now.is_none_or(|now| wanted < now),
};

const fn amount(
    part: CheckPart,
    location: fn(&mut CheckSettings) -> &mut Option<u64>,
) -> Single<u64> {
    let narrows = |wanted, now: Option<u64>| now.is_none_or(|now| wanted < now);
    Single {
        part,
        location,
        usual: None,
        narrows,
    }
}

const AMOUNTS: [Single<u64>; 3] = [
    amount(CheckPart::Tokens, |settings| &mut settings.tokens),
    amount(CheckPart::UsdMicros, |settings| &mut settings.usd_micros),
    amount(CheckPart::WallMs, |settings| &mut settings.wall_ms),
];
const SWITCHES: [Single<bool>; 4] = [
    Single {
        part: CheckPart::AlreadyGreen,
        location: |settings| &mut settings.already_green,
        usual: Some(false),
        narrows: |wanted, now| !wanted && now == Some(true),
    },
    Single {
        part: CheckPart::ChangedSteering,
        location: |settings| &mut settings.changed_steering,
        usual: Some(false),
        narrows: |wanted, now| !wanted && now == Some(true),
    },
    Single {
        part: CheckPart::FlaggedCode,
        location: |settings| &mut settings.flagged_code,
        usual: Some(false),
        narrows: |wanted, now| !wanted && now == Some(true),
    },
    Single {
        part: CheckPart::Strength,
        location: |settings| &mut settings.strength,
        usual: Some(false),
        narrows: |wanted, now| wanted && now != Some(true),
    },
];

impl PrecedenceResolver {
    /// The strongest word of the person counts; what is protected adds up.
    fn apply_person(&mut self, layer: &SettingsLayer) {
        let said = &layer.settings;
        let held = &mut self.resolved.settings;
        if held.verify.is_none() {
            held.verify.clone_from(&said.verify);
        }
        if held.judge.is_none() && said.judge.is_some() {
            held.judge.clone_from(&said.judge);
            if layer.by.is_about_this_goal() {
                self.fixed.push(CheckPart::Judge);
            }
        }
        for glob in &said.protect {
            push_new(&mut held.protect, glob);
        }
        self.apply_single(layer, &TESTS);
        self.apply_single(layer, &TURNS);
        for amount in &AMOUNTS {
            self.apply_single(layer, amount);
        }
        for switch in &SWITCHES {
            self.apply_single(layer, switch);
        }
    }

    fn apply_single<T: Copy>(&mut self, layer: &SettingsLayer, single: &Single<T>) {
        let Some(value) = *(single.location)(&mut layer.settings.clone()) else {
            return;
        };
        let location = (single.location)(&mut self.resolved.settings);
        if location.is_none() {
            *location = Some(value);
            if layer.by.is_about_this_goal() {
                self.fixed.push(single.part);
            }
        }
    }

    /// What is not the person's word adds to lists and narrows what nobody fixed.
    fn apply_other(&mut self, layer: &SettingsLayer) {
        let (by, said) = (layer.by, &layer.settings);
        for command in said.verify.iter().flatten() {
            self.add_command(by, command);
        }
        for glob in &said.protect {
            if push_new(&mut self.resolved.settings.protect, glob) {
                self.added(by, CheckPart::Protect, glob.clone());
            }
        }
        if let Some(judge) = &said.judge {
            self.add_judge(by, judge);
        }
        self.narrow(layer, &TESTS, |tests| tests.as_str().to_owned());
        self.narrow(layer, &TURNS, |turns| turns.to_string());
        for amount in &AMOUNTS {
            self.narrow(layer, amount, |amount| amount.to_string());
        }
        for switch in &SWITCHES {
            self.narrow(layer, switch, |is_on| is_on.to_string());
        }
    }

    /// Whatever else is to be checked comes after the person's own commands; a person who wants
    /// nothing checked has said so.
    fn add_command(&mut self, by: Authority, command: &String) {
        let held = &mut self.resolved.settings.verify;
        if held.as_ref().is_some_and(Vec::is_empty) {
            let kept = "verification is off, as you requested".to_owned();
            self.refused(by, CheckPart::Verify, command.clone(), kept);
        } else if push_new(held.get_or_insert_with(Vec::new), command) {
            self.added(by, CheckPart::Verify, command.clone());
        }
    }

    /// A judge is a check that may be added where there is none. A program could be made to say
    /// whatever is wanted, so only a person names one.
    fn add_judge(&mut self, by: Authority, judge: &Judge) {
        let held = self.resolved.settings.judge.clone();
        let is_fixed = self.fixed.contains(&CheckPart::Judge);
        match held.filter(|held| is_fixed || *held != Judge::None) {
            Some(held) if held == *judge => {}
            Some(held) => self.refused(by, CheckPart::Judge, judge.to_string(), held.to_string()),
            None if *judge == Judge::None => {}
            None if is_program(judge) => {
                let kept = "only you can choose a program as the judge".to_owned();
                self.refused(by, CheckPart::Judge, judge.to_string(), kept);
            }
            None => {
                self.resolved.settings.judge = Some(judge.clone());
                self.added(by, CheckPart::Judge, judge.to_string());
            }
        }
    }

    fn narrow<T: Copy + PartialEq>(
        &mut self,
        layer: &SettingsLayer,
        single: &Single<T>,
        text: fn(T) -> String,
    ) {
        let Some(wanted) = *(single.location)(&mut layer.settings.clone()) else {
            return;
        };
        let location = (single.location)(&mut self.resolved.settings);
        let now = location.or(single.usual);
        if now == Some(wanted) {
            return;
        }
        let is_fixed = self.fixed.contains(&single.part);
        if !is_fixed && (single.narrows)(wanted, now) {
            *location = Some(wanted);
            self.added(layer.by, single.part, text(wanted));
        } else if let Some(kept) = now.map(text) {
            self.refused(layer.by, single.part, text(wanted), kept);
        }
    }

    fn added(&mut self, by: Authority, part: CheckPart, value: String) {
        self.resolved.additions.push(Addition { by, part, value });
    }

    fn refused(&mut self, by: Authority, part: CheckPart, value: String, kept: String) {
        let refused = RefusedSetting {
            by,
            part,
            value,
            kept,
        };
        self.resolved.refusals.push(refused);
    }
}

/// Appends what is not there yet; tells whether it did.
fn push_new(list: &mut Vec<String>, item: &String) -> bool {
    let is_new = !list.contains(item);
    if is_new {
        list.push(item.clone());
    }
    is_new
}

fn is_program(judge: &Judge) -> bool {
    match judge {
        Judge::Agent(name) => holds_command(name),
        Judge::None | Judge::Same => false,
    }
}

#[cfg(test)]
mod tests;
