//! The page of `hyperscope sensitivity`: the time of a unit of progress over the added delay.

use analyses::sensitivity::{DelayPoint, ReasonSensitivity};

use super::{SensitivityReport, TABLE, columns, rows, sentence};
use crate::column;
use crate::figures::{Axis, Mark, Page, Plot, table};
use crate::table::Table;
use crate::units::{plural, time};

/// Size of a figure in pixels.
const SIZE: (f64, f64) = (560.0, 320.0);

impl SensitivityReport {
    /// A page with a figure for each reason, in one file that works offline.
    #[must_use]
    pub fn page(&self) -> String {
        let mut page = Page::new(&format!("What {} pays for its exits", self.vm));
        let reasons = || self.reasons.iter().zip(&self.sensitivity.reasons);
        for (reason, sensitivity) in reasons() {
            page.paragraph("lead", &sentence(reason, sensitivity));
        }
        page.heading("Time per unit of progress, by time added to its exits");
        page.paragraph(
            "note",
            "The line shows the price per added nanosecond, the area its 95% interval; dashed: the price if the unit waited for \
             every exit.",
        );
        page.figures(
            &reasons()
                .filter_map(|(reason, sensitivity)| self.figure(reason, sensitivity))
                .collect::<Vec<_>>(),
        );
        page.heading("All numbers");
        for (reason, sensitivity) in reasons() {
            let mut drawn = Table::default();
            let rows: Vec<_> = rows(reason, sensitivity).collect();
            column::draw(&columns(), &mut drawn, TABLE, &rows);
            page.table(&table(&drawn.lines()));
        }
        self.notes(&mut page);
        page.html()
    }

    fn notes(&self, page: &mut Page) {
        let progress = self.progress.as_deref().unwrap_or("the delayed exits themselves");
        let blocks = plural(self.sensitivity.blocks as u64, "block");
        let slice = time(self.slice_ns, true);
        page.paragraph("note", &format!("{blocks} of {slice} slices; progress: {progress}."));
        let foreign = plural(self.sensitivity.foreign, "exit");
        page.paragraph(
            "note",
            &format!("{foreign} of other threads in that time; none was delayed."),
        );
    }

    /// Points of delays, and the line of the price.
    fn figure(&self, reason: &str, sensitivity: &ReasonSensitivity) -> Option<(String, String)> {
        let points: Vec<(f64, f64, &DelayPoint)> =
            sensitivity.points.iter().filter_map(|point| self.of_a_unit(point)).collect();
        let (_, without, _) = points.iter().find(|(.., point)| point.delay_ns == 0)?;
        let max = points.iter().map(|(added, ..)| *added).fold(0.0, f64::max);
        let paid = |slope: f64| without + slope * max;
        let slope = sensitivity.slope.filter(|_| max > 0.0);
        let ends = slope.map(|slope| {
            [slope.low.unwrap_or(slope.mean), slope.mean, slope.high.unwrap_or(slope.mean)]
        });
        let tops = ends.into_iter().flatten().map(paid).chain([paid(1.0)]);
        let x = Axis::covering([0.0, max]);
        let y = Axis::covering(points.iter().map(|(_, took, _)| *took).chain(tops));
        let mut plot = Plot::new(SIZE, x, y);
        plot.axes(("added to a unit’s exits", &nanoseconds), ("a unit takes", &nanoseconds));
        plot.line("one", &[(0.0, *without), (max, paid(1.0))]);
        if let Some([low, mean, high]) = ends {
            plot.area("c0 band", &[(0.0, *without), (max, paid(high)), (max, paid(low))]);
            plot.line("c0", &[(0.0, *without), (max, paid(mean))]);
        }
        for (added, took, point) in &points {
            let tooltip = format!(
                "delay {}: {} added to a unit, which takes {}",
                time(point.delay_ns, true),
                nanoseconds(*added),
                nanoseconds(*took)
            );
            plot.point((*added, *took), Mark(0), false, &tooltip);
        }
        Some((reason.to_owned(), plot.svg(&sentence(reason, sensitivity))))
    }

    /// For a delay's slices: the delay added to a unit of progress, and the unit's time.
    fn of_a_unit<'p>(&self, point: &'p DelayPoint) -> Option<(f64, f64, &'p DelayPoint)> {
        let units = point.rate * point.slices as f64 * self.slice_ns as f64 / 1e9;
        let added_ns = point.mean_delay_ns.unwrap_or(0.0) * point.delayed as f64;
        (units > 0.0).then(|| (added_ns / units, 1e9 / point.rate, point))
    }
}

fn nanoseconds(ns: f64) -> String {
    time(ns.max(0.0).round() as u64, true)
}
