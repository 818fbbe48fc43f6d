//! Puts together the texts that a guest sends in parts. It may send anything: what all of them take
//! is bounded.

use tracefs::{EventText, Texts};
use wire::{Text, TextKind};

/// Bytes that all texts of a guest may have; symbols of big kernels have 20 MiB.
const MOST_BYTES: usize = 128 << 20;
/// Texts that a guest may send; big kernels have 3000 events.
const MOST_TEXTS: usize = 20_000;

/// Texts that have come so far.
#[derive(Debug, Default)]
pub(crate) struct GuestTexts {
    pub(crate) texts: Texts,
    pub(crate) cmdlines: Vec<u8>,
    /// The beginning of a text, and what it is of.
    begun: Option<(TextKind, Vec<u8>)>,
    bytes: usize,
    count: usize,
}

impl GuestTexts {
    /// Texts that came all at once.
    pub(crate) fn whole(texts: Texts, cmdlines: Vec<u8>) -> Self {
        Self { texts, cmdlines, ..Self::default() }
    }

    /// Takes a part; false when the guest sends more than any guest has.
    pub(crate) fn take(&mut self, part: &Text) -> bool {
        self.bytes += part.bytes.len();
        if self.bytes > MOST_BYTES || self.count >= MOST_TEXTS {
            return false;
        }
        let mut bytes = match self.begun.take() {
            Some((kind, begun)) if kind == part.kind => begun,
            // Parts of one text follow each other.
            _ => Vec::new(),
        };
        bytes.extend_from_slice(&part.bytes);
        if part.last {
            self.count += 1;
            self.keep(part.kind, bytes);
        } else {
            self.begun = Some((part.kind, bytes));
        }
        true
    }

    fn keep(&mut self, kind: TextKind, bytes: Vec<u8>) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match kind {
            TextKind::HeaderPage => self.texts.header_page = text(&bytes),
            TextKind::HeaderEvent => self.texts.header_event = text(&bytes),
            TextKind::Ftrace => self.texts.ftrace.push(text(&bytes)),
            TextKind::Event => {
                let text = text(&bytes);
                let Some((system, text)) = text.split_once('\n') else { return };
                // It becomes the name of a folder.
                let is_name = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
                if !system.is_empty() && system.chars().all(is_name) {
                    let (system, text) = (system.to_owned(), text.to_owned());
                    self.texts.events.push(EventText { system, text });
                }
            }
            TextKind::Kallsyms => self.texts.kallsyms = bytes,
            TextKind::Printk => self.texts.printk = bytes,
            TextKind::Cmdlines => self.cmdlines = bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(kind: TextKind, last: bool, bytes: &[u8]) -> Text {
        Text { kind, last, bytes: bytes.to_vec() }
    }

    #[test]
    fn parts_become_texts() {
        let mut texts = GuestTexts::default();
        assert!(texts.take(&part(TextKind::Event, false, b"kvm\nname: kvm")));
        assert!(texts.take(&part(TextKind::Event, true, b"_exit\n")));
        assert!(texts.take(&part(TextKind::Event, true, b"../../etc\nname: x")));
        // A text of another kind ends one that was begun.
        assert!(texts.take(&part(TextKind::Kallsyms, false, b"half")));
        assert!(texts.take(&part(TextKind::Printk, true, b"p")));
        assert!(texts.take(&part(TextKind::Kallsyms, true, b"whole")));
        let event = EventText { system: "kvm".into(), text: "name: kvm_exit\n".into() };
        assert_eq!(texts.texts.events, [event]);
        assert_eq!((&*texts.texts.kallsyms, &*texts.texts.printk), (&b"whole"[..], &b"p"[..]));
    }

    #[test]
    fn a_guest_that_sends_too_much_is_refused() {
        let mut texts = GuestTexts::default();
        let big = part(TextKind::Kallsyms, false, &vec![0; 1 << 20]);
        assert!((0..128).all(|_| texts.take(&big)));
        assert!(!texts.take(&big));
        let mut texts = GuestTexts::default();
        let empty = part(TextKind::Ftrace, true, b"");
        assert_eq!((0..1 << 20).take_while(|_| texts.take(&empty)).count(), MOST_TEXTS);
    }
}
