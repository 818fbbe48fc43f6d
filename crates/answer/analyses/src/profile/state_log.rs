//! How long vCPUs were in each state, by time, in bounded memory: blocks of time grow wider as a recording goes on.

use rustc_hash::FxHashMap;

use super::sums::Stratum;
use crate::states::{VcpuRef, VcpuState};

/// Blocks that are kept, of all states together: some 4 MB.
const MOST_BLOCKS: usize = 1 << 16;
/// Two to the power of this is 17 ms, in nanoseconds: how wide blocks are at first.
const FIRST_SHIFT: u32 = 24;
/// Blocks that one span may reach over: what lasts longer has wider ones.
const MOST_OF_A_SPAN: u64 = 1 << 12;

/// What time is kept apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct StateKey {
    pub(super) vcpu: VcpuRef,
    pub(super) level: u8,
    pub(super) state: VcpuState,
    pub(super) exit: Option<(u8, u64)>,
}

impl StateKey {
    /// A stratum's, whichever thread of the guest ran.
    pub(super) const fn of(stratum: &Stratum) -> Self {
        let Stratum { vcpu, level, state, exit, .. } = *stratum;
        Self { vcpu, level, state, exit }
    }
}

/// Time in a state within a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StateBlock {
    pub(super) key: StateKey,
    /// Within the block.
    pub(super) at_ns: u64,
    pub(super) time_ns: u64,
}

/// Time by state and block.
#[derive(Debug)]
pub(super) struct StateLog {
    /// A block is `1 << shift` ns wide.
    shift: u32,
    blocks: FxHashMap<(StateKey, u64), u64>,
}

impl Default for StateLog {
    fn default() -> Self {
        Self { shift: FIRST_SHIFT, blocks: FxHashMap::default() }
    }
}

impl StateLog {
    /// A vCPU was in a state for a time.
    pub(super) fn push(&mut self, key: StateKey, (from_ns, to_ns): (u64, u64)) {
        while (to_ns >> self.shift).saturating_sub(from_ns >> self.shift) > MOST_OF_A_SPAN {
            self.coarsen();
        }
        let mut from_ns = from_ns;
        while from_ns < to_ns {
            let block = from_ns >> self.shift;
            let next_ns = (u128::from(block) + 1) << self.shift;
            let end_ns = u64::try_from(next_ns).unwrap_or(u64::MAX).min(to_ns);
            let time_ns = self.blocks.entry((key, block)).or_default();
            *time_ns = time_ns.saturating_add(end_ns - from_ns);
            from_ns = end_ns;
        }
        while self.blocks.len() > MOST_BLOCKS && self.shift < 62 {
            self.coarsen();
        }
    }

    fn coarsen(&mut self) {
        self.shift += 1;
        let mut coarser: FxHashMap<(StateKey, u64), u64> = FxHashMap::default();
        for ((key, block), time_ns) in self.blocks.drain() {
            let sum_ns = coarser.entry((key, block >> 1)).or_default();
            *sum_ns = sum_ns.saturating_add(time_ns);
        }
        self.blocks = coarser;
    }

    /// All blocks, by state and time.
    pub(super) fn finish(self) -> Vec<StateBlock> {
        let half_ns = (1 << self.shift) / 2;
        let at = |block: u64| (block << self.shift).saturating_add(half_ns);
        let block = |((key, block), time_ns)| StateBlock { key, at_ns: at(block), time_ns };
        let mut blocks: Vec<StateBlock> = self.blocks.into_iter().map(block).collect();
        blocks.sort_by_key(|one| (one.key, one.at_ns));
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(code: u64) -> StateKey {
        let vcpu = VcpuRef { recording: 0, index: 0 };
        StateKey { vcpu, level: 1, state: VcpuState::ExitKernel, exit: Some((1, code)) }
    }

    proptest! {
        #[test]
        fn no_time_is_lost(spans in prop::collection::vec((0..3u64, any::<u64>(), any::<u64>()), 1..50)) {
            let mut log = StateLog::default();
            let mut sums = [0u128; 3];
            for &(code, one, other) in &spans {
                let (from_ns, to_ns) = (one.min(other) >> 8, one.max(other) >> 8);
                log.push(key(code), (from_ns, to_ns));
                sums[code as usize] += u128::from(to_ns - from_ns);
            }
            for block in log.finish() {
                let Some((_, code)) = block.key.exit else { panic!() };
                sums[code as usize] -= u128::from(block.time_ns);
            }
            prop_assert_eq!(sums, [0; 3]);
        }
    }

    #[test]
    fn very_many_blocks_grow_wider() {
        let mut log = StateLog::default();
        for at in 0..MOST_BLOCKS as u64 * 3 {
            log.push(key(at % 2), (at << FIRST_SHIFT, (at << FIRST_SHIFT) + 10));
        }
        let blocks = log.finish();
        assert!((MOST_BLOCKS / 4..=MOST_BLOCKS).contains(&blocks.len()), "{}", blocks.len());
        assert_eq!(blocks.iter().map(|one| one.time_ns).sum::<u64>(), MOST_BLOCKS as u64 * 30);
    }
}
