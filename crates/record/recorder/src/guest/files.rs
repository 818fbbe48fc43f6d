//! Files of a guest's pages, one per CPU, with losses counted and marked.
//!
//! The guest is untrusted: its number of CPUs is fixed by its first message, pages arrive in small batches, and bytes
//! beyond its quota are dropped and counted.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use channel::wire::PageHead;
use os::confine::Unconfined;
use os::folder::{Folder, OutFile};
use parking_lot::Mutex;

use crate::flusher::{FLUSH, Flusher, Growing, GrowingFiles};
use crate::guest::quota::Quota;
use crate::guest::segments::{OpenSegments, Segments};
use crate::pages_folder::{pages, segment_file};

/// Layout of a page, as far as marking a loss needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageShape {
    pub(crate) bytes: usize,
    /// Size of the guest's `long`, the type of a page's length.
    pub(crate) long_bytes: usize,
    pub(crate) big_endian: bool,
}

/// Offset of a page's length: after its timestamp.
const LENGTH_AT: usize = 8;
/// Flags in the lower four bytes of a page's length.
const MISSED_EVENTS: u32 = ftrace::ringbuf::MISSED_EVENTS as u32;
const MISSED_STORED: u32 = ftrace::ringbuf::MISSED_STORED as u32;
/// Min disk space of a file.
const BLOCK_BYTES: u64 = 4096;
/// Max pages that an agent sends after one head.
const BATCH_PAGES: usize = 16;

impl PageShape {
    /// Marks a page: an unknown number of events before it is missing.
    pub(crate) fn mark_missed(&self, page: &mut [u8]) {
        let Some(length) = page.get_mut(LENGTH_AT..LENGTH_AT + self.long_bytes) else { return };
        let low = if self.big_endian { self.long_bytes - 4 } else { 0 };
        let Some(low) = length.get_mut(low..low + 4).and_then(|low| low.first_chunk_mut()) else {
            return;
        };
        let flags =
            if self.big_endian { u32::from_be_bytes(*low) } else { u32::from_le_bytes(*low) };
        // The guest's own count of lost events would be too small.
        let flags = (flags | MISSED_EVENTS) & !MISSED_STORED;
        *low = if self.big_endian { flags.to_be_bytes() } else { flags.to_le_bytes() };
    }
}

/// Pages received from a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuReceived {
    /// Bytes in its file.
    pub(crate) written: u64,
    /// Bytes of pages that the guest sent and that did not arrive completely.
    pub(crate) lost: u64,
    /// Bytes dropped because the guest has exceeded its quota.
    pub(crate) over_quota: u64,
    /// Number of gaps.
    pub(crate) gaps: u64,
    /// The guest has sent the CPU's end.
    pub(crate) ended: bool,
}

#[derive(Debug)]
struct Cpu {
    number: u32,
    file: Option<OutFile>,
    /// Current segment of these counts, if segments are kept.
    segment: u64,
    in_file: u64,
    /// Bytes in all of its files, for syncing to the disk.
    written: Arc<AtomicU64>,
    received: CpuReceived,
    /// Bytes that the guest has sent so far, by its own count.
    expected: u64,
    /// Pages are missing before the next page.
    missed: bool,
}

#[derive(Debug)]
pub(crate) struct GuestFiles {
    shape: PageShape,
    folder: Folder,
    /// Opens the files: threads that receive from the guest can't.
    opener: Unconfined,
    cpus: Vec<Mutex<Cpu>>,
    /// Its open files.
    growing: GrowingFiles,
    /// Remaining quota.
    quota: Quota,
    /// Part of the quota that texts may use: half of it, so that pages have room, too.
    text_quota: AtomicU64,
    /// Bytes that belong to no page of this guest.
    malformed: AtomicU64,
    /// The first error of a write, for example of a full disk.
    failure: Mutex<Option<io::Error>>,
    /// Keeps only the newest pages; `None`: keeps all.
    segments: Option<Segments>,
}

impl GuestFiles {
    /// Files in a folder for `cpus` CPUs, with at most `quota` bytes; `opener` opens them.
    pub(crate) fn new(
        (folder, opener): (Folder, Unconfined),
        cpus: u32,
        shape: PageShape,
        quota: impl Into<Quota>,
    ) -> Self {
        let cpu = |number| Cpu {
            number,
            file: None,
            segment: 0,
            in_file: 0,
            written: Arc::default(),
            received: CpuReceived::default(),
            expected: 0,
            missed: false,
        };
        let cpus = (0..cpus).map(|number| Mutex::new(cpu(number))).collect();
        let quota: Quota = quota.into();
        Self {
            shape,
            folder,
            opener,
            cpus,
            growing: GrowingFiles::default(),
            text_quota: AtomicU64::new(quota.remaining() / 2),
            quota,
            malformed: AtomicU64::new(0),
            failure: Mutex::default(),
            segments: None,
        }
    }

    /// Keeps segments, of which the oldest are removed.
    pub(crate) fn in_segments(self) -> Self {
        Self { segments: Some(Segments::default()), ..self }
    }

    /// Whether only the newest pages are kept.
    pub(crate) fn keeps_segments(&self) -> bool {
        self.segments.is_some()
    }

    /// Starts new segments, and removes those that ended before `keep_from`.
    pub(crate) fn roll(&self, keep_from: Instant) {
        if let Some(segments) = &self.segments {
            segments.roll(self.received());
            self.quota.give_back(segments.forget(&self.folder, keep_from));
        }
    }

    /// The kept pages, and the counts of each CPU since they began.
    pub(crate) fn open_segments(&self) -> io::Result<OpenSegments> {
        let Some(segments) = &self.segments else { return Err(io::ErrorKind::NotFound.into()) };
        segments.open(&self.folder, &self.received())
    }

    /// Opens files, and runs other work that confined receivers can't do.
    pub(crate) fn opener(&self) -> &Unconfined {
        &self.opener
    }

    /// Starts syncing the files, at the given or default interval, in the session's folder.
    pub(crate) fn keep_on_disk(
        &self,
        session: &Folder,
        every: Option<Duration>,
    ) -> io::Result<Flusher> {
        let (session, folder) = (session.clone(), self.folder.clone());
        Flusher::start(session, folder, self.growing.clone(), every.unwrap_or(FLUSH))
    }

    /// Its growing files.
    pub(crate) fn growing(&self) -> &GrowingFiles {
        &self.growing
    }

    /// The first write error.
    pub(crate) fn failure(&self) -> Option<io::Error> {
        self.failure.lock().take()
    }

    pub(crate) fn page_bytes(&self) -> usize {
        self.shape.bytes.max(1)
    }

    /// Counts of each CPU so far.
    pub(crate) fn received(&self) -> Vec<CpuReceived> {
        self.cpus.iter().map(|cpu| cpu.lock().received).collect()
    }

    /// Bytes that belonged to no page of this guest.
    pub(crate) fn malformed(&self) -> u64 {
        self.malformed.load(Ordering::Relaxed)
    }

    pub(crate) fn note_malformed(&self, bytes: u64) {
        self.malformed.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Whether a head is valid for this guest.
    fn admits(&self, head: &PageHead) -> bool {
        let bytes = head.bytes as usize;
        (head.cpu as usize) < self.cpus.len()
            && bytes.is_multiple_of(self.shape.bytes)
            && bytes <= BATCH_PAGES * self.shape.bytes
    }

    /// Adds the complete pages of a head. Pages that can't be written count as lost; later ones are tried again,
    /// because a full disk may have space again.
    pub(crate) fn add(&self, head: &PageHead, pages: &mut [u8]) {
        let Some(cpu) = self.cpus.get(head.cpu as usize) else { return };
        let mut cpu = cpu.lock();
        if head.offset < cpu.expected {
            // A repetition, or a false offset: counts as damage.
            self.note_malformed(pages.len() as u64);
            return;
        }
        cpu.skip_to(head.offset);
        cpu.expected = head.offset.saturating_add(pages.len() as u64);
        if pages.is_empty() {
            cpu.received.ended = true;
            return;
        }
        if !self.quota.take(pages.len() as u64) {
            cpu.received.over_quota += pages.len() as u64;
            cpu.miss();
            return;
        }
        if cpu.missed {
            self.shape.mark_missed(pages);
        }
        let written = cpu.write(self, pages);
        cpu.missed &= written.is_err();
        if let Err(error) = written {
            cpu.received.lost = cpu.received.lost.saturating_add(pages.len() as u64);
            cpu.miss();
            self.failure.lock().get_or_insert(error);
        }
    }

    /// Adds a CPU's next page, after `missed` missing bytes.
    pub(crate) fn add_in_order(&self, cpu: u32, missed: u64, page: &mut [u8]) {
        let Some(expected) = self.cpus.get(cpu as usize).map(|cpu| cpu.lock().expected) else {
            self.note_malformed(page.len() as u64);
            return;
        };
        let bytes = u32::try_from(page.len()).unwrap_or(u32::MAX);
        let offset = expected.saturating_add(missed.saturating_mul(page.len() as u64));
        let head = PageHead { cpu, session: 0, offset, bytes };
        if !self.admits(&head) {
            self.note_malformed(page.len() as u64);
            return;
        }
        self.add(&head, page);
    }

    /// Counts the pages of a head as lost.
    pub(crate) fn lose(&self, head: &PageHead) {
        let Some(cpu) = self.cpus.get(head.cpu as usize) else { return };
        cpu.lock().skip_to(head.offset.saturating_add(head.bytes.into()));
    }

    /// Notes the total number of bytes that a guest sent.
    pub(crate) fn sent(&self, cpu: u32, bytes: u64) {
        let Some(cpu) = self.cpus.get(cpu as usize) else { return };
        cpu.lock().skip_to(bytes);
    }

    /// Reserves quota for another file; false if there is not enough.
    pub(crate) fn take_quota(&self, bytes: u64) -> bool {
        self.quota.take(bytes)
    }

    /// Reserves quota for a text of `bytes`, which becomes a file in a folder; false if there is not enough.
    pub(crate) fn take_quota_for_text(&self, bytes: u64) -> bool {
        // Counts disk space: whole blocks.
        let bytes = bytes.next_multiple_of(BLOCK_BYTES).saturating_add(BLOCK_BYTES);
        let take = |remaining: u64| remaining.checked_sub(bytes);
        let order = Ordering::Relaxed;
        self.text_quota.fetch_update(order, order, take).is_ok() && self.quota.take(bytes)
    }

    /// Bytes that a CPU has sent so far, as far as known.
    pub(crate) fn sent_so_far(&self, cpu: u32) -> u64 {
        self.cpus.get(cpu as usize).map_or(0, |cpu| cpu.lock().expected)
    }
}

impl Cpu {
    /// Counts missing bytes before `offset` as lost.
    fn skip_to(&mut self, offset: u64) {
        let missing = offset.saturating_sub(self.expected);
        if missing > 0 {
            self.received.lost = self.received.lost.saturating_add(missing);
            self.expected = offset;
            self.miss();
        }
    }

    fn miss(&mut self) {
        self.received.gaps += u64::from(!self.missed);
        self.missed = true;
    }

    fn write(&mut self, files: &GuestFiles, bytes: &[u8]) -> io::Result<()> {
        let segment = files.segments.as_ref().map_or(0, Segments::current);
        if segment != self.segment {
            (self.segment, self.in_file, self.file) = (segment, 0, None);
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let (folder, number) = (files.folder.clone(), self.number);
                let is_kept_whole = files.segments.is_none();
                let name =
                    if is_kept_whole { pages(number) } else { segment_file(number, segment) };
                let open = move || {
                    let file = folder.append(&name)?;
                    io::Result::Ok((file.syncer()?, file))
                };
                let (syncer, file) = files.opener.run(open)??;
                if is_kept_whole {
                    files.growing.add(Growing::new(syncer, Arc::clone(&self.written)));
                }
                none.insert(file)
            }
        };
        if let Err(error) = file.write_all(bytes) {
            // A partially written page is unreadable.
            file.cut(self.in_file)?;
            return Err(error);
        }
        self.in_file += bytes.len() as u64;
        self.received.written += bytes.len() as u64;
        self.written.store(self.received.written, Ordering::Release);
        Ok(())
    }
}

/// Pages in transit from a stream to the files, of one head at a time.
#[derive(Debug)]
pub(crate) struct Arriving<'f> {
    files: &'f GuestFiles,
    head: Option<PageHead>,
    pages: Vec<u8>,
    /// The head is invalid: its pages are skipped.
    refused: bool,
}

impl<'f> Arriving<'f> {
    pub(crate) fn new(files: &'f GuestFiles) -> Self {
        let room = BATCH_PAGES * files.shape.bytes;
        Self { files, head: None, pages: Vec::with_capacity(room), refused: false }
    }

    /// A head arrived in its proper place, so the pages before it are valid.
    pub(crate) fn head(&mut self, head: PageHead) {
        self.flush();
        self.forget();
        self.refused = !self.files.admits(&head);
        if self.refused {
            self.files.note_malformed(head.bytes.into());
            return;
        }
        if head.bytes == 0 {
            self.files.add(&head, &mut []);
            return;
        }
        self.head = Some(head);
    }

    /// Pages of the last head arrived.
    pub(crate) fn pages(&mut self, bytes: &[u8]) {
        // An admitted head has a bounded number of pages.
        if !self.refused {
            self.pages.extend_from_slice(bytes);
        }
    }

    /// Bytes arrived that form no head: the previous sender was cut off in the middle, and the apparent end of its
    /// pages is something else.
    pub(crate) fn malformed(&mut self, bytes: u64) {
        self.files.note_malformed(bytes);
        self.forget();
    }

    /// Discards the pages after the last head.
    fn forget(&mut self) {
        self.pages.clear();
        if let Some(head) = self.head.take() {
            self.files.lose(&head);
        }
    }

    /// Whether all pages of the last head have arrived.
    pub(crate) fn is_whole(&self) -> bool {
        self.head.is_some_and(|head| self.pages.len() >= head.bytes as usize)
    }

    /// Writes complete pages while the stream is idle.
    pub(crate) fn flush(&mut self) {
        let Some(head) = self.head.filter(|_| self.is_whole()) else { return };
        self.head = None;
        self.files.add(&head, &mut self.pages);
        self.pages.clear();
    }

    /// The stream has ended: keeps the whole pages of an incomplete batch.
    pub(crate) fn end(mut self) {
        self.flush();
        let Some(head) = self.head.take() else { return };
        let whole_bytes = self.pages.len() - self.pages.len() % self.files.shape.bytes;
        let trimmed_head = PageHead { bytes: u32::try_from(whole_bytes).unwrap_or(0), ..head };
        if let Some(pages) = self.pages.get_mut(..whole_bytes).filter(|pages| !pages.is_empty()) {
            self.files.add(&trimmed_head, pages);
        }
        self.files.lose(&head);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use os::folder::Modes;
    use std::fs;

    const SHAPE: PageShape = PageShape { bytes: 64, long_bytes: 8, big_endian: false };

    fn page(fill: u8) -> Vec<u8> {
        let mut page = vec![fill; 64];
        page[8..16].copy_from_slice(&48_u64.to_le_bytes());
        page
    }

    fn head(cpu: u32, offset: u64, bytes: u32) -> PageHead {
        PageHead { cpu, session: 1, offset, bytes }
    }

    struct Setup {
        folder: tempfile::TempDir,
        files: GuestFiles,
    }

    fn setup(quota: u64) -> Setup {
        let folder = tempfile::tempdir().unwrap();
        let to = Folder::open(folder.path(), Modes::default()).unwrap();
        let opener = Unconfined::start("opens").unwrap();
        let files = GuestFiles::new((to, opener), 2, SHAPE, quota);
        Setup { folder, files }
    }

    impl Setup {
        fn pages(&self, cpu: u32) -> Vec<Vec<u8>> {
            let bytes = fs::read(self.folder.path().join(pages(cpu))).unwrap_or_default();
            bytes.chunks(64).map(<[u8]>::to_vec).collect()
        }

        fn send(&self, sent: &[(PageHead, &[u8])]) {
            let mut arriving = Arriving::new(&self.files);
            for (head, pages) in sent {
                arriving.head(*head);
                arriving.pages(pages);
            }
            arriving.end();
        }
    }

    fn is_marked(page: &[u8]) -> bool {
        page[11] & 0x80 != 0
    }

    #[test]
    fn pages_of_each_cpu_come_into_its_file() {
        let setup = setup(1000);
        let (a, b, c) = (page(1), page(2), page(3));
        setup.send(&[(head(0, 0, 64), &a), (head(1, 0, 64), &b), (head(0, 64, 64), &c)]);
        assert_eq!(setup.pages(0), [a, c]);
        assert_eq!(setup.pages(1), [b]);
        assert_eq!(
            setup.files.received()[0],
            CpuReceived { written: 128, ..CpuReceived::default() }
        );
    }

    #[test]
    fn what_did_not_come_is_counted_and_the_next_page_says_so() {
        let setup = setup(1000);
        setup.send(&[(head(0, 0, 64), &page(1)), (head(0, 192, 64), &page(2))]);
        let pages = setup.pages(0);
        assert!(!is_marked(&pages[0]) && is_marked(&pages[1]));
        let expected = CpuReceived { written: 128, lost: 128, gaps: 1, ..CpuReceived::default() };
        assert_eq!(setup.files.received()[0], expected);
        setup.files.sent(0, 320);
        assert_eq!(setup.files.received()[0].lost, 192);
    }

    #[test]
    fn a_guest_gets_no_more_than_its_quota() {
        let setup = setup(100);
        setup.send(&[(head(0, 0, 64), &page(1)), (head(0, 64, 64), &page(2))]);
        let expected =
            CpuReceived { written: 64, over_quota: 64, gaps: 1, ..CpuReceived::default() };
        assert_eq!(setup.files.received()[0], expected);
    }

    #[test]
    fn pages_that_cannot_be_written_are_lost_and_later_ones_say_so() {
        let setup = setup(1 << 20);
        // A folder in place of the file.
        let path = setup.folder.path().join(pages(0));
        fs::create_dir(&path).unwrap();
        setup.send(&[(head(0, 0, 64), &page(1)), (head(0, 64, 64), &page(2))]);
        fs::remove_dir(&path).unwrap();
        setup.send(&[(head(0, 128, 64), &page(3))]);
        assert!(setup.files.failure().is_some());
        let expected = CpuReceived { written: 64, lost: 128, gaps: 1, ..CpuReceived::default() };
        assert_eq!(setup.files.received()[0], expected);
        assert!(is_marked(&setup.pages(0)[0]));
    }

    #[test]
    fn heads_that_cannot_be_are_refused() {
        let setup = setup(1 << 20);
        let many = vec![0; 64 * 17];
        let absurd = [
            (head(2, 0, 64), &many[..64]),
            (head(u32::MAX, 0, 64), &many[..64]),
            (head(0, 0, 63), &many[..63]),
            (head(0, 0, 64 * 17), &many[..]),
        ];
        setup.send(&absurd);
        assert!(setup.pages(0).is_empty());
        assert_eq!(setup.files.malformed(), 64 + 64 + 63 + 64 * 17);
        // Pages that were sent before are ignored.
        setup.send(&[(head(0, 64, 64), &page(1)), (head(0, 0, 64), &page(2))]);
        assert_eq!(setup.pages(0).len(), 1);
    }

    #[test]
    fn an_end_in_the_middle_keeps_whole_pages() {
        let setup = setup(1000);
        let two = [page(1), page(2)].concat();
        setup.send(&[(head(0, 0, 128), &two[..100])]);
        assert_eq!(setup.pages(0), [page(1)]);
        assert_eq!(setup.files.received()[0].lost, 64);
        // Bytes that form no head show that the pages before them are invalid.
        let mut arriving = Arriving::new(&setup.files);
        arriving.head(head(1, 0, 64));
        arriving.pages(&page(3));
        arriving.malformed(10);
        arriving.end();
        assert!(setup.pages(1).is_empty());
        assert_eq!((setup.files.received()[1].lost, setup.files.malformed()), (64, 10));
    }

    #[test]
    fn lengths_are_marked_in_either_byte_order() {
        let mut page = vec![0; 64];
        page[8..12].copy_from_slice(&(48_u32 | MISSED_STORED | MISSED_EVENTS).to_be_bytes());
        PageShape { long_bytes: 4, big_endian: true, ..SHAPE }.mark_missed(&mut page);
        assert_eq!(page[8..12], (48_u32 | MISSED_EVENTS).to_be_bytes());
        let mut page = vec![0; 64];
        PageShape { big_endian: true, ..SHAPE }.mark_missed(&mut page);
        assert_eq!(page[8..16], u64::from(MISSED_EVENTS).to_be_bytes());
    }
}
