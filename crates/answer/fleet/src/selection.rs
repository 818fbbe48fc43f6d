//! Conditions on sessions, in a subset of SQL: `kernel_release = '6.1.0-56' AND NOT pool IN ('canary', 'test')`.
//!
//! Names are columns of `sessions`, `date` (the UTC day on which the session began) and keys of labels. A comparison
//! with an unknown value is neither true nor false, as in SQL.

use std::fmt;

use crate::fact::Fact;

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    text: String,
    root: Node,
}

#[derive(Clone, Debug, PartialEq)]
enum Node {
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Not(Box<Node>),
    Test { name: String, at: usize, test: Test },
}

#[derive(Clone, Debug, PartialEq)]
enum Test {
    Compare(Operator, Literal),
    Like(String),
    In(Vec<Literal>),
    IsNull,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    Other,
    Less,
    AtMost,
    More,
    AtLeast,
}

#[derive(Clone, Debug, PartialEq)]
enum Literal {
    Text(String),
    Number(f64),
}

/// The error for a condition that can't be parsed, or uses an unknown name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectionError {
    text: String,
    at: usize,
    what: String,
}

impl std::error::Error for SelectionError {}

impl fmt::Display for SelectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before = self.text.get(..self.at).unwrap_or_default().chars().count();
        write!(f, "{}\n  {}\n  {:before$}^", self.what, self.text, "")
    }
}

impl std::str::FromStr for Selection {
    type Err = SelectionError;

    fn from_str(text: &str) -> Result<Self, SelectionError> {
        let mut parser = Parser { text, at: 0, depth: 0 };
        let root = parser.either()?;
        if parser.next_is_more() {
            return Err(parser.error("expected AND, OR or the end"));
        }
        Ok(Self { text: text.to_owned(), root })
    }
}

impl Selection {
    /// The condition as written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Holds if either condition holds.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        let text = format!("({}) OR ({})", self.text, other.text);
        let [first, second] = [self, other].map(|selection| Box::new(selection.root.clone()));
        Self { text, root: Node::Or(first, second) }
    }

    /// Checks that all names of the condition exist.
    ///
    /// # Errors
    /// At the first unknown name.
    pub fn check(
        &self,
        is_known: &dyn Fn(&str) -> bool,
        known: &str,
    ) -> Result<(), SelectionError> {
        self.root.check(is_known).map_err(|(name, at)| SelectionError {
            text: self.text.clone(),
            at,
            what: format!("sessions have no column {name}; columns are: {known}"),
        })
    }

    pub(crate) fn holds<'f>(&self, fact: &dyn Fn(&str) -> Option<&'f Fact>) -> bool {
        self.root.holds(fact) == Some(true)
    }
}

impl Node {
    fn check(&self, is_known: &dyn Fn(&str) -> bool) -> Result<(), (String, usize)> {
        match self {
            Self::And(first, other) | Self::Or(first, other) => {
                first.check(is_known)?;
                other.check(is_known)
            }
            Self::Not(node) => node.check(is_known),
            Self::Test { name, .. } if is_known(name) => Ok(()),
            Self::Test { name, at, .. } => Err((name.clone(), *at)),
        }
    }

    /// Whether the condition holds; `None`: unknown.
    fn holds<'f>(&self, fact: &dyn Fn(&str) -> Option<&'f Fact>) -> Option<bool> {
        match self {
            Self::And(first, other) => match (first.holds(fact), other.holds(fact)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (first, other) => Some(first? && other?),
            },
            Self::Or(first, other) => match (first.holds(fact), other.holds(fact)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (first, other) => Some(first? || other?),
            },
            Self::Not(node) => node.holds(fact).map(|holds| !holds),
            Self::Test { name, test, .. } => test.holds(fact(name)),
        }
    }
}

impl Test {
    fn holds(&self, fact: Option<&Fact>) -> Option<bool> {
        match self {
            Self::IsNull => Some(fact.is_none()),
            Self::Like(pattern) => Some(is_like(&fact?.text(), pattern)),
            Self::In(all) => {
                let fact = fact?;
                Some(all.iter().any(|literal| Operator::Equal.holds(fact, literal)))
            }
            Self::Compare(operator, literal) => Some(operator.holds(fact?, literal)),
        }
    }
}

impl Operator {
    fn holds(self, fact: &Fact, literal: &Literal) -> bool {
        let order = match (fact, literal) {
            (Fact::Number(number), Literal::Number(other)) => number.partial_cmp(other),
            (Fact::Text(text), Literal::Text(other)) => Some(text.as_str().cmp(other)),
            (Fact::Number(number), Literal::Text(other)) => {
                other.parse().ok().and_then(|other: f64| number.partial_cmp(&other))
            }
            // A label that looks like a number.
            (Fact::Text(text), Literal::Number(other)) => {
                text.parse().ok().and_then(|number: f64| number.partial_cmp(other))
            }
        };
        let Some(order) = order else { return self == Self::Other };
        match self {
            Self::Equal => order.is_eq(),
            Self::Other => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::AtMost => order.is_le(),
            Self::More => order.is_gt(),
            Self::AtLeast => order.is_ge(),
        }
    }
}

/// `%`: any text; `_`: any character.
fn is_like(text: &str, pattern: &str) -> bool {
    let (text, pattern): (Vec<char>, Vec<char>) =
        (text.chars().collect(), pattern.chars().collect());
    // By number of characters: whether the pattern so far matches that many first characters.
    let mut fits = vec![false; text.len() + 1];
    if let Some(none) = fits.first_mut() {
        *none = true;
    }
    for symbol in pattern {
        let mut next = vec![false; fits.len()];
        let mut any = false;
        for (at, slot) in next.iter_mut().enumerate() {
            any |= fits.get(at).copied().unwrap_or(false);
            let before = at.checked_sub(1);
            let is_match = before.is_some_and(|before| {
                let is_same =
                    text.get(before).is_some_and(|character| symbol == '_' || *character == symbol);
                is_same && fits.get(before).copied().unwrap_or(false)
            });
            *slot = if symbol == '%' { any } else { is_match };
        }
        fits = next;
    }
    fits.last().copied().unwrap_or(false)
}

/// Max depth of nested conditions.
const MAX_DEPTH: u32 = 64;

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: u32,
}

impl<'t> Parser<'t> {
    fn error(&self, what: &str) -> SelectionError {
        SelectionError { text: self.text.to_owned(), at: self.at, what: what.to_owned() }
    }

    fn rest(&mut self) -> &'t str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    fn next_is_more(&mut self) -> bool {
        !self.rest().is_empty()
    }

    /// Consumes a symbol, if it is next.
    fn takes(&mut self, symbol: &str) -> bool {
        let is_next = self.rest().starts_with(symbol);
        if is_next {
            self.at += symbol.len();
        }
        is_next
    }

    fn word(&mut self) -> &'t str {
        let rest = self.rest();
        let is_end =
            |character: char| !character.is_alphanumeric() && !matches!(character, '_' | '-' | '.');
        rest.get(..rest.find(is_end).unwrap_or(rest.len())).unwrap_or_default()
    }

    /// Consumes a keyword, if it is next.
    fn takes_word(&mut self, word: &str) -> bool {
        let is_next = self.word().eq_ignore_ascii_case(word);
        if is_next {
            self.at += word.len();
        }
        is_next
    }

    fn either(&mut self) -> Result<Node, SelectionError> {
        let mut node = self.all()?;
        while self.takes_word("OR") {
            node = Node::Or(Box::new(node), Box::new(self.all()?));
        }
        Ok(node)
    }

    fn all(&mut self) -> Result<Node, SelectionError> {
        let mut node = self.condition()?;
        while self.takes_word("AND") {
            node = Node::And(Box::new(node), Box::new(self.condition()?));
        }
        Ok(node)
    }

    fn condition(&mut self) -> Result<Node, SelectionError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error("conditions are nested too deeply"));
        }
        let node = if self.takes_word("NOT") {
            Node::Not(Box::new(self.condition()?))
        } else if self.takes("(") {
            let node = self.either()?;
            if !self.takes(")") {
                return Err(self.error("expected , or )"));
            }
            node
        } else {
            self.test()?
        };
        self.depth -= 1;
        Ok(node)
    }

    fn test(&mut self) -> Result<Node, SelectionError> {
        let name = self.word().to_owned();
        let at = self.at;
        if name.is_empty() {
            return Err(self.error("expected a column name, such as kernel_release"));
        }
        self.at += name.len();
        let node = |test| Node::Test { name: name.clone(), at, test };
        if self.takes_word("IS") {
            let is_not = self.takes_word("NOT");
            if !self.takes_word("NULL") {
                return Err(self.error("expected NULL"));
            }
            let test = node(Test::IsNull);
            return Ok(if is_not { Node::Not(Box::new(test)) } else { test });
        }
        let is_not = self.takes_word("NOT");
        let test = if self.takes_word("LIKE") {
            match self.literal()? {
                Literal::Text(pattern) => Test::Like(pattern),
                Literal::Number(_) => return Err(self.error("expected a text before this")),
            }
        } else if self.takes_word("IN") {
            Test::In(self.list()?)
        } else if is_not {
            return Err(self.error("expected LIKE or IN"));
        } else {
            Test::Compare(self.operator()?, self.literal()?)
        };
        Ok(if is_not { Node::Not(Box::new(node(test))) } else { node(test) })
    }

    fn operator(&mut self) -> Result<Operator, SelectionError> {
        let all = [
            ("<=", Operator::AtMost),
            (">=", Operator::AtLeast),
            ("<>", Operator::Other),
            ("!=", Operator::Other),
            ("=", Operator::Equal),
            ("<", Operator::Less),
            (">", Operator::More),
        ];
        let found = all.into_iter().find(|(symbol, _)| self.takes(symbol));
        found.map(|(_, operator)| operator).ok_or_else(|| {
            self.error("expected an operator: =, <>, <, <=, >, >=, LIKE, IN or IS NULL")
        })
    }

    fn list(&mut self) -> Result<Vec<Literal>, SelectionError> {
        if !self.takes("(") {
            return Err(self.error("( is expected"));
        }
        let mut all = vec![self.literal()?];
        while self.takes(",") {
            all.push(self.literal()?);
        }
        if self.takes(")") { Ok(all) } else { Err(self.error("expected , or )")) }
    }

    fn literal(&mut self) -> Result<Literal, SelectionError> {
        if !self.takes("'") {
            let word = self.word();
            let Some(number) = word.parse().ok().filter(|number: &f64| number.is_finite()) else {
                return Err(self.error("expected a number, or a text in ''"));
            };
            self.at += word.len();
            return Ok(Literal::Number(number));
        }
        let mut text = String::new();
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let Some(end) = rest.find('\'') else {
                return Err(self.error("the text that begins here lacks its closing '"));
            };
            text.push_str(rest.get(..end).unwrap_or_default());
            self.at += end + 1;
            // Two quotes stand for one within the text.
            if !self.text.get(self.at..).unwrap_or_default().starts_with('\'') {
                return Ok(Literal::Text(text));
            }
            text.push('\'');
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(text: &str) -> bool {
        let selection: Selection = text.parse().unwrap();
        let kernel = Fact::Text("6.1.0-56".to_owned());
        let cpus = Fact::Number(64.0);
        let pool = Fact::Text("it's".to_owned());
        let fact = |name: &str| match name {
            "kernel_release" => Some(&kernel),
            "cpus" => Some(&cpus),
            "pool" => Some(&pool),
            _ => None,
        };
        selection.holds(&fact)
    }

    #[test]
    fn conditions_hold_as_in_sql() {
        for yes in [
            "kernel_release = '6.1.0-56'",
            "kernel_release LIKE '6.1.%' AND cpus >= 64",
            "kernel_release like '%-5_'",
            "cpus > 100 OR cpus < 65",
            "NOT cpus = 3 AND NOT (cpus = 64 AND cpus = 65)",
            "pool IN ('x', 'it''s')",
            "pool NOT LIKE 'x%'",
            "rack IS NULL AND pool IS NOT NULL",
            "cpus <> 63 AND kernel_release != 'x'",
            "rack = 'a' OR cpus = 64",
        ] {
            assert!(holds(yes), "{yes}");
        }
        for no in [
            "rack = 'a'",
            "NOT rack = 'a'",
            "rack <> 'a'",
            "cpus = 64 AND rack = 'a'",
            "kernel_release LIKE '6.1'",
            "kernel_release < '6.1.0-5'",
            "cpus NOT IN (63, 64)",
        ] {
            assert!(!holds(no), "{no}");
        }
    }

    #[test]
    fn what_is_wrong_is_pointed_at() {
        for (text, at, words) in [
            ("", 0, "expected a column name"),
            ("cpus", 4, "expected an operator"),
            ("cpus = ", 7, "a number, or a text"),
            ("cpus = 'x", 8, "lacks its closing '"),
            ("cpus = 1 cpus", 9, "AND, OR or the end"),
            ("(cpus = 1", 9, "expected , or )"),
            ("cpus IN (1", 10, ", or )"),
            ("cpus NOT 1", 9, "LIKE or IN"),
        ] {
            let error = text.parse::<Selection>().unwrap_err();
            assert_eq!(error.at, at, "{error}");
            assert!(error.what.contains(words), "{error}");
        }
        let deep = format!("{}cpus = 1", "(".repeat(10_000));
        assert!(deep.parse::<Selection>().is_err());
        let unknown: Selection = "cpus = 1 AND cpu = 2".parse().unwrap();
        let error = unknown.check(&|name| name == "cpus", "cpus").unwrap_err();
        assert_eq!(error.at, 13);
        assert!(error.to_string().ends_with("\n               ^"), "{error}");
    }
}
