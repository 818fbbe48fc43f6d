//! Thread names from the kernel's `saved_cmdlines`.

use std::collections::HashMap;

/// Thread names by thread id, as known to the kernel at the end of the recording.
///
/// The kernel stores one name per thread and forgets the oldest (`saved_cmdlines_size`, 128 by
/// default), so a recorded thread can lack a name, and a renamed thread has its last name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cmdlines {
    names: HashMap<u32, String>,
}

impl Cmdlines {
    /// Parses lines of a thread id, a space, and a name that may contain spaces; skips other lines.
    /// Of several lines with the same id, the last counts.
    #[must_use]
    pub fn parse(text: &[u8]) -> Self {
        let names = text.split(|&byte| byte == b'\n' || byte == 0).filter_map(line).collect();
        Self { names }
    }

    /// The thread's name.
    #[must_use]
    pub fn name(&self, pid: u32) -> Option<&str> {
        self.names.get(&pid).map(String::as_str)
    }

    /// All threads and their names, unordered.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &str)> {
        self.names.iter().map(|(&pid, name)| (pid, name.as_str()))
    }

    /// Number of named threads.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether no thread has a name.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

fn line(line: &[u8]) -> Option<(u32, String)> {
    let line = line.trim_ascii_start();
    let space = line.iter().position(|&byte| byte == b' ')?;
    let (pid, name) = line.split_at_checked(space)?;
    let pid = std::str::from_utf8(pid).ok()?.parse().ok()?;
    let name = name.strip_prefix(b" ")?;
    Some((pid, String::from_utf8_lossy(name).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_hold_spaces_and_bytes_that_are_not_text() {
        let text = b"1 systemd\n 42 CPU 0/KVM\n7 a\xffb\n\nx y\n9\n1 init\n\0";
        let names = Cmdlines::parse(text);
        assert_eq!(names.name(42), Some("CPU 0/KVM"));
        assert_eq!(names.name(7), Some("a\u{fffd}b"));
        assert_eq!(names.name(1), Some("init"));
        assert_eq!((names.len(), names.name(9)), (3, None));
    }
}
