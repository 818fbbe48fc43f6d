//! Recordings of real kernels, read whole.

use std::path::PathBuf;
use tracedat::{ChunkReader, Cmdlines, TraceDat};

fn recordings() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["x86-svm", "x86-vmx", "arm64"] {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(folder);
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        found.extend(
            entries.map(|e| e.path()).filter(|p| p.extension().is_some_and(|x| x == "dat")),
        );
    }
    found.extend(
        std::env::var("TRACEDAT_FILES").iter().flat_map(|v| v.split(':').map(PathBuf::from)),
    );
    found
}

#[test]
fn every_recording_is_read_whole() {
    for path in recordings() {
        let file = std::fs::read(&path).unwrap();
        let recording = TraceDat::parse(&file).unwrap();
        assert_eq!(recording.damage, [], "{}", path.display());
        println!("{}: {:?}", path.display(), recording.header);
        println!("  {:?}", recording.metadata);
        println!(
            "  {} events, {} ftrace",
            recording.formats.events.len(),
            recording.formats.ftrace.len()
        );
        let symbols = recording.kallsyms.as_ref().unwrap().read(&file).unwrap();
        assert!(symbols.len() > 100_000);
        println!("  printk {}", recording.printk.as_ref().unwrap().read(&file).unwrap().len());
        let names = Cmdlines::parse(&recording.cmdlines.as_ref().unwrap().read(&file).unwrap());
        println!("  names {names:?}");
        let mut reader = ChunkReader::new();
        for buffer in &recording.buffers {
            for cpu in &buffer.cpus {
                let chunks = cpu.chunks(&file);
                assert_eq!(chunks.damage, []);
                let mut sum = 0;
                for chunk in &chunks.list {
                    sum += reader.read(&file, chunk).unwrap().len();
                }
                println!(
                    "  {:?} CPU {} {} chunks {sum} bytes",
                    buffer.name,
                    cpu.cpu,
                    chunks.list.len()
                );
            }
        }
    }
}
