//! States for a sink with much to do: it takes them on a thread of its own, while the next ones are found.

use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;

use timeline::rounds::round_bytes;

use super::{GuestCpu, OccupantSpan, StateNeeds, StateSink, StateSpan, VcpuRef};

/// What is handed over at a time, at most; smaller batches cost `export --to perfetto` a twentieth to a tenth.
const MAX_IN_BATCH: usize = 8192;
/// Of what a round of reading may take, a batch takes one in eight bytes.
const PART_OF_ROUND: u64 = 8;
/// Batches that wait for the other thread, at most.
const MAX_BATCHES: usize = 3;

/// Calls `read` with a sink whose spans are given to `sinks`, on another thread and in the same order; events and gaps are not.
pub(super) fn on_own_thread<R>(
    mut sinks: Vec<&mut dyn StateSink>,
    read: impl FnOnce(&mut Sender) -> R,
) -> R {
    thread::scope(|scope| {
        let (out, batches) = sync_channel::<Vec<Taken>>(MAX_BATCHES);
        let (give_back, spent) = channel();
        let mut sender = Sender::new(out, spent, sinks.needs().guest_pc);
        scope.spawn(move || {
            for mut batch in batches {
                batch.drain(..).for_each(|call| call.give(&mut sinks));
                // Once everything is read, the sender is gone.
                let _ = give_back.send(batch);
            }
        });
        let found = read(&mut sender);
        sender.send();
        found
    })
}

/// A call of a sink.
enum Taken {
    Vcpu(VcpuRef, StateSpan),
    RunsIn(VcpuRef, u32),
    Task(GuestCpu, u32, StateSpan),
    Cpu(GuestCpu, OccupantSpan),
}

impl Taken {
    fn give(&self, sink: &mut impl StateSink) {
        match self {
            Self::Vcpu(vcpu, span) => sink.vcpu(*vcpu, span),
            Self::RunsIn(vcpu, thread) => sink.runs_in(*vcpu, *thread),
            Self::Task(guest, task, span) => sink.task(*guest, *task, span),
            Self::Cpu(cpu, span) => sink.cpu(*cpu, span),
        }
    }
}

/// Hands calls over in batches.
pub(super) struct Sender {
    batch: Vec<Taken>,
    /// How many a batch holds.
    size: usize,
    out: SyncSender<Vec<Taken>>,
    /// Batches whose memory can be used again.
    spent: Receiver<Vec<Taken>>,
    /// What was said last of who runs where: it is said again and again.
    runs: Option<(VcpuRef, u32)>,
    /// See [`StateNeeds::guest_pc`].
    guest_pc: bool,
}

impl Sender {
    fn new(out: SyncSender<Vec<Taken>>, spent: Receiver<Vec<Taken>>, guest_pc: bool) -> Self {
        let fit = round_bytes() / PART_OF_ROUND / size_of::<Taken>() as u64;
        let size = usize::try_from(fit).unwrap_or(MAX_IN_BATCH).clamp(1, MAX_IN_BATCH);
        Self { batch: Vec::with_capacity(size), size, out, spent, runs: None, guest_pc }
    }

    fn add(&mut self, call: Taken) {
        self.batch.push(call);
        if self.batch.len() >= self.size {
            self.send();
        }
    }

    fn send(&mut self) {
        let next = self.spent.try_recv().unwrap_or_else(|_| Vec::with_capacity(self.size));
        // It fails if the sink panicked, which the scope passes on.
        let _ = self.out.send(std::mem::replace(&mut self.batch, next));
    }
}

impl StateSink for Sender {
    fn needs(&self) -> StateNeeds<'_> {
        StateNeeds { guest_pc: self.guest_pc, ..StateNeeds::default() }
    }

    fn vcpu(&mut self, vcpu: VcpuRef, span: &StateSpan) {
        self.add(Taken::Vcpu(vcpu, *span));
    }

    fn runs_in(&mut self, vcpu: VcpuRef, thread: u32) {
        if self.runs != Some((vcpu, thread)) {
            self.runs = Some((vcpu, thread));
            self.add(Taken::RunsIn(vcpu, thread));
        }
    }

    fn task(&mut self, guest: GuestCpu, task: u32, span: &StateSpan) {
        self.add(Taken::Task(guest, task, *span));
    }

    fn cpu(&mut self, cpu: GuestCpu, span: &OccupantSpan) {
        self.add(Taken::Cpu(cpu, *span));
    }
}
