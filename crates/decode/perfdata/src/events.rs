//! The events of a recording, and the event of each record.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use raw_bytes::{ByteOrder, Damages, Truncated};

use crate::attr::{Attr, sample_type};
use crate::sample_id::IdPlace;
use crate::{Body, Record, SampleId, kind, names};

/// Maximum number of events: `perf record -e '*:*'` has about two thousand.
const MAX_EVENTS: usize = 1 << 16;

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The event to count, and the fields of its samples.
    pub attr: Attr,
    /// Its ids: one per CPU or thread.
    pub ids: Vec<u64>,
    /// Its name in the file.
    pub(crate) given: Option<String>,
}

impl Event {
    /// Its name in the file, otherwise a name from its attributes.
    #[must_use]
    pub fn name(&self) -> String {
        self.given.clone().unwrap_or_else(|| names::name(&self.attr))
    }
}

/// The events of a recording.
#[derive(Clone, Debug)]
pub struct Events {
    list: Vec<Event>,
    by_id: HashMap<u64, usize>,
    /// Number of ids that can still be added, which the file's size bounds.
    room: usize,
    order: ByteOrder,
    /// Position of the event's id in records; `None` if it is not the same for all events.
    place: Option<IdPlace>,
    /// Whether all events have the same sample fields.
    alike: bool,
}

impl Events {
    /// An empty list for a file of this size.
    pub(crate) fn new(order: ByteOrder, file_len: usize) -> Self {
        let room = file_len.div_ceil(8);
        Self { list: Vec::new(), by_id: HashMap::new(), room, order, place: None, alike: true }
    }

    /// All events in file order.
    #[must_use]
    pub fn list(&self) -> &[Event] {
        &self.list
    }

    /// The index of the event with an id.
    #[must_use]
    pub fn index_of_id(&self, id: u64) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    /// The index of a record's event; `None` if it is unknown, or if there are no events.
    ///
    /// A record without an event id is assigned to the first event if that makes no difference: for
    /// records other than samples, and if all events have the same sample fields.
    #[must_use]
    pub fn index_of(&self, record: &Record<'_>) -> Option<usize> {
        let (first, sampled) = (self.list.first()?, record.kind == kind::SAMPLE);
        if self.list.len() == 1 || record.kind >= kind::USER_START {
            return Some(0);
        }
        if !sampled && !first.attr.flags.sample_id_all() {
            return Some(0);
        }
        match self.place.and_then(|place| place.id(record, self.order)) {
            Some(id) if id != 0 => self.index_of_id(id),
            Some(_) => Some(0),
            None => (self.alike || !sampled).then_some(0),
        }
    }

    /// The content of a record.
    ///
    /// # Errors
    /// If its event is not in the file (then nothing was `wanted`), or if it ends before the fields
    /// of its type and its event.
    pub fn body<'f>(&self, record: &Record<'f>) -> Result<Body<'f>, Truncated> {
        Body::parse(record, self.attr(record)?)
    }

    /// The sample id at the end of a record: event, CPU and time.
    ///
    /// # Errors
    /// As for [`Events::body`].
    pub fn sample_id(&self, record: &Record<'_>) -> Result<SampleId, Truncated> {
        SampleId::parse(record, self.attr(record)?)
    }

    fn attr(&self, record: &Record<'_>) -> Result<&Attr, Truncated> {
        // perf's own records have the same content for all events.
        static NONE: Attr = Attr::none();
        let event = self.index_of(record).and_then(|at| self.list.get(at));
        let is_of_perf = record.kind >= kind::USER_START;
        event.map(|event| &event.attr).or(is_of_perf.then_some(&NONE)).ok_or(Truncated {
            offset: record.offset,
            wanted: 0,
            have: record.bytes.len() as u64,
        })
    }

    pub(crate) fn add(&mut self, attr: Attr, offset: u64, damages: &mut Damages) -> Option<usize> {
        if self.list.len() >= MAX_EVENTS {
            damages.note(offset, format!("more than {MAX_EVENTS} events; the others are ignored"));
            return None;
        }
        self.list.push(Event { attr, ids: Vec::new(), given: None });
        self.list.len().checked_sub(1)
    }

    /// Adds ids to an event; the first event with an id keeps it.
    pub(crate) fn add_ids(&mut self, index: usize, ids: impl Iterator<Item = u64>) {
        let Some(event) = self.list.get_mut(index) else { return };
        for id in ids {
            let Some(room) = self.room.checked_sub(1) else { return };
            self.room = room;
            // Lists of ids occur twice: in sections and in features.
            if let Entry::Vacant(free) = self.by_id.entry(id) {
                free.insert(index);
                event.ids.push(id);
            }
        }
    }

    pub(crate) fn set_name(&mut self, index: usize, name: String) {
        if let Some(event) = self.list.get_mut(index).filter(|_| !name.is_empty()) {
            event.given = Some(name);
        }
    }

    /// Determines the common properties of all events; called after all events have been added.
    pub(crate) fn finish(&mut self, damages: &mut Damages) {
        let mut places = self.list.iter().map(|event| IdPlace::for_attr(&event.attr));
        let first = places.next().flatten();
        self.place = first.filter(|_| places.all(|place| place == first));
        let layout = |event: &Event| {
            let attr = &event.attr;
            (attr.sample_type, attr.read_format, attr.sample_regs_user, attr.sample_regs_intr)
        };
        let first_layout = self.list.first().map(layout);
        self.alike = self.list.iter().all(|event| Some(layout(event)) == first_layout);
        if self.place.is_none() && !self.alike {
            let what = "samples of different layouts do not say to which event they belong; samples are not read";
            damages.note(0, what);
        }
        let unknown = |event: &Event| event.attr.sample_type & !sample_type::KNOWN != 0;
        if self.list.iter().any(unknown) {
            damages.note(0, "an event's samples have unknown fields; the event is ignored");
        }
    }
}
