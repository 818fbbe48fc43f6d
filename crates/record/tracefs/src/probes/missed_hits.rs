//! Hits of probes that the kernel did not record: an interrupt hit a probe while the CPU was in another probe.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Number of hits and misses of each probe.
const PROFILE: &str = "kprobe_profile";
/// Max size of the kernel's text: other programs may have set any number of probes.
const MAX_BYTES: usize = 1 << 20;

/// The kernel's miss counts of some probes, in a file that stays open. The kernel counts by the probe's name, whoever
/// set it.
#[derive(Debug)]
pub(crate) struct MissedHits {
    profile: Option<File>,
    names: Vec<String>,
}

impl MissedHits {
    pub(super) fn open(tracefs: &Path, names: &[String]) -> Self {
        let profile = if names.is_empty() { None } else { File::open(tracefs.join(PROFILE)).ok() };
        Self { profile, names: names.to_vec() }
    }

    /// Number of missed hits so far.
    pub(crate) fn now(&self) -> u64 {
        let Some(profile) = &self.profile else { return 0 };
        let (mut text, mut piece) = (Vec::new(), [0; 4096]);
        // A read from the beginning makes the kernel count again; later reads continue line by line.
        while text.len() < MAX_BYTES
            && let Ok(read @ 1..) = profile.read_at(&mut piece, text.len() as u64)
        {
            text.extend_from_slice(piece.get(..read).unwrap_or_default());
        }
        missed(&String::from_utf8_lossy(&text), &self.names)
    }
}

/// `profile` has lines `NAME HITS MISSES` (`kernel/trace/trace_kprobe.c`).
fn missed(profile: &str, names: &[String]) -> u64 {
    let misses = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next()?;
        names.iter().any(|probe| probe == name).then(|| words.nth(1)?.parse().ok())?
    };
    profile.lines().filter_map(misses).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn hits_that_were_not_recorded_are_counted_of_probes_that_were_set() {
        let profile =
            "  irq   4  2\n  vfs_read  9  7\n  get_buf  3  0\n  irq 1 1\n get_buf\n get_buf 1 x\n";
        let names = ["get_buf", "irq"].map(str::to_owned);
        assert_eq!((missed(profile, &names), missed(profile, &names[..1])), (3, 0));
    }

    #[test]
    fn a_file_that_stays_open_says_what_is_counted_by_now() {
        let folder =
            std::env::temp_dir().join(format!("hyperscope-missed-hits-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let others: String = (0..500).map(|at| format!("  other_{at} 7 7\n")).collect();
        let write = |misses: u64| {
            fs::write(folder.join(PROFILE), format!("{others}  irq 9 {misses}\n")).unwrap();
        };
        write(4);
        let hits = MissedHits::open(&folder, &["irq".to_owned()]);
        assert_eq!(hits.now(), 4);
        write(11);
        assert_eq!((hits.now(), MissedHits::open(&folder, &[]).now()), (11, 0));
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(MissedHits::open(&folder, &["irq".to_owned()]).now(), 0);
    }
}
