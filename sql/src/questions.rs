//! Views, and named queries.

use std::io::{self, Write};

use datafusion::error::Result;
use datafusion::prelude::SessionContext;

const VIEWS: &str = include_str!("../views.sql");

/// A named query.
#[derive(Debug)]
pub(crate) struct Question {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its text: a description as a comment, and the query.
    pub(crate) sql: &'static str,
}

macro_rules! questions {
    ($($name:literal),* $(,)?) => {
        /// All named queries.
        pub(crate) const QUESTIONS: &[Question] =
            &[$(Question { name: $name, sql: include_str!(concat!("../questions/", $name, ".sql")) }),*];
    };
}

questions!["hosts", "nested", "requests", "slow-exits", "states", "waiting-vms"];

impl Question {
    /// Its description.
    fn asks(&self) -> &'static str {
        self.sql.lines().next().unwrap_or_default().trim_start_matches("-- ")
    }
}

/// Writes the names and descriptions of all named queries.
///
/// # Errors
/// When that can't be written.
pub(crate) fn list(out: &mut dyn Write) -> io::Result<()> {
    let width = QUESTIONS.iter().map(|question| question.name.len()).max().unwrap_or(0);
    for question in QUESTIONS {
        writeln!(out, "@{:width$}  {}", question.name, question.asks())?;
    }
    Ok(())
}

/// The views: name, description, and the statement that creates it.
pub(crate) fn views() -> impl Iterator<Item = (&'static str, String, &'static str)> {
    VIEWS.split(';').filter_map(|part| {
        let (about, statement) = part.split_once("CREATE VIEW ")?;
        let name = statement.split_whitespace().next()?;
        let lines = about.trim().lines().map(|line| line.trim_start_matches("-- "));
        let about = lines.skip_while(|line| line.is_empty()).collect::<Vec<_>>().join(" ");
        Some((name, about, part.trim()))
    })
}

/// Creates all views.
///
/// # Errors
/// When the tables don't match them.
pub(crate) async fn make_views(context: &SessionContext) -> Result<()> {
    for (.., statement) in views() {
        context.sql(statement).await?.collect().await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_and_questions_say_what_they_are() {
        let names: Vec<&str> = views().map(|view| view.0).collect();
        assert!(names.contains(&"exit_summary") && names.len() > 5, "{names:?}");
        assert!(views().all(|(_, about, _)| about.ends_with('.')));
        assert!(QUESTIONS.iter().all(|question| question.asks().ends_with('?')));
        let sorted = QUESTIONS.windows(2).all(|pair| pair[0].name < pair[1].name);
        assert!(sorted);
    }
}
