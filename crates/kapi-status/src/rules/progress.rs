//! How far along a run is: one number that never goes back, and one phase.
//!
//! The host says where the run stands; tool calls move it inside the range of their category
//! while the agent runs, and not a step after it. Knows nothing of time, files or agents.

use crate::rules::phase::{PercentRange, StatusPhase, ToolCategory};

/// Progress is counted in tenths of a per cent, so that long sessions still move.
const PERMILLE: u16 = 10;
/// The share of the way to a range's end that one call goes.
const STEP_SHARE: u16 = 10;
/// Where tests begin, in thousandths.
const TESTED: u16 = 600;
/// The most that anything but the end of a run reaches.
const PERCENT_MAX: u8 = 99;

/// Whose word moves the progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProgressStage {
    /// The agent may still work.
    Agent,
    /// The agent has ended; only the host is believed.
    Host,
    /// Everything has ended.
    Over,
}

/// The progress of one run. Invariants: the per cent never falls, and 100 is reached only by
/// [`RunProgress::complete`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunProgress {
    phase: StatusPhase,
    permille: u16,
    stage: ProgressStage,
}

impl Default for RunProgress {
    fn default() -> Self {
        Self::new()
    }
}

impl RunProgress {
    /// Returns the progress of a run that has just begun.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            phase: StatusPhase::Initializing,
            permille: 0,
            stage: ProgressStage::Agent,
        }
    }

    /// Returns the phase.
    #[must_use]
    pub const fn phase(&self) -> StatusPhase {
        self.phase
    }

    /// Returns the per cent.
    #[must_use]
    pub fn percent(&self) -> u8 {
        u8::try_from(self.permille / PERMILLE).unwrap_or(100)
    }

    /// Tells whether the run has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.stage == ProgressStage::Over
    }

    /// Tells whether the agent may still work, so that its word moves anything.
    #[must_use]
    pub fn is_with_agent(&self) -> bool {
        self.stage == ProgressStage::Agent
    }

    /// Notes where the host says the run stands. `percent` is taken into the phase's range.
    ///
    /// From the agent's end on (`Running`, `Committing`, `Pushing`) tool calls change nothing.
    pub fn enter(&mut self, phase: StatusPhase, percent: u8) {
        if self.is_over() {
            return;
        }
        match phase {
            StatusPhase::Complete => return self.complete(),
            StatusPhase::Running | StatusPhase::Committing | StatusPhase::Pushing => {
                self.stage = ProgressStage::Host;
            }
            StatusPhase::Initializing
            | StatusPhase::Preparing
            | StatusPhase::Starting
            | StatusPhase::Exploring
            | StatusPhase::Implementing
            | StatusPhase::Building
            | StatusPhase::Testing => {}
        }
        self.phase = phase;
        self.raise_to(phase.range().clamp(percent));
    }

    /// Notes a tool call, moving inside `range`. Returns whether it counted.
    pub fn tool(&mut self, category: ToolCategory, range: PercentRange) -> bool {
        if self.stage != ProgressStage::Agent {
            return false;
        }
        let phase = category.phase().unwrap_or(self.phase);
        self.phase = phase.max(StatusPhase::Exploring);
        let end = range.max().min(self.phase.range().max()).min(PERCENT_MAX);
        let begin = range.min().min(end);
        let (begin, end) = (u16::from(begin) * PERMILLE, u16::from(end) * PERMILLE);
        // Who commits before anything was tested goes on working: that is not near the end.
        let is_early = category == ToolCategory::Committing && self.permille < TESTED;
        let begin = if is_early {
            begin.min(self.permille.midpoint(TESTED))
        } else {
            begin
        };
        if self.permille < begin {
            self.permille = begin;
        } else if self.permille < end {
            let step = ((end - self.permille) / STEP_SHARE).max(1);
            self.permille += step;
        }
        true
    }

    /// Notes that an agent calls itself at step `done` of `total`. Returns whether it counted.
    ///
    /// The four phases are those of equal words in the file such agents write; no claim of theirs
    /// gets past 90.
    pub fn steps(&mut self, done: u64, total: u64) -> bool {
        if self.stage != ProgressStage::Agent || total == 0 {
            return false;
        }
        let percent = u128::from(done.min(total)) * 100 / u128::from(total);
        self.phase = match percent {
            0..20 => StatusPhase::Exploring,
            20..60 => StatusPhase::Implementing,
            60..80 => StatusPhase::Testing,
            _ => StatusPhase::Committing,
        };
        let permille = 250 + percent * 65 / 10;
        self.permille = self.permille.max(u16::try_from(permille).unwrap_or(0));
        true
    }

    /// Notes the end of the run; nothing moves after it.
    pub fn complete(&mut self) {
        self.stage = ProgressStage::Over;
        self.phase = StatusPhase::Complete;
        self.permille = 100 * PERMILLE;
    }

    fn raise_to(&mut self, percent: u8) {
        let permille = u16::from(percent.min(PERCENT_MAX)) * PERMILLE;
        self.permille = self.permille.max(permille);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, prop, prop_oneof};
    use proptest::{prop_assert, prop_assert_eq, proptest};

    use super::RunProgress;
    use crate::rules::phase::{PercentRange, StatusPhase, ToolCategory};

    /// Anything that may be told to a run before its end.
    #[derive(Debug, Clone)]
    enum Told {
        Enter(StatusPhase, u8),
        Tool(ToolCategory, (u8, u8)),
        Steps(u64, u64),
    }

    fn reported() -> impl Strategy<Value = Told> {
        let phases = prop::sample::select(StatusPhase::ALL.to_vec());
        let hosts = phases.prop_filter("not the end", |phase| *phase != StatusPhase::Complete);
        let categories = prop::sample::select(ToolCategory::ALL.to_vec());
        prop_oneof![
            1 => (hosts, 0_u8..=255).prop_map(|(phase, percent)| Told::Enter(phase, percent)),
            6 => (categories, 0_u8..=100, 0_u8..=100)
                .prop_map(|(category, a, b)| Told::Tool(category, (a.min(b), a.max(b)))),
            1 => (0_u64..=u64::MAX, 0_u64..=u64::MAX).prop_map(|(a, b)| Told::Steps(a, b)),
        ]
    }

    fn send(progress: &mut RunProgress, reported: &Told) {
        match reported {
            Told::Enter(phase, percent) => progress.enter(*phase, *percent),
            Told::Tool(category, range) => {
                progress.tool(*category, PercentRange::try_from(*range).unwrap());
            }
            Told::Steps(done, total) => {
                progress.steps(*done, *total);
            }
        }
    }

    proptest! {
        #[test]
        fn progress_never_goes_back_and_never_claims_the_end(
            scenario in prop::collection::vec(reported(), 0..200),
        ) {
            let mut progress = RunProgress::new();
            let mut percent = 0;
            for reported in &scenario {
                send(&mut progress, reported);
                prop_assert!(progress.percent() >= percent, "{reported:?}");
                prop_assert!(progress.percent() < 100, "{reported:?}");
                prop_assert!(progress.phase() != StatusPhase::Complete);
                percent = progress.percent();
            }
            progress.complete();
            let ended = progress.clone();
            for reported in &scenario {
                send(&mut progress, reported);
                prop_assert_eq!(&progress, &ended, "{:?}", reported);
            }
            prop_assert_eq!(progress.percent(), 100);
        }

        #[test]
        fn calls_never_leave_the_range_they_move_in(
            calls in prop::collection::vec(prop::sample::select(ToolCategory::ALL.to_vec()), 1..500),
        ) {
            let mut progress = RunProgress::new();
            let mut highest = 0;
            for category in calls {
                progress.tool(category, category.range());
                highest = highest.max(category.range().max());
                prop_assert!(progress.percent() <= highest);
                prop_assert!(progress.percent() >= 25);
            }
        }
    }

    #[test]
    fn the_flow_of_a_launch_shows_the_promised_numbers() {
        let mut progress = RunProgress::new();
        let mut seen = vec![(progress.phase().name(), progress.percent())];
        let reported = [
            Told::Enter(StatusPhase::Initializing, 5),
            Told::Enter(StatusPhase::Initializing, 10),
            Told::Enter(StatusPhase::Preparing, 18),
            Told::Enter(StatusPhase::Preparing, 20),
            Told::Enter(StatusPhase::Starting, 22),
            Told::Tool(ToolCategory::Exploring, (25, 35)),
            Told::Tool(ToolCategory::Implementing, (35, 60)),
            Told::Tool(ToolCategory::Building, (50, 70)),
            Told::Tool(ToolCategory::Testing, (60, 80)),
            Told::Tool(ToolCategory::Committing, (85, 90)),
            Told::Enter(StatusPhase::Running, 90),
            Told::Enter(StatusPhase::Committing, 92),
            Told::Enter(StatusPhase::Pushing, 97),
        ];
        for reported in &reported {
            send(&mut progress, reported);
            seen.push((progress.phase().name(), progress.percent()));
        }
        progress.complete();
        seen.push((progress.phase().name(), progress.percent()));
        let promised = [
            ("initializing", 0),
            ("initializing", 5),
            ("initializing", 10),
            ("preparing", 18),
            ("preparing", 20),
            ("starting", 22),
            ("exploring", 25),
            ("implementing", 35),
            ("building", 50),
            ("testing", 60),
            ("committing", 85),
            ("running", 90),
            ("committing", 92),
            ("pushing", 97),
            ("complete", 100),
        ];
        assert_eq!(seen, promised);
    }

    #[test]
    fn an_early_commit_is_not_near_the_end() {
        let mut progress = RunProgress::new();
        let mut call = |category: ToolCategory| {
            progress.tool(category, category.range());
            progress.percent()
        };
        assert_eq!(call(ToolCategory::Implementing), 35);
        assert_eq!(call(ToolCategory::Committing), 47);
        assert_eq!(call(ToolCategory::Implementing), 48);
        assert_eq!(call(ToolCategory::Testing), 60);
        assert_eq!(call(ToolCategory::Committing), 85);
    }

    #[test]
    fn many_calls_come_near_the_end_of_their_range_and_stop_there() {
        let mut progress = RunProgress::new();
        let mut steps = Vec::new();
        for _ in 0..1_000 {
            progress.tool(
                ToolCategory::Implementing,
                ToolCategory::Implementing.range(),
            );
            steps.push(progress.percent());
        }
        assert_eq!(steps.first(), Some(&35));
        assert_eq!(steps.get(1), Some(&37));
        assert_eq!(steps.last(), Some(&60));
    }

    #[test]
    fn a_phase_may_go_back_while_the_number_stays() {
        let mut progress = RunProgress::new();
        progress.tool(ToolCategory::Testing, ToolCategory::Testing.range());
        progress.tool(ToolCategory::Exploring, ToolCategory::Exploring.range());
        assert_eq!(
            (progress.phase(), progress.percent()),
            (StatusPhase::Exploring, 60)
        );
        progress.tool(ToolCategory::Other, ToolCategory::Other.range());
        assert_eq!(
            (progress.phase(), progress.percent()),
            (StatusPhase::Exploring, 60)
        );
    }

    #[test]
    fn calls_that_come_after_the_agent_change_nothing() {
        let mut progress = RunProgress::new();
        progress.enter(StatusPhase::Running, 90);
        let before = progress.clone();
        assert!(!progress.tool(ToolCategory::Committing, ToolCategory::Committing.range()));
        assert!(!progress.steps(1, 1));
        assert_eq!(progress, before);
    }

    #[test]
    fn steps_stand_between_the_start_and_ninety() {
        let cases = [
            ((0, 10), StatusPhase::Exploring, 25),
            ((1, 5), StatusPhase::Implementing, 38),
            ((3, 5), StatusPhase::Testing, 64),
            ((4, 5), StatusPhase::Committing, 77),
            ((5, 5), StatusPhase::Committing, 90),
            ((u64::MAX, 2), StatusPhase::Committing, 90),
        ];
        for ((done, total), phase, percent) in cases {
            let mut progress = RunProgress::new();
            assert!(progress.steps(done, total));
            assert_eq!((progress.phase(), progress.percent()), (phase, percent));
        }
        let mut progress = RunProgress::new();
        assert!(!progress.steps(3, 0), "there is no step of none");
        assert_eq!(progress, RunProgress::new());
    }
}
