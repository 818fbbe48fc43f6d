//! Calls of traced functions, and phases of boots.

use std::io::{self, Write};

use analyses::boot::{BootMarks, BootedMachine, boot, has_boot_events};
use analyses::calls::{
    CallQuestion, CallSink, CallTracer, Called, Function, calls, tracer_recorded,
};
use analyses::states::States;
use lake_store::tables::SPANS;
use lake_store::{Files, TableWriter};
use rustc_hash::FxHashMap;

use crate::lake::convert::{Context, Output};

/// The tables need no stacks.
const NO_STACKS: CallQuestion = CallQuestion { patterns: Vec::new(), most_stacks: 0 };

pub(crate) fn write<F: Files>(
    context: &Context<'_>,
    pass: &States,
    output: &mut Output<'_, F>,
) -> io::Result<()> {
    let mut table = output.begin(&SPANS)?;
    let recordings = context.question.view.recordings;
    for (at, recording) in recordings.iter().enumerate() {
        if tracer_recorded(recording, at, &pass.pass) != Some(CallTracer::Graph) {
            continue;
        }
        let tracks = FxHashMap::default();
        let mut sink = Calls { context, at, pass, table: &mut table, tracks, result: Ok(()) };
        calls(recording, &NO_STACKS, &mut sink, context.tick);
        sink.result?;
    }
    if recordings.iter().any(has_boot_events) {
        let marks = BootMarks::default();
        let found = boot(context.question.view, &[], &marks, context.tick);
        for machine in found.machines.iter().filter(|machine| machine.guest.is_some()) {
            write_boot(context, machine, &mut table)?;
        }
    }
    output.end(&SPANS, table)
}

struct Calls<'c, W: Write + Send> {
    context: &'c Context<'c>,
    at: usize,
    pass: &'c States,
    table: &'c mut TableWriter<W>,
    /// By thread and, for an idle task, CPU.
    tracks: FxHashMap<(u32, Option<u16>), String>,
    result: io::Result<()>,
}

impl<W: Write + Send> Calls<'_, W> {
    fn row(&mut self, call: &Called, function: &Function) -> io::Result<()> {
        let names = self.pass.pass.names.get(self.at);
        let track = self.tracks.entry((call.thread, call.idle_cpu)).or_insert_with(|| {
            match call.idle_cpu {
                Some(cpu) => format!("idle of CPU {cpu}"),
                None => {
                    let name = names.and_then(|names| names.get(call.thread)).unwrap_or("<...>");
                    format!("{name} {}", call.thread)
                }
            }
        });
        let mut row = self.table.row();
        row.text(&self.context.ids.session).text(&self.context.ids.ingest);
        row.long(self.context.clock.unix_ns(call.from_ns));
        row.count(call.to_ns.saturating_sub(call.from_ns));
        row.text(self.context.machine(self.at)).text(track).text(&function.title());
        row.text_or_null(None).int_or_null(i32::try_from(call.depth).ok());
        self.table.end_row()
    }
}

impl<W: Write + Send> CallSink for Calls<'_, W> {
    fn call(&mut self, call: &Called, function: &Function) {
        if self.result.is_ok() {
            self.result = self.row(call, function);
        }
    }
}

fn write_boot<W: Write + Send>(
    context: &Context<'_>,
    machine: &BootedMachine,
    table: &mut TableWriter<W>,
) -> io::Result<()> {
    let name = match (&machine.vm, machine.guest) {
        (Some(vm), _) => vm.as_str(),
        (None, guest) => context.machine(guest.unwrap_or(0)),
    };
    let mut span = |track: &str, (from_ns, to_ns): (u64, u64), what: &str, parent: Option<&str>| {
        let mut row = table.row();
        row.text(&context.ids.session).text(&context.ids.ingest);
        row.long(context.clock.unix_ns(from_ns)).count(to_ns.saturating_sub(from_ns));
        row.text(name).text(track).text(what).text_or_null(parent).int_or_null(None);
        table.end_row()
    };
    for phase in &machine.phases {
        span("boot", (phase.from_ns, phase.to_ns), &phase.name, None)?;
    }
    for call in &machine.initcalls {
        let Some(to_ns) = call.to_ns else { continue };
        let what = call.function.clone().unwrap_or_else(|| format!("{:#x}", call.address));
        let is_in = |phase: &&analyses::boot::Phase| {
            phase.from_ns <= call.from_ns && call.from_ns < phase.to_ns
        };
        let parent = machine.phases.iter().find(is_in).map(|phase| phase.name.as_str());
        span("initcalls", (call.from_ns, to_ns), &what, parent)?;
    }
    Ok(())
}
