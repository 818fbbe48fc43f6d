//! Sums and histograms of exits in slices of 10 s.
//!
//! A slice is written once later ones have begun. An exit that becomes known late, such as one that slept
//! for a minute, adds another row for its slice; readers must add them.

use std::io::{self, Write};

use analyses::distribution::bucket;
use analyses::known_parts::KnownParts;
use lake_store::{TableWriter, saturated};
use rustc_hash::FxHashMap;
use timeline::reasons::ReasonNames;
use timeline::{ExitSpan, Handler, Outcome};

use crate::lake::clock::{SLICE_NS, slice_of};
use crate::lake::exit_tables::{ExitParts, ExitTables, Reason, Rows, VmNumbers};
use crate::lake::gaps::Coverage;

/// The key of exits within one slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct GroupKey {
    pub(crate) vm: u32,
    pub(crate) level: u8,
    pub(crate) isa: u8,
    pub(crate) code: u64,
}

/// Number of slices that stay in memory after a later one has begun.
const KEPT_SLICES: i64 = 2;

/// Names of histograms, in the order of [`Group::hists`].
const METRICS: [&str; 4] = ["time", "cost", "kernel", "user"];

/// Number of sum columns that can be null.
const COLUMNS: usize = 10;

/// The exits of one kind in one slice.
#[derive(Clone, Debug, Default)]
struct Group {
    exits: u64,
    paired: u64,
    dropped: u64,
    poll_unknown: u64,
    handled: [u64; 3],
    time_ns: Option<u64>,
    time_sq: u128,
    min_ns: Option<u64>,
    max_ns: Option<u64>,
    guest_ns: u64,
    /// In the order of the table.
    sums: [Option<u64>; COLUMNS],
    hists: [FxHashMap<u32, u64>; METRICS.len()],
}

impl Group {
    fn add(&mut self, span: &ExitSpan, parts: &ExitParts) {
        let KnownParts { kernel_ns, user_ns, user_and_return_ns, off_cpu_ns, .. } = parts.known;
        let KnownParts { runnable_ns, blocked_ns, halt_poll_ns, before_exit_ns, .. } = parts.known;
        self.exits += 1;
        self.dropped += u64::from(span.outcome == Outcome::LostIn);
        self.guest_ns = self.guest_ns.saturating_add(span.guest_ns);
        let values = [
            parts.cost_ns,
            kernel_ns,
            parts.not_split_ns,
            user_ns,
            user_and_return_ns,
            off_cpu_ns,
            runnable_ns,
            blocked_ns,
            halt_poll_ns,
            before_exit_ns,
        ];
        for (sum, value) in self.sums.iter_mut().zip(values) {
            add(sum, value);
        }
        let Some(time_ns) = parts.time_ns else { return };
        self.paired += 1;
        self.poll_unknown += u64::from(span.poll_unknown);
        let [kernel, user, l1] = &mut self.handled;
        *match span.handler {
            Handler::Kernel => kernel,
            Handler::User => user,
            Handler::L1 => l1,
        } += 1;
        add(&mut self.time_ns, parts.time_ns);
        self.time_sq = self.time_sq.saturating_add(u128::from(time_ns) * u128::from(time_ns));
        self.min_ns = Some(self.min_ns.map_or(time_ns, |min| min.min(time_ns)));
        self.max_ns = self.max_ns.max(Some(time_ns));
        let values = [parts.time_ns, parts.cost_ns, kernel_ns, user_ns];
        for (hist, value) in self.hists.iter_mut().zip(values) {
            if let Some(value) = value {
                *hist.entry(bucket(value) as u32).or_default() += 1;
            }
        }
    }
}

fn add(sum: &mut Option<u64>, value: Option<u64>) {
    if let Some(value) = value {
        *sum = Some(sum.unwrap_or(0).saturating_add(value));
    }
}

/// All slices not written yet.
#[derive(Debug)]
pub(crate) struct Sums {
    groups: FxHashMap<(i64, GroupKey), Group>,
    newest_ns: i64,
    is_due: bool,
    ids: [String; 3],
    vms: Vec<String>,
    coverage: Coverage,
    knows_user: bool,
}

impl Sums {
    pub(crate) fn new(rows: &Rows<'_>, vms: &VmNumbers) -> Self {
        let ids = &rows.context.ids;
        let machine = rows.context.machine(rows.at).to_owned();
        Self {
            groups: FxHashMap::default(),
            newest_ns: i64::MIN,
            is_due: false,
            ids: [ids.session.clone(), ids.ingest.clone(), machine],
            vms: vms.names.clone(),
            coverage: rows.coverage.clone(),
            knows_user: rows.survey.recorded.user,
        }
    }

    pub(crate) fn add(&mut self, ts_ns: i64, key: GroupKey, span: &ExitSpan, parts: &ExitParts) {
        let slice_ns = slice_of(ts_ns);
        if slice_ns > self.newest_ns {
            self.is_due = self.newest_ns != i64::MIN;
            self.newest_ns = slice_ns;
        }
        self.groups.entry((slice_ns, key)).or_default().add(span, parts);
    }

    /// Whether a new slice has begun, so that older ones can be written.
    pub(crate) fn is_due(&self) -> bool {
        self.is_due
    }

    /// Writes old slices.
    pub(crate) fn write_old<W: Write + Send>(
        &mut self,
        names: &mut ReasonNames,
        tables: &mut ExitTables<W>,
    ) -> io::Result<()> {
        self.is_due = false;
        let before_ns = self.newest_ns.saturating_sub(KEPT_SLICES * SLICE_NS);
        self.write_before(before_ns, names, tables)
    }

    pub(crate) fn write_all<W: Write + Send>(
        &mut self,
        names: &mut ReasonNames,
        tables: &mut ExitTables<W>,
    ) -> io::Result<()> {
        self.write_before(i64::MAX, names, tables)
    }

    fn write_before<W: Write + Send>(
        &mut self,
        before_ns: i64,
        names: &mut ReasonNames,
        tables: &mut ExitTables<W>,
    ) -> io::Result<()> {
        let is_old = |key: &(i64, GroupKey), _: &mut Group| key.0 < before_ns;
        let mut old: Vec<_> = self.groups.extract_if(is_old).collect();
        old.sort_unstable_by_key(|(key, _)| *key);
        for ((slice_ns, key), group) in old {
            let reason = Reason::new(names, key.isa, key.code);
            let vm = self.vms.get(key.vm as usize).map_or("", String::as_str);
            let (ids, level, knows_user) = (&self.ids, key.level, self.knows_user);
            let row = GroupRow { ids, slice_ns, vm, level, reason: &reason, knows_user };
            if let Some(table) = &mut tables.rollup {
                row.write_sums(table, &group, self.coverage.of_slice(slice_ns))?;
            }
            if let Some(table) = &mut tables.hist {
                row.write_hists(table, &group)?;
            }
        }
        Ok(())
    }
}

/// Shared values of a group's rows.
struct GroupRow<'g> {
    ids: &'g [String; 3],
    slice_ns: i64,
    vm: &'g str,
    level: u8,
    reason: &'g Reason,
    knows_user: bool,
}

impl GroupRow<'_> {
    fn write_sums<W: Write + Send>(
        &self,
        table: &mut TableWriter<W>,
        group: &Group,
        covered_ns: i64,
    ) -> io::Result<()> {
        let Reason { isa, reason, code, waiting } = self.reason;
        let mut row = table.row();
        self.ids.iter().for_each(|id| {
            row.text(id);
        });
        row.long(self.slice_ns).text(self.vm).int(i32::from(self.level));
        row.text(isa).text(reason).text(code).flag(*waiting);
        row.count(group.exits).count(group.paired).count(group.dropped);
        row.count_or_null(group.time_ns).double(group.time_sq as f64);
        row.count_or_null(group.min_ns).count_or_null(group.max_ns);
        for sum in group.sums {
            row.count_or_null(sum);
        }
        row.count(group.guest_ns);
        for handled in group.handled {
            row.count_or_null(self.knows_user.then_some(handled));
        }
        row.count(group.poll_unknown).long(covered_ns);
        table.end_row()
    }

    fn write_hists<W: Write + Send>(
        &self,
        table: &mut TableWriter<W>,
        group: &Group,
    ) -> io::Result<()> {
        let Reason { isa, reason, code, waiting } = self.reason;
        let [session, ingest, machine] = self.ids.each_ref().map(|id| table.keep(id));
        let (vm, isa) = (table.keep(self.vm), table.keep(isa));
        let (reason, code) = (table.keep(reason), table.keep(code));
        for (metric, hist) in METRICS.iter().zip(&group.hists) {
            let metric = table.keep(metric);
            let mut buckets: Vec<(u32, u64)> = hist.iter().map(|(at, n)| (*at, *n)).collect();
            buckets.sort_unstable();
            for (at, n) in buckets {
                let mut row = table.row();
                row.id(session).id(ingest).id(machine).long(self.slice_ns);
                row.id(vm).int(i32::from(self.level)).id(isa).id(reason).id(code);
                row.flag(*waiting).id(metric);
                row.int(i32::try_from(at).unwrap_or(i32::MAX)).long(saturated(n));
                table.end_row()?;
            }
        }
        Ok(())
    }
}
