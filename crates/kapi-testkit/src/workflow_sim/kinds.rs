//! The kinds of facts that a workflow's log can hold, each by its name in the code.
//!
//! A new kind does not compile until it stands in a list here, and then is missing from the stories
//! until one of them leads to it.

use std::collections::BTreeSet;

use kapi_workflow::rules::event::Event;
use kapi_workflow::rules::modes::ModeEvent;
use kapi_workflow::rules::modes::interview::event::InterviewEvent;
use kapi_workflow::rules::modes::ralph::event::RalphEvent;

/// Makes the list of names and the match from the same words, so that neither can have more than
/// the other.
macro_rules! kinds {
    (
        $every:ident, $kind:ident: $enum:ident as $prefix:literal
        [$($variant:ident),* $(,)?]
        $($outer:ident => $inner:ident),*
    ) => {
        const $every: &[&str] = &[$(concat!($prefix, stringify!($variant))),*];

        pub(super) const fn $kind(event: &$enum) -> &'static str {
            match event {
                $($enum::$variant { .. } => concat!($prefix, stringify!($variant)),)*
                $($enum::$outer(event) => $inner(event),)*
            }
        }
    };
}

kinds! {
    EVERY_SHARED, kind: Event as ""
    [
        Started, DecisionAsked, Approved, Revised, Blocked, Unblocked, LimitsRaised, Abandoned, Failed, Completed,
        Integrated, EvidenceRecorded, ConflictFound, ConflictSettled, WorkerPrepared, WorkerDispatched, WorkerRefreshed,
        WorkerClosed, EffectIntended, EffectUsed, RunRecorded, GoalUsed, TimeUsed, EffectEnded,
    ]
    Mode => of_mode
}

const fn of_mode(event: &ModeEvent) -> &'static str {
    match event {
        ModeEvent::Interview(event) => of_interview(event),
        ModeEvent::Ralph(event) => of_ralph(event),
    }
}

kinds! {
    EVERY_INTERVIEW, of_interview: InterviewEvent as "Interview::"
    [
        QuestionAsked, GoalRestated, FactFound, AnswerRecorded, Remarked, GoalConfirmed,
        QuestionDeferred, QuestionWithdrawn, ScoreRecorded, ContradictionNamed, EnoughSaid,
        StepRefused, SpecDrafted, Branched, Reopened,
    ]
}

kinds! {
    EVERY_RALPH, of_ralph: RalphEvent as "Ralph::"
    [
        ThesisRecorded, AntithesisRecorded, SynthesisRecorded, ConsensusMissed, PlanProposed,
        PlanReopened, BranchPrepared, TaskBegun, TaskRested, TaskLanded, TaskConflicted,
        TaskSentBack, TaskGivenUp, HeadVerified, FixPlanned, TaskRetried, ReviewAsked, Reviewed,
        AnswerRefused, Accounted,
    ]
}

/// Returns every kind of fact there is.
#[must_use]
pub fn every_kind() -> BTreeSet<&'static str> {
    let lists = [EVERY_SHARED, EVERY_INTERVIEW, EVERY_RALPH];
    lists.concat().into_iter().collect()
}
