//! Where events have names of threads: in fields of 16 bytes, elsewhere in the record, or as the file of a program.

use ftrace::eventfmt::{EventFormat, Field, FieldKind, NumberAt};
use raw_bytes::ByteOrder;

use super::names::{COMM_BYTES, Comm};
use crate::load::Load;

/// Fields with a thread's name, each with the one that has its id.
const NAME_FIELDS: [(&str, &str); 6] = [
    ("prev_pid", "prev_comm"),
    ("next_pid", "next_comm"),
    ("child_pid", "child_comm"),
    ("parent_pid", "parent_comm"),
    ("pid", "comm"),
    ("pid", "newcomm"),
];

/// Events that rename a thread, with the fields that have its id and the new name. A thread that runs a program has the name
/// of its file (`begin_new_exec` of `fs/exec.c`). Since Linux 6.15 `task_rename` has no id but that of the thread that ran.
const RENAMES: [(&str, &str, &str); 2] =
    [("sched_process_exec", "pid", "filename"), ("task_rename", "common_pid", "newcomm")];

/// Events with a `pid` and a `comm` that are not of one thread: the kernel's `sched_process_wait`
/// has the name of the thread that waits, and the id of the one waited for.
const NAMELESS: [&str; 1] = ["sched_process_wait"];

/// Whether events of this format give a thread another name.
pub(super) fn renames(format: &EventFormat) -> bool {
    RENAMES.iter().any(|(event, ..)| *event == format.name())
}

/// Where an event has a thread's name.
#[derive(Clone, Copy, Debug)]
pub(super) enum NameAt {
    /// In these 16 bytes.
    Here(usize),
    /// Where the field's word says.
    Elsewhere(NumberAt),
    /// The same, of a file's path: its last part is the name.
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
                // A program without a path has a name that the event doesn't have.
                let is_of_descriptor = path.starts_with(b"/dev/fd/");
                let name = path.rsplit(|&byte| byte == b'/').next()?;
                (!is_of_descriptor).then(|| cut(name))
            }
        }
    }
}

/// What a `__data_loc` word points at, up to its NUL.
fn located(payload: &[u8], word: NumberAt, order: ByteOrder) -> Option<&[u8]> {
    let word = word.read(payload, order)? as usize;
    let bytes = payload.get(word & 0xffff..)?.get(..word >> 16)?;
    Some(raw_bytes::slice::until_nul(bytes))
}

/// A name as the kernel keeps it.
fn cut(name: &[u8]) -> Comm {
    let mut comm = [0; COMM_BYTES];
    for (to, byte) in comm.iter_mut().take(COMM_BYTES - 1).zip(name) {
        *to = *byte;
    }
    comm
}

/// Where the events of a format have names of threads.
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

    /// The threads and names that a record of an event has.
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
