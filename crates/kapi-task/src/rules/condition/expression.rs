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

use kapi_core::value::Value;
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
    root: Node,
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
pub struct Context {
    /// The loop's inputs, a table.
    pub inputs: Value,
    /// What the trigger carried.
    pub payload: Value,
    /// What is known of the run, a table: `triggerType`, `triggerSource`.
    pub state: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    Literal(Value),
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
        let fault = |place: usize, reason: String| {
            let before = text.len() - text.trim_start_matches(token::is_blank).len();
            let skipped = text.get(..before).unwrap_or_default().chars().count();
            ExpressionError {
                text: text.chars().take(EXPRESSION_BYTES_MAX).collect(),
                column: skipped + token::chars_before(trimmed, place) + 1,
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
        let root = parsed.map_err(|wrong| fault(wrong.place, wrong.reason))?;
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
    pub fn holds(&self, context: &Context) -> bool {
        is_truthy(self.root.value(context).as_deref())
    }

    /// Returns every path that it looks at, in the order of the text.
    #[must_use]
    pub fn paths(&self) -> Vec<&str> {
        let mut paths = Vec::new();
        let mut left = vec![&self.root];
        while let Some(node) = left.pop() {
            match node {
                Node::Literal(_) => {}
                Node::Path(path) => paths.push(path.as_str()),
                Node::Not(inner) => left.push(inner),
                Node::Both(first, second)
                | Node::Either(first, second)
                | Node::Compare(first, _, second) => left.extend([second.as_ref(), first]),
            }
        }
        paths
    }
}

impl Context {
    /// Builds what a run of a loop is asked about.
    #[must_use]
    pub fn of_run(inputs: Value, payload: Value, kind: &str, source: Option<&str>) -> Self {
        let source = source.map(|source| ("triggerSource".to_owned(), Value::from(source)));
        let kind = ("triggerType".to_owned(), Value::from(kind));
        Self {
            inputs,
            payload,
            state: Value::Map([kind].into_iter().chain(source).collect()),
        }
    }

    /// Looks a dotted path up; `None` for what is missing, which is not the same as nothing.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<Cow<'_, Value>> {
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
        }) && let Value::List(items) = list
        {
            let length = i64::try_from(items.len()).ok()?;
            return Some(Cow::Owned(Value::Integer(length)));
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

fn is_truthy(value: Option<&Value>) -> bool {
    value.is_some_and(Value::is_truthy)
}

impl Node {
    /// Returns what it comes to; `None` for a path that leads nowhere.
    fn value<'a>(&'a self, context: &'a Context) -> Option<Cow<'a, Value>> {
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
        Some(Cow::Owned(Value::Bool(truth)))
    }
}

impl Comparison {
    fn holds(self, left: Option<&Value>, right: Option<&Value>) -> bool {
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
