//! Automation for the workspace: the gate, its checks, simulation and measurement.
//!
//! Runs tools and reads the repository. Ships nothing, and knows none of the product's rules.

mod bench;
mod books;
mod ci;
mod conformance;
mod converge;
mod corpora;
mod deny;
mod dist;
mod document;
mod keeping;
mod layers;
mod newest;
mod output;
mod peers;
mod schedules;
mod sim;
mod soak;
mod storm;
mod tidy;
mod tool;
mod toolchain;
mod toy;

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};

const USAGE: &str = "\
usage: cargo xtask <command>

  ci                the gate: everything a commit must pass, tests last
  test [filter…]    install what the tests need and run them
  tidy              the rules of STYLE.md that a program can check
  quality           the figures of the code: size, complexity, duplication, coupling, names
                    (--coverage: what tests reach, too; installs cargo-tarpaulin)
  newest            the tests of the real agents with the newest that npm has (pi=VERSION names
                    another; further words are filters of the test runner)
  layers            the directions of dependency
  peers             install what the tests need, and nothing else
  dist              build the program as it is shipped: one static file (--package: and pack it for
                    a release; --package --kapi PATH: pack another one)
  bench             measure against peers (--trees 1k,10k,…: the sizes of the repositories;
                    --only sandbox,tree,…: some tables; --with redis,…: peers of their own;
                    --write: docs/performance.md, which keeps the tables that were not measured)
  sim --seeds N     crash everywhere, with the first N seeds (--seed N for one of them,
                    --pairs N for one of them with every pair of crashes;
                    --workflows N or --launches N instead: an interview and builds, or the
                    launches of a sandbox, crashed at one disk operation in N)
  books             what is booked against what a model server really served, with everything
                    that goes wrong between them (--seeds N, 300 unless given; --seed N)
  storm             processes that submit tasks, work on them and are killed, judged by the log
                    (--tasks N --processes P --kill-every MS --seed S; --crashes: the
                    power of a simulated disk instead; --minutes N: tasks, loops, launches
                    and workflows while supervisors and agents are killed, the disk fills up
                    and the clock jumps)
  schedules         a person who edits, commits, switches and rebases while agents work in launches:
                    what is committed (--seeds N, 1000 unless given; --seed N)
  conformance       write docs/conformance/*.md from their maps (--check: compare them)
  converge          a thousand executors, honest and not, under three sets of rules (--seeds N)
  keeping           a thousand experiments under recorded noise, and which of them each rule of
                    Autoresearch keeps: writes docs/autoresearch.md (--check: compare it;
                    --record: record the noise of this machine anew)
  cheats            cheats and honest changes against the built program, by every way in
                    (--quick, --ways N, --only TEXT, --kapi PATH, --jobs N, --report-only,
                    --keep, --list; --write: docs/proof.md)
  ideas             a mixed bag of ideas for a small C program, measured by the clock: what the plain
                    rule keeps, and what a strict one does (--kapi PATH, --keep; --write:
                    docs/autoresearch.md)
  integration       generated repositories whose truth is known, integrated by Integrate's code and
                    by git alone (--seed N, --quick, --only TEXT, --jobs N; --write:
                    docs/integrate-corpus.md)
  realrepos         real projects with a seeded bug, proved by their own command and timed
                    (the same options)
  toy               make a mode of the toy in a copy of the tree and try it: what a new mode touches
  deny              licences, advisories and bans (needs cargo-deny)";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::talk(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    let root = workspace_root()?;
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["ci"] => ci::run(&root),
        ["test", filter @ ..] => {
            peers::ensure_for_tests(&root)?;
            ci::test(&root, filter)
        }
        ["tidy"] => tidy::run(&root),
        ["quality", options @ ..] => tidy::quality::run(&root, options),
        ["layers"] => layers::run(&root),
        ["newest", options @ ..] => newest::run(&root, options),
        ["peers"] => peers::ensure_for_tests(&root),
        ["dist", options @ ..] => dist::perform(&root, options),
        ["bench", options @ ..] => bench::run(&root, options),
        ["sim", options @ ..] => sim::run(&root, options),
        ["books", options @ ..] => books::run(options),
        ["storm", options @ ..] => storm::run(&root, options),
        ["conformance", options @ ..] => conformance::run(&root, options),
        ["converge", options @ ..] => converge::run(options),
        ["schedules", options @ ..] => schedules::run(&root, options),
        ["keeping", options @ ..] => keeping::run(&root, options),
        ["cheats", options @ ..] => corpora::cheats::run(&root, options),
        ["ideas", options @ ..] => corpora::ideas::run(&root, options),
        ["integration", options @ ..] => corpora::integration::run(&root, options),
        ["realrepos", options @ ..] => corpora::real_repositories::run(&root, options),
        ["toy"] => toy::run(&root),
        ["deny"] => deny::run(&root),
        [] | ["help" | "--help" | "-h"] => {
            output::say(USAGE);
            Ok(())
        }
        _ => bail!("read the command {:?}\n{USAGE}", words.join(" ")),
    }
}

/// Returns the directory of the root manifest, told by Cargo and never compiled in.
fn workspace_root() -> anyhow::Result<PathBuf> {
    let manifest_dir = env::var_os("CARGO_MANIFEST_DIR")
        .context("find the workspace: run this through `cargo xtask`")?;
    let root = Path::new(&manifest_dir)
        .parent()
        .context("find the workspace above xtask")?;
    Ok(root.to_path_buf())
}
