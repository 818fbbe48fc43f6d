//! Legends: what titles of columns mean, as far as tables have these columns.

/// Titles of columns, and what their cells mean.
pub type Legend = Vec<(&'static str, &'static str)>;

/// Blanks between the columns of a table.
const GAP: &str = "  ";

/// The legend in a line of its own, without the columns that no table of the text has; nothing if none is left.
#[must_use]
pub fn legend_text(legend: &[(&str, &str)], text: &str) -> String {
    let shown = legend.iter().filter(|(title, _)| has_column(text, title));
    let terms: Vec<String> = shown.map(|(title, meaning)| format!("{title} = {meaning}")).collect();
    if terms.is_empty() { String::new() } else { format!("\n{}\n", terms.join("; ")) }
}

/// Whether a row of the text has a cell of this text.
fn has_column(text: &str, title: &str) -> bool {
    let has_cell = |line: &str| line.split(GAP).any(|cell| cell.trim() == title);
    text.lines().filter(|line| line.contains(GAP)).any(has_cell)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_legend_explains_only_columns_that_are_there() {
        let legend = [("before exit", "host work before kvm_exit"), ("p50", "median"), ("±", "-")];
        let text = "1 exit took p50 of all\nreason  exits   p50\nhlt         1  1 ns\n";
        assert_eq!(legend_text(&legend, text), "\np50 = median\n");
        assert_eq!(legend_text(&legend, "p50 of a sentence, before exit\n"), "");
    }
}
