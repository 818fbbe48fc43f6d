//! Bytes of disk requests from the block layer: they replace lengths of parts that were not recorded.
//!
//! A disk driver starts one or several requests (`block_rq_issue`) and then adds them to the queue in the same
//! thread and order. The block layer's byte count is the size of the data list.

use std::collections::VecDeque;

use super::buffers::AddedBuffer;
use super::by_thread::{ByThread, ThreadKey};

/// Max started requests per thread: a disk's queue has no more.
const MAX_BEGUN: usize = 1024;
/// Max threads with started requests.
const MAX_THREADS: usize = 1 << 12;

/// Number of lists of a request with data: header, data, and status.
const LISTS: u64 = 3;

/// A request that a driver started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DiskRequest {
    pub(super) bytes: u64,
    /// The disk's device number (`dev_t`).
    pub(super) disk: Option<u32>,
}

/// Requests that were started and not added to a queue yet.
#[derive(Debug, Default)]
pub(super) struct DiskRequests {
    pending: ByThread<VecDeque<DiskRequest>, MAX_THREADS>,
}

impl DiskRequests {
    /// A thread starts a request. Requests without data are ignored.
    pub(super) fn begin(&mut self, key: ThreadKey, request: DiskRequest) {
        if request.bytes == 0 {
            return;
        }
        let pending_requests = self.pending.get_or_default(key);
        if pending_requests.len() >= MAX_BEGUN {
            pending_requests.pop_front();
        }
        pending_requests.push_back(request);
    }

    /// A thread adds a buffer to a disk's queue: missing lengths are taken from the oldest request that fits.
    /// Returns the request's disk.
    pub(super) fn complete(&mut self, key: ThreadKey, buffer: &mut AddedBuffer) -> Option<u32> {
        let [out, in_] = buffer.lists;
        if out.saturating_add(in_) != LISTS {
            return None;
        }
        let pending_requests = self.pending.get_mut(key)?;
        let fits = |request: &DiskRequest| {
            if buffer.is_cut {
                buffer.may_have(request.bytes)
            } else {
                buffer.has_list_of(request.bytes)
            }
        };
        // Requests before the fitting one were abandoned. If none fits, for example for a discard whose data list
        // is shorter than its byte count, the oldest request is used.
        let before = pending_requests.iter().position(fits).unwrap_or(0);
        pending_requests.drain(..before);
        let request = pending_requests.pop_front();
        if let Some(DiskRequest { bytes, .. }) = request {
            buffer.complete(bytes);
        }
        if pending_requests.is_empty() {
            self.pending.take(key);
        }
        request?.disk
    }

    /// Drops started requests after a loss.
    pub(super) fn lost(&mut self, recording: u16) {
        self.pending.lost(recording);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: ThreadKey = (0, 7);

    fn request_of(bytes: u64) -> DiskRequest {
        DiskRequest { bytes, disk: Some(254 << 20) }
    }

    /// A read: header, data of which the first parts have `recorded` bytes, and a status byte.
    fn read(recorded: u64, is_whole: bool) -> AddedBuffer {
        AddedBuffer::made([1, 2], [Some((16, true)), Some((recorded, is_whole)), Some((1, true))])
    }

    fn completed(requests: &mut DiskRequests, mut buffer: AddedBuffer) -> (u64, bool) {
        requests.complete(KEY, &mut buffer);
        (buffer.bytes.unwrap()[1], buffer.is_cut)
    }

    #[test]
    fn requests_are_handed_over_in_the_order_in_which_they_began() {
        let mut requests = DiskRequests::default();
        [0, 65_536, 4096, 131_072]
            .into_iter()
            .for_each(|bytes| requests.begin(KEY, request_of(bytes)));
        requests.begin((1, 7), request_of(1 << 20));
        assert_eq!(completed(&mut requests, read(8192, false)), (65_537, false));
        assert_eq!(completed(&mut requests, read(4096, true)), (4097, false));
        assert_eq!(completed(&mut requests, read(4096, false)), (131_073, false));
        // No request is left that fits.
        assert_eq!(completed(&mut requests, read(4096, false)), (4097, true));
        assert_eq!(requests.pending.values().count(), 1);
    }

    #[test]
    fn what_does_not_fit_completes_nothing() {
        let mut requests = DiskRequests::default();
        // The first request was abandoned; the second one fits.
        [4096, 12_288].into_iter().for_each(|bytes| requests.begin(KEY, request_of(bytes)));
        assert_eq!(completed(&mut requests, read(8192, false)), (12_289, false));
        // A discard of a gigabyte has 16 bytes of data: it is the oldest request, and no other has its size.
        [1 << 30, 65_536].into_iter().for_each(|bytes| requests.begin(KEY, request_of(bytes)));
        assert_eq!(completed(&mut requests, read(24, true)), (25, false));
        assert_eq!(completed(&mut requests, read(8192, false)), (65_537, false));
        requests.begin(KEY, request_of(65_536));
        requests.lost(0);
        assert_eq!(completed(&mut requests, read(8192, false)), (8193, true));
    }

    #[test]
    fn what_is_never_handed_over_takes_little_room() {
        let mut requests = DiskRequests::default();
        for thread in 0..2 * MAX_THREADS as u32 {
            requests.begin((0, thread), request_of(512));
        }
        (0..2 * MAX_BEGUN).for_each(|_| requests.begin(KEY, request_of(512)));
        assert!(requests.pending.values().count() <= MAX_THREADS);
        assert!(requests.pending.values().all(|pending| pending.len() <= MAX_BEGUN));
    }
}
