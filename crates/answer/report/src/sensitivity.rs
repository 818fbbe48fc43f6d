//! The report of `hyperscope sensitivity`: the price of exits of each reason, and the rate at each delay.

mod page;

use analyses::Estimate;
use analyses::sensitivity::{DelayPoint, ReasonSensitivity, Sensitivity};
use printable::line;
use schemars::JsonSchema;
use serde::Serialize;

use crate::column::{self, Column, Described, Rows, Unit};
use crate::recorder_cost::CostDocument;
use crate::table::Table;
use crate::units::{plural, time};
use crate::{RecorderCost, Report};

const TABLE: &str = "points";

/// The price that a workload pays for exits.
#[derive(Debug)]
pub struct SensitivityReport {
    pub vm: String,
    /// Names of the reasons.
    pub reasons: Vec<String>,
    /// The measure of progress: a reason or a file; `None`: the delayed exits themselves.
    pub progress: Option<String>,
    /// Length of a slice.
    pub slice_ns: u64,
    /// Seed of the random order.
    pub seed: u64,
    /// The numbers.
    pub sensitivity: Sensitivity,
    /// CPU time of the experiment itself, besides the delays.
    pub recorder_cost: Option<RecorderCost>,
}

/// A delay of a reason.
struct Row<'r> {
    reason: &'r str,
    point: &'r DelayPoint,
}

impl column::Row for Row<'_> {
    fn is_nanoseconds(&self) -> bool {
        true
    }
}

impl<'r> Described for Row<'r> {
    const ABOUT: Option<&'static str> = Some("All slices with that delay.");
    const MAY_COUNT_TICKS: bool = false;

    fn all_columns() -> Vec<Column<Self>> {
        columns()
    }
}

fn columns<'r>() -> Vec<Column<Row<'r>>> {
    let none = "No exit was delayed.";
    let shown = |value: Option<f64>, digits: usize| {
        value.map_or("-".to_owned(), |value| fixed(value, digits))
    };
    vec![
        Column::text(("reason", "reason"), "The reason of the exits.", |row: &Row<'_>| {
            Some(row.reason.to_owned())
        })
        .only_in_csv()
        .shown(TABLE, 0),
        Column::number(
            ("delay_ns", "delay"),
            Unit::Count,
            "Requested delay of each exit; 0: no delay.",
            |row: &Row<'_>| Some(row.point.delay_ns),
        )
        .drawn_as(|row| time(row.point.delay_ns, true))
        .shown(TABLE, 0),
        Column::ratio(
            ("mean_delay_ns", "measured"),
            "Mean delay that exits really had; null: no exit was delayed.",
            |row: &Row<'_>| row.point.mean_delay_ns,
        )
        .null(none)
        .drawn_as(|row| {
            row.point.mean_delay_ns.map_or("-".to_owned(), |ns| time(ns.round() as u64, true))
        })
        .shown(TABLE, 1),
        Column::number(("delayed", "delayed"), Unit::Count, "Exits delayed.", |row: &Row<'_>| {
            Some(row.point.delayed)
        })
        .shown(TABLE, 2),
        Column::number(("slices", "slices"), Unit::Count, "Slices.", |row: &Row<'_>| {
            Some(row.point.slices as u64)
        }).at_least(1)
        .shown(TABLE, 3),
        Column::ratio(("rate", "progress/s"), "Units of progress per second.", |row: &Row<'_>| {
            Some(row.point.rate)
        })
        .drawn_as(move |row| shown(Some(row.point.rate), 1))
        .shown(TABLE, 0),
        Column::ratio(
            ("paid", "paid per ns"),
            "Nanoseconds by which a unit took longer per added nanosecond; null: no exit was delayed, or there was no progress.",
            |row: &Row<'_>| row.point.paid,
        ).below_zero_too()
        .null("No exit was delayed, or there was no progress.")
        .drawn_as(move |row| shown(row.point.paid, 2))
        .shown(TABLE, 0),
    ]
}

impl Report for SensitivityReport {
    fn headline(&self) -> String {
        let vm = line(&self.vm).into_owned();
        let pairs = || self.reasons.iter().zip(&self.sensitivity.reasons);
        let paid = |(_, sensitivity): &(&String, &ReasonSensitivity)| {
            sensitivity.slope.map_or(f64::NEG_INFINITY, |slope| slope.mean)
        };
        // Of equal ones the first.
        let most = pairs().reduce(|most, next| if paid(&next) > paid(&most) { next } else { most });
        most.map_or_else(
            || format!("{vm}: no exits were delayed."),
            |(reason, sensitivity)| format!("{vm}: {}.", sentence(&line(reason), sensitivity)),
        )
    }

    fn tables(&self, width: Option<usize>) -> String {
        let Sensitivity { blocks, foreign, without_progress, .. } = self.sensitivity;
        let mut out = format!(
            "{} of {} slices; progress: {}\n\n",
            plural(blocks as u64, "block"),
            time(self.slice_ns, true),
            line(self.progress.as_deref().unwrap_or("the delayed exits themselves")),
        );
        if self.reasons.len() > 1 {
            for (reason, sensitivity) in self.reasons.iter().zip(&self.sensitivity.reasons) {
                out += &format!("{}\n", sentence(&line(reason), sensitivity));
            }
            out.push('\n');
        }
        let mut table = Table::default();
        column::draw(&columns(), &mut table, TABLE, &self.rows());
        out += &table.draw(width).0;
        if without_progress > 0 {
            out += &format!(
                "\n{} without progress: their blocks are left out; use longer slices (--slice)\n",
                plural(without_progress as u64, "slice")
            );
        }
        out += &format!(
            "\n{} of other threads in that time; none was delayed\n",
            plural(foreign, "exit")
        );
        let cost = self.recorder_cost.as_ref();
        out + &cost.map_or_else(String::new, |cost| {
            format!(
                "the experiment took {} of CPU time in addition to the delays\n",
                time(cost.cpu_ns, true)
            )
        })
    }

    fn document(&self) -> impl Serialize {
        let pairs = self.reasons.iter().zip(&self.sensitivity.reasons);
        Document {
            schema: "hyperscope.sensitivity/1",
            vm: &self.vm,
            progress: self.progress.as_deref(),
            slice_ns: self.slice_ns,
            seed: self.seed,
            blocks: self.sensitivity.blocks,
            without_progress: self.sensitivity.without_progress,
            foreign_exits: self.sensitivity.foreign,
            reasons: pairs.map(|(reason, sensitivity)| reason_json(reason, sensitivity)).collect(),
            recorder_cost: self.recorder_cost.as_ref().map(RecorderCost::document),
        }
    }

    fn csv(&self) -> Table {
        column::csv(&columns(), &self.rows(), &[true])
    }
}

impl SensitivityReport {
    fn rows(&self) -> Vec<Row<'_>> {
        let pairs = self.reasons.iter().zip(&self.sensitivity.reasons);
        pairs.flat_map(|(reason, sensitivity)| rows(reason, sensitivity)).collect()
    }
}

fn rows<'r>(reason: &'r str, sensitivity: &'r ReasonSensitivity) -> impl Iterator<Item = Row<'r>> {
    sensitivity.points.iter().map(move |point| Row { reason, point })
}

/// The price of a reason, and the possible gain, in words.
fn sentence(reason: &str, sensitivity: &ReasonSensitivity) -> String {
    let Some(slope) = sensitivity.slope else {
        return format!("{reason}: unknown: no exit was delayed, or there was no progress");
    };
    let interval_of_slope = interval(slope, 1.0, "", 2);
    let paid = format!("each added ns costs {} ns{interval_of_slope}", fixed(slope.mean, 2));
    let gain = sensitivity.max_gain.map(|gain| {
        let percent = fixed(gain.mean * 100.0, 1);
        let interval = interval(gain, 100.0, "%", 1);
        format!("; exits without any time would save at most {percent}% of the time{interval}")
    });
    let exit =
        sensitivity.exit_ns.map(|ns| format!("; one takes {}", time(ns.round() as u64, true)));
    format!("{reason}: {paid}{}{}", gain.unwrap_or_default(), exit.unwrap_or_default())
}

fn interval(estimate: Estimate, scale: f64, unit: &str, digits: usize) -> String {
    estimate.low.zip(estimate.high).map_or(String::new(), |(low, high)| {
        let [low, high] = [low, high].map(|end| fixed(end * scale, digits));
        format!(" [{low}{unit}, {high}{unit}]")
    })
}

/// A number with `digits` digits; a rounded zero has no sign.
fn fixed(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    let is_nothing = text.chars().all(|character| matches!(character, '-' | '0' | '.'));
    text.strip_prefix('-').filter(|_| is_nothing).map_or(text.clone(), str::to_owned)
}

/// Output of `hyperscope sensitivity --format json`: the price that a workload pays for each nanosecond of an
/// exit. See docs/sensitivity.md.
#[derive(JsonSchema, Serialize)]
pub(crate) struct Document<'r> {
    schema: &'static str,
    /// The VM whose exits were delayed.
    vm: &'r str,
    /// The measure of progress: a reason whose exits were counted, or a file; null: the delayed exits themselves.
    progress: Option<&'r str>,
    /// Length of a slice of time.
    #[schemars(extend("minimum" = 1))]
    slice_ns: u64,
    /// Seed of the random order.
    seed: u64,
    /// Complete blocks: each has a slice without delays, and one for each reason and delay.
    #[schemars(extend("minimum" = 1))]
    blocks: usize,
    /// Slices without any progress. A block with such a slice of a reason gives no result for that reason.
    without_progress: usize,
    /// Exits of threads of other VMs meanwhile; none of them was delayed.
    foreign_exits: u64,
    /// The reasons, in the requested order.
    reasons: Vec<ReasonJson<'r>>,
    /// CPU time of the command and its programs, besides the delays. Null: not measured.
    recorder_cost: Option<CostDocument<'r>>,
}

/// Exits of one reason.
#[derive(JsonSchema, Serialize)]
struct ReasonJson<'r> {
    /// Its name.
    reason: &'r str,
    /// Nanoseconds that the workload pays for each nanosecond of these exits; null: no exit was delayed, or there
    /// was no progress.
    slope: Option<f64>,
    /// Lower end of the interval of 95%; null with one block.
    ci_low: Option<f64>,
    /// Upper end of the interval.
    ci_high: Option<f64>,
    /// The unit of the slope.
    #[schemars(extend("const" = "ns/ns"))]
    unit: &'static str,
    /// Max share of the time that would be gained if these exits took none: the slope times their share of the
    /// time.
    max_gain: Option<f64>,
    /// Lower end of its interval of 95%.
    max_gain_ci_low: Option<f64>,
    /// Upper end of the interval.
    max_gain_ci_high: Option<f64>,
    /// Such exits per unit of progress, in slices without delays; null: there was no progress.
    exits_a_unit: Option<f64>,
    /// Mean time of such an exit from kvm_exit to kvm_entry, in slices without delays; null: there was none.
    exit_ns: Option<f64>,
    /// Delays, ascending.
    points: Rows<Row<'r>>,
}

fn reason_json<'r>(reason: &'r str, sensitivity: &'r ReasonSensitivity) -> ReasonJson<'r> {
    ReasonJson {
        reason,
        slope: sensitivity.slope.map(|slope| slope.mean),
        ci_low: sensitivity.slope.and_then(|slope| slope.low),
        ci_high: sensitivity.slope.and_then(|slope| slope.high),
        unit: "ns/ns",
        max_gain: sensitivity.max_gain.map(|gain| gain.mean),
        max_gain_ci_low: sensitivity.max_gain.and_then(|gain| gain.low),
        max_gain_ci_high: sensitivity.max_gain.and_then(|gain| gain.high),
        exits_a_unit: sensitivity.exits_a_unit,
        exit_ns: sensitivity.exit_ns,
        points: Rows { columns: columns(), rows: rows(reason, sensitivity).collect() },
    }
}

#[cfg(test)]
mod tests {
    use analyses::sensitivity::sensitivity;
    use serde_json::Value;
    use timeline::delays::{DelayCounts, DelaySlice, ReasonCounts};

    use super::*;
    use crate::Format;

    /// A unit takes 10 us and one exit, and waits for the exit.
    fn report() -> SensitivityReport {
        let slice = |(block, delay_ns): (usize, u64)| {
            let units = 100_000_000 / (10_000 + delay_ns + block as u64);
            let delayed = if delay_ns > 0 { units } else { 0 };
            DelaySlice {
                delay_ns: (delay_ns > 0).then_some((0, delay_ns)),
                duration_ns: 100_000_000,
                counts: DelayCounts {
                    progress: units,
                    foreign: 1,
                    by_reason: vec![ReasonCounts {
                        delayed,
                        delay_ns: units * delay_ns,
                        handled: units,
                        handled_ns: units * 2_000,
                    }],
                },
            }
        };
        let slices = (1..=4).flat_map(|block| [0, 5_000].map(|delay_ns| (block, delay_ns)));
        let slices: Vec<DelaySlice> = slices.map(slice).collect();
        SensitivityReport {
            vm: "web".to_owned(),
            reasons: vec!["cpuid".to_owned()],
            progress: None,
            slice_ns: 100_000_000,
            seed: 1,
            sensitivity: sensitivity(&slices, 1, 2),
            recorder_cost: Some(RecorderCost {
                cpu_ns: 5_000_000,
                duration_ns: 800_000_000,
                cpus: 2,
                agents: Vec::new(),
            }),
        }
    }

    #[test]
    fn sentences_say_what_is_paid_and_what_could_be_gained() {
        let text = report().render(Format::Table { width: None });
        let sentence = "cpuid: each added ns costs 1.00 ns [1.00, 1.00]; exits without any time would save at most \
             20.0% of the time [20.0%, 20.0%]; one takes 2.00 us.\n";
        assert!(text.starts_with(&format!("web: {sentence}")), "{text}");
        assert!(text.contains("8 exits of other threads in that time; none was delayed"), "{text}");
        let narrow = report().render(Format::Table { width: Some(60) });
        assert!(narrow.lines().all(|line| line.len() <= 60), "{narrow}");
    }

    #[test]
    fn nothing_has_no_sign() {
        let shown = [-0.001, 0.0, -0.0, -0.126, 0.004].map(|value| fixed(value, 2));
        assert_eq!(shown, ["0.00", "0.00", "0.00", "-0.13", "0.00"]);
    }

    /// A unit takes 10 us without a delay, and 5 us more with one, all of which it pays.
    #[test]
    fn a_page_has_a_point_for_each_delay_on_the_line_of_what_is_paid() {
        let page = report().page();
        let tooltip = "delay 5.00 us: 5.00 us added to a unit, which takes 15.0 us";
        assert_eq!(page.matches(tooltip).count(), 1, "{page}");
        assert_eq!(
            page.matches("<title>delay 0 ns: 0 ns added to a unit, which takes 10.0 us").count(),
            1
        );
        let line = page.split("polyline class=\"c0\" points=\"").nth(1).unwrap();
        let end = line.split(['"', ' ']).nth(1).unwrap();
        let (x, y) = end.split_once(',').unwrap();
        let point = page.split("<circle class=\"c0\"").nth(2).unwrap();
        assert!(point.contains(&format!("cx=\"{x}\"")), "{x} {point}");
        let at: f64 =
            point.split("cy=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
        assert!((at - y.parse::<f64>().unwrap()).abs() < 1.0, "{at} {y}");
    }

    #[test]
    fn documents_keep_to_the_schema() {
        let path =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/formats/sensitivity.schema.json");
        let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let document: Value = serde_json::from_str(&report().render(Format::Json)).unwrap();
        let keys = |object: &Value| -> Vec<String> {
            let mut keys: Vec<String> = object.as_object().unwrap().keys().cloned().collect();
            keys.sort();
            keys
        };
        let reason = &schema["properties"]["reasons"]["items"]["properties"];
        let point = &reason["points"]["items"]["properties"];
        let first = &document["reasons"][0];
        assert_eq!(keys(&document), keys(&schema["properties"]));
        assert_eq!(document["recorder_cost"]["cpu_ns"], 5_000_000);
        assert_eq!(keys(first), keys(reason));
        assert_eq!(keys(&first["points"][0]), keys(point));
    }
}
