//! States for a sink with much to do: it takes them on a thread of its own, while the next ones are found.

use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;

use timeline::rounds::round_bytes;

use super::{GuestCpu, OccupantSpan, StateSink, StateSpan, States, VcpuRef, states};
use crate::view::View;

/// What is handed over at a time, at most; smaller batches cost `export --to perfetto` a twentieth to a tenth.
const MOST_IN_BATCH: usize = 8192;
/// Of what a round of reading may take, a batch takes one in eight bytes.
const PART_OF_ROUND: u64 = 8;
/// Batches under way at most: whoever makes more waits.
const UNDER_WAY: usize = 3;

/// [`states`] for a sink that takes spans on another thread, in the same order. It gets no events and no gaps.
pub fn states_aside<S: StateSink>(
    view: View<'_>,
    sink: &mut S,
    tick: &(dyn Fn(u64) + Sync),
) -> States {
    aside(sink, |sender| states(view, sender, tick))
}

/// Calls `read` with a sink whose spans are given to `sink`, on another thread and in the same order; events and gaps are not.
pub(crate) fn aside<R>(sink: &mut impl StateSink, read: impl FnOnce(&mut Sender) -> R) -> R {
    thread::scope(|scope| {
        let (out, batches) = sync_channel::<Vec<Taken>>(UNDER_WAY);
        let (give_back, spent) = channel();
        scope.spawn(move || {
            for mut batch in batches {
                batch.drain(..).for_each(|one| one.give(sink));
                // Nobody needs it once all is read.
                let _ = give_back.send(batch);
            }
        });
        let mut sender = Sender::new(out, spent);
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
pub(crate) struct Sender {
    batch: Vec<Taken>,
    /// How many a batch holds.
    size: usize,
    out: SyncSender<Vec<Taken>>,
    /// Batches whose memory can be used again.
    spent: Receiver<Vec<Taken>>,
    /// What was said last of who runs where: it is said again and again.
    runs: Option<(VcpuRef, u32)>,
}

impl Sender {
    fn new(out: SyncSender<Vec<Taken>>, spent: Receiver<Vec<Taken>>) -> Self {
        let fit = round_bytes() / PART_OF_ROUND / size_of::<Taken>() as u64;
        let size = usize::try_from(fit).unwrap_or(MOST_IN_BATCH).clamp(1, MOST_IN_BATCH);
        Self { batch: Vec::with_capacity(size), size, out, spent, runs: None }
    }

    fn add(&mut self, one: Taken) {
        self.batch.push(one);
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
