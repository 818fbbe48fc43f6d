//! Cost of a host with many VMs: adding an interval to the totals, a page of metrics in each format, and a frame of
//! `top`. Exits come from a real recording and are assigned to many VMs.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use analyses::exits::exits;
use analyses::group::By;
use criterion::{BatchSize, Criterion, SamplingMode, Throughput};
use live::metrics::{Format, Totals, page};
use live::viewer::{Screen, draw};
use live::{Histogram, Interval, Row, States, Sums, Vcpu};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use timeline::VcpuActivity;
use timeline::arch::Isa;

const RECORDING: &str = "x86-svm/nested.dat";
/// VMs, and vCPUs of each.
const VMS: u32 = 1000;
const VCPUS: u32 = 4;
/// VMs on the screen of `top` with a row per vCPU, and the size of the screen.
const SHOWN_VMS: u32 = 200;
const CELLS: (u16, u16) = (200, 60);
/// Reasons of a VM: those of the recording, repeated under other names.
const REASONS: usize = 40;
/// Buckets with times of a reason.
const BUCKETS_USED: usize = 8;
const SERIES: usize = 1 << 20;

/// Sums of each reason of the recording, as the kernel adds them up.
fn recorded() -> Result<Vec<Sums>, Box<dyn Error>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(RECORDING);
    let found = exits(&sources::open(&path)?, &By::DEFAULT, &|_| ());
    let sums = found.rows.iter().map(|row| {
        let (count, paired, parts) = (row.tally.count, row.tally.paired(), row.tally.parts);
        let mut counts = [0; live::BUCKETS];
        let used = counts.iter_mut().skip(live::BUCKETS / 3).take(BUCKETS_USED);
        used.for_each(|bucket| *bucket = paired / BUCKETS_USED as u64);
        let times = Histogram::new(counts, paired);
        let time_ns = parts.total_ns();
        Sums { count, paired, time_ns, parts, handled: [paired, 0, 0], times, ..Sums::default() }
    });
    Ok(sums.collect())
}

/// The interval of a host with this number of VMs; rows are VMs or vCPUs.
fn interval(recorded: &[Sums], vms: u32, is_by_vcpu: bool) -> Interval {
    let mut interval = Interval { end_ns: 1_000_000_000, ..Interval::default() };
    for vm in 0..vms {
        let name = format!("web-{vm:04}");
        for vcpu in 0..VCPUS {
            let mut states = States::default();
            states.give(VcpuActivity::Guest, 1_000_000_000);
            interval.vcpus.push(Vcpu {
                vm: name.clone(),
                process: 1 + vm,
                vcpu: Some(vcpu),
                thread: vms + vm * VCPUS + vcpu,
                states,
                waits: recorded.first().cloned().unwrap_or_default(),
                ..Vcpu::default()
            });
        }
        if is_by_vcpu {
            (0..VCPUS).for_each(|vcpu| interval.rows.extend(rows(recorded, &name, Some(vcpu))))
        } else {
            interval.rows.extend(rows(recorded, &name, None))
        }
    }
    interval
}

fn rows(recorded: &[Sums], vm: &str, vcpu: Option<u32>) -> impl Iterator<Item = Row> {
    let reasons = recorded.iter().cycle().take(REASONS).enumerate();
    reasons.map(move |(at, sums)| Row {
        vm: Some(vm.to_owned()),
        vcpu,
        level: 1,
        isa: Isa::Svm,
        code: None,
        reason: format!("reason-{at}"),
        waiting: at == 0,
        sums: sums.clone(),
    })
}

/// The work of `top` for each interval and each key.
fn screen(criterion: &mut Criterion, recorded: &[Sums]) -> Result<(), Box<dyn Error>> {
    let interval = interval(recorded, SHOWN_VMS, true);
    let name = format!("top, {SHOWN_VMS} VMs of {VCPUS} vCPUs and {REASONS} reasons");
    let mut group = criterion.benchmark_group(name);
    group.sample_size(15).sampling_mode(SamplingMode::Flat);
    group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(4));
    let mut screen = Screen::default();
    group.bench_function("an interval taken", |bencher| {
        bencher.iter_batched(
            || interval.clone(),
            |interval| screen.take(interval, Vec::new()),
            BatchSize::LargeInput,
        );
    });
    let mut terminal = Terminal::new(TestBackend::new(CELLS.0, CELLS.1))?;
    group.bench_function("a frame", |bencher| {
        bencher.iter(|| terminal.draw(|frame| draw(&screen, frame)).map(|_| ()));
    });
    group.finish();
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut criterion = Criterion::default().configure_from_args();
    let recorded = recorded()?;
    let interval = interval(&recorded, VMS, false);
    let mut totals = Totals::new(SERIES);
    totals.add(&interval);
    let mut group = criterion.benchmark_group(format!("{VMS} VMs of {REASONS} reasons"));
    group.sample_size(15).sampling_mode(SamplingMode::Flat);
    group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(4));
    group.bench_function("an interval added", |bencher| {
        bencher.iter(|| totals.add(&interval));
    });
    for (name, format) in [
        ("text", Format::Text),
        ("OpenMetrics", Format::OpenMetrics),
        ("protocol buffers", Format::Protobuf),
    ] {
        group.throughput(Throughput::Bytes(page(&totals, format).len() as u64));
        group.bench_function(name, |bencher| bencher.iter(|| page(&totals, format)));
    }
    group.finish();
    screen(&mut criterion, &recorded)?;
    criterion.final_summary();
    Ok(())
}
