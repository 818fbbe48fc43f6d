//! The kernel's code around samples: pages of /proc/kcore.
//!
//! The code of the running kernel differs from its file: alternatives, static keys and tracers are patched in.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use perfdata::{Records, kind};

use crate::kept_code::{HEAD, KeptCode, LOAD, MACHINE, PART};
use crate::records::ORDER;

const KCORE: &str = "/proc/kcore";

/// Granularity of counting samples.
const PAGE: u64 = 4096;
/// Max pages with samples to count, first come first served: with their neighbours 24 MiB.
const MAX_PAGES: usize = 2048;
/// Max segments of kcore: it has some dozens.
const MAX_PARTS: u16 = 512;

/// Offsets of `e_phoff` and `e_phnum` in an ELF header.
const PHOFF: usize = 32;
const PHNUM: usize = 56;

/// The CPU mode in a sample's header (`PERF_RECORD_MISC_CPUMODE_MASK`), and its value for the host's kernel.
const MODE: u16 = 7;
const KERNEL: u16 = 1;
/// Offset of a sample's address: after its event id.
const IP: usize = 8;

/// A segment of /proc/kcore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    address: u64,
    offset: u64,
    len: u64,
}

/// The open file, and the pages to read.
pub(crate) struct KernelCode<R = File> {
    from: R,
    elf_machine: u16,
    parts: Vec<Part>,
    /// Number of samples, by page.
    pages: BTreeMap<u64, u64>,
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
    /// Whether the kernel has /proc/kcore, and this user may open it.
    pub(crate) fn is_there() -> bool {
        File::open(KCORE).is_ok()
    }

    /// Opens the file, which needs CAP_SYS_RAWIO; reading does not.
    pub(crate) fn open() -> Option<Self> {
        Self::read(File::open(KCORE).ok()?)
    }
}

impl<R: ReadAt> KernelCode<R> {
    fn read(from: R) -> Option<Self> {
        let mut head = vec![0; HEAD];
        from.read_exact_at(&mut head, 0).ok()?;
        let is_elf64 = head.starts_with(b"\x7fELF\x02");
        let at = ORDER.u64_at(&head, PHOFF).filter(|_| is_elf64)?;
        let elf_machine = ORDER.u16_at(&head, MACHINE)?;
        let count = ORDER.u16_at(&head, PHNUM)?.min(MAX_PARTS);
        let mut list = vec![0; PART * usize::from(count)];
        from.read_exact_at(&mut list, at).ok()?;
        let part = |bytes: &[u8]| {
            let is_memory = ORDER.u32_at(bytes, 0)? == LOAD;
            let [offset, address, len] = [8, 16, 32].map(|at| ORDER.u64_at(bytes, at));
            is_memory.then_some(Part { address: address?, offset: offset?, len: len? })
        };
        let parts = list.chunks_exact(PART).filter_map(part).collect();
        Some(Self { from, elf_machine, parts, pages: BTreeMap::new() })
    }

    /// Counts the kernel samples among `records`.
    pub(crate) fn note(&mut self, records: &[u8]) {
        for record in Records::new(records, ORDER, 0).flatten() {
            let is_kernels = record.kind == kind::SAMPLE && record.misc & MODE == KERNEL;
            let Some(ip) = ORDER.u64_at(record.body(), IP).filter(|_| is_kernels) else { continue };
            let (page, is_full) = (ip / PAGE, self.pages.len() >= MAX_PAGES);
            if !is_full || self.pages.contains_key(&page) {
                *self.pages.entry(page).or_default() += 1;
            }
        }
    }

    /// Extracts pages with samples and their neighbours, because functions extend across pages; at most `most_bytes`.
    pub(crate) fn extract(&self, most_bytes: u64) -> KeptCode {
        let mut code = KeptCode::new(self.elf_machine, ORDER);
        for page in self.wanted(most_bytes / PAGE) {
            if let Some(bytes) = self.page(page)
                && code.push(page * PAGE, &bytes).is_err()
            {
                break;
            }
        }
        code
    }

    /// The pages to keep; if there are too many, those with most samples.
    fn wanted(&self, max: u64) -> BTreeSet<u64> {
        let mut pages: Vec<(u64, u64)> =
            self.pages.iter().map(|(page, count)| (*page, *count)).collect();
        pages.sort_by_key(|&(_, count)| Reverse(count));
        let around = |page: u64| [page, page.saturating_sub(1), page.saturating_add(1)];
        let mut wanted = BTreeSet::new();
        for page in pages.into_iter().flat_map(|(page, _)| around(page)) {
            if wanted.len() as u64 >= max {
                break;
            }
            wanted.insert(page);
        }
        wanted
    }

    /// Reads a page of the kernel; pages of unloaded modules are gone.
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
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel with code at 0xffff_8000_0000_0000: each page is filled with its number.
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
        let mut code = KeptCode::new(62, ORDER);
        (1..=pages).for_each(|page| {
            code.push(BASE + u64::from(page - 1) * PAGE, &[page; PAGE as usize]).unwrap();
        });
        Memory(code.to_elf())
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
        let mut code = KernelCode::read(memory(9)).unwrap();
        // In page 1 of the host's kernel, in page 6 of a guest's, outside of all.
        let samples = [sample(1, BASE + PAGE + 5), sample(4, BASE + 6 * PAGE), sample(1, 77)];
        code.note(&samples.concat());
        let kept_code = code.extract(1 << 20);
        let read = KernelCode::read(Memory(kept_code.to_elf())).unwrap();
        let [part] = read.parts[..] else { panic!("{:?}", read.parts) };
        assert_eq!((part.address, part.len, read.elf_machine), (BASE, 3 * PAGE, 62));
        assert_eq!(read.page(BASE / PAGE + 2), Some(vec![3; PAGE as usize]));
        assert_eq!(read.page(BASE / PAGE + 3), None);
    }

    #[test]
    fn where_not_all_may_be_kept_those_with_most_samples_are() {
        let mut code = KernelCode::read(memory(9)).unwrap();
        let samples = [2, 6, 6, 8].map(|page| sample(1, BASE + page * PAGE));
        code.note(&samples.concat());
        let kept_runs = |pages: u64| {
            let kept_code = code.extract(pages * PAGE + 1);
            kept_code
                .runs()
                .map(|(address, run)| ((address - BASE) / PAGE, run.len() as u64 / PAGE))
                .collect::<Vec<_>>()
        };
        assert_eq!(kept_runs(1), [(6, 1)]);
        assert_eq!(kept_runs(3), [(5, 3)]);
        assert_eq!(kept_runs(4), [(2, 1), (5, 3)]);
        assert_eq!(kept_runs(99), [(1, 3), (5, 4)]);
        assert_eq!(kept_runs(0), []);
    }

    #[test]
    fn no_samples_keep_no_code() {
        assert!(KernelCode::read(memory(2)).unwrap().extract(u64::MAX).is_empty());
        assert!(KernelCode::read(Memory(b"\x7fELF\x02".to_vec())).is_none());
    }
}
