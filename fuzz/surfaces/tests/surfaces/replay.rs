//! Runs every committed seed, and every input that once crashed, through the fuzz targets.

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An input takes milliseconds; the limit allows for a debug build on a busy machine.
const LIMIT: Duration = Duration::from_secs(5);

fn inputs(kind: &str, surface: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(kind).join(surface);
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn replay(kind: &str) -> usize {
    let mut count = 0;
    for (surface, run) in surfaces::ALL {
        for path in inputs(kind, surface) {
            let bytes = fs::read(&path).unwrap();
            let took = surfaces::time(LIMIT, || {
                assert!(catch_unwind(|| run(&bytes)).is_ok(), "{} panics", path.display());
            });
            assert!(took < LIMIT, "{} takes {took:?}", path.display());
            count += 1;
        }
    }
    count
}

#[test]
fn seeds_are_read() {
    assert!(replay("seeds") >= 100, "the seeds in fuzz/seeds are missing");
}

#[test]
fn what_once_crashed_does_not() {
    let count = replay("crashes");
    let stories =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../crashes/README.md"))
            .unwrap();
    for (surface, _) in surfaces::ALL {
        for path in inputs("crashes", surface) {
            let name = path.file_name().unwrap().to_str().unwrap();
            let name = format!("`{surface}/{name}`");
            assert!(stories.contains(&name), "fuzz/crashes/README.md does not explain {name}");
        }
    }
    assert_eq!(count, stories.matches("\n- `").count(), "stories of inputs that are not there");
}
