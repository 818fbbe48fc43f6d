//! KVM's statistics of a vCPU, from the file of `KVM_GET_STATS_FD`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// `struct kvm_stats_header`.
const HEADER_BYTES: usize = 24;
/// `struct kvm_stats_desc`, without the name.
const DESCRIPTION_BYTES: usize = 16;
/// Max length of a name, far above the kernel's 48.
const LONGEST_NAME: usize = 256;
/// Max number of counters; the kernel has about a hundred.
const MAX_COUNTERS: usize = 1024;

#[derive(Debug)]
pub(crate) struct Counter {
    file: File,
    at: u64,
}

impl Counter {
    /// Finds the counter of this name.
    pub(crate) fn find(file: File, name: &str) -> io::Result<Self> {
        let mut header = [0; HEADER_BYTES];
        file.read_exact_at(&mut header, 0)?;
        let field = |at| word(&header, at);
        let (name_bytes, count) = (field(4) as usize, field(8) as usize);
        let (descriptions, data) = (u64::from(field(16)), u64::from(field(20)));
        if name_bytes > LONGEST_NAME || count > MAX_COUNTERS {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let bytes = DESCRIPTION_BYTES + name_bytes;
        let mut table = vec![0; count * bytes];
        file.read_exact_at(&mut table, descriptions)?;
        let found = table.chunks_exact(bytes).find(|description| {
            let text = description.get(DESCRIPTION_BYTES..).unwrap_or_default();
            text.split(|&byte| byte == 0).next() == Some(name.as_bytes())
        });
        let offset = found.map(|description| word(description, 8)).ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, format!("KVM has no counter {name:?}"))
        })?;
        Ok(Self { file, at: data + u64::from(offset) })
    }

    pub(crate) fn value(&self) -> io::Result<u64> {
        let mut value = [0; 8];
        self.file.read_exact_at(&mut value, self.at)?;
        Ok(u64::from_ne_bytes(value))
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..).and_then(<[u8]>::first_chunk);
    word.map_or(0, |word| u32::from_ne_bytes(*word))
}
