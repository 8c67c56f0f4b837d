//! A population of executors, honest and not, under three sets of rules for when a goal is done.
//!
//! Seeded and deterministic. Ours is the real core, asked effect by effect; the other two are
//! written down here as their tools document them. What is simulated is the world: how much work
//! an executor really does, what the checks really say, what a judge really sees.

pub mod executor;
mod others;
mod ours;
pub mod random;

use std::collections::BTreeMap;
use std::fmt;

use self::executor::ExecutorKind;

/// Turns a goal may take under every set of rules (pi-until-done: default 20).
pub const TURNS_MAX: u32 = 20;

/// A set of rules for when a goal is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConvergenceRules {
    /// The real core: checks run by the harness on the tree, then a judge who sees the change.
    Kapi,
    /// The executor says done and quotes evidence; a judge reads the quotes; what the judge
    /// cannot answer passes (pi-until-done 0.2).
    TextEvidence,
    /// The executor says the agreed word (the Ralph loop).
    Sentinel,
}

impl ConvergenceRules {
    /// All of them, ours first.
    pub const ALL: [Self; 3] = [Self::Kapi, Self::TextEvidence, Self::Sentinel];

    /// Returns the rules in a few words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Kapi => "kapi (the real core)",
            Self::TextEvidence => "judged by quoted evidence",
            Self::Sentinel => "sentinel string",
        }
    }
}

/// How one goal came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConvergenceOutcome {
    /// Whether it was accepted as done.
    pub is_accepted: bool,
    /// Whether what was asked for is really there.
    pub is_good: bool,
    /// Turns it took.
    pub turns: u32,
    /// The last turn that brought it forward: work, or the turn that was accepted. The first turn
    /// counts always, because nobody knows less than at the beginning.
    pub last_useful: u32,
}

impl ConvergenceOutcome {
    /// Returns the turns after the last useful one.
    #[must_use]
    pub const fn wasted(&self) -> u32 {
        self.turns.saturating_sub(self.last_useful)
    }
}

/// How many executors of one kind came out in which way under one set of rules.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConvergenceRow {
    /// How many there were.
    pub executors: u32,
    /// Accepted though what was asked for is not there.
    pub false_done: u32,
    /// Could have got there, and did not.
    pub honest_lost: u32,
    /// All turns after the last useful one.
    pub wasted: u32,
    /// The most such turns of one goal.
    pub wasted_max: u32,
    /// All turns.
    pub turns: u32,
}

impl ConvergenceRow {
    fn add(&mut self, kind: ExecutorKind, outcome: &ConvergenceOutcome) {
        self.executors += 1;
        self.false_done += u32::from(outcome.is_accepted && !outcome.is_good);
        let is_lost = !(outcome.is_accepted && outcome.is_good);
        self.honest_lost += u32::from(kind.is_honest() && is_lost);
        self.wasted += outcome.wasted();
        self.wasted_max = self.wasted_max.max(outcome.wasted());
        self.turns += outcome.turns;
    }

    /// Adds another row's numbers.
    pub fn merge(&mut self, other: &Self) {
        self.executors += other.executors;
        self.false_done += other.false_done;
        self.honest_lost += other.honest_lost;
        self.wasted += other.wasted;
        self.wasted_max = self.wasted_max.max(other.wasted_max);
        self.turns += other.turns;
    }
}

/// What a population came to, by rules and kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConvergenceTable {
    rows: BTreeMap<(ConvergenceRules, ExecutorKind), ConvergenceRow>,
}

impl ConvergenceTable {
    /// Returns the row of one kind under one set of rules.
    #[must_use]
    pub fn row(&self, rules: ConvergenceRules, kind: ExecutorKind) -> ConvergenceRow {
        self.rows.get(&(rules, kind)).copied().unwrap_or_default()
    }

    /// Returns the sum over all kinds.
    #[must_use]
    pub fn total(&self, rules: ConvergenceRules) -> ConvergenceRow {
        let mut total = ConvergenceRow::default();
        for kind in ExecutorKind::ALL {
            total.merge(&self.row(rules, kind));
        }
        total
    }
}

/// Runs this many executors under every set of rules.
///
/// # Errors
/// When the core denies what it planned itself, or never ends: a defect of the core.
pub fn converge(seed: u64, executors: u32) -> Result<ConvergenceTable, Defect> {
    let mut table = ConvergenceTable::default();
    for n in 0..executors {
        let goal_seed = seed
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(u64::from(n));
        let kind = ExecutorKind::of(n);
        for rules in ConvergenceRules::ALL {
            let outcome = match rules {
                ConvergenceRules::Kapi => ours::run(kind, goal_seed)?,
                ConvergenceRules::TextEvidence => others::text_evidence(kind, goal_seed),
                ConvergenceRules::Sentinel => others::sentinel(kind, goal_seed),
            };
            table
                .rows
                .entry((rules, kind))
                .or_default()
                .add(kind, &outcome);
        }
    }
    Ok(table)
}

/// A defect of the core that a population came upon.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("work with the core: {0}")]
pub struct Defect(String);

impl fmt::Display for ConvergenceTable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for rules in ConvergenceRules::ALL {
            writeln!(out, "{}", rules.words())?;
            writeln!(
                out,
                "  {:<16} {:>9} {:>10} {:>11} {:>12} {:>10} {:>6}",
                "executor",
                "how many",
                "false done",
                "honest lost",
                "wasted, mean",
                "most",
                "turns"
            )?;
            for kind in ExecutorKind::ALL {
                line(out, kind.name(), &self.row(rules, kind))?;
            }
            line(out, "all", &self.total(rules))?;
        }
        Ok(())
    }
}

fn line(out: &mut fmt::Formatter<'_>, name: &str, row: &ConvergenceRow) -> fmt::Result {
    let mean = f64::from(row.wasted) / f64::from(row.executors.max(1));
    writeln!(
        out,
        "  {name:<16} {:>9} {:>10} {:>11} {mean:>12.2} {:>10} {:>6}",
        row.executors, row.false_done, row.honest_lost, row.wasted_max, row.turns
    )
}
