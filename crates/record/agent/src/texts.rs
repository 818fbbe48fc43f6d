//! Sends texts to the host, in parts that fit in messages.

use channel::wire::{MAX_PAYLOAD_BYTES, Message, Text, TextKind};
use tracefs::Texts;

use crate::error::Result;
use crate::link::Host;

/// Size of a part; a message has two more bytes.
const PART_BYTES: usize = MAX_PAYLOAD_BYTES - 64;

/// Sends the texts that decode pages, with symbols only on request.
pub(crate) fn send(host: &mut Host<'_>, session: u64, texts: &Texts, kallsyms: bool) -> Result<()> {
    let mut each = |kind, bytes: &[u8]| send_one(host, session, kind, bytes);
    each(TextKind::HeaderPage, texts.header_page.as_bytes())?;
    each(TextKind::HeaderEvent, texts.header_event.as_bytes())?;
    for text in &texts.ftrace {
        each(TextKind::Ftrace, text.as_bytes())?;
    }
    for event in &texts.events {
        each(TextKind::Event, format!("{}\n{}", event.system, event.text).as_bytes())?;
    }
    if kallsyms {
        each(TextKind::Kallsyms, &texts.kallsyms)?;
    }
    each(TextKind::Printk, &texts.printk)
}

/// Sends one text.
pub(crate) fn send_one(
    host: &mut Host<'_>,
    session: u64,
    kind: TextKind,
    bytes: &[u8],
) -> Result<()> {
    let mut parts = bytes.chunks(PART_BYTES).peekable();
    if parts.peek().is_none() {
        return host.send(session, &Message::Text(Text { kind, last: true, bytes: Vec::new() }));
    }
    while let Some(part) = parts.next() {
        let last = parts.peek().is_none();
        host.send(session, &Message::Text(Text { kind, last, bytes: part.to_vec() }))?;
    }
    Ok(())
}
