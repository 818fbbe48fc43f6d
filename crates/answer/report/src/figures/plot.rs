//! One figure: numbers over numbers, as marks, lines and bands.

use std::fmt::Write;

use super::Axis;
use crate::xml::escaped;

/// Pixels: what is around the plot, and a mark.
const LEFT: f64 = 92.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 44.0;
const MARK: f64 = 4.5;

/// What names of axes have more than other texts.
const TITLE: &str = "class=\"title\"";

/// How a point is drawn: shapes differ, too, for who does not see the colours apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A disc in the colour of A.
    A,
    /// A square in the colour of B.
    B,
}

/// A figure in the making. Texts may be anything; they are escaped here.
#[derive(Debug)]
pub(crate) struct Plot {
    size: (f64, f64),
    x: Axis,
    y: Axis,
    body: String,
}

impl Plot {
    /// An empty one of that size in pixels.
    pub(crate) fn new(size: (f64, f64), x: Axis, y: Axis) -> Self {
        Self { size, x, y, body: String::new() }
    }

    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        let (width, height) = (self.size.0 - LEFT - RIGHT, self.size.1 - TOP - BOTTOM);
        (LEFT + width * self.x.place(x), TOP + height * (1.0 - self.y.place(y)))
    }

    /// Marks at both axes, as `x_words` and `y_words` write them, and what the axes are.
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

    /// A point; what is said of it shows where a pointer rests on it. `is_ringed`: it stands out.
    pub(crate) fn point(&mut self, (x, y): (f64, f64), mark: Mark, is_ringed: bool, said: &str) {
        let (x, y) = self.at(x, y);
        let said = escaped(said);
        let ring = match is_ringed {
            true => format!(
                "<circle class=\"ring\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{:.1}\"/>",
                MARK * 2.0
            ),
            false => String::new(),
        };
        let size = MARK * 2.0;
        let shape = match mark {
            Mark::A => format!("<circle class=\"a\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{MARK}\"/>"),
            Mark::B => {
                let (left, top) = (x - MARK, y - MARK);
                format!(
                    "<rect class=\"b\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{size}\" height=\"{size}\"/>"
                )
            }
        };
        let _ = writeln!(self.body, "<g>{ring}{shape}<title>{said}</title></g>");
    }

    /// A line through points, of a class of the page's style.
    pub(crate) fn line(&mut self, class: &str, points: &[(f64, f64)]) {
        let points = self.points(points);
        let _ = writeln!(self.body, "<polyline class=\"{class}\" points=\"{points}\"/>");
    }

    /// The area within points.
    pub(crate) fn area(&mut self, class: &str, points: &[(f64, f64)]) {
        let points = self.points(points);
        let _ = writeln!(self.body, "<polygon class=\"{class}\" points=\"{points}\"/>");
    }

    fn points(&self, points: &[(f64, f64)]) -> String {
        let points = points.iter().map(|point| self.at(point.0, point.1));
        points.map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
    }

    /// Words at a point of the figure.
    pub(crate) fn words(&mut self, (x, y): (f64, f64), anchor: &str, text: &str) {
        let (x, y) = self.at(x, y);
        self.text((x, y - 6.0), anchor, "class=\"words\"", text);
    }

    /// The figure; `said` is what it shows, for who does not see it.
    pub(crate) fn svg(&self, said: &str) -> String {
        let (width, height) = self.size;
        format!(
            "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">\n{}</svg>\n",
            escaped(said),
            self.body
        )
    }
}
