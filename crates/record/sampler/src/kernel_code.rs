//! The kernel's code where samples saw it run: pages of /proc/kcore, kept in an ELF file of the same kind.
//!
//! The running kernel differs from its file: alternatives, static keys and tracers are patched in.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use perfdata::{Records, kind};

use crate::records::ORDER;

const KCORE: &str = "/proc/kcore";

/// Pages that samples are looked for in.
const PAGE: u64 = 4096;
/// Pages with samples that are kept, each with its neighbours: 24 MiB at most.
const MOST_PAGES: usize = 2048;
/// Parts of memory that the kernel lists: some dozens.
const MOST_PARTS: u16 = 512;

/// Bytes of an ELF file's head, and of an entry of its list of parts (64 bits).
const HEAD: usize = 64;
const PART: usize = 56;
/// Where the head has `e_phoff`, `e_phentsize`, `e_phnum`, `e_shoff` and what follows that up to the end.
const PHOFF: usize = 32;
const SHOFF: usize = 40;
const PHENTSIZE: usize = 54;
const PHNUM: usize = 56;
const SHENTSIZE: usize = 58;
/// `PT_LOAD`, `PF_R | PF_X`.
const LOAD: u32 = 1;
const READ_EXECUTE: u32 = 5;

/// The mode of a sample's head (`PERF_RECORD_MISC_CPUMODE_MASK`), and the host's kernel.
const MODE: u16 = 7;
const KERNEL: u16 = 1;
/// Where a sample has its address: after its event's id.
const IP: usize = 8;

/// Memory of the kernel as /proc/kcore lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    address: u64,
    offset: u64,
    len: u64,
}

/// What is read from, and which pages are to be.
pub(crate) struct KernelCode<R = File> {
    from: R,
    head: Vec<u8>,
    parts: Vec<Part>,
    pages: BTreeSet<u64>,
}

/// Reads at an offset.
pub(crate) trait ReadAt {
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;
}

impl ReadAt for File {
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        FileExt::read_exact_at(self, bytes, offset)
    }
}

impl KernelCode {
    /// Whether the kernel shows its code at all.
    pub(crate) fn is_there() -> bool {
        File::open(KCORE).is_ok()
    }

    /// Opens it, which takes CAP_SYS_RAWIO; reading does not.
    pub(crate) fn open() -> Option<Self> {
        Self::of(File::open(KCORE).ok()?)
    }
}

impl<R: ReadAt> KernelCode<R> {
    fn of(from: R) -> Option<Self> {
        let mut head = vec![0; HEAD];
        from.read_exact_at(&mut head, 0).ok()?;
        let is_elf64 = head.starts_with(b"\x7fELF\x02");
        let at = ORDER.u64_at(&head, PHOFF).filter(|_| is_elf64)?;
        let count = ORDER.u16_at(&head, PHNUM)?.min(MOST_PARTS);
        let mut list = vec![0; PART * usize::from(count)];
        from.read_exact_at(&mut list, at).ok()?;
        let part = |bytes: &[u8]| {
            let is_memory = ORDER.u32_at(bytes, 0)? == LOAD;
            let [offset, address, len] = [8, 16, 32].map(|at| ORDER.u64_at(bytes, at));
            is_memory.then_some(Part { address: address?, offset: offset?, len: len? })
        };
        let parts = list.chunks_exact(PART).filter_map(part).collect();
        Some(Self { from, head, parts, pages: BTreeSet::new() })
    }

    /// Notes where samples among `records` saw the kernel.
    pub(crate) fn note(&mut self, records: &[u8]) {
        for record in Records::new(records, ORDER, 0).flatten() {
            let is_kernels = record.kind == kind::SAMPLE && record.misc & MODE == KERNEL;
            let Some(ip) = ORDER.u64_at(record.body(), IP).filter(|_| is_kernels) else { continue };
            if self.pages.len() < MOST_PAGES {
                self.pages.insert(ip / PAGE);
            }
        }
    }

    /// The file; `None`: no page could be read.
    pub(crate) fn file(&self) -> Option<Vec<u8>> {
        let wide =
            self.pages.iter().flat_map(|&page| page.saturating_sub(1)..=page.saturating_add(1));
        let mut runs: Vec<(u64, Vec<u8>)> = Vec::new();
        for page in wide.collect::<BTreeSet<_>>() {
            let Some(bytes) = self.page(page) else { continue };
            match runs.last_mut() {
                Some((first, run)) if *first + run.len() as u64 == page * PAGE => run.extend(bytes),
                _ => runs.push((page * PAGE, bytes)),
            }
        }
        (!runs.is_empty()).then(|| self.written(&runs))
    }

    /// A page of the kernel's; modules that were unloaded have none any more.
    fn page(&self, page: u64) -> Option<Vec<u8>> {
        let address = page.checked_mul(PAGE)?;
        let offset = self.parts.iter().find_map(|part| {
            let into = address.checked_sub(part.address)?;
            let is_in = into.checked_add(PAGE).is_some_and(|end| end <= part.len);
            part.offset.checked_add(into).filter(|_| is_in)
        })?;
        let mut bytes = vec![0; PAGE as usize];
        self.from.read_exact_at(&mut bytes, offset).ok()?;
        Some(bytes).filter(|bytes| bytes.iter().any(|&byte| byte != 0))
    }

    fn written(&self, runs: &[(u64, Vec<u8>)]) -> Vec<u8> {
        let mut file = self.head.clone();
        put(&mut file, PHOFF, &(HEAD as u64).to_ne_bytes());
        put(&mut file, SHOFF, &[0; 8]);
        put(&mut file, PHENTSIZE, &(PART as u16).to_ne_bytes());
        put(&mut file, PHNUM, &(u16::try_from(runs.len()).unwrap_or(u16::MAX)).to_ne_bytes());
        put(&mut file, SHENTSIZE, &[0; HEAD - SHENTSIZE]);
        let runs = runs.get(..runs.len().min(u16::MAX.into())).unwrap_or(runs);
        let mut offset = (HEAD + PART * runs.len()) as u64;
        for (address, bytes) in runs {
            let len = bytes.len() as u64;
            file.extend(LOAD.to_ne_bytes());
            file.extend(READ_EXECUTE.to_ne_bytes());
            [offset, *address, 0, len, len, 1]
                .iter()
                .for_each(|&one| file.extend(one.to_ne_bytes()));
            offset += len;
        }
        runs.iter().for_each(|(_, bytes)| file.extend(bytes));
        file
    }
}

fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = file.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel with code at 0xffff_8000_0000_0000: each page is full of its number.
    struct Memory(Vec<u8>);

    const BASE: u64 = 0xffff_8000_0000_0000;

    impl ReadAt for Memory {
        fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
            let at = usize::try_from(offset).unwrap();
            let end = at + bytes.len();
            bytes.copy_from_slice(self.0.get(at..end).ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        }
    }

    fn memory(pages: u8) -> Memory {
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.resize(HEAD, 0);
        put(&mut file, PHOFF, &(HEAD as u64).to_ne_bytes());
        put(&mut file, PHNUM, &1_u16.to_ne_bytes());
        let len = u64::from(pages) * PAGE;
        file.extend(LOAD.to_ne_bytes());
        file.extend(READ_EXECUTE.to_ne_bytes());
        for word in [(HEAD + PART) as u64, BASE, 0, len, len, 1] {
            file.extend(word.to_ne_bytes());
        }
        (1..=pages).for_each(|page| file.extend([page; PAGE as usize]));
        Memory(file)
    }

    fn sample(misc: u16, ip: u64) -> Vec<u8> {
        let mut bytes = kind::SAMPLE.to_ne_bytes().to_vec();
        bytes.extend(misc.to_ne_bytes());
        bytes.extend(24_u16.to_ne_bytes());
        bytes.extend(0_u64.to_ne_bytes());
        bytes.extend(ip.to_ne_bytes());
        bytes
    }

    #[test]
    fn pages_with_samples_of_the_hosts_kernel_are_kept_with_their_neighbours() {
        let mut code = KernelCode::of(memory(9)).unwrap();
        // In page 1 of the host's kernel, in page 6 of a guest's, outside of all.
        let samples = [sample(1, BASE + PAGE + 5), sample(4, BASE + 6 * PAGE), sample(1, 77)];
        code.note(&samples.concat());
        let kept = KernelCode::of(Memory(code.file().unwrap())).unwrap();
        let [part] = kept.parts[..] else { panic!("{:?}", kept.parts) };
        assert_eq!((part.address, part.len), (BASE, 3 * PAGE));
        assert_eq!(kept.page(BASE / PAGE + 2), Some(vec![3; PAGE as usize]));
        assert_eq!(kept.page(BASE / PAGE + 3), None);
    }

    #[test]
    fn no_samples_make_no_file() {
        assert_eq!(KernelCode::of(memory(2)).unwrap().file(), None);
        assert!(KernelCode::of(Memory(b"\x7fELF\x02".to_vec())).is_none());
    }
}
