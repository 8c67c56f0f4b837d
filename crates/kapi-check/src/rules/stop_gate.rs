//! The gate at the end of a session's turn: it holds an agent that a person works with until the checks
//! of their contract pass, and lets go on a pause, at a limit, or on the person's word.
//!
//! Knows no agent, hook or file: what the checks showed arrives as a verdict.

use kapi_core::consent_rule::{ToolField, matches};
use serde::{Deserialize, Serialize};

/// How often an agent is held in a row when nothing else was said. Claude Code lets go by itself after
/// eight.
pub const HOLDS_DEFAULT: u32 = 7;
/// The most that can be said.
pub const HOLDS_MAX: u32 = 1_000;
/// The command of the gate itself, which only a person gives.
const OWN_COMMAND: &str = "kapi gate";

/// A contract that holds in a person's own session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopGate {
    /// What is to be done.
    pub task: String,
    /// The commands that must pass.
    pub verify: Vec<String>,
    /// Files that must stay as they were at the base.
    pub protect: Vec<String>,
    /// What the person is asked about first.
    pub ask_before: Vec<String>,
    /// The commit it began at.
    pub base: String,
    /// How often in a row it holds.
    pub holds_max: u32,
    /// How often it held since the person last spoke.
    pub n_held: u32,
    /// How often it held at all.
    pub n_held_ever: u32,
    /// Where it stands.
    pub status: GateStatus,
    /// What the checks showed last.
    pub last: Option<GateVerdict>,
}

/// Where a gate stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateStatus {
    /// It holds.
    Active,
    /// The person wants it not to hold for now.
    Paused,
    /// It let go at its limit.
    Released,
    /// The checks pass, as they did before.
    Passed,
    /// The checks pass, and did not before.
    Proved,
}

/// What the checks came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateFinding {
    /// They fail, or cannot be run.
    Failed,
    /// They pass, but nothing shows that they would not have passed before.
    Passed,
    /// They pass, and what they show was not so before.
    Proved,
}

/// What the checks showed on the work as it stood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateVerdict {
    /// The commit that was made of the work.
    pub commit: String,
    /// Its files.
    pub tree: String,
    /// What the checks came to.
    pub finding: GateFinding,
    /// What was shown, in words.
    pub text: String,
}

/// What a gate says at the end of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateAnswer {
    /// Nothing: it does not hold.
    Open,
    /// The checks have to be run first.
    Prove,
    /// The agent goes on, for this reason.
    Hold(String),
    /// The turn ends, and the person is told why.
    LetGo(String),
}

impl GateStatus {
    /// Returns its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Released => "released",
            Self::Passed => "passed",
            Self::Proved => "proved",
        }
    }
}

impl StopGate {
    /// Returns what a turn's end means before the checks are run.
    #[must_use]
    pub fn at_stop(&self) -> GateAnswer {
        match self.status {
            GateStatus::Active => GateAnswer::Prove,
            GateStatus::Paused | GateStatus::Released | GateStatus::Passed | GateStatus::Proved => {
                GateAnswer::Open
            }
        }
    }

    /// Takes what the checks showed, and returns what the turn's end means.
    pub fn judge(&mut self, verdict: GateVerdict) -> GateAnswer {
        let answer = self.answer_to(&verdict);
        self.last = Some(verdict);
        answer
    }

    fn answer_to(&mut self, verdict: &GateVerdict) -> GateAnswer {
        if self.status != GateStatus::Active {
            // A person spoke while the checks ran.
            return GateAnswer::Open;
        }
        match verdict.finding {
            GateFinding::Failed => {}
            GateFinding::Passed => {
                self.status = GateStatus::Passed;
                return GateAnswer::LetGo(format!(
                    "Kapi: the checks pass, which proves nothing. {}",
                    verdict.text
                ));
            }
            GateFinding::Proved => {
                self.status = GateStatus::Proved;
                return GateAnswer::LetGo(format!("Kapi: proved. {}", verdict.text));
            }
        }
        if self.n_held >= self.holds_max {
            self.status = GateStatus::Released;
            return GateAnswer::LetGo(format!(
                "Kapi: the stop gate lets go after holding {} times in a row. The work is NOT \
                 proved: {}",
                self.n_held, verdict.text
            ));
        }
        self.n_held = self.n_held.saturating_add(1);
        self.n_held_ever = self.n_held_ever.saturating_add(1);
        GateAnswer::Hold(format!(
            "Not done: Kapi ran the checks of the contract ({}) on your work as it stands. {}\n\
             Continue until they pass. The user pauses this with /kapi:pause.",
            self.task, verdict.text
        ))
    }

    /// Returns the gate after the person spoke: what was held so far is not counted against the limit.
    #[must_use]
    pub fn spoken_to(self) -> Self {
        Self { n_held: 0, ..self }
    }

    /// Lets go until the person wants it to hold again.
    pub fn pause(&mut self) {
        if self.status == GateStatus::Active {
            self.status = GateStatus::Paused;
        }
    }

    /// Holds again.
    pub fn resume(&mut self) {
        self.status = GateStatus::Active;
        self.n_held = 0;
    }

    /// Returns the entry of the list that a tool falls under, while the gate holds.
    #[must_use]
    pub fn asked_first(&self, tool: &str, fields: &[ToolField]) -> Option<&str> {
        let is_over = matches!(self.status, GateStatus::Passed | GateStatus::Proved);
        let entries: &[String] = if is_over { &[] } else { &self.ask_before };
        matches(entries, tool, fields)
    }

    /// Tells whether a tool gives one of the commands that only the person gives.
    #[must_use]
    pub fn is_own_command(tool: &str, fields: &[ToolField]) -> bool {
        matches(&[OWN_COMMAND.to_owned()], tool, fields).is_some()
    }

    /// Returns where it stands, in a line.
    #[must_use]
    pub fn line(&self) -> String {
        let checks = match &self.last {
            None => "not checked yet".to_owned(),
            Some(last) if last.finding != GateFinding::Failed => "checks pass".to_owned(),
            Some(_) => format!("checks fail, held {} of {}", self.n_held, self.holds_max),
        };
        format!("kapi {}: {} ({checks})", self.status.word(), self.task)
    }
}

#[cfg(test)]
mod tests {
    use kapi_core::consent_rule::ToolField;

    use super::{GateAnswer, GateFinding, GateStatus, GateVerdict, StopGate};

    fn gate() -> StopGate {
        StopGate {
            task: "fix it".to_owned(),
            verify: vec!["sh test.sh".to_owned()],
            protect: Vec::new(),
            ask_before: vec!["git push".to_owned()],
            base: "b".to_owned(),
            holds_max: 2,
            n_held: 0,
            n_held_ever: 0,
            status: GateStatus::Active,
            last: None,
        }
    }

    fn verdict(finding: GateFinding) -> GateVerdict {
        GateVerdict {
            commit: "c".to_owned(),
            tree: "t".to_owned(),
            finding,
            text: "`sh test.sh` exits 1".to_owned(),
        }
    }

    #[test]
    fn it_holds_until_the_checks_pass() {
        let mut gate = gate();
        assert_eq!(gate.at_stop(), GateAnswer::Prove);
        let GateAnswer::Hold(reason) = gate.judge(verdict(GateFinding::Failed)) else {
            panic!("it does not hold");
        };
        assert!(reason.contains("`sh test.sh` exits 1"), "{reason}");
        assert!(matches!(
            gate.judge(verdict(GateFinding::Proved)),
            GateAnswer::LetGo(_)
        ));
        assert_eq!(gate.status, GateStatus::Proved);
        assert_eq!(gate.at_stop(), GateAnswer::Open);
    }

    #[test]
    fn checks_that_passed_before_let_go_and_prove_nothing() {
        let mut gate = gate();
        let GateAnswer::LetGo(text) = gate.judge(verdict(GateFinding::Passed)) else {
            panic!("it holds although the checks pass");
        };
        assert!(text.contains("proves nothing"), "{text}");
        assert_eq!(gate.status.word(), "passed");
        assert_eq!(gate.at_stop(), GateAnswer::Open);
    }

    #[test]
    fn it_lets_go_at_its_limit_and_says_that_nothing_is_proved() {
        let mut gate = gate();
        for _ in 0..2 {
            assert!(matches!(
                gate.judge(verdict(GateFinding::Failed)),
                GateAnswer::Hold(_)
            ));
        }
        let GateAnswer::LetGo(text) = gate.judge(verdict(GateFinding::Failed)) else {
            panic!("it holds for ever");
        };
        assert!(text.contains("NOT proved"), "{text}");
        assert_eq!(gate.at_stop(), GateAnswer::Open);
        gate.resume();
        assert_eq!(gate.at_stop(), GateAnswer::Prove);
    }

    #[test]
    fn a_person_who_speaks_starts_the_count_anew() {
        let mut gate = gate();
        for _ in 0..9 {
            assert!(matches!(
                gate.judge(verdict(GateFinding::Failed)),
                GateAnswer::Hold(_)
            ));
            gate = gate.spoken_to();
        }
        assert_eq!((gate.n_held, gate.n_held_ever), (0, 9));
    }

    #[test]
    fn it_lets_go_on_a_pause_even_while_the_checks_run() {
        let mut gate = gate();
        gate.pause();
        assert_eq!(gate.at_stop(), GateAnswer::Open);
        assert_eq!(gate.judge(verdict(GateFinding::Failed)), GateAnswer::Open);
        gate.resume();
        assert_eq!(gate.at_stop(), GateAnswer::Prove);
    }

    #[test]
    fn a_tool_is_asked_about_by_its_command() {
        let fields = |text: &str| {
            vec![ToolField {
                key: "command".to_owned(),
                text: text.to_owned(),
            }]
        };
        let gate = gate();
        let asked = gate.asked_first("Bash", &fields("cd x && git push origin"));
        assert_eq!(asked, Some("git push"));
        assert_eq!(gate.asked_first("Bash", &fields("git status")), None);
        assert!(StopGate::is_own_command(
            "Bash",
            &fields("/bin/kapi gate off")
        ));
        assert!(!StopGate::is_own_command("Bash", &fields("kapi status")));
    }
}
