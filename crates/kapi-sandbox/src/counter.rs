//! What the kernel counts of a program that is measured.
//!
//! A name and nothing else: how it is counted is not known here.

use serde::{Deserialize, Serialize};

/// Something that the kernel counts, of programs and never of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum KernelCounter {
    /// Instructions that the processor has retired.
    Instructions,
    /// Nanoseconds on a processor.
    CpuTime,
    /// Pages of memory that were touched first.
    PageFaults,
}
