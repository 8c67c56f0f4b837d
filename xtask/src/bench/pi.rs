//! What Kapi's package costs a Pi: the time to load it, and what it adds to requests, beside
//! pi-until-done.

mod request;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use kapi_sys::disk::replace_durably;
use kapi_sys::real_disk::RealDisk;
use kapi_testkit::agent_tools::{AgentTools, Cli};

use self::request::{PiProgram, RequestParts};
use super::BenchDirectory;
use super::comparison::{Side, measured, not_run};
use super::invocation::Invocation;
use super::options::Extra;
use super::sample::Pair;
use super::table::{ComparisonRow, ComparisonTable, Quantity};
use crate::output::talk;
use crate::tool::ToolCommand;

/// The original, under its name in the registry.
const ORIGINAL: &str = "pi-until-done@0.2.2";
/// What counts tokens.
const TOKENIZER: &str = "gpt-tokenizer@3.4.0";
/// Loads that count.
const LOADS: usize = 20;
/// Loads before them, which fill the caches of the loader.
const WARM_UP: usize = 3;
/// An extension that does nothing: what any of them costs.
const EMPTY: &str = "export default function () {}\n";

/// Where everything is.
struct Site<'a> {
    location: &'a BenchDirectory,
    /// The program of the pinned Pi.
    pi: PathBuf,
    /// Its modules.
    modules: PathBuf,
    /// Our package.
    package: PathBuf,
    /// The directory of what is installed for measuring.
    peers: PathBuf,
}

/// Measures the package.
pub(super) fn package(
    location: &BenchDirectory,
    extras: &[Extra],
) -> anyhow::Result<Vec<ComparisonTable>> {
    let site = Site::find(location)?;
    if extras.contains(&Extra::PiUntilDone) {
        for (name, what) in [("pi-until-done", ORIGINAL), ("gpt-tokenizer", TOKENIZER)] {
            if let Err(error) = install(&site.peers.join(name), what) {
                talk(&format!("warning: failed to {error:#}"));
            }
        }
    }
    Ok(vec![loads(&site)?, requests(&site)?])
}

fn install(home: &Path, what: &str) -> anyhow::Result<()> {
    fs::create_dir_all(home).with_context(|| format!("create {}", home.display()))?;
    let args = ["install", "--silent", "--no-save", "--ignore-scripts"];
    let args = [&args[..], &["--legacy-peer-deps", what]].concat();
    ToolCommand::new(home, "npm", &args).without_stdout().run()
}

impl<'a> Site<'a> {
    fn find(location: &'a BenchDirectory) -> anyhow::Result<Self> {
        let above = location.scratch.ancestors();
        let mut above = above.filter(|path| path.join("Cargo.lock").exists());
        let checkout = above.next().context("find the checkout")?;
        let tools = AgentTools::ensure(checkout, &[Cli::Pi])?;
        let pi = tools.binary(Cli::Pi)?.to_path_buf();
        let modules = pi.ancestors().find(|path| path.ends_with("node_modules"));
        Ok(Self {
            location,
            modules: modules.context("find the modules of Pi")?.to_path_buf(),
            package: checkout.join("extensions/pi-kapi"),
            peers: location.scratch.with_file_name("bench-peers"),
            pi,
        })
    }

    /// Returns the original's extension.
    fn original(&self) -> anyhow::Result<PathBuf> {
        let home = self.peers.join("pi-until-done/node_modules/pi-until-done");
        let extension = home.join("extensions/until-done.ts");
        ensure!(
            extension.exists(),
            "it is not installed; `--with pi-until-done` installs it"
        );
        Ok(extension)
    }

    /// Returns the processor time of one load, in seconds.
    fn load(&self, extension: &Path) -> anyhow::Result<f64> {
        let script = self.location.scratch.join("load.mjs");
        replace_durably(&RealDisk, &script, include_bytes!("pi/load.mjs"))?;
        let args = [&script, &self.modules, extension];
        let args = args.map(|path| path.to_string_lossy().into_owned());
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let said = Invocation::new("a load", &self.location.scratch, "node", &args).read()?;
        let millis: f64 = said.trim().parse().context("read the time of a load")?;
        Ok(millis / 1e3)
    }

    /// Returns how many tokens the parts of a request are.
    fn tokens(&self, parts: &RequestParts) -> anyhow::Result<f64> {
        let script = self.location.scratch.join("tokens.mjs");
        replace_durably(&RealDisk, &script, include_bytes!("pi/tokens.mjs"))?;
        let files = ["tools.txt", "system.txt"].map(|name| self.location.scratch.join(name));
        replace_durably(&RealDisk, &files[0], parts.tools.as_bytes())?;
        replace_durably(&RealDisk, &files[1], parts.system.as_bytes())?;
        let home = self.peers.join("gpt-tokenizer");
        let args = [&script, &home, &files[0], &files[1]];
        let args = args.map(|path| path.to_string_lossy().into_owned());
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let said = Invocation::new(TOKENIZER, &self.location.scratch, "node", &args).read();
        let said = said.context("count tokens; `--with pi-until-done` installs what counts")?;
        let counts = said.lines().map(str::parse::<u32>);
        let counts: Result<Vec<u32>, _> = counts.collect();
        Ok(counts
            .context("read the tokens")?
            .into_iter()
            .map(f64::from)
            .sum())
    }
}

/// Measures how long the package takes to load.
fn loads(site: &Site<'_>) -> anyhow::Result<ComparisonTable> {
    let empty = site.location.scratch.join("empty.ts");
    replace_durably(&RealDisk, &empty, EMPTY.as_bytes())?;
    let row = |peer: &str, extension: &Path| -> anyhow::Result<ComparisonRow> {
        let mut pair = Pair::default();
        for round in 0..WARM_UP + LOADS {
            let ours = site.load(&site.package.join("kapi/index.ts"))?;
            let theirs = site.load(extension)?;
            if round >= WARM_UP {
                pair.add_numbers(ours, theirs);
            }
        }
        Ok(measured("`pi-kapi`", peer, pair))
    };
    let beside = match site
        .original()
        .and_then(|extension| row(ORIGINAL, &extension))
    {
        Ok(row) => row,
        Err(error) => not_run("`pi-kapi`", ORIGINAL, &format!("{error:#}"), Side::Peer),
    };
    Ok(ComparisonTable {
        title: "Loading the Pi package",
        note: "Processor time of Pi's own loader in a process that has just started, as at every start of Pi; the \
               loader's cache is warm. The package may take 40 ms. It starts no process and writes no file, which \
               tests hold it to."
            .to_owned(),
        quantity: Quantity::Time,
        rows: vec![row("an extension that does nothing", &empty)?, beside],
    })
}

/// Measures what the package adds to a request.
fn requests(site: &Site<'_>) -> anyhow::Result<ComparisonTable> {
    let program = PiProgram {
        pi: &site.pi,
        kapi: &site.location.kapi,
        scratch: site.location.scratch.join("pi"),
    };
    let bare = program.ordinary(None)?;
    let idle = program.ordinary(Some(&site.package))?;
    ensure!(
        idle == bare,
        "the package changes a request with nothing attached"
    );
    let attached = program.of_goal(&site.package)?;
    let original = site.original().and_then(|extension| {
        let parts = program.ordinary(Some(&extension))?;
        Ok(site.tokens(&parts)? - site.tokens(&bare)?)
    });
    let added = site.tokens(&attached)? - site.tokens(&bare)?;
    let rows = [
        ("`pi-kapi`, nothing attached", 0.0),
        ("`pi-kapi`, attached to a goal", added),
    ];
    let rows = rows.map(|(name, ours)| match &original {
        Ok(theirs) => {
            let mut pair = Pair::default();
            pair.add_numbers(ours, *theirs);
            measured(name, &format!("{ORIGINAL}, without a goal"), pair)
        }
        Err(error) => not_run(name, ORIGINAL, &format!("{error:#}"), Side::Peer),
    });
    let bytes = |part: fn(&RequestParts) -> &String| part(&attached).len() - part(&bare).len();
    let (tools, system) = (bytes(|it| &it.tools), bytes(|it| &it.system));
    Ok(ComparisonTable {
        title: "What a request of Pi carries more",
        note: format!(
            "Tokens of the vocabulary o200k that are added to the tools and the system prompt of a request. With \
             nothing attached the request is the same, byte for byte. Attached, {tools} bytes of tools and {system} \
             bytes of the system prompt are added, {} in all, the contract included; the original adds its tools to \
             every request, and a block of its own once it has a goal.",
            tools + system
        ),
        quantity: Quantity::Tokens,
        rows: rows.into(),
    })
}
