//! The state before sampling began: the kernel's code, its modules, threads and their mapped code.
//!
//! Everything comes from /proc. Other users choose the names of their programs, so names are cut to fit a record, and
//! nothing else depends on them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;

use perfdata::{EarlierMapping, PipeWriter};

use crate::mapped_files::MappedFiles;

/// Max mappings to read per process: the kernel's own limit is 65,530.
const MAX_MAPPINGS: usize = 1 << 17;

/// perf's name of the kernel mapping, and the symbol that its addresses are relative to.
const KERNEL: &[u8] = b"[kernel.kallsyms]_text";

/// The kernel's code and its modules', if this user may read addresses.
pub(crate) fn kernel(writer: &mut PipeWriter<'_>) {
    if let Some((start, end)) = kernel_text(Path::new("/proc/kallsyms")) {
        writer.mapping(&of_kernel(start, end - start, KERNEL));
    }
    let modules = fs::read_to_string("/proc/modules").unwrap_or_default();
    for (name, start, len) in modules.lines().filter_map(module) {
        let name = format!("[{name}]");
        writer
            .mapping(&EarlierMapping { file_offset: 0, ..of_kernel(start, len, name.as_bytes()) });
    }
}

fn of_kernel(addr: u64, len: u64, path: &[u8]) -> EarlierMapping<'_> {
    EarlierMapping {
        pid: None,
        addr,
        len,
        file_offset: addr,
        device: (0, 0),
        inode: 0,
        build_id: None,
        path,
    }
}

/// From `_text` to `_etext`.
fn kernel_text(kallsyms: &Path) -> Option<(u64, u64)> {
    let (mut start, mut end) = (None, None);
    for line in BufReader::new(File::open(kallsyms).ok()?).lines() {
        let line = line.ok()?;
        let mut words = line.split_ascii_whitespace();
        let (address, name) = (words.next()?, words.nth(1)?);
        match name {
            "_text" => start = u64::from_str_radix(address, 16).ok(),
            "_etext" => end = u64::from_str_radix(address, 16).ok(),
            _ => continue,
        }
        if let (Some(start), Some(end)) = (start, end) {
            return (0 < start && start < end).then_some((start, end));
        }
    }
    None
}

/// Name, address and size of a module: `name size users used-by state address`.
fn module(line: &str) -> Option<(&str, u64, u64)> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let address = words.get(5)?.strip_prefix("0x")?;
    let start = u64::from_str_radix(address, 16).ok().filter(|&start| start != 0)?;
    Some((words.first()?, start, words.get(1)?.parse().ok()?))
}

/// All process ids, or those among `only`.
pub(crate) fn processes(only: Option<&BTreeSet<u32>>) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| only.is_none_or(|only| only.contains(pid))).collect()
}

/// A process's threads and mapped code; nothing if it has ended.
pub(crate) fn process(pid: u32, files: &mut MappedFiles, writer: &mut PipeWriter<'_>) {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    for thread in threads {
        let name = fs::read(thread.path().join("comm")).unwrap_or_default();
        let tid = thread.file_name().to_str().and_then(|name| name.parse().ok());
        if let Some(tid) = tid.filter(|_| !name.is_empty()) {
            writer.thread(pid, tid, name.trim_ascii_end());
        }
    }
    let Ok(maps) = File::open(format!("/proc/{pid}/maps")) else { return };
    for line in BufReader::new(maps).split(b'\n').take(MAX_MAPPINGS).map_while(Result::ok) {
        if let Some(mut mapping) = mapping(pid, &line) {
            if mapping.inode != 0 {
                let end = mapping.addr.saturating_add(mapping.len);
                mapping.build_id = files.build_id(pid, mapping.addr, end);
            }
            writer.mapping(&mapping);
        }
    }
}

/// A mapping of code: `start-end rwxp offset major:minor inode path`.
fn mapping(pid: u32, line: &[u8]) -> Option<EarlierMapping<'_>> {
    let mut words = line.splitn(6, |&byte| byte == b' ');
    let mut word = || std::str::from_utf8(words.next()?).ok();
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = word()?.split_once('-')?;
    let (addr, end) = (hex(start)?, hex(end)?);
    word()?.contains('x').then_some(())?;
    let file_offset = hex(word()?)?;
    let (major, minor) = word()?.split_once(':')?;
    let device = (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?);
    let inode = word()?.parse().ok()?;
    let path = words.next().unwrap_or_default().trim_ascii_start();
    let path = if path.is_empty() { b"//anon" } else { path };
    let len = end.checked_sub(addr)?;
    Some(EarlierMapping {
        pid: Some(pid),
        addr,
        len,
        file_offset,
        device,
        inode,
        build_id: None,
        path,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_of_code_are_found_among_others() {
        let code = b"7f1000-7f3000 r-xp 00001000 fe:01 123                        /usr/lib/a b.so";
        let found = mapping(7, code).unwrap();
        assert_eq!((found.addr, found.len, found.file_offset), (0x7f_1000, 0x2000, 0x1000));
        assert_eq!(
            (found.device, found.inode, found.path),
            ((0xfe, 1), 123, &b"/usr/lib/a b.so"[..])
        );
        let anonymous = mapping(7, b"7f1000-7f3000 rwxp 00000000 00:00 0 ").unwrap();
        assert_eq!(anonymous.path, b"//anon");
        assert!(mapping(7, b"7f1000-7f3000 rw-p 00000000 00:00 0 [stack]").is_none());
        for wrong in [&b""[..], b"x-y r-xp", b"1-0 r-xp 0 0:0 0 a", b"\xff-1 r-xp 0 0:0 0"] {
            assert!(mapping(7, wrong).is_none());
        }
    }

    #[test]
    fn modules_without_an_address_are_left_out() {
        let line = "kvm 1036288 1 kvm_amd, Live 0xffffffffc0a5e000 (E)";
        assert_eq!(module(line), Some(("kvm", 0xffff_ffff_c0a5_e000, 1_036_288)));
        assert_eq!(module("kvm 1036288 1 - Live 0x0000000000000000"), None);
        assert_eq!(module("kvm"), None);
    }

    #[test]
    fn hidden_addresses_are_none() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "0000 T _text\n0000 T _etext\n").unwrap();
        assert_eq!(kernel_text(file.path()), None);
        fs::write(file.path(), "10 T startup\n20 T _text\n21 t a [m]\n30 T _etext\n").unwrap();
        assert_eq!(kernel_text(file.path()), Some((0x20, 0x30)));
    }
}
