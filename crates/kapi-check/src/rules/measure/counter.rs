//! Metrics that Kapi takes itself, of everything that the benchmark starts: no line that it prints is one
//! of them.
//!
//! Their names are not to be had for anything else.

/// What begins the name of each.
const PREFIX: &str = "kapi.";

/// A metric that Kapi takes itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counter {
    /// Instructions of programs that the processor has retired, where the machine counts them.
    Instructions,
    /// Nanoseconds on a processor.
    CpuTime,
    /// Pages of memory that were touched first: what is allocated and used.
    PageFaults,
    /// Milliseconds from beginning to end by Kapi's own clock.
    WallTime,
}

impl Counter {
    /// Every one there is.
    pub const ALL: [Self; 4] = [
        Self::Instructions,
        Self::CpuTime,
        Self::PageFaults,
        Self::WallTime,
    ];

    /// Returns its name as a metric.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Instructions => "kapi.instructions",
            Self::CpuTime => "kapi.cpu_ns",
            Self::PageFaults => "kapi.page_faults",
            Self::WallTime => "kapi.wall_ms",
        }
    }

    /// Returns the one of a metric's name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|counter| counter.name() == name)
    }

    /// Tells whether a name is Kapi's to give.
    #[must_use]
    pub fn is_reserved(name: &str) -> bool {
        name.starts_with(PREFIX)
    }
}
