//! Which tool call is which kind of work: the table a person may replace.
//!
//! The pattern that names most of a call wins, whatever its place in the file; of a command with
//! several parts the most advanced one counts. Knows nothing of progress; where the table's file
//! lies and how it is read is the caller's.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::rules::pattern::{Fit, ToolPattern};
use crate::rules::phase::{PercentRange, ToolCategory};
use crate::rules::shell::CommandPart;
use crate::rules::{built_in, shell};

/// The version of the table's shape.
pub const VERSION: &str = "1.0";
/// Patterns of one category, at most.
const PATTERNS_MAX: usize = 500;

/// The table from tool calls to categories.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "MappingFile")]
pub struct Mapping {
    default_category: ToolCategory,
    ranges: BTreeMap<ToolCategory, PercentRange>,
    patterns: BTreeMap<ToolCategory, Vec<ToolPattern>>,
}

/// The table as it stands in a file. What is left out is as built in; a category that is given
/// patterns has those and no other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MappingFile {
    /// The version of this shape, `1.0`.
    pub version: Option<String>,
    /// The per cents that calls of each category reach.
    pub phase_ranges: BTreeMap<ToolCategory, PercentRange>,
    /// The category of what no pattern fits.
    pub default_category: Option<ToolCategory>,
    /// The patterns of each category.
    pub patterns: BTreeMap<ToolCategory, Vec<ToolPattern>>,
}

/// A table that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MappingError {
    /// It is of another version.
    #[error("use a tool mapping of version {version:?}: this program knows {VERSION:?}")]
    Version {
        /// The version it names.
        version: String,
    },
    /// There are too many patterns.
    #[error("use {n} patterns for one category: at most {PATTERNS_MAX} are read")]
    TooMany {
        /// How many there are.
        n: usize,
    },
}

impl Mapping {
    /// Returns the table that is built in.
    #[must_use]
    pub fn built_in() -> Self {
        Self {
            default_category: ToolCategory::Other,
            ranges: ToolCategory::ALL
                .into_iter()
                .map(|category| (category, category.range()))
                .collect(),
            patterns: built_in::patterns(),
        }
    }

    /// Returns the kind of work a tool call is. `detail` is the command, where the tool is a shell.
    #[must_use]
    pub fn category(&self, tool: &str, detail: &str) -> ToolCategory {
        let tool = built_in::canonical_tool(tool);
        if tool != built_in::SHELL {
            return self.best(&tool, &[]).unwrap_or(self.default_category);
        }
        shell::parts(detail)
            .iter()
            .map(|part| self.part_category(part))
            .max()
            .unwrap_or(self.default_category)
    }

    /// Returns the per cents that calls of a category reach.
    #[must_use]
    pub fn range(&self, category: ToolCategory) -> PercentRange {
        self.ranges
            .get(&category)
            .copied()
            .unwrap_or_else(|| category.range())
    }

    fn part_category(&self, part: &CommandPart) -> ToolCategory {
        let category = self
            .best(built_in::SHELL, &part.spellings)
            .unwrap_or(self.default_category);
        if part.is_writing {
            category.max(ToolCategory::Implementing)
        } else {
            category
        }
    }

    /// Returns the category of the closest fit; of equal ones the most advanced.
    fn best(&self, tool: &str, commands: &[String]) -> Option<ToolCategory> {
        let fits = self.patterns.iter().flat_map(|(category, patterns)| {
            patterns
                .iter()
                .filter_map(move |pattern| Some((pattern.fit(tool, commands)?, *category)))
        });
        fits.max_by_key(|(fit, category): &(Fit, ToolCategory)| (*fit, *category))
            .map(|(_, category)| category)
    }
}

impl Default for Mapping {
    fn default() -> Self {
        Self::built_in()
    }
}

impl TryFrom<MappingFile> for Mapping {
    type Error = MappingError;

    fn try_from(file: MappingFile) -> Result<Self, MappingError> {
        if let Some(version) = file.version.filter(|version| version != VERSION) {
            return Err(MappingError::Version { version });
        }
        let longest = file.patterns.values().map(Vec::len).max().unwrap_or(0);
        if longest > PATTERNS_MAX {
            return Err(MappingError::TooMany { n: longest });
        }
        let mut mapping = Self::built_in();
        mapping.ranges.extend(file.phase_ranges);
        mapping.patterns.extend(file.patterns);
        if let Some(category) = file.default_category {
            mapping.default_category = category;
        }
        Ok(mapping)
    }
}

#[cfg(test)]
mod tests;
