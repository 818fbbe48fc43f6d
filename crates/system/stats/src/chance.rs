//! Reproducible random numbers.

/// A pseudo-random generator (SplitMix64): the same seed gives the same numbers.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// A generator with this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator with an independent start for each `part` of a computation with one seed.
    #[must_use]
    pub fn of_part(seed: u64, part: u64) -> Self {
        // Adjacent seeds must not give overlapping sequences.
        let mut chance = Self(seed);
        let start = chance.number();
        let mut part = Self(part ^ start);
        Self(part.number())
    }

    /// The next number, uniform over 64 bits.
    pub const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A random bit.
    pub const fn coin(&mut self) -> bool {
        self.number() & 1 == 1
    }

    /// A number below `end`; 0 if `end` is 0. The bias is less than `end` in 2^64.
    pub fn below(&mut self, end: usize) -> usize {
        let wide = u128::from(self.number()) * end as u128;
        (wide >> 64) as usize
    }

    /// Shuffles a slice uniformly.
    pub fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            let other = self.below(last + 1);
            things.swap(last, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of SplitMix64 from seed 1234567, as its author's C program prints them.
    #[test]
    fn chance_is_splitmix64() {
        let mut chance = Chance::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| chance.number()).collect();
        let known =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(first, known);
    }

    #[test]
    fn a_shuffle_keeps_all_and_comes_again_from_its_seed() {
        let shuffled = |seed| {
            let mut all: Vec<u32> = (0..20).collect();
            Chance::new(seed).shuffle(&mut all);
            all
        };
        assert_eq!(shuffled(7), shuffled(7));
        assert_ne!(shuffled(7), shuffled(8));
        let mut sorted = shuffled(7);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn numbers_below_an_end_come_alike_often() {
        let mut chance = Chance::new(1);
        let mut seen = [0u32; 7];
        for _ in 0..70_000 {
            seen[chance.below(7)] += 1;
        }
        assert!(seen.iter().all(|count| (9_600..10_400).contains(count)), "{seen:?}");
        assert_eq!(chance.below(0), 0);
        assert_eq!(chance.below(1), 0);
    }

    #[test]
    fn parts_of_a_seed_differ() {
        let first = |seed, part| Chance::of_part(seed, part).number();
        assert_ne!(first(1, 0), first(1, 1));
        assert_ne!(first(1, 0), first(2, 0));
        assert_ne!(first(1, 2), first(2, 1));
        assert_eq!(first(3, 4), first(3, 4));
    }
}
