//! A first pass over all records: finds samples of tracepoints, other samples, thread names and
//! losses.

use std::collections::{BTreeMap, HashMap};

use perfdata::{Attr, Body, CpuMode, Events, PerfData, Record, Sample, kind};

use super::SampleCounts;
use super::bytes::Bytes;
use super::losses::{LossAt, Losses};
use super::running_kernel;
use super::stream::CpuSamples;
use raw_bytes::counted;

use crate::{CutFile, Damage, KernelCount};

/// Maximum threads with names.
const MAX_THREADS: usize = 1 << 20;
/// Upper bound of CPU numbers; no kernel has more.
pub(super) const MAX_CPUS: u32 = 1 << 14;

/// The result of the first pass.
#[derive(Debug, Default)]
pub(super) struct FirstLook {
    pub(super) cpus: BTreeMap<u32, CpuSamples>,
    pub(super) comms: HashMap<u32, NameSince>,
    pub(super) samples: SampleCounts,
    pub(super) damage: Vec<Damage>,
    /// A kernel symbol and its address.
    pub(super) kernel: Option<(Vec<u8>, u64)>,
    /// The record that the end of the file truncates, if records are stored uncompressed.
    cut_record: Option<raw_bytes::Damage>,
    losses: Losses,
    rounds: Rounds,
    unreadable: Faults,
    /// Samples of tracepoints without a time or a CPU.
    nowhere: Faults,
}

/// A thread name and its start.
#[derive(Clone, Debug)]
pub(super) struct NameSince {
    pub(super) name: String,
    time_ns: u64,
}

/// Faults of one kind: their number, and the offset of the first.
#[derive(Debug, Default)]
struct Faults {
    count: u64,
    first: u64,
}

impl Faults {
    fn add(&mut self, offset: u64) {
        if self.count == 0 {
            self.first = offset;
        }
        self.count += 1;
    }

    fn report(&self, what: &str) -> Option<Damage> {
        (self.count > 0).then(|| Damage::at(self.first, format!("{} {what}", self.count)))
    }
}

/// The round ends (FINISHED_ROUND) by which perf sorts: records after a round are no earlier than
/// the latest record before the previous round's end.
#[derive(Debug, Default)]
struct Rounds {
    latest_ns: u64,
    /// The latest time at the end of the last round, and of the one before.
    last_ns: u64,
    before_ns: u64,
    late: Faults,
}

impl Rounds {
    fn end(&mut self) {
        (self.before_ns, self.last_ns) = (self.last_ns, self.latest_ns);
    }

    fn sample(&mut self, time_ns: u64, offset: u64) {
        if time_ns < self.before_ns {
            self.late.add(offset);
        }
        self.latest_ns = self.latest_ns.max(time_ns);
    }
}

impl FirstLook {
    pub(super) fn new(events: &Events, bytes: &Bytes) -> Self {
        let mut look = Self::default();
        for record in bytes.records() {
            match record {
                Ok(record) => look.record(events, &record, bytes),
                Err(bad) => {
                    look.damage.push(Damage::at(bytes.in_file(bad.offset), bad.what.clone()));
                    look.cut_record = Some(bad).filter(|_| bytes.are_stored());
                }
            }
        }
        look.finish();
        look
    }

    /// Losses of each CPU with a stream.
    pub(super) fn lost_by_cpu(&self) -> Vec<KernelCount> {
        let count = |&cpu: &u32| {
            let lost = self.losses.on(cpu);
            KernelCount { cpu, lost, ..KernelCount::default() }
        };
        self.cpus.keys().map(count).collect()
    }

    /// Whether the file is truncated.
    pub(super) fn cut(&self, perf: &PerfData, file_len: usize) -> Option<CutFile> {
        CutFile::from_damages(perf.damage.iter().chain(&self.cut_record), file_len)
    }

    fn record(&mut self, events: &Events, record: &Record<'_>, bytes: &Bytes) {
        let offset = record.offset;
        match record.kind {
            kind::SAMPLE => {
                if self.sample(events, record, bytes).is_none() {
                    self.unreadable.add(bytes.in_file(offset));
                }
                return;
            }
            kind::FINISHED_ROUND => return self.rounds.end(),
            _ => {}
        }
        let Ok(body) = events.body(record) else { return };
        if let Some(loss) = self.losses.loss_in(events, record, &body) {
            self.lost(loss, offset);
        }
        match body {
            Body::Comm(comm) => {
                let time_ns = events.sample_id(record).ok().and_then(|id| id.time);
                self.comm(comm.tid, comm.name, time_ns.unwrap_or(0));
            }
            Body::Mapping(mapping) if self.kernel.is_none() => {
                self.kernel = running_kernel::placed(&mapping);
            }
            Body::IdIndex(entries) => self.losses.index(&entries),
            _ => {}
        }
    }

    /// Returns `None` if the sample cannot be read.
    fn sample(&mut self, events: &Events, record: &Record<'_>, bytes: &Bytes) -> Option<()> {
        let event = events.list().get(events.index_of(record)?)?;
        let sample = Sample::parse(record, &event.attr).ok()?;
        let Some(raw) = sample.raw.filter(|_| event.attr.is_tracepoint()) else {
            let name = unread_name(event.name(), &event.attr);
            let at = CpuMode::ALL.iter().position(|&mode| mode == sample.cpu_mode)?;
            *self.samples.entry(name).or_default().get_mut(at)? += 1;
            return Some(());
        };
        let cpu = sample.cpu.filter(|&cpu| cpu < MAX_CPUS);
        let Some((time_ns, cpu)) = sample.time.zip(cpu) else {
            self.nowhere.add(bytes.in_file(record.offset));
            return Some(());
        };
        let len = u32::try_from(raw.len()).ok()?;
        self.rounds.sample(time_ns, bytes.in_file(record.offset));
        self.cpus.entry(cpu).or_default().sample(time_ns, sample.raw_offset, len);
        Some(())
    }

    /// Records a thread name; the latest name in time wins, because per-CPU buffers follow one
    /// another in the file.
    fn comm(&mut self, thread: u32, name: &[u8], time_ns: u64) {
        let room = self.comms.len() < MAX_THREADS;
        let name = || String::from_utf8_lossy(name).into_owned();
        match self.comms.get_mut(&thread) {
            Some(known) if known.time_ns > time_ns => {}
            Some(known) => *known = NameSince { name: name(), time_ns },
            None if thread != 0 && room => {
                self.comms.insert(thread, NameSince { name: name(), time_ns });
            }
            None => {}
        }
    }

    fn lost(&mut self, loss: LossAt, offset: u64) {
        if loss.cpu < MAX_CPUS {
            self.cpus.entry(loss.cpu).or_default().lost(loss.time_ns, offset, loss.count);
        }
    }

    fn finish(&mut self) {
        for (cpu, count) in self.losses.at_the_end() {
            if cpu < MAX_CPUS {
                self.cpus.entry(cpu).or_default().lost_at_the_end(count);
            }
        }
        self.cpus.values_mut().for_each(CpuSamples::sort);
        if self.losses.nowhere > 0 {
            let what = counted(self.losses.nowhere, "record was", "records were")
                + " lost at an unknown place";
            self.damage.push(Damage::at(0, what));
        }
        let faults = [
            self.unreadable.report("samples from here on cannot be read"),
            self.nowhere.report(
                "samples of tracepoints without time or CPU are ignored (record with -T -R)",
            ),
            self.rounds.late.report("samples come later than the file's flush rounds allow"),
        ];
        self.damage.extend(faults.into_iter().flatten());
    }
}

/// The name under which a sample that is not read as a record is counted.
fn unread_name(name: String, attr: &Attr) -> String {
    if attr.is_tracepoint() { format!("{name} without raw data") } else { name }
}
