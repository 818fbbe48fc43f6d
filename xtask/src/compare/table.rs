//! Formats measurements as a Markdown table, and puts it into docs/performance.md.

use std::path::Path;

use anyhow::{Context, Result};

use super::measure::Sample;

/// A program's measurements.
pub(crate) struct Row {
    name: &'static str,
    median_ns: u64,
    least_ns: u64,
    peak_kib: u64,
    rounds: usize,
}

impl Row {
    pub(crate) fn new(name: &'static str, samples: &[Sample]) -> Self {
        let mut times: Vec<u64> = samples.iter().map(|sample| sample.wall_ns).collect();
        times.sort_unstable();
        Self {
            name,
            median_ns: times.get(times.len() / 2).copied().unwrap_or(0),
            least_ns: times.first().copied().unwrap_or(0),
            peak_kib: samples.iter().map(|sample| sample.peak_kib).max().unwrap_or(0),
            rounds: samples.len(),
        }
    }
}

/// The table: times, speed relative to `trace-cmd report`, and time relative to `cat`.
pub(crate) fn render(rows: &[Row]) -> String {
    let median = |name: &str| rows.iter().find(|row| row.name == name).map(|row| row.median_ns);
    let (report, cat) = (median("trace-cmd report"), median("cat"));
    let mut out = String::from(
        "| program | median | least | runs | peak memory | faster than trace-cmd report | times cat |\n\
         |---|--:|--:|--:|--:|--:|--:|\n",
    );
    for row in rows {
        let faster =
            report.map_or_else(String::new, |ns| format!("{:.1}x", ratio(ns, row.median_ns)));
        let times = cat.map_or_else(String::new, |ns| format!("{:.2}", ratio(row.median_ns, ns)));
        out += &format!(
            "| {} | {:.1} ms | {:.1} ms | {} | {:.1} MB | {faster} | {times} |\n",
            row.name,
            row.median_ns as f64 / 1e6,
            row.least_ns as f64 / 1e6,
            row.rounds,
            row.peak_kib as f64 * 1024.0 / 1e6,
        );
    }
    out
}

fn ratio(first: u64, other: u64) -> f64 {
    first as f64 / other.max(1) as f64
}

const BEGIN: &str = "<!-- measured: cargo xtask compare --record writes what follows -->";
const END: &str = "<!-- measured: end -->";

/// Inserts the tables between the two marks of the page.
pub(crate) fn record(page: &Path, tables: &str) -> Result<()> {
    let text = std::fs::read_to_string(page)?;
    let (before, rest) = text.split_once(BEGIN).context("the page lacks its first marker")?;
    let (_, after) = rest.split_once(END).context("the page lacks its last marker")?;
    std::fs::write(page, format!("{before}{BEGIN}\n\n{tables}{END}{after}"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &'static str, milliseconds: &[u64]) -> Row {
        let sample = |ms: &u64| Sample { wall_ns: ms * 1_000_000, peak_kib: 1000 };
        Row::new(name, &milliseconds.iter().map(sample).collect::<Vec<_>>())
    }

    #[test]
    fn ratios_are_of_medians() {
        let rows =
            [row("cat", &[12, 10, 90]), row("exits", &[24]), row("trace-cmd report", &[2400])];
        let text = render(&rows);
        assert!(
            text.contains("| exits | 24.0 ms | 24.0 ms | 1 | 1.0 MB | 100.0x | 2.00 |"),
            "{text}"
        );
        assert!(text.contains("| cat | 12.0 ms | 10.0 ms | 3 |"), "{text}");
    }

    #[test]
    fn only_what_stands_between_the_marks_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let page = folder.path().join("page.md");
        std::fs::write(&page, format!("a\n{BEGIN}\nold\n{END}\nb\n")).unwrap();
        record(&page, "new\n").unwrap();
        let text = std::fs::read_to_string(&page).unwrap();
        assert_eq!(text, format!("a\n{BEGIN}\n\nnew\n{END}\nb\n"));
        std::fs::write(&page, "no marks").unwrap();
        assert!(record(&page, "new").is_err());
    }
}
