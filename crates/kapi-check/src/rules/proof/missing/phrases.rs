//! What package managers, runners and interpreters print when something is not there.
//!
//! Text of others, checked against their real output. The first that fits a line is taken; of those
//! in one output, the one that stands first here.

use super::{Certainty, NAME_BYTES_MAX};

/// What a phrase speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PhraseKind {
    Dependency,
    Host,
}

/// One phrase.
#[derive(Debug)]
pub(super) struct Phrase {
    /// What stands right before the name; without a name, the phrase.
    start: &'static str,
    /// What ends the name; empty where no name is said.
    end: &'static str,
    pub(super) kind: PhraseKind,
    pub(super) certainty: Certainty,
    /// How what is missing is installed, as the beginning of a sentence.
    pub(super) install: &'static str,
}

pub(super) const NPM: &str = "run `npm install`";
const PNPM: &str = "run `pnpm install`";
const YARN: &str = "run `yarn install`";
const PIP: &str = "install it into the project's virtual environment";
const UV: &str = "run `uv sync`";
const CARGO: &str = "run `cargo fetch`";
const GO: &str = "run `go mod download`";
const MAVEN: &str = "run `mvn dependency:go-offline`";
const GRADLE: &str = "run the build once";
const BUNDLE: &str = "run `bundle install`";
const COMPOSER: &str = "run `composer install`";
const MIX: &str = "run `mix deps.get`";
const DOTNET: &str = "run `dotnet restore`";

/// What installs the programs that a package manager runs for a project.
const RUNNERS: &[(&str, &str)] = &[
    ("npm", NPM),
    ("npx", NPM),
    ("pnpm", PNPM),
    ("yarn", YARN),
    ("bun", "run `bun install`"),
    ("bunx", "run `bun install`"),
    ("uv", UV),
    ("poetry", "run `poetry install`"),
    ("bundle", BUNDLE),
    ("composer", COMPOSER),
];

/// Returns how the programs are installed that the last program of a command line runs for its project;
/// nothing where that is no package manager.
pub(super) fn install_of(command: &str) -> Option<&'static str> {
    let last = command.rsplit(['&', '|', ';', '\n']).next()?;
    let program = last.split_whitespace().find(|word| !word.contains('='))?;
    let mut runners = RUNNERS.iter();
    runners.find_map(|(name, install)| (*name == program).then_some(*install))
}

/// A line that a package manager prints.
const fn certain(start: &'static str, end: &'static str, install: &'static str) -> Phrase {
    Phrase {
        start,
        end,
        kind: PhraseKind::Dependency,
        certainty: Certainty::Certain,
        install,
    }
}

/// A line that a program of the project may print as well.
const fn likely(start: &'static str, end: &'static str, install: &'static str) -> Phrase {
    Phrase {
        certainty: Certainty::Likely,
        ..certain(start, end, install)
    }
}

/// A line about a host.
const fn host(start: &'static str, end: &'static str, certainty: Certainty) -> Phrase {
    Phrase {
        start,
        end,
        kind: PhraseKind::Host,
        certainty,
        install: "",
    }
}

/// All of them.
pub(super) const PHRASES: &[Phrase] = &[
    certain("code ENOTCACHED", "", NPM),
    certain("code ERESOLVE", "", NPM),
    certain("could not determine executable to run", "", NPM),
    certain("ERR_PNPM_NO_OFFLINE_", "", PNPM),
    certain("Couldn't find the node_modules state file", "", YARN),
    certain("No matching distribution found for ", "\n", PIP),
    certain("was not found in the cache", "", UV),
    certain("no matching package named `", "`", CARGO),
    certain("but --offline was specified", "", CARGO),
    certain("you are in the offline mode", "", CARGO),
    certain("module lookup disabled by GOPROXY=off", "", GO),
    certain("in offline mode and the artifact ", " ", MAVEN),
    certain("No cached version of ", " ", GRADLE),
    certain("Could not find gem '", "'", BUNDLE),
    certain("Bundler::GemNotFound", "", BUNDLE),
    certain("Unchecked dependencies for environment", "", MIX),
    certain("error NU1101: Unable to find package ", ".", DOTNET),
    certain("error NU1301", "", DOTNET),
    host("Could not transfer artifact ", "", Certainty::Certain),
    host("getaddrinfo EAI_AGAIN ", "\n", Certainty::Likely),
    host("getaddrinfo ENOTFOUND ", "\n", Certainty::Likely),
    host("Could not resolve host: ", "\n", Certainty::Likely),
    host("dial tcp: lookup ", " ", Certainty::Likely),
    host("unable to access '", "'", Certainty::Likely),
    host("UnknownHostException: ", "\n", Certainty::Likely),
    host("failed to fetch `", "`", Certainty::Likely),
    host("Failed to fetch: `", "`", Certainty::Likely),
    host(
        "Failed to establish a new connection",
        "",
        Certainty::Likely,
    ),
    host(
        "Temporary failure in name resolution",
        "",
        Certainty::Likely,
    ),
    host(
        "failed to lookup address information",
        "",
        Certainty::Likely,
    ),
    host("Name or service not known", "", Certainty::Likely),
    likely("Cannot find package '", "'", NPM),
    likely("Cannot find module '", "'", NPM),
    likely("ModuleNotFoundError: No module named '", "'", PIP),
    certain(": No module named ", "\n", PIP),
    likely("vendor/autoload.php", "", COMPOSER),
    likely("cannot load such file -- ", " ", BUNDLE),
    likely("no required module provides package ", ";", GO),
];

impl Phrase {
    /// Returns the name that a line says with this phrase; empty where the phrase says none.
    pub(super) fn name_in<'a>(&self, line: &'a str) -> Option<&'a str> {
        let (before, rest) = line.split_once(self.start)?;
        if self.start.starts_with("Could not transfer") {
            return Some(rest.split_once('(').map_or("", |(_, address)| address));
        }
        if self.end.is_empty() {
            return Some("");
        }
        // Python says so itself only where nothing but its own path stands before it.
        if self.start.starts_with(": No module") && before.contains(' ') {
            return None;
        }
        let name = rest
            .split_once(self.end)
            .map_or(rest, |(name, _)| name)
            .trim();
        let is_of_project = name.starts_with(['.', '/']) || name.starts_with("file:");
        let is_name = !name.is_empty() && name.len() <= NAME_BYTES_MAX && !is_of_project;
        is_name.then_some(name)
    }
}
