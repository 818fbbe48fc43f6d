//! Runs expensive sinks on a second thread, in parallel with the computation of states.

use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;

use timeline::rounds::round_bytes;

use super::{GuestCpu, OccupantSpan, StateNeeds, StateSink, StateSpan, VcpuRef};

/// Max calls per batch; smaller batches slow down `export --to perfetto` by 5 to 10 percent.
const MAX_IN_BATCH: usize = 8192;
/// A batch takes at most one in eight bytes of a round's memory.
const PART_OF_ROUND: u64 = 8;
/// Max queued batches.
const MAX_BATCHES: usize = 3;

/// Calls `read` with a sink that forwards spans to `sinks` on another thread, in the same order. Events and gaps
/// are not forwarded.
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
                // After the pass the sender is gone.
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

/// Sends calls in batches.
pub(super) struct Sender {
    batch: Vec<Taken>,
    /// Calls per batch.
    size: usize,
    out: SyncSender<Vec<Taken>>,
    /// Returned batches, whose memory is reused.
    spent: Receiver<Vec<Taken>>,
    /// The last [`Taken::RunsIn`], to skip repetitions.
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
        // Fails if the sink panicked; the scope propagates the panic.
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
