//! Texts that decode the pages, sent in parts.

use crate::wire::fields::{Fields, Malformed, Payload};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextKind {
    /// `events/header_page`.
    HeaderPage,
    /// `events/header_event`.
    HeaderEvent,
    /// The format of one of ftrace's own events.
    Ftrace,
    /// The format of an event, after a line that names its system.
    Event,
    /// `/proc/kallsyms`.
    Kallsyms,
    /// `printk_formats`.
    Printk,
    /// `saved_cmdlines`.
    Cmdlines,
}

impl TextKind {
    const ALL: [Self; 7] = [
        Self::HeaderPage,
        Self::HeaderEvent,
        Self::Ftrace,
        Self::Event,
        Self::Kallsyms,
        Self::Printk,
        Self::Cmdlines,
    ];

    fn number(self) -> u8 {
        self as u8
    }

    fn from_number(number: u8) -> Result<Self, Malformed> {
        Self::ALL.get(usize::from(number)).copied().ok_or(Malformed)
    }
}

/// Part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    pub kind: TextKind,
    /// Whether the text ends with this part.
    pub last: bool,
    /// The part.
    pub bytes: Vec<u8>,
}

impl Text {
    pub(crate) fn write(&self, to: &mut Payload) {
        to.u8(self.kind.number()).flag(self.last).bytes(&self.bytes);
    }

    pub(crate) fn read(from: &mut Fields<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            kind: TextKind::from_number(from.u8()?)?,
            last: from.flag()?,
            bytes: from.rest().to_vec(),
        })
    }
}
