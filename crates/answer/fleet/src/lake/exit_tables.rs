//! The tables of exits, filled in one pass: exits, their details, and their sums.

use std::io::{self, Write};

use analyses::known_parts::KnownParts;
use lake_store::tables::{self, EXIT_DETAILS, EXITS};
use lake_store::{Files, TableWriter, TextId};
use rustc_hash::FxHashMap;
use sources::Recording;
use timeline::reasons::{Code, ReasonNames};
use timeline::{Detail, ExitSink, ExitSpan, Handler, Outcome, each_exit};

use crate::lake::convert::{Context, Output, Owner};
use crate::lake::gaps::Coverage;
use crate::lake::nested::NestedSums;
use crate::lake::rollup::{GroupKey, Sums};
use crate::lake::survey::{Home, Survey};

/// Writers of the requested tables.
pub(crate) struct ExitTables<W: Write + Send> {
    pub(crate) exits: Option<TableWriter<W>>,
    pub(crate) details: Option<TableWriter<W>>,
    pub(crate) rollup: Option<TableWriter<W>>,
    pub(crate) hist: Option<TableWriter<W>>,
    pub(crate) nested: Option<TableWriter<W>>,
}

impl<W: Write + Send> ExitTables<W> {
    pub(crate) fn begin<F: Files<File = W>>(
        context: &Context<'_>,
        output: &mut Output<'_, F>,
    ) -> io::Result<Self> {
        let mut begin = |table| output.begin_wanted(context, table);
        Ok(Self {
            exits: begin(&EXITS)?,
            details: begin(&EXIT_DETAILS)?,
            rollup: begin(&tables::EXIT_ROLLUP)?,
            hist: begin(&tables::EXIT_HIST)?,
            nested: begin(&tables::NESTED_ROLLUP)?,
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        let Self { exits, details, rollup, hist, nested } = self;
        [exits, details, rollup, hist, nested].iter().all(|table| table.is_none())
    }

    pub(crate) fn end<F: Files<File = W>>(self, output: &mut Output<'_, F>) -> io::Result<()> {
        let tables = [
            (&EXITS, self.exits),
            (&EXIT_DETAILS, self.details),
            (&tables::EXIT_ROLLUP, self.rollup),
            (&tables::EXIT_HIST, self.hist),
            (&tables::NESTED_ROLLUP, self.nested),
        ];
        for (table, writer) in tables {
            if let Some(writer) = writer {
                output.end(table, writer)?;
            }
        }
        Ok(())
    }
}

/// The recording to read for those tables.
pub(crate) struct Rows<'c> {
    pub(crate) context: &'c Context<'c>,
    pub(crate) at: usize,
    pub(crate) recording: &'c Recording,
    pub(crate) survey: &'c Survey,
    pub(crate) coverage: &'c Coverage,
}

impl Rows<'_> {
    /// Reads all exits of a recording.
    pub(crate) fn write<W: Write + Send>(&self, tables: &mut ExitTables<W>) -> io::Result<()> {
        let mut formats = self.recording.formats().iter();
        let has_nested = formats.any(|(_, format)| format.name().starts_with("kvm_nested"));
        // Only a pass with details has the events that assign exits of level 1 to those of level 2.
        let details = tables.details.is_some() || tables.nested.is_some() && has_nested;
        let names = ReasonNames::new(self.recording);
        let vms = VmNumbers::new(&self.survey.homes);
        let sums = Sums::new(self, &vms);
        let nested = (tables.nested.is_some() && has_nested).then(|| NestedSums::new(self, &vms));
        let rows = ExitRows::new(self, tables.exits.as_mut());
        let detail_rows = ExitRows::new(self, tables.details.as_mut());
        let sink = AllRows {
            rows: self,
            tables,
            names,
            vms,
            reasons: FxHashMap::default(),
            exits: rows,
            details: detail_rows,
            sums,
            nested,
            result: Ok(()),
        };
        let (sink, pass) = each_exit(self.recording, details, sink, self.context.tick).split();
        if pass.vcpus != self.survey.vcpus {
            let path = self.recording.path().display();
            return Err(io::Error::other(format!("{path} changed while it was read")));
        }
        sink.finish()
    }
}

/// VMs by number, for keys of sums.
#[derive(Debug, Default)]
pub(crate) struct VmNumbers {
    /// By vCPU, the number of its VM.
    pub(crate) of_vcpu: Vec<u32>,
    pub(crate) names: Vec<String>,
}

impl VmNumbers {
    fn new(homes: &[Home]) -> Self {
        let mut numbers = Self::default();
        for home in homes {
            let known = numbers.names.iter().position(|name| *name == home.vm);
            let number = known.unwrap_or_else(|| {
                numbers.names.push(home.vm.clone());
                numbers.names.len() - 1
            });
            numbers.of_vcpu.push(number as u32);
        }
        numbers
    }
}

/// An exit's reason as text.
#[derive(Clone, Debug)]
pub(crate) struct Reason {
    pub(crate) isa: &'static str,
    pub(crate) reason: String,
    pub(crate) code: String,
    pub(crate) waiting: bool,
}

impl Reason {
    pub(crate) fn new(names: &mut ReasonNames, isa: u8, code: u64) -> Self {
        let architecture = names.isa(isa);
        Self {
            isa: architecture.name(),
            reason: names.name(isa, code),
            code: Code::new(architecture, code).to_string(),
            waiting: architecture.waits(code),
        }
    }
}

/// Texts of a table's rows that are known before the first row.
#[derive(Debug)]
struct ExitRows {
    owner: Owner,
    machine: TextId,
    /// By vCPU.
    vms: Vec<TextId>,
    /// By handler.
    handled: [TextId; 3],
    /// By outcome.
    states: [TextId; 3],
    /// Whether the recording shows which exits user space handled.
    knows_user: bool,
}

impl ExitRows {
    fn new<W: Write + Send>(rows: &Rows<'_>, table: Option<&mut TableWriter<W>>) -> Option<Self> {
        let table = table?;
        Some(Self {
            owner: rows.context.owner(table),
            machine: table.keep(rows.context.machine(rows.at)),
            vms: rows.survey.homes.iter().map(|home| table.keep(&home.vm)).collect(),
            handled: ["kernel", "user", "l1"].map(|text| table.keep(text)),
            states: ["paired", "dropped", "open"].map(|text| table.keep(text)),
            knows_user: rows.survey.recorded.user,
        })
    }
}

/// A reason's texts in the table of exits.
#[derive(Clone, Copy, Debug)]
struct ReasonTexts {
    isa: TextId,
    reason: TextId,
    code: TextId,
    waiting: bool,
}

struct AllRows<'c, 't, W: Write + Send> {
    rows: &'c Rows<'c>,
    tables: &'t mut ExitTables<W>,
    names: ReasonNames,
    vms: VmNumbers,
    reasons: FxHashMap<(u8, u64), ReasonTexts>,
    exits: Option<ExitRows>,
    details: Option<ExitRows>,
    sums: Sums,
    nested: Option<NestedSums>,
    result: io::Result<()>,
}

/// The parts of an exit's time that are known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ExitParts {
    pub(crate) time_ns: Option<u64>,
    pub(crate) cost_ns: Option<u64>,
    pub(crate) not_split_ns: Option<u64>,
    pub(crate) known: KnownParts,
}

impl ExitParts {
    fn from_span(span: &ExitSpan, survey: &Survey) -> Self {
        let known = KnownParts::of_exit(span, &survey.recorded);
        if span.outcome == Outcome::Paired {
            let (time_ns, not_split_ns) = (Some(span.duration_ns()), Some(known.not_split_ns));
            return Self { time_ns, cost_ns: known.cost_ns, not_split_ns, known };
        }
        let cost_ns = survey.recorded.off_cpu.then_some(span.before_exit_ns);
        let before_exit_ns = known.before_exit_ns;
        let known = KnownParts { before_exit_ns, ..KnownParts::default() };
        Self { time_ns: None, cost_ns, not_split_ns: None, known }
    }
}

impl<W: Write + Send> AllRows<'_, '_, W> {
    fn exit_rows(&mut self, vcpu: usize, span: &ExitSpan) -> io::Result<()> {
        let ts_ns = self.rows.context.clock.unix_ns(span.start_ns);
        let parts = ExitParts::from_span(span, self.rows.survey);
        let number = self.rows.survey.homes.get(vcpu).map_or(0, |home| home.vcpu);
        if let (Some(rows), Some(table)) = (&self.exits, &mut self.tables.exits) {
            let names = &mut self.names;
            let texts = *self.reasons.entry((span.isa, span.code)).or_insert_with(|| {
                let Reason { isa, reason, code, waiting } = Reason::new(names, span.isa, span.code);
                let (isa, reason, code) = (table.keep(isa), table.keep(&reason), table.keep(&code));
                ReasonTexts { isa, reason, code, waiting }
            });
            write_exit(table, rows, (vcpu, number), (ts_ns, span, &parts), texts);
            table.end_row()?;
        }
        if let (Some(rows), Some(table)) = (&self.details, &mut self.tables.details) {
            let symbol =
                (span.guest_pc != 0).then(|| self.rows.recording.guest_symbol(span.guest_pc));
            write_details(table, rows, (vcpu, number), (ts_ns, span), symbol.flatten().as_deref());
            table.end_row()?;
        }
        if self.tables.rollup.is_some() || self.tables.hist.is_some() {
            let vm = self.vms.of_vcpu.get(vcpu).copied().unwrap_or(0);
            let key = GroupKey { vm, level: span.level, isa: span.isa, code: span.code };
            self.sums.add(ts_ns, key, span, &parts);
            if self.sums.is_due() {
                self.sums.write_old(&mut self.names, self.tables)?;
            }
        }
        if let (Some(nested), Some(table)) = (&mut self.nested, &mut self.tables.nested) {
            nested.exit(vcpu, ts_ns, span, &mut self.names, table)?;
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<()> {
        self.result?;
        self.sums.write_all(&mut self.names, self.tables)?;
        if let (Some(mut nested), Some(table)) = (self.nested, &mut self.tables.nested) {
            nested.write_all(&mut self.names, table)?;
        }
        Ok(())
    }
}

impl<W: Write + Send> ExitSink for AllRows<'_, '_, W> {
    fn exit(&mut self, vcpu: usize, span: &ExitSpan) {
        if self.result.is_ok() {
            self.result = self.exit_rows(vcpu, span);
        }
    }
}

fn write_exit<W: Write + Send>(
    table: &mut TableWriter<W>,
    rows: &ExitRows,
    (vcpu, number): (usize, i32),
    (ts_ns, span, parts): (i64, &ExitSpan, &ExitParts),
    texts: ReasonTexts,
) {
    let [kernel, user, l1] = rows.handled;
    let handled = match span.handler {
        Handler::Kernel => kernel,
        Handler::User => user,
        Handler::L1 => l1,
    };
    let [paired, dropped, open] = rows.states;
    let state = match span.outcome {
        Outcome::Paired => paired,
        Outcome::LostIn => dropped,
        Outcome::Unpaired => open,
    };
    let is_paired = span.outcome == Outcome::Paired;
    let KnownParts { kernel_ns, user_ns, user_and_return_ns, off_cpu_ns, .. } = parts.known;
    let KnownParts { runnable_ns, blocked_ns, halt_poll_ns, before_exit_ns, .. } = parts.known;
    let mut row = table.row();
    row.id(rows.owner.session).id(rows.owner.ingest).id(rows.machine);
    row.long(ts_ns).count_or_null(parts.time_ns).count_or_null(parts.cost_ns);
    row.count_or_null(kernel_ns).count_or_null(parts.not_split_ns);
    row.count_or_null(user_ns).count_or_null(user_and_return_ns);
    row.count_or_null(off_cpu_ns).count_or_null(runnable_ns).count_or_null(blocked_ns);
    row.count_or_null(halt_poll_ns).count_or_null(before_exit_ns).count(span.guest_ns);
    row.id(rows.vms.get(vcpu).copied().unwrap_or(rows.machine)).int(number);
    row.int(i32::from(span.level)).id(texts.isa).id(texts.reason).id(texts.code);
    row.id_or_null((is_paired && rows.knows_user).then_some(handled)).flag(texts.waiting);
    row.id(state).flag(is_paired && span.poll_unknown);
}

fn write_details<W: Write + Send>(
    table: &mut TableWriter<W>,
    rows: &ExitRows,
    (vcpu, number): (usize, i32),
    (ts_ns, span): (i64, &ExitSpan),
    symbol: Option<&str>,
) {
    let detail_value = |kind: Detail| {
        span.detail
            .filter(|(span_kind, _)| *span_kind == kind)
            .map(|(_, value)| value.cast_signed())
    };
    let mut row = table.row();
    row.id(rows.owner.session).id(rows.owner.ingest).id(rows.machine).long(ts_ns);
    row.id(rows.vms.get(vcpu).copied().unwrap_or(rows.machine)).int(number);
    row.long_or_null((span.guest_pc != 0).then_some(span.guest_pc.cast_signed()));
    row.text_or_null(symbol);
    row.long_or_null(detail_value(Detail::Msr))
        .long_or_null(detail_value(Detail::Port))
        .long_or_null(detail_value(Detail::Gpa));
    row.long_or_null(detail_value(Detail::Hypercall)).long_or_null(detail_value(Detail::CpuidLeaf));
}
