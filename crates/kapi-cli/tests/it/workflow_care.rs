//! Workflows looked after: their logs audited, foreign ones adopted, ended ones cleaned up, their
//! workers watched.
//!
//! The agents are scripts.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::dialogs::at_terminal;
use crate::environment::{Environment, write};
use crate::program::{finish, parse};
use crate::workflow_support::{Machine, last};

const INTERVIEW: &str = "001-greet-people-name";

#[test]
fn the_logs_of_workflows_are_audited() {
    let machine = Machine::new();
    let env = &machine.env;
    assert_eq!(machine.interview(&["--no-drive"]).code, 0);
    env.run("command:echo 42 > answer.txt", &[])
        .assert_status("done", 0);
    let audit = env.json(&["audit"]);
    let name = format!("deep-interview {INTERVIEW}");
    assert_eq!(audit["workflows"][0]["id"], name.as_str(), "{audit:#}");
    assert_eq!(audit["workflows"][0]["ok"], true, "{audit:#}");
    assert_eq!(audit["goals"].as_array().unwrap().len(), 1, "{audit:#}");
    let one = env.json(&["audit", INTERVIEW]);
    assert_eq!(one["goals"], Value::Array(Vec::new()), "{one:#}");
    assert_eq!(one["workflows"], audit["workflows"]);

    let log = machine
        .dir("deep-interview", INTERVIEW)
        .join("events.jsonl");
    let mut bytes = fs::read(&log).unwrap();
    bytes[60] ^= 1;
    write(&log, &bytes);
    for args in [&["audit", "--json"][..], &["audit", "1", "--json"]] {
        let output = env.kapi(args);
        assert_eq!(output.code, 4, "{output:?}");
        let audit = parse(output.stdout.trim_end());
        assert_eq!(audit["ok"], false, "{audit:#}");
        let fault = audit["workflows"][0]["faults"][0].as_str().unwrap();
        assert!(fault.contains("events.jsonl"), "{fault}");
    }
    let human = env.kapi(&["audit", "1"]);
    assert!(human.stdout.contains("DAMAGED"), "{human:?}");
    assert_eq!(fs::read(&log).unwrap(), bytes, "nothing changed");
}

#[test]
fn an_approved_spec_is_built_by_the_very_command_that_is_named() {
    let machine = Machine::new();
    let env = &machine.env;
    machine.drafted();
    let args = ["deep-interview", "approve", "1", "--yes", "--accept-risks"];
    let approved = env.kapi(&args);
    let line = "kapi ralph --from 001";
    assert!(approved.stdout.contains(line), "{approved:?}");
    let begun = machine.ralph(&[], &["--from", "001", "--no-drive", "--json"]);
    assert_eq!(begun.code, 0, "{begun:?}");
    let purpose = last(&begun)["purpose"].clone();
    assert_eq!(purpose, "greet.sh greets whoever is named.");
}

#[test]
fn a_build_has_the_name_of_its_interview_and_each_mode_finds_its_own_by_it() {
    let machine = Machine::new();
    let env = &machine.env;
    machine.drafted();
    env.kapi(&["deep-interview", "approve", "1", "--yes", "--accept-risks"]);
    let words = ["greet people by name"];
    let begun = machine.ralph(&words, &["--from", "001", "--no-drive", "--json"]);
    assert_eq!(begun.code, 0, "{begun:?}");
    let build = "002-greet-people-name";
    let workflows = env.repository().join(".ilchul/workflows");
    assert!(workflows.join("ralph").join(build).is_dir(), "{begun:?}");
    let resumed = env.kapi(&["ralph", "resume", "greet-people-name", "--no-drive"]);
    assert!(resumed.stdout.contains(build), "{resumed:?}");
    // Without a mode it may be either.
    let shown = env.kapi(&["status", "greet-people-name"]);
    for id in ["001-greet-people-name", build] {
        assert!(shown.stderr.contains(id), "{shown:?}");
    }
}

#[test]
fn resume_is_a_verb_of_goals_and_names_the_mode_that_resumes_a_workflow() {
    let machine = Machine::new();
    assert_eq!(machine.interview(&["--no-drive"]).code, 0);
    let resumed = machine.env.kapi(&["resume", "1"]);
    resumed.assert_error(
        3,
        &[
            "is resumed through its mode",
            "kapi deep-interview resume 001",
        ],
    );
}

#[test]
fn a_foreign_workflow_is_adopted_by_a_person_who_saw_what_they_trust() {
    let machine = Machine::new();
    machine.drafted();
    let leave = machine.env.home().join(".ilchul/approvals");
    fs::remove_dir_all(&leave).unwrap();
    let line = "kapi deep-interview resume 001 --adopt";
    let approve = ["deep-interview", "approve", "1", "--yes", "--accept-risks"];
    let refused = machine.env.kapi(&approve);
    assert_eq!(refused.code, 3, "{refused:?}");
    for reported in [
        line,
        "not_approved_here",
        "your home directory has no record",
    ] {
        assert!(refused.stderr.contains(reported), "{reported}: {refused:?}");
    }
    let resume = ["deep-interview", "resume", "001", "--adopt", "--no-drive"];
    let unasked = machine.env.kapi(&resume);
    assert_eq!(unasked.code, 2, "{unasked:?}");
    assert!(
        unasked.stderr.contains(&format!("{line} --yes")),
        "{unasked:?}"
    );
    for trusted in [
        "purpose   greet people by name",
        &machine.agent,
        "sandbox   native",
    ] {
        assert!(unasked.stdout.contains(trusted), "{trusted}: {unasked:?}");
    }
    assert!(!leave.exists(), "nothing is given by looking");

    let kapi = env!("CARGO_BIN_EXE_kapi");
    let mut command = machine.env.command(kapi, &machine.env.repository());
    command.args(resume).args(["--yes"]);
    command.env("KAPI_RUN_ID", "some-run");
    finish(command).assert_error(3, &["only the user may"]);
    assert!(!leave.exists(), "an agent gives nothing");

    let no = at_terminal(&machine.env, &resume, &[("Adopt it?", "n\n")]);
    assert_eq!(no.code, 3, "{no:?}");
    let yes = at_terminal(&machine.env, &resume, &[("Adopt it?", "y\n")]);
    assert_eq!(yes.code, 0, "{yes:?}");
    let again = machine.env.kapi(&[&resume[..], &["--yes"]].concat());
    assert_eq!(again.code, 0, "{again:?}");
    assert!(again.stderr.contains("already yours"), "{again:?}");
    let approved = machine.env.kapi(&approve);
    assert_eq!(approved.code, 0, "{approved:?}");
}

#[test]
fn an_adopted_build_goes_on_to_its_end() {
    let mut machine = Machine::new();
    let begun = machine.ralph(&["greet", "people"], &["--unlinked", "--json"]);
    assert_eq!(begun.code, 5, "{begun:?}");
    let approve = ["ralph", "approve", "1", "--yes", "--accept-risks"];
    assert_eq!(machine.env.kapi(&approve).code, 0);

    // The whole directory somewhere else, and another person.
    let (from, to) = (machine.env.repository(), machine.env.root().join("copied"));
    let mut copy = machine.env.command("cp", machine.env.root());
    copy.arg("-a").args([&from, &to]);
    assert_eq!(finish(copy).code, 0);
    let home = machine.env.root().join("other-home");
    fs::create_dir_all(&home).unwrap();
    machine.env.set("HOME", &home.display().to_string());
    let kapi = |args: &[&str]| machine.env.kapi_in(&to, args);

    let refused = kapi(&["ralph", "resume", "1"]);
    refused.assert_error(3, &["not_approved_here", "--adopt"]);
    let seen = kapi(&["ralph", "resume", "1", "--adopt", "--no-drive"]);
    for trusted in [
        "approved  plan.md",
        "task      T-001",
        "runs      test -s word.txt",
    ] {
        assert!(seen.stdout.contains(trusted), "{trusted}: {seen:?}");
    }
    let done = kapi(&["ralph", "resume", "1", "--adopt", "--yes", "--json"]);
    let view = last(&done);
    assert_eq!(done.code, 0, "{view:#}\n{}", done.stderr);
    assert_eq!(view["status"], "completed");
    let branch = view["ralph"]["branch"].clone();
    let worktree = branch["worktree"].as_str().unwrap();
    assert!(worktree.starts_with(home.to_str().unwrap()), "{worktree}");
    let mut show = machine.env.command("git", &to);
    let name = branch["name"].as_str().unwrap();
    show.args(["show", &format!("{name}:word.txt")]);
    assert_eq!(finish(show).stdout, "hello\n");
    // The one it was copied from knows nothing of it.
    let heads = machine.env.git(&["for-each-ref", "refs/heads"]);
    assert_eq!(heads.lines().count(), 1, "{heads}");
}

/// Returns why a workflow's files stay, or that they went or would go.
fn disposition(cleaned: &Value, id: &str) -> Option<String> {
    let of = |list: &str| {
        let things = cleaned[list].as_array().unwrap().iter();
        let mut things = things.filter(|thing| thing["what"] == "workflow" && thing["name"] == id);
        things
            .next()
            .map(|thing| thing["why"].as_str().unwrap().to_owned())
    };
    of("kept").or_else(|| of("removed").map(|why| format!("goes: {why}")))
}

#[test]
fn an_ended_workflow_is_cleaned_up_once_its_work_is_merged_and_its_worktree_clean() {
    let machine = Machine::new();
    let env = &machine.env;
    let begun = machine.ralph(&["greet", "people"], &["--unlinked", "--json"]);
    assert_eq!(begun.code, 5, "{begun:?}");
    let id = last(&begun)["id"].as_str().unwrap().to_owned();
    let looked = || disposition(&env.json(&["cleanup", "--dry-run"]), &id);
    assert_eq!(looked().as_deref(), Some("its workflow has not ended"));
    let args = ["ralph", "approve", "1", "--yes", "--accept-risks"];
    assert_eq!(env.kapi(&args).code, 0);
    let done = env.kapi(&["ralph", "resume", "1", "--json"]);
    let view = last(&done);
    assert_eq!(done.code, 0, "{view:#}\n{}", done.stderr);
    let branch = view["ralph"]["branch"]["name"].as_str().unwrap();
    let worktree = PathBuf::from(view["ralph"]["branch"]["worktree"].as_str().unwrap());

    let left = env.json(&["status"])["cleanup"][0].clone();
    assert_eq!(left["command"], "kapi cleanup", "{left:#}");
    assert!(left["bytes"].as_u64().unwrap() > 0, "{left:#}");
    assert!(
        looked().unwrap().contains("is not merged"),
        "{:?}",
        looked()
    );
    env.git(&["merge", "--quiet", "--squash", branch]);
    env.git(&["commit", "--quiet", "-m", "all of it in one"]);
    assert!(looked().unwrap().starts_with("goes: "), "{:?}", looked());
    write(&worktree.join("notes"), "mine\n");
    assert!(
        looked().unwrap().contains("uncommitted work"),
        "{:?}",
        looked()
    );
    assert!(worktree.join("notes").exists());
    fs::remove_file(worktree.join("notes")).unwrap();
    let commit = env.commit_of(branch);
    let cleaned = env.json(&["cleanup"]);
    assert!(
        disposition(&cleaned, &id).unwrap().starts_with("goes: "),
        "{cleaned:#}"
    );
    assert!(!worktree.exists());
    assert_eq!(env.commit_of(branch), commit, "what was committed stays");
    assert_eq!(env.json(&["status"])["cleanup"], Value::Array(Vec::new()));
}

#[test]
fn each_worker_is_shown_in_tmux_and_the_session_ends_with_the_workflow() {
    let mut machine = Machine::new();
    let sockets = tempfile::Builder::new().prefix("tmux-").tempdir().unwrap();
    machine
        .env
        .set("TMUX_TMPDIR", &sockets.path().display().to_string());
    let options = [
        "--unlinked",
        "--approve-plan",
        "auto",
        "--watch",
        "tmux",
        "--json",
    ];
    let done = machine.ralph(&["greet", "people"], &options);
    let view = last(&done);
    assert_eq!(done.code, 0, "{view:#}\n{}", done.stderr);
    let workers = view["workers"].as_array().unwrap();
    assert!(workers.len() > 1, "{view:#}");
    let id = view["id"].as_str().unwrap();
    for worker in workers {
        let name = worker["id"].as_str().unwrap();
        let terminal = format!("kapi-{id}:{name}");
        assert_eq!(worker["terminal"], terminal.as_str(), "{worker:#}");
    }
    let files = machine.env.home().join(".ilchul/sandboxes");
    let project = fs::read_dir(&files).unwrap().next().unwrap().unwrap();
    let shown = project.path().join(id).join("watch/w1.log");
    let shown = fs::read_to_string(&shown).unwrap();
    assert!(shown.starts_with("w1 is working on T-00"), "{shown}");
    let mut listing = machine.env.command("tmux", machine.env.root());
    listing.args(["list-sessions"]);
    let listed = finish(listing);
    assert_ne!(listed.code, 0, "no session is left: {listed:?}");
}

#[test]
fn without_tmux_nothing_is_started() {
    let mut env = Environment::new();
    let nowhere = env.root().join("nowhere").display().to_string();
    env.set("PATH", &nowhere);
    let args = ["ralph", "greet people", "--unlinked", "--watch", "tmux"];
    let output = env.kapi(&args);
    output.assert_error(4, &["failed to find tmux", "nothing was started"]);
    assert!(!env.repository().join(".ilchul").exists());
    let again = env.kapi(&["ralph", "resume", "1", "--watch", "tmux"]);
    again.assert_error(4, &["failed to find tmux"]);
}

#[test]
fn of_very_many_workflows_those_that_changed_last_are_listed() {
    const SHOWN: usize = 50;
    const STARTED: usize = SHOWN + 3;
    let machine = Machine::new();
    let env = &machine.env;
    for number in 0..STARTED {
        let purpose = format!("Improve parser part p{number}");
        let begun = env.kapi(&[
            "deep-interview",
            &purpose,
            "--agent",
            &machine.agent,
            "--no-drive",
        ]);
        assert_eq!(begun.code, 0, "{begun:?}");
    }
    let listed = |args: &[&str]| {
        let output = env.kapi(args);
        assert_eq!(output.code, 0, "{output:?}");
        let rows = output
            .stdout
            .lines()
            .filter(|line| line.starts_with('0') && line.contains("-improve-parser-part-p"));
        (rows.map(str::to_owned).collect::<Vec<_>>(), output.stderr)
    };
    let (rows, reported) = listed(&["status"]);
    assert_eq!(rows.len(), SHOWN);
    assert!(rows[0].starts_with("004-"), "{rows:?}");
    let counted = "Not shown: 3 older workflows; `kapi status --all` lists them.";
    assert!(reported.contains(counted), "{reported}");
    let (rows, reported) = listed(&["status", "--all"]);
    assert_eq!(rows.len(), STARTED);
    assert!(!reported.contains("Not shown"), "{reported}");
    let all = env.json(&["status"]);
    assert_eq!(all["workflows"].as_array().unwrap().len(), STARTED);

    let log = machine
        .dir("deep-interview", "001-improve-parser-part-p0")
        .join("events.jsonl");
    write(&log, b"not a log\n");
    let (rows, _) = listed(&["status"]);
    assert_eq!(
        rows.len(),
        SHOWN + 1,
        "what is damaged is shown however old it is"
    );
    assert!(rows[0].contains("damaged"), "{rows:?}");
}
