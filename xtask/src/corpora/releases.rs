//! Honest changes that somebody published: from one release of a package to the next.
//!
//! The base is the older release with the newer one's tests, so that many a difference is red before
//! it; where it is not, the change is said to keep what is green.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;

use super::ecosystem::{CorpusCase, CorpusEcosystem, Expectation};
use super::entry::Entrance;
use super::fetch::PackageClient;

/// The list of pairs, from the top of the repository.
const LIST: &str = "xtask/corpus/releases.toml";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReleaseList {
    pair: Vec<ReleasePair>,
}

/// Two releases of a package.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReleasePair {
    client: PackageClient,
    package: String,
    from: String,
    to: String,
    /// The command that tests both.
    verify: String,
    /// Which files are tests, as an expression of `find`; none where the package ships none.
    #[serde(default)]
    tests: Option<String>,
    /// What must come of it, where not that it is done.
    #[serde(default)]
    expect: Option<Expectation>,
}

/// Reads the list; each pair is an ecosystem with one change.
///
/// # Errors
/// When the list cannot be read.
pub(super) fn load(root: &Path) -> anyhow::Result<Vec<CorpusEcosystem>> {
    let reading = || format!("read {LIST}");
    let text = fs::read_to_string(root.join(LIST)).with_context(reading)?;
    let list: ReleaseList = toml::from_str(&text).with_context(reading)?;
    Ok(list.pair.into_iter().map(ecosystem).collect())
}

fn ecosystem(pair: ReleasePair) -> CorpusEcosystem {
    let ReleasePair {
        client,
        package,
        from,
        to,
        verify,
        tests,
        expect,
    } = pair;
    let short = package
        .rsplit('/')
        .find(|part| !is_major(part))
        .unwrap_or(&package);
    let mut prepare = client.script(&package, &from, "base");
    prepare.push_str(&client.script(&package, &to, "next"));
    if let Some(tests) = &tests {
        let _written = write!(
            prepare,
            "find base -type f \\( {tests} \\) -delete\n\
             (cd next && find . -type f \\( {tests} \\) -print0 | tar cf - --null -T -) | \
             tar xf - -C base\n"
        );
    }
    let expect = expect.unwrap_or(Expectation::Honest);
    // Where nobody can be asked, what waits is refused.
    let ways = match expect {
        Expectation::Waits => vec![Entrance::Run],
        _ => vec![Entrance::Run, Entrance::Prove],
    };
    let case = CorpusCase {
        name: format!("{from}-to-{to}"),
        kind: "from one release to the next".to_owned(),
        expect,
        quick: false,
        ways,
        verify: None,
        options: Vec::new(),
        hidden: false,
        before: Some("cp -a '{cache}/base/.' .".to_owned()),
        passes_by_hand: true,
        asks_base: true,
        script: "find . -mindepth 1 -maxdepth 1 ! -name .git ! -name .ilchul -exec rm -rf {} +\n\
                 cp -a '{cache}/next/.' ."
            .to_owned(),
    };
    CorpusEcosystem {
        name: format!("release-{}-{short}", client.name()),
        task: format!("bring {short} from {from} to {to}"),
        verify,
        needs: vec![client.program().to_owned(), "git".to_owned()],
        prepare: Some(prepare),
        carry: Vec::new(),
        files: BTreeMap::new(),
        hidden: BTreeMap::new(),
        cases: vec![case],
    }
}

/// Tells whether a part of a Go module's path is its major version.
fn is_major(part: &str) -> bool {
    part.strip_prefix('v')
        .is_some_and(|digits| digits.parse::<u32>().is_ok())
}
