//! The table of the corpus: what came of each kind, by Integrate and by git alone.
//!
//! Pure: from results to text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::judgement::Score;
use super::kinds::KINDS;

/// What came of one repository.
#[derive(Debug, Clone)]
pub(super) struct RepositoryResult {
    pub(super) kind: &'static str,
    pub(super) number: usize,
    pub(super) project: String,
    /// Whether it was made of a published package.
    pub(super) is_published: bool,
    /// By Integrate, then by merges, at once, and by rebases.
    pub(super) scores: [Score; 4],
    /// What Integrate said.
    pub(super) told: String,
    /// What was changed that must not be.
    pub(super) touched: Option<String>,
}

impl RepositoryResult {
    /// Tells whether Integrate did what it should.
    pub(super) fn is_as_expected(&self) -> bool {
        let [own, ..] = self.scores;
        matches!(own, Score::Right | Score::Named) && self.touched.is_none()
    }
}

/// Returns the page.
pub(super) fn page(results: &[RepositoryResult], seed: u64, commit: &str) -> String {
    let n_published = results.iter().filter(|it| it.is_published).count();
    let mut text = format!(
        "# What integrating is worth\n\n\
         {} generated repositories, {n_published} of them made of published packages, whose truth is \
         known because they were made so.\n\
         Each is integrated by the code of Integrate, and by git alone in three ways: `git merge` one after \
         another, one `git merge` of all, and `git rebase` one after another.\n\
         Git runs no checks; where a result is wrong, the table says whether they would tell whoever ran \
         them afterwards.\n\
         Where a case has a careless person, who takes one side of a conflicting file as a whole or leaves \
         markers in it, the same is done to all.\n\n\
         Measured at {commit} with `cargo xtask integration --seed {seed} --write`; without a seed, every \
         run draws another.\n\n",
        results.len()
    );
    text.push_str("| kind | repositories | Integrate | git merge | octopus | git rebase |\n");
    text.push_str("|---|---|---|---|---|---|\n");
    for kind in &KINDS {
        let own: Vec<&RepositoryResult> =
            results.iter().filter(|it| it.kind == kind.name).collect();
        if own.is_empty() {
            continue;
        }
        let cells: Vec<String> = (0..4).map(|at| cell(&own, at)).collect();
        let _written = writeln!(
            text,
            "| {} | {} | {} |",
            kind.name,
            own.len(),
            cells.join(" | ")
        );
    }
    let all: Vec<&RepositoryResult> = results.iter().collect();
    let cells: Vec<String> = (0..4).map(|at| cell(&all, at)).collect();
    let _written = writeln!(text, "| all | {} | {} |", all.len(), cells.join(" | "));
    text
}

fn cell(results: &[&RepositoryResult], at: usize) -> String {
    let mut counts: BTreeMap<Score, usize> = BTreeMap::new();
    for result in results {
        *counts.entry(result.scores[at]).or_default() += 1;
    }
    let parts = Score::ALL.iter().filter_map(|score| {
        let count = counts.get(score)?;
        Some(format!("{count} {}", score.words()))
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// Returns one line for one repository.
pub(super) fn line(result: &RepositoryResult) -> String {
    let mark = if result.is_as_expected() {
        "ok "
    } else {
        "BAD"
    };
    let [own, merges, octopus, rebases] = result.scores.map(Score::words);
    let mut text = format!(
        "{mark} {} {} ({}): {own}; merges {merges}; octopus {octopus}; rebases {rebases}",
        result.kind, result.number, result.project
    );
    if !result.is_as_expected() {
        let _written = write!(text, "\n    {}", result.told);
    }
    if let Some(touched) = &result.touched {
        let _written = write!(text, "\n    changed what is the person's: {touched}");
    }
    text
}
