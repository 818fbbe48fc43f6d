//! The page of `hyperscope ab`: the difference of each metric, and every run as a point.

use analyses::Comparison;
use analyses::ab::{AbMetric, AbSide};
use analyses::diff::Scale;

use super::{AbReport, TABLE, capital, columns, number, shown};
use crate::column;
use crate::figures::{Axis, Mark, Page, Plot, table};
use crate::table::Table;
use crate::units::plural;

/// Sizes in pixels: of the figure of runs, of the width of the figure of ratios, and of a metric's line.
const RUNS: (f64, f64) = (560.0, 260.0);
const RATIOS: f64 = 640.0;
const RATIO: f64 = 34.0;
const RATIOS_EDGES: f64 = 80.0;

/// Points of ratios.
const CHANCE: Mark = Mark(4);
const HARDLY_CHANCE: Mark = Mark(1);

impl AbReport {
    /// A page with all runs as points, in one file that works offline.
    #[must_use]
    pub fn page(&self) -> String {
        let mut page = Page::new(&self.workload.join(" "));
        for metric in self.ab.comparisons(self.main_metric) {
            page.paragraph("lead", &self.verdict(metric));
        }
        for (side, setup) in self.sides() {
            page.code(&capital(side), shown(setup));
        }
        self.ratios(&mut page);
        page.heading("Every run, in the order in which they ran");
        let key = |(side, _): (AbSide, _)| (Mark(side.place()), capital(side));
        page.key(&self.sides().map(key).collect::<Vec<_>>());
        let note = "A dashed line shows a mean; a ring marks a run far from the others of its configuration.";
        page.paragraph("note", note);
        let places = 0..self.ab.runs.first().map_or(0, |run| run.values.len());
        page.figures(&places.filter_map(|place| self.runs(place)).collect::<Vec<_>>());
        page.heading("All numbers");
        let mut drawn = Table::default();
        column::draw(&columns(self.ab.sides), &mut drawn, TABLE, &self.rows());
        page.table(&table(&drawn.lines()));
        for note in self.notes() {
            page.paragraph("note", &note);
        }
        page.html()
    }

    /// The result of the workload's main metric for a configuration.
    fn verdict(&self, metric: &AbMetric) -> String {
        let blocks = plural(self.ab.blocks() as u64, "block");
        let ([a, b], side) = (metric.means.map(|mean| number(metric, mean)), capital(metric.side));
        let name = &metric.name;
        let chance = match (metric.is_significant(), metric.p_adjusted) {
            (true, _) => "and chance is unlikely to be the cause",
            (false, Some(_)) => "and chance may be the cause",
            (false, None) => "and there are too few runs to rule out chance",
        };
        let change = ratio(metric).map_or(String::new(), |change| {
            let [low, high] = [change.low, change.high].map(times);
            format!(": {}, 95% within {low} and {high},", times(change.change))
        });
        format!(
            "{name} is {a} under A, {b} under {side}{change} {chance}. {blocks}, each with one run per configuration."
        )
    }

    /// The differences from A, metric by metric.
    fn ratios(&self, page: &mut Page) {
        let all = self.ab.metrics.iter();
        let with_ratio: Vec<(&AbMetric, &Comparison)> =
            all.filter_map(|metric| Some((metric, ratio(metric)?))).collect();
        if with_ratio.is_empty() {
            return;
        }
        page.heading(if self.ab.sides > 2 {
            "The others relative to A"
        } else {
            "B relative to A"
        });
        let ends = || with_ratio.iter().flat_map(|(_, change)| [change.low, change.high]);
        let scale = RatioScale::for_ratios(ends());
        let rows = with_ratio.len() as f64;
        let x = Axis::covering(ends().chain([1.0]).map(|ratio| scale.at(ratio)));
        let size = (RATIOS, RATIOS_EDGES + RATIO * rows);
        let mut plot = Plot::new(size, x, Axis::exactly(0.0, rows));
        plot.axes(("of A", &|at| times(scale.ratio(at))), ("", &|_| String::new()));
        plot.line("one", &[(scale.at(1.0), 0.0), (scale.at(1.0), rows)]);
        for (at, (metric, change)) in with_ratio.iter().enumerate() {
            let y = rows - at as f64 - 0.65;
            let (mark, sure) = if metric.is_significant() {
                (HARDLY_CHANCE, "")
            } else {
                (CHANCE, ", may be chance")
            };
            let [low, middle, high] =
                [change.low, change.change, change.high].map(|ratio| scale.at(ratio));
            plot.line(&mark.class(), &[(low, y), (high, y)]);
            let label = format!("{}: {}{sure}", self.named(metric), times(change.change));
            plot.point((middle, y), mark, false, &label);
            plot.words((x.least(), y), "start", &label);
        }
        page.key(&[
            (CHANCE, "may be chance".to_owned()),
            (HARDLY_CHANCE, "hardly chance".to_owned()),
        ]);
        let description = "Each configuration relative to A, by metric, with 95% intervals. The table below shows the numbers";
        page.figures(&[(
            "Means of the blocks’ ratios, with 95% intervals".to_owned(),
            plot.svg(description),
        )]);
    }

    /// All runs of the metric with this index among the values of a run.
    fn runs(&self, place: usize) -> Option<(String, String)> {
        let metrics: Vec<&AbMetric> = self.ab.comparisons(place).collect();
        let first = metrics.first()?;
        let means: Vec<f64> = std::iter::once(first.means[0])
            .chain(metrics.iter().map(|metric| metric.means[1]))
            .collect();
        let runs = || {
            self.ab
                .runs
                .iter()
                .enumerate()
                .filter_map(|(at, run)| Some((at, run, *run.values.get(place)?)))
        };
        let end = self.ab.runs.len() as f64 + 1.0;
        let y = Axis::covering(runs().map(|(.., value)| value).chain(means.iter().copied()));
        let mut plot = Plot::new(RUNS, Axis::exactly(0.0, end), y);
        plot.axes(("run", &|run| format!("{run:.0}")), ("", &|value| number(first, value)));
        for (side, mean) in means.iter().enumerate() {
            plot.line(&format!("{} mean", Mark(side).class()), &[(0.0, *mean), (end, *mean)]);
        }
        for (at, run, value) in runs() {
            let is_far = metrics.iter().any(|metric| metric.outliers.contains(&at));
            let label = format!(
                "run {}, block {}, {}: {}",
                at + 1,
                run.block,
                capital(run.side),
                number(first, value)
            );
            plot.point((at as f64 + 1.0, value), Mark(run.side.place()), is_far, &label);
        }
        let sides = AbSide::first(means.len()).zip(&means);
        let descriptions: Vec<String> = sides
            .map(|(side, mean)| format!("{} under {}", number(first, *mean), capital(side)))
            .collect();
        Some((
            first.name.clone(),
            plot.svg(&format!("Runs by {}, means: {}", first.name, descriptions.join(", "))),
        ))
    }
}

/// The scale of ratios: linear, or logarithmic if they differ greatly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RatioScale {
    Linear,
    Logarithmic,
}

impl RatioScale {
    fn for_ratios(ratios: impl Iterator<Item = f64>) -> Self {
        let differs = ratios.fold(1.0_f64, |max, ratio| max.max(ratio).max(1.0 / ratio));
        if differs > 2.0 { Self::Logarithmic } else { Self::Linear }
    }

    fn at(self, ratio: f64) -> f64 {
        if self == Self::Linear { ratio } else { ratio.log2() }
    }

    fn ratio(self, at: f64) -> f64 {
        if self == Self::Linear { at } else { at.exp2() }
    }
}

/// The comparison of the other configuration with A, if it is a ratio.
fn ratio(metric: &AbMetric) -> Option<&Comparison> {
    let change = metric.change.as_ref()?;
    (change.scale == Scale::Ratio && change.low.is_finite() && change.high.is_finite())
        .then_some(change)
}

fn times(ratio: f64) -> String {
    super::times(ratio, 3).replace('x', "×")
}

#[cfg(test)]
mod tests {
    use analyses::ab::{AbRun, ab};

    use super::*;

    /// B takes almost twice the time of A.
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
        let setups = vec!["true".to_owned(), "echo '</title><script>'".to_owned()];
        AbReport {
            setups,
            workload: vec!["make".to_owned()],
            seed: 1,
            ab: ab(&names, runs, 2),
            main_metric: 0,
        }
    }

    #[test]
    fn every_run_is_a_point_and_what_differs_is_said() {
        let page = report().page();
        // Runs of two metrics; each ratio has a point as well.
        assert_eq!(page.matches("<title>run ").count(), 2 * 16);
        assert_eq!(page.matches("class=\"ring\"").count(), 1);
        let sentence = "wall_ns is 1.01 ms under A, 2.01 ms under B: 1.994×, 95% within ";
        assert!(page.contains(sentence), "{page}");
        assert!(page.contains(
            "and chance is unlikely to be the cause. 8 blocks, each with one run per configuration."
        ));
    }

    #[test]
    fn ratios_that_differ_greatly_are_laid_out_by_their_logarithms() {
        let near = RatioScale::for_ratios([0.9, 1.2].into_iter());
        assert_eq!((near.at(0.9), near.ratio(0.9)), (0.9, 0.9));
        for far in [[0.4, 1.0], [1.0, 14.0]] {
            let far = RatioScale::for_ratios(far.into_iter());
            assert_eq!((far.at(2.0), far.at(0.5), far.at(1.0)), (1.0, -1.0, 0.0));
            assert!((far.ratio(far.at(3.0)) - 3.0).abs() < 1e-9);
        }
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
        report.ab = ab(&["x".to_owned(), "y".to_owned()], runs.to_vec(), 2);
        let page = report.page();
        let places = page.split("cx=\"").skip(1).filter_map(|rest| rest.split('"').next());
        assert!(places.map(|place| place.parse::<f64>().unwrap()).all(f64::is_finite));
    }
}
