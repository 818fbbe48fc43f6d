//! The page of `hyperscope ab`: by what each metric differs, and every run as a point.

use analyses::Comparison;
use analyses::ab::{AbMetric, AbSide};
use analyses::diff::Scale;

use super::{AbReport, TABLE, columns, number};
use crate::column;
use crate::figures::{Axis, Mark, Page, Plot, table};
use crate::table::Table;
use crate::units::plural;

/// Pixels of the figure of runs, and of that of ratios: its width, a metric's line.
const RUNS: (f64, f64) = (560.0, 260.0);
const RATIOS: f64 = 640.0;
const RATIO: f64 = 34.0;
const RATIOS_EDGES: f64 = 80.0;

impl AbReport {
    /// A page with all runs as points, in one file that needs no network.
    #[must_use]
    pub fn page(&self) -> String {
        let mut page = Page::new(&self.workload.join(" "));
        page.paragraph("lead", &self.verdict());
        for (name, setup) in ["A", "B"].into_iter().zip(&self.setups) {
            page.code(name, setup);
        }
        self.ratios(&mut page);
        page.heading("Every run, in the order in which they ran");
        page.key("A", "B");
        let note =
            "A dashed line is a mean, a ring a run far from the others of its configuration.";
        page.paragraph("note", note);
        let metrics = self.ab.metrics.iter().enumerate();
        page.figures(&metrics.map(|(at, metric)| self.runs(at, metric)).collect::<Vec<_>>());
        page.heading("All numbers");
        let mut drawn = Table::default();
        column::draw(&columns(), &mut drawn, TABLE, &self.rows());
        page.table(&table(&drawn.lines()));
        for note in self.notes() {
            page.paragraph("note", &note);
        }
        page.html()
    }

    /// What the workload's own metric says.
    fn verdict(&self) -> String {
        let blocks = plural(self.ab.runs.len() as u64 / 2, "block");
        let Some(metric) = self.ab.metrics.get(self.main_metric) else { return blocks };
        let [a, b] = metric.means.map(|mean| number(metric, mean));
        let name = &metric.name;
        let chance = match (metric.is_significant(), metric.p_adjusted) {
            (true, _) => "which is hardly chance",
            (false, Some(_)) => "which may be chance",
            (false, None) => "of which too few runs say whether it is chance",
        };
        let change = ratio(metric).map_or(String::new(), |change| {
            format!(
                ": {}, 95% within {:.3}× and {:.3}×,",
                times(change.change),
                change.low,
                change.high
            )
        });
        format!("{name} is {a} under A, {b} under B{change} {chance}. {blocks} of one run each.")
    }

    /// By what B differs from A, metric by metric.
    fn ratios(&self, page: &mut Page) {
        let with_ratio: Vec<(&AbMetric, &Comparison)> =
            self.ab.metrics.iter().filter_map(|metric| Some((metric, ratio(metric)?))).collect();
        if with_ratio.is_empty() {
            return;
        }
        page.heading("What B is of A");
        let ends = with_ratio.iter().flat_map(|(_, change)| [change.low, change.high]);
        let rows = with_ratio.len() as f64;
        let x = Axis::of(ends.chain([1.0]));
        let size = (RATIOS, RATIOS_EDGES + RATIO * rows);
        let mut plot = Plot::new(size, x, Axis::exactly(0.0, rows));
        plot.axes(("B / A", &|ratio| format!("{ratio:.3}×")), ("", &|_| String::new()));
        plot.line("one", &[(1.0, 0.0), (1.0, rows)]);
        for (at, (metric, change)) in with_ratio.iter().enumerate() {
            let y = rows - at as f64 - 0.65;
            let mark = if metric.is_significant() { Mark::B } else { Mark::A };
            let class = if metric.is_significant() { "b" } else { "a" };
            plot.line(class, &[(change.low, y), (change.high, y)]);
            let sure = if metric.is_significant() { "" } else { ", may be chance" };
            let said = format!("{}: {}{sure}", metric.name, times(change.change));
            plot.point((change.change, y), mark, false, &said);
            plot.words((change.change, y), "middle", &said);
        }
        page.key("may be chance", "hardly chance");
        let said =
            "By metric, what B is of A, with the interval of 95%: the table below has the numbers";
        page.figures(&[(
            "Means of the blocks’ ratios, with their intervals of 95%".to_owned(),
            plot.svg(said),
        )]);
    }

    /// All runs of a metric.
    fn runs(&self, at: usize, metric: &AbMetric) -> (String, String) {
        let value = |place: usize| self.ab.runs.get(place)?.values.get(at).copied();
        let places = || (0..self.ab.runs.len()).filter_map(|place| Some((place, value(place)?)));
        let x = Axis::exactly(0.0, self.ab.runs.len() as f64 + 1.0);
        let y = Axis::of(places().map(|(_, value)| value).chain(metric.means));
        let end = self.ab.runs.len() as f64 + 1.0;
        let mut plot = Plot::new(RUNS, x, y);
        plot.axes(("run", &|run| format!("{run:.0}")), ("", &|value| number(metric, value)));
        for (class, mean) in ["a", "b"].into_iter().zip(metric.means) {
            plot.line(&format!("{class} mean"), &[(0.0, mean), (end, mean)]);
        }
        for (place, value) in places() {
            let Some(run) = self.ab.runs.get(place) else { continue };
            let mark = if run.side == AbSide::A { Mark::A } else { Mark::B };
            let side = run.side.name().to_uppercase();
            let said = format!(
                "run {}, block {}, {side}: {}",
                place + 1,
                run.block,
                number(metric, value)
            );
            plot.point((place as f64 + 1.0, value), mark, metric.outliers.contains(&place), &said);
        }
        let [a, b] = metric.means.map(|mean| number(metric, mean));
        let said = format!("Runs by {}: mean {a} under A, {b} under B", metric.name);
        (metric.name.clone(), plot.svg(&said))
    }
}

/// How B relates to A, where that is a ratio.
fn ratio(metric: &AbMetric) -> Option<&Comparison> {
    let change = metric.change.as_ref()?;
    (change.scale == Scale::Ratio && change.low.is_finite() && change.high.is_finite())
        .then_some(change)
}

fn times(ratio: f64) -> String {
    format!("{ratio:.3}×")
}

#[cfg(test)]
mod tests {
    use analyses::ab::{AbRun, ab};

    use super::*;

    /// B takes twice the time of A, but for a little.
    fn report() -> AbReport {
        let run = |at: usize| {
            let (block, side) =
                (at / 2 + 1, if at.is_multiple_of(2) { AbSide::A } else { AbSide::B });
            let wall = if side == AbSide::A { 1e6 } else { 2e6 } + (at as f64) * 1e3;
            let far = if at == 5 { 50.0 } else { 1.0 };
            AbRun { side, block, values: vec![wall, far * 3.0 + at as f64 / 100.0] }
        };
        let names = vec!["wall_ns".to_owned(), "<b>&\"".to_owned()];
        let runs = (0..16).map(run).collect();
        let setups = ["true".to_owned(), "echo '</title><script>'".to_owned()];
        AbReport {
            setups,
            workload: vec!["make".to_owned()],
            seed: 1,
            ab: ab(names, runs),
            main_metric: 0,
        }
    }

    #[test]
    fn every_run_is_a_point_and_what_differs_is_said() {
        let page = report().page();
        // Runs of two metrics; each ratio has a point, too.
        assert_eq!(page.matches("<title>run ").count(), 2 * 16);
        assert_eq!(page.matches("class=\"ring\"").count(), 1);
        let said = "wall_ns is 1.01 ms under A, 2.01 ms under B: 1.994×, 95% within ";
        assert!(page.contains(said), "{page}");
        assert!(page.contains("which is hardly chance. 8 blocks of one run each."));
    }

    #[test]
    fn names_stay_text() {
        let page = report().page();
        assert!(page.contains("&lt;b&gt;&amp;&quot;"));
        assert!(!page.contains("<script") && !page.contains("<b>"));
        assert_eq!(page.matches("</title>\n<style>").count(), 1);
    }

    #[test]
    fn one_run_of_each_and_numbers_without_end_have_a_page_too() {
        let mut report = report();
        let runs = [AbSide::A, AbSide::B].map(|side| AbRun {
            side,
            block: 1,
            values: vec![f64::INFINITY, f64::NAN],
        });
        report.ab = ab(vec!["x".to_owned(), "y".to_owned()], runs.to_vec());
        let page = report.page();
        let places = page.split("cx=\"").skip(1).filter_map(|rest| rest.split('"').next());
        assert!(places.map(|place| place.parse::<f64>().unwrap()).all(f64::is_finite));
    }
}
