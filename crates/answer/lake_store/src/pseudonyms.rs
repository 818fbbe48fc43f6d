//! Keyed hashes as pseudonyms: with one key, a name always has the same hash, so that rows can be joined and grouped by
//! it. Without the key, names can't be found by trial.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::column::Names;

/// Block size of the hash.
const BLOCK_BYTES: usize = 64;

/// Minimum length of a key in bytes: too long for a brute-force search.
const MIN_KEY_BYTES: usize = 16;

/// Bytes of a hash that are used: 128 bits, so that names of a fleet do not collide.
const KEPT_BYTES: usize = 16;

/// Replaces names with hashes.
#[derive(Clone)]
pub struct Pseudonyms {
    /// Padded to the block size.
    key: [u8; BLOCK_BYTES],
}

impl fmt::Debug for Pseudonyms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pseudonyms")
    }
}

impl Pseudonyms {
    /// Uses this key; `None` if it is too short to protect the names.
    #[must_use]
    pub fn from_key(key: &[u8]) -> Option<Self> {
        (key.len() >= MIN_KEY_BYTES).then(|| Self { key: padded(key) })
    }

    /// The pseudonym of a name.
    #[must_use]
    pub fn name(&self, name: &str) -> String {
        format!("p-{}", self.hash(&[b"name\0", name.as_bytes()]))
    }

    /// Identifies the key without revealing it: all names of a lake are hashed with one key.
    #[must_use]
    pub fn check(&self) -> String {
        self.hash(&[b"check\0"])
    }

    fn hash(&self, parts: &[&[u8]]) -> String {
        let hash = hmac(&self.key, parts);
        hash.iter().take(KEPT_BYTES).map(|byte| format!("{byte:02x}")).collect()
    }

    /// The text of a column with hashed names.
    pub(crate) fn text(&self, names: Names, text: &str) -> String {
        match names {
            Names::None => text.to_owned(),
            Names::Name => self.name(text),
            Names::Machine if text == HOST => text.to_owned(),
            Names::Machine => self.name(text),
            Names::Step => self.step(text),
            Names::Path => match text.rsplit_once(": ") {
                Some((start, actors)) => format!("{}: {actors}", self.step(start)),
                None => self.step(text),
            },
            Names::Track => self.track(text),
        }
    }

    /// Steps of requests name waking, woken and running threads: by thread name, or by role for a VM.
    fn step(&self, text: &str) -> String {
        let who =
            |name: &str| if ACTORS.contains(&name) { name.to_owned() } else { self.name(name) };
        if let Some(name) = text.strip_prefix("wakes ") {
            return format!("wakes {}", who(name));
        }
        if let Some(name) = text.strip_suffix(" runs") {
            return format!("{} runs", who(name));
        }
        match text.rsplit_once(" wakes ") {
            Some((name, woken)) => format!("{} wakes {}", who(name), who(woken)),
            // An event, an exit, or a memory access.
            None => text.to_owned(),
        }
    }

    /// A thread's name and id, or a name that the host or the kernel defines.
    fn track(&self, text: &str) -> String {
        if ["boot", "initcalls"].contains(&text) {
            return text.to_owned();
        }
        match text.rsplit_once(' ') {
            Some(("idle of CPU", _)) => text.to_owned(),
            Some((name, id)) if id.bytes().all(|digit| digit.is_ascii_digit()) => {
                format!("{} {id}", self.name(name))
            }
            _ => self.name(text),
        }
    }
}

/// The name of the recorded host in the column `machine`: the same in every lake.
const HOST: &str = "host";

/// Actors of a request's steps that are not named after a thread.
const ACTORS: [&str; 8] =
    ["guest", "guest task", "vcpu", "iothread", "vhost", "interrupt", "host", "recorder"];

/// The key padded to the block size, by RFC 2104: longer keys are hashed, then zeros follow.
fn padded(key: &[u8]) -> [u8; BLOCK_BYTES] {
    let mut padded = [0; BLOCK_BYTES];
    let hashed = Sha256::digest(key);
    let key = if key.len() > BLOCK_BYTES { hashed.as_slice() } else { key };
    padded.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    padded
}

/// HMAC-SHA-256 of concatenated parts.
fn hmac(key: &[u8; BLOCK_BYTES], parts: &[&[u8]]) -> [u8; 32] {
    let mut inner = Sha256::new_with_prefix(key.map(|byte| byte ^ 0x36));
    parts.iter().for_each(|part| inner.update(part));
    let outer = Sha256::new_with_prefix(key.map(|byte| byte ^ 0x5c));
    outer.chain_update(inner.finalize()).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Test cases 1, 2 and 6 of RFC 4231.
    #[test]
    fn hashes_are_those_of_the_rfc() {
        let cases: [(&[u8], &str, &str); 3] = [
            (
                &[0x0b; 20],
                "Hi There",
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            ),
            (
                b"Jefe",
                "what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                &[0xaa; 131],
                "Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ];
        for (key, text, known) in cases {
            assert_eq!(hex(&hmac(&padded(key), &[text.as_bytes()])), known);
        }
    }

    #[test]
    fn names_go_and_what_else_a_text_says_stays() {
        let pseudonyms = Pseudonyms::from_key(&[7; 32]).unwrap();
        let name = |name: &str| pseudonyms.name(name);
        assert_eq!(name("web7").len(), 34);
        assert_eq!(name("web7"), Pseudonyms::from_key(&[7; 32]).unwrap().name("web7"));
        assert_ne!(name("web7"), Pseudonyms::from_key(&[8; 32]).unwrap().name("web7"));
        assert!(Pseudonyms::from_key(&[7; 15]).is_none());
        for (names, text, expected) in [
            (Names::Name, "host", name("host")),
            (Names::Machine, "host", "host".to_owned()),
            (Names::Machine, "web", name("web")),
            (Names::Step, "wakes vhost", "wakes vhost".to_owned()),
            (Names::Step, "guest task runs", "guest task runs".to_owned()),
            (Names::Step, "wakes payroll", format!("wakes {}", name("payroll"))),
            (Names::Step, "CPU 0/KVM runs", format!("{} runs", name("CPU 0/KVM"))),
            (Names::Step, "ksoftirqd wakes vcpu", format!("{} wakes vcpu", name("ksoftirqd"))),
            (Names::Step, "mmio write 0xfeb02e50", "mmio write 0xfeb02e50".to_owned()),
            // Threads whose names look like other texts.
            (Names::Step, "wakes a wakes b", format!("wakes {}", name("a wakes b"))),
            (Names::Step, "a runs wakes vcpu", format!("{} wakes vcpu", name("a runs"))),
            (
                Names::Path,
                "a: b wakes vcpu: interrupt → vcpu, one way",
                format!("{} wakes vcpu: interrupt → vcpu, one way", name("a: b")),
            ),
            (Names::Track, "boot", "boot".to_owned()),
            (Names::Track, "idle of CPU 3", "idle of CPU 3".to_owned()),
            (Names::Track, "my thread 42", format!("{} 42", name("my thread"))),
            (Names::Track, "thread", name("thread")),
        ] {
            assert_eq!(pseudonyms.text(names, text), expected, "{text}");
        }
    }
}
