//! The report of `hyperscope align`: each guest's clock against its host's, by each method.

mod columns;

use analyses::align::{self, GuestAlignment, MethodResult};
use printable::line;
use schemars::JsonSchema;
use serde::Serialize;
use timeline::Losses;

use self::columns::{Row, TABLE, columns};
use crate::column::{self, Rows};
use crate::json::times;
use crate::losses::LossSums;
use crate::table::Table;
use crate::units::{count, counted, plural, time};
use crate::{Legend, Report, losses};

/// All guests among the given recordings.
#[derive(Debug)]
pub struct AlignReport {
    /// Paths of all recordings.
    pub sources: Vec<String>,
    pub guests: Vec<GuestAlignment>,
    /// By recording, its losses.
    pub losses: Vec<Losses>,
}

impl Report for AlignReport {
    fn headline(&self) -> String {
        match self.guests.as_slice() {
            [] => "No pair of a guest's recording and its host's recording.".to_owned(),
            [guest] => format!("{}.", line(&summary(guest))),
            guests => {
                let aligned = guests.iter().filter(|guest| guest.result().is_some()).count();
                let guests = plural(guests.len() as u64, "guest");
                format!("{} of {guests} {} aligned.", count(aligned as u64), are(aligned))
            }
        }
    }

    fn tables(&self, width: Option<usize>) -> String {
        let texts: Vec<String> =
            self.guests.iter().map(|guest| self.guest_text(guest, width)).collect();
        let lost = self.losses.iter().flat_map(|losses| losses::lost(losses, 0));
        texts.join("\n") + &lost.map(|note| format!("{note}\n")).collect::<String>()
    }

    fn legend(&self) -> Legend {
        vec![
            ("offset, ns", "host's time minus guest's time"),
            ("bound", "the largest possible error"),
            ("violations", "events outside the windows by more than that"),
        ]
    }

    fn document(&self) -> impl Serialize {
        self.document_of()
    }

    fn csv(&self) -> Table {
        let rows: Vec<Row<'_>> = self.guests.iter().flat_map(|guest| self.rows(guest)).collect();
        let in_ns: Vec<bool> = self.guests.iter().map(|guest| guest.nanoseconds).collect();
        let in_ns = if in_ns.is_empty() { vec![true] } else { in_ns };
        column::csv(&columns(true), &rows, &in_ns)
    }
}

/// Output of `hyperscope align --format json`: the relation of guests' clocks to their host's. host_ns = guest_ns +
/// offset_ns. See docs/alignment.md.
#[derive(JsonSchema, Serialize)]
pub(crate) struct Document<'r> {
    schema: &'static str,
    /// Paths of the recordings, as they were named.
    sources: &'r [String],
    /// Losses of all sources.
    losses: LossSums,
    /// One per guest's recording.
    guests: Vec<Guest<'r>>,
    /// The result of the chosen method: one row per vCPU and interval.
    rows: Rows<Row<'r>>,
}

/// A guest: the result of each method, and the chosen one.
#[derive(JsonSchema, Serialize)]
struct Guest<'r> {
    /// The VM, under the same name as in exits.
    vm: &'r str,
    /// Path of the host's recording.
    host: &'r str,
    /// Path of the guest's recording.
    guest: &'r str,
    /// The chosen method: the first without violations, otherwise windows; null if none is usable.
    #[schemars(extend("enum" = ["tsc_offset", "time_shift", "windows", null]))]
    method: Option<&'static str>,
    /// Whether there are windows to check methods against.
    checked: bool,
    /// Events outside all intervals of the windows' result: near a break, or where there is no result.
    unplaced: u64,
    /// All methods, in order of preference.
    methods: Vec<Method<'r>>,
}

/// One method.
#[derive(JsonSchema, Serialize)]
struct Method<'r> {
    /// tsc_offset: the offsets that KVM set; time_shift: the recorder's measurement; windows: the positions of guest
    /// events between entries and exits.
    #[schemars(extend("enum" = align::Method::ALL.map(align::Method::name)))]
    method: &'static str,
    /// Whether it has a result.
    usable: bool,
    /// Why it can't be used, or not for all CPUs.
    reason: Option<&'r str>,
    /// Events checked against the windows.
    events: u64,
    /// Events outside all windows of their vCPU by more than the bound, or by any amount if the method gives no bound.
    violations: u64,
    #[serde(flatten)]
    times: MethodTimes,
    /// Whether that distance is within the bounds of both.
    agrees_with_windows: Option<bool>,
}

times! {
    /// Deviations of a method.
    struct MethodTimes {
        /// Largest distance of an event outside its window; null: not usable.
        worst = "worst",
        /// Largest distance of the method from the windows, where both are known; null for the windows themselves, and
        /// if they have no result.
        from_windows = "from_windows",
    }
}

impl AlignReport {
    pub(crate) fn document_of(&self) -> Document<'_> {
        Document {
            schema: "hyperscope.align/1",
            sources: &self.sources,
            losses: LossSums::new(self.losses.iter(), 0),
            guests: self.guests.iter().map(|guest| self.guest(guest)).collect(),
            rows: Rows { columns: columns(true), rows: self.rows_of_chosen() },
        }
    }

    fn path(&self, at: usize) -> &str {
        self.sources.get(at).map_or("", String::as_str)
    }

    fn guest_text(&self, guest: &GuestAlignment, width: Option<usize>) -> String {
        let mut out =
            format!("{} runs on {}\n", line(self.path(guest.guest)), line(self.path(guest.host)),);
        if self.guests.len() > 1 {
            out += &format!("{}\n", line(&summary(guest)));
        }
        let (drawn, left_out) = self.table(guest).draw(width);
        if guest.methods.iter().any(|result| !result.rows.is_empty()) {
            out += &format!("\n{drawn}\n");
        }
        out += &notes(guest);
        if guest.unplaced > 0 && guest.has_windows() {
            out += &format!(
                "{} outside all stretches that the windows determine: near a break, or with too few events\n",
                counted(guest.unplaced, "event lies", "events lie")
            );
        }
        if !left_out.is_empty() {
            out += &format!(
                "hidden to fit the width: {}; csv and json show all\n",
                left_out.join(", ")
            );
        }
        out
    }

    fn table(&self, guest: &GuestAlignment) -> Table {
        let of_method =
            |result| self.rows(guest).filter(move |row| std::ptr::eq(row.result, result));
        let shown = guest.methods.iter().flat_map(|result| of_method(result).take(MAX_LINES));
        let mut table = Table::default();
        column::draw(&columns(guest.nanoseconds), &mut table, TABLE, &shown.collect::<Vec<_>>());
        table
    }

    fn guest<'r>(&'r self, guest: &'r GuestAlignment) -> Guest<'r> {
        let method = |result: &'r MethodResult| Method {
            method: result.method.name(),
            usable: !result.rows.is_empty(),
            reason: result.reason.as_deref(),
            events: result.events(),
            violations: result.violations(),
            times: MethodTimes {
                in_ns: guest.nanoseconds,
                worst: result.rows.iter().map(|row| row.worst_ns).max(),
                from_windows: result.from_windows.map(|(off, _)| off),
            },
            agrees_with_windows: result.from_windows.map(|(_, agrees)| agrees),
        };
        Guest {
            vm: &guest.vm,
            host: self.path(guest.host),
            guest: self.path(guest.guest),
            method: guest.chosen.map(analyses::align::Method::name),
            checked: guest.checked,
            unplaced: guest.unplaced,
            methods: guest.methods.iter().map(method).collect(),
        }
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

const fn are(number: usize) -> &'static str {
    if number == 1 { "is" } else { "are" }
}

/// Notes on each method that the table does not contain.
fn notes(guest: &GuestAlignment) -> String {
    let mut out = String::new();
    for result in &guest.methods {
        let more = result.rows.len().saturating_sub(MAX_LINES);
        if more > 0 {
            let (name, more) = (result.method.name(), plural(more as u64, "more stretch"));
            out += &format!("{name}: {more}; csv and json show all\n");
        }
        if let Some(reason) = &result.reason {
            out += &format!("{}: {}\n", result.method.name(), line(reason));
        }
        if let Some((off, agrees)) = result.from_windows {
            let within = if agrees { "within the bounds" } else { "more than the bounds allow" };
            out += &format!(
                "{}: at most {} from the windows, {within}\n",
                result.method.name(),
                time(off, guest.nanoseconds),
            );
        }
    }
    out
}

/// A guest's alignment in a line, for a merged report.
#[must_use]
pub fn summary(guest: &GuestAlignment) -> String {
    let Some(result) = guest.result() else {
        return format!("{}: not aligned; times are shown as recorded", guest.vm);
    };
    let bound = result
        .rows
        .iter()
        .map(|row| row.bound_ns)
        .try_fold(0, |max, bound_ns| Some(bound_ns?.max(max)));
    let bound = match bound {
        Some(bound) => format!("within {}", time(bound, guest.nanoseconds)),
        None => "bound unknown".to_owned(),
    };
    let checked = if guest.checked {
        format!(
            "{} of {} outside the windows of their vCPU",
            count(result.violations()),
            plural(result.events(), "event")
        )
    } else {
        "not checked: the recording has no windows of its vCPUs".to_owned()
    };
    format!("{}: aligned by {}, {bound}; {checked}", guest.vm, result.method.name())
}

/// Max rows of a method in the text; KVM may change an offset thousands of times.
const MAX_LINES: usize = 16;
