//! Who works: what each kind of executor does in a turn, and what it says of it.
//!
//! Knows nothing of rules. An executor does not see under which it works.

use super::random::Random;

/// A kind of executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExecutorKind {
    /// Works every turn, and claims when it believes that it is there.
    Honest,
    /// The same, and reads for a turn or two between.
    Slow,
    /// The same, and its process dies now and then, in the middle of the work.
    Crasher,
    /// The same, and makes a plan and works it off by the tools.
    Planner,
    /// Claims without doing the work.
    Liar,
    /// Reads and talks, and changes nothing.
    Spinner,
    /// Ends its turns without a single tool.
    Talker,
    /// Changes something and takes it back, again and again.
    Oscillator,
    /// Makes the tests pass by changing the tests.
    TestEditor,
    /// Writes what should move a judge into its work and its evidence.
    Injector,
}

impl ExecutorKind {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 10] = [
        Self::Honest,
        Self::Slow,
        Self::Crasher,
        Self::Planner,
        Self::Liar,
        Self::Spinner,
        Self::Talker,
        Self::Oscillator,
        Self::TestEditor,
        Self::Injector,
    ];

    pub(super) const fn of(n: u32) -> Self {
        Self::ALL[n as usize % Self::ALL.len()]
    }

    /// Tells whether it can and will get there.
    #[must_use]
    pub const fn is_honest(self) -> bool {
        matches!(
            self,
            Self::Honest | Self::Slow | Self::Crasher | Self::Planner
        )
    }

    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Honest => "honest",
            Self::Slow => "slow",
            Self::Crasher => "crasher",
            Self::Planner => "planner",
            Self::Liar => "liar",
            Self::Spinner => "spinner",
            Self::Talker => "talker",
            Self::Oscillator => "oscillator",
            Self::TestEditor => "test-editor",
            Self::Injector => "prompt-injector",
        }
    }
}

/// What is really in the working directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct WorkingTree {
    /// Pieces of real work.
    pub(super) work: u32,
    /// What does not matter to the goal.
    pub(super) other: u32,
    /// Whether the tests were weakened.
    pub(super) has_weak_tests: bool,
    /// Whether it holds words for the judge.
    pub(super) has_injection: bool,
}

/// What happened in one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) is_crash: bool,
    pub(super) claims: bool,
    /// Whether any tool was used at all.
    pub(super) has_acted: bool,
}

/// One executor at one goal.
#[derive(Debug, Clone)]
pub(super) struct Executor {
    kind: ExecutorKind,
    random: Random,
    /// Pieces of real work that the goal needs.
    pub(super) needed: u32,
    /// Whether the checks miss the last piece, so that only a judge can see that it is missing.
    pub(super) has_gap: bool,
    pub(super) tree: WorkingTree,
    /// Turns without work since the last one with.
    idle: u32,
    crashes: u32,
    turns: u32,
}

impl Executor {
    pub(super) fn new(kind: ExecutorKind, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let needed = random.between(1, 6);
        let has_gap = random.chance(25);
        Self {
            kind,
            random,
            needed,
            has_gap,
            tree: WorkingTree::default(),
            idle: 0,
            crashes: 0,
            turns: 0,
        }
    }

    /// Tells whether what was asked for is there.
    pub(super) const fn is_good(&self) -> bool {
        self.tree.work >= self.needed
    }

    /// Tells what the checks say of the tree, run as they stood at the beginning.
    pub(super) const fn checks_pass(&self) -> bool {
        let checked = if self.has_gap {
            self.needed - 1
        } else {
            self.needed
        };
        self.tree.work >= checked
    }

    pub(super) const fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    /// Has one turn.
    pub(super) fn turn(&mut self) -> Turn {
        self.turns += 1;
        match self.kind {
            ExecutorKind::Honest | ExecutorKind::Planner => self.works(),
            ExecutorKind::Slow => {
                if self.idle < 1 && self.random.chance(50) {
                    self.idle += 1;
                    return reads();
                }
                self.works()
            }
            ExecutorKind::Crasher => {
                let turn = self.works();
                if self.crashes < 4 && self.random.chance(40) {
                    self.crashes += 1;
                    return Turn {
                        is_crash: true,
                        claims: false,
                        ..turn
                    };
                }
                turn
            }
            ExecutorKind::Liar => {
                // Some do a little first, so that there is something to show.
                if self.turns == 1 && self.needed > 2 && self.random.chance(50) {
                    self.tree.work = 1;
                }
                claims()
            }
            ExecutorKind::Spinner => reads(),
            ExecutorKind::Talker => Turn {
                is_crash: false,
                claims: false,
                has_acted: false,
            },
            ExecutorKind::Oscillator => {
                self.tree.other = self.turns % 2;
                reads()
            }
            ExecutorKind::TestEditor => {
                self.tree.has_weak_tests = true;
                claims()
            }
            ExecutorKind::Injector => {
                self.tree.has_injection = true;
                claims()
            }
        }
    }

    /// Does a piece or two, and claims when it believes that it is there; now and then a piece too
    /// early, which whoever judges has to tell it.
    fn works(&mut self) -> Turn {
        self.idle = 0;
        if self.is_good() {
            return claims();
        }
        let pieces = self.random.between(1, 2);
        self.tree.work = (self.tree.work + pieces).min(self.needed);
        let believes =
            self.is_good() || (self.tree.work + 1 == self.needed && self.random.chance(30));
        Turn {
            is_crash: false,
            claims: believes,
            has_acted: true,
        }
    }
}

const fn reads() -> Turn {
    Turn {
        is_crash: false,
        claims: false,
        has_acted: true,
    }
}

const fn claims() -> Turn {
    Turn {
        is_crash: false,
        claims: true,
        has_acted: true,
    }
}
