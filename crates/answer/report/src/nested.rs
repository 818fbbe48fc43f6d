//! The report of `hyperscope nested`: each reason of level 2 with the level-1 exits under it.

mod lines;

use analyses::msr_names::msr_name;
use analyses::nested::{AncillaryRow, LevelCount, Nested, NestedRow};
use printable::line;
use serde::Serialize;
use serde_json::{Value, json};

use self::lines::{Line, TABLE, columns, lines};
use crate::column;
use crate::json::{Object, code_json};
use crate::table::Table;
use crate::units::{count, plural};
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
        let lines: Vec<Line<'_>> =
            self.sources.iter().flat_map(|(path, nested)| lines(path, nested)).collect();
        let in_ns: Vec<bool> = self.sources.iter().map(|(_, nested)| nested.nanoseconds).collect();
        column::csv(&columns(false), &lines, &in_ns)
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
    let mut table = Table::default();
    let lines: Vec<Line<'_>> = lines(&path, nested).collect();
    column::draw(&columns(nested.levels.len() > 1), &mut table, TABLE, &lines);
    let (text, left_out) = table.draw(width);
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
