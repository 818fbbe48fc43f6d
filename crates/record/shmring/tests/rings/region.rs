//! A region in a temp file, as both sides see it, and pages whose bytes show which page they are.

use std::fs::File;
use std::sync::Arc;

use shmring::{
    Access, Filled, GuestSide, HostSide, Mode, PageConsumer, PageProducer, RegionPlan, SharedMap,
    TakenPage,
};

pub(crate) const BOOT: [u8; 16] = *b"boot of the test";

pub(crate) fn plan(cpus: usize, slots_per_cpu: usize, mode: Mode) -> RegionPlan {
    RegionPlan { cpus, page_bytes: 4096, slots_per_cpu, mode, control_bytes: 4096 }
}

/// The memory: restarts of the programs drop their sides and make new ones.
pub(crate) struct Memory {
    pub(crate) file: File,
}

impl Memory {
    pub(crate) fn new(len_bytes: u64) -> Self {
        let file = tempfile::tempfile().unwrap();
        file.set_len(len_bytes).unwrap();
        Self { file }
    }

    pub(crate) fn map(&self) -> Arc<SharedMap> {
        Arc::new(SharedMap::of_file(&self.file, Access::ReadWrite).unwrap())
    }

    pub(crate) fn map_to_read(&self) -> Arc<SharedMap> {
        Arc::new(SharedMap::of_file(&self.file, Access::Read).unwrap())
    }

    pub(crate) fn guest(&self, plan: &RegionPlan) -> GuestSide {
        GuestSide::create(self.map(), plan, BOOT).unwrap()
    }

    pub(crate) fn host(&self) -> HostSide {
        HostSide::attach(self.map()).unwrap()
    }
}

/// Bytes of the page at a position: their number and each word of them follow from it.
pub(crate) fn content(position: u64, into: &mut Vec<u8>) {
    let mut state = position.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    // Mostly short, so that millions of pages take seconds in a debug build.
    let words = if position.is_multiple_of(64) { 512 } else { 1 + (state >> 59) };
    into.clear();
    for _ in 0..words {
        into.extend(state.to_le_bytes());
        state = state.rotate_left(5).wrapping_mul(0x2545_F491_4F6C_DD1D);
    }
}

/// Puts in the next page, if there is room.
pub(crate) fn put(ring: &mut PageProducer, position: u64) -> bool {
    let mut bytes = Vec::new();
    content(position, &mut bytes);
    let filled = ring.fill(|slot| Ok(slot.copy_from(&bytes))).unwrap();
    match filled {
        Filled::Page { position: put, .. } => assert_eq!(put, position),
        Filled::Full => {}
        Filled::Nothing => panic!("a page with bytes is one"),
    }
    filled != Filled::Full
}

/// Takes the next page and checks each of its bytes.
pub(crate) fn take(ring: &mut PageConsumer) -> Option<TakenPage> {
    let mut page = [0xEE; 4096];
    let taken_page = ring.next_into(&mut page)?;
    let mut expected = Vec::new();
    content(taken_page.position, &mut expected);
    assert!(page[..taken_page.len_bytes] == expected, "page {} is torn", taken_page.position);
    Some(taken_page)
}

/// Takes all there is: the positions.
pub(crate) fn take_all(ring: &mut PageConsumer) -> Vec<u64> {
    std::iter::from_fn(|| take(ring)).map(|taken_page| taken_page.position).collect()
}
