//! Exits of level 2 with the exits of level 1 that they cause, in slices of 10 s.

use std::collections::BTreeMap;
use std::io::{self, Write};

use analyses::nested_steps::{Follower as NestedFollower, Step as NestedStep};
use lake_store::TableWriter;
use rustc_hash::FxHashMap;
use timeline::reasons::ReasonNames;
use timeline::{ExitSpan, Outcome};

use crate::lake::clock::{SLICE_NS, slice_of};
use crate::lake::exit_tables::{Reason, Rows, VmNumbers};

/// Number of slices that stay in memory after a later one has begun.
const KEPT_SLICES: i64 = 2;

/// A kind of exit: the `isa` field and the raw code.
type RawReason = (u8, u64);

/// Slice, VM, reason of level 2 and, for exits of level 1, their reason.
type Key = (i64, u32, RawReason, Option<RawReason>);

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    exits: u64,
    reflected: u64,
    time_ns: u64,
    round_trips: u64,
    round_trip_ns: u64,
}

/// All slices not written yet.
#[derive(Debug)]
pub(crate) struct NestedSums {
    followers: FxHashMap<usize, NestedFollower>,
    sums: BTreeMap<Key, Sum>,
    newest_ns: i64,
    ids: [String; 3],
    vms: Vec<String>,
    of_vcpu: Vec<u32>,
}

impl NestedSums {
    pub(crate) fn new(rows: &Rows<'_>, vms: &VmNumbers) -> Self {
        let ids = &rows.context.ids;
        let machine = rows.context.machine(rows.at).to_owned();
        Self {
            followers: FxHashMap::default(),
            sums: BTreeMap::new(),
            newest_ns: i64::MIN,
            ids: [ids.session.clone(), ids.ingest.clone(), machine],
            vms: vms.names.clone(),
            of_vcpu: vms.of_vcpu.clone(),
        }
    }

    pub(crate) fn exit<W: Write + Send>(
        &mut self,
        vcpu: usize,
        ts_ns: i64,
        span: &ExitSpan,
        names: &mut ReasonNames,
        table: &mut TableWriter<W>,
    ) -> io::Result<()> {
        let slice_ns = slice_of(ts_ns);
        let vm = self.of_vcpu.get(vcpu).copied().unwrap_or(0);
        let sums = &mut self.sums;
        let follower = self.followers.entry(vcpu).or_default();
        follower.exit(span, |step| take(sums, (slice_ns, vm), span, step));
        if slice_ns > self.newest_ns {
            self.newest_ns = slice_ns;
            let before_ns = slice_ns.saturating_sub(KEPT_SLICES * SLICE_NS);
            self.write_before(before_ns, names, table)?;
        }
        Ok(())
    }

    pub(crate) fn write_all<W: Write + Send>(
        &mut self,
        names: &mut ReasonNames,
        table: &mut TableWriter<W>,
    ) -> io::Result<()> {
        self.write_before(i64::MAX, names, table)
    }

    fn write_before<W: Write + Send>(
        &mut self,
        before_ns: i64,
        names: &mut ReasonNames,
        table: &mut TableWriter<W>,
    ) -> io::Result<()> {
        let later = self.sums.split_off(&(before_ns, 0, (0, 0), None));
        for ((slice_ns, vm, exit, ancillary), sum) in std::mem::replace(&mut self.sums, later) {
            let Reason { isa, reason, code, .. } = Reason::new(names, exit.0, exit.1);
            let ancillary = ancillary.map(|(isa, code)| Reason::new(names, isa, code));
            let unless_ancillary = |value| ancillary.is_none().then_some(value);
            let mut row = table.row();
            self.ids.iter().for_each(|id| {
                row.text(id);
            });
            row.long(slice_ns).text(self.vms.get(vm as usize).map_or("", String::as_str));
            row.text(isa).text(&reason).text(&code);
            row.text_or_null(ancillary.as_ref().map(|ancillary| ancillary.reason.as_str()));
            row.text_or_null(ancillary.as_ref().map(|ancillary| ancillary.code.as_str()));
            row.count(sum.exits).count_or_null(unless_ancillary(sum.reflected)).count(sum.time_ns);
            row.count_or_null(unless_ancillary(sum.round_trips))
                .count_or_null(unless_ancillary(sum.round_trip_ns));
            table.end_row()?;
        }
        Ok(())
    }
}

/// Adds an exit to the sums that it belongs to.
fn take(
    sums: &mut BTreeMap<Key, Sum>,
    (slice_ns, vm): (i64, u32),
    span: &ExitSpan,
    step: NestedStep,
) {
    let own_exit = (span.isa, span.code);
    let time_ns = if span.outcome == Outcome::Paired { span.duration_ns() } else { 0 };
    match step {
        NestedStep::Level2 { reflected } => {
            let sum = sums.entry((slice_ns, vm, own_exit, None)).or_default();
            sum.exits += 1;
            sum.reflected += u64::from(reflected);
            sum.time_ns = sum.time_ns.saturating_add(time_ns);
        }
        NestedStep::Ancillary { level2_reason, .. } => {
            let sum = sums.entry((slice_ns, vm, level2_reason, Some(own_exit))).or_default();
            sum.exits += 1;
            sum.time_ns = sum.time_ns.saturating_add(time_ns);
        }
        NestedStep::Back { level2_reason, since_ns, .. } => {
            let sum = sums.entry((slice_ns, vm, level2_reason, None)).or_default();
            sum.round_trips += 1;
            let took_ns = span.end_ns.saturating_sub(since_ns);
            sum.round_trip_ns = sum.round_trip_ns.saturating_add(took_ns);
        }
        NestedStep::Unfinished { .. } | NestedStep::Level1 => {}
    }
}
