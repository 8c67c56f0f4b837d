//! The grammar of expressions: `||` binds least, then `&&`, comparisons from the left, `!`.
//!
//! Knows words and their places, not what they are worth.

use crate::rules::condition::expression::token::{Token, TokenError, TokenKind};
use crate::rules::condition::expression::{Comparison, EXPRESSION_DEPTH_MAX, ExpressionNode};

/// Builds the tree of an expression.
pub(super) fn parse(tokens: &[Token]) -> Result<ExpressionNode, TokenError> {
    let mut parser = Parser { tokens, depth: 0 };
    let root = parser.either()?;
    match parser.kind() {
        TokenKind::End => Ok(root),
        TokenKind::Sign(_) | TokenKind::Literal(_) | TokenKind::Path(_) => Err(parser.unexpected()),
    }
}

/// Invariant: the last word says that it is the end, and is never taken.
struct Parser<'a> {
    tokens: &'a [Token],
    depth: usize,
}

impl Parser<'_> {
    fn kind(&self) -> &TokenKind {
        self.tokens
            .first()
            .map_or(&TokenKind::End, |token| &token.kind)
    }

    fn location(&self) -> usize {
        self.tokens.first().map_or(0, |token| token.location)
    }

    fn unexpected(&self) -> TokenError {
        self.wrong(format!("unexpected token at {}", self.location()))
    }

    fn wrong(&self, reason: String) -> TokenError {
        TokenError {
            location: self.location(),
            reason,
        }
    }

    fn skip(&mut self) {
        self.tokens = self.tokens.get(1..).unwrap_or_default();
    }

    fn takes(&mut self, wanted: &str) -> bool {
        let is_it = matches!(self.kind(), TokenKind::Sign(sign) if *sign == wanted);
        if is_it {
            self.skip();
        }
        is_it
    }

    fn either(&mut self) -> Result<ExpressionNode, TokenError> {
        let mut node = self.both()?;
        while self.takes("||") {
            node = ExpressionNode::Either(Box::new(node), Box::new(self.both()?));
        }
        Ok(node)
    }

    fn both(&mut self) -> Result<ExpressionNode, TokenError> {
        let mut node = self.compared()?;
        while self.takes("&&") {
            node = ExpressionNode::Both(Box::new(node), Box::new(self.compared()?));
        }
        Ok(node)
    }

    fn compared(&mut self) -> Result<ExpressionNode, TokenError> {
        let mut node = self.negated()?;
        while let Some(comparison) = self.comparison() {
            node = ExpressionNode::Compare(Box::new(node), comparison, Box::new(self.negated()?));
        }
        Ok(node)
    }

    fn comparison(&mut self) -> Option<Comparison> {
        let TokenKind::Sign(sign) = self.kind() else {
            return None;
        };
        let found = match *sign {
            "==" => Comparison::Same,
            "!=" => Comparison::Different,
            "<" => Comparison::Less,
            "<=" => Comparison::LessOrSame,
            ">" => Comparison::More,
            ">=" => Comparison::MoreOrSame,
            _ => return None,
        };
        self.skip();
        Some(found)
    }

    fn negated(&mut self) -> Result<ExpressionNode, TokenError> {
        if self.takes("!") {
            self.deepen()?;
            let inner = self.negated()?;
            self.depth -= 1;
            return Ok(ExpressionNode::Not(Box::new(inner)));
        }
        self.primary()
    }

    fn primary(&mut self) -> Result<ExpressionNode, TokenError> {
        let node = match self.kind() {
            TokenKind::Literal(value) => ExpressionNode::Literal(value.clone()),
            TokenKind::Path(path) => ExpressionNode::Path(path.clone()),
            TokenKind::Sign("(") => return self.parenthesised(),
            TokenKind::Sign(_) | TokenKind::End => return Err(self.unexpected()),
        };
        self.skip();
        Ok(node)
    }

    fn parenthesised(&mut self) -> Result<ExpressionNode, TokenError> {
        self.skip();
        self.deepen()?;
        let inner = self.either()?;
        self.depth -= 1;
        if self.takes(")") {
            return Ok(inner);
        }
        let reason = format!("missing closing parenthesis near {}", self.location());
        Err(self.wrong(reason))
    }

    fn deepen(&mut self) -> Result<(), TokenError> {
        self.depth += 1;
        if self.depth > EXPRESSION_DEPTH_MAX {
            let location = self.location();
            let reason = format!("nested more than {EXPRESSION_DEPTH_MAX} deep at {location}");
            return Err(self.wrong(reason));
        }
        Ok(())
    }
}
