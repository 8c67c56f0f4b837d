//! A review: findings about one commit, correctness before simplicity (spec: review phases).
//!
//! Fresh and bound to what it looked at: a later commit needs another one.

use serde::{Deserialize, Serialize};

use crate::rules::identity::ReviewerIdentity;

/// The most reviews in a row that may ask for changes before a person is asked.
pub const REVIEWS_MAX: u32 = 5;

/// What a finding is about, in the order in which they are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingCategory {
    /// It does the wrong thing.
    Correctness,
    /// It breaks what worked.
    Regression,
    /// A test is missing.
    MissingTest,
    /// It is not what spec or plan say.
    ArtifactAlignment,
    /// Something claimed is not verified.
    VerificationGap,
    /// It could be simpler; never a reason to hold it back.
    Simplification,
}

impl FindingCategory {
    /// Returns the category in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Correctness => "correctness",
            Self::Regression => "regression",
            Self::MissingTest => "missing test",
            Self::ArtifactAlignment => "artifact alignment",
            Self::VerificationGap => "verification gap",
            Self::Simplification => "simplification",
        }
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReviewFinding {
    /// What it is about.
    pub category: FindingCategory,
    /// Whether it must be mended before the closeout; never for a simplification.
    pub must_fix: bool,
    /// The file.
    #[serde(default)]
    pub file: Option<String>,
    /// The line, from 1.
    #[serde(default)]
    pub line: Option<u32>,
    /// What, in a line.
    pub title: String,
    /// Why, and how one sees it.
    pub detail: String,
}

/// What a reviewer says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReviewFindings {
    /// Whether it may be closed out as it is.
    pub approve: bool,
    /// What was looked at and how it came out, in a few sentences.
    pub summary: String,
    /// The findings.
    pub findings: Vec<ReviewFinding>,
    /// Why the plan itself is materially wrong, so that no fix within it can help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replan: Option<String>,
}

/// What follows from what a reviewer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewVerdict {
    /// It may be closed out.
    Approve,
    /// Something must be mended first.
    Changes,
    /// No fix within the plan can help.
    Replan,
}

impl ReviewVerdict {
    /// Returns the verdict as evidence names it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Changes => "changes",
            Self::Replan => "replan",
        }
    }
}

impl ReviewFinding {
    /// Tells whether it holds the closeout back; a simplification never does.
    #[must_use]
    pub const fn holds_back(&self) -> bool {
        self.must_fix && !matches!(self.category, FindingCategory::Simplification)
    }
}

impl ReviewFindings {
    /// Returns what follows.
    #[must_use]
    pub fn verdict(&self) -> ReviewVerdict {
        if self.replan.is_some() {
            ReviewVerdict::Replan
        } else if self.findings.iter().any(ReviewFinding::holds_back) {
            ReviewVerdict::Changes
        } else {
            ReviewVerdict::Approve
        }
    }
}

/// A review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Review {
    /// The review cycle, from 1.
    pub cycle: u32,
    /// The commit it is about.
    pub commit: String,
    /// Who reviewed.
    pub by: ReviewerIdentity,
    /// What was found, sorted by category.
    pub findings: ReviewFindings,
}
