//! A figure of stacked bars, one below the other.

use std::fmt::Write;

use super::Axis;
use crate::xml::{escaped, shortened};

/// Sizes in pixels: the figure, the names, the axis, and a bar.
const WIDTH: f64 = 1200.0;
const NAMES: f64 = 330.0;
const RIGHT: f64 = 24.0;
const BOTTOM: f64 = 28.0;
const ROW: f64 = 26.0;
const BAR: f64 = 18.0;
/// Max letters of a name.
const LETTERS: usize = 46;

/// A kind of part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BarPart {
    pub(crate) name: &'static str,
    /// The CSS class of its colour.
    pub(crate) class: &'static str,
}

impl BarPart {
    /// Its colour sample for the legend.
    pub(crate) fn key(self) -> String {
        let Self { name, class } = self;
        format!(
            "<svg class=\"key\" viewBox=\"0 0 15 15\" aria-hidden=\"true\">\
             <rect class=\"{class}\" x=\"2\" y=\"2\" width=\"11\" height=\"11\"/></svg> {}",
            escaped(name)
        )
    }
}

/// A bar: its name, and its parts in order.
#[derive(Debug)]
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) parts: Vec<(BarPart, u64)>,
}

/// All bars on one scale; `words` formats values, and `description` is for screen readers.
pub(crate) fn bars(all: &[Bar], words: &dyn Fn(f64) -> String, description: &str) -> String {
    let max = all.iter().map(length).max().unwrap_or(0);
    let axis = Axis::covering([0.0, max as f64]);
    let height = all.len() as f64 * ROW + BOTTOM;
    let at = |value: u64| NAMES + (WIDTH - NAMES - RIGHT) * axis.place(value as f64);
    let mut body = String::new();
    for tick in axis.ticks() {
        let x = at(tick as u64);
        let (bottom, text) = (height - BOTTOM, escaped(&words(tick)));
        let _ = writeln!(
            body,
            "<line class=\"grid\" x1=\"{x:.1}\" y1=\"0\" x2=\"{x:.1}\" y2=\"{bottom:.1}\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{text}</text>",
            height - 8.0
        );
    }
    for (row, bar) in all.iter().enumerate() {
        let top = row as f64 * ROW + (ROW - BAR) / 2.0;
        let _ = writeln!(
            body,
            "<text class=\"title\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}<title>{}</title></text>",
            NAMES - 8.0,
            top + BAR - 5.0,
            escaped(&shortened(&bar.name, LETTERS)),
            escaped(&bar.name)
        );
        let mut from = 0_u64;
        for (part, value) in &bar.parts {
            let to = from.saturating_add(*value);
            let tooltip = format!("{}: {} {}", bar.name, part.name, words(*value as f64));
            let _ = writeln!(
                body,
                "<rect class=\"{}\" x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{BAR}\"><title>{}</title></rect>",
                part.class,
                at(from),
                at(to) - at(from),
                escaped(&tooltip)
            );
            from = to;
        }
    }
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">\n{body}</svg>\n",
        escaped(description)
    )
}

fn length(bar: &Bar) -> u64 {
    bar.parts.iter().map(|(_, value)| *value).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNS: BarPart = BarPart { name: "runs", class: "c0" };
    const WAITS: BarPart = BarPart { name: "waits", class: "c1 waits" };

    #[test]
    fn parts_lie_end_to_end_on_one_scale_and_names_are_escaped() {
        let name = "<b>".repeat(30);
        let all = [
            Bar { name: "one".to_owned(), parts: vec![(RUNS, 25), (WAITS, 75)] },
            Bar { name, parts: vec![(WAITS, 50)] },
        ];
        let drawn = bars(&all, &|value| format!("{value:.0}"), "two");
        // 846 pixels for a value of 100.
        for bar in [
            "class=\"c0\" x=\"330.0\" y=\"4.0\" width=\"211.5\"",
            "class=\"c1 waits\" x=\"541.5\" y=\"4.0\" width=\"634.5\"",
            "class=\"c1 waits\" x=\"330.0\" y=\"30.0\" width=\"423.0\"",
        ] {
            assert!(drawn.contains(bar), "{bar} in {drawn}");
        }
        assert!(!drawn.contains("<b>") && drawn.contains("…"), "{drawn}");
        assert!(drawn.contains("<title>one: waits 75</title>"));
    }

    #[test]
    fn nothing_is_a_figure_too() {
        assert!(bars(&[], &|value| format!("{value}"), "none").contains("aria-label=\"none\""));
        let empty = Bar { name: String::new(), parts: vec![(RUNS, 0)] };
        assert!(bars(&[empty], &|value| format!("{value}"), "none").contains("width=\"0.0\""));
        // Values of a damaged recording.
        let huge = Bar { name: String::new(), parts: vec![(RUNS, u64::MAX), (WAITS, u64::MAX)] };
        assert!(bars(&[huge], &|value| format!("{value}"), "much").contains("width=\"0.0\""));
    }
}
