//! Wraps sentences at words if a terminal is too narrow.

use std::borrow::Cow;

/// Indentation of continuation lines, by which they differ from rows of a table.
const INDENT: &str = "  ";
/// Narrower terminals get no wrapping, because words do not fit.
const MIN_WIDTH: usize = 20;

/// The text with sentences wrapped to `width` columns. Rows of tables, recognized by two spaces
/// between columns, remain unchanged: a table adapts itself.
#[must_use]
pub fn broken_at(text: &str, width: Option<usize>) -> Cow<'_, str> {
    let Some(width) = width.filter(|&width| width >= MIN_WIDTH) else { return text.into() };
    if text.lines().all(|line| !is_sentence_over(line, width)) {
        return text.into();
    }
    let mut broken = String::with_capacity(text.len());
    for line in text.lines() {
        if is_sentence_over(line, width) {
            broken += &break_line(line, width);
        } else {
            broken += line;
        }
        broken.push('\n');
    }
    broken.into()
}

/// A line with a label and a text, which is wrapped to the right of the label if `width` is too
/// small.
#[must_use]
pub fn after_label(label: &str, text: &str, width: Option<usize>) -> String {
    let begin = label.chars().count();
    let Some(width) = width.filter(|&width| width >= begin + MIN_WIDTH) else {
        return format!("{label}{text}\n");
    };
    let indent = " ".repeat(begin);
    let options = textwrap::Options::new(width).initial_indent(label).subsequent_indent(&indent);
    fill(text, options) + "\n"
}

fn is_sentence_over(line: &str, width: usize) -> bool {
    // The number of bytes is at least the number of columns.
    line.len() > width
        && textwrap::core::display_width(line) > width
        && !line.trim_start().contains(INDENT)
}

fn break_line(line: &str, width: usize) -> String {
    let begin = line.len() - line.trim_start().len();
    let indent = line.get(..begin).unwrap_or("").to_owned() + INDENT;
    fill(line, textwrap::Options::new(width).subsequent_indent(&indent))
}

fn fill(text: &str, options: textwrap::Options<'_>) -> String {
    let options = options
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .wrap_algorithm(textwrap::WrapAlgorithm::FirstFit);
    textwrap::fill(text, options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_broken_between_words() {
        let text = "left out for width: blocked, halt poll; csv and json have all\n";
        let broken = broken_at(text, Some(40));
        assert_eq!(broken, "left out for width: blocked, halt poll;\n  csv and json have all\n");
    }

    #[test]
    fn the_same_words_come_out_and_no_line_is_wider_if_words_are_not() {
        let text =
            "  12 requests handed on without an end that was seen: still under way\n\nshort\n";
        for width in MIN_WIDTH..80 {
            let broken = broken_at(text, Some(width));
            assert!(broken.lines().all(|line| line.chars().count() <= width), "{width}: {broken}");
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(words(&broken), words(text));
        }
    }

    #[test]
    fn a_text_after_a_label_stays_to_its_right() {
        let text = "unknown: nothing counts it";
        let lines = after_label("  lost    ", text, Some(30));
        assert_eq!(lines, "  lost    unknown: nothing\n          counts it\n");
        assert_eq!(after_label("  lost    ", text, None), format!("  lost    {text}\n"));
    }

    #[test]
    fn rows_of_tables_long_words_and_text_without_a_width_stay() {
        let row = "reason                         exits  time\n";
        assert_eq!(broken_at(row, Some(20)), row);
        let path = "/a/very/long/path/that-has-no/blank-in-it: 3 exits\n";
        let broken = broken_at(path, Some(20));
        assert_eq!(broken, "/a/very/long/path/that-has-no/blank-in-it:\n  3 exits\n");
        assert_eq!(broken_at(path, None), path);
    }
}
