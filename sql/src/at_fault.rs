//! Explains errors of a query, with their position.

use datafusion::common::diagnostic::Diagnostic;
use datafusion::error::DataFusionError;

/// The error message, with the line of the query and a mark below the position.
pub(crate) fn explain(error: &DataFusionError, query: &str) -> String {
    let diagnostic = error.diagnostic();
    let place = diagnostic
        .and_then(|diagnostic| diagnostic.span)
        .map(|span| (span.start.line, span.start.column))
        .or_else(|| place_in(&error.to_string()))
        .or_else(|| is_cut(error).then(|| end_of(query)));
    let text = diagnostic.map_or_else(|| in_words(error), words_of);
    match place.and_then(|(line, column)| marked(query, line, column)) {
        Some(marked) => format!("{text}\n{marked}"),
        None => text,
    }
}

fn words_of(diagnostic: &Diagnostic) -> String {
    let notes = diagnostic.notes.iter().map(|note| note.message.as_str());
    let helps = diagnostic.helps.iter().map(|help| help.message.as_str());
    let message = diagnostic.message.as_str();
    let is_of_table = message.starts_with("table '") && message.ends_with("' not found");
    let list = is_of_table.then_some("\\d lists those there are");
    let all: Vec<&str> = [message].into_iter().chain(list).chain(notes).chain(helps).collect();
    all.join("; ")
}

/// The innermost error, without the engine's wrapping.
pub(crate) fn in_words(error: &DataFusionError) -> String {
    match error.find_root() {
        DataFusionError::External(cause) => cause.to_string(),
        DataFusionError::SQL(..) => {
            let text = error.strip_backtrace();
            let at = text.find("ParserError(\"").map(|at| at + "ParserError(\"".len());
            let inner = at.and_then(|at| text.get(at..)).map(|text| text.trim_end_matches("\")"));
            inner.unwrap_or(&text).to_owned()
        }
        root => root.strip_backtrace(),
    }
}

/// Whether the query is incomplete.
fn is_cut(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::SQL(..))
        && error.to_string().contains("found: EOF")
}

/// The end of a query.
fn end_of(query: &str) -> (u64, u64) {
    let last = query.lines().last().unwrap_or_default();
    (query.lines().count() as u64, last.chars().count() as u64 + 1)
}

/// The position in a syntax error: `at Line: 1, Column: 8`.
fn place_in(text: &str) -> Option<(u64, u64)> {
    let (_, place) = text.rsplit_once("Line: ")?;
    let (line, column) = place.split_once(", Column: ")?;
    let digits = column.find(|c: char| !c.is_ascii_digit()).unwrap_or(column.len());
    Some((line.parse().ok()?, column.get(..digits)?.parse().ok()?))
}

/// A line of the query, with a mark below a position.
pub(crate) fn marked(query: &str, line: u64, column: u64) -> Option<String> {
    let text = query.lines().nth(usize::try_from(line.checked_sub(1)?).ok()?)?;
    let before = usize::try_from(column.checked_sub(1)?).ok()?.min(text.chars().count());
    Some(format!("  {text}\n  {}^", " ".repeat(before)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_below_the_word() {
        let query = "SELECT a\nFROM b";
        assert_eq!(marked(query, 2, 6).as_deref(), Some("  FROM b\n       ^"));
        assert_eq!(place_in("sql parser error: x at Line: 2, Column: 17"), Some((2, 17)));
        assert_eq!(place_in("no place"), None);
        assert_eq!(end_of(query), (2, 7));
        assert_eq!(marked(query, 7, 1), None);
        assert_eq!(marked(query, 0, 1), None);
    }
}
