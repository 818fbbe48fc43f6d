//! A plot of numbers over numbers, with marks, lines and bands.

use std::fmt::Write;

use super::Axis;
use crate::xml::escaped;

/// Sizes in pixels: the margins, and a mark.
const LEFT: f64 = 92.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 44.0;
const MARK: f64 = 4.5;

/// Additional attribute of the axes' names.
const TITLE: &str = "class=\"title\"";

/// Colours of points and lines in the page's style.
const COLOURS: usize = 6;

/// The index of a mark's style: shapes differ as well, for colour-blind readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark(pub(crate) usize);

impl Mark {
    /// The CSS class of its colour.
    pub(crate) fn class(self) -> String {
        format!("c{}", self.0 % COLOURS)
    }

    /// Its shape around a position.
    fn shape(self, (x, y): (f64, f64)) -> String {
        let class = self.class();
        let (left_edge, right, top, bottom) = (x - MARK, x + MARK, y - MARK, y + MARK);
        let corners = match self.0 % 4 {
            0 => {
                return format!(
                    "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{MARK}\"/>"
                );
            }
            1 => vec![(left_edge, top), (right, top), (right, bottom), (left_edge, bottom)],
            2 => vec![(x, top - 1.0), (right + 1.0, bottom), (left_edge - 1.0, bottom)],
            _ => vec![(x, top - 2.0), (right + 2.0, y), (x, bottom + 2.0), (left_edge - 2.0, y)],
        };
        let corners: Vec<String> = corners.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        format!("<polygon class=\"{class}\" points=\"{}\"/>", corners.join(" "))
    }

    /// The mark alone, for legends.
    pub(crate) fn svg(self) -> String {
        let side = MARK * 2.0 + 6.0;
        let shape = self.shape((side / 2.0, side / 2.0));
        format!(
            "<svg class=\"key\" viewBox=\"0 0 {side} {side}\" aria-hidden=\"true\">{shape}</svg>"
        )
    }
}

/// A plot under construction. Texts are untrusted, and are escaped here.
#[derive(Debug)]
pub(crate) struct Plot {
    size: (f64, f64),
    x: Axis,
    y: Axis,
    body: String,
}

impl Plot {
    /// An empty plot of this size in pixels.
    pub(crate) fn new(size: (f64, f64), x: Axis, y: Axis) -> Self {
        Self { size, x, y, body: String::new() }
    }

    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        let (width, height) = (self.size.0 - LEFT - RIGHT, self.size.1 - TOP - BOTTOM);
        (LEFT + width * self.x.place(x), TOP + height * (1.0 - self.y.place(y)))
    }

    /// Adds marks at both axes, formatted by `x_words` and `y_words`, and the names of the axes.
    pub(crate) fn axes(
        &mut self,
        (x_title, x_words): (&str, &dyn Fn(f64) -> String),
        (y_title, y_words): (&str, &dyn Fn(f64) -> String),
    ) {
        let (width, height) = self.size;
        let bottom = height - BOTTOM;
        for tick in self.x.ticks() {
            let (x, _) = self.at(tick, 0.0);
            self.text((x, bottom + 16.0), "middle", "", &x_words(tick));
        }
        for tick in self.y.ticks() {
            let (_, y) = self.at(0.0, tick);
            let _ = writeln!(
                self.body,
                "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\"/>",
                width - RIGHT
            );
            self.text((LEFT - 8.0, y + 4.0), "end", "", &y_words(tick));
        }
        self.text((LEFT.midpoint(width - RIGHT), height - 8.0), "middle", TITLE, x_title);
        let turned = format!("{TITLE} transform=\"rotate(-90 14 {:.0})\"", TOP.midpoint(bottom));
        self.text((14.0, TOP.midpoint(bottom)), "middle", &turned, y_title);
    }

    fn text(&mut self, (x, y): (f64, f64), anchor: &str, attributes: &str, text: &str) {
        let text = escaped(text);
        let _ = writeln!(
            self.body,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" {attributes}>{text}</text>"
        );
    }

    /// A point with its tooltip. `is_ringed` marks an outlier.
    pub(crate) fn point(&mut self, (x, y): (f64, f64), mark: Mark, is_ringed: bool, tooltip: &str) {
        let (x, y) = self.at(x, y);
        let tooltip = escaped(tooltip);
        let ring = if is_ringed {
            format!("<circle class=\"ring\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{:.1}\"/>", MARK * 2.0)
        } else {
            String::new()
        };
        let shape = mark.shape((x, y));
        let _ = writeln!(self.body, "<g>{ring}{shape}<title>{tooltip}</title></g>");
    }

    /// A line through points, with a class of the page's style.
    pub(crate) fn line(&mut self, class: &str, points: &[(f64, f64)]) {
        let points = self.points(points);
        let _ = writeln!(self.body, "<polyline class=\"{class}\" points=\"{points}\"/>");
    }

    /// The area inside a polygon.
    pub(crate) fn area(&mut self, class: &str, points: &[(f64, f64)]) {
        let points = self.points(points);
        let _ = writeln!(self.body, "<polygon class=\"{class}\" points=\"{points}\"/>");
    }

    fn points(&self, points: &[(f64, f64)]) -> String {
        let points = points.iter().map(|point| self.at(point.0, point.1));
        points.map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
    }

    /// Text at a position of the plot.
    pub(crate) fn words(&mut self, (x, y): (f64, f64), anchor: &str, text: &str) {
        let (x, y) = self.at(x, y);
        self.text((x, y - 6.0), anchor, "class=\"words\"", text);
    }

    /// The figure; screen readers read `description`.
    pub(crate) fn svg(&self, description: &str) -> String {
        let (width, height) = self.size;
        format!(
            "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">\n{}</svg>\n",
            escaped(description),
            self.body
        )
    }
}
