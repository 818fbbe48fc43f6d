//! The pages that a guest sends, in files: one a CPU, with what is missing counted and marked.
//!
//! Nothing a guest says is believed: CPUs are as many as it first said, pages come in few at a time,
//! and what is more than the host has set aside for it is dropped and counted.

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

/// How pages are laid out, as far as marking a loss needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageShape {
    pub(crate) bytes: usize,
    /// Bytes of a `long`, which is what the page's length is kept in.
    pub(crate) long_bytes: usize,
    pub(crate) big_endian: bool,
}

/// Where a page's length begins: after its time stamp.
const LENGTH_AT: usize = 8;
/// Flags of a page's length, in its lower four bytes.
const MISSED_EVENTS: u32 = ftrace::ringbuf::MISSED_EVENTS as u32;
const MISSED_STORED: u32 = ftrace::ringbuf::MISSED_STORED as u32;
/// Bytes of a disk that a file takes at least.
const BLOCK_BYTES: u64 = 4096;
/// Pages that an agent sends after one head, at most.
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
        // A count of what the guest's kernel lost would say that no more than that is missing.
        let flags = (flags | MISSED_EVENTS) & !MISSED_STORED;
        *low = if self.big_endian { flags.to_be_bytes() } else { flags.to_le_bytes() };
    }
}

/// What came of one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuReceived {
    /// Bytes in its file.
    pub(crate) written: u64,
    /// Bytes of pages that the guest sent and that did not arrive whole.
    pub(crate) lost: u64,
    /// Bytes that were dropped because the guest has used up what was set aside for it.
    pub(crate) over_quota: u64,
    /// Times at which bytes are missing.
    pub(crate) gaps: u64,
    /// The guest has said that there are no more.
    pub(crate) ended: bool,
}

#[derive(Debug)]
struct Cpu {
    number: u32,
    file: Option<OutFile>,
    /// The segment that this is of, where segments are kept.
    segment: u64,
    in_file: u64,
    /// Bytes in all of its files, for syncing to the disk.
    written: Arc<AtomicU64>,
    received: CpuReceived,
    /// Bytes that the guest has sent by now, by its own count.
    expected: u64,
    /// Something is missing before the next page.
    missed: bool,
}

#[derive(Debug)]
pub(crate) struct GuestFiles {
    shape: PageShape,
    folder: Folder,
    /// Opens the files: whoever takes what a guest sends may not.
    opener: Unconfined,
    cpus: Vec<Mutex<Cpu>>,
    /// Those of its files that are open.
    growing: GrowingFiles,
    /// Bytes that are left for it.
    quota: Quota,
    /// Bytes of those that texts may have: half of them, so that pages have room, too.
    text_quota: AtomicU64,
    /// Bytes that belong to no page of this guest.
    malformed: AtomicU64,
    /// Why a page could not be written, the first time: a full disk.
    failure: Mutex<Option<io::Error>>,
    /// The newest pages alone are kept; none: all of them.
    segments: Option<Segments>,
}

impl GuestFiles {
    /// Files in a folder for this many CPUs, with no more than `quota` bytes in them, and who opens them.
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

    /// The same, in segments, of which the oldest are removed.
    pub(crate) fn in_segments(self) -> Self {
        Self { segments: Some(Segments::default()), ..self }
    }

    /// Whether the newest pages alone are kept.
    pub(crate) fn keeps_segments(&self) -> bool {
        self.segments.is_some()
    }

    /// Begins new segments, and removes those that ended before a time.
    pub(crate) fn roll(&self, keep_from: Instant) {
        if let Some(segments) = &self.segments {
            segments.roll(self.received());
            self.quota.give_back(segments.forget(&self.folder, keep_from));
        }
    }

    /// What is kept, and what came of each CPU since it began.
    pub(crate) fn open_segments(&self) -> io::Result<OpenSegments> {
        let Some(segments) = &self.segments else { return Err(io::ErrorKind::NotFound.into()) };
        segments.open(&self.folder, &self.received())
    }

    /// Who opens files for it, and does else what those that listen to a guest may not.
    pub(crate) fn opener(&self) -> &Unconfined {
        &self.opener
    }

    /// Has the disk keep them, this often or as often as usual, in a folder of this session.
    pub(crate) fn keep_on_disk(
        &self,
        session: &Folder,
        every: Option<Duration>,
    ) -> io::Result<Flusher> {
        let (session, folder) = (session.clone(), self.folder.clone());
        Flusher::start(session, folder, self.growing.clone(), every.unwrap_or(FLUSH))
    }

    /// Its files, as they grow.
    pub(crate) fn growing(&self) -> &GrowingFiles {
        &self.growing
    }

    /// Why pages could not be written, the first time that was so.
    pub(crate) fn failure(&self) -> Option<io::Error> {
        self.failure.lock().take()
    }

    pub(crate) fn page_bytes(&self) -> usize {
        self.shape.bytes.max(1)
    }

    /// What came of each CPU so far.
    pub(crate) fn received(&self) -> Vec<CpuReceived> {
        self.cpus.iter().map(|cpu| cpu.lock().received).collect()
    }

    /// Bytes that were no pages of this guest.
    pub(crate) fn malformed(&self) -> u64 {
        self.malformed.load(Ordering::Relaxed)
    }

    pub(crate) fn note_malformed(&self, bytes: u64) {
        self.malformed.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Whether a head makes sense for this guest.
    fn admits(&self, head: &PageHead) -> bool {
        let bytes = head.bytes as usize;
        (head.cpu as usize) < self.cpus.len()
            && bytes.is_multiple_of(self.shape.bytes)
            && bytes <= BATCH_PAGES * self.shape.bytes
    }

    /// Adds pages that came whole after their head. Those that can't be written are counted as lost,
    /// and later ones are tried: a disk that is full may have room again.
    pub(crate) fn add(&self, head: &PageHead, pages: &mut [u8]) {
        let Some(cpu) = self.cpus.get(head.cpu as usize) else { return };
        let mut cpu = cpu.lock();
        if head.offset < cpu.expected {
            // It has sent these before, or says so: they count as damage.
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

    /// Adds a page that comes after the last one of its CPU and `missed` that are missing.
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

    /// Notes that pages did not come whole after their head.
    pub(crate) fn lose(&self, head: &PageHead) {
        let Some(cpu) = self.cpus.get(head.cpu as usize) else { return };
        cpu.lock().skip_to(head.offset.saturating_add(head.bytes.into()));
    }

    /// Notes how many bytes a guest sent in all.
    pub(crate) fn sent(&self, cpu: u32, bytes: u64) {
        let Some(cpu) = self.cpus.get(cpu as usize) else { return };
        cpu.lock().skip_to(bytes);
    }

    /// Takes room for bytes of a file that is not one of these; false when there is not enough left.
    pub(crate) fn take_quota(&self, bytes: u64) -> bool {
        self.quota.take(bytes)
    }

    /// Takes room for a text of `bytes`, which becomes a file in a folder; false when there is
    /// not enough left.
    pub(crate) fn take_quota_for_text(&self, bytes: u64) -> bool {
        // What they take on a disk: whole blocks.
        let bytes = bytes.next_multiple_of(BLOCK_BYTES).saturating_add(BLOCK_BYTES);
        let take = |remaining: u64| remaining.checked_sub(bytes);
        let order = Ordering::Relaxed;
        self.text_quota.fetch_update(order, order, take).is_ok() && self.quota.take(bytes)
    }

    /// Bytes that a CPU has sent by now, as far as is known.
    pub(crate) fn sent_so_far(&self, cpu: u32) -> u64 {
        self.cpus.get(cpu as usize).map_or(0, |cpu| cpu.lock().expected)
    }
}

impl Cpu {
    /// What the guest sent up to `offset` and did not come is lost.
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
            // Of a page that was written in part nothing can be read.
            file.cut(self.in_file)?;
            return Err(error);
        }
        self.in_file += bytes.len() as u64;
        self.received.written += bytes.len() as u64;
        self.written.store(self.received.written, Ordering::Release);
        Ok(())
    }
}

/// Pages in transit from one stream to the files: those of one head at a time.
#[derive(Debug)]
pub(crate) struct Arriving<'f> {
    files: &'f GuestFiles,
    head: Option<PageHead>,
    pages: Vec<u8>,
    /// A head whose pages can't be: they are skipped.
    refused: bool,
}

impl<'f> Arriving<'f> {
    pub(crate) fn new(files: &'f GuestFiles) -> Self {
        let room = BATCH_PAGES * files.shape.bytes;
        Self { files, head: None, pages: Vec::with_capacity(room), refused: false }
    }

    /// A head came, as it should: what is before it is what it seems.
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

    /// Pages of the last head came.
    pub(crate) fn pages(&mut self, bytes: &[u8]) {
        // A head that was admitted has no more pages than there is room for.
        if !self.refused {
            self.pages.extend_from_slice(bytes);
        }
    }

    /// Bytes came that are no head where one should be: whoever sent the pages before was cut off in
    /// the middle, and what seems to be their end is something else.
    pub(crate) fn malformed(&mut self, bytes: u64) {
        self.files.note_malformed(bytes);
        self.forget();
    }

    /// What came after the last head is not kept.
    fn forget(&mut self) {
        self.pages.clear();
        if let Some(head) = self.head.take() {
            self.files.lose(&head);
        }
    }

    /// Whether all pages of the last head came.
    pub(crate) fn is_whole(&self) -> bool {
        self.head.is_some_and(|head| self.pages.len() >= head.bytes as usize)
    }

    /// Nothing comes for now: pages that are whole are kept.
    pub(crate) fn flush(&mut self) {
        let Some(head) = self.head.filter(|_| self.is_whole()) else { return };
        self.head = None;
        self.files.add(&head, &mut self.pages);
        self.pages.clear();
    }

    /// Nothing more comes: of what is not whole, whole pages are kept.
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
        // A folder where the file should be.
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
        // What was sent before is not taken again.
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
        // Bytes that are no head show that the pages before them are not what they seem.
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
