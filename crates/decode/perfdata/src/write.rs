//! Writes a perf.data in its pipe form, record by record: the records that a recorder adds to those
//! of the kernel.
//!
//! All numbers are in this machine's byte order, like the kernel's records.

use crate::attr::{Attr, sample_type};
use crate::{BuildId, kind, misc};

/// `PERFILE2`, in the writer's byte order.
const MAGIC: u64 = 0x3245_4c49_4652_4550;
/// Bytes of a pipe's header.
const HEADER_BYTES: u64 = 16;
/// Maximum ids in a record: each takes 32 bytes.
const MAX_INDEXED: usize = 1024;
/// Maximum size of a record: the size field has 16 bits.
const MAX_RECORD_BYTES: usize = (1 << 16) - 8;

/// A mapping from before the start of the recording.
#[derive(Clone, Copy, Debug)]
pub struct EarlierMapping<'n> {
    /// Process; `None` for the kernel.
    pub pid: Option<u32>,
    /// First address.
    pub addr: u64,
    /// Bytes.
    pub len: u64,
    /// Offset in the file in bytes; for the kernel, the address.
    pub file_offset: u64,
    /// Device and inode of the file.
    pub device: (u32, u32),
    /// See `device`.
    pub inode: u64,
    /// The file's build id, which replaces device and inode.
    pub build_id: Option<BuildId>,
    /// The file.
    pub path: &'n [u8],
}

/// An event on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuEvent {
    /// The id in records.
    pub id: u64,
    /// The CPU.
    pub cpu: u32,
}

/// Appends records to a byte vector.
#[derive(Debug)]
pub struct PipeWriter<'o> {
    out: &'o mut Vec<u8>,
    /// The sample id at the end of other records.
    sample_id: Vec<u64>,
}

impl<'o> PipeWriter<'o> {
    /// Appends to `out`, for records of an event with these attributes.
    pub fn new(out: &'o mut Vec<u8>, attr: &Attr) -> Self {
        let bits = [
            sample_type::TID,
            sample_type::TIME,
            sample_type::ID,
            sample_type::STREAM_ID,
            sample_type::CPU,
            sample_type::IDENTIFIER,
        ];
        let count = bits.iter().filter(|&&bits| attr.samples(bits)).count();
        let sample_id = if attr.flags.sample_id_all() { vec![0; count] } else { Vec::new() };
        Self { out, sample_id }
    }

    /// Writes the header, the event with its ids, and text features by their numbers
    /// ([`crate::feature`]).
    pub fn head(&mut self, attr: &Attr, events: &[CpuEvent], features: &[(u32, &str)]) {
        self.words(&[MAGIC, HEADER_BYTES]);
        let mut body = attr.to_bytes().to_vec();
        body.extend(events.iter().flat_map(|event| event.id.to_ne_bytes()));
        self.record(kind::HEADER_ATTR, 0, &body);
        let places: Vec<(u64, &CpuEvent)> = (0..).zip(events).collect();
        for some in places.chunks(MAX_INDEXED) {
            // Ids, their indices, CPUs, and no thread (-1).
            let entries = some
                .iter()
                .flat_map(|&(place, event)| [event.id, place, event.cpu.into(), u64::MAX]);
            let body = [some.len() as u64].into_iter().chain(entries).flat_map(u64::to_ne_bytes);
            self.record(kind::ID_INDEX, 0, &body.collect::<Vec<u8>>());
        }
        features.iter().for_each(|&(feature, text)| self.feature(feature, text));
    }

    /// A text feature.
    fn feature(&mut self, feature: u32, text: &str) {
        let len = text.len().saturating_add(1).next_multiple_of(64);
        let mut body = u64::from(feature).to_ne_bytes().to_vec();
        body.extend(u32::try_from(len).unwrap_or(u32::MAX).to_ne_bytes());
        body.extend(text.as_bytes());
        // Records have a multiple of eight bytes; this length does not.
        body.resize(len.saturating_add(12), 0);
        body.resize(body.len().next_multiple_of(8), 0);
        self.record(kind::FEATURE, 0, &body);
    }

    /// A thread from before the start of the recording.
    pub fn thread(&mut self, pid: u32, tid: u32, name: &[u8]) {
        let mut body: Vec<u8> = [pid, tid].into_iter().flat_map(u32::to_ne_bytes).collect();
        text(&mut body, name);
        self.end(&mut body);
        self.record(kind::COMM, 0, &body);
    }

    /// A code mapping from before the start of the recording.
    pub fn mapping(&mut self, mapping: &EarlierMapping<'_>) {
        /// `PROT_READ | PROT_EXEC` and `MAP_PRIVATE`.
        const CODE: [u32; 2] = [5, 2];
        /// `PERF_RECORD_MISC_KERNEL` and `_USER`.
        const MODES: [u16; 2] = [1, 2];
        let [kernel, user] = MODES;
        let (pid, tid) = mapping.pid.map_or((u32::MAX, 0), |pid| (pid, pid));
        let mut body: Vec<u8> = [pid, tid].into_iter().flat_map(u32::to_ne_bytes).collect();
        let place = [mapping.addr, mapping.len, mapping.file_offset];
        body.extend(place.into_iter().flat_map(u64::to_ne_bytes));
        let is_kernel = mapping.pid.is_none();
        if !is_kernel {
            body.extend(of_file(mapping));
            body.extend(CODE.into_iter().flat_map(u32::to_ne_bytes));
        }
        text(&mut body, mapping.path);
        self.end(&mut body);
        let user = user | mapping.build_id.map_or(0, |_| misc::MMAP_BUILD_ID);
        let (kind, misc) = if is_kernel { (kind::MMAP, kernel) } else { (kind::MMAP2, user) };
        self.record(kind, misc, &body);
    }

    /// The end of a round: all records in the rings have been written.
    pub fn finished_round(&mut self) {
        self.record(kind::FINISHED_ROUND, 0, &[]);
    }

    /// Total number of samples that an event lost.
    pub fn lost_samples(&mut self, event: CpuEvent, count: u64) {
        let mut body = count.to_ne_bytes().to_vec();
        let id = self.sample_id.last().copied();
        if let Some(last) = self.sample_id.last_mut() {
            *last = event.id;
        }
        self.end(&mut body);
        if let (Some(last), Some(id)) = (self.sample_id.last_mut(), id) {
            *last = id;
        }
        self.record(kind::LOST_SAMPLES, 0, &body);
    }

    /// The trailer of records that are not samples: no thread, no time.
    fn end(&self, body: &mut Vec<u8>) {
        body.extend(self.sample_id.iter().flat_map(|word| word.to_ne_bytes()));
    }

    fn words(&mut self, words: &[u64]) {
        self.out.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
    }

    /// Writes a record; skips it if it is too long.
    fn record(&mut self, kind: u32, misc: u16, body: &[u8]) {
        debug_assert!(body.len().is_multiple_of(8), "{kind}: {} bytes", body.len());
        if body.len() > MAX_RECORD_BYTES {
            return;
        }
        let size = u16::try_from(body.len().saturating_add(8)).unwrap_or(0);
        self.out.extend(kind.to_ne_bytes());
        self.out.extend(misc.to_ne_bytes());
        self.out.extend(size.to_ne_bytes());
        self.out.extend(body);
    }
}

/// The file identity in 24 bytes: the build id after its length and three bytes; otherwise device,
/// inode and generation 0.
fn of_file(mapping: &EarlierMapping<'_>) -> Vec<u8> {
    if let Some(build_id) = &mapping.build_id {
        let len = u8::try_from(build_id.bytes().len()).unwrap_or(0);
        let mut bytes = vec![len, 0, 0, 0];
        bytes.extend(build_id.bytes());
        bytes.resize(24, 0);
        return bytes;
    }
    let device = [mapping.device.0, mapping.device.1].into_iter().flat_map(u32::to_ne_bytes);
    device.chain([mapping.inode, 0].into_iter().flat_map(u64::to_ne_bytes)).collect()
}

/// A NUL-terminated text, padded to eight bytes.
fn text(body: &mut Vec<u8>, text: &[u8]) {
    body.extend(text.iter().copied().take_while(|&byte| byte != 0).take(4095));
    body.push(0);
    body.resize(body.len().next_multiple_of(8), 0);
}
