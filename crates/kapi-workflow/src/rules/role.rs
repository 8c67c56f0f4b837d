//! The role in which an agent is asked a question, as data: who is asked, what they read, and how that
//! is said in a line.
//!
//! Which shape an answer in it has is known to its mode, see
//! [`crate::rules::modes::ModeAnswer::read`].

use kapi_core::mode::Mode;

use crate::rules::terms::WorkflowTerms;

/// One role of a mode.
#[derive(Debug, PartialEq, Eq)]
pub struct RoleSpec {
    /// The mode.
    pub mode: Mode,
    /// Its name, which is part of effect ids.
    pub name: &'static str,
    /// Who is asked, and in whose books it stands.
    pub by: AskedOf,
    /// What they are given to read.
    pub reads: Reads,
    /// What they remember of earlier questions of the workflow, besides what they are told.
    pub recalls: Recall,
    /// What they are asked, after `is asked`.
    pub asked: &'static str,
}

/// What an agent remembers of earlier questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recall {
    /// Nothing: each question is put to somebody who comes anew.
    Nothing,
    /// The conversation so far, where the agent can go on with one.
    Conversation,
}

/// Who is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskedOf {
    /// The agent that asks, plans and works.
    Agent,
    /// The agent that objects and reviews.
    Reviewer,
}

/// What is given to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// A commit.
    Commit,
    /// A commit, and what changed since the base.
    Change,
}

impl RoleSpec {
    /// Returns the agent that the terms name for it.
    #[must_use]
    pub fn agent<'terms>(&self, terms: &'terms WorkflowTerms) -> &'terms str {
        match self.by {
            AskedOf::Agent => &terms.agent,
            AskedOf::Reviewer => terms.reviewer(),
        }
    }
}
