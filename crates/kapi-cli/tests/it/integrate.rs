//! Finished work of several goals is brought together on `dev` by scripted agents, as a person would ask for
//! it.
//!
//! What lands is looked at in git; `main`, the stash and the person's checkout are compared byte by byte.

use std::fs;

use serde_json::Value;

use crate::browser::{Scheme, look};
use crate::environment::{Environment, write};
use crate::program::Output;
use crate::workflow_support::Machine;

pub(crate) const INTEGRATOR: &str = include_str!("../fixtures/workflows/integrator.yaml");

/// A machine with a project, goals of which are to be brought together.
pub(crate) struct Batch {
    pub(crate) env: Environment,
    integrator: String,
}

/// What is the person's own, and stays as it is.
#[derive(Debug, PartialEq)]
pub(crate) struct Untouched {
    main: String,
    stash: String,
    status: String,
    head: String,
    other: String,
}

/// Leaves what is the person's own: another branch, a stash, and a file in no commit.
pub(crate) fn leave_own_work(env: &Environment) {
    env.git(&["branch", "theirs"]);
    env.write("stashed.txt", "kept\n");
    env.git(&["stash", "push", "--include-untracked", "--quiet"]);
    env.write("own.txt", "in no commit\n");
}

impl Batch {
    pub(crate) fn new() -> Self {
        let mut env = Environment::bare();
        env.set("KAPI_SESSION", "test");
        for (name, content) in [
            ("list.txt", "first\nlast\n"),
            ("limit.txt", "5\n"),
            (
                "all.sh",
                "[ \"$(wc -l < list.txt)\" -le \"$(cat limit.txt)\" ]\n",
            ),
        ] {
            write(&env.repository().join(name), content);
        }
        env.commit_all("base");
        leave_own_work(&env);
        let integrator = env.script("integrator.yaml", INTEGRATOR);
        Self { env, integrator }
    }

    /// Lets a goal be done that puts a line into the list that all of them change.
    fn adds(&self, word: &str) {
        let (does, holds) = (
            format!("sed -i '1a {word}' list.txt"),
            format!("grep -q {word} list.txt"),
        );
        self.goal(&format!("add {word}"), &does, &[&holds]);
    }

    /// Lets a goal be done that writes a file of its own.
    pub(crate) fn writes(&self, word: &str) {
        let (does, holds) = (
            format!("echo {word} > {word}.txt"),
            format!("test -s {word}.txt"),
        );
        self.goal(&format!("write {word}"), &does, &[&holds]);
    }

    /// Lets a goal be done that runs a command and is proved by another.
    pub(crate) fn goal(&self, what: &str, does: &str, verify: &[&str]) -> Value {
        let script = format!("turns:\n  - steps: [{{bash: {does:?}}}, {{claim: done}}]\n");
        let agent = self
            .env
            .script(&format!("{}.yaml", what.replace(' ', "-")), &script);
        let mut args = vec!["run", what, "--yes", "--agent", &agent, "--json"];
        for command in verify {
            args.extend(["--verify", command]);
        }
        let run = self.env.kapi(&args);
        assert_eq!(run.code, 0, "{run:?}");
        crate::workflow_support::last(&run)
    }

    pub(crate) fn integrate(&self, words: &[&str]) -> Output {
        let agent = ["--agent", self.integrator.as_str()];
        self.env.kapi(&[&["integrate"], words, &agent[..]].concat())
    }

    pub(crate) fn approve(&self, workflow: &str) {
        let output = self.env.kapi(&["integrate", "approve", workflow, "--yes"]);
        assert_eq!(output.code, 0, "{output:?}");
    }

    pub(crate) fn resume(&self, workflow: &str, options: &[&str]) -> Output {
        self.env
            .kapi(&[&["integrate", "resume", workflow], options].concat())
    }

    pub(crate) fn document(&self, name: &str) -> String {
        let dir = self.env.repository().join(".ilchul/workflows/integrate");
        let mut dirs: Vec<_> = fs::read_dir(&dir)
            .unwrap()
            .map(|it| it.unwrap().path())
            .collect();
        dirs.sort();
        let path = dirs.last().unwrap().join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    pub(crate) fn untouched(&self) -> Untouched {
        Untouched {
            main: self.env.commit_of("main"),
            stash: self.env.git(&["stash", "list", "--format=%H %s"]),
            status: self
                .env
                .git(&["status", "--porcelain", "--", ".", ":!.ilchul"]),
            head: self.env.git(&["symbolic-ref", "HEAD"]),
            other: self.env.commit_of("theirs"),
        }
    }

    pub(crate) fn dev(&self, file: &str) -> String {
        self.env.show("dev", file)
    }
}

#[test]
fn a_clean_batch_of_two_goals_lands_on_dev_and_nothing_else_moves() {
    let batch = Batch::new();
    let env = &batch.env;
    let alpha = batch.goal(
        "write alpha",
        "echo alpha > alpha.txt",
        &["test -s alpha.txt"],
    );
    let beta = batch.goal("write beta", "echo beta > beta.txt", &["test -s beta.txt"]);
    let before = batch.untouched();
    let missing = batch.integrate(&["1", "2"]);
    assert_ne!(missing.code, 0);
    assert!(
        missing.stderr.contains("git branch dev main"),
        "{missing:?}"
    );
    assert!(env.git(&["branch", "--list", "dev"]).is_empty());
    let proposed = batch.integrate(&["--create-dev", "main"]);
    assert_eq!(proposed.code, 5, "{proposed:?}");
    let view = env.json(&["status", "3"]);
    assert_eq!(
        view["pending"]["decision"], "approve_merge_plan",
        "{view:#}"
    );
    let plan = batch.document("merge-plan.md");
    for part in [
        "001-write-alpha",
        "test -s beta.txt",
        "`main` is not touched",
    ] {
        assert!(plan.contains(part), "{part}\n{plan}");
    }
    assert!(
        env.git(&["branch", "--list", "chore/*"]).is_empty(),
        "nothing is made before the approval"
    );
    batch.approve("3");
    let done = batch.resume("3", &[]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(batch.dev("alpha.txt"), "alpha");
    assert_eq!(batch.dev("beta.txt"), "beta");
    assert_eq!(batch.untouched(), before);
    // The proved commits are in the history, and each source came in one step.
    for goal in [&alpha, &beta] {
        let commit = env.commit_of(goal["branch"].as_str().unwrap());
        env.git(&["merge-base", "--is-ancestor", &commit, "dev"]);
    }
    let steps = env.git(&["rev-list", "--count", "--first-parent", "main..dev"]);
    assert_eq!(steps.trim(), "2");
    let (from, to) = (env.commit_of("main"), env.commit_of("dev"));
    let back = format!("git update-ref refs/heads/dev {from} {to}");
    assert!(batch.document("integration-report.md").contains(&back));
    assert!(
        done.stdout.contains(&back) || done.stderr.contains(&back),
        "{done:?}"
    );
    // Asked again, there is nothing to do.
    let again = batch.integrate(&[]);
    assert_ne!(again.code, 0);
    assert!(again.stderr.contains("nothing is ready"), "{again:?}");
    let named = batch.integrate(&["1"]);
    assert!(named.stderr.contains("integrated already"), "{named:?}");
    let audit = env.kapi(&["audit"]);
    assert_eq!(audit.code, 0, "{audit:?}");
}

#[test]
fn a_conflict_is_resolved_by_an_agent_with_its_reasons_on_record() {
    let batch = Batch::new();
    let env = &batch.env;
    batch.adds("one");
    batch.adds("two");
    let before = batch.untouched();
    let proposed = batch.integrate(&["1", "2", "--create-dev", "main"]);
    assert_eq!(proposed.code, 5, "{proposed:?}");
    let matrix = batch.document("conflict-matrix.md");
    assert!(
        matrix.contains("001-add-one and 002-add-two: `list.txt`"),
        "{matrix}"
    );
    batch.approve("3");
    let done = batch.resume("3", &[]);
    assert_eq!(done.code, 0, "{done:?}");
    let list = batch.dev("list.txt");
    let mut lines: Vec<&str> = list.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["first", "last", "one", "two"]);
    let matrix = batch.document("conflict-matrix.md");
    for part in [
        "- Keep both entries",
        "> Each source adds an entry of its own.",
    ] {
        assert!(matrix.contains(part), "{part}\n{matrix}");
    }
    assert_eq!(batch.untouched(), before);
    seen(&batch);
    // How the contents were put together is kept for whoever meets them again.
    let kept = env.git(&[
        "for-each-ref",
        "--format=%(refname)",
        "refs/kapi/resolutions/",
    ]);
    assert_eq!(kept.lines().count(), 1, "{kept}");
    let merge = env.git(&["show", "--no-patch", "--format=%P", "dev"]);
    assert_eq!(
        merge.split_whitespace().count(),
        2,
        "it is a merge of both: {merge}"
    );
}

/// The page of an integration shows all of it: what fits, the order, the resolution, what is covered.
fn seen(batch: &Batch) {
    let page = batch.env.root().join("page.html");
    let path = page.display().to_string();
    let output = batch.env.kapi(&["status", "3", "--html", &path]);
    assert_eq!(output.code, 0, "{output:?}");
    let text = fs::read_to_string(&page).unwrap();
    for part in [
        "Conflicts between sources",
        "001-add-one and 002-add-two: list.txt",
        "2 of 2",
        "by merge",
        "Chosen: ",
        "Each source adds an entry of its own.",
        "are traced to a source",
        "synthesis by",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    look(&batch.env, &text, &[], &[1200, 360], Scheme::Light).assert_sound();
}

#[test]
fn two_that_are_right_alone_and_wrong_together_are_found_and_the_later_one_goes() {
    let batch = Batch::new();
    let env = &batch.env;
    let grows = "sed -i '$a four' list.txt; sed -i '$a five' list.txt";
    batch.goal("fill list", grows, &["sh all.sh", "grep -q five list.txt"]);
    batch.goal(
        "lower limit",
        "echo 3 > limit.txt",
        &["sh all.sh", "grep -q 3 limit.txt"],
    );
    batch.writes("gamma");
    env.git(&["branch", "dev", "main"]);
    let proposed = batch.integrate(&["1", "2", "3"]);
    assert_eq!(proposed.code, 5, "{proposed:?}");
    batch.approve("4");
    let evicted = batch.resume("4", &[]);
    assert_eq!(
        evicted.code, 5,
        "another plan waits for its approval: {evicted:?}"
    );
    let view = env.json(&["status", "4"]);
    let gone = &view["integrate"]["evicted"][0];
    assert_eq!(gone["source"], "002-lower-limit", "{view:#}");
    assert_eq!(gone["with"], "001-fill-list");
    assert_eq!(
        env.commit_of("dev"),
        env.commit_of("main"),
        "nothing landed yet"
    );
    batch.approve("4");
    let done = batch.resume("4", &[]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(batch.dev("limit.txt"), "5");
    assert_eq!(batch.dev("gamma.txt"), "gamma");
    assert_eq!(batch.dev("list.txt").lines().count(), 4);
    assert!(
        batch
            .document("integration-report.md")
            .contains("Left out: 002-lower-limit")
    );
}

#[test]
fn a_source_that_fails_goes_without_asking_where_that_was_allowed() {
    let batch = Batch::new();
    let env = &batch.env;
    batch.goal(
        "fill list",
        "sed -i '$a four' list.txt; sed -i '$a five' list.txt",
        &["sh all.sh", "grep -q five list.txt"],
    );
    batch.goal(
        "lower limit",
        "echo 3 > limit.txt",
        &["sh all.sh", "grep -q 3 limit.txt"],
    );
    env.git(&["branch", "dev", "main"]);
    let proposed = batch.integrate(&["1", "2", "--allow-eviction"]);
    assert_eq!(proposed.code, 5, "{proposed:?}");
    batch.approve("3");
    let done = batch.resume("3", &[]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(batch.dev("limit.txt"), "5");
    assert_eq!(batch.dev("list.txt").lines().count(), 4);
}

#[test]
fn everything_that_is_not_fit_is_refused_at_once_with_what_helps() {
    let batch = Batch::new();
    let env = &batch.env;
    batch.writes("alpha");
    let beta = batch.goal("write beta", "echo beta > beta.txt", &["test -s beta.txt"]);
    batch.writes("gamma");
    env.git(&["branch", "dev", "main"]);
    // One is moved, one is not finished, one is an interview.
    let moved = beta["branch"].as_str().unwrap();
    env.git(&["update-ref", &format!("refs/heads/{moved}"), "main"]);
    let agent = env.script("idle.yaml", "turns: []\n");
    let idle = env.kapi(&[
        "ralph",
        "build it",
        "--unlinked",
        "--no-drive",
        "--agent",
        &agent,
    ]);
    assert_eq!(idle.code, 0, "{idle:?}");
    let talk = ["deep-interview", "say it", "--no-drive", "--agent", &agent];
    assert_eq!(env.kapi(&talk).code, 0);
    let before = env.git(&["for-each-ref"]);
    let refused = batch.integrate(&["1", "2", "4", "5"]);
    assert_eq!(refused.code, 3, "{refused:?}");
    for part in [
        "002-write-beta was moved",
        "git update-ref refs/heads/",
        "004-build is not completed (active); `kapi ralph resume 004` continues",
        "makes nothing to integrate",
    ] {
        assert!(refused.stderr.contains(part), "{part}\n{}", refused.stderr);
    }
    assert_eq!(env.git(&["for-each-ref"]), before);
    assert!(
        !env.repository()
            .join(".ilchul/workflows/integrate")
            .exists()
    );
    // What is ready comes without it, and what is not is said.
    let ready = batch.integrate(&[]);
    assert_eq!(ready.code, 5, "{ready:?}");
    assert!(
        ready
            .stderr
            .contains("note: not ready: 002-write-beta was moved"),
        "{ready:?}"
    );
    let view = env.json(&["status", "6"]);
    let sources = view["integrate"]["sources"].as_array().unwrap();
    let ids: Vec<&str> = sources
        .iter()
        .map(|it| it["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["001-write-alpha", "003-write-gamma"]);
}

#[test]
fn a_build_that_was_landed_is_integrated_and_linked() {
    let machine = Machine::new();
    let env = &machine.env;
    let integrator = env.script("integrator.yaml", INTEGRATOR);
    let words = ["greet", "people", "by", "name"];
    let built = machine.ralph(&words, &["--unlinked", "--approve-plan", "auto"]);
    assert_eq!(built.code, 0, "{built:?}");
    let worktree = env.json(&["status", "1"])["ralph"]["branch"]["worktree"].clone();
    env.git(&["branch", "dev", "main"]);
    let options = ["--agent", &integrator, "--reviewer", &machine.reviewer];
    let proposed = env.kapi(&[&["integrate", "1"], &options[..2]].concat());
    assert_eq!(proposed.code, 5, "{proposed:?}");
    let plan = machine.document("integrate", &integration(env), "merge-plan.md");
    for part in [
        "T-001: the word",
        "AC-1: Ada is greeted by her name.",
        "No other language.",
    ] {
        assert!(plan.contains(part), "{part}\n{plan}");
    }
    assert_eq!(env.kapi(&["integrate", "approve", "2", "--yes"]).code, 0);
    let done = env.kapi(&["integrate", "resume", "2"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(env.show("dev", "word.txt"), "hello");
    let source = env.json(&["status", "1"]);
    assert_eq!(source["status"], "integrated", "{source:#}");
    let relations = |view: &Value| -> Vec<String> {
        let links = view["links"].as_array().unwrap();
        links
            .iter()
            .map(|it| it["relation"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(relations(&source), ["integrated_by"]);
    assert_eq!(relations(&env.json(&["status", "2"])), ["integrates"]);
    // Its branch and its worktree are there as they were.
    assert!(
        std::path::Path::new(worktree.as_str().unwrap())
            .join("greet.sh")
            .exists()
    );
    env.git(&["rev-parse", "--verify", "feat/ralph-greet-people-name"]);
    let again = env.kapi(&["integrate", "1", "--agent", &integrator]);
    assert!(again.stderr.contains("is integrated already"), "{again:?}");
    assert_eq!(env.kapi(&["audit"]).code, 0);
}

/// Returns the directory of the only integration.
fn integration(env: &Environment) -> String {
    let dir = env.repository().join(".ilchul/workflows/integrate");
    let entry = fs::read_dir(dir).unwrap().next().unwrap().unwrap();
    entry.file_name().into_string().unwrap()
}
