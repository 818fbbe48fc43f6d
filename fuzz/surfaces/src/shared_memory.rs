//! A region of shared memory into which the guest writes anything anywhere, between any two steps
//! of the host.
//!
//! Bit 0 of the first byte: the remaining bytes are the region itself, which the host drains.
//! Otherwise four bytes are a step, bit 1 selects the mode, and the region is valid until a step
//! corrupts it.

use std::sync::Arc;

use shmring::{
    ByteConsumer, GuestSide, HostSide, Mode, PageConsumer, Received, RegionPlan, SharedMap,
    TakenPage,
};

/// Room for two CPUs with four slots each.
const REGION_BYTES: usize = 1 << 16;
const PAGE_BYTES: usize = 4096;
const SLOTS: usize = 4;
/// Maximum steps; more find nothing new.
const MAX_STEPS: usize = 4096;

/// Drains the region, or runs the story.
pub fn run(bytes: &[u8]) {
    let Some((&flags, rest)) = bytes.split_first() else { return };
    if flags & 1 != 0 {
        drain(rest);
    } else {
        let mode = if flags & 2 == 0 { Mode::Keep } else { Mode::Overwrite };
        Story::new(mode).play(rest);
    }
}

/// Reads a region without a writer, as after a crash and as a host that reconnects.
fn drain(bytes: &[u8]) {
    let Ok(map) = SharedMap::of_bytes(bytes) else { return };
    let map = Arc::new(map);
    for side in [HostSide::post_mortem, HostSide::attach] {
        match side(Arc::clone(&map)) {
            Ok(mut host) => drain_all(&mut host),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

fn drain_all(host: &mut HostSide) {
    let max = host.watch.plan().slots_per_cpu as u64;
    let mut page = vec![0; host.watch.plan().page_bytes];
    for ring in &mut host.pages {
        let mut checked = Checked::new(ring);
        // A read that finds damage reports no page, although more pages can follow.
        for _ in 0..max + 16 {
            checked.take(ring, &mut page);
        }
        assert!(ring.totals().taken_pages <= max, "more pages than slots");
        assert_eq!(ring.next_into(&mut page), None, "pages of a region at rest never end");
    }
    let mut read = 0;
    while let Received::Bytes(1..) | Received::NewStream = host.from_guest.read(&mut page) {
        read += 1;
        assert!(read <= 2 + (1 << 20) / PAGE_BYTES, "bytes of a region at rest never end");
    }
}

/// Checks each page against its predecessors.
struct Checked {
    next: u64,
}

impl Checked {
    fn new(ring: &PageConsumer) -> Self {
        Self { next: ring.position() }
    }

    fn take(&mut self, ring: &mut PageConsumer, page: &mut [u8]) -> Option<TakenPage> {
        let taken_page = ring.next_into(page)?;
        assert!((1..=ring.page_bytes()).contains(&taken_page.len_bytes));
        if taken_page.damage_before == 0 {
            assert_eq!(self.next.checked_add(taken_page.missed_pages), Some(taken_page.position));
        }
        self.next = taken_page.position + 1;
        Some(taken_page)
    }
}

struct Story {
    plan: RegionPlan,
    map: Arc<SharedMap>,
    guest: GuestSide,
    host: Option<(HostSide, Vec<Checked>)>,
    page: Vec<u8>,
}

impl Story {
    fn new(mode: Mode) -> Self {
        let plan = RegionPlan {
            cpus: 2,
            page_bytes: PAGE_BYTES,
            slots_per_cpu: SLOTS,
            mode,
            control_bytes: 4096,
        };
        let Ok(map) = SharedMap::of_bytes(&vec![0; REGION_BYTES]) else { panic!("no memory") };
        let map = Arc::new(map);
        let guest = create(&map, &plan);
        Self { plan, map, guest, host: None, page: vec![0; PAGE_BYTES] }
    }

    fn play(&mut self, steps: &[u8]) {
        for step in steps.chunks_exact(4).take(MAX_STEPS) {
            let &[what, low, high, value] = step else { continue };
            let place = usize::from(u16::from_le_bytes([low, high]));
            match what % 8 {
                0 | 1 => self.fill(place, value),
                2 | 3 => self.take(place),
                4 => self.talk(value),
                5 => self.start(value),
                _ => self.scribble(place, value),
            }
        }
    }

    fn fill(&mut self, cpu: usize, len: u8) {
        let Some(ring) = self.guest.pages.get_mut(cpu % 2) else { return };
        let bytes = [len; PAGE_BYTES];
        let bytes = bytes.get(..usize::from(len) * 17).unwrap_or_default();
        let filled = ring.fill(|slot| Ok(slot.copy_from(bytes)));
        assert!(filled.is_ok());
    }

    fn take(&mut self, cpu: usize) {
        let Some((host, checked)) = &mut self.host else { return };
        if let (Some(ring), Some(checked)) = (host.pages.get_mut(cpu % 2), checked.get_mut(cpu % 2))
        {
            checked.take(ring, &mut self.page);
        }
    }

    fn talk(&mut self, len: u8) {
        let len = usize::from(len) * 16;
        let Some((host, _)) = &mut self.host else { return };
        let bytes = self.page.get_mut(..len).unwrap_or_default();
        self.guest.to_host.write(bytes);
        host.to_guest.write(bytes);
        let mut read = |from: &mut ByteConsumer| match from.read(bytes) {
            Received::Bytes(read) => assert!(read <= len),
            Received::NewStream | Received::Damage => {}
        };
        read(&mut host.from_guest);
        read(&mut self.guest.from_host);
        host.watch.change();
        let _ = (host.watch.agent(), self.guest.pulse.beat(1));
    }

    /// A side starts: the agent, with the same or another plan, or a host.
    fn start(&mut self, who: u8) {
        match who % 4 {
            0 => self.guest = create(&self.map, &self.plan),
            1 => {
                self.plan.slots_per_cpu = 2 + usize::from(who) / 4 % 3;
                self.guest = create(&self.map, &self.plan);
            }
            _ => {
                let side = if who & 1 == 0 { HostSide::attach } else { HostSide::post_mortem };
                self.host = side(Arc::clone(&self.map)).ok().map(|host| {
                    let checked = host.pages.iter().map(Checked::new).collect();
                    (host, checked)
                });
            }
        }
    }

    /// Stores a word: almost valid, a power of two, or all ones.
    fn scribble(&mut self, place: usize, value: u8) {
        // Corruption of the header and of page headers has most effect, but they are a small part
        // of the region.
        let page = [0, 4096, 3 * 4096, 5 * 4096, 10 * 4096].get(place % 8).copied();
        let at = page.map_or(place, |page| page + (place >> 3) % 512);
        let at = (at & !7).min(REGION_BYTES - 8);
        let near = self.map.load(at).wrapping_add(u64::from(value & 31)).wrapping_sub(16);
        let value = match value >> 5 {
            0..=3 => near,
            4 => u64::from(value & 31),
            5 => u64::MAX >> (value & 31),
            _ => 1 << (value & 63),
        };
        self.map.store(at, value);
    }
}

fn create(map: &Arc<SharedMap>, plan: &RegionPlan) -> GuestSide {
    match GuestSide::create(Arc::clone(map), plan, [1; 16]) {
        Ok(guest) => guest,
        Err(error) => panic!("a sound plan is refused: {error}"),
    }
}
