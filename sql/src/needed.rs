//! The part of a table that a query needs, as options for the reader of recordings: times, names and columns of events;
//! VMs of exits.
//!
//! Most of a recording is events, and each is a row: blocks at other times need not be read, and other events not
//! decoded. An exit depends only on its own thread, so exits of other VMs can be skipped. Rows of other tables depend
//! on all earlier events, so these tables are always complete.

use std::collections::BTreeSet;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator};
use lake_store::Table;
use lake_store::tables::{EVENTS, EXIT_HIST, EXIT_ROLLUP, EXITS, NESTED_ROLLUP};

/// Max names in options: the length of a command line is limited.
const MAX_NAMES: usize = 256;

/// The needed part; the default is everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Needed {
    /// From this time on.
    from_ns: Option<i64>,
    /// Up to this time, exclusive.
    to_ns: Option<i64>,
    /// Only these events; `None`: any.
    events: Option<BTreeSet<String>>,
    /// Only these columns; `None`: any.
    columns: Option<BTreeSet<String>>,
    /// Only these VMs; `None`: any.
    vms: Option<BTreeSet<String>>,
}

impl Needed {
    /// The part that remains after filters, all of which must hold, and column indices; for most tables, everything.
    pub(crate) fn of_table(table: &Table, columns: Option<&Vec<usize>>, filters: &[Expr]) -> Self {
        let of_exits = [&EXITS, &EXIT_ROLLUP, &EXIT_HIST, &NESTED_ROLLUP];
        if *table == EVENTS {
            let name = |at: &usize| table.columns.get(*at).map(|column| column.name.to_owned());
            Self::of_events(filters, columns.map(|all| all.iter().filter_map(name).collect()))
        } else if of_exits.contains(&table) {
            Self::of_exits(filters)
        } else {
            Self::default()
        }
    }

    fn of_events(filters: &[Expr], columns: Option<BTreeSet<String>>) -> Self {
        let mut needed = Self { columns, ..Self::default() };
        filters.iter().for_each(|filter| needed.narrow(filter));
        needed
    }

    fn of_exits(filters: &[Expr]) -> Self {
        let mut needed = Self::default();
        for filter in filters.iter().flat_map(split_conjunction) {
            narrow_names(&mut needed.vms, filter, "vm", text);
        }
        needed
    }

    /// Options of `hyperscope export --only TABLE`.
    pub(crate) fn options(&self) -> Vec<String> {
        let mut all = Vec::new();
        all.extend(self.from_ns.map(|ns| format!("--needed-from={ns}")));
        all.extend(self.to_ns.map(|ns| format!("--needed-to={ns}")));
        let events = self.events.iter().flatten();
        all.extend(events.map(|name| format!("--needed-event={name}")));
        let columns = self.columns.as_ref().map(|all| all.iter().cloned().collect::<Vec<_>>());
        // A query that counts rows needs no column, but a list must have at least one.
        let listed = columns.map(|all| if all.is_empty() { vec!["ts_ns".into()] } else { all });
        all.extend(listed.map(|all: Vec<String>| format!("--needed-columns={}", all.join(","))));
        all.extend(self.vms.iter().flatten().map(|name| format!("--needed-vm={name}")));
        all
    }

    /// Removes what an expression excludes, as far as that can be derived.
    fn narrow(&mut self, expr: &Expr) {
        match expr {
            Expr::BinaryExpr(BinaryExpr { left: lhs, op: Operator::And, right: rhs }) => {
                self.narrow(lhs);
                self.narrow(rhs);
            }
            Expr::Between(Between { expr, negated: false, low, high }) if is(expr, "ts_ns") => {
                self.from(number(low));
                self.to(after(number(high)));
            }
            Expr::BinaryExpr(BinaryExpr { left: lhs, op, right: rhs }) if is(lhs, "ts_ns") => {
                self.compare(*op, number(rhs));
            }
            Expr::BinaryExpr(BinaryExpr { left: lhs, op, right: rhs }) if is(rhs, "ts_ns") => {
                // Swapped operands: 5 < ts_ns.
                self.compare(op.swap().unwrap_or(Operator::NotEq), number(lhs));
            }
            other => narrow_names(&mut self.events, other, "event", event_name),
        }
    }

    fn compare(&mut self, op: Operator, ns: Option<i64>) {
        let next = after(ns);
        match op {
            Operator::Gt => self.from(next),
            Operator::GtEq => self.from(ns),
            Operator::Lt => self.to(ns),
            Operator::LtEq => self.to(next),
            Operator::Eq => {
                self.from(ns);
                self.to(next);
            }
            _ => {}
        }
    }

    fn from(&mut self, ns: Option<i64>) {
        self.from_ns = self.from_ns.max(ns);
    }

    fn to(&mut self, ns: Option<i64>) {
        self.to_ns = [self.to_ns, ns].into_iter().flatten().min();
    }

    /// Whether it is empty.
    pub(crate) fn is_nothing(&self) -> bool {
        [&self.events, &self.vms].into_iter().flatten().any(BTreeSet::is_empty)
            || self.from_ns.zip(self.to_ns).is_some_and(|(from_ns, to_ns)| from_ns >= to_ns)
    }

    /// Whether it contains everything in `needed`.
    pub(crate) fn covers(&self, needed: &Self) -> bool {
        let has_all = |all: Option<&BTreeSet<String>>, few: Option<&BTreeSet<String>>| match all {
            None => true,
            Some(all) => few.is_some_and(|few| few.is_subset(all)),
        };
        self.from_ns.is_none_or(|ns| needed.from_ns >= Some(ns))
            && self.to_ns.is_none_or(|ns| needed.to_ns.is_some_and(|to_ns| to_ns <= ns))
            && has_all(self.events.as_ref(), needed.events.as_ref())
            && has_all(self.columns.as_ref(), needed.columns.as_ref())
            && has_all(self.vms.as_ref(), needed.vms.as_ref())
    }
}

/// The time after this one; the last has none.
fn after(ns: Option<i64>) -> Option<i64> {
    ns?.checked_add(1)
}

fn is(expr: &Expr, name: &str) -> bool {
    matches!(expr, Expr::Column(column) if column.name == name)
}

fn number(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Literal(ScalarValue::Int64(number), _) => *number,
        _ => None,
    }
}

/// Keeps the names for which an expression about their column holds.
fn narrow_names(
    known: &mut Option<BTreeSet<String>>,
    expr: &Expr,
    column: &str,
    name_of: fn(&Expr) -> Option<String>,
) {
    let named = names(expr, column, name_of).filter(|names| names.len() <= MAX_NAMES);
    let Some(names) = named else { return };
    *known = Some(match known.take() {
        Some(known) => known.intersection(&names).cloned().collect(),
        None => names,
    });
}

/// The names for which an expression holds; `None`: can't be derived.
fn names(
    expr: &Expr,
    column: &str,
    name_of: fn(&Expr) -> Option<String>,
) -> Option<BTreeSet<String>> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left: lhs, op: Operator::Eq, right: rhs }) => {
            let (name, column_expr) = if is(lhs, column) { (rhs, lhs) } else { (lhs, rhs) };
            is(column_expr, column).then(|| Some(BTreeSet::from([name_of(name)?])))?
        }
        Expr::BinaryExpr(BinaryExpr { left: lhs, op: Operator::Or, right: rhs }) => {
            let (left_names, right_names) =
                (names(lhs, column, name_of)?, names(rhs, column, name_of)?);
            Some(left_names.union(&right_names).cloned().collect())
        }
        Expr::InList(InList { expr, list, negated: false }) if is(expr, column) => {
            list.iter().map(name_of).collect()
        }
        _ => None,
    }
}

/// A text that a program's argument can hold.
fn text(expr: &Expr) -> Option<String> {
    let Expr::Literal(value, _) = expr else { return None };
    let text = value.try_as_str()??;
    (!text.contains('\0')).then(|| text.to_owned())
}

/// The complete name of an event with a format: only such a name is found by name, and is no pattern.
fn event_name(expr: &Expr) -> Option<String> {
    let name = text(expr)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let (system, event) = name.split_once(':')?;
    let is_whole =
        [system, event].iter().all(|part| !part.is_empty() && part.chars().all(is_plain));
    (is_whole && system != "unknown").then_some(name)
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::{col, lit};

    use super::*;

    fn options(filters: &[Expr], columns: Option<&[&str]>) -> Vec<String> {
        let columns = columns.map(|all| all.iter().map(|column| (*column).to_owned()).collect());
        Needed::of_events(filters, columns).options()
    }

    #[test]
    fn times_events_and_columns_are_seen() {
        let time = || col("ts_ns");
        let event = |name: &str| col("event").eq(lit(name));
        assert_eq!(
            options(&[time().gt_eq(lit(5_i64)), time().lt_eq(lit(9_i64))], None),
            ["--needed-from=5", "--needed-to=10"]
        );
        let both = lit(5_i64).lt(time()).and(time().between(lit(1_i64), lit(8_i64)));
        assert_eq!(options(&[both], None), ["--needed-from=6", "--needed-to=9"]);
        assert_eq!(
            options(&[event("kvm:kvm_exit").or(event("kvm:kvm_entry"))], Some(&["event"])),
            [
                "--needed-event=kvm:kvm_entry",
                "--needed-event=kvm:kvm_exit",
                "--needed-columns=event"
            ]
        );
        let list = col("event").in_list(vec![lit("kvm:kvm_exit"), lit("a:b")], false);
        let few = Needed::of_events(&[list, event("kvm:kvm_exit")], None);
        assert_eq!(few.options(), ["--needed-event=kvm:kvm_exit"]);
        let none = Needed::of_events(&[event("a:b"), event("c:d")], None);
        assert!(none.is_nothing() && !few.is_nothing());
        assert_eq!(options(&[], Some(&[])), ["--needed-columns=ts_ns"]);
        let past = Needed::of_events(&[time().gt(lit(5_i64)), time().lt(lit(6_i64))], None);
        assert!(past.is_nothing());
    }

    #[test]
    fn parts_cover_smaller_ones() {
        let needed_of = |filters: &[Expr], columns: Option<&[&str]>| {
            let columns =
                columns.map(|all| all.iter().map(|column| (*column).to_owned()).collect());
            Needed::of_events(filters, columns)
        };
        let from = |ns: i64| col("ts_ns").gt_eq(lit(ns));
        let event = |name: &str| col("event").eq(lit(name));
        let everything = Needed::default();
        let some =
            needed_of(&[from(5), event("a:b").or(event("c:d"))], Some(&["ts_ns", "event", "pid"]));
        let less = needed_of(&[from(6), event("a:b"), col("ts_ns").lt(lit(9_i64))], Some(&["pid"]));
        for (larger, other) in
            [(&everything, &some), (&some, &less), (&everything, &less), (&some, &some)]
        {
            assert!(larger.covers(other), "{larger:?} {other:?}");
            assert!(larger == other || !other.covers(larger), "{other:?} {larger:?}");
        }
        let more = needed_of(&[from(6), event("a:b")], Some(&["pid", "comm"]));
        assert!(!some.covers(&more) && !some.covers(&needed_of(&[from(6)], Some(&["pid"]))));
        assert!(!less.covers(&needed_of(&[from(7), event("a:b")], Some(&["pid"]))));
    }

    #[test]
    fn vms_are_seen_of_exits_alone() {
        let vm = |name: &str| col("vm").eq(lit(name));
        let either = vm("a b").or(vm("c")).and(col("level").eq(lit(1_i32)));
        let needed_of = |table: &Table, filters: &[Expr]| Needed::of_table(table, None, filters);
        let some = needed_of(&EXITS, std::slice::from_ref(&either));
        assert_eq!(some.options(), ["--needed-vm=a b", "--needed-vm=c"]);
        assert!(
            some.covers(&needed_of(&EXITS, &[vm("c")]))
                && !needed_of(&EXITS, &[vm("c")]).covers(&some)
        );
        assert!(needed_of(&EXIT_ROLLUP, &[vm("a"), vm("c")]).is_nothing());
        assert_eq!(needed_of(&lake_store::tables::REQUESTS, &[vm("c")]), Needed::default());
        let other = [vm("c").or(col("level").eq(lit(1_i32))), col("vm").not_eq(lit("c"))];
        assert_eq!(needed_of(&EXITS, &other), Needed::default());
        let event = needed_of(&EVENTS, &[col("event").eq(lit("kvm:kvm_exit")), vm("c")]);
        assert_eq!(event.options(), ["--needed-event=kvm:kvm_exit"]);
    }

    /// An expression that is not understood excludes no rows.
    #[test]
    fn what_is_not_understood_narrows_nothing() {
        let event = |name: &str| col("event").eq(lit(name));
        let others = [
            event("kvm:kvm_exit").or(col("pid").eq(lit(1_i32))),
            event("kvm:*"),
            event("unknown"),
            // An event without a format, which no filter matches.
            event("unknown:5"),
            event(":a"),
            col("event").in_list((0..300).map(|at| lit(format!("a:b{at}"))).collect(), false),
            col("ts_ns").lt_eq(lit(i64::MAX)),
            col("event").in_list(vec![lit("kvm:kvm_exit")], true),
            col("event").not_eq(lit("kvm:kvm_exit")),
            col("ts_ns").not_eq(lit(5_i64)),
            col("ts_ns").lt(col("pid")),
            col("ts_ns").not_between(lit(1_i64), lit(2_i64)),
            col("ts_ns").gt(lit(5_i64)).or(event("kvm:kvm_exit")),
        ];
        for other in others {
            assert_eq!(
                Needed::of_events(std::slice::from_ref(&other), None),
                Needed::default(),
                "{other}"
            );
        }
    }
}
