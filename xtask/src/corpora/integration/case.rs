//! One repository of the corpus: its commits, what is to be integrated, and what is true of it.
//!
//! Data alone.

use std::collections::BTreeSet;

use kapi_git::coverage::FindingKind;
use kapi_git::land::source::ApplyMethod;

use super::project::Files;

/// A repository with known truth.
#[derive(Debug, Clone)]
pub(super) struct IntegrationCase {
    /// The kind of case.
    pub(super) kind: &'static str,
    /// Its number among its kind.
    pub(super) number: usize,
    /// What it was made of.
    pub(super) project: String,
    /// The checks that hold before anybody changes anything.
    pub(super) checks: BTreeSet<String>,
    /// What happened.
    pub(super) draft: CaseDraft,
}

/// What happened in a repository.
#[derive(Debug, Clone)]
pub(super) struct CaseDraft {
    /// The commits, each after its parents; the first is where everything begins.
    pub(super) commits: Vec<CommitDraft>,
    /// Where `dev` is, by its place among the commits.
    pub(super) dev: usize,
    /// What is to be integrated.
    pub(super) sources: Vec<SourceDraft>,
    /// What a careless person does.
    pub(super) hand: Hand,
    /// Declared rules for conflicts.
    pub(super) rules: Vec<String>,
    /// What is true of it.
    pub(super) truth: Truth,
}

/// One commit.
#[derive(Debug, Clone)]
pub(super) struct CommitDraft {
    /// Its parents, by their places.
    pub(super) parents: Vec<usize>,
    /// All of its files.
    pub(super) files: Files,
}

/// One source.
#[derive(Debug, Clone, Copy)]
pub(super) struct SourceDraft {
    /// Where it begins, by its place among the commits.
    pub(super) base: usize,
    /// Where it is.
    pub(super) tip: usize,
    /// How it is applied.
    pub(super) method: ApplyMethod,
}

/// What a careless person does: with each conflict, and to the result.
#[derive(Debug, Clone, Default)]
pub(super) struct Hand {
    /// How each conflict is settled; nobody settles any where nothing is said.
    pub(super) settles: Option<Settling>,
    /// What is changed in the result in the end.
    pub(super) afterwards: Option<TextChange>,
}

/// How a conflict is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settling {
    /// The whole file as the head has it.
    Ours,
    /// The whole file as it comes.
    Theirs,
    /// As git left it, with its markers.
    AsItLies,
}

/// A text of a file that is replaced.
#[derive(Debug, Clone)]
pub(super) struct TextChange {
    pub(super) path: String,
    pub(super) from: String,
    pub(super) to: String,
}

/// What is true of a repository.
#[derive(Debug, Clone)]
pub(super) enum Truth {
    /// Everything fits: it lands, and these texts are in these files.
    Clean { holds: Vec<FileText> },
    /// The sources do not fit here, which a person must settle.
    Conflict { path: String },
    /// These sources fail together, by their places.
    Culprits { sources: Vec<usize> },
    /// The result is wrong here.
    Wrong(WrongResult),
    /// Markers are left over here.
    Markers { path: String },
}

/// A text that must be in a file.
#[derive(Debug, Clone)]
pub(super) struct FileText {
    pub(super) path: String,
    pub(super) text: String,
}

/// What is wrong with a result.
#[derive(Debug, Clone)]
pub(super) struct WrongResult {
    /// What it may be called.
    pub(super) kinds: &'static [FindingKind],
    /// Where.
    pub(super) path: String,
    /// Texts of which one is lost, or there too much.
    pub(super) texts: Vec<String>,
}

impl CaseDraft {
    /// Begins with one commit, which is `dev` as well.
    pub(super) fn new(files: Files) -> Self {
        Self {
            commits: vec![CommitDraft {
                parents: Vec::new(),
                files,
            }],
            dev: 0,
            sources: Vec::new(),
            hand: Hand::default(),
            rules: Vec::new(),
            truth: Truth::Clean { holds: Vec::new() },
        }
    }

    /// Adds a commit, and returns its place.
    pub(super) fn commit(&mut self, parents: &[usize], files: Files) -> usize {
        self.commits.push(CommitDraft {
            parents: parents.to_vec(),
            files,
        });
        self.commits.len() - 1
    }

    /// Adds a source of one commit on the first one.
    pub(super) fn source(&mut self, files: Files, method: ApplyMethod) -> usize {
        let tip = self.commit(&[0], files);
        self.sources.push(SourceDraft {
            base: 0,
            tip,
            method,
        });
        tip
    }

    /// Moves `dev` on from where everything begins.
    pub(super) fn move_dev(&mut self, files: Files) {
        self.dev = self.commit(&[0], files);
    }
}
