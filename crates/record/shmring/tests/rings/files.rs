//! Pages that go from a file to a slot and from a slot to a file, with no copy between.

use std::io::{ErrorKind, Read, Seek, Write};
use std::os::fd::AsFd;

use shmring::{Filled, Mode, Written};

use crate::region::{Memory, plan, put};

#[test]
fn pages_go_through_from_file_to_file() {
    let memory = Memory::new(1 << 20);
    let mut guest = memory.guest(&plan(1, 4, Mode::Keep));
    let mut host = memory.host();
    let all: Vec<u8> = (0..40_000_u32).map(|at| (at / 7) as u8).collect();
    let mut source = tempfile::tempfile().unwrap();
    source.write_all(&all).unwrap();
    source.rewind().unwrap();
    let mut target = tempfile::tempfile().unwrap();
    loop {
        let filled = guest.pages[0].read_from(source.as_fd()).unwrap();
        if filled == Filled::Full || filled == Filled::Nothing {
            while host.pages[0].next_to(target.as_fd()).unwrap() != Written::Nothing {}
        }
        if filled == Filled::Nothing {
            break;
        }
    }
    let mut copied = Vec::new();
    target.rewind().unwrap();
    target.read_to_end(&mut copied).unwrap();
    assert!(copied == all);
}

#[test]
fn a_pipe_without_bytes_fills_nothing() {
    let memory = Memory::new(1 << 20);
    let mut guest = memory.guest(&plan(1, 4, Mode::Keep));
    let mut host = memory.host();
    let (source, mut into) = std::io::pipe().unwrap();
    into.write_all(b"some").unwrap();
    let page = Filled::Page { position: 0, len_bytes: 4 };
    assert_eq!(guest.pages[0].read_from(source.as_fd()).unwrap(), page);
    drop(into);
    assert_eq!(guest.pages[0].read_from(source.as_fd()).unwrap(), Filled::Nothing);
    let directory = std::fs::File::open("/").unwrap();
    let error = guest.pages[0].read_from(directory.as_fd()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::IsADirectory);
    let mut page = [0; 8];
    assert_eq!(host.pages[0].next_into(&mut page).unwrap().len_bytes, 4);
    assert_eq!(host.pages[0].next_into(&mut page), None);
}

#[test]
fn a_page_that_could_not_be_written_is_not_taken() {
    let memory = Memory::new(1 << 20);
    let mut guest = memory.guest(&plan(1, 4, Mode::Keep));
    let mut host = memory.host();
    put(&mut guest.pages[0], 0);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let error = host.pages[0].next_to(full.as_fd()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    let target = tempfile::tempfile().unwrap();
    assert!(matches!(host.pages[0].next_to(target.as_fd()).unwrap(), Written::Page(_)));
}

/// The slot's head, of the old layout, is not touched by the new one.
#[test]
fn a_region_laid_out_again_while_a_page_is_written_is_noticed() {
    let memory = Memory::new(1 << 20);
    let mut guest = memory.guest(&plan(1, 4, Mode::Keep));
    let mut host = memory.host();
    put(&mut guest.pages[0], 0);
    let (mut out, mut into) = std::io::pipe().unwrap();
    into.write_all(&[0xEE; 65536]).unwrap();
    std::thread::scope(|scope| {
        let written = scope.spawn(|| host.pages[0].next_to(into.as_fd()).unwrap());
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!written.is_finished());
        memory.guest(&shmring::RegionPlan { control_bytes: 65536, ..plan(1, 4, Mode::Keep) });
        let mut drained = [0; 65536];
        out.read_exact(&mut drained).unwrap();
        assert!(matches!(written.join().unwrap(), Written::Overtaken { .. }));
    });
}

/// The pipe is full, so the host waits in write(2) while its page is overwritten.
#[test]
fn a_page_overwritten_while_it_is_written_is_noticed() {
    let memory = Memory::new(1 << 20);
    let mut guest = memory.guest(&plan(1, 4, Mode::Overwrite));
    let mut host = memory.host();
    let ring = &mut guest.pages[0];
    let fill = |ring: &mut shmring::PageProducer, byte| {
        ring.fill(|slot| Ok(slot.copy_from(&[byte; 4096]))).unwrap();
    };
    (0..4).for_each(|byte| fill(ring, byte));
    let (mut out, mut into) = std::io::pipe().unwrap();
    into.write_all(&[0xEE; 65536]).unwrap();
    std::thread::scope(|scope| {
        let written = scope.spawn(|| {
            let written = host.pages[0].next_to(into.as_fd()).unwrap();
            (written, host.pages[0].next_to(tempfile::tempfile().unwrap().as_fd()).unwrap())
        });
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!written.is_finished());
        (4..8).for_each(|byte| fill(ring, byte));
        let mut drained = [0; 65536];
        out.read_exact(&mut drained).unwrap();
        let (first, second) = written.join().unwrap();
        assert_eq!(first, Written::Overtaken { len_bytes: 4096 });
        let Written::Page(taken_page) = second else { panic!("{second:?}") };
        assert_eq!((taken_page.position, taken_page.missed_pages), (4, 4));
    });
}
