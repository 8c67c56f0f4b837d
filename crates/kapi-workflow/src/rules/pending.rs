//! A decision that waits for a person, bound to what it is about.
//!
//! An approval names the hash of its subject, and dies when the subject changes.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::rules::decision_spec::DecisionSpec;
use crate::rules::mode_spec::ModeSpec;

/// Which decision; the same one wherever its table says so.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct WorkflowDecision(&'static DecisionSpec);

impl WorkflowDecision {
    /// Returns the decision of a table.
    #[must_use]
    pub const fn of(spec: &'static DecisionSpec) -> Self {
        Self(spec)
    }

    /// Returns its table.
    #[must_use]
    pub const fn spec(self) -> &'static DecisionSpec {
        self.0
    }

    /// Returns the name as it stands in `snapshot.json`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0.name
    }

    /// Returns the first artifact that the decision is about, which stands for all of them where
    /// there is room for one.
    #[must_use]
    pub fn artifact(self) -> &'static str {
        self.0.artifacts.first().copied().unwrap_or_default()
    }

    /// Returns every artifact that the decision is about.
    #[must_use]
    pub const fn artifacts(self) -> &'static [&'static str] {
        self.0.artifacts
    }

    /// Returns the artifacts in a sentence: `contract.md, benchmark.sh and checks.sh`.
    #[must_use]
    pub fn words(self) -> String {
        match self.0.artifacts.split_last() {
            None => String::new(),
            Some((last, [])) => (*last).to_owned(),
            Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        }
    }

    /// Returns the hash of what the decision is about: of one artifact its own, of several that of
    /// the list that `sha256sum` prints of them, with a dash for one that is not there.
    pub fn subject(
        self,
        file: &dyn Fn(&str) -> Option<Vec<u8>>,
        sha256: fn(&[u8]) -> String,
    ) -> String {
        if let [only] = self.0.artifacts {
            return sha256(&file(only).unwrap_or_default());
        }
        let line = |name: &&str| {
            let hash = file(name).map_or_else(|| "-".to_owned(), |bytes| sha256(&bytes));
            format!("{hash}  {name}\n")
        };
        let list: String = self.0.artifacts.iter().map(line).collect();
        sha256(list.as_bytes())
    }
}

impl fmt::Debug for WorkflowDecision {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl Serialize for WorkflowDecision {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for WorkflowDecision {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        let known = || {
            let modes = ModeSpec::all();
            modes.flat_map(|mode| mode.decisions)
        };
        if let Some(spec) = known().find(|spec| spec.name == name) {
            return Ok(Self(spec));
        }
        let known: Vec<String> = known().map(|spec| format!("`{}`", spec.name)).collect();
        let known = known.join(", ");
        let message = format!("unknown variant `{name}`, expected one of {known}");
        Err(D::Error::custom(message))
    }
}

/// A decision that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitingDecision {
    /// What is decided.
    pub decision: WorkflowDecision,
    /// SHA-256 of what it is about, in hexadecimal, see [`WorkflowDecision::subject`].
    pub sha256: String,
    /// What speaks against it and must be accepted with it: a score below the threshold, dissent.
    pub risks: Vec<String>,
    /// Since when it waits, in milliseconds since the epoch.
    pub since_ms: i64,
}

/// How a person gave an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Means {
    /// Typed at a terminal after the subject was shown.
    Terminal,
    /// Given with `--yes`.
    YesFlag,
    /// Given by naming the hash.
    NamedHash,
    /// Given in advance with `--approve-plan auto`.
    InAdvance,
}

/// A decision that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecisionApproval {
    /// What was decided.
    pub decision: WorkflowDecision,
    /// SHA-256 of what was approved.
    pub sha256: String,
    /// How.
    pub means: Means,
    /// By whom.
    pub by: String,
    /// The risks that were accepted with it.
    pub accepted: Vec<String>,
    /// When, in milliseconds since the epoch.
    pub at_ms: i64,
}

#[cfg(test)]
mod tests {
    use super::WorkflowDecision;
    use crate::rules::decision_spec::{DecisionSpec, GrantedBy};
    use crate::rules::mode_spec::ModeSpec;

    static SEVERAL: DecisionSpec = DecisionSpec {
        name: "approve_several",
        artifacts: &["a.md", "b.sh", "c.sh"],
        inbox: "several",
        gives: GrantedBy::Nothing,
        on_yes: "nothing",
    };

    fn hash(bytes: &[u8]) -> String {
        format!("<{}>", String::from_utf8_lossy(bytes))
    }

    #[test]
    fn one_artifact_is_its_own_subject_and_several_are_a_list() {
        let file = |name: &str| (name != "c.sh").then(|| name.as_bytes().to_vec());
        let several = WorkflowDecision::of(&SEVERAL);
        let list = "<<a.md>  a.md\n<b.sh>  b.sh\n-  c.sh\n>";
        assert_eq!(several.subject(&file, hash), list);
        assert_eq!(several.words(), "a.md, b.sh and c.sh");
        for decision in ModeSpec::all().flat_map(|spec| spec.decisions) {
            let [name] = *decision.artifacts else {
                continue;
            };
            let decision = WorkflowDecision::of(decision);
            assert_eq!(decision.artifact(), name);
            assert_eq!(decision.subject(&file, hash), format!("<{name}>"));
            assert_eq!(decision.words(), name);
        }
    }

    #[test]
    fn a_decision_is_read_by_its_name() {
        for spec in ModeSpec::all() {
            for decision in spec.decisions.iter().copied().map(WorkflowDecision::of) {
                let text = serde_json::to_string(&decision).unwrap();
                assert_eq!(text, format!("{:?}", decision.as_str()));
                assert_eq!(
                    serde_json::from_str::<WorkflowDecision>(&text).unwrap(),
                    decision
                );
            }
        }
        let unknown = serde_json::from_str::<WorkflowDecision>("\"approve_all\"").unwrap_err();
        assert!(unknown.to_string().starts_with(
            "unknown variant `approve_all`, expected one of `approve_interview_spec`, "
        ));
    }
}
