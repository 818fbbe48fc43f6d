//! Every request by itself, of each path: what a page needs to answer for any stretch of time.
//!
//! All requests are listed or none: statistics of a stretch would be wrong if requests were missing.

/// A request that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListedRequest {
    /// When it began, on the host's clock.
    pub begin_ns: u64,
    /// From its first step to its last.
    pub length_ns: u64,
}

impl ListedRequest {
    /// Bytes of memory that one takes while paths are put together: in the list of its way, and in that of its path.
    pub const BYTES: usize = 2 * size_of::<Self>();
}

/// How many more requests may be listed; `None` once there was one too many, or where none are asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ListingRoom(Option<usize>);

impl ListingRoom {
    /// Room for that number of requests; for none, nothing is listed.
    pub(super) fn for_requests(requests: usize) -> Self {
        Self((requests > 0).then_some(requests))
    }

    /// Whether all requests so far are listed.
    pub(super) fn is_whole(self) -> bool {
        self.0.is_some()
    }

    /// Takes the room of one more request; false: it has none, and the others are not to be listed either.
    pub(super) fn take(&mut self) -> bool {
        self.0 = self.0.and_then(|room| room.checked_sub(1));
        self.is_whole()
    }

    /// A request can't be listed.
    pub(super) fn give_up(&mut self) {
        self.0 = None;
    }
}
