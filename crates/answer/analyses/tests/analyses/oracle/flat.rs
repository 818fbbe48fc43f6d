//! A recording as one list of events in the order of time.

use std::collections::BTreeMap;

use ftrace::eventfmt::EventFormat;
use ftrace::ringbuf::Page;
use raw_bytes::ByteOrder;
use sources::{BlockReader, Recording};

/// An event with its encoded fields.
#[derive(Clone, Debug)]
pub(crate) struct Event<'r> {
    pub(crate) ns: u64,
    pub(crate) cpu: u32,
    pub(crate) format: &'r EventFormat,
    order: ByteOrder,
    payload: Vec<u8>,
}

impl Event<'_> {
    pub(crate) fn is(&self, name: &str) -> bool {
        self.format.name() == name
    }

    /// An unsigned field; `None` if the event has no such field.
    pub(crate) fn get(&self, field: &str) -> Option<u64> {
        self.format.field(field)?.unsigned(&self.payload, self.order)
    }

    /// A text field; `None` if the event has no such field.
    pub(crate) fn text(&self, field: &str) -> Option<String> {
        let bytes = self.format.field(field)?.bytes(&self.payload, self.order)?;
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        Some(String::from_utf8_lossy(text).into_owned())
    }

    /// The current thread at the event.
    pub(crate) fn ran(&self) -> u64 {
        self.get("common_pid").unwrap()
    }

    /// A switch from this thread to another.
    pub(crate) fn leaves(&self, thread: u64) -> bool {
        self.is("sched_switch") && self.get("prev_pid") == Some(thread)
    }

    /// A switch from another thread to this one.
    pub(crate) fn resumes(&self, thread: u64) -> bool {
        self.is("sched_switch") && self.get("next_pid") == Some(thread)
    }

    /// The thread is woken up.
    pub(crate) fn wakes(&self, thread: u64) -> bool {
        (self.is("sched_waking") || self.is("sched_wakeup")) && self.get("pid") == Some(thread)
    }

    fn concerns(&self) -> Vec<u64> {
        let mut threads = vec![self.ran()];
        if self.is("sched_switch") {
            threads.extend([self.get("prev_pid").unwrap(), self.get("next_pid").unwrap()]);
        } else if self.is("sched_waking") || self.is("sched_wakeup") {
            threads.push(self.get("pid").unwrap());
        }
        threads.sort_unstable();
        threads.dedup();
        threads
    }
}

/// Every event of the recording, by time, then by CPU.
pub(crate) fn events(recording: &Recording) -> Vec<Event<'_>> {
    let order = recording.abi().order;
    let mut all = Vec::new();
    let mut reader = BlockReader::default();
    for stream in recording.streams() {
        for block in 0..stream.block_count() {
            let block = recording.block(stream, block, &mut reader).unwrap();
            let pages = block.pages().unwrap();
            for bytes in pages.bytes.chunks(pages.layout.page_size) {
                for record in Page::parse(bytes, pages.layout).unwrap().records() {
                    let id = order.uint_at(record.payload, 0, 2).unwrap() as u16;
                    all.push(Event {
                        ns: recording.correction(stream).ns(record.stamp, stream.cpu()),
                        cpu: stream.cpu(),
                        format: recording.formats().by_id(id).unwrap(),
                        order,
                        payload: record.payload.to_vec(),
                    });
                }
            }
        }
    }
    all.sort_by_key(|event| (event.ns, event.cpu));
    all
}

/// Events by vCPU thread: its own events, and other threads' events about it.
pub(crate) fn by_vcpu_thread<'e, 'r>(all: &'e [Event<'r>]) -> BTreeMap<u64, Vec<&'e Event<'r>>> {
    let is_vcpu = |event: &&Event<'_>| event.is("kvm_exit") || event.is("kvm_entry");
    let mut threads: BTreeMap<u64, Vec<_>> =
        all.iter().filter(is_vcpu).map(|event| (event.ran(), Vec::new())).collect();
    for event in all {
        for thread in event.concerns() {
            if let Some(events) = threads.get_mut(&thread) {
                events.push(event);
            }
        }
    }
    threads
}
