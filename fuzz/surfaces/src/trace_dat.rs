//! The trace.dat container: all its metadata, sections and chunks.

use tracedat::{Align, ChunkReader, Cmdlines, Compression, Correction, TraceDat};

/// Maximum page bytes to unpack per file: enough to reach every failure.
const MAX_UNPACKED: u64 = 16 << 20;

/// Reads `file` as a trace.dat.
pub fn run(file: &[u8]) {
    let dat = match TraceDat::parse(file) {
        Ok(dat) => dat,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert!(dat.damage.iter().all(|damage| !damage.what.is_empty()));
    let _ = (dat.abi(), dat.clock(), dat.metadata.added_ns());
    sections(file, &dat);
    pages(file, &dat);
    times(&dat);
}

fn sections(file: &[u8], dat: &TraceDat) {
    for section in [&dat.kallsyms, &dat.printk, &dat.btf, &dat.modules].into_iter().flatten() {
        if let Err(damage) = section.read(file) {
            assert!(!damage.what.is_empty());
        }
    }
    if let Some(text) = dat.cmdlines.as_ref().and_then(|section| section.read(file).ok()) {
        let cmdlines = Cmdlines::parse(&text);
        assert!(cmdlines.iter().all(|(thread, name)| cmdlines.name(thread) == Some(name)));
    }
}

fn pages(file: &[u8], dat: &TraceDat) {
    let mut reader = ChunkReader::new();
    let (mut stored, mut unpacked) = (0, 0);
    for cpu in dat.buffers.iter().flat_map(|buffer| &buffer.cpus) {
        assert!(cpu.bytes(file).len() as u64 == cpu.data.len, "a range past the end");
        let chunks = cpu.chunks(file);
        for chunk in &chunks.list {
            stored += u64::from(chunk.stored);
            if chunk.compression != Compression::None {
                unpacked += u64::from(chunk.size);
            }
            if unpacked > MAX_UNPACKED {
                continue;
            }
            match reader.read(file, chunk) {
                Ok(pages) => assert_eq!(pages.len(), chunk.size as usize, "chunk of another size"),
                Err(damage) => assert!(!damage.what.is_empty()),
            }
        }
    }
    // The length of compressed data can be four bytes too short, so neighbours can share those
    // bytes.
    let cpus = dat.buffers.iter().map(|buffer| buffer.cpus.len() as u64).sum::<u64>();
    assert!(stored <= file.len() as u64 + 4 * cpus, "bytes are read twice");
}

fn times(dat: &TraceDat) {
    for buffer in &dat.buffers {
        for align in [Align::Own, Align::ToAnyPeer, Align::ToPeer(0)] {
            let correction = Correction::new(dat, buffer, align);
            for raw in [0, 1, 1 << 32, u64::MAX / 2, u64::MAX] {
                for cpu in [0, 1, u32::MAX] {
                    let ns = correction.ns(raw, cpu);
                    assert!(!correction.is_identity() || ns == raw, "an identity that changes");
                }
            }
        }
    }
}
