//! Dumped sessions: their names, and their max number.

use os::folder::Folder;

use crate::error::{RecordError, Result};

/// Prefix and suffix of session names.
const PREFIX: &str = "flight-";
const SUFFIX: &str = ".hscope";

/// A name for a session of this time that sorts after all others in the folder, even after another one of the same
/// second.
pub(crate) fn name(folder: &Folder, unix_ns: u64) -> String {
    let unix_s = i64::try_from(unix_ns / 1_000_000_000).unwrap_or(i64::MAX);
    let begin = format!("{PREFIX}{}", printable::calendar::stamp_of(unix_s));
    let names = folder.names().unwrap_or_default();
    let number = |name: &String| match name.strip_prefix(&begin)?.strip_suffix(SUFFIX)? {
        "" => Some(0),
        more => more.strip_prefix('_')?.parse::<u32>().ok(),
    };
    match names.iter().filter_map(number).max() {
        None => format!("{begin}{SUFFIX}"),
        Some(last) => format!("{begin}_{:06}{SUFFIX}", last.saturating_add(1)),
    }
}

/// Makes room for a session of this size: removes the oldest ones. To keep a session, a user renames it.
pub(crate) fn make_room(folder: &Folder, max: u32, most_bytes: u64, new_bytes: u64) -> Result<()> {
    let failed = |what| RecordError::io(what, folder.path());
    if new_bytes > most_bytes {
        return Err(RecordError::Usage(format!(
            "the session would take {} MiB, but the limit for all sessions is {} MiB (--sessions-size)",
            new_bytes >> 20,
            most_bytes >> 20
        )));
    }
    let mut sessions = Vec::new();
    for name in folder.names().map_err(failed("read"))? {
        if name.starts_with(PREFIX) && name.ends_with(SUFFIX) {
            let bytes = folder.existing_subfolder(&name).and_then(|session| session.bytes());
            // A session that belongs to another user by now must not be removed.
            sessions.extend(bytes.map(|bytes| (name, bytes)));
        }
    }
    sessions.sort();
    let mut bytes: u64 = sessions.iter().map(|(_, bytes)| bytes).sum();
    let mut count = sessions.len();
    for (name, session_bytes) in sessions {
        if count < max as usize && bytes.saturating_add(new_bytes) <= most_bytes {
            break;
        }
        folder.remove_all(&name).map_err(failed("remove a session in"))?;
        (count, bytes) = (count - 1, bytes - session_bytes);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use os::folder::Modes;

    use super::*;

    fn folder_with(sessions: &[(&str, usize)]) -> (tempfile::TempDir, Folder) {
        let at = tempfile::tempdir().unwrap();
        let folder = Folder::open(at.path(), Modes::default()).unwrap();
        for (name, bytes) in sessions {
            folder.subfolder(name).unwrap().write_new("host.dat", &vec![0; *bytes]).unwrap();
        }
        (at, folder)
    }

    fn names(folder: &Folder) -> Vec<String> {
        let mut names = folder.names().unwrap();
        names.sort();
        names
    }

    #[test]
    fn the_oldest_go_and_others_folders_stay() {
        let sessions = [
            ("flight-1.hscope", 10),
            ("flight-2.hscope", 20),
            ("flight-3.hscope", 30),
            ("kept.hscope", 99),
        ];
        let (_at, folder) = folder_with(&sessions);
        make_room(&folder, 4, 100, 40).unwrap();
        assert_eq!(names(&folder).len(), 4, "there is room");
        make_room(&folder, 4, 100, 41).unwrap();
        assert_eq!(names(&folder), ["flight-2.hscope", "flight-3.hscope", "kept.hscope"]);
        make_room(&folder, 1, 100, 1).unwrap();
        assert_eq!(names(&folder), ["kept.hscope"]);
        assert!(make_room(&folder, 1, 100, 101).is_err());
    }

    #[test]
    fn sessions_of_one_second_have_names_in_order_whichever_are_there() {
        let (_at, folder) = folder_with(&[]);
        let mut names: Vec<String> = Vec::new();
        for _ in 0..4 {
            let name = name(&folder, 951_868_800_999_999_999);
            folder.subfolder(&name).unwrap();
            names.push(name);
            // Removes the oldest.
            if let [.., before, _, _] = &*names {
                folder.remove_empty(before).unwrap();
            }
        }
        assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
        assert_eq!(names[0], "flight-20000301T000000Z.hscope");
    }
}
