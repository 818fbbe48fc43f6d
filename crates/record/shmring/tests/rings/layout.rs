//! The bytes of a region, at the offsets that docs/formats/shared-memory.md gives.

use std::os::unix::fs::FileExt;

use shmring::Mode;

use crate::region::{BOOT, Memory, plan, take};

#[test]
fn every_byte_is_where_the_documentation_says() {
    let memory = Memory::new(1 << 20);
    let mut guest = memory.guest(&plan(2, 3, Mode::Overwrite));
    guest.pulse.woke();
    guest.pulse.woke();
    assert!(guest.pulse.beat(77));
    guest.to_host.write(b"hello");
    for text in [&b"first page"[..], b"second", b"third", b"fourth!"] {
        guest.pages[1].fill(|slot| Ok(slot.copy_from(text))).unwrap();
    }
    guest.pages[1].lose(5, 500);

    let mut bytes = vec![0; 1 << 20];
    memory.file.read_exact_at(&mut bytes, 0).unwrap();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let words = |at: usize, count| (0..count).map(|index| word(at + index * 8)).collect::<Vec<_>>();

    assert_eq!(&bytes[..8], b"HSCSHMEM");
    // Version, region, page, slots, CPUs, mode, control; page rings and their stride; control rings.
    let ring_bytes = 4096 + 3 * 4096;
    let rings = 4096 + 2 * (4096 + 4096);
    assert_eq!(words(8, 7), [1, rings + 2 * ring_bytes, 4096, 3, 2, 2, 4096]);
    assert_eq!(words(64, 4), [rings, ring_bytes, 4096, 4096 + 8192]);
    // Generation, epoch, boot id, state.
    assert_eq!((words(128, 2), word(160)), (vec![1, 1], 1));
    assert_eq!(bytes[144..160], BOOT);
    // Heartbeats, wake-ups, the guest's time; nothing of a host.
    assert_eq!((words(192, 3), words(256, 4)), (vec![1, 2, 77], vec![0; 4]));

    // The control stream to the host: position, stream, start, for whom; read up to.
    assert_eq!((words(4096, 4), word(4096 + 64)), (vec![5, 1, 0, 0], 0));
    assert_eq!(&bytes[8192..8197], b"hello");

    // CPU 1's ring: position, lost pages and bytes; taken up to.
    let ring = (rings + ring_bytes) as usize;
    assert_eq!((words(ring, 3), words(ring + 64, 3)), (vec![4, 5, 500], vec![0; 3]));
    // Heads of slots: sequence, CPU, length, epoch. Position 3 took the slot of position 0.
    assert_eq!(words(ring + 128, 4), [8, 1, 7, 1]);
    assert_eq!(words(ring + 128 + 64, 4), [4, 1, 6, 1]);
    assert_eq!(words(ring + 128 + 128, 4), [6, 1, 5, 1]);
    // The pages.
    assert_eq!(&bytes[ring + 4096..ring + 4103], b"fourth!");
    assert_eq!(&bytes[ring + 8192..ring + 8198], b"second");
    assert_eq!(&bytes[ring + 12288..ring + 12293], b"third");
    assert_eq!(words(rings as usize, 48), [0; 48], "CPU 0 has no page");
}

#[test]
fn a_host_writes_only_what_is_the_hosts() {
    let memory = Memory::new(1 << 20);
    let mut guest = memory.guest(&plan(1, 3, Mode::Keep));
    crate::region::put(&mut guest.pages[0], 0);
    let read = || {
        let mut bytes = vec![0; 1 << 20];
        memory.file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    };
    let before = read();
    let mut host = memory.host();
    let mut poller = shmring::Poller::default();
    poller.looked(take(&mut host.pages[0]).is_some());
    host.watch.publish_polls(&poller);
    host.to_guest.write(b"stop");
    host.from_guest.read(&mut [0; 8]);
    let after = read();
    let changed: Vec<usize> =
        (0..1 << 20).step_by(8).filter(|&at| before[at..at + 8] != after[at..at + 8]).collect();
    let to_guest = 4096 + 8192;
    let expected = [
        // Attaches, polls, the epoch that is followed.
        256,
        264,
        280,
        // The stream to the guest: position, stream, for whom; its bytes.
        to_guest,
        to_guest + 8,
        to_guest + 24,
        to_guest + 4096,
        // The consumer's position.
        4096 + 2 * 8192 + 64,
    ];
    assert_eq!(changed, expected);
}
