//! The whole chain as somebody new walks it on a published package with its own tests: a talk that ends
//! in a spec, two builds at once, a search for fewer operations, and all three of them on `dev`.
//!
//! What a person types and reads on the way is one text, compared as a whole.

use std::fmt::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use kapi_testkit::npm_project::NpmProject;

use crate::environment::{Environment, write};
use crate::integrate::leave_own_work;
use crate::program::{Output, finish};
use crate::untouched::{OWN, assert_same, files};

/// Small and known: it finds shortest paths. `npm test` lints it and runs its tests.
const PROJECT: NpmProject = NpmProject {
    name: "dijkstrajs",
    version: "1.0.3",
};
/// The agents, each with the name of its file beside the project, and the answers of the person.
const SCRIPTS: &[[&str; 2]] = &[
    [
        "builder.yaml",
        include_str!("../fixtures/chain/builder.yaml"),
    ],
    [
        "reviewer.yaml",
        include_str!("../fixtures/chain/reviewer.yaml"),
    ],
    [
        "second_builder.yaml",
        include_str!("../fixtures/chain/second_builder.yaml"),
    ],
    [
        "researcher.yaml",
        include_str!("../fixtures/chain/researcher.yaml"),
    ],
    [
        "integrator.yaml",
        include_str!("../fixtures/chain/integrator.yaml"),
    ],
    [
        "answers.yaml",
        include_str!("../fixtures/chain/answers.yaml"),
    ],
];
const TRANSCRIPT: &str = include_str!("../fixtures/chain/transcript.txt");
/// Asks for what the first build made, and for what the second made.
const COSTS: &str =
    "node -p 'require(\"./dijkstra.js\").path_cost({a: {b: 2}, b: {c: 3}}, [\"a\", \"b\", \"c\"])'";
const REACHES: &str =
    "node -p 'require(\"./dijkstra.js\").find_reachable({a: {b: 2}, b: {c: 3}}, \"a\").join()'";
/// Counts comparisons, as the benchmark of the search does.
const COMPARISONS: &str = "node -e '\
    const { PriorityQueue, find_path } = require(\"./dijkstra.js\"); \
    const compare = PriorityQueue.default_sorter; \
    let n = 0; \
    PriorityQueue.default_sorter = (a, b) => { n += 1; return compare(a, b); }; \
    const graph = {}; \
    for (let i = 0; i < 64; i += 1) { graph.s = { ...graph.s, [i]: 64 - i }; } \
    find_path(graph, \"s\", \"0\"); \
    console.log(n);'";
/// The branches that are made, besides those of goals and builds.
const MADE: &[&str] = &["perf", "chore", "dev"];
/// As many digits as a hash that is cut short has.
const SHORT: usize = 10;

/// What was typed and read so far.
struct Transcript<'a> {
    env: &'a Environment,
    text: String,
    /// The beginnings of the hashes that were read, in the order in which they came.
    hashes: Vec<String>,
}

impl<'a> Transcript<'a> {
    const fn of(env: &'a Environment) -> Self {
        Self {
            env,
            text: String::new(),
            hashes: Vec::new(),
        }
    }

    /// Returns the reference of an agent whose script lies beside the project.
    fn agent(&self, name: &str) -> String {
        format!("script:{}/{name}.yaml", self.env.root().display())
    }

    /// Types a command, and reads all that it says.
    fn step(&mut self, code: i32, args: &[&str]) {
        let output = self.env.kapi(args);
        self.note(code, args, &output);
    }

    /// Types commands that run at once, and reads where each of them ends.
    fn at_once(&mut self, commands: &[&[&str]]) {
        let running: Vec<_> = commands.iter().map(|args| self.env.start(args)).collect();
        for (args, running) in commands.iter().zip(running) {
            let mut output = running.finish();
            // What is told on the way is in no order: several goals are at work.
            output.stderr.clear();
            self.note(0, args, &output);
        }
    }

    fn note(&mut self, code: i32, args: &[&str], output: &Output) {
        assert_eq!(output.code, code, "{args:?}: {output:?}");
        let words: Vec<String> = args.iter().map(|&word| quoted(word)).collect();
        let said = output.stderr.lines().chain(output.stdout.lines());
        let said = said.filter(|line| is_told(line));
        let typed = format!("$ kapi {}", words.join(" "));
        let lines: Vec<&str> = [typed.as_str()].into_iter().chain(said).collect();
        for line in lines {
            let line = self.without_paths(line);
            let line = self.without_hashes(&without_number(&line));
            writeln!(self.text, "{line}").unwrap();
        }
        writeln!(self.text).unwrap();
    }

    fn without_paths(&self, line: &str) -> String {
        let root = self.env.root().display().to_string();
        line.replace(&root, "..")
    }

    /// Puts a number in the place of each hash, the same one wherever it comes again.
    fn without_hashes(&mut self, line: &str) -> String {
        let mut words = Vec::new();
        for word in line.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
            let digits = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            let is_hash = digits.len() >= SHORT && digits.bytes().all(|it| it.is_ascii_hexdigit());
            let number = is_hash.then(|| self.number(&digits[..SHORT]));
            words.push(number.map_or_else(
                || word.to_owned(),
                |number| word.replace(digits, &format!("#{number}")),
            ));
        }
        words.concat()
    }

    fn number(&mut self, hash: &str) -> usize {
        let known = self.hashes.iter().position(|it| it == hash);
        let place = known.unwrap_or_else(|| {
            self.hashes.push(hash.to_owned());
            self.hashes.len() - 1
        });
        place + 1
    }
}

fn quoted(word: &str) -> String {
    if word.contains(' ') {
        format!("\"{word}\"")
    } else {
        word.to_owned()
    }
}

/// Tells whether a line is kept: neither the document that is approved, which is tested elsewhere, nor
/// where things are and how big they are on this machine.
fn is_told(line: &str) -> bool {
    let beginnings = ["  | ", "  files ", "  worktree ", "leftover: "];
    let is_place = line.contains(", worktree ") || line.contains("/.ilchul/workflows/");
    !is_place && !beginnings.iter().any(|it| line.starts_with(it))
}

/// Takes the number of an event out of a line of evidence: goals end in no order.
fn without_number(line: &str) -> String {
    let text = line.trim_start();
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() < text.len() && rest.starts_with(": ") {
        let indent = &line[..line.len() - text.len()];
        format!("{indent}N{rest}")
    } else {
        line.to_owned()
    }
}

#[test]
fn from_a_talk_over_two_builds_and_a_search_to_dev() {
    let env = &checkout_of_project();
    let branches: Vec<String> = MADE
        .iter()
        .flat_map(|name| {
            [
                format!("refs/heads/{name}"),
                format!("logs/refs/heads/{name}"),
            ]
        })
        .collect();
    let made: Vec<&str> = branches.iter().map(String::as_str).collect();
    let made = [OWN, &made].concat();
    let git_before = files(&env.repository().join(".git"), &made);
    let checkout_before = files(&env.repository(), &[".git", ".ilchul"]);

    let mut transcript = Transcript::of(env);
    interview(&mut transcript);
    build(&mut transcript);
    search(&mut transcript);
    integrate(&mut transcript);
    assert_eq!(
        transcript.text.trim_end(),
        TRANSCRIPT.trim_end(),
        "{}",
        transcript.text
    );

    assert_same(&git_before, &files(&env.repository().join(".git"), &made));
    let checkout = files(&env.repository(), &[".git", ".ilchul"]);
    assert_same(&checkout_before, &checkout);
    for reference in ["2", "3", "4"] {
        let source = env.json(&["status", reference]);
        assert_eq!(source["status"], "integrated", "{source:#}");
    }
    assert_eq!(env.kapi(&["audit"]).code, 0);
    assert_works(env);
}

/// Makes what a person has who cloned the project and ran `npm install`, with work of their own in it.
fn checkout_of_project() -> Environment {
    let mut env = Environment::bare();
    env.set("KAPI_SESSION", "test");
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let project = PROJECT.ensure(&checkout).unwrap();
    let mut copy = env.command("cp", &project);
    copy.args(["-a", "."]).arg(env.repository());
    let copied = finish(copy);
    assert_eq!(copied.code, 0, "{copied:?}");
    env.write(".gitignore", "node_modules/\n");
    env.commit_all("base");
    leave_own_work(&env);
    for [name, content] in SCRIPTS {
        write(&env.root().join(name), content);
    }
    env
}

fn interview(transcript: &mut Transcript<'_>) {
    let talk = ["deep-interview", "tell what a path costs"];
    let options = ["--agent", &transcript.agent("builder")];
    let answers = transcript.env.root().join("answers.yaml");
    let answers = ["--answers", &answers.display().to_string()];
    transcript.step(5, &[&talk[..], &options, &answers].concat());
    approve(transcript, "deep-interview", "001");
}

fn approve(transcript: &mut Transcript<'_>, mode: &str, reference: &str) {
    transcript.step(0, &[mode, "approve", reference, "--yes", "--accept-risks"]);
}

/// Builds what was talked about, and at the same time something that nobody talked about.
fn build(transcript: &mut Transcript<'_>) {
    let judge = ["--judge", "none"];
    let reviewer = ["--reviewer", &transcript.agent("reviewer")];
    let costs = ["ralph", "--from", "001"];
    transcript.step(5, &[&costs[..], &reviewer, &judge].concat());
    approve(transcript, "ralph", "002");
    let agent = ["--agent", &transcript.agent("second_builder")];
    let reach = ["ralph", "list what can be reached", "--unlinked"];
    transcript.step(5, &[&reach[..], &agent, &judge].concat());
    approve(transcript, "ralph", "003");
    transcript.at_once(&[&["ralph", "resume", "002"], &["ralph", "resume", "003"]]);
}

fn search(transcript: &mut Transcript<'_>) {
    let words = ["autoresearch", "find paths with fewer comparisons"];
    let options = ["--unlinked", "--agent", &transcript.agent("researcher")];
    transcript.step(5, &[&words[..], &options].concat());
    transcript.step(0, &["autoresearch", "approve", "004", "--yes"]);
    transcript.step(0, &["autoresearch", "resume", "004"]);
}

fn integrate(transcript: &mut Transcript<'_>) {
    let options = ["--agent", &transcript.agent("integrator")];
    let dev = ["--create-dev", "main"];
    transcript.step(5, &[&["integrate"], &options[..], &dev].concat());
    transcript.step(0, &["integrate", "approve", "005", "--yes"]);
    transcript.step(0, &["integrate", "resume", "005"]);
    transcript.step(0, &["status", "--all"]);
    transcript.step(0, &["inbox"]);
}

/// Checks out `dev` elsewhere, runs the project's tests, and uses what the three of them made.
fn assert_works(env: &Environment) {
    let checkout = env.root().join("dev");
    let path = checkout.display().to_string();
    env.git(&["worktree", "add", "--quiet", "--detach", &path, "dev"]);
    let installed = "node_modules";
    symlink(env.repository().join(installed), checkout.join(installed)).unwrap();
    let comparisons_before = "git show main:dijkstra.js > dijkstra.js; ".to_owned() + COMPARISONS;
    for [script, said] in [
        ["npm test > /dev/null", ""],
        [COSTS, "5\n"],
        [REACHES, "b,c\n"],
        [COMPARISONS, "321\n"],
        [comparisons_before.as_str(), "2332\n"],
    ] {
        let mut command = env.command("sh", &checkout);
        command.args(["-c", script]);
        let output = finish(command);
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (0, said),
            "{output:?}"
        );
    }
}
