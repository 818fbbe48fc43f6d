//! A list of all requests by path, so that a page can compute statistics of any time range.
//!
//! A list contains all requests or none: with missing requests, statistics would be wrong.

/// A finished request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListedRequest {
    /// Start, on the host's clock.
    pub begin_ns: u64,
    /// Time from its first step to its last.
    pub length_ns: u64,
}

impl ListedRequest {
    /// Memory per request while paths are built: it is in the list of its variant and in that of its path.
    pub const BYTES: usize = 2 * size_of::<Self>();
}

/// Number of requests that can still be listed; `None` after an overflow, or if no list was requested.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ListingRoom(Option<usize>);

impl ListingRoom {
    /// Room for `requests` requests; 0 disables listing.
    pub(super) fn for_requests(requests: usize) -> Self {
        Self((requests > 0).then_some(requests))
    }

    /// Whether all requests so far are listed.
    pub(super) fn is_whole(self) -> bool {
        self.0.is_some()
    }

    /// Takes room for one request; `false` without room: then no request is listed.
    pub(super) fn take(&mut self) -> bool {
        self.0 = self.0.and_then(|room| room.checked_sub(1));
        self.is_whole()
    }

    /// A request cannot be listed, so none is.
    pub(super) fn give_up(&mut self) {
        self.0 = None;
    }
}
