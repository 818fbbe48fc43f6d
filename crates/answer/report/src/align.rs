//! The report of `hyperscope align`: each guest's clock against its host's, by each method.

mod columns;

use analyses::align::{GuestAlignment, MethodResult};
use printable::line;
use serde::Serialize;
use serde_json::Value;
use timeline::Losses;

use self::columns::{Row, TABLE, columns};
use crate::column::{self, Rows};
use crate::json::Object;
use crate::table::Table;
use crate::units::{count, counted, plural, time};
use crate::{Report, losses};

/// All guests among the recordings given.
#[derive(Debug)]
pub struct AlignReport {
    /// Paths of all recordings.
    pub sources: Vec<String>,
    /// The guests.
    pub guests: Vec<GuestAlignment>,
    /// What recordings lost.
    pub losses: Vec<Losses>,
}

impl Report for AlignReport {
    fn text(&self, width: Option<usize>) -> String {
        let texts: Vec<String> =
            self.guests.iter().map(|guest| self.guest_text(guest, width)).collect();
        let text = if texts.is_empty() {
            "no recording of a guest with one of its host\n".to_owned()
        } else {
            texts.join("\n")
        };
        let lost = self.losses.iter().flat_map(|one| losses::lost(one, 0));
        text + &lost.map(|note| format!("{note}\n")).collect::<String>()
    }

    fn document(&self) -> impl Serialize {
        Document {
            schema: "hyperscope.align/1",
            sources: &self.sources,
            losses: losses::json(self.losses.iter(), 0),
            guests: self.guests.iter().map(|guest| self.guest_json(guest)).collect(),
            rows: Rows { columns: columns(true), rows: self.rows_of_chosen() },
        }
    }

    fn csv(&self) -> Table {
        let rows: Vec<Row<'_>> = self.guests.iter().flat_map(|guest| self.rows(guest)).collect();
        let in_ns: Vec<bool> = self.guests.iter().map(|guest| guest.nanoseconds).collect();
        let in_ns = if in_ns.is_empty() { vec![true] } else { in_ns };
        column::csv(&columns(true), &rows, &in_ns)
    }
}

#[derive(Serialize)]
struct Document<'r> {
    schema: &'static str,
    sources: &'r [String],
    losses: Value,
    guests: Vec<Value>,
    rows: Rows<Row<'r>>,
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
        let (drawn, left_out) = self.table(guest).draw(width);
        if guest.methods.iter().any(|result| !result.rows.is_empty()) {
            out += &format!("\n{drawn}\n");
        }
        out += &notes(guest);
        if guest.unplaced > 0 && guest.has_windows() {
            out += &format!(
                "{} where the windows give no line: near a break, or where too few fit\n",
                counted(guest.unplaced, "event lies", "events lie")
            );
        }
        out += "host = guest + offset. bound: the truth is no further off. violations: events\n\
                outside all entry-to-exit windows of their vCPU by more than the bound\n";
        if !left_out.is_empty() {
            out += &format!("left out for width: {}; csv and json have all\n", left_out.join(", "));
        }
        out
    }

    fn table(&self, guest: &GuestAlignment) -> Table {
        let of_method =
            |result| self.rows(guest).filter(move |row| std::ptr::eq(row.result, result));
        let shown = guest.methods.iter().flat_map(|result| of_method(result).take(MOST_LINES));
        let mut table = Table::default();
        column::draw(&columns(guest.nanoseconds), &mut table, TABLE, &shown.collect::<Vec<_>>());
        table
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
            .set("method", guest.chosen.map(analyses::align::Method::name))
            .set("checked", guest.checked)
            .set("unplaced", guest.unplaced)
            .set("methods", guest.methods.iter().map(method).collect::<Vec<_>>())
            .done()
    }

    /// The rows of all methods for a guest.
    fn rows<'r>(&'r self, guest: &'r GuestAlignment) -> impl Iterator<Item = Row<'r>> {
        let source = self.path(guest.guest);
        guest.methods.iter().flat_map(move |result| {
            result.rows.iter().map(move |row| Row { source, guest, result, row })
        })
    }

    fn rows_of_chosen(&self) -> Vec<Row<'_>> {
        let rows = self.guests.iter().flat_map(|guest| self.rows(guest));
        rows.filter(Row::is_chosen).collect()
    }
}

/// What the table does not say of each method.
fn notes(guest: &GuestAlignment) -> String {
    let mut out = String::new();
    for result in &guest.methods {
        let more = result.rows.len().saturating_sub(MOST_LINES);
        if more > 0 {
            let (name, more) = (result.method.name(), plural(more as u64, "more stretch"));
            out += &format!("{name}: {more}; csv and json have all\n");
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
            "{} of {} outside the windows of their vCPU",
            count(result.violations()),
            plural(result.events(), "event")
        )
    } else {
        "not checked: no windows of its vCPUs".to_owned()
    };
    format!("{}: aligned by {}, {bound}; {checked}", guest.vm, result.method.name())
}

/// Rows of a method that people are shown; KVM may change an offset thousands of times.
const MOST_LINES: usize = 16;
