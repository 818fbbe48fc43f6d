//! Pseudo-random numbers, the same in every run.

/// A generator (Marsaglia's xorshift64); the seed is any number but 0.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// A number below `limit`; 0 if `limit` is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        // The lowest bits are the least random ones.
        (self.0 >> 11) % limit.max(1)
    }
}
