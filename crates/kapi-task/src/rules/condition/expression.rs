//! A condition as an expression: `inputs.market == 'ETH' && !payload.dry`.
//!
//! Parsed once, with the place of what is wrong; the language and its words are those of the
//! original. It differs in three things, each on the safe side: lists and tables are equal when
//! their content is, nothing has inherited keys, and there is no negative zero.

mod parse;
mod token;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use kapi_core::value::KernelValue;
use serde::{Deserialize, Serialize};

/// The longest expression in bytes.
pub const EXPRESSION_BYTES_MAX: usize = 4 * 1024;
/// How deep parentheses and `!` may lie in each other.
pub const EXPRESSION_DEPTH_MAX: usize = 64;

/// An expression that can be evaluated. Invariant: the text parses to the tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Expression {
    text: String,
    root: ExpressionNode,
}

/// A text that is no expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read the condition {text:?}, column {column}: {reason}")]
pub struct ExpressionError {
    /// What was written.
    pub text: String,
    /// The column, in characters from 1.
    pub column: usize,
    /// The rule it breaks, in the words of the original.
    pub reason: String,
}

/// What an expression can look at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExpressionContext {
    /// The loop's inputs, a table.
    pub inputs: KernelValue,
    /// What the trigger carried.
    pub payload: KernelValue,
    /// What is known of the run, a table: `triggerType`, `triggerSource`.
    pub state: KernelValue,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ExpressionNode {
    Literal(KernelValue),
    Path(String),
    Not(Box<Self>),
    Both(Box<Self>, Box<Self>),
    Either(Box<Self>, Box<Self>),
    Compare(Box<Self>, Comparison, Box<Self>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Same,
    Different,
    Less,
    LessOrSame,
    More,
    MoreOrSame,
}

impl Expression {
    /// Parses an expression.
    ///
    /// # Errors
    /// When it is empty, too long, nests too deep or does not follow the grammar.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let trimmed = text.trim_matches(token::is_blank);
        let fault = |location: usize, reason: String| {
            let before = text.len() - text.trim_start_matches(token::is_blank).len();
            let skipped = text.get(..before).unwrap_or_default().chars().count();
            ExpressionError {
                text: text.chars().take(EXPRESSION_BYTES_MAX).collect(),
                column: skipped + token::chars_before(trimmed, location) + 1,
                reason,
            }
        };
        if trimmed.is_empty() {
            return Err(fault(0, "condition expression is empty".to_owned()));
        }
        if trimmed.len() > EXPRESSION_BYTES_MAX {
            let reason = format!("condition expression has more than {EXPRESSION_BYTES_MAX} bytes");
            return Err(fault(0, reason));
        }
        let parsed = token::tokens(trimmed).and_then(|tokens| parse::parse(&tokens));
        let root = parsed.map_err(|wrong| fault(wrong.location, wrong.reason))?;
        Ok(Self {
            text: trimmed.to_owned(),
            root,
        })
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Tells whether it holds.
    #[must_use]
    pub fn holds(&self, context: &ExpressionContext) -> bool {
        is_truthy(self.root.value(context).as_deref())
    }

    /// Returns every path that it looks at, in the order of the text.
    #[must_use]
    pub fn paths(&self) -> Vec<&str> {
        let mut paths = Vec::new();
        let mut left = vec![&self.root];
        while let Some(node) = left.pop() {
            match node {
                ExpressionNode::Literal(_) => {}
                ExpressionNode::Path(path) => paths.push(path.as_str()),
                ExpressionNode::Not(inner) => left.push(inner),
                ExpressionNode::Both(first, second)
                | ExpressionNode::Either(first, second)
                | ExpressionNode::Compare(first, _, second) => {
                    left.extend([second.as_ref(), first]);
                }
            }
        }
        paths
    }
}

impl ExpressionContext {
    /// Builds what a run of a loop is asked about: what triggered it, of which kind, and from where
    /// (an empty text where that is nowhere).
    #[must_use]
    pub fn of_run(inputs: KernelValue, payload: KernelValue, kind: &str, source: &str) -> Self {
        let state = [("triggerType", kind), ("triggerSource", source)];
        let state = state.map(|(name, text)| (name.to_owned(), KernelValue::from(text)));
        Self {
            inputs,
            payload,
            state: KernelValue::Map(state.into_iter().collect()),
        }
    }

    /// Looks a dotted path up; `None` for what is missing, which is not the same as nothing.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<Cow<'_, KernelValue>> {
        let (root, rest) = match path.split_once('.') {
            Some((root, rest)) => (root, Some(rest)),
            None => (path, None),
        };
        let root = match root {
            "inputs" => &self.inputs,
            "payload" => &self.payload,
            "state" => &self.state,
            _ => return None,
        };
        let Some(rest) = rest else {
            return Some(Cow::Borrowed(root));
        };
        if let Some(list) = length_of(rest).and_then(|list| match list {
            "" => Some(root),
            list => root.get(list),
        }) && let KernelValue::List(items) = list
        {
            let length = i64::try_from(items.len()).ok()?;
            return Some(Cow::Owned(KernelValue::Integer(length)));
        }
        root.get(rest).map(Cow::Borrowed)
    }
}

/// Returns the path of the list whose length a path asks for.
fn length_of(path: &str) -> Option<&str> {
    let list = path.strip_suffix("length")?;
    match list {
        "" => Some(""),
        list => list.strip_suffix('.'),
    }
}

fn is_truthy(value: Option<&KernelValue>) -> bool {
    value.is_some_and(KernelValue::is_truthy)
}

impl ExpressionNode {
    /// Returns what it comes to; `None` for a path that leads nowhere.
    fn value<'a>(&'a self, context: &'a ExpressionContext) -> Option<Cow<'a, KernelValue>> {
        let truth = match self {
            Self::Literal(value) => return Some(Cow::Borrowed(value)),
            Self::Path(path) => return context.get(path),
            Self::Not(inner) => !is_truthy(inner.value(context).as_deref()),
            Self::Both(left, right) => {
                is_truthy(left.value(context).as_deref())
                    && is_truthy(right.value(context).as_deref())
            }
            Self::Either(left, right) => {
                is_truthy(left.value(context).as_deref())
                    || is_truthy(right.value(context).as_deref())
            }
            Self::Compare(left, comparison, right) => {
                let (left, right) = (left.value(context), right.value(context));
                comparison.holds(left.as_deref(), right.as_deref())
            }
        };
        Some(Cow::Owned(KernelValue::Bool(truth)))
    }
}

impl Comparison {
    fn holds(self, left: Option<&KernelValue>, right: Option<&KernelValue>) -> bool {
        let order = || left?.order(right?);
        match self {
            Self::Same => left == right,
            Self::Different => left != right,
            Self::Less => order() == Some(Ordering::Less),
            Self::LessOrSame => order().is_some_and(Ordering::is_le),
            Self::More => order() == Some(Ordering::Greater),
            Self::MoreOrSame => order().is_some_and(Ordering::is_ge),
        }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl TryFrom<String> for Expression {
    type Error = ExpressionError;
    fn try_from(text: String) -> Result<Self, ExpressionError> {
        Self::parse(&text)
    }
}

impl From<Expression> for String {
    fn from(expression: Expression) -> Self {
        expression.text
    }
}

#[cfg(test)]
mod tests;
