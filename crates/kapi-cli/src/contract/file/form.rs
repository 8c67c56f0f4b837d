//! A contract as it is written in a file: its keys and what each of them may be.

use kapi_settings::fault::short;
use kapi_settings::scalar::{NonBlankText, NumberText, Scalar, Whole, scalar};
use kapi_settings::setting::{OneOrMany, Setting};
use kapi_workflow::rules::branch::BranchType;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use crate::contract::flags::names::{GoalTypeName, PhaseName, RemindersName};
use crate::contract::flags::{Network, Openness, Sandbox, TestsName};

/// The most entries of one list.
const LIST_MAX: usize = 4_096;

pub(super) type Texts = OneOrMany<NonBlankText, 0, LIST_MAX>;
pub(super) type Number = Setting<NumberText>;

/// A contract as it is written, whole or short. The short form leaves `budget`, `working` and
/// `checks` out and names things as a person would.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ContractForm {
    #[serde(rename = "version")]
    pub(super) _version: Option<Whole<1, 1>>,
    #[serde(alias = "goal")]
    pub(super) intent: Option<NonBlankText>,
    #[serde(alias = "criteria")]
    pub(super) done_criteria: Option<NonBlankText>,
    pub(super) verify: Option<Texts>,
    pub(super) verify_network: bool,
    pub(super) protect: Texts,
    pub(super) hidden: Option<HiddenForm>,
    pub(super) checks: ChecksForm,
    pub(super) tests: Option<Setting<TestsName>>,
    pub(super) already_green: Option<Setting<bool>>,
    pub(super) allow_changed_setup: Option<Setting<bool>>,
    pub(super) allow_flagged_code: Option<Setting<bool>>,
    pub(super) prove_diff: Option<Setting<bool>>,
    // Whoever names a file makes all of it their own word.
    #[serde(rename = "attribution")]
    pub(super) _attribution: Option<IgnoredAny>,
    pub(super) agent: Option<NonBlankText>,
    pub(super) model: Option<NonBlankText>,
    pub(super) models: Vec<AgentModelsForm>,
    pub(super) judge: Option<ContractJudgeForm>,
    pub(super) judge_unavailable: Option<Openness>,
    pub(super) budget: ContractBudgetForm,
    pub(super) turns: Option<Number>,
    pub(super) tokens: Option<Number>,
    #[serde(alias = "usd_micros")]
    pub(super) usd: Option<Number>,
    #[serde(alias = "wall_ms")]
    pub(super) wall: Option<Number>,
    #[serde(alias = "turn_timeout_ms")]
    pub(super) turn_timeout: Option<Number>,
    #[serde(alias = "verify_timeout_ms")]
    pub(super) verify_timeout: Option<Number>,
    pub(super) stall_after: Option<Number>,
    pub(super) working: WorkingForm,
    pub(super) goal_type: Option<Setting<GoalTypeName>>,
    pub(super) surfaces: Option<Setting<Vec<Setting<SurfaceForm>>>>,
    pub(super) ask_before: Option<Setting<Texts>>,
    pub(super) decision_style: Option<Setting<NonBlankText>>,
    pub(super) start_phase: Option<Setting<PhaseName>>,
    pub(super) mise: Option<Setting<bool>>,
    pub(super) keep_commits: Option<Setting<bool>>,
    pub(super) reminders: Option<Setting<RemindersName>>,
    pub(super) distill: Option<Setting<DistillForm>>,
    pub(super) base: Option<Setting<BaseForm>>,
    pub(super) branch: Option<Setting<NonBlankText>>,
    #[serde(rename = "type")]
    pub(super) branch_type: Option<BranchType>,
    pub(super) sandbox: Option<Sandbox>,
    pub(super) network: Option<Network>,
    pub(super) race: Option<Setting<IgnoredAny>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ChecksForm {
    pub(super) tests: Option<Setting<TestsName>>,
    pub(super) already_green: Option<Setting<bool>>,
    pub(super) changed_steering: Option<Setting<bool>>,
    pub(super) flagged_code: Option<Setting<bool>>,
    pub(super) strength: Option<Setting<bool>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ContractBudgetForm {
    pub(super) turns: Option<Number>,
    pub(super) tokens: Option<Number>,
    #[serde(alias = "usd_micros")]
    pub(super) usd: Option<Number>,
    #[serde(alias = "wall_ms")]
    pub(super) wall: Option<Number>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct WorkingForm {
    pub(super) goal_type: Option<Setting<GoalTypeName>>,
    pub(super) surfaces: Option<Setting<Vec<Setting<SurfaceForm>>>>,
    pub(super) ask_before: Option<Setting<Texts>>,
    pub(super) decision_style: Option<Setting<NonBlankText>>,
    pub(super) start_phase: Option<Setting<PhaseName>>,
    pub(super) mise: Option<Setting<bool>>,
    pub(super) keep_commits: Option<Setting<bool>>,
    pub(super) reminders: Option<Setting<RemindersName>>,
    pub(super) distill: Option<Setting<DistillForm>>,
}

#[derive(Deserialize)]
#[serde(rename = "alone is source")]
pub(super) struct HiddenForm {
    pub(super) source: Option<NonBlankText>,
    pub(super) sha256: Option<Setting<NonBlankText>>,
    // Counted anew.
    #[serde(rename = "files")]
    pub(super) _files: Option<u32>,
}

/// The models of one agent, as a whole contract has them.
#[derive(Deserialize)]
pub(super) struct AgentModelsForm {
    pub(super) agent: NonBlankText,
    pub(super) model: Option<NonBlankText>,
    pub(super) may_ask: Texts,
}

#[derive(Deserialize)]
#[serde(rename = "alone is agent")]
pub(super) struct ContractJudgeForm {
    pub(super) by: Option<JudgeWord>,
    pub(super) agent: Option<NonBlankText>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum JudgeWord {
    None,
    Same,
    Agent,
}

#[derive(Deserialize)]
#[serde(rename = "alone is revision")]
pub(super) struct BaseForm {
    pub(super) revision: Option<NonBlankText>,
    pub(super) commit: Option<NonBlankText>,
    pub(super) tree: Option<NonBlankText>,
}

/// A table, or `kind=location;notes` in the place of the location.
#[derive(Deserialize)]
#[serde(rename = "alone is location")]
pub(super) struct SurfaceForm {
    pub(super) kind: Option<NonBlankText>,
    pub(super) location: NonBlankText,
    pub(super) notes: Option<NonBlankText>,
}

/// Whether lessons are written down.
#[derive(Clone, Copy)]
pub(super) struct DistillForm(pub(super) bool);

impl<'de> Deserialize<'de> for DistillForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wanted = "true, false, `when_planned` or `never`";
        scalar(deserializer, wanted, |value| match value {
            Scalar::Bool(is_on) => Some(Ok(Self(is_on))),
            Scalar::Text("when_planned") => Some(Ok(Self(true))),
            Scalar::Text("never") => Some(Ok(Self(false))),
            Scalar::Text(text) => Some(Err(format!(
                "unknown value {:?}\ngive {wanted}",
                short(text)
            ))),
            Scalar::Whole(_) | Scalar::Real(_) => None,
        })
    }
}
