//! The vCPU threads of a recording: found by what they do, told apart when thread ids are reused.

use rustc_hash::FxHashMap;

use crate::thread_event::{Kind, ThreadEvent};
use crate::vcpu::{ExitSink, VcpuThread};

/// A vCPU thread as far as its own events tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VcpuInfo {
    /// Thread id (the kernel's `pid`).
    pub thread: u32,
    /// The id its `kvm_entry` events carry, where they carry one.
    pub vcpu_id: Option<u32>,
    /// `isa` field of its exits (1 VMX, 2 SVM), 0 where there is none.
    pub isa: u8,
    /// First and last time one of its entries or exits was seen.
    pub first_ns: u64,
    /// See `first_ns`.
    pub last_ns: u64,
}

/// All vCPU threads, those that ended included.
#[derive(Debug, Default)]
pub struct Vcpus {
    infos: Vec<VcpuInfo>,
    live: FxHashMap<u32, VcpuThread>,
    kinds_seen: KindSet,
}

/// Which kinds of events vCPU threads had: a part of an exit whose events never occur was not
/// recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindSet(u32);

impl KindSet {
    pub(crate) fn insert(&mut self, kind: Kind) {
        self.0 |= 1 << kind as u8;
    }

    /// Whether an event of that kind was seen.
    #[must_use]
    pub fn contains(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }
}

impl Vcpus {
    /// What is known of each vCPU; the index is the one an [`ExitSink`] is told.
    #[must_use]
    pub fn infos(&self) -> &[VcpuInfo] {
        &self.infos
    }

    /// The kinds of events seen on vCPU threads.
    #[must_use]
    pub fn kinds_seen(&self) -> KindSet {
        self.kinds_seen
    }

    pub(crate) fn knows(&self, thread: u32) -> bool {
        self.live.contains_key(&thread)
    }

    pub(crate) fn threads(&self) -> impl Iterator<Item = u32> {
        self.live.keys().copied()
    }

    /// Takes events of one thread, in time order.
    pub(crate) fn feed(&mut self, thread: u32, events: &[ThreadEvent], sink: &mut impl ExitSink) {
        let mut rest = events;
        while !rest.is_empty() {
            if !self.live.contains_key(&thread) && !self.begin(thread, &mut rest) {
                return;
            }
            rest = self.feed_live(thread, rest, sink);
        }
    }

    /// Makes the thread a vCPU at its first entry or exit among `events`.
    fn begin(&mut self, thread: u32, events: &mut &[ThreadEvent]) -> bool {
        let is_vcpu = |event: &ThreadEvent| matches!(event.kind, Kind::Exit | Kind::Entry);
        let Some(at) = events.iter().position(is_vcpu) else { return false };
        *events = events.get(at..).unwrap_or(&[]);
        let first_ns = events.first().map_or(0, |event| event.stamp_ns);
        self.live.insert(thread, VcpuThread::new(self.infos.len()));
        self.infos.push(VcpuInfo { thread, vcpu_id: None, isa: 0, first_ns, last_ns: first_ns });
        true
    }

    /// Feeds a known vCPU until it ends; returns what is left then.
    fn feed_live<'e>(
        &mut self,
        thread: u32,
        events: &'e [ThreadEvent],
        sink: &mut impl ExitSink,
    ) -> &'e [ThreadEvent] {
        let Some(vcpu) = self.live.get_mut(&thread) else { return &[] };
        let Some(info) = self.infos.get_mut(vcpu.index) else { return &[] };
        for (at, event) in events.iter().enumerate() {
            self.kinds_seen.insert(event.kind);
            if ends(vcpu, event) {
                vcpu.finish(sink);
                self.live.remove(&thread);
                let next = if event.kind == Kind::ThreadGone { at + 1 } else { at };
                return events.get(next..).unwrap_or(&[]);
            }
            vcpu.feed(event, sink);
            match event.kind {
                Kind::Exit => {
                    info.isa = event.flag;
                    info.last_ns = event.stamp_ns;
                }
                Kind::Entry => {
                    info.vcpu_id = vcpu.vcpu_id;
                    info.last_ns = event.stamp_ns;
                }
                _ => {}
            }
        }
        &[]
    }

    pub(crate) fn finish(&mut self, sink: &mut impl ExitSink) {
        let mut threads: Vec<_> = self.live.drain().map(|(_, vcpu)| vcpu).collect();
        threads.sort_by_key(|vcpu| vcpu.index);
        for mut vcpu in threads {
            vcpu.finish(sink);
        }
    }
}

/// The thread has gone, or its id now belongs to another vCPU's thread.
fn ends(vcpu: &VcpuThread, event: &ThreadEvent) -> bool {
    match event.kind {
        Kind::ThreadGone => true,
        Kind::Entry if event.value != 0 => {
            vcpu.vcpu_id.is_some_and(|known| u64::from(known) + 1 != event.value)
        }
        _ => false,
    }
}
