//! What came of a run: how it ended, which isolation it had, which limits it met.
//!
//! Pure data, shown to people and recorded as evidence.

use std::fmt;

use kapi_sys::process::{EndingProcess, FinishedProcess, ProcessEnd};

use crate::counter::KernelCounter;

/// A finished run.
#[derive(Debug)]
pub struct SandboxRun {
    /// How the program ended, and its output.
    pub finished: FinishedProcess,
    /// The isolation it really had.
    pub grade: IsolationGrade,
    /// The limit that was met by a program that then failed or was killed.
    pub exceeded: Option<ExceededLimit>,
    /// Limits that were met on the way and do not explain the end: something inside was refused or
    /// killed, and the program went on.
    pub met: Vec<ExceededLimit>,
    /// What the kernel counted of everything inside, of what was asked for.
    pub counted: Vec<(KernelCounter, u64)>,
    /// What the system still takes away after it: mounts, memory. No process of the sandbox is alive, and
    /// everything it wrote is in its layers. Dropping this waits until the mounts are gone.
    pub remains: EndingProcess,
}

/// The isolation a run really had, layer by layer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IsolationGrade {
    /// The layers in force, in the order they are named to people: `namespaces`, `landlock 7`.
    pub layers: Vec<String>,
    /// Layers this host does not grant, each with the reason.
    pub missing: Vec<String>,
}

impl fmt::Display for IsolationGrade {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.layers.join(", "))?;
        if !self.missing.is_empty() {
            write!(out, "; without {}", self.missing.join(", "))?;
        }
        Ok(())
    }
}

/// A limit of [`crate::spec::Resources`] that was met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExceededLimit {
    /// Which: `memory`, `disk`, `processes`.
    pub resource: &'static str,
    /// The limit, for people: `2 GiB`.
    pub limit: String,
}

/// Divides limits that were met into the one that explains an end and those met on the way. A program
/// that ended well overcame what it met; one ended from outside was not ended by a limit.
pub(crate) fn explain(
    end: ProcessEnd,
    met: Vec<ExceededLimit>,
) -> (Option<ExceededLimit>, Vec<ExceededLimit>) {
    let mut met = met.into_iter();
    let exceeded = match end {
        ProcessEnd::Exited(0)
        | ProcessEnd::DeadlinePassed
        | ProcessEnd::IdlePassed
        | ProcessEnd::Cancelled => None,
        ProcessEnd::Exited(_) | ProcessEnd::Signaled(_) => met.next(),
    };
    (exceeded, met.collect())
}

#[cfg(test)]
mod tests {
    use kapi_sys::process::ProcessEnd;

    use super::{ExceededLimit, explain};

    fn check(end: ProcessEnd, expected: (Option<&str>, &[&str])) {
        let met = ["memory", "processes"].map(|resource| ExceededLimit {
            resource,
            limit: "1".to_owned(),
        });
        let (exceeded, met) = explain(end, met.to_vec());
        let met: Vec<&str> = met.iter().map(|one| one.resource).collect();
        let exceeded = exceeded.map(|one| one.resource);
        assert_eq!((exceeded, met.as_slice()), expected, "{end:?}");
    }

    #[test]
    fn a_limit_explains_a_failure_and_nothing_else() {
        let both = (None, ["memory", "processes"].as_slice());
        let first = (Some("memory"), ["processes"].as_slice());
        check(ProcessEnd::Exited(0), both);
        check(ProcessEnd::Exited(1), first);
        check(ProcessEnd::Signaled(9), first);
        check(ProcessEnd::DeadlinePassed, both);
        check(ProcessEnd::IdlePassed, both);
        check(ProcessEnd::Cancelled, both);
        assert_eq!(
            explain(ProcessEnd::Signaled(9), Vec::new()),
            (None, Vec::new())
        );
    }
}
