//! A fact about a session: one of its columns, or a label.

/// A fact about a session.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fact {
    Text(String),
    Number(f64),
}

impl Fact {
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => number.to_string(),
        }
    }
}
