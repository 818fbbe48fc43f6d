//! Compares text with an expected output in a file next to the test.

use std::fs;
use std::path::Path;

/// `1` rewrites the expected outputs: `make bless`.
const BLESS: &str = "HYPERSCOPE_BLESS";

/// Panics unless `actual` equals the content of the file `expected`; shows the first line that
/// differs.
///
/// A missing file also fails, so that no test passes without an expectation. `HYPERSCOPE_BLESS=1`
/// writes the file instead.
pub fn assert_golden(expected: impl AsRef<Path>, actual: &str) {
    let path = expected.as_ref();
    let shown = path.display();
    if std::env::var_os(BLESS).is_some_and(|value| value == "1") {
        fs::write(path, actual).unwrap_or_else(|error| panic!("{shown}: {error}"));
        return;
    }
    let expected =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{shown}: {error} ({BLESS}=1?)"));
    if let Some(difference) = difference(&expected, actual) {
        panic!("{shown}: {difference}\n({BLESS}=1 writes the output as expected)");
    }
}

/// The first line that differs, or which text ends first.
fn difference(expected: &str, actual: &str) -> Option<String> {
    if expected == actual {
        return None;
    }
    let (mut expected_lines, mut right) = (expected.lines(), actual.lines());
    for number in 1.. {
        match (expected_lines.next(), right.next()) {
            (None, None) => break,
            (a, b) if a == b => {}
            (a, b) => {
                let show = |line: Option<&str>| line.unwrap_or("(no line)").to_owned();
                return Some(format!(
                    "line {number}\n  expected: {}\n  actual:   {}",
                    show(a),
                    show(b)
                ));
            }
        }
    }
    Some("only line ends differ".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_differs_is_named() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        let found = difference("a\nb\n", "a\nc\n").unwrap_or_default();
        assert!(found.starts_with("line 2") && found.contains("expected: b"));
        let found = difference("a\n", "a\nb\n").unwrap_or_default();
        assert!(found.contains("expected: (no line)"));
        assert_eq!(difference("a\n", "a"), Some("only line ends differ".to_owned()));
    }

    #[test]
    #[should_panic(expected = "no-such-file")]
    fn a_missing_file_fails() {
        if std::env::var_os(BLESS).is_some() {
            panic!("no-such-file is not blessed");
        }
        assert_golden("/nonexistent/no-such-file", "");
    }
}
