//! Computes other results from the records of exits, without reading the records twice.

use ftrace::ringbuf::Missed;

/// Receives all records of a block, whether or not they concern vCPU threads.
pub(crate) trait Aside {
    /// The next record of a page, with its event id.
    fn record<const BIG: bool>(&mut self, id: u16, stamp_ns: impl Fn() -> u64, payload: &[u8]);

    /// The page ends; its times are in order, from the page's stamp to the last record.
    fn in_order(&mut self, missed: Missed, span_ns: (u64, u64));

    /// The page ends; its times are invalid (see `PageWalk::out_of_order`).
    fn out_of_order(&mut self, place_ns: u64);

    /// A page, or the rest of a page, cannot be read.
    fn damaged(&mut self);
}

/// No other result: the loop over records has no extra work.
impl Aside for () {
    #[inline(always)]
    fn record<const BIG: bool>(&mut self, _: u16, _: impl Fn() -> u64, _: &[u8]) {}

    fn in_order(&mut self, _: Missed, _: (u64, u64)) {}

    fn out_of_order(&mut self, _: u64) {}

    fn damaged(&mut self) {}
}
