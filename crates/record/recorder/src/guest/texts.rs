//! Assembles the texts that a guest sends in parts. They are untrusted, so their total size is bounded.

use channel::wire::{Text, TextKind};
use tracefs::{EventText, Texts};

use crate::guest::files::GuestFiles;

/// Max bytes of a guest's texts, since they are kept in memory; symbols of big kernels have 20 MiB.
const MAX_BYTES: usize = 48 << 20;
/// Max texts of a guest; big kernels have 3000 events.
const MAX_TEXTS: usize = 20_000;

/// Texts received so far.
#[derive(Debug, Default)]
pub(crate) struct GuestTexts {
    pub(crate) texts: Texts,
    pub(crate) cmdlines: Vec<u8>,
    /// Kind and beginning of an incomplete text.
    partial: Option<(TextKind, Vec<u8>)>,
    bytes: usize,
    count: usize,
    /// Bytes of texts that exceeded the guest's quota.
    over_quota_bytes: u64,
}

impl GuestTexts {
    /// Texts that arrived in one piece.
    pub(crate) fn complete(texts: Texts, cmdlines: Vec<u8>) -> Self {
        Self { texts, cmdlines, ..Self::default() }
    }

    /// The error message for texts that exceeded the quota.
    pub(crate) fn fault(&self) -> Option<String> {
        (self.over_quota_bytes > 0).then(|| {
            format!(
                "{} KiB of symbols and other texts were omitted: they take more than half of the guest's quota (--guest-quota)",
                self.over_quota_bytes.div_ceil(1024)
            )
        })
    }

    /// Adds a part, and reserves quota when the text is complete; false if the guest exceeds a limit.
    pub(crate) fn take(&mut self, part: &Text, files: &GuestFiles) -> bool {
        self.bytes += part.bytes.len();
        if self.bytes > MAX_BYTES || self.count >= MAX_TEXTS {
            return false;
        }
        let mut bytes = match self.partial.take() {
            Some((kind, partial)) if kind == part.kind => partial,
            // Parts of a text follow each other.
            _ => Vec::new(),
        };
        bytes.extend_from_slice(&part.bytes);
        if part.last {
            self.count += 1;
            if files.take_quota_for_text(bytes.len() as u64) {
                self.keep(part.kind, bytes);
            } else {
                self.over_quota_bytes += bytes.len() as u64;
            }
        } else {
            self.partial = Some((part.kind, bytes));
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
                // The name becomes a folder's name.
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
    use os::confine::Unconfined;
    use os::folder::{Folder, Modes};

    use super::*;
    use crate::guest::PageShape;

    fn files(quota: u64) -> (tempfile::TempDir, GuestFiles) {
        let folder = tempfile::tempdir().unwrap();
        let to = Folder::open(folder.path(), Modes::default()).unwrap();
        let shape = PageShape { bytes: 4096, long_bytes: 8, big_endian: false };
        let opener = Unconfined::start("opens").unwrap();
        (folder, GuestFiles::new((to, opener), 1, shape, quota))
    }

    #[test]
    fn texts_take_room_of_the_quota_and_leave_half_of_it_for_pages() {
        let (_folder, files) = files(64 << 10);
        let mut texts = GuestTexts::default();
        assert!(texts.take(&part(TextKind::Kallsyms, true, &[b'x'; 40 << 10]), &files));
        assert!(texts.texts.kallsyms.is_empty());
        assert!(texts.take(&part(TextKind::Event, true, b"kvm\nname: kvm_exit\n"), &files));
        assert_eq!(texts.texts.events.len(), 1);
        assert!(texts.fault().unwrap().contains("40 KiB"), "{:?}", texts.fault());
        // A file uses whole blocks of the disk, however small it is.
        let small = part(TextKind::Ftrace, true, b"x");
        assert!((0..100).all(|_| texts.take(&small, &files)));
        assert!(texts.texts.ftrace.len() < 8, "{}", texts.texts.ftrace.len());
    }

    fn part(kind: TextKind, last: bool, bytes: &[u8]) -> Text {
        Text { kind, last, bytes: bytes.to_vec() }
    }

    #[test]
    fn parts_become_texts() {
        let (_folder, files) = files(1 << 30);
        let mut texts = GuestTexts::default();
        assert!(texts.take(&part(TextKind::Event, false, b"kvm\nname: kvm"), &files));
        assert!(texts.take(&part(TextKind::Event, true, b"_exit\n"), &files));
        assert!(texts.take(&part(TextKind::Event, true, b"../../etc\nname: x"), &files));
        // A text of another kind ends an incomplete one.
        assert!(texts.take(&part(TextKind::Kallsyms, false, b"half"), &files));
        assert!(texts.take(&part(TextKind::Printk, true, b"p"), &files));
        assert!(texts.take(&part(TextKind::Kallsyms, true, b"whole"), &files));
        let event = EventText { system: "kvm".into(), text: "name: kvm_exit\n".into() };
        assert_eq!(texts.texts.events, [event]);
        assert_eq!((&*texts.texts.kallsyms, &*texts.texts.printk), (&b"whole"[..], &b"p"[..]));
    }

    #[test]
    fn a_guest_that_sends_too_much_is_refused() {
        let (_folder, files) = files(1 << 40);
        let mut texts = GuestTexts::default();
        let big = part(TextKind::Kallsyms, false, &vec![0; 1 << 20]);
        assert!((0..48).all(|_| texts.take(&big, &files)));
        assert!(!texts.take(&big, &files));
        let mut texts = GuestTexts::default();
        let empty = part(TextKind::Ftrace, true, b"");
        assert_eq!((0..1 << 20).take_while(|_| texts.take(&empty, &files)).count(), MAX_TEXTS);
    }
}
