//! States of vCPUs, individual and summed.

use std::collections::BTreeMap;
use std::io::{self, Write};

use analyses::states::{
    GuestCpu, OccupantSpan, StateSink, StateSpan, States, VcpuRef, VcpuState, states,
};
use lake_store::tables::{STATE_ROLLUP, VCPU_STATES};
use lake_store::{Files, TableWriter, TextId, saturated};
use rustc_hash::FxHashMap;
use timeline::reasons::ReasonNames;

use crate::lake::clock::{SLICE_NS, slice_of};
use crate::lake::convert::{Context, Output, Owner};
use crate::lake::exit_tables::Reason;
use crate::lake::survey::Home;

/// Number of slices that stay in memory after a later one has begun.
const KEPT_SLICES: i64 = 2;

/// Writes both tables in one pass; returns its other results.
pub(crate) fn write<F: Files>(
    context: &Context<'_>,
    output: &mut Output<'_, F>,
) -> io::Result<States> {
    let mut begin = |table| output.begin_wanted(context, table);
    let rows = begin(&VCPU_STATES)?.map(StateRows::new).map(|rows| rows.owned(context));
    let sums = begin(&STATE_ROLLUP)?;
    let recordings = context.question.view.recordings;
    let mut sink = Sink {
        context,
        rows,
        sums,
        names: recordings.iter().map(ReasonNames::new).collect(),
        homes: FxHashMap::default(),
        seen: FxHashMap::default(),
        slices: BTreeMap::new(),
        newest_ns: i64::MIN,
        result: Ok(()),
    };
    let pass = states(context.question.view, &mut sink, context.tick);
    sink.write_before(i64::MAX);
    sink.result?;
    let known = pass.recorded.iter().zip(&context.surveys);
    if let Some((_, at)) = known.zip(recordings).find(|((states, exits), _)| {
        !exits.homes.is_empty() && states.is_split() != exits.recorded.is_split()
    }) {
        return Err(io::Error::other(format!("{} changed while it was read", at.path().display())));
    }
    if let Some(rows) = sink.rows {
        output.end(&VCPU_STATES, rows.table)?;
    }
    if let Some(sums) = sink.sums {
        output.end(&STATE_ROLLUP, sums)?;
    }
    Ok(pass)
}

/// Recording, VM, level, state and, in an exit, its reason.
type Kind = (u16, String, u8, VcpuState, Option<(u8, u64)>);

struct Sink<'c, W: Write + Send> {
    context: &'c Context<'c>,
    rows: Option<StateRows<W>>,
    sums: Option<TableWriter<W>>,
    /// By recording.
    names: Vec<ReasonNames>,
    homes: FxHashMap<VcpuRef, Home>,
    /// By recording and thread, how many vCPUs it has been so far.
    seen: FxHashMap<(u16, u32), usize>,
    slices: BTreeMap<(i64, Kind), (u64, u64)>,
    newest_ns: i64,
    result: io::Result<()>,
}

/// The table of states, and its texts.
struct StateRows<W: Write + Send> {
    table: TableWriter<W>,
    owner: Option<Owner>,
    machines: Vec<TextId>,
    states: FxHashMap<VcpuState, TextId>,
    reasons: FxHashMap<(u16, u8, u64), (TextId, TextId)>,
    vms: FxHashMap<VcpuRef, TextId>,
}

impl<W: Write + Send> StateRows<W> {
    fn new(table: TableWriter<W>) -> Self {
        Self {
            table,
            owner: None,
            machines: Vec::new(),
            states: FxHashMap::default(),
            reasons: FxHashMap::default(),
            vms: FxHashMap::default(),
        }
    }

    fn owned(mut self, context: &Context<'_>) -> Self {
        self.owner = Some(context.owner(&mut self.table));
        let all = 0..context.question.view.recordings.len();
        self.machines = all.map(|at| self.table.keep(context.machine(at))).collect();
        let states = VcpuState::ALL.map(|state| (state, self.table.keep(state.name())));
        self.states = states.into_iter().collect();
        self
    }

    fn write(
        &mut self,
        context: &Context<'_>,
        (vcpu, home): (VcpuRef, &Home),
        (span, state): (&StateSpan, VcpuState),
        names: Option<&mut ReasonNames>,
    ) -> io::Result<()> {
        let Self { table, owner, machines, states, reasons, vms } = self;
        let machine = machines.get(usize::from(vcpu.recording)).copied();
        let (Some(owner), Some(machine), Some(state)) = (*owner, machine, states.get(&state))
        else {
            return Ok(());
        };
        let vm = *vms.entry(vcpu).or_insert_with(|| table.keep(&home.vm));
        let texts = span.exit.zip(names).map(|(exit, names)| {
            *reasons.entry((vcpu.recording, exit.isa, exit.code)).or_insert_with(|| {
                let reason = Reason::new(names, exit.isa, exit.code);
                (table.keep(&reason.reason), table.keep(&reason.code))
            })
        });
        let mut row = table.row();
        row.id(owner.session).id(owner.ingest).id(machine);
        row.long(context.clock.unix_ns(span.from_ns)).count(span.duration_ns());
        row.id(vm).int(home.vcpu).int(i32::from(span.cpu)).int(i32::from(span.level)).id(*state);
        row.id_or_null(texts.map(|texts| texts.0)).id_or_null(texts.map(|texts| texts.1));
        row.long_or_null(span.exit.map(|exit| context.clock.unix_ns(exit.start_ns)));
        row.flag_or_null(span.exit.map(|exit| exit.paired));
        table.end_row()
    }
}

impl<W: Write + Send> Sink<'_, W> {
    /// Adds an interval to the slices that it overlaps.
    fn add(&mut self, kind: &Kind, from_ns: i64, to_ns: i64) {
        let mut at_ns = from_ns;
        while at_ns < to_ns {
            let slice_ns = slice_of(at_ns);
            let end_ns = slice_ns.saturating_add(SLICE_NS).min(to_ns);
            let sum = self.slices.entry((slice_ns, kind.clone())).or_default();
            sum.0 = sum.0.saturating_add(end_ns.abs_diff(at_ns));
            sum.1 += u64::from(at_ns == from_ns);
            self.newest_ns = self.newest_ns.max(slice_ns);
            at_ns = end_ns;
        }
        let before_ns = self.newest_ns.saturating_sub(KEPT_SLICES * SLICE_NS);
        if self.slices.first_key_value().is_some_and(|((slice_ns, _), _)| *slice_ns < before_ns) {
            self.write_before(before_ns);
        }
    }

    fn write_before(&mut self, before_ns: i64) {
        let Some(table) = &mut self.sums else { return };
        let mut result = Ok(());
        while let Some(entry) = self.slices.first_entry().filter(|entry| entry.key().0 < before_ns)
        {
            let ((slice_ns, (recording, vm, level, state, exit)), (time_ns, starts)) =
                entry.remove_entry();
            let names = self.names.get_mut(usize::from(recording));
            let reason = exit.zip(names).map(|((isa, code), names)| names.name(isa, code));
            let mut row = table.row();
            row.text(&self.context.ids.session).text(&self.context.ids.ingest);
            row.text(self.context.machine(usize::from(recording))).long(slice_ns);
            row.text(&vm).int(i32::from(level)).text(state.name());
            row.text_or_null(reason.as_deref()).count(time_ns).long(saturated(starts));
            result = result.and_then(|()| table.end_row());
        }
        if self.result.is_ok() {
            self.result = result;
        }
    }

    fn home(&mut self, vcpu: VcpuRef) -> Home {
        self.homes.get(&vcpu).cloned().unwrap_or_default()
    }
}

impl<W: Write + Send> StateSink for Sink<'_, W> {
    fn vcpu(&mut self, vcpu: VcpuRef, span: &StateSpan) {
        if self.result.is_err() {
            return;
        }
        let at = usize::from(vcpu.recording);
        let recorded = self.context.surveys.get(at).map(|survey| survey.recorded);
        let state = recorded.map_or(span.state, |recorded| span.state.settled(&recorded));
        let home = self.home(vcpu);
        if let Some(rows) = &mut self.rows {
            let names = self.names.get_mut(at);
            self.result = rows.write(self.context, (vcpu, &home), (span, state), names);
        }
        if self.sums.is_some() {
            let reason = span.exit.map(|exit| (exit.isa, exit.code));
            let kind = (vcpu.recording, home.vm, span.level, state, reason);
            let unix = |ns| self.context.clock.unix_ns(ns);
            let (from_ns, to_ns) = (unix(span.from_ns), unix(span.to_ns));
            self.add(&kind, from_ns, to_ns);
        }
    }

    fn runs_in(&mut self, vcpu: VcpuRef, thread: u32) {
        if self.homes.contains_key(&vcpu) {
            return;
        }
        let seen = self.seen.entry((vcpu.recording, thread)).or_default();
        let survey = self.context.surveys.get(usize::from(vcpu.recording));
        let home = survey.and_then(|survey| survey.homes_of(thread).nth(*seen));
        *seen += 1;
        self.homes.insert(vcpu, home.cloned().unwrap_or_default());
    }

    fn task(&mut self, _: GuestCpu, _: u32, _: &StateSpan) {}

    fn cpu(&mut self, _: GuestCpu, _: &OccupantSpan) {}
}
