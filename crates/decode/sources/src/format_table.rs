//! The event formats of a recording, by id and by name.

use std::collections::HashMap;

use ftrace::eventfmt::{EventFormat, NumberAt};

/// Event formats by id and by `system:name`.
#[derive(Debug, Default)]
pub struct FormatTable {
    by_id: Vec<Option<EventFormat>>,
    ids: HashMap<String, u16>,
}

impl FromIterator<EventFormat> for FormatTable {
    /// A table of formats from another source than a recording, such as the running kernel.
    fn from_iter<I: IntoIterator<Item = EventFormat>>(formats: I) -> Self {
        let mut table = Self::default();
        formats.into_iter().for_each(|format| table.insert(format));
        table
    }
}

impl FormatTable {
    /// Adds a format; a later one replaces an earlier one with the same id.
    pub(crate) fn insert(&mut self, format: EventFormat) {
        let at = usize::from(format.id());
        if self.by_id.len() <= at {
            self.by_id.resize_with(at + 1, || None);
        }
        self.ids.insert(format.full_name(), format.id());
        if let Some(slot) = self.by_id.get_mut(at) {
            *slot = Some(format);
        }
    }

    /// The format of events with this id.
    #[must_use]
    pub fn by_id(&self, id: u16) -> Option<&EventFormat> {
        self.by_id.get(usize::from(id))?.as_ref()
    }

    /// The format of the event `system:name`.
    #[must_use]
    pub fn by_name(&self, full_name: &str) -> Option<&EventFormat> {
        self.by_id(*self.ids.get(full_name)?)
    }

    /// All formats in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &EventFormat)> {
        self.by_id.iter().flatten().map(|format| (format.id(), format))
    }

    /// The number of formats.
    #[must_use]
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether there are no formats.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_id.iter().flatten().next().is_none()
    }

    /// Position of the event id in records: the same in all formats of a kernel.
    #[must_use]
    pub fn type_at(&self) -> NumberAt {
        self.common("common_type").unwrap_or(NumberAt { offset: 0, size: 2, signed: false })
    }

    /// Position of the id of the thread that ran.
    #[must_use]
    pub fn pid_at(&self) -> NumberAt {
        self.common("common_pid").unwrap_or(NumberAt { offset: 4, size: 4, signed: true })
    }

    fn common(&self, name: &str) -> Option<NumberAt> {
        self.by_id.iter().flatten().find_map(|format| format.field(name)?.number())
    }
}
