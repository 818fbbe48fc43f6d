//! Positions of thread names in events: in fields of 16 bytes, as `__data_loc` strings, or as the
//! path of a program.

use ftrace::eventfmt::{EventFormat, Field, FieldKind, NumberAt};
use raw_bytes::ByteOrder;

use super::names::{COMM_BYTES, Comm};
use crate::load::Load;

/// Fields with a thread's name, each with the field for its id.
const NAME_FIELDS: [(&str, &str); 6] = [
    ("prev_pid", "prev_comm"),
    ("next_pid", "next_comm"),
    ("child_pid", "child_comm"),
    ("parent_pid", "parent_comm"),
    ("pid", "comm"),
    ("pid", "newcomm"),
];

/// Events that rename a thread, with the fields for its id and its new name. A thread that execs a
/// program gets the name of its file (`begin_new_exec` of `fs/exec.c`). Since Linux 6.15,
/// `task_rename` has no id except that of the thread that ran.
const RENAMES: [(&str, &str, &str); 2] =
    [("sched_process_exec", "pid", "filename"), ("task_rename", "common_pid", "newcomm")];

/// Events whose `pid` and `comm` belong to different threads: `sched_process_wait` has the name of
/// the waiting thread, and the id of the thread that it waits for.
const NAMELESS: [&str; 1] = ["sched_process_wait"];

/// Whether events of this format rename a thread.
pub(super) fn renames(format: &EventFormat) -> bool {
    RENAMES.iter().any(|(event, ..)| *event == format.name())
}

/// The position of a thread's name in an event.
#[derive(Clone, Copy, Debug)]
pub(super) enum NameAt {
    /// In 16 bytes at this offset.
    Here(usize),
    /// At the position in this `__data_loc` word.
    Elsewhere(NumberAt),
    /// The same for a file's path: its last component is the name.
    Path(NumberAt),
}

impl NameAt {
    fn new(field: &Field, is_path: bool) -> Option<Self> {
        let word = NumberAt { offset: field.offset, size: 4, signed: false };
        match field.kind {
            FieldKind::Dynamic(_) if is_path => Some(Self::Path(word)),
            FieldKind::Dynamic(_) => Some(Self::Elsewhere(word)),
            FieldKind::Array(_) if field.size as usize == COMM_BYTES => {
                Some(Self::Here(field.offset as usize))
            }
            _ => None,
        }
    }

    #[inline]
    pub(super) fn comm(self, payload: &[u8], order: ByteOrder) -> Option<Comm> {
        match self {
            Self::Here(at) => payload.get(at..)?.first_chunk().copied(),
            Self::Elsewhere(word) => Some(cut(located(payload, word, order)?)),
            Self::Path(word) => {
                let path = located(payload, word, order)?;
                // A program that runs from a file descriptor gets a name that is not in the event.
                let is_of_descriptor = path.starts_with(b"/dev/fd/");
                let name = path.rsplit(|&byte| byte == b'/').next()?;
                (!is_of_descriptor).then(|| cut(name))
            }
        }
    }
}

/// The bytes that a `__data_loc` word points at, up to their NUL.
fn located(payload: &[u8], word: NumberAt, order: ByteOrder) -> Option<&[u8]> {
    let word = word.read(payload, order)? as usize;
    let bytes = payload.get(word & 0xffff..)?.get(..word >> 16)?;
    Some(raw_bytes::slice::until_nul(bytes))
}

/// A name, truncated as in the kernel.
fn cut(name: &[u8]) -> Comm {
    let mut comm = [0; COMM_BYTES];
    for (to, byte) in comm.iter_mut().take(COMM_BYTES - 1).zip(name) {
        *to = *byte;
    }
    comm
}

/// The positions of thread names in events of a format.
pub(super) fn names_of(format: &EventFormat) -> Vec<(Load, NameAt)> {
    let place = |pid: &str, name: &str, is_path| {
        let name = NameAt::new(format.field(name)?, is_path)?;
        Some((Load::new(format.field(pid)?.number()?), name))
    };
    let nameless = NAMELESS.contains(&format.name());
    let pairs = NAME_FIELDS.iter().filter(|_| !nameless);
    let mut names: Vec<_> = pairs.filter_map(|(pid, name)| place(pid, name, false)).collect();
    let rename = RENAMES.iter().find(|(event, ..)| *event == format.name());
    if let Some((event, pid, name)) = rename.filter(|_| names.is_empty()) {
        names.extend(place(pid, name, *event == "sched_process_exec"));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "ID: 7\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

    /// The threads and names in a record of an event.
    fn found(name: &str, fields: &str, record: &[u8]) -> Vec<(u64, String)> {
        let text = format!("name: {name}\n{HEAD}{fields}\nprint fmt: \"\"\n");
        let format = EventFormat::parse("sched", text.as_bytes()).unwrap();
        let name = |(pid, at): &(Load, NameAt)| {
            let comm = at.comm(record, ByteOrder::Little)?;
            let name = String::from_utf8_lossy(raw_bytes::slice::until_nul(&comm)).into_owned();
            Some((pid.read::<false>(record)?, name))
        };
        names_of(&format).iter().filter_map(name).collect()
    }

    #[test]
    fn a_program_names_its_thread_by_its_file() {
        let fields = "\tfield:__data_loc char[] filename;\toffset:8;\tsize:4;\tsigned:0;\n\
            \tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;\n\
            \tfield:pid_t old_pid;\toffset:16;\tsize:4;\tsigned:1;\n";
        let record = |path: &[u8]| {
            let mut record = vec![0; 20];
            let word = (path.len() as u32) << 16 | 20;
            record[8..12].copy_from_slice(&word.to_le_bytes());
            record[12] = 77;
            [&record, path].concat()
        };
        let name = |path| found("sched_process_exec", fields, &record(path));
        assert_eq!(name(b"/usr/bin/gcc\0"), [(77, "gcc".to_owned())]);
        assert_eq!(name(b"./a-name-of-some-length\0"), [(77, "a-name-of-some-".to_owned())]);
        assert_eq!(name(b"/dev/fd/3\0"), []);
    }

    #[test]
    fn a_rename_without_an_id_is_of_the_thread_that_ran() {
        let fields = "\tfield:char oldcomm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
            \tfield:char newcomm[16];\toffset:24;\tsize:16;\tsigned:0;\n";
        let mut record = [0; 40];
        record[4] = 5;
        record[24..27].copy_from_slice(b"gcc");
        assert_eq!(found("task_rename", fields, &record), [(5, "gcc".to_owned())]);
    }
}
