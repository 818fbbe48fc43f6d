//! Reads `kvm_write_tsc_offset`: changes of the offset of a guest's TSC.

use std::ops::ControlFlow;

use ftrace::eventfmt::NumberAt;
use raw_bytes::ByteOrder;
use sources::{Block, Damage, Recording};
use timeline::rounds::{self, Batch, Consume, Decode, Input};

/// A `kvm_write_tsc_offset` event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Write {
    /// The host's TSC.
    pub(super) host_tsc: u64,
    pub(super) thread: u32,
    pub(super) vcpu: u32,
    pub(super) before: i64,
    pub(super) after: i64,
}

/// All writes of TSC offsets, in the order of time.
pub(super) fn writes(host: &Recording) -> Vec<Write> {
    let Some(reader) = Reader::new(host) else { return Vec::new() };
    let mut gather = WriteConsumer(Vec::new());
    rounds::run(&Input::all_of(host), &reader, &mut gather, &|_| ());
    gather.0.sort_by_key(|write| write.host_tsc);
    gather.0
}

struct Reader {
    order: ByteOrder,
    id: u16,
    type_at: NumberAt,
    pid_at: NumberAt,
    vcpu: NumberAt,
    before: NumberAt,
    after: NumberAt,
}

impl Reader {
    fn new(host: &Recording) -> Option<Self> {
        let format = host.formats().by_name("kvm:kvm_write_tsc_offset")?;
        let at = |name: &str| format.field(name)?.number();
        Some(Self {
            order: host.abi().order,
            id: format.id(),
            type_at: host.formats().type_at(),
            pid_at: host.formats().pid_at(),
            vcpu: at("vcpu_id")?,
            before: at("previous_tsc_offset")?,
            after: at("next_tsc_offset")?,
        })
    }

    fn write(&self, host_tsc: u64, payload: &[u8]) -> Option<Write> {
        if self.type_at.read(payload, self.order)? as u16 != self.id {
            return None;
        }
        Some(Write {
            host_tsc,
            thread: self.pid_at.read(payload, self.order)? as u32,
            vcpu: self.vcpu.read(payload, self.order)? as u32,
            before: self.before.read(payload, self.order)?.cast_signed(),
            after: self.after.read(payload, self.order)?.cast_signed(),
        })
    }
}

#[derive(Debug, Default)]
struct WriteBatch(Vec<Write>);

impl Batch for WriteBatch {
    fn clear(&mut self) {
        self.0.clear();
    }

    fn last_stamp_ns(&self) -> Option<u64> {
        None
    }

    fn set_unreadable(&mut self, _: Damage) {}
}

impl Decode for Reader {
    type Batch = WriteBatch;

    fn decode(&self, _: usize, _: Input<'_>, block: &Block<'_>, batch: &mut WriteBatch) {
        for (_, packet) in block.packets() {
            let Ok(packet) = packet else { continue };
            // Records before a damaged one are valid.
            let _ =
                packet.for_each(|record| batch.0.extend(self.write(record.stamp, record.payload)));
        }
    }
}

struct WriteConsumer(Vec<Write>);

impl Consume<WriteBatch> for WriteConsumer {
    fn take(&mut self, _: usize, batch: WriteBatch) {
        self.0.extend(batch.0);
    }

    fn advance(&mut self, _: u64, _: &mut Vec<WriteBatch>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
