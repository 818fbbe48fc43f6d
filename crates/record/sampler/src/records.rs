//! Reads a ring's records: counts them, and filters by process.

use std::collections::BTreeSet;

use perfdata::{Record, Records, kind};
use raw_bytes::ByteOrder;

/// Offset of a sample's process id: after its header, event id and address.
const SAMPLE_PID: usize = 16;
/// Offset of the process id in other records; LOST has its count there.
const PID: usize = 0;
const LOST_COUNT: usize = 8;

pub(crate) const ORDER: ByteOrder =
    if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little };

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) samples: u64,
    /// Records of any type that the kernel dropped.
    pub(crate) lost: u64,
    pub(crate) throttled: u64,
}

impl Counts {
    /// Counts the records in `ring`, and appends them to `out`. With `only`, skips records of other processes.
    pub(crate) fn take(&mut self, ring: &[u8], only: Option<&BTreeSet<u32>>, out: &mut Vec<u8>) {
        let Some(only) = only else {
            Records::new(ring, ORDER, 0).flatten().for_each(|record| self.count(&record));
            return out.extend_from_slice(ring);
        };
        for record in Records::new(ring, ORDER, 0).flatten() {
            if pid(&record).is_none_or(|pid| is_kernels(&record, pid) || only.contains(&pid)) {
                self.count(&record);
                out.extend_from_slice(record.bytes);
            }
        }
    }

    fn count(&mut self, record: &Record<'_>) {
        match record.kind {
            kind::SAMPLE => self.samples += 1,
            kind::LOST => self.lost += ORDER.u64_at(record.body(), LOST_COUNT).unwrap_or(0),
            kind::THROTTLE => self.throttled += 1,
            _ => {}
        }
    }
}

/// The process of a record.
fn pid(record: &Record<'_>) -> Option<u32> {
    let at = match record.kind {
        kind::SAMPLE => SAMPLE_PID,
        kind::MMAP | kind::MMAP2 | kind::COMM | kind::FORK | kind::EXIT => PID,
        _ => return None,
    };
    ORDER.u32_at(record.body(), at)
}

/// Whether a record maps kernel code. A sample without a process (-1) belongs to a task that is almost gone
/// (`perf_event_pid_type`, kernel/events/core.c), of an unknown process.
fn is_kernels(record: &Record<'_>, pid: u32) -> bool {
    pid == u32::MAX && record.kind != kind::SAMPLE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, words: &[u64]) -> Vec<u8> {
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend(0_u16.to_ne_bytes());
        bytes.extend(u16::try_from(8 + 8 * words.len()).unwrap().to_ne_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        bytes
    }

    fn pid_word(pid: u32) -> u64 {
        let mut word = [0; 8];
        word[..4].copy_from_slice(&pid.to_ne_bytes());
        u64::from_ne_bytes(word)
    }

    #[test]
    fn only_what_is_of_the_processes_asked_for_is_kept() {
        let ours =
            [record(kind::SAMPLE, &[1, 2, pid_word(7), 0]), record(kind::COMM, &[pid_word(7), 0])];
        let others =
            [record(kind::SAMPLE, &[1, 2, pid_word(8), 0]), record(kind::COMM, &[pid_word(8), 0])];
        let of_all =
            [record(kind::LOST, &[1, 5]), record(kind::MMAP, &[pid_word(u32::MAX), 0, 0, 0])];
        let ring = [ours.concat(), others.concat(), of_all.concat()].concat();
        let (mut output, mut counts) = (Vec::new(), Counts::default());
        counts.take(&ring, Some(&BTreeSet::from([7])), &mut output);
        assert_eq!(output, [ours.concat(), of_all.concat()].concat());
        assert_eq!(counts, Counts { samples: 1, lost: 5, throttled: 0 });
        let (mut all, mut counts) = (Vec::new(), Counts::default());
        counts.take(&ring, None, &mut all);
        assert_eq!((all, counts.samples), (ring, 2));
    }
}
