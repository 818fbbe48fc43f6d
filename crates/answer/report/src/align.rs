//! The report of `hyperscope align`: each guest's clock against its host's, by each method.

use analyses::{AlignRow, GuestAlignment, MethodResult};
use printable::line;
use serde::Serialize;
use serde_json::Value;

use crate::Report;
use crate::json::Object;
use crate::table::Table;
use crate::units::{count, time, unit};

/// All guests among the recordings given.
#[derive(Debug)]
pub struct AlignReport {
    /// Paths of all recordings.
    pub sources: Vec<String>,
    /// The guests.
    pub guests: Vec<GuestAlignment>,
}

impl Report for AlignReport {
    fn text(&self, width: Option<usize>) -> String {
        if self.guests.is_empty() {
            return "no recording of a guest with one of its host\n".to_owned();
        }
        let texts: Vec<String> =
            self.guests.iter().map(|guest| self.guest_text(guest, width)).collect();
        texts.join("\n")
    }

    fn document(&self) -> impl Serialize {
        let guests: Vec<Value> = self.guests.iter().map(|guest| self.guest_json(guest)).collect();
        let rows: Vec<Value> = self.guests.iter().flat_map(|guest| self.rows_json(guest)).collect();
        Object::default()
            .set("schema", "hyperscope.align/1")
            .set("sources", self.sources.clone())
            .set("guests", guests)
            .set("rows", rows)
            .done()
    }

    fn csv(&self) -> Table {
        let mut lines: Vec<(&GuestAlignment, &MethodResult, &AlignRow)> = Vec::new();
        for guest in &self.guests {
            for result in &guest.methods {
                lines.extend(result.rows.iter().map(|row| (guest, result, row)));
            }
        }
        let mut table = Table::default();
        let mut add =
            |title: &str, of: &dyn Fn(&GuestAlignment, &MethodResult, &AlignRow) -> String| {
                let cells = lines.iter().map(|(guest, result, row)| of(guest, result, row));
                table.names(title, 0, cells.collect());
            };
        let unit = unit(self.guests.iter().all(|guest| guest.nanoseconds));
        add("vm", &|guest, _, _| guest.vm.clone());
        add("vcpu", &|_, _, row| row.vcpu.to_string());
        add("guest_cpu", &|_, _, row| row.guest_cpu.to_string());
        add("method", &|_, result, _| result.method.name().to_owned());
        add("chosen", &|guest, result, _| (guest.chosen == Some(result.method)).to_string());
        add(&format!("from_{unit}"), &|_, _, row| row.from_ns.to_string());
        add(&format!("to_{unit}"), &|_, _, row| row.to_ns.to_string());
        add(&format!("offset_{unit}"), &|_, _, row| row.offset_ns.to_string());
        add(&format!("bound_{unit}"), &|_, _, row| {
            row.bound_ns.map_or_else(String::new, |bound| bound.to_string())
        });
        add("drift_ppb", &|_, _, row| rounded(row.drift_ppb).to_string());
        add("events", &|_, _, row| row.events.to_string());
        add("violations", &|_, _, row| row.violations.to_string());
        add(&format!("worst_{unit}"), &|_, _, row| row.worst_ns.to_string());
        add("source", &|guest, _, _| self.path(guest.guest).to_owned());
        table
    }
}

impl AlignReport {
    fn path(&self, at: usize) -> &str {
        self.sources.get(at).map_or("", String::as_str)
    }

    fn guest_text(&self, guest: &GuestAlignment, width: Option<usize>) -> String {
        let mut out = format!(
            "{} runs on {}\n{}\n",
            line(self.path(guest.guest)),
            line(self.path(guest.host)),
            line(&summary(guest)),
        );
        let (drawn, left_out) = table(guest).draw(width);
        if guest.methods.iter().any(|result| !result.rows.is_empty()) {
            out += &format!("\n{drawn}\n");
        }
        out += &notes(guest);
        if guest.unplaced > 0 && guest.has_windows() {
            out += &format!(
                "{} events lie where the windows give no line: near a break, or where too few fit\n",
                count(guest.unplaced)
            );
        }
        out += "host = guest + offset. bound: the truth is no further off. violations: events\n\
                outside all entry-to-exit windows of their vCPU by more than the bound\n";
        if !left_out.is_empty() {
            out += &format!("left out for width: {}; csv and json have all\n", left_out.join(", "));
        }
        out
    }

    fn guest_json(&self, guest: &GuestAlignment) -> Value {
        let ns = guest.nanoseconds;
        let method = |result: &MethodResult| {
            let worst = result.rows.iter().map(|row| row.worst_ns).max();
            Object::default()
                .set("method", result.method.name())
                .set("usable", !result.rows.is_empty())
                .set("reason", result.reason.clone())
                .set("events", result.events())
                .set("violations", result.violations())
                .time("worst", ns, worst)
                .time("from_windows", ns, result.from_windows.map(|(off, _)| off))
                .set("agrees_with_windows", result.from_windows.map(|(_, agrees)| agrees))
                .done()
        };
        Object::default()
            .set("vm", guest.vm.clone())
            .set("host", self.path(guest.host))
            .set("guest", self.path(guest.guest))
            .set("method", guest.chosen.map(analyses::Method::name))
            .set("checked", guest.checked)
            .set("unplaced", guest.unplaced)
            .set("methods", guest.methods.iter().map(method).collect::<Vec<_>>())
            .done()
    }

    fn rows_json(&self, guest: &GuestAlignment) -> Vec<Value> {
        let Some(result) = guest.result() else { return Vec::new() };
        let ns = guest.nanoseconds;
        let row = |row: &AlignRow| {
            Object::default()
                .set("source", self.path(guest.guest))
                .set("vm", guest.vm.clone())
                .set("vcpu", row.vcpu)
                .set("guest_cpu", row.guest_cpu)
                .signed_time("from", ns, row.from_ns)
                .signed_time("to", ns, row.to_ns)
                .set("method", result.method.name())
                .signed_time("offset", ns, row.offset_ns)
                .time("bound", ns, row.bound_ns)
                .set("drift_ppb", rounded(row.drift_ppb))
                .set("drift_low_ppb", row.drifts_ppb.map(|(low, _)| low.floor() as i64))
                .set("drift_high_ppb", row.drifts_ppb.map(|(_, high)| high.ceil() as i64))
                .set("events", row.events)
                .set("violations", row.violations)
                .time("worst", ns, Some(row.worst_ns))
                .done()
        };
        result.rows.iter().map(row).collect()
    }
}

/// What the table does not say of each method.
fn notes(guest: &GuestAlignment) -> String {
    let mut out = String::new();
    for result in &guest.methods {
        let more = result.rows.len().saturating_sub(MOST_LINES);
        if more > 0 {
            let (name, more) = (result.method.name(), count(more as u64));
            out += &format!("{name}: {more} more stretches; csv and json have all\n");
        }
        if let Some(reason) = &result.reason {
            out += &format!("{}: {}\n", result.method.name(), line(reason));
        }
        if let Some((off, agrees)) = result.from_windows {
            let within = if agrees { "within the bounds" } else { "more than the bounds allow" };
            out += &format!(
                "{}: {} from the windows at most, {within}\n",
                result.method.name(),
                time(off, guest.nanoseconds),
            );
        }
    }
    out
}

fn rounded(drift_ppb: f64) -> i64 {
    drift_ppb.round() as i64
}

/// What a merged report says of a guest's clock, in a line.
#[must_use]
pub fn summary(guest: &GuestAlignment) -> String {
    let Some(result) = guest.result() else {
        return format!("{}: not aligned, its times are as recorded", guest.vm);
    };
    let bound =
        result.rows.iter().map(|row| row.bound_ns).try_fold(0, |most, one| Some(one?.max(most)));
    let bound = match bound {
        Some(bound) => format!("within {}", time(bound, guest.nanoseconds)),
        None => "no bound stated".to_owned(),
    };
    let checked = if guest.checked {
        format!(
            "{} of {} events outside the windows of their vCPU",
            count(result.violations()),
            count(result.events())
        )
    } else {
        "not checked: no windows of its vCPUs".to_owned()
    };
    format!("{}: aligned by {}, {bound}; {checked}", guest.vm, result.method.name())
}

/// Rows of a method that people are shown; KVM may change an offset thousands of times.
const MOST_LINES: usize = 16;

fn table(guest: &GuestAlignment) -> Table {
    let ns = guest.nanoseconds;
    let lines: Vec<(&MethodResult, &AlignRow)> = guest
        .methods
        .iter()
        .flat_map(|result| result.rows.iter().take(MOST_LINES).map(move |row| (result, row)))
        .collect();
    let mut table = Table::default();
    let cells = |of: &dyn Fn(&MethodResult, &AlignRow) -> String| -> Vec<String> {
        lines.iter().map(|(result, row)| of(result, row)).collect()
    };
    let seconds = |at: i64| {
        if ns { format!("{:.6}", at as f64 / 1e9) } else { at.to_string() }
    };
    table.names(
        "method",
        0,
        cells(&|result, _| {
            let mark = if guest.chosen == Some(result.method) { " *" } else { "" };
            format!("{}{mark}", result.method.name())
        }),
    );
    table.numbers("CPU", 1, cells(&|_, row| row.guest_cpu.to_string()));
    table.numbers("vCPU", 0, cells(&|_, row| row.vcpu.to_string()));
    table.numbers("from", 2, cells(&|_, row| seconds(row.from_ns)));
    table.numbers("to", 2, cells(&|_, row| seconds(row.to_ns)));
    let unit = if ns { "ns" } else { "ticks" };
    table.numbers(&format!("offset, {unit}"), 0, cells(&|_, row| signed(row.offset_ns)));
    table.numbers(
        "bound",
        0,
        cells(&|_, row| row.bound_ns.map_or_else(|| "-".to_owned(), |bound| time(bound, ns))),
    );
    table.numbers("drift, ppb", 1, cells(&|_, row| signed(rounded(row.drift_ppb))));
    table.numbers("events", 0, cells(&|_, row| count(row.events)));
    table.numbers("violations", 0, cells(&|_, row| count(row.violations)));
    table.numbers(
        "worst",
        1,
        cells(&|_, row| {
            if row.worst_ns == 0 { "-".to_owned() } else { time(row.worst_ns, ns) }
        }),
    );
    table
}

fn signed(value: i64) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}", count(value.unsigned_abs()))
}
