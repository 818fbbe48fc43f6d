//! The events of a recording, and which of them a record is of.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use raw_bytes::{ByteOrder, Damages, Truncated};

use crate::attr::{Attr, sample_type};
use crate::sample_id::IdPlace;
use crate::{Body, Record, SampleId, kind, names};

/// Events kept, at most: `perf record -e '*:*'` has some two thousand.
const MAX_EVENTS: usize = 1 << 16;

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What it counts, and what its samples hold.
    pub attr: Attr,
    /// Its ids: one for each CPU or thread.
    pub ids: Vec<u64>,
    /// The name that the file has for it.
    pub(crate) given: Option<String>,
}

impl Event {
    /// Its name: the file's, else one made of its attributes.
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
    /// Ids that may still be taken: as many as the file has room for.
    room: usize,
    order: ByteOrder,
    /// Where records have the id of their event; `None`: nowhere that is the same for all events.
    place: Option<IdPlace>,
    /// All events' samples hold the same.
    alike: bool,
}

impl Events {
    /// None yet, of a file with that many bytes.
    pub(crate) fn new(order: ByteOrder, file_len: usize) -> Self {
        let room = file_len.div_ceil(8);
        Self { list: Vec::new(), by_id: HashMap::new(), room, order, place: None, alike: true }
    }

    /// All of them in the order of the file.
    #[must_use]
    pub fn list(&self) -> &[Event] {
        &self.list
    }

    /// The index of the event that has an id.
    #[must_use]
    pub fn index_of_id(&self, id: u64) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    /// The index of the event that a record is of; `None`: that can't be known, or there is no event.
    ///
    /// Records that an event's id is not in are taken for those of the first event if it makes no
    /// difference: to records that are no samples, and where all events' samples hold the same.
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

    /// What a record says.
    ///
    /// # Errors
    /// When it is of an event that the file doesn't have (nothing is wanted then), or ends before all that
    /// its type and its event ask for.
    pub fn body<'f>(&self, record: &Record<'f>) -> Result<Body<'f>, Truncated> {
        Body::parse(record, self.attr(record)?)
    }

    /// What ends a record: which event, where and when.
    ///
    /// # Errors
    /// As [`Events::body`].
    pub fn sample_id(&self, record: &Record<'_>) -> Result<SampleId, Truncated> {
        SampleId::parse(record, self.attr(record)?)
    }

    fn attr(&self, record: &Record<'_>) -> Result<&Attr, Truncated> {
        // Those of perf's own say the same whatever the events.
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

    /// Gives an event ids; the first event that has an id keeps it.
    pub(crate) fn add_ids(&mut self, index: usize, ids: impl Iterator<Item = u64>) {
        let Some(event) = self.list.get_mut(index) else { return };
        for id in ids {
            let Some(room) = self.room.checked_sub(1) else { return };
            self.room = room;
            // Lists of ids come twice, in sections and in features.
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

    /// Finds what all events have in common; to be called when all are known.
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
