//! The report of `hyperscope nested`: each reason of level 2 with the level-1 exits under it.

use analyses::{AncillaryRow, LevelCount, Nested, NestedRow, msr_name};
use printable::line;
use serde::Serialize;
use serde_json::{Value, json};

use crate::json::{Object, code_json};
use crate::table::Table;
use crate::units::{count, plural, share, time};
use crate::{Report, losses};

/// The nested exits of all recordings given.
#[derive(Debug)]
pub struct NestedReport {
    /// Path and nested exits of each recording.
    pub sources: Vec<(String, Nested)>,
}

impl Report for NestedReport {
    fn text(&self, width: Option<usize>) -> String {
        let texts: Vec<String> =
            self.sources.iter().map(|(path, nested)| source_text(path, nested, width)).collect();
        texts.join("\n")
    }

    fn document(&self) -> impl Serialize {
        let paths: Vec<&str> = self.sources.iter().map(|(path, _)| path.as_str()).collect();
        let all = || self.sources.iter().map(|(_, nested)| nested);
        let dropped = all().map(|nested| nested.dropped).sum();
        let levels = self.sources.iter().flat_map(|(path, nested)| levels_json(path, nested));
        let rows = self.sources.iter().flat_map(|(path, nested)| rows_json(path, nested));
        Object::default()
            .set("schema", "hyperscope.nested/1")
            .set("sources", paths)
            .set("losses", losses::json(all().map(|nested| &nested.losses), dropped))
            .set("levels", levels.collect::<Vec<_>>())
            .set("rows", rows.collect::<Vec<_>>())
            .done()
    }

    fn csv(&self) -> Table {
        let rows: Vec<(&str, &NestedRow, Option<&AncillaryRow>)> = self
            .sources
            .iter()
            .flat_map(|(path, nested)| nested.rows.iter().map(move |row| (path.as_str(), row)))
            .flat_map(|(path, row)| {
                let under = row.ancillary.iter().map(move |one| (path, row, Some(one)));
                std::iter::once((path, row, None)).chain(under)
            })
            .collect();
        let mut table = Table::default();
        let mut add = |title: &str, of: &dyn Fn(&NestedRow, Option<&AncillaryRow>) -> String| {
            table.names(title, 0, rows.iter().map(|(_, row, under)| of(row, *under)).collect());
        };
        add("vm", &|row, _| row.vm.clone());
        add("isa", &|row, _| row.isa.name().to_owned());
        add("reason", &|row, _| row.reason.clone());
        add("code", &|row, _| row.code.to_string());
        add("ancillary", &|_, one| one.map_or_else(String::new, |one| one.reason.clone()));
        add("ancillary_code", &|_, one| one.map_or_else(String::new, |one| one.code.to_string()));
        add("count", &|row, one| one.map_or(row.count, |one| one.count).to_string());
        add("reflected", &|row, _| row.reflected.to_string());
        add("handled_by_host", &|row, _| (row.count - row.reflected).to_string());
        add("per_exit", &|row, one| {
            let mean = one.and_then(|one| per_exit(row, one));
            mean.map_or_else(String::new, |mean| format!("{mean:.4}"))
        });
        let nanoseconds = self.sources.iter().all(|(_, nested)| nested.nanoseconds);
        add(if nanoseconds { "time_ns" } else { "time_cycles" }, &|row, one| {
            one.map_or_else(|| row.time_ns(), |one| one.durations.sum()).to_string()
        });
        add("factor", &|row, one| {
            let factor = row.factor().filter(|_| one.is_none());
            factor.map_or_else(String::new, |factor| format!("{factor:.4}"))
        });
        table.names("source", 0, rows.iter().map(|(path, ..)| (*path).to_owned()).collect());
        table
    }
}

/// Mean number of ancillary exits of one reason per reflected exit.
fn per_exit(row: &NestedRow, ancillary: &AncillaryRow) -> Option<f64> {
    (row.reflected > 0).then(|| ancillary.count as f64 / row.reflected as f64)
}

fn levels_json(path: &str, nested: &Nested) -> Vec<Value> {
    let level = |one: &LevelCount| json!({"source": path, "vm": one.vm, "level1": one.level1, "level2": one.level2});
    nested.levels.iter().map(level).collect()
}

fn rows_json(path: &str, nested: &Nested) -> Vec<Value> {
    nested.rows.iter().map(|row| row_json(path, row, nested.nanoseconds)).collect()
}

fn row_json(path: &str, row: &NestedRow, ns: bool) -> Value {
    let injected: Vec<Value> = row
        .injected_as
        .iter()
        .map(|(reason, code, number)| {
            json!({"reason": reason, "code": code_json(code), "count": number})
        })
        .collect();
    let ancillary: Vec<Value> = row
        .ancillary
        .iter()
        .map(|one| {
            Object::default()
                .set("reason", one.reason.clone())
                .set("code", code_json(&one.code))
                .set("count", one.count)
                .set("per_exit", per_exit(row, one))
                .time("time", ns, Some(one.durations.sum()))
                .set("msrs", msrs_json(one))
                .set("vmcb_runs", one.vmcb.runs)
                .set("vmcb_changed", vmcb_json(one))
                .done()
        })
        .collect();
    let trips = &row.round_trips;
    Object::default()
        .set("source", path)
        .set("vm", row.vm.clone())
        .set("level", 2)
        .set("isa", row.isa.name())
        .set("reason", row.reason.clone())
        .set("code", code_json(&row.code))
        .set("count", row.count)
        .set("reflected", row.reflected)
        .set("handled_by_host", row.count - row.reflected)
        .set("injected_as", injected)
        .time("time", ns, Some(row.time_ns()))
        .time("own", ns, Some(row.durations.sum()))
        .time("level1_guest", ns, Some(row.level1_ns))
        .time("round_trip_mean", ns, trips.mean().map(|mean| mean.round() as u64))
        .time("round_trip_max", ns, trips.max())
        .set("round_trips", trips.count())
        .set("unfinished", row.unfinished)
        .set("ancillary", ancillary)
        .set("factor", row.factor())
        .done()
}

fn msrs_json(one: &AncillaryRow) -> Vec<Value> {
    let msr = |(number, count): &(u64, u64)| json!({"msr": number, "name": msr_name(*number), "count": count});
    one.msrs.iter().map(msr).collect()
}

fn vmcb_json(one: &AncillaryRow) -> Vec<Value> {
    let group = |(group, runs)| json!({"group": group, "count": runs});
    one.vmcb.groups().into_iter().map(group).collect()
}

fn source_text(path: &str, nested: &Nested, width: Option<usize>) -> String {
    let (mut out, path) = (String::new(), line(path));
    for one in &nested.levels {
        out += &format!(
            "{path}: {}: {} of its own (L1), {} of guests inside it (L2)\n",
            line(&one.vm),
            plural(one.level1, "exit"),
            count(one.level2),
        );
    }
    if nested.rows.is_empty() {
        return out
            + &format!(
                "{path}: no exits of nested guests. Record kvm:kvm_nested_vmexit, \
                 kvm:kvm_nested_vmexit_inject and kvm:kvm_nested_vmenter to see them.\n"
            );
    }
    let (text, left_out) = tree(nested).draw(width);
    out += "\n";
    out += &text;
    out += "\nper exit: level-1 exits per level-2 exit reflected to level 1, until level 2 runs again\n\
            factor: exits the host took for each level-2 exit, itself included\n";
    for row in nested.rows.iter().filter(|row| row.unfinished > 0) {
        out += &format!(
            "{}: after {} of them level 2 was not seen to run again; all exits up to there count\n",
            line(&row.reason),
            count(row.unfinished),
        );
    }
    if !left_out.is_empty() {
        out += &format!("left out for width: {}; csv and json have all\n", left_out.join(", "));
    }
    let repeats = losses::repeats(&nested.repeated_buffers);
    for note in repeats.into_iter().chain(losses::notes(&nested.losses, nested.dropped)) {
        out += &format!("{}\n", line(&note));
    }
    out
}

/// A line of the tree: a level-2 reason, or a level-1 reason under it.
struct Line<'n> {
    row: &'n NestedRow,
    under: Option<(&'n AncillaryRow, bool)>,
}

fn tree(nested: &Nested) -> Table {
    let lines: Vec<Line<'_>> = nested.rows.iter().flat_map(lines).collect();
    let several_vms = nested.levels.len() > 1;
    let ns = nested.nanoseconds;
    let mut table = Table::default();
    let cells = |of: &dyn Fn(&Line<'_>) -> String| lines.iter().map(of).collect::<Vec<_>>();
    if several_vms {
        table.names("vm", 0, cells(&|line| line.row.vm.clone()));
    }
    table.names("reason", 0, cells(&name));
    table.numbers(
        "exits",
        0,
        cells(&|line| count(line.under.map_or(line.row.count, |(one, _)| one.count))),
    );
    table.numbers(
        "to L1",
        1,
        cells(&|line| match line.under {
            None => share(line.row.reflected, line.row.count),
            Some(_) => String::new(),
        }),
    );
    table.numbers(
        "per exit",
        0,
        cells(&|line| match line.under {
            None => String::new(),
            Some((one, _)) => {
                per_exit(line.row, one).map_or_else(String::new, |mean| format!("{mean:.2}x"))
            }
        }),
    );
    table.numbers(
        "factor",
        1,
        cells(&|line| match (line.under, line.row.factor()) {
            (None, Some(factor)) => format!("{factor:.2}x"),
            _ => String::new(),
        }),
    );
    table.numbers(
        "time",
        1,
        cells(&|line| {
            time(line.under.map_or(line.row.time_ns(), |(one, _)| one.durations.sum()), ns)
        }),
    );
    table.numbers(
        "mean",
        2,
        cells(&|line| {
            let durations = line.under.map_or(&line.row.durations, |(one, _)| &one.durations);
            durations.mean().map_or_else(String::new, |mean| time(mean.round() as u64, ns))
        }),
    );
    table.numbers(
        "until L2 runs",
        3,
        cells(&|line| match (line.under, line.row.round_trips.mean()) {
            (None, Some(mean)) => time(mean.round() as u64, ns),
            _ => String::new(),
        }),
    );
    table.names(
        "injected as",
        4,
        cells(&|line| match line.under {
            None => injected(line.row),
            Some(_) => String::new(),
        }),
    );
    let touched: Vec<String> =
        cells(&|line| line.under.map_or_else(String::new, |(one, _)| touches(one)));
    if touched.iter().any(|cell| !cell.is_empty()) {
        table.names("touches", 5, touched);
    }
    table
}

fn lines(row: &NestedRow) -> Vec<Line<'_>> {
    let last = row.ancillary.len().saturating_sub(1);
    let under = row.ancillary.iter().enumerate();
    let under = under.map(|(at, one)| Line { row, under: Some((one, at == last)) });
    std::iter::once(Line { row, under: None }).chain(under).collect()
}

fn name(line: &Line<'_>) -> String {
    match line.under {
        None => line.row.reason.clone(),
        Some((one, true)) => format!("└─ {}", one.reason),
        Some((one, false)) => format!("├─ {}", one.reason),
    }
}

/// What the row's exits were injected as, where that differs from the hardware's reason.
fn injected(row: &NestedRow) -> String {
    let others = row.injected_as.iter().filter(|(_, code, _)| *code != row.code);
    let named: Vec<String> =
        others.map(|(reason, _, number)| format!("{reason} {}", count(*number))).collect();
    named.join(", ")
}

/// What stands in a line of the table; of the others only the number is shown.
const MOST_TOUCHED: usize = 2;

/// What the row's exits read or wrote, with the shares of exits: model-specific registers, and what
/// level 1 had changed in its guest's control block.
fn touches(one: &AncillaryRow) -> String {
    let msr = |number: u64| match msr_name(number) {
        Some(name) => name.trim_start_matches("IA32_").to_owned(),
        None => format!("{number:#x}"),
    };
    let msrs = one.msrs.iter().map(|(number, of)| (msr(*number), *of, one.count));
    let groups = one.vmcb.groups().into_iter();
    let groups = groups.map(|(group, of)| (group.to_owned(), of, one.vmcb.runs));
    let all: Vec<(String, u64, u64)> = msrs.chain(groups).collect();
    let shown = all.iter().take(MOST_TOUCHED);
    let mut named: Vec<String> =
        shown.map(|(name, of, all)| format!("{name} {}", share(*of, *all))).collect();
    match all.len().saturating_sub(MOST_TOUCHED) {
        0 => {}
        more => named.push(format!("{more} more")),
    }
    named.join(", ")
}
