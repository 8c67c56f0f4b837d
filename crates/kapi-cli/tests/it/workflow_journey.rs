//! The whole way with scripted agents: interview, spec, plan with a revision, tasks in parallel, a
//! review that finds a planted bug, its fix, the closeout.
//!
//! Every document that the specification names is looked at.

use crate::browser::{Scheme, look};
use crate::workflow_support::{Machine, last};

const INTERVIEW: &str = "001-greet-people-name";

fn approve(machine: &Machine, mode: &str, reference: &str) {
    let env = &machine.env;
    let output = env.kapi(&[mode, "approve", reference, "--yes", "--accept-risks"]);
    assert_eq!(output.code, 0, "{output:?}");
}

fn assert_documents(machine: &Machine, id: &str) {
    for name in [
        "context.md",
        "plan.md",
        "consensus.md",
        "review.md",
        "verify.md",
        "acceptance.md",
        "decision-report.md",
    ] {
        assert!(
            !machine.document("ralph", id, name).trim().is_empty(),
            "{name}"
        );
    }
    for name in ["interview.md", "spec.md", "decision-report.md"] {
        assert!(
            !machine
                .document("deep-interview", INTERVIEW, name)
                .is_empty()
        );
    }
}

#[test]
fn from_an_interview_to_a_closeout() {
    let machine = Machine::new();
    let env = &machine.env;
    assert_eq!(machine.drafted().code, 5);
    approve(&machine, "deep-interview", "1");

    // One interview fits: without a terminal it has to be said that it is meant.
    let unsaid = machine.ralph(&["greet people by name"], &[]);
    assert_eq!(unsaid.code, 2, "{unsaid:?}");
    assert!(unsaid.stderr.contains("--from 001"), "{unsaid:?}");

    let planned = machine.ralph(&["greet people by name"], &["--from", "1", "--json"]);
    assert_eq!(planned.code, 5, "{planned:?}");
    let view = last(&planned);
    let id = view["id"].as_str().unwrap().to_owned();
    assert_eq!(
        view["pending"]["decision"], "approve_ralph_plan",
        "{view:#}"
    );
    let interview = env.json(&["status", "1"]);
    assert_eq!(interview["status"], "linked", "{interview:#}");
    let back = env.kapi(&["deep-interview", "resume", "1"]);
    back.assert_error(3, &["already_terminal", "kapi ralph resume 002"]);

    let revised = env.kapi(&["ralph", "resume", "1", "--revise", "name the manual MANUAL"]);
    assert_eq!(revised.code, 5, "{revised:?}");
    let view = env.json(&["status", "2"]);
    assert_eq!(view["ralph"]["cycle"], 2, "{view:#}");
    assert_eq!(view["revisions"][0]["text"], "name the manual MANUAL");
    approve(&machine, "ralph", "2");

    let done = env.kapi(&["ralph", "resume", "2", "--json"]);
    let view = last(&done);
    assert_eq!(done.code, 0, "{view:#}\n{}", done.stderr);
    assert_eq!(view["status"], "completed");
    let branch = view["ralph"]["branch"]["name"].as_str().unwrap();
    assert!(branch.starts_with("feat/ralph-"), "{branch}");
    assert_eq!(env.show(branch, "word.txt"), "hello");
    assert_eq!(env.show(branch, "MANUAL"), "sh greet.sh NAME");
    let history = env.git(&["log", "--format=%B", &format!("main..{branch}")]);
    for subject in ["feat: the word", "feat: the manual", "feat: the script"] {
        let is_there = history.lines().any(|line| line == subject);
        assert!(is_there, "{subject}: {history}");
    }
    assert!(!history.contains("Guidance"), "{history}");
    let reviews = view["ralph"]["reviews"].as_array().unwrap();
    assert_eq!(reviews.len(), 2, "{view:#}");
    let landed = view["ralph"]["landed"].as_array().unwrap();
    assert_eq!(landed.len(), 4, "three tasks and one fix: {view:#}");
    let acceptance = view["ralph"]["account"]["acceptance"].as_array().unwrap();
    assert_eq!(acceptance.len(), 2, "{view:#}");
    for accepted in acceptance {
        assert!(
            !accepted["evidence"].as_array().unwrap().is_empty(),
            "{view:#}"
        );
    }
    assert_documents(&machine, &id);
    let verified = machine.document("ralph", &id, "verify.md");
    assert!(
        verified.contains("| base |"),
        "what the checks said before: {verified}"
    );
    let readable = env.kapi(&["status", "2"]);
    for words in ["holds    ", "branch   ", "completed"] {
        assert!(readable.stdout.contains(words), "{words}: {readable:?}");
    }
    let probed = env.json(&["doctor", "--modes"]);
    assert_eq!(probed["ok"], true, "{probed:#}");
    let listed = env.json(&["status"]);
    assert_eq!(listed["cleanup"][0]["workflow"], id.as_str(), "{listed:#}");
    assert!(!machine.events("ralph", &id).is_empty());
    assert_pages(&machine);
}

/// Every mode has a page, and only workflows have one.
fn assert_pages(machine: &Machine) {
    let env = &machine.env;
    let pages = env.root().join("pages");
    std::fs::create_dir(&pages).unwrap();
    for (reference, part) in [("1", "Documents"), ("2", "Evidence")] {
        let path = pages.join(format!("{reference}.html"));
        let path = path.display().to_string();
        let output = env.kapi(&["status", reference, "--html", &path]);
        assert_eq!(output.code, 0, "{output:?}");
        let page = std::fs::read_to_string(path).unwrap();
        let sight = look(env, &page, &[], &[1200, 360], Scheme::Dark);
        sight.assert_sound();
        for frame in &sight.frames {
            let headings = frame["headings"].as_array().unwrap();
            let headings: Vec<&str> = headings.iter().filter_map(|it| it.as_str()).collect();
            assert_eq!(headings[0], "greet people by name");
            for common in ["Phases", "Decisions", "Cost", part] {
                assert!(headings.contains(&common), "{common}: {frame:#}");
            }
        }
    }
    let page = std::fs::read_to_string(pages.join("2.html")).unwrap();
    for words in [
        "Changes of T-001 up to ",
        "+hello",
        "Holds by evidence ",
        ">4 of 4<",
    ] {
        assert!(page.contains(words), "{words}");
    }
    let chart = env.kapi(&["status", "2", "--svg", "chart.svg"]);
    chart.assert_error(6, &["has no chart"]);
    let goal = env.kapi(&["status", "2/T-001", "--html", "goal.html"]);
    goal.assert_error(2, &["2/T-001 is not a workflow", "`kapi status` lists"]);
}

#[test]
fn a_plan_is_approved_in_advance_where_the_person_said_so() {
    let machine = Machine::new();
    let words = ["greet", "people", "by", "name"];
    let output = machine.ralph(&words, &["--unlinked", "--approve-plan", "auto", "--json"]);
    let view = last(&output);
    assert_eq!(output.code, 0, "{view:#}\n{}", output.stderr);
    assert_eq!(view["approvals"][0]["means"], "in_advance", "{view:#}");
    assert_eq!(view["status"], "completed");
}

#[test]
fn a_criterion_that_cannot_be_checked_here_stops_before_the_first_task() {
    let machine = Machine::with_check("no-such-runner greet.sh");
    let words = ["greet", "people", "by", "name"];
    let output = machine.ralph(&words, &["--unlinked", "--approve-plan", "auto", "--json"]);
    assert_eq!(output.code, 5, "{output:?}");
    let view = last(&output);
    assert_eq!(view["status"], "blocked", "{view:#}");
    let reason = view["blocked"]["reason"].as_str().unwrap();
    assert!(
        reason.contains("`no-such-runner greet.sh` on the base"),
        "{reason}"
    );
    let goals = machine.env.repository().join(".ilchul/goals");
    let n_goals = std::fs::read_dir(goals).map_or(0, Iterator::count);
    assert_eq!(n_goals, 0, "{view:#}");
}
