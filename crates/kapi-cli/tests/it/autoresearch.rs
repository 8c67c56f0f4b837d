//! Searches for a better number with scripted agents, in operations that are counted, so that chance
//! decides nothing: a mixed bag of ideas on a C program, everything else on a shell script.
//!
//! What is kept is looked at in git; what the engine says of itself is compared with that.

use std::fs;
use std::path::Path;

use kapi_testkit::mixed_bag::idea::{Idea, mixed_bag, researcher};
use kapi_testkit::mixed_bag::{CHECKED, COUNTED, write_held_back, write_program};
use serde_json::Value;

use crate::autoresearch_seen;
use crate::environment::{Environment, write};
use crate::program::{Output, parse};

mod at_once;
mod cheats;
mod measuring;
mod spike;

pub(crate) const RESEARCHER: &str = include_str!("../fixtures/workflows/researcher.yaml");
const ID: &str = "001-sum-fewer-operations";
const BRANCH: &str = "perf/autoresearch-sum-fewer-operations";
/// The search on the C program.
const WORDS: &str = "fewer comparisons";
const WORDS_BRANCH: &str = "perf/autoresearch-fewer-comparisons";

/// Counts every operation; off limits.
const MACHINE: &str = "ops=0\nadd() { ops=$((ops + 1)); r=$(($1 + $2)); }\n\
    mul() { ops=$((ops + 1)); r=$(($1 * $2)); }\nhalf() { ops=$((ops + 1)); r=$(($1 / 2)); }\n";
const SUM: &str = "sum() {\n  s=0; i=1\n  while [ \"$i\" -le \"$1\" ]; do\n    add \"$s\" \"$i\"; s=$r\n    \
    add \"$i\" 1; i=$r\n  done\n  r=$s\n}\n";
const TWICE: &str = "twice() { add \"$1\" 0; add \"$r\" \"$1\"; add \"$r\" 0; add \"$r\" 0; }\n";
const BENCH: &str = "set -eu\n. ./bench/machine.sh\n. ./src/sum.sh\n. ./src/twice.sh\n\
    n=$(cat bench/input)\nsum \"$n\"\ntwice \"$r\"\n[ \"$r\" = $((n * (n + 1))) ] || exit 1\n\
    echo \"METRIC ops=$ops\"\n";
const CHECK: &str = "set -eu\n. ./bench/machine.sh\n. ./src/sum.sh\n. ./src/twice.sh\n\
    for n in 0 1 7; do sum $n; twice \"$r\"; [ \"$r\" = $((n * (n + 1))) ] || exit 1; done\n";

/// A contract for making the program better.
pub(crate) const CONTRACT: &[&str] = &[
    "--metric",
    "ops",
    "--benchmark",
    "sh bench/run.sh",
    "--checks",
    "sh tests/check.sh",
    "--benchmark-timeout",
    "60s",
    "--scope",
    "src",
    "--off-limits",
    "bench",
    "--off-limits",
    "tests",
];

/// Writes a program to make better, with what measures and checks it, and commits it.
pub(crate) fn commit_program(env: &Environment) {
    for (name, content) in [
        ("src/sum.sh", SUM),
        ("src/twice.sh", TWICE),
        ("bench/machine.sh", MACHINE),
        ("bench/run.sh", BENCH),
        ("bench/input", "20\n"),
        ("tests/check.sh", CHECK),
        (".gitignore", "build/\n"),
    ] {
        env.write(name, content);
    }
    env.commit_all("base");
}

/// A machine with a program to make better.
pub(crate) struct Machine {
    pub(crate) env: Environment,
    agent: String,
    objective: &'static str,
}

impl Machine {
    pub(crate) fn new() -> Self {
        Self::with_agent(RESEARCHER)
    }

    fn with_agent(agent: &str) -> Self {
        let machine = Self::bare(agent, "sum with fewer operations");
        commit_program(&machine.env);
        machine
    }

    /// Makes a machine with the C program, and an agent that tries these ideas on it.
    fn with_ideas(bag: &[Idea]) -> Self {
        let machine = Self::bare(&researcher(bag), WORDS);
        write_program(&machine.env.repository()).unwrap();
        machine.env.commit_all("base");
        machine
    }

    fn bare(agent: &str, objective: &'static str) -> Self {
        let mut env = Environment::bare();
        env.set("KAPI_SESSION", "test");
        let agent = env.script("researcher.yaml", agent);
        Self {
            env,
            agent,
            objective,
        }
    }

    pub(crate) fn search(&self, options: &[&str]) -> Output {
        let words = ["autoresearch", self.objective, "--unlinked"];
        let agent = ["--agent", self.agent.as_str()];
        self.env.kapi(&[&words[..], &agent, options].concat())
    }

    /// Starts with a contract from flags.
    fn contracted(&self, options: &[&str]) -> Output {
        self.search(&[CONTRACT, options].concat())
    }

    fn approve(&self) {
        let output = self.env.kapi(&["autoresearch", "approve", "1", "--yes"]);
        assert_eq!(output.code, 0, "{output:?}");
    }

    fn resume(&self, options: &[&str]) -> Output {
        self.env
            .kapi(&[&["autoresearch", "resume", "1"], options].concat())
    }

    fn document(&self, name: &str) -> String {
        let dir = self.env.repository().join(".ilchul/workflows/autoresearch");
        let view = self.env.json(&["status", "1"]);
        let path = dir.join(view["id"].as_str().unwrap()).join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Returns status, metric and reason of each run.
    fn runs(&self) -> Vec<(String, Option<f64>, String)> {
        let view = self.env.json(&["status", "1"]);
        let runs = view["autoresearch"]["runs"].as_array().unwrap();
        let word = |run: &Value, name: &str| run[name].as_str().unwrap().to_owned();
        runs.iter()
            .map(|run| {
                (
                    word(run, "status"),
                    run["metric"].as_f64(),
                    word(run, "reason"),
                )
            })
            .collect()
    }

    fn worktree(&self) -> String {
        let view = self.env.json(&["status", "1"]);
        view["autoresearch"]["branch"]["worktree"]
            .as_str()
            .unwrap()
            .to_owned()
    }
}

fn entries(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Returns what became of each run, and its metric.
pub(crate) fn decided(runs: &[(String, Option<f64>, String)]) -> Vec<(&str, Option<f64>)> {
    let decided = runs.iter();
    decided
        .map(|(status, metric, _)| (status.as_str(), *metric))
        .collect()
}

/// Checks the branch, and what it was divided into.
fn assert_only_the_gains(machine: &Machine) {
    let env = &machine.env;
    // The branch holds the two gains and nothing else, whatever the agent committed by itself.
    let log = env.git(&["log", "--format=%s", &format!("main..{WORDS_BRANCH}")]);
    let subjects: Vec<&str> = log.lines().collect();
    assert_eq!(
        subjects,
        ["perf: sort by merging", "perf: search by halves"]
    );
    let changed = env.git(&["diff", "--name-only", "main", WORDS_BRANCH]);
    assert_eq!(
        changed.lines().collect::<Vec<_>>(),
        ["src/find.c", "src/sort.c"]
    );
    let worktree = machine.worktree();
    assert_eq!(
        entries(Path::new(&worktree)),
        [".git", ".gitignore", "bench", "src", "tests"],
        "nothing that git ignores is left"
    );

    // Each gain has a branch of its own, and together they are what was kept.
    for (part, path) in [(1, "src/find.c"), (2, "src/sort.c")] {
        let branch = format!("{WORDS_BRANCH}-part-{part}");
        let changed = env.git(&["diff", "--name-only", "main", &branch]);
        assert_eq!(changed.trim(), path);
    }
    let merged = env.git(&[
        "merge-tree",
        "--write-tree",
        &format!("{WORDS_BRANCH}-part-1"),
        &format!("{WORDS_BRANCH}-part-2"),
    ]);
    let kept = env.git(&["rev-parse", &format!("{WORDS_BRANCH}^{{tree}}")]);
    assert_eq!(merged.trim(), kept.trim());
}

#[test]
fn a_mixed_bag_of_ideas_ends_with_exactly_the_real_gains() {
    let bag = mixed_bag();
    let machine = Machine::with_ideas(&bag);
    let env = &machine.env;
    let held_back = env.root().join("held-back");
    write_held_back(&held_back).unwrap();
    let held_back = held_back.display().to_string();
    let limits = ["--benchmark-timeout", "20s", "--held-back", &held_back];
    let proposed = machine.search(&[COUNTED, CHECKED, &limits].concat());
    assert_eq!(proposed.code, 5, "{proposed:?}");
    let base = env.commit_of("main");
    machine.approve();
    let done = machine.resume(&[]);
    assert_eq!(done.code, 0, "{done:?}");
    let runs = machine.runs();
    let metrics = [
        Some(4192.0),
        Some(4192.0),
        Some(4224.0),
        None,
        None,
        Some(435.0),
        Some(1112.0),
        None,
        None,
        None,
        Some(990.0),
    ];
    let expected = bag.iter().map(|idea| idea.status).zip(metrics);
    let expected: Vec<_> = [("keep", Some(6263.0))]
        .into_iter()
        .chain(expected)
        .collect();
    assert_eq!(decided(&runs), expected, "{runs:#?}");
    for (run, words) in [
        (5, "off limits"),
        (7, "but on the held-back inputs it is worse"),
        (11, "time limit"),
    ] {
        let reason = &runs[run - 1].2;
        assert!(reason.contains(words), "{run}: {reason}");
    }

    assert_eq!(env.commit_of("main"), base);
    assert_only_the_gains(&machine);
    machine.assert_documents();
    autoresearch_seen::assert_seen(&machine);
}

impl Machine {
    fn assert_documents(&self) {
        let ledger = self.document("ledger.jsonl");
        let lines: Vec<Value> = ledger.lines().map(parse).collect();
        assert_eq!(lines.len(), 13, "{ledger}");
        assert_eq!(lines[0]["metricName"], "comparisons");
        assert_eq!(lines[12]["metric"], 990);
        let kept = self.env.commit_of(WORDS_BRANCH);
        assert_eq!(lines[12]["commit"], kept.as_str());
        assert!(
            self.document("ideas.md")
                .contains("[x] 1. Sort by merging (run 12)")
        );
        assert!(
            self.document("verify.md")
                .contains("What was kept, once more")
        );
        let report = self.document("decision-report.md");
        assert!(
            report.contains("6263 on the base and is 990 by run 12"),
            "{report}"
        );
        let status = self.env.kapi(&["status", "1"]);
        for words in [
            "best     comparisons 990, run 12\n",
            "gain     84.19 % over the baseline of 6263 (\u{b1} 0 % noise)",
            "\u{2588}",
            "11 of 50",
            "git merge",
        ] {
            assert!(status.stdout.contains(words), "{words}: {}", status.stdout);
        }
    }
}

#[test]
fn an_agent_drafts_what_a_person_revises_and_approves_by_its_hash() {
    let machine = Machine::new();
    let env = &machine.env;
    let proposed = machine.search(&[]);
    assert_eq!(proposed.code, 5, "{proposed:?}");
    let view = env.json(&["status", "1"]);
    assert_eq!(
        view["pending"]["decision"], "approve_experiment_contract",
        "{view:#}"
    );
    assert_eq!(
        machine.document("benchmark.sh"),
        "set -eu\nsh bench/run.sh\n"
    );
    let revised = machine.resume(&["--revise", "fewer runs"]);
    assert_eq!(revised.code, 5, "{revised:?}");
    let hash = env.json(&["status", "1"])["pending"]["sha256"]
        .as_str()
        .unwrap()
        .to_owned();
    // A byte of a script makes it another one.
    let dir = env
        .repository()
        .join(".ilchul/workflows/autoresearch")
        .join(ID);
    write(&dir.join("benchmark.sh"), "echo METRIC ops=0\n");
    let edited = env.kapi(&["autoresearch", "approve", "1", "--hash", &hash]);
    assert_ne!(edited.code, 0, "{edited:?}");
    write(&dir.join("benchmark.sh"), "set -eu\nsh bench/run.sh\n");
    let approved = env.kapi(&["autoresearch", "approve", "1", "--hash", &hash]);
    assert_eq!(approved.code, 0, "{approved:?}");
    let listed = env.kapi(&["autoresearch", "status"]);
    assert!(
        listed.stdout.contains(ID) && listed.stdout.contains("run/baseline"),
        "{listed:?}"
    );
}

#[test]
fn a_person_notes_an_idea_ends_the_search_and_keeps_what_was_found() {
    let machine = Machine::new();
    let env = &machine.env;
    assert_eq!(machine.contracted(&["--runs", "1"]).code, 5);
    let noted = machine.resume(&["--idea", "Use a table", "--no-drive"]);
    assert_eq!(noted.code, 0, "{noted:?}");
    let early = machine.resume(&["--finish"]);
    early.assert_error(3, &["wrong_phase"]);
    machine.approve();
    let done = machine.resume(&[]);
    assert_eq!(done.code, 0, "{done:?}");
    let asked = env.kapi(&["status", "1"]).stdout;
    let gain = "gain     6.82 % over the baseline of 44";
    assert!(asked.contains(gain), "{asked}");
    let view = env.json(&["status", "1"]);
    assert_eq!(view["autoresearch"]["ended"], "runs_used_up", "{view:#}");
    assert_eq!(
        view["autoresearch"]["branches"].as_array().unwrap().len(),
        1
    );
    assert_eq!(view["autoresearch"]["ideas"][0]["text"], "Use a table");
}

#[test]
fn a_baseline_that_does_not_hold_stops_before_anything_is_tried() {
    let machine = Machine::new();
    let env = &machine.env;
    env.write("tests/check.sh", "exit 7\n");
    env.commit_all("a broken check");
    assert_eq!(machine.contracted(&[]).code, 5);
    machine.approve();
    let blocked = machine.resume(&[]);
    assert_eq!(blocked.code, 5, "{blocked:?}");
    let view = env.json(&["status", "1"]);
    let reason = view["blocked"]["reason"].as_str().unwrap();
    assert!(reason.contains("checks.sh exited with 7"), "{reason}");
    assert!(machine.runs().is_empty());
}

#[test]
fn a_search_goes_on_from_what_another_tool_left() {
    let machine = Machine::new();
    let env = &machine.env;
    for (name, content) in [
        (
            ".auto/log.jsonl",
            "{\"type\":\"config\",\"name\":\"sum\",\"metricName\":\"ops\",\"metricUnit\":\"\",\"bestDirection\":\"lower\"}\n{\"run\":1,\"commit\":\"a1b2c3d\",\"metric\":44,\"metrics\":{},\"status\":\"keep\",\"description\":\"baseline\",\"timestamp\":1,\"segment\":0,\"confidence\":null}\n",
        ),
        (".auto/measure.sh", "sh bench/run.sh\n"),
        (".auto/checks.sh", "sh tests/check.sh\n"),
        (".auto/ideas.md", "- Sum by a formula\n"),
        (
            ".auto/prompt.md",
            "# Sum\n\n## Files in Scope\n- `src`: the program\n\n## Off Limits\n- `bench`\n- `tests`\n",
        ),
    ] {
        env.write(name, content);
    }
    env.commit_all("what another tool left");
    let dir = env.repository().display().to_string();
    let proposed = machine.search(&[
        "--import",
        &dir,
        "--runs",
        "1",
        "--benchmark-timeout",
        "60s",
    ]);
    assert_eq!(proposed.code, 5, "{proposed:?}");
    machine.approve();
    let done = machine.resume(&[]);
    assert_eq!(done.code, 0, "{done:?}");
    let view = env.json(&["status", "1"]);
    let runs = view["autoresearch"]["runs"].as_array().unwrap();
    let segments: Vec<_> = runs
        .iter()
        .map(|run| run["segment"].as_u64().unwrap())
        .collect();
    assert_eq!(segments, [0, 1, 1], "{view:#}");
    let progress = &view["autoresearch"]["segments"];
    assert_eq!(progress[0]["progress"]["baseline"], 44.0, "{view:#}");
    assert_eq!(progress[1]["progress"]["best"], 41.0, "{view:#}");
    let status = env.kapi(&["status", "1"]).stdout;
    let earlier = status.find("segment  0 (earlier)\n  runs     \u{2581}\n");
    let latest = status.find("segment  1 (latest)\n  runs     \u{2588}\u{2581}\n");
    assert!(earlier.is_some() && earlier < latest, "{status}");
    autoresearch_seen::assert_segments(env);
    assert_eq!(view["autoresearch"]["ideas"][0]["text"], "Sum by a formula");
}

#[test]
fn half_a_contract_is_refused_before_anything_begins() {
    let machine = Machine::new();
    for options in [
        &["--metric", "ops"][..],
        &["--runs", "5"],
        &["--keep", "ranked"],
        &["--no-checks", "there are none"],
    ] {
        let output = machine.search(options);
        output.assert_error(2, &[options[0], "--metric, --benchmark and --scope"]);
    }
    assert_eq!(
        machine.env.json(&["status"])["workflows"]
            .as_array()
            .unwrap()
            .len(),
        0
    );
    let output = machine.contracted(&["--samples", "0"]);
    output.assert_error(2, &["rule.samples"]);
}
