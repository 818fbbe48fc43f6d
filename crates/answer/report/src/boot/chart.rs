//! A chart of a boot: a bar of its phases with the rate of exits below it, then a line for each phase
//! and each of the slowest initcalls on the time axis.

use std::fmt::Write;

use analyses::boot::{BootedMachine, HostCost, Initcall, Phase, PhaseKind};

use super::lines::label;
use super::tables::summary;
use super::{BootReport, begin_ns, call_name, slowest};
use crate::units::{count, plural, time};
use crate::xml::escaped;

/// Sizes in pixels: the chart, the names on its left, a line, the bar of phases, the rates below it.
const WIDTH: f64 = 1200.0;
const NAMES: f64 = 210.0;
const RIGHT: f64 = 20.0;
const LINE: f64 = 18.0;
const BAR: f64 = 26.0;
const RATES: f64 = 48.0;
/// Distance between the parts of a machine, and between machines.
const GAP: f64 = 26.0;
/// Approximate width of a letter.
const LETTER: f64 = 6.6;
/// Max marks on the time axis.
const MAX_TICKS: u64 = 12;

/// Colours of phases by kind; levels alternate.
const LEVELS: [&str; 3] = ["#7fb0dc", "#a5cbe9", "#c9e0f2"];
const INITCALLS: &str = "#e45756";
const EXITS: &str = "#f58518";

/// The chart of all machines, one below the other.
#[must_use]
pub fn boot_svg(report: &BootReport) -> String {
    let mut canvas = Canvas { body: String::new(), y: GAP };
    for machine in &report.boot.machines {
        canvas.machine(report, machine);
    }
    if report.boot.machines.is_empty() {
        canvas.text(12.0, "start", "no machine boots or shuts down in this recording");
        canvas.y += GAP;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{0}\" viewBox=\"0 0 \
         {WIDTH} {0}\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" \
         height=\"100%\" fill=\"#fff\"/>\n{1}</svg>\n",
        canvas.y, canvas.body
    )
}

struct Canvas {
    body: String,
    y: f64,
}

/// A rectangle, in pixels.
struct Rect {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

/// Time to pixels.
#[derive(Clone, Copy)]
struct Scale {
    begin_ns: u64,
    whole_ns: u64,
    nanoseconds: bool,
}

impl Scale {
    fn x(self, ns: u64) -> f64 {
        let since = ns.saturating_sub(self.begin_ns) as f64;
        NAMES + (WIDTH - NAMES - RIGHT) * (since / self.whole_ns.max(1) as f64).min(1.0)
    }
}

impl Canvas {
    fn machine(&mut self, report: &BootReport, machine: &BootedMachine) {
        let end_ns = machine.phases.last().map_or(0, |phase| phase.to_ns);
        let begin_ns = begin_ns(machine);
        let nanoseconds = machine.nanoseconds;
        let scale = Scale { begin_ns, whole_ns: end_ns.saturating_sub(begin_ns), nanoseconds };
        let title = format!("{}: {}", report.name(machine), summary(machine));
        self.heading(&title);
        self.bar(machine, scale);
        if machine.phases.iter().any(|phase| phase.host.is_some()) {
            self.rates(machine, scale);
        }
        self.ticks(scale);
        for (at, phase) in machine.phases.iter().enumerate() {
            let (fill, name) = (colour(phase, at), label(phase));
            let caption = caption_of(phase.duration_ns(), phase.host.as_ref(), scale);
            self.line(&name, fill, (phase.from_ns, phase.to_ns), &caption, scale);
        }
        let mut calls: Vec<&Initcall> = slowest(machine).into_iter().take(report.top).collect();
        if !calls.is_empty() {
            self.y += GAP;
            self.heading(&format!(
                "slowest of {}",
                plural(machine.initcalls.len() as u64, "initcall")
            ));
        }
        calls.sort_by_key(|call| call.from_ns);
        for call in calls {
            let Some(took_ns) = call.duration_ns() else { continue };
            let caption = caption_of(took_ns, call.host.as_ref(), scale);
            let span_ns = (call.from_ns, call.from_ns.saturating_add(took_ns));
            self.line(&call_name(call), INITCALLS, span_ns, &caption, scale);
        }
        self.y += GAP * 2.0;
    }

    fn heading(&mut self, text: &str) {
        let y = self.y;
        let _ = writeln!(
            self.body,
            "<text x=\"12\" y=\"{y}\" font-size=\"14\" font-weight=\"bold\">{}</text>",
            escaped(text)
        );
        self.y += LINE;
    }

    /// All phases in one bar, with names where they fit.
    fn bar(&mut self, machine: &BootedMachine, scale: Scale) {
        for (at, phase) in machine.phases.iter().enumerate() {
            let (from, to) = (scale.x(phase.from_ns), scale.x(phase.to_ns));
            let caption = caption_of(phase.duration_ns(), phase.host.as_ref(), scale);
            let name = label(phase);
            self.rect(
                Rect { x: from, y: self.y, width: to - from, height: BAR },
                colour(phase, at),
                &format!("{name}: {caption}"),
            );
            if name.chars().count() as f64 * LETTER < to - from {
                let (x, y) = (from.midpoint(to), self.y + BAR * 0.66);
                let _ = writeln!(
                    self.body,
                    "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" fill=\"#222\">{}</text>",
                    escaped(&name)
                );
            }
        }
        self.y += BAR;
    }

    /// The rate of exits in each phase, as heights.
    fn rates(&mut self, machine: &BootedMachine, scale: Scale) {
        let rate = |phase: &Phase| {
            let exits = phase.host.as_ref().map_or(0, |cost| cost.exits) as f64;
            exits / (phase.duration_ns().max(1) as f64 / 1e9)
        };
        // Phases shorter than a hundredth are excluded: their rates would make all others look flat.
        let counts = |phase: &&Phase| phase.duration_ns() > scale.whole_ns / 100;
        let max = machine.phases.iter().filter(counts).map(rate).fold(1.0, f64::max);
        for phase in &machine.phases {
            let height = RATES * (rate(phase) / max).min(1.0);
            let (from, to) = (scale.x(phase.from_ns), scale.x(phase.to_ns));
            let text = if scale.nanoseconds {
                format!("{}: {:.0} exits a second", label(phase), rate(phase))
            } else {
                label(phase)
            };
            let y = self.y + RATES - height;
            self.rect(Rect { x: from, y, width: to - from, height }, EXITS, &text);
        }
        self.y += RATES;
        let unit = if scale.nanoseconds {
            format!("exits, at most {} per second", count(max as u64))
        } else {
            "exits by time".to_owned()
        };
        self.text(NAMES - 8.0, "end", &unit);
    }

    fn ticks(&mut self, scale: Scale) {
        let step_ns = step(scale.whole_ns);
        let y = self.y;
        for at in 0..=scale.whole_ns / step_ns {
            let ns = at.saturating_mul(step_ns);
            let x = scale.x(scale.begin_ns.saturating_add(ns));
            let text = if ns == 0 { "0".to_owned() } else { time(ns, scale.nanoseconds) };
            let _ = writeln!(
                self.body,
                "<path d=\"M{x:.1} {y:.1}v5\" stroke=\"#888\"/><text x=\"{x:.1}\" y=\"{:.1}\" \
                 text-anchor=\"middle\" fill=\"#555\">{text}</text>",
                y + 17.0
            );
        }
        self.y += GAP + 6.0;
    }

    /// A name, its interval, and further text.
    fn line(
        &mut self,
        name: &str,
        fill: &str,
        (from_ns, to_ns): (u64, u64),
        caption: &str,
        scale: Scale,
    ) {
        let (from, to) = (scale.x(from_ns), scale.x(to_ns));
        let y = self.y;
        let _ = writeln!(
            self.body,
            "<path d=\"M{NAMES} {:.1}H{}\" stroke=\"#eee\"/>",
            y + LINE / 2.0,
            WIDTH - RIGHT
        );
        self.rect(
            Rect { x: from, y: y + 3.0, width: (to - from).max(1.0), height: LINE - 6.0 },
            fill,
            &format!("{name}: {caption}"),
        );
        let fits = to + 6.0 + caption.chars().count() as f64 * LETTER < WIDTH;
        let (x, anchor) = if fits { (to + 6.0, "start") } else { (from - 6.0, "end") };
        let baseline = y + LINE * 0.72;
        let _ = writeln!(
            self.body,
            "<text x=\"{:.1}\" y=\"{baseline:.1}\" text-anchor=\"end\">{}</text><text x=\"{x:.1}\" \
             y=\"{baseline:.1}\" text-anchor=\"{anchor}\" fill=\"#555\">{}</text>",
            NAMES - 8.0,
            escaped(name),
            escaped(caption)
        );
        self.y += LINE;
    }

    fn rect(&mut self, at: Rect, fill: &str, title: &str) {
        let Rect { x, y, width, height } = at;
        let _ = writeln!(
            self.body,
            "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" \
             fill=\"{fill}\"><title>{}</title></rect>",
            escaped(title)
        );
    }

    fn text(&mut self, x: f64, anchor: &str, text: &str) {
        let y = self.y;
        let _ = writeln!(
            self.body,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"#555\">{}</text>",
            escaped(text)
        );
    }
}

fn colour(phase: &Phase, at: usize) -> &'static str {
    match phase.kind {
        PhaseKind::Before => "#bdbdbd",
        PhaseKind::Kernel => "#d3cdc4",
        PhaseKind::Level => LEVELS.get(at % LEVELS.len()).copied().unwrap_or("#7fb0dc"),
        PhaseKind::User => "#8cc686",
        PhaseKind::Running => "#cfe6c9",
        PhaseKind::Shutdown => "#cfa3c3",
        PhaseKind::After => "#dddddd",
    }
}

fn caption_of(took_ns: u64, host: Option<&HostCost>, scale: Scale) -> String {
    let exits = host.map(|cost| format!(", {}", plural(cost.exits, "exit")));
    format!("{}{}", time(took_ns, scale.nanoseconds), exits.unwrap_or_default())
}

/// The smallest of 1, 2 and 5 times a power of ten that gives few enough marks.
fn step(whole_ns: u64) -> u64 {
    let mut step_ns = 1_u64;
    while whole_ns / step_ns > MAX_TICKS {
        step_ns = match leading(step_ns) {
            2 => step_ns / 2 * 5,
            _ => step_ns.saturating_mul(2),
        };
    }
    step_ns
}

/// The first digit.
fn leading(mut number: u64) -> u64 {
    while number >= 10 {
        number /= 10;
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_time_are_round_and_few() {
        for (whole_ns, expected) in
            [(1, 1), (12, 1), (13, 2), (26, 5), (70, 10), (20_800_000_000, 2_000_000_000)]
        {
            assert_eq!(step(whole_ns), expected, "{whole_ns}");
        }
        assert!(u64::MAX / step(u64::MAX) <= MAX_TICKS);
    }

    #[test]
    fn names_of_guests_are_no_markup() {
        assert_eq!(escaped("<a href=\"x\">&\u{1}"), "&lt;a href=&quot;x&quot;&gt;&amp;\\x01");
    }
}
