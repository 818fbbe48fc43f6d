//! Disk space of an identity's sessions. A file in each session names its identity from the start, so that a killed
//! recorder leaves it, too.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use channel::Peer;
use os::folder::Folder;

use crate::error::{RecordError, Result};

/// The file in a session's folder that names its identity.
const FILE: &str = ".identity";
/// Max size of the file.
const MAX_BYTES: u64 = 200;
/// Max depth of folders in a session.
const DEPTH: u32 = 4;
/// Unit of a file's block count.
const BLOCK_BYTES: u64 = 512;

/// Notes the identity in a new session's folder.
pub(super) fn note(folder: &Folder, party: &Peer) -> Result<()> {
    let written = folder.write_new(FILE, format!("{party}\n").as_bytes());
    written.map_err(RecordError::io("write", &folder.path().join(FILE)))
}

/// Disk space of all sessions of an identity in a folder.
pub(super) fn held_bytes(to: &Path, party: &Peer) -> u64 {
    let Ok(entries) = fs::read_dir(to) else { return 0 };
    let sessions = entries.flatten().map(|entry| entry.path());
    let identity = party.to_string();
    let is_its = |session: &std::path::PathBuf| {
        let file = session.join(FILE);
        let is_short = fs::symlink_metadata(&file)
            .is_ok_and(|about| about.is_file() && about.len() <= MAX_BYTES);
        is_short && fs::read_to_string(file).is_ok_and(|text| text.trim_end() == identity)
    };
    sessions.filter(is_its).map(|session| bytes(&session, DEPTH)).fold(0, u64::saturating_add)
}

fn bytes(path: &Path, depth: u32) -> u64 {
    let Ok(about) = fs::symlink_metadata(path) else { return 0 };
    let own_bytes = about.blocks().saturating_mul(BLOCK_BYTES);
    if !about.is_dir() || depth == 0 {
        return own_bytes;
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| bytes(&entry.path(), depth - 1)).fold(own_bytes, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use os::folder::Modes;

    #[test]
    fn sessions_of_an_identity_are_added_up_as_they_are_on_disk() {
        let to = tempfile::tempdir().unwrap();
        let session = |name: &str, party: &Peer, bytes: usize| {
            let folder = Folder::make(&to.path().join(name), Modes::default()).unwrap();
            note(&folder, party).unwrap();
            fs::create_dir(to.path().join(name).join("guest-web.pages")).unwrap();
            fs::write(to.path().join(name).join("guest-web.pages/cpu0"), vec![1; bytes]).unwrap();
        };
        let (peer, other) = (Peer::Vsock(3), Peer::Vsock(33));
        session("a.hscope", &peer, 1 << 20);
        session("b.hscope", &peer, 1 << 19);
        session("c.hscope", &other, 1 << 21);
        fs::create_dir(to.path().join("d.hscope")).unwrap();
        let (held, others) = (held_bytes(to.path(), &peer), held_bytes(to.path(), &other));
        assert!((3 << 19..(3 << 19) + (1 << 17)).contains(&held), "{held}");
        assert!((1 << 21..(1 << 21) + (1 << 17)).contains(&others), "{others}");
        assert_eq!(held_bytes(to.path(), &Peer::Unix), 0);
        assert_eq!(held_bytes(&to.path().join("none"), &peer), 0);
    }
}
