//! Tables about the session: small ones, and the session's row.

use std::io;

use lake_store::tables::{ALIGNMENT, LABELS, LOSSES, MACHINES, SCHEMA_VERSION, SESSIONS, VMS};
use lake_store::{CONVERTER, Files};
use timeline::trace_events::Gap;

use crate::lake::convert::{Context, Output};
use crate::lake::gaps::Coverage;

/// Writes all small tables except that of the session.
pub(crate) fn write_small<F: Files>(
    context: &Context<'_>,
    lost: &[Coverage],
    output: &mut Output<'_, F>,
) -> io::Result<()> {
    let wants = |table| context.question.written.contains(&table);
    if wants(&LABELS) {
        write_labels(context, output)?;
    }
    if wants(&MACHINES) {
        write_machines(context, output)?;
    }
    if wants(&VMS) {
        write_vms(context, output)?;
    }
    if wants(&ALIGNMENT) {
        write_alignment(context, output)?;
    }
    if wants(&LOSSES) {
        write_losses(context, lost, output)?;
    }
    Ok(())
}

fn write_labels<F: Files>(context: &Context<'_>, output: &mut Output<'_, F>) -> io::Result<()> {
    let mut table = output.begin(&LABELS)?;
    for (key, value) in &context.question.origin.labels {
        table.row().text(&context.ids.session).text(&context.ids.ingest).text(key).text(value);
        table.end_row()?;
    }
    output.end(&LABELS, table)
}

fn write_machines<F: Files>(context: &Context<'_>, output: &mut Output<'_, F>) -> io::Result<()> {
    let mut table = output.begin(&MACHINES)?;
    let question = &context.question;
    for (at, (recording, machine)) in
        question.view.recordings.iter().zip(question.machines).enumerate()
    {
        let aligned = question.view.alignment(at);
        let rows = aligned.and_then(|alignment| alignment.result()).map(|result| &result.rows);
        let bound_ns = rows.and_then(|rows| rows.iter().map(|row| row.bound_ns).max().flatten());
        let uname = Uname::parse(recording.info().uname.as_deref());
        let mut row = table.row();
        row.text(&context.ids.session).text(&context.ids.ingest).text(&machine.name);
        row.int(machine.level.cast_signed()).text(if machine.level == 0 {
            "host"
        } else {
            "guest"
        });
        row.text_or_null(uname.release);
        row.text_or_null(
            aligned.and_then(|alignment| alignment.chosen).map(analyses::align::Method::name),
        );
        row.count_or_null(bound_ns);
        table.end_row()?;
    }
    output.end(&MACHINES, table)
}

fn write_vms<F: Files>(context: &Context<'_>, output: &mut Output<'_, F>) -> io::Result<()> {
    let mut table = output.begin(&VMS)?;
    for (at, survey) in context.surveys.iter().enumerate() {
        let processes = context.question.processes.get(at);
        for vm in &survey.vms {
            let pid = vm.vcpus.iter().find_map(|vcpu| processes?.get(&vcpu.thread));
            let mut row = table.row();
            row.text(&context.ids.session).text(&context.ids.ingest).text(context.machine(at));
            row.text(&vm.name).long_or_null(pid.copied().map(i64::from));
            row.text_or_null(vm.comm.as_deref());
            row.int(i32::try_from(vm.vcpus.len()).unwrap_or(i32::MAX));
            table.end_row()?;
        }
    }
    output.end(&VMS, table)
}

fn write_alignment<F: Files>(context: &Context<'_>, output: &mut Output<'_, F>) -> io::Result<()> {
    let mut table = output.begin(&ALIGNMENT)?;
    let unix = |trace_ns: i64| context.clock.unix_ns(trace_ns.max(0).unsigned_abs());
    for guest in context.question.view.guests {
        for result in &guest.methods {
            for row in &result.rows {
                let mut cells = table.row();
                cells.text(&context.ids.session).text(&context.ids.ingest).text(&guest.vm);
                cells.int(row.vcpu.cast_signed()).int(row.guest_cpu.cast_signed());
                cells.long(unix(row.from_ns)).long(unix(row.to_ns)).text(result.method.name());
                cells.flag(guest.chosen == Some(result.method)).long(row.offset_ns);
                cells.count_or_null(row.bound_ns).double(row.drift_ppb);
                cells.count(row.events).count(row.violations);
                table.end_row()?;
            }
        }
    }
    output.end(&ALIGNMENT, table)
}

fn write_losses<F: Files>(
    context: &Context<'_>,
    lost: &[Coverage],
    output: &mut Output<'_, F>,
) -> io::Result<()> {
    let mut table = output.begin(&LOSSES)?;
    for (at, coverage) in lost.iter().enumerate() {
        for Gap { cpu, from_ns, to_ns, .. } in &coverage.gaps {
            let unix = |ns, none| (ns != none).then(|| context.clock.unix_ns(ns));
            let mut row = table.row();
            row.text(&context.ids.session).text(&context.ids.ingest).text(context.machine(at));
            row.int(i32::from(*cpu)).long_or_null(unix(*from_ns, 0));
            row.long_or_null(unix(*to_ns, u64::MAX)).long_or_null(None);
            table.end_row()?;
        }
    }
    output.end(&LOSSES, table)
}

/// The parts of a machine's uname: system, name, release and architecture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Uname<'u> {
    name: Option<&'u str>,
    release: Option<&'u str>,
    arch: Option<&'u str>,
}

impl<'u> Uname<'u> {
    fn parse(uname: Option<&'u str>) -> Self {
        let mut words = uname.unwrap_or_default().split_ascii_whitespace().skip(1);
        let (name, release) = (words.next(), words.next());
        Self { name, release, arch: words.last() }
    }
}

/// Writes the row that makes all others valid.
pub(crate) fn write_session<F: Files>(
    context: &Context<'_>,
    output: &mut Output<'_, F>,
) -> io::Result<()> {
    let mut table = output.begin(&SESSIONS)?;
    let origin = context.question.origin;
    let recordings = context.question.view.recordings;
    let info = recordings.first().map(sources::Recording::info);
    let uname = Uname::parse(info.and_then(|info| info.uname.as_deref()));
    let surveys = &context.surveys;
    let sum = |count_of: fn(&crate::lake::survey::Survey) -> u64| {
        surveys.iter().map(count_of).fold(0, u64::saturating_add)
    };
    let ends = surveys.first().and_then(|survey| survey.ends_ns).unwrap_or_default();
    let known = |flag_of: fn(&analyses::recorded::RecordedParts) -> bool| {
        let mut hosts = surveys.iter().filter(|survey| !survey.homes.is_empty()).peekable();
        hosts.peek().is_some() && hosts.all(|survey| flag_of(&survey.recorded))
    };
    let mut row = table.row();
    row.text(&context.ids.session).text(&context.ids.ingest).int(SCHEMA_VERSION).text("hot");
    row.text_or_null(origin.host_id.as_deref().or(uname.name)).text_or_null(uname.name);
    row.text_or_null(uname.release).text_or_null(uname.arch);
    row.text_or_null(surveys.iter().find_map(|survey| survey.isa).map(analyses::Isa::name));
    // Labels take precedence: users set them on purpose.
    row.text_or_null(label(context, "cpu_model").or(origin.cpu_model.as_deref()));
    row.text_or_null(label(context, "microcode").or(origin.microcode.as_deref()));
    let cpus = recordings.first().map_or(0, sources::Recording::cpus);
    row.int(i32::try_from(cpus).unwrap_or(i32::MAX)).text_or_null(vmm(context));
    row.long_or_null(context.clock.offset_ns.map(|_| context.ids.begun_ns));
    row.count(ends.1.saturating_sub(ends.0));
    row.text_or_null(info.and_then(|info| info.clock.as_deref()));
    row.long_or_null(context.clock.offset_ns).count_or_null(context.clock.error_ns);
    row.count(sum(|survey| survey.losses.records)).count(sum(|survey| survey.losses.events_lost));
    row.count(sum(|survey| survey.losses.uncounted_losses));
    row.count(sum(|survey| survey.losses.pages_damaged())).count(sum(|survey| survey.dropped));
    row.flag(known(|recorded| recorded.user))
        .flag(known(|recorded| recorded.off_cpu))
        .flag(known(|recorded| recorded.halt_poll));
    row.count_or_null(origin.recorder_cpu_ns).count_or_null(origin.available_cpu_ns);
    row.double(origin.sample_weight).text(&origin.source_uri);
    row.count(origin.source.as_ref().map_or(0, |source| source.bytes)).int(CONVERTER);
    table.end_row()?;
    output.end(&SESSIONS, table)
}

/// The value of a label.
fn label<'c>(context: &'c Context<'_>, key: &str) -> Option<&'c str> {
    let labels = &context.question.origin.labels;
    labels.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
}

/// The name that the threads of all VMs share.
fn vmm<'c>(context: &'c Context<'_>) -> Option<&'c str> {
    let vms = context.surveys.first().map_or(&[][..], |survey| &survey.vms);
    let first = vms.first()?.comm.as_deref()?;
    vms.iter().all(|vm| vm.comm.as_deref() == Some(first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_names_itself_its_kernel_and_its_architecture() {
        let uname = Uname::parse(Some("Linux web7 6.1.0-50-cloud-amd64 x86_64"));
        assert_eq!(uname.name, Some("web7"));
        assert_eq!(uname.release, Some("6.1.0-50-cloud-amd64"));
        assert_eq!(uname.arch, Some("x86_64"));
        assert_eq!(Uname::parse(None), Uname::default());
    }
}
