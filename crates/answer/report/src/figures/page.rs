//! The frame of a page with figures: its style, headings, notes and tables.

use std::fmt::Write;

use super::{BarPart, Mark};
use crate::xml::escaped;

/// Colours also differ in lightness, and are legible on both backgrounds.
const STYLE: &str = "
:root { color-scheme: light dark; --page: #fff; --panel: #f6f7f9; --line: #d8dce2; --text: #16191d; --muted: #5a6470; --c0: #0b57d0; --c1: #b34700; --c2: #0a6b4b; --c3: #8f3f71; --c4: #5a6470; --c5: #7a5c00; --c6: #00707a; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14171b; --panel: #1c2026; --line: #363d47; --text: #e8eaee; --muted: #a3adba; --c0: #8ab4f8; --c1: #ffb37a; --c2: #6fd3ab; --c3: #e0a3cb; --c4: #a3adba; --c5: #d8c640; --c6: #7fd4dd; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1280px; padding: 0 16px 48px; background: var(--page); color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; overflow-wrap: anywhere; }
p, li { overflow-wrap: anywhere; }
.lead { font-size: 1.1rem; }
.note { color: var(--muted); }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 520px), 1fr)); gap: 24px; }
figure { margin: 0; max-width: 760px; }
figcaption { font-weight: 600; overflow-wrap: anywhere; }
svg { width: 100%; height: auto; display: block; font: 12px system-ui, sans-serif; }
svg text { fill: var(--muted); }
svg text.title { fill: var(--text); }
svg text.words { fill: var(--text); paint-order: stroke; stroke: var(--page); stroke-width: 4px; }
.grid { stroke: var(--line); }
.one { stroke: var(--text); stroke-dasharray: 4 3; fill: none; }
.c0 { fill: var(--c0); stroke: var(--c0); }
.c1 { fill: var(--c1); stroke: var(--c1); }
.c2 { fill: var(--c2); stroke: var(--c2); }
.c3 { fill: var(--c3); stroke: var(--c3); }
.c4 { fill: var(--c4); stroke: var(--c4); }
.c5 { fill: var(--c5); stroke: var(--c5); }
.c6 { fill: var(--c6); stroke: var(--c6); }
rect { stroke: none; }
rect.waits { opacity: .45; }
polyline { stroke-width: 1.5; fill: none; }
polygon.band { opacity: .18; stroke: none; }
svg.key { display: inline; width: 15px; height: 15px; vertical-align: -2px; margin: 0 2px 0 12px; }
polyline.mean { stroke-dasharray: 5 4; }
.marks { margin-left: -12px; }
.ring { fill: none; stroke: var(--text); stroke-width: 1.5; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 10px; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
code { font: 13px ui-monospace, monospace; background: var(--panel); padding: 1px 4px; overflow-wrap: anywhere; }
";

/// A page under construction. Texts are untrusted, and are escaped here.
#[derive(Debug)]
pub(crate) struct Page {
    title: String,
    body: String,
}

impl Page {
    /// A page with this heading.
    pub(crate) fn new(title: &str) -> Self {
        let title = escaped(title);
        let body = format!("<h1>{title}</h1>\n");
        Self { title, body }
    }

    /// Adds a heading.
    pub(crate) fn heading(&mut self, text: &str) {
        let _ = writeln!(self.body, "<h2>{}</h2>", escaped(text));
    }

    /// Adds a paragraph with a class of the style: `lead` is the result, `note` a remark.
    pub(crate) fn paragraph(&mut self, class: &str, text: &str) {
        let _ = writeln!(self.body, "<p class=\"{class}\">{}</p>", escaped(text));
    }

    /// Adds a command, or another verbatim line.
    pub(crate) fn code(&mut self, name: &str, text: &str) {
        let _ = writeln!(self.body, "<p>{}: <code>{}</code></p>", escaped(name), escaped(text));
    }

    /// Adds the legend of marks.
    pub(crate) fn key(&mut self, marks: &[(Mark, String)]) {
        let entry = |(mark, text): &(Mark, String)| format!("{} {}", mark.svg(), escaped(text));
        let all: String = marks.iter().map(entry).collect();
        let _ = writeln!(self.body, "<p class=\"marks\">{all}</p>");
    }

    /// Adds the legend of bars.
    pub(crate) fn bar_key(&mut self, parts: &[BarPart]) {
        let all: String = parts.iter().map(|part| part.key()).collect();
        let _ = writeln!(self.body, "<p class=\"marks\">{all}</p>");
    }

    /// Adds a figure of the page's width.
    pub(crate) fn figure(&mut self, svg: &str) {
        let _ = writeln!(self.body, "<div class=\"scroll\">{svg}</div>");
    }

    /// Adds figures with captions, side by side if there is room.
    pub(crate) fn figures(&mut self, figures: &[(String, String)]) {
        self.body += "<div class=\"figures\">\n";
        for (caption, svg) in figures {
            let caption = escaped(caption);
            let _ = writeln!(self.body, "<figure><figcaption>{caption}</figcaption>{svg}</figure>");
        }
        self.body += "</div>\n";
    }

    /// Adds a table made by [`table`].
    pub(crate) fn table(&mut self, html: &str) {
        self.body += html;
    }

    pub(crate) fn html(self) -> String {
        let Self { title, body } = self;
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title} – Hyperscope</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n"
        )
    }
}

/// A table whose first row is the header.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let mut out = String::from(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Numbers\"><table>\n",
    );
    for (at, row) in rows.iter().enumerate() {
        let cell = |(place, text): (usize, &String)| {
            let (kind, scope) = match (at, place) {
                (0, _) => ("th", " scope=\"col\""),
                (_, 0) => ("th", " scope=\"row\""),
                _ => ("td", ""),
            };
            format!("<{kind}{scope}>{}</{kind}>", escaped(text))
        };
        let cells: String = row.iter().enumerate().map(cell).collect();
        let _ = writeln!(out, "<tr>{cells}</tr>");
    }
    out + "</table></div>\n"
}
