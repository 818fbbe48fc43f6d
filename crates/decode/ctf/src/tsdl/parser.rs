//! The parser's state: position, known types, and basic operations.

use std::collections::HashMap;

use raw_bytes::ByteOrder;

use super::attributes::Value;
use crate::CtfError;
use crate::field::FieldType;
use crate::tokens::{Token, TokenAt};

/// Maximum number of types in a trace's metadata: LTTng's metadata of all events of a kernel has about 50,000.
const MAX_NODES: usize = 1 << 20;
/// Maximum nesting depth of blocks and types.
const MAX_DEPTH: usize = 64;

/// The parser's state.
pub(super) struct Parser {
    tokens: std::iter::Peekable<std::vec::IntoIter<TokenAt>>,
    line: usize,
    pub(super) order: ByteOrder,
    /// Types by name, innermost scope last.
    scopes: Vec<HashMap<String, FieldType>>,
    nodes: usize,
}

impl Parser {
    pub(super) fn new(tokens: Vec<TokenAt>, order: ByteOrder) -> Self {
        let scopes = vec![HashMap::new()];
        Self { tokens: tokens.into_iter().peekable(), line: 1, order, scopes, nodes: 0 }
    }

    pub(super) fn fail<T>(&self, what: impl Into<String>) -> Result<T, CtfError> {
        Err(CtfError::Text { line: self.line, what: what.into() })
    }

    pub(super) fn is_at_end(&mut self) -> bool {
        self.tokens.peek().is_none()
    }

    pub(super) fn peek(&mut self) -> Option<&Token> {
        self.tokens.peek().map(|token| &token.token)
    }

    pub(super) fn next(&mut self) -> Option<Token> {
        let next = self.tokens.next()?;
        self.line = next.line;
        Some(next.token)
    }

    pub(super) fn is_sign(&mut self, sign: &str) -> bool {
        matches!(self.peek(), Some(Token::Sign(next)) if *next == sign)
    }

    /// Consumes a sign if it is next.
    pub(super) fn take_sign(&mut self, sign: &str) -> bool {
        let is_next = self.is_sign(sign);
        if is_next {
            self.next();
        }
        is_next
    }

    /// Consumes a sign, which must be next.
    pub(super) fn sign(&mut self, sign: &str) -> Result<(), CtfError> {
        if self.take_sign(sign) {
            return Ok(());
        }
        let found = self.found();
        self.fail(format!("expected {sign}, found {found}"))
    }

    fn found(&mut self) -> String {
        match self.next() {
            None => "the end".to_owned(),
            Some(Token::Word(word)) => word,
            Some(Token::Number(number)) => number.to_string(),
            Some(Token::Text(text)) => format!("{text:?}"),
            Some(Token::Sign(sign)) => sign.to_owned(),
        }
    }

    pub(super) fn is_word(&mut self, word: &str) -> bool {
        matches!(self.peek(), Some(Token::Word(next)) if next == word)
    }

    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let is_next = self.is_word(word);
        if is_next {
            self.next();
        }
        is_next
    }

    pub(super) fn word(&mut self, what: &str) -> Result<String, CtfError> {
        if let Some(Token::Word(_)) = self.peek()
            && let Some(Token::Word(word)) = self.next()
        {
            return Ok(word);
        }
        let found = self.found();
        self.fail(format!("expected {what}, found {found}"))
    }

    /// Words joined by dots.
    pub(super) fn path(&mut self) -> Result<String, CtfError> {
        let mut path = self.word("a name")?;
        while self.take_sign(".") || self.take_sign("->") {
            path.push('.');
            path.push_str(&self.word("a name")?);
        }
        Ok(path)
    }

    pub(super) fn number(&mut self) -> Result<i128, CtfError> {
        let is_negative = self.take_sign("-");
        match self.next() {
            Some(Token::Number(number)) => Ok(if is_negative { -number } else { number }),
            _ => self.fail("a number is missing"),
        }
    }

    pub(super) fn value(&mut self) -> Result<Value, CtfError> {
        match self.peek() {
            Some(Token::Text(_)) => match self.next() {
                Some(Token::Text(text)) => Ok(Value::Text(text)),
                _ => self.fail("a string is missing"),
            },
            Some(Token::Word(_)) => Ok(Value::Word(self.path()?)),
            _ => self.number().map(Value::Number),
        }
    }

    pub(super) fn open_scope(&mut self) -> Result<(), CtfError> {
        if self.scopes.len() >= MAX_DEPTH {
            return self.fail("blocks are nested too deeply");
        }
        self.scopes.push(HashMap::new());
        Ok(())
    }

    pub(super) fn close_scope(&mut self) {
        self.scopes.pop();
    }

    /// Counts the parts of a type: each use of a type name counts.
    pub(super) fn count(&mut self, field_type: &FieldType) -> Result<(), CtfError> {
        self.nodes = self.nodes.saturating_add(field_type.nodes());
        if self.nodes > MAX_NODES {
            return Err(CtfError::TooMany { most: MAX_NODES });
        }
        if field_type.depth() > MAX_DEPTH {
            return self.fail("types are nested too deeply");
        }
        Ok(())
    }

    /// Defines a type name in the innermost scope.
    pub(super) fn name(&mut self, name: String, field_type: FieldType) -> Result<(), CtfError> {
        self.count(&field_type)?;
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, field_type);
        }
        Ok(())
    }

    /// The type with a name.
    pub(super) fn named(&mut self, name: &str) -> Result<FieldType, CtfError> {
        let found = self.scopes.iter().rev().find_map(|scope| scope.get(name)).cloned();
        match found {
            Some(field_type) => {
                self.count(&field_type)?;
                Ok(field_type)
            }
            None => self.fail(format!("there is no type {name}")),
        }
    }
}
