//! A flame graph: frames as a self-contained SVG document.
//!
//! Callers are at the bottom. The width of a frame is its weight. Colours are hashes of names, so that a function
//! has the same colour in every graph. Without its script, the document is a picture with titles; with it, a click
//! zooms into a frame, and names can be searched.

use std::fmt::Write as _;

use printable::line;

use crate::units::counted;
use crate::xml::{escaped, shortened};

/// Size of the graph, in its own units.
const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 10.0;
const ROW: f64 = 18.0;
const HEAD: f64 = 56.0;
const FOOT: f64 = 26.0;

/// Width of a letter in labels.
const LETTER: f64 = 6.65;

/// Narrower frames are not drawn.
const NARROWEST: f64 = 0.25;

/// Number of shades per kind of frame.
const SHADES: u32 = 8;

const SCRIPT: &str = include_str!("flame.js");

/// Kinds of frames: the CSS classes of their colours, with hue and saturation.
const KINDS: [(&str, f64, f64); 3] = [("h", 28.0, 82.0), ("g", 200.0, 62.0), ("q", 150.0, 45.0)];

/// Ratios at which the shade of a changed frame increases.
const CHANGES: [f64; 3] = [1.1, 1.5, 3.0];

/// CSS classes for more and less, with hue and saturation: legible for readers who confuse red and green.
const WAYS: [(&str, f64, f64); 2] = [("u", 28.0, 95.0), ("d", 210.0, 85.0)];

/// A frame that is drawn.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    /// Callers below it.
    pub(crate) depth: usize,
    /// Left edge, from 0 to 1.
    pub(crate) offset: f64,
    /// From 0 to 1.
    pub(crate) width: f64,
    /// Its label.
    pub(crate) name: String,
    /// The text of its tooltip below the name.
    pub(crate) title: String,
    /// The CSS class of its colour: see [`class`].
    pub(crate) class: String,
}

/// Left edges of frames while the nodes of a tree are walked: callers before callees, siblings one after another.
#[derive(Debug)]
pub(crate) struct Begins {
    /// By depth: the left edge of the next node.
    next: Vec<u64>,
}

impl Begins {
    /// For a tree whose first node begins at `at`.
    pub(crate) fn at(at: u64) -> Self {
        Self { next: vec![at] }
    }

    /// The left edge of a node at `depth` with width `amount`. Its callees begin there as well.
    pub(crate) fn place(&mut self, depth: usize, amount: u64) -> u64 {
        self.next.truncate(depth + 1);
        let Some(next) = self.next.last_mut() else { return 0 };
        let begin = *next;
        *next = begin.saturating_add(amount);
        self.next.push(begin);
        begin
    }
}

/// The frames of a graph.
#[derive(Debug, Default)]
pub(crate) struct Drawing {
    frames: Vec<Frame>,
    too_narrow: u64,
}

impl Drawing {
    /// Whether a frame of this width, from 0 to 1, is wide enough to draw.
    pub(crate) fn is_seen(width: f64) -> bool {
        width * (WIDTH - 2.0 * MARGIN) >= NARROWEST
    }

    /// Adds a frame unless it is too narrow to see; returns whether it was added.
    pub(crate) fn push(&mut self, frame: Frame) -> bool {
        if !Self::is_seen(frame.width) {
            self.too_narrow += 1;
            return false;
        }
        self.frames.push(frame);
        true
    }

    /// Whether colours show changes.
    fn has_changes(&self) -> bool {
        let is_change = |frame: &Frame| WAYS.iter().any(|(way, ..)| frame.class.starts_with(way));
        self.frames.iter().any(is_change)
    }

    /// The document; `legend` explains widths and colours.
    pub(crate) fn document(&self, title: &str, legend: &str) -> String {
        let rows = self.frames.iter().map(|frame| frame.depth + 1).max().unwrap_or(1);
        let height = HEAD + rows as f64 * ROW + FOOT;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"{WIDTH}\" \
             height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n\
             <title>{0}</title>\n<style>{1}</style>\n\
             <rect class=\"page\" width=\"100%\" height=\"100%\"/>\n\
             <text class=\"head\" x=\"{MARGIN}\" y=\"24\">{0}</text>\n\
             <text class=\"note\" x=\"{MARGIN}\" y=\"42\">{2}</text>\n\
             <text class=\"note act\" id=\"all\" x=\"{3}\" y=\"24\" text-anchor=\"end\"></text>\n\
             <text class=\"note act\" id=\"find\" x=\"{3}\" y=\"42\" text-anchor=\"end\"></text>\n",
            escaped(title),
            style(self.has_changes()),
            escaped(legend),
            WIDTH - MARGIN,
        );
        out += "<g id=\"frames\">\n";
        for frame in &self.frames {
            frame.draw(rows, &mut out);
        }
        let narrow = match self.too_narrow {
            0 => String::new(),
            narrow => counted(narrow, "stack is", "stacks are") + " too narrow to draw",
        };
        let _ = write!(
            out,
            "</g>\n<text class=\"note\" id=\"foundShare\" x=\"{MARGIN}\" y=\"{}\">{narrow}</text>\n\
             <script><![CDATA[\n{SCRIPT}]]></script>\n</svg>\n",
            height - 9.0
        );
        out
    }
}

impl Frame {
    fn draw(&self, rows: usize, out: &mut String) {
        let inner = WIDTH - 2.0 * MARGIN;
        let (x, width) = (MARGIN + self.offset * inner, self.width * inner);
        let y = HEAD + (rows - 1 - self.depth.min(rows - 1)) as f64 * ROW;
        let drawn = (width - 0.5).max(0.2);
        let _ = writeln!(
            out,
            "<g class=\"f {}\" data-l=\"{:.7}\" data-w=\"{:.7}\" data-n=\"{3}\"><title>{3}\n{4}</title>\
             <rect x=\"{x:.2}\" y=\"{y}\" width=\"{drawn:.2}\" height=\"{5}\" rx=\"2\"/>\
             <text x=\"{6:.2}\" y=\"{7}\">{8}</text></g>",
            self.class,
            self.offset,
            self.width,
            escaped(&line(&self.name)),
            escaped(&self.title),
            ROW - 1.0,
            x + 3.0,
            y + 13.0,
            escaped(&line(&label(&self.name, width))),
        );
    }
}

/// As many letters of a name as fit.
fn label(name: &str, width: f64) -> String {
    let room = ((width - 6.0) / LETTER).max(0.0) as usize;
    if room < 3 && name.chars().count() > room {
        return String::new();
    }
    shortened(name, room)
}

/// The CSS class of a function's colour.
pub(crate) fn class(kind: usize, name: &str) -> String {
    // FNV-1a: the same in every build.
    let hash = name
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let kind = KINDS.get(kind).map_or("n", |(class, ..)| class);
    format!("{kind}{}", (hash >> 16) % SHADES)
}

/// The CSS class of a frame with weight `a` on one side and `b` on the other: direction and size of the change.
pub(crate) fn change_class(a: f64, b: f64) -> String {
    let way = if b > a { "u" } else { "d" };
    let times = a.max(b) / a.min(b);
    let step = CHANGES.iter().take_while(|&&from| times >= from).count();
    format!("{way}{step}")
}

/// The style sheet: colours for light and for dark pages.
fn style(has_changes: bool) -> String {
    let mut light = String::new();
    let mut dark = String::new();
    for (class, hue, saturation) in KINDS {
        for shade in 0..SHADES {
            let step = f64::from(shade);
            let hue = hue - 20.0 + step * 5.0;
            let fill = hex(hue, saturation, 66.0 + (step * 3.0) % 13.0);
            let _ = write!(light, ".{class}{shade} rect{{fill:{fill}}}");
            let fill = hex(hue, saturation * 0.75, 27.0 + (step * 3.0) % 10.0);
            let _ = write!(dark, ".{class}{shade} rect{{fill:{fill}}}");
        }
    }
    for (class, hue, saturation) in WAYS.into_iter().filter(|_| has_changes) {
        for step in 0..=CHANGES.len() {
            let strength = step as f64 / CHANGES.len() as f64;
            let fill = hex(hue, saturation, 88.0 - strength * 32.0);
            let _ = write!(light, ".{class}{step} rect{{fill:{fill}}}");
            let fill = hex(hue, saturation * 0.7, 24.0 + strength * 24.0);
            let _ = write!(dark, ".{class}{step} rect{{fill:{fill}}}");
        }
    }
    format!(
        "text{{font:11px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1c1c1e}}\
         .head{{font:600 15px system-ui,sans-serif}}.note{{font:12px system-ui,sans-serif;\
         fill:#5c5c66}}.page{{fill:#fff}}.f text{{pointer-events:none}}.n rect{{fill:#dcdce2}}\
         .o rect{{fill:#b9bec9}}{light}.act{{cursor:pointer;text-decoration:underline}}\
         .live .f{{cursor:pointer}}.live .f:hover rect{{stroke:#1c1c1e}}.past rect{{opacity:.55}}\
         .found rect{{fill:#c14bd6}}.found text{{fill:#fff}}\
         @media(prefers-color-scheme:dark){{text{{fill:#ececf1}}.note{{fill:#a5a5b2}}\
         .page{{fill:#18181b}}.n rect{{fill:#3a3a42}}.o rect{{fill:#4b5263}}{dark}\
         .live .f:hover rect{{stroke:#ececf1}}.found rect{{fill:#a53ab9}}}}"
    )
}

/// A colour of a hue in degrees, and saturation and lightness in percent, as `#rrggbb`.
fn hex(hue: f64, saturation: f64, lightness: f64) -> String {
    let (saturation, lightness) = (saturation / 100.0, lightness / 100.0);
    let reach = saturation * lightness.min(1.0 - lightness);
    let channel = |offset: f64| {
        let at = (offset + hue / 30.0).rem_euclid(12.0);
        let value = lightness - reach * (at - 3.0).min(9.0 - at).clamp(-1.0, 1.0);
        (value * 255.0).round() as u8
    };
    format!("#{:02x}{:02x}{:02x}", channel(0.0), channel(8.0), channel(4.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_can_end_no_element() {
        assert_eq!(escaped("a<b>&\"c\u{1}"), "a&lt;b&gt;&amp;&quot;c\\x01");
    }

    #[test]
    fn colours_are_of_names() {
        assert_eq!(class(0, "svm_vcpu_run"), class(0, "svm_vcpu_run"));
        assert_eq!(hex(0.0, 100.0, 50.0), "#ff0000");
        assert_eq!(hex(120.0, 100.0, 50.0), "#00ff00");
        assert_eq!(hex(240.0, 0.0, 100.0), "#ffffff");
    }

    #[test]
    fn changes_have_their_way_and_strength() {
        assert_eq!(change_class(100.0, 105.0), "u0");
        assert_eq!(change_class(100.0, 115.0), "u1");
        assert_eq!(change_class(100.0, 50.0), "d2");
        assert_eq!(change_class(100.0, 0.0), "d3");
        assert_eq!(change_class(0.0, 100.0), "u3");
    }

    #[test]
    fn labels_fit() {
        assert_eq!(label("kvm_arch_vcpu_ioctl_run", 400.0), "kvm_arch_vcpu_ioctl_run");
        assert_eq!(label("kvm_arch_vcpu_ioctl_run", 47.0), "kvm_a…");
        assert_eq!(label("kvm", 10.0), "");
    }
}
