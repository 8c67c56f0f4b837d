//! What becomes of scheduled times that nobody was there for, on a runner that keeps only a restored queue.
//!
//! Changes what definitions say in this process alone; what is due is decided in `kapi_task`.

use kapi_task::rules::definition::Definition;
use kapi_task::rules::definition::trigger::{LoopTrigger, Misfire};

/// What becomes of scheduled times that nobody was there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MissedTimes {
    /// What each loop says.
    AsDefined,
    /// A loop that would skip them runs once for all.
    MadeUp,
}

impl MissedTimes {
    /// Has definitions say so.
    pub(super) fn apply(self, definitions: &mut [Definition]) {
        if self == Self::AsDefined {
            return;
        }
        for definition in definitions {
            if let LoopTrigger::Cron { misfire, .. } = &mut definition.trigger
                && *misfire == Misfire::Skip
            {
                *misfire = Misfire::Once;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use kapi_task::record::definition_file;
    use kapi_task::record::schedule::{Schedule, due};
    use kapi_task::rules::definition::Definition;

    use super::MissedTimes;

    /// An hour, in milliseconds.
    const HOUR_MS: i64 = 3_600_000;

    fn nightly(misfire: &str) -> Definition {
        let text = format!(
            "---\nname: nightly\ntrigger: {{type: cron, schedule: \"0 3 * * *\"{misfire}}}\n---\nLook.\n"
        );
        definition_file::parse("nightly.md", &text, Path::new("/nonexistent")).unwrap()
    }

    /// Returns how many runs are made up for by a runner that comes three nights later.
    fn n_made_up(missed: MissedTimes, misfire: &str) -> usize {
        let mut definitions = [nightly(misfire)];
        missed.apply(&mut definitions);
        let [definition] = &definitions;
        let schedule = Schedule::of(&definition.name, &definition.trigger);
        due(&schedule.unwrap().unwrap(), Some(0), 0, 77 * HOUR_MS)
            .fire
            .len()
    }

    #[test]
    fn a_loop_that_would_skip_missed_times_runs_once_for_them() {
        assert_eq!(n_made_up(MissedTimes::AsDefined, ""), 0);
        assert_eq!(n_made_up(MissedTimes::MadeUp, ""), 1);
        let all = ", misfire: all, misfire_max: 5";
        let said = n_made_up(MissedTimes::AsDefined, all);
        assert!(said > 1, "{said}");
        assert_eq!(n_made_up(MissedTimes::MadeUp, all), said);
    }
}
