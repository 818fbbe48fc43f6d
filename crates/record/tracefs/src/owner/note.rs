//! An owner's note, for the process that cleans up after it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Max size of a note: a path, and some numbers.
pub(super) const MAX_BYTES: u64 = 16 << 10;

/// The note of a process that has instances.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) pid: u32,
    /// Start time in clock ticks since boot: it tells apart two processes with the same id.
    pub(super) started_ticks: u64,
    pub(super) session: Option<SessionNote>,
}

/// The folder that a recorder writes into.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionNote {
    /// Its absolute path.
    pub path: PathBuf,
    /// Its device and inode numbers: another folder may have its path by now.
    pub identity: (u64, u64),
    /// Permissions of its files.
    pub file_mode: u32,
    /// The user and the group that get the folder at the end, if any.
    pub owner: Option<(u32, u32)>,
}

impl Note {
    pub(super) fn of_this_process(session: Option<SessionNote>) -> Self {
        let pid = std::process::id();
        Self { pid, started_ticks: started_ticks().unwrap_or(0), session }
    }

    /// The file's content: a line for each value. The path comes last, because it may contain any byte.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let Self { pid, started_ticks, session } = self;
        let mut text = format!("pid {pid}\nstarted_ticks {started_ticks}\n").into_bytes();
        if let Some(SessionNote { path, identity: (device, inode), file_mode, owner }) = session {
            text.extend(format!("folder {device} {inode}\nfile_mode {file_mode:o}\n").bytes());
            if let Some((user, group)) = owner {
                text.extend(format!("owner {user} {group}\n").bytes());
            }
            text.extend(b"session ");
            text.extend(path.as_os_str().as_bytes());
        }
        text
    }

    /// Parses a note; ignores missing, truncated or malformed values.
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let (mut note, mut session) = (Self::default(), SessionNote::default());
        let mut rest = bytes;
        while let Some(at) = rest.iter().position(|&byte| byte == b' ') {
            let (key, value) = (rest.get(..at).unwrap_or_default(), rest.get(at + 1..));
            let value = value.unwrap_or_default();
            if key == b"session" {
                session.path = OsStr::from_bytes(value).to_owned().into();
                let is_whole = session.path.is_absolute() && session.identity.1 != 0;
                note.session = is_whole.then_some(session);
                break;
            }
            let end = value.iter().position(|&byte| byte == b'\n').unwrap_or(value.len());
            let line = String::from_utf8_lossy(value.get(..end).unwrap_or_default());
            let numbers: Vec<u64> =
                line.split(' ').filter_map(|number| number.parse().ok()).collect();
            let small = |number: &u64| u32::try_from(*number).ok();
            match (key, &*numbers) {
                (b"pid", [pid]) => note.pid = small(pid).unwrap_or(0),
                (b"started_ticks", [ticks]) => note.started_ticks = *ticks,
                (b"folder", [device, inode]) => session.identity = (*device, *inode),
                (b"file_mode", _) => {
                    session.file_mode = u32::from_str_radix(&line, 8).unwrap_or(0o600);
                }
                (b"owner", [user, group]) => session.owner = small(user).zip(small(group)),
                _ => {}
            }
            rest = value.get(end + 1..).unwrap_or_default();
        }
        note
    }
}

/// Field 22 of `/proc/self/stat`. The program's name may contain any byte; the last `)` ends it.
fn started_ticks() -> Option<u64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn notes_are_read_as_far_as_they_were_written() {
        let session = SessionNote {
            path: std::ffi::OsString::from_vec(b"/x y\n\xff".to_vec()).into(),
            identity: (1, 2),
            file_mode: 0o644,
            owner: None,
        };
        let note = Note { pid: 5, started_ticks: 6, session: Some(session) };
        let bytes = note.to_bytes();
        assert_eq!(Note::parse(&bytes), note);
        for end in 0..bytes.len() - 5 {
            let part = Note::parse(&bytes[..end]);
            assert!(part.session.is_none(), "{end}: {part:?}");
        }
        assert_eq!(Note::parse(b"session /etc"), Note::default());
        assert!(started_ticks() > Some(0));
    }
}
