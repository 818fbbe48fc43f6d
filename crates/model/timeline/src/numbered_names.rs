//! Names that events give to numbers: for example, `irq_handler_entry` names each interrupt.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use ftrace::eventfmt::{Field, Value};
use raw_bytes::ByteOrder;
use rustc_hash::FxHashMap;
use sources::{Block, Damage, Recording};

use crate::load::Load;
use crate::rounds::{Batch, Consume, Decode, Input};

/// Maximum named numbers of a recording: more than a kernel has interrupts.
const MAX_NUMBERS: usize = 1 << 16;
/// Maximum bytes of a name; the rest is cut off.
const MAX_BYTES: usize = 128;

/// An event that names a number, with the fields.
#[derive(Clone, Copy, Debug)]
pub struct NamedNumber {
    /// The event with its system: `irq:irq_handler_entry`.
    pub event: &'static str,
    /// The field with the number.
    pub number: &'static str,
    /// The field with the name.
    pub name: &'static str,
}

/// By recording and number: the name in the recording's first event with that number.
pub type NumberedNames = BTreeMap<(usize, u64), String>;

/// Reads the names from some recordings.
#[derive(Debug)]
pub(crate) struct NameDecoder<'r> {
    /// By recording.
    readers: Vec<Option<Reader>>,
    owners: &'r [u16],
}

#[derive(Debug)]
struct Reader {
    order: ByteOrder,
    type_at: Load,
    id: u16,
    number: Field,
    name: Field,
}

impl<'r> NameDecoder<'r> {
    pub(crate) fn new(
        recordings: &[Recording],
        owners: &'r [u16],
        named_number: NamedNumber,
    ) -> Self {
        Self {
            readers: recordings
                .iter()
                .map(|recording| Reader::new(recording, named_number))
                .collect(),
            owners,
        }
    }
}

impl Reader {
    fn new(recording: &Recording, named_number: NamedNumber) -> Option<Self> {
        let formats = recording.formats();
        let (id, format) =
            formats.iter().find(|(_, format)| format.full_name() == named_number.event)?;
        let field = |name| format.field(name).cloned();
        Some(Self {
            order: recording.abi().order,
            type_at: Load::new(formats.type_at()),
            id,
            number: field(named_number.number)?,
            name: field(named_number.name)?,
        })
    }

    fn record<const BIG: bool>(&self, payload: &[u8], batch: &mut NameBatch) {
        if self.type_at.read::<BIG>(payload) != Some(self.id.into()) {
            return;
        }
        let Some(number) = self.number.unsigned(payload, self.order) else { return };
        if batch.names.contains_key(&number) || batch.names.len() >= MAX_NUMBERS {
            return;
        }
        if let Some(Value::Text(name)) = self.name.value(payload, self.order) {
            let prefix = name.get(..MAX_BYTES).unwrap_or(name);
            batch.names.insert(number, String::from_utf8_lossy(prefix).into_owned());
        }
    }
}

/// The names in a block.
#[derive(Debug, Default)]
pub(crate) struct NameBatch {
    names: FxHashMap<u64, String>,
}

impl Batch for NameBatch {
    fn clear(&mut self) {
        self.names.clear();
    }

    fn last_stamp_ns(&self) -> Option<u64> {
        None
    }

    fn set_unreadable(&mut self, _: Damage) {}
}

impl Decode for NameDecoder<'_> {
    type Batch = NameBatch;

    /// Names take little memory, so rounds need not shrink for them.
    fn decoders(&self) -> u64 {
        0
    }

    fn decode(&self, index: usize, _: Input<'_>, block: &Block<'_>, batch: &mut NameBatch) {
        let owner = self.owners.get(index).copied().map(usize::from);
        let Some(Some(reader)) = owner.and_then(|at| self.readers.get(at)) else { return };
        for (_, packet, _) in block.packets_and_next() {
            // The other decoder reports unreadable packets.
            let Ok(packet) = packet else { continue };
            let _ = packet.for_each(|record| match reader.order {
                ByteOrder::Little => reader.record::<false>(record.payload, batch),
                ByteOrder::Big => reader.record::<true>(record.payload, batch),
            });
        }
    }
}

/// Collects the names of all blocks.
#[derive(Debug)]
pub(crate) struct NameGatherer<'r> {
    owners: &'r [u16],
    pub(crate) names: NumberedNames,
}

impl<'r> NameGatherer<'r> {
    pub(crate) fn new(owners: &'r [u16]) -> Self {
        Self { owners, names: NumberedNames::new() }
    }
}

impl Consume<NameBatch> for NameGatherer<'_> {
    fn take(&mut self, input: usize, batch: NameBatch) {
        let Some(&owner) = self.owners.get(input) else { return };
        for (number, name) in batch.names {
            if self.names.len() < MAX_NUMBERS {
                self.names.entry((owner.into(), number)).or_insert(name);
            }
        }
    }

    fn advance(&mut self, _: u64, _: &mut Vec<NameBatch>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
