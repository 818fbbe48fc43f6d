//! The columns of `hyperscope align`: the relation of a guest CPU's clock to the host's, by one
//! method.

use analyses::align::{AlignRow, GuestAlignment, Method, MethodResult};

use crate::column::{self, Column, Described, Unit};
use crate::units::{signed, time};

/// The table of each guest.
pub(super) const TABLE: &str = "align";

/// A row with its method and guest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'r> {
    /// Path of the guest's recording.
    pub(super) source: &'r str,
    pub(super) guest: &'r GuestAlignment,
    pub(super) result: &'r MethodResult,
    pub(super) row: &'r AlignRow,
}

impl column::Row for Row<'_> {
    fn is_nanoseconds(&self) -> bool {
        self.guest.nanoseconds
    }
}

impl Row<'_> {
    pub(super) fn is_chosen(&self) -> bool {
        self.guest.chosen == Some(self.result.method)
    }
}

impl<'r> Described for Row<'r> {
    const ABOUT: Option<&'static str> =
        Some("One vCPU, and one stretch of time in which its clock drifts at a constant rate.");
    fn all_columns() -> Vec<Column<Self>> {
        columns(true)
    }
}

/// All columns, in the order of JSON and CSV; `nanoseconds`: the unit of the guests' times in tables.
pub(super) fn columns<'r>(nanoseconds: bool) -> Vec<Column<Row<'r>>> {
    let mut columns = cpus();
    columns.extend(methods());
    columns.extend(intervals());
    columns.extend(offsets(nanoseconds));
    columns.extend(checks());
    columns.push(Column::text(
        ("source", "source"),
        "Path of the guest's recording.",
        |row: &Row<'_>| Some(row.source.to_owned()),
    ));
    columns
}

fn cpus<'r>() -> Vec<Column<Row<'r>>> {
    vec![
        Column::text(("vm", "VM"), "The VM, under the same name as in exits.", |row: &Row<'_>| {
            Some(row.guest.vm.clone())
        }),
        Column::number(("vcpu", "vCPU"), Unit::Id, "Number of the vCPU.", |row: &Row<'_>| {
            Some(row.row.vcpu.into())
        })
        .shown(TABLE, 0)
        .after("guest_cpu"),
        Column::number(
            ("guest_cpu", "CPU"),
            Unit::Id,
            "Number of the CPU in the guest.",
            |row: &Row<'_>| Some(row.row.guest_cpu.into()),
        )
        .shown(TABLE, 1)
        .after("method"),
    ]
}

fn methods<'r>() -> Vec<Column<Row<'r>>> {
    vec![
        Column::text(("method", "method"), "The chosen method.", |row: &Row<'_>| {
            Some(row.result.method.name().to_owned())
        })
        .one_of(Method::ALL.map(Method::name))
        .drawn_as(|row| {
            let mark = if row.is_chosen() { " *" } else { "" };
            format!("{}{mark}", row.result.method.name())
        })
        .shown(TABLE, 0),
        Column::flag(
            ("chosen", "chosen"),
            "Whether reports use this method. JSON contains only such rows.",
            Row::is_chosen,
        )
        .only_in_csv(),
    ]
}

fn intervals<'r>() -> Vec<Column<Row<'r>>> {
    let seconds = |at: i64, row: &Row<'_>| {
        if row.guest.nanoseconds { format!("{:.6}", at as f64 / 1e9) } else { at.to_string() }
    };
    vec![
        signed_time(("from", "from"), "First event of the stretch, on the host's clock.", |row| {
            row.from_ns
        })
        .drawn_as(move |row| seconds(row.row.from_ns, row))
        .shown(TABLE, 2),
        signed_time(("to", "to"), "Last event of the stretch, on the host's clock.", |row| {
            row.to_ns
        })
        .drawn_as(move |row| seconds(row.row.to_ns, row))
        .shown(TABLE, 2),
    ]
}

fn offsets<'r>(nanoseconds: bool) -> Vec<Column<Row<'r>>> {
    let unit = if nanoseconds { "ns" } else { "ticks" };
    let offset = format!("offset, {unit}");
    let drift = |name: &str, help: &str, drift_of: fn(&AlignRow) -> Option<i64>| {
        Column::signed((name, "drift, ppb"), Unit::Count, help, move |row: &Row<'_>| {
            drift_of(row.row)
        })
    };
    vec![
        signed_time(
            ("offset", &offset),
            "Host's clock minus guest's clock, in the middle of the stretch.",
            |row| row.offset_ns,
        )
        .drawn_as(|row| signed(row.row.offset_ns))
        .shown(TABLE, 0),
        Column::time(
            ("bound", "bound"),
            "The largest possible error anywhere in the stretch; null: the method gives no bound.",
            |row: &Row<'_>| row.row.bound_ns,
        )
        .null("the method gives no bound")
        .shown(TABLE, 0),
        drift("drift_ppb", "Change of the offset, in nanoseconds per second.", |row| {
            Some(row.drift_ppb.round() as i64)
        })
        .shown(TABLE, 1),
        drift("drift_low_ppb", "The smallest drift that fits all events.", |row| {
            row.drifts_ppb.map(|(low, _)| low.floor() as i64)
        })
        .null("the method gives no bound"),
        drift("drift_high_ppb", "The greatest.", |row| {
            row.drifts_ppb.map(|(_, high)| high.ceil() as i64)
        })
        .null("the method gives no bound"),
    ]
}

fn checks<'r>() -> Vec<Column<Row<'r>>> {
    vec![
        Column::number(
            ("events", "events"),
            Unit::Count,
            "Events of the stretch that were checked against the windows: all except those with the same time as another event \
             of their CPU.",
            |row: &Row<'_>| Some(row.row.events),
        )
        .shown(TABLE, 0),
        Column::number(
            ("violations", "violations"),
            Unit::Count,
            "Events outside all windows of their vCPU by more than the bound, or by any amount if the method gives no bound.",
            |row: &Row<'_>| Some(row.row.violations),
        )
        .shown(TABLE, 0),
        Column::time(
            ("worst", "worst"),
            "Distance of the farthest event from the windows.",
            |row: &Row<'_>| Some(row.row.worst_ns),
        )
        .drawn_as(|row| match row.row.worst_ns {
            0 => "-".to_owned(),
            worst_ns => time(worst_ns, row.guest.nanoseconds),
        })
        .shown(TABLE, 1),
    ]
}

/// A column of times that may be before the clock's zero.
fn signed_time<'r>(
    names: (&str, &str),
    help: &str,
    time_of: fn(&AlignRow) -> i64,
) -> Column<Row<'r>> {
    Column::signed(names, Unit::Time, help, move |row: &Row<'_>| Some(time_of(row.row)))
}
