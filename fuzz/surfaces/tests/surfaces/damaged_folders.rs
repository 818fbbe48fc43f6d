//! A folder with raw pages and event formats, with many kinds of damage in each file.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use raw_bytes::{Abi, ByteOrder, LongSize};
use surfaces::recording;
use testkit::{KernelFormats, Machine, StreamBuilder};

const LIMIT: Duration = Duration::from_secs(5);

/// A folder that is removed on drop.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Files of a valid folder, by path.
fn files(abi: Abi) -> Vec<(&'static str, Vec<u8>)> {
    let formats = KernelFormats::new(Machine::X86, abi);
    let text = |event: &str| formats.get(event).text().into_bytes();
    let mut stream = StreamBuilder::new(abi, 4096);
    for at in 0..300 {
        let event = if at % 2 == 0 { "kvm_exit" } else { "kvm_entry" };
        stream.event(1000 * at, &formats.event(event).pid(10).build());
    }
    vec![
        ("events/header_page", formats.header_page(4096).into_bytes()),
        ("events/kvm/kvm_exit/format", text("kvm_exit")),
        ("events/kvm/kvm_entry/format", text("kvm_entry")),
        ("trace-path-cpu0", stream.bytes()),
        ("saved_cmdlines", b"10 CPU 0/KVM\n".to_vec()),
        ("kallsyms", b"ffffffff81000000 T start\n".to_vec()),
        ("printk_formats", b"0x1 : \"text\"\n".to_vec()),
        ("trace_clock", b"[local] global\n".to_vec()),
    ]
}

fn survive(folder: &Path, what: &str) -> u64 {
    let mut events = 0;
    let took = surfaces::time(LIMIT, || match sources::open(folder) {
        Ok(opened) => events = recording::account(opened).events,
        Err(error) => assert!(!recording::reason(error).is_empty()),
    });
    assert!(took < LIMIT, "{what} takes {took:?}");
    events
}

#[test]
fn damaged_files_of_a_folder_are_survived() {
    for (order, long) in [(ByteOrder::Little, LongSize::Eight), (ByteOrder::Big, LongSize::Four)] {
        let name = format!("hyperscope-folder-{}-{order:?}", std::process::id());
        let folder = Folder(std::env::temp_dir().join(name));
        let files = files(Abi { order, long });
        for (path, bytes) in &files {
            let path = folder.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        assert_eq!(survive(&folder.0, "a sound folder"), 300);
        for (path, bytes) in &files {
            for round in 0..24 {
                let damaged = damage(bytes, round);
                fs::write(folder.0.join(path), &damaged).unwrap();
                survive(&folder.0, &format!("{path} round {round}"));
            }
            fs::remove_file(folder.0.join(path)).unwrap();
            survive(&folder.0, &format!("no {path}"));
            fs::write(folder.0.join(path), bytes).unwrap();
        }
    }
}

/// Truncation, bit flips, and numbers that no kernel writes; the same in every run.
fn damage(bytes: &[u8], round: usize) -> Vec<u8> {
    let mut damaged = bytes.to_vec();
    let at = round * 7919 % bytes.len();
    match round % 4 {
        0 => damaged.truncate(at),
        1 => damaged[at] ^= 1 << (round % 8),
        2 => damaged[at..].fill(0xff),
        _ => {
            let digits = damaged.iter_mut().filter(|byte| byte.is_ascii_digit());
            digits.skip(round % 5).step_by(1 + round % 3).for_each(|digit| *digit = b'9');
        }
    }
    damaged
}
