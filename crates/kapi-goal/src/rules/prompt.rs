//! The texts an agent and a judge are given, built from the state alone.
//!
//! Output of commands stands in them as data between marks and is never an instruction of ours.

use kapi_check::rules::proof::assess::ProofObjection;
use kapi_check::rules::proof::verify_report::{VerifyReport, run_end};
use kapi_check::rules::proof::verify_run::{Checks, VerifyRun};
use kapi_core::isolation::SandboxLevel;
use kapi_core::quote::{fenced, tail};
use kapi_core::text::COMMIT_EACH_STEP;
use kapi_core::verdict::JudgeAnswer;

use crate::rules::contract::{AgentSurface, Contract, Working};
use crate::rules::event::TurnVerdict;
use crate::rules::state::Goal;

pub mod blocks;
mod journey;
pub mod judge;
pub mod session;

/// Bytes of one command's output that reach a prompt.
pub const OUTPUT_BYTES_MAX: usize = 4_000;

/// Returns the whole prompt of the turn under way.
#[must_use]
pub fn turn_prompt(goal: &Goal) -> String {
    let contract = &goal.contract;
    let mut parts = Vec::new();
    if let Some(said) = &goal.said {
        parts.push(format!("The person who started this goal says:\n\n{said}"));
    }
    if let Some(feedback) = feedback(goal) {
        parts.push(feedback);
    }
    parts.push(format!("# Goal\n\n{}", contract.intent.trim()));
    parts.extend(original(contract).map(|said| {
        format!(
            "# The goal in the person's own words\n\n{said}\n\nWhere it and the goal above differ, \
             the person's words hold."
        )
    }));
    parts.push(format!("# Done when\n\n{}", contract.done_criteria.trim()));
    parts.push(proof_section(contract));
    if !contract.protect.is_empty() {
        parts.push(format!(
            "# Protected files\n\nThese must stay exactly as they are; a change to one is refused:\n{}",
            bullets(&contract.protect)
        ));
    }
    parts.extend(working_part(&contract.working));
    parts.extend(journey::section(goal));
    parts.push(way_of_working(goal));
    parts.extend(blocks::reminder(goal));
    parts.join("\n\n")
}

/// Returns what the person said themselves, where an agent worded the goal.
fn original(contract: &Contract) -> Option<String> {
    let original = contract.attribution.original.as_ref();
    let original = original.filter(|_| contract.attribution.drafted)?;
    Some(match &original.done_criteria {
        Some(criteria) => format!("{}\n\nDone when: {criteria}", original.task),
        None => original.task.clone(),
    })
}

/// Returns what the contract says beside goal and proof.
fn working_part(working: &Working) -> Option<String> {
    let mut parts = Vec::new();
    if !working.ask_before.is_empty() {
        parts.push(format!(
            "A person is asked before any of these is run, and until then it is refused:\n{}",
            bullets(&working.ask_before)
        ));
    }
    if !working.surfaces.is_empty() {
        let lines: Vec<String> = working.surfaces.iter().map(surface_line).collect();
        parts.push(format!("You can look at:\n{}", bullets(&lines)));
    }
    if let Some(style) = &working.decision_style {
        parts.push(format!("Where nothing was said, decide like this: {style}"));
    }
    (!parts.is_empty()).then(|| format!("# Boundaries\n\n{}", parts.join("\n\n")))
}

fn surface_line(surface: &AgentSurface) -> String {
    let notes = surface
        .notes
        .as_ref()
        .map_or_else(String::new, |notes| format!(" ({notes})"));
    format!("{}: {}{notes}", surface.kind, surface.location)
}

/// What a contract is drafted from, once the repository may be read.
const WHAT_TO_FIND_OUT: &str = "\
     1. whether it is a `ticket` (something is shipped) or `exploratory` (something is found \
     out);\n\
     2. which surfaces can be looked at: logs, metrics, staging addresses, flame graphs, \
     sandboxes;\n\
     3. the one command that shows that it is done. Sharp goals end; vague goals burn turns.\
     \n\n\
     Then call the tool until_done_set once, with the goal, criteria that are literally \
     checkable, the verify command, what to ask about first, and how you decide where nothing \
     was said. It answers `not_confirmed`: the person is shown your draft. End your turn \
     then.";

/// Returns the prompt of the run that drafts the contract.
#[must_use]
pub fn setup_prompt(goal: &Goal) -> String {
    let contract = &goal.contract;
    let original = contract.attribution.original.as_ref();
    let criteria = original.and_then(|original| original.done_criteria.as_deref());
    let criteria = criteria.map_or_else(String::new, |criteria| {
        format!(
            "It is done when this holds, which your criteria must not loosen:\n\n{criteria}\n\n"
        )
    });
    format!(
        "# Draft a contract\n\nA person wants this:\n\n{}\n\n{criteria}Do not do it yet. Read the \
         repository in your working directory, which you cannot change, and find out:\n\n\
         {WHAT_TO_FIND_OUT}",
        contract.intent.trim()
    )
}

/// Returns the prompt of the run that says what was learnt.
#[must_use]
pub fn distill_prompt(goal: &Goal) -> String {
    format!(
        "The goal is done: {}\n\nCall the tool until_done_distill once, with a product requirements \
         document in Markdown that compiles the journey: the problem, the shape of the solution, \
         what was learnt, gotchas, useful surfaces, follow-ups. Change nothing. Then end your turn.",
        goal.contract.intent.trim()
    )
}

fn way_of_working(goal: &Goal) -> String {
    let location = match goal.contract.sandbox {
        SandboxLevel::Native | SandboxLevel::Podman => {
            "You work unattended in a sandbox, in a git worktree that is yours alone; only the \
             working directory is writable."
        }
        SandboxLevel::None => {
            "You work unattended in a git worktree that is yours alone; change nothing outside it."
        }
    };
    let earlier = if goal.attempt > 1 {
        " An earlier attempt at this turn did not finish; look at what is in the working directory."
    } else {
        ""
    };
    let recording = if goal.contract.working.keep_commits {
        format!("Change files there, and {COMMIT_EACH_STEP}")
    } else {
        "Change files there; do not commit or push, Kapi records your work.".to_owned()
    };
    format!(
        "# How this works\n\n{location} {recording} Tools named `until_done_…` speak of the goal: search for them if they are not listed, \
         or use `kapi agent <verb>` in a shell. Nobody answers questions: decide, do the work, check \
         it, and end your turn with a short summary. This is turn {} of at most {}, in phase {}.{earlier}",
        goal.turn,
        goal.budget.turns,
        goal.journey.phase.as_str()
    )
}

fn proof_section(contract: &Contract) -> String {
    if contract.verify.is_empty() {
        return "# Proof\n\nThere is no verify command; work carefully and check your own work."
            .to_owned();
    }
    let hidden = if contract.hidden.is_some() {
        "\nFurther checks that you cannot see run as well, so solve the task itself."
    } else {
        ""
    };
    let network = if contract.verify_network {
        ""
    } else {
        ", with no network"
    };
    format!(
        "# Proof\n\nAfter your turn Kapi itself runs these in a clean checkout of your \
         work{network}; all must exit 0:\n{}{hidden}",
        bullets(&contract.verify)
    )
}

fn feedback(goal: &Goal) -> Option<String> {
    let text = match goal.last_verdict? {
        TurnVerdict::Tampered => {
            let report = goal.verify.as_ref()?;
            // A session works in the person's own repository, whose index is theirs.
            let command = if goal.contract.is_session() {
                format!("git restore --source=refs/kapi/{}/base", goal.id)
            } else {
                "git checkout refs/kapi/base".to_owned()
            };
            format!(
                "Not done: your work changes protected files. Put them back exactly as they were at the \
                 start, with `{command} -- <file>` (remove those that were not there):\n{}",
                bullets(&report.tampered)
            )
        }
        TurnVerdict::VerifyFailed => {
            let report = goal.verify.as_ref()?;
            format!(
                "Not done: Kapi ran the checks and they failed.\n\n{}{}",
                failures(report),
                left_out(goal)
            )
        }
        TurnVerdict::HiddenFailed => {
            "Not done: the checks you can see pass, but hidden checks fail. Their output is \
             withheld. Solve the task as it is stated, not only the visible checks."
                .to_owned()
        }
        TurnVerdict::TestsVanished
        | TurnVerdict::TestsChanged
        | TurnVerdict::SteeringChanged
        | TurnVerdict::CodeFlagged => objected(goal)?,
        TurnVerdict::AgentFailed => {
            "Not done: the last turn ended abnormally, before it was finished. What it changed is \
             still in the working directory."
                .to_owned()
        }
        TurnVerdict::AgentBlocked => {
            "You said that you were blocked. A person has looked at it and lets you go on."
                .to_owned()
        }
        TurnVerdict::NothingDone => {
            "Not done: the last turn changed nothing. Do the work itself.".to_owned()
        }
        TurnVerdict::PlanOpen => "The checks pass, and your plan has tasks left. Go on with it: \
             update each task as it ends, replan where reality differs, and call \
             until_done_complete when the goal is reached."
            .to_owned(),
        TurnVerdict::Unclaimed => "All planned tasks are marked done. Two paths from here, pick \
             one:\n\n1. Run the verify command. If it passes, call until_done_complete.\n2. If \
             work is left, call until_done_replan with reason residual_work_discovered. Do not \
             invent new work outside the plan."
            .to_owned(),
        TurnVerdict::Waiting => {
            "You asked to wait, and the wait has ended. Go on from there.".to_owned()
        }
        TurnVerdict::PersonSpoke => return None,
        TurnVerdict::Unfinished => "Go on. When the goal is reached and you have seen the verify \
             command pass, call until_done_complete; if only the person can decide, call \
             until_done_block."
            .to_owned(),
        TurnVerdict::JudgeContinue => match &goal.judge.as_ref()?.answer {
            JudgeAnswer::Verdict { reason, .. } => {
                format!("Not done: the checks pass, but the judge says: {reason}")
            }
            JudgeAnswer::Malformed { .. } | JudgeAnswer::Unavailable(_) => return None,
        },
    };
    Some(text)
}

/// Says which of the files no check can have seen.
fn left_out(goal: &Goal) -> String {
    let left_out = goal.candidate.as_ref().map(|found| &found.left_out);
    match left_out.filter(|left_out| !left_out.is_empty()) {
        Some(left_out) => format!(
            "\n\nKapi cannot commit these, so the checks ran without them:\n{}",
            bullets(left_out)
        ),
        None => String::new(),
    }
}

/// Returns what stands against checks that pass.
fn objected(goal: &Goal) -> Option<String> {
    let objection = goal.objection_to(goal.verify.as_ref()?)?;
    let what_then = match &objection {
        ProofObjection::TestsVanished { .. } => {
            "Every test that ran on the base has to run, and to report its result."
        }
        ProofObjection::TestsChanged { .. } => {
            "Put them back as they were; new tests belong in new files, or beside the old ones. If \
             the task itself demands that they change, leave them changed and say why: a person is \
             asked then."
        }
        ProofObjection::RestsOnAddedTests { .. } => {
            "A test that is added changes nothing about the others: they have to pass without it."
        }
        ProofObjection::RestsOnSteering { .. } => {
            "Put them back, so that the checks pass as the project runs them. If the task itself \
             demands the change, leave it and say why: a person is asked then."
        }
        ProofObjection::CannotFail { .. } => {
            "These lines were made to expect another value, or to fail, and the checks still passed. \
             Solve the task so that the tests compare what the code really returns."
        }
        ProofObjection::RestsOnFlaggedCode { .. } => {
            "Solve the task without these lines. If the task itself demands them, leave them and say \
             why: a person is asked then."
        }
    };
    Some(format!(
        "Not done: the checks pass, but {}. {what_then}",
        objection.words()
    ))
}

fn failures(report: &VerifyReport) -> String {
    let visible = |run: &&VerifyRun| !run.passed() && run.checks == Checks::Visible;
    let parts: Vec<String> = report.runs.iter().filter(visible).map(failure).collect();
    parts.join("\n\n")
}

fn failure(run: &VerifyRun) -> String {
    let end = run_end(run);
    format!(
        "`{}` {end}. The end of its output:\n\n{}",
        run.command,
        fenced(tail(&run.output_tail, OUTPUT_BYTES_MAX), "")
    )
}

/// Returns the message of the candidate commit; the same state gives the same message.
#[must_use]
pub fn commit_message(goal: &Goal) -> String {
    let contract = &goal.contract;
    let kind = contract.branch.split('/').next().unwrap_or("feat");
    let intent = contract.intent.trim();
    let first_line = intent.lines().next().unwrap_or_default().trim();
    let subject: String = format!("{kind}: {first_line}").chars().take(72).collect();
    let body = if let Some(whole) = &contract.working.workflow {
        // The worker's guidance and the plan around its task are no part of the history.
        format!("Kapi-Workflow: {}\nKapi-Task: {}\n", whole.id, whole.task)
    } else if subject.ends_with(intent) {
        String::new()
    } else {
        format!("{intent}\n\n")
    };
    let (subject, id, turn) = (subject.trim_end(), &goal.id, goal.turn);
    format!("{subject}\n\n{body}Kapi-Goal: {id}\nKapi-Turn: {turn}\n")
}

fn bullets(lines: &[String]) -> String {
    let parts: Vec<String> = lines.iter().map(|line| format!("- {line}")).collect();
    parts.join("\n")
}
