//! The artifacts as a person reads them: whole, in order, nothing foreign out of its place.

use kapi_core::actor::Actor;
use kapi_core::id::GoalId;
use kapi_core::mode::Mode;

use crate::rules::documents::documents;
use crate::rules::modes::interview::command::InterviewCommand;
use crate::rules::modes::interview::scenario::{
    GOAL, agree, ask, draft, drafted, fact, interview, item, of, propose, says, spec, talk,
    to_interview,
};
use crate::rules::scenario::{WorkflowTestScenario, agent, hash, human};

fn document(scenario: &WorkflowTestScenario, name: &str) -> String {
    let all = documents(scenario.workflow());
    let found = all.into_iter().find(|document| document.name == name);
    found.unwrap_or_else(|| panic!("there is no {name}")).text
}

/// An interview with a fact, a question that waits, a revision and a draft.
fn reported() -> WorkflowTestScenario {
    let mut scenario = interview();
    let mut step = ask("What hurts?\n# Not a title");
    step.facts = vec![fact("Which runner?")];
    scenario.send(&agent(), &propose(step));
    scenario.send(&human(), &says(2, "Lost sign-ins."));
    scenario.send(&agent(), &propose(ask("How long are sessions kept?")));
    let defer = InterviewCommand::Defer {
        round: 3,
        reason: Some("ask the owner".to_owned()),
    };
    scenario.send(&human(), &to_interview(defer));
    agree(&mut scenario, GOAL);
    let mut spec = spec(GOAL, &[0, 2]);
    spec.context.push(item("Tests run with nextest.", &[1]));
    scenario.send(&agent(), &propose(draft(spec)));
    scenario
}

#[test]
fn a_spec_says_on_what_everything_rests() {
    assert_eq!(
        document(&reported(), "spec.md"),
        "# Spec 001-recover-session\n\n\
         ## Purpose\n\n> Recover the session after a crash\n\n\
         ## Goal\n\n> Sign-in survives a crash.\n\n\
         ## Intent\n\n- Fewer support calls. (the purpose, round 2)\n\n\
         ## Constraints\n\n- No new dependency. (the purpose, round 2)\n\n\
         ## Preferences\n\n- Small commits. (the purpose, round 2)\n\n\
         ## Success criteria\n\n- A test restarts the store and signs in. (the purpose, round 2)\n  \
         verify: `cargo test recovery`\n\n\
         ## Methods\n\n- None stated; left to planning. (the purpose, round 2)\n\n\
         ## Decision boundaries\n\n\
         ### May be decided alone\n\n- Rename private functions. (the purpose, round 2)\n\n\
         ### Must be asked first\n\n- None recorded.\n\n\
         ### Must never be done\n\n- Change the public API. (the purpose, round 2)\n\n\
         ## Open questions\n\n- How long sessions are kept.\n\
         - How long are sessions kept? (round 3, left for later)\n\n\
         ## Non-goals\n\n- Single sign-on. (the purpose, round 2)\n\n\
         ## Context\n\n- One server at a time. (assumption)\n\
         - Tests run with nextest. (round 1: Makefile)\n"
    );
}

#[test]
fn a_spec_keeps_its_bytes_from_being_shown_to_being_carried_out() {
    let mut scenario = reported();
    let shown = document(&scenario, "spec.md");
    let pending = scenario.workflow().pending.as_ref().unwrap();
    assert_eq!(pending.sha256, hash(shown.as_bytes()));
    scenario.approve();
    assert_eq!(document(&scenario, "spec.md"), shown);
    let branch = InterviewCommand::Branch {
        mode: Mode::Ralph,
        workflow: GoalId::parse("002-build").unwrap(),
    };
    scenario.send(&Actor::Engine, &to_interview(branch));
    assert_eq!(document(&scenario, "spec.md"), shown);
}

#[test]
fn the_rounds_say_who_answered() {
    let text = document(&reported(), "interview.md");
    for line in [
        "# Interview 001-recover-session\n",
        "Started by somebody on 2026-11-18; active, phase spec.\n",
        "## Round 1 (goal, breadth)\n",
        "Found in the repository (Makefile) on 2026-11-18:\n\n> cargo nextest\n",
        "> What hurts?\n> # Not a title\n",
        "Answered by the user on 2026-11-18:\n\n> Lost sign-ins.\n",
        "Left for later:\n\n> ask the owner\n",
        "Accepted by the user as proposed on 2026-11-18:\n",
    ] {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }
}

#[test]
fn a_decision_report_has_every_section() {
    let mut scenario = reported();
    scenario.approve();
    let text = document(&scenario, "decision-report.md");
    let titles: Vec<&str> = text.lines().filter(|line| line.starts_with('#')).collect();
    assert_eq!(
        titles,
        [
            "# Decision report 001-recover-session",
            "## Scope",
            "## Inputs inspected",
            "## Conditions checked",
            "## Options considered",
            "## Chosen decision",
            "## Rationale",
            "## Verification references",
            "## Risks",
            "## Follow-up"
        ]
    );
    for line in [
        "- The repository at commit c0ffee\n",
        "- Files that answered a question: Makefile\n",
        "- met: the user confirmed the restated goal\n",
        "- met: every requirement comes from the user",
        "- spec.md was approved by somebody on 2026-11-18 at a terminal after it was shown; sha256 ",
        "- the user's intent: Fewer support calls.\n",
        "- will be verified by `cargo test recovery`\n",
        "- accepted by the user: clarity was not scored since the last answer\n",
        "- assumed: One server at a time.\n",
        "- left for later: How long are sessions kept?\n",
        "- next: `kapi ralph --from 001`\n",
    ] {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }
    assert!(!text.contains("None recorded"), "{text}");
}

#[test]
fn before_a_draft_there_is_no_spec() {
    let mut scenario = interview();
    talk(&mut scenario, "Fast?", "Yes.");
    assert_eq!(of(&scenario).rounds.len(), 1);
    let names: Vec<String> = documents(scenario.workflow())
        .into_iter()
        .map(|document| document.name)
        .collect();
    assert_eq!(names, ["interview.md", "decision-report.md"]);
    assert_eq!(documents(drafted().workflow()).len(), 3);
}
