//! A trace.dat without pages: the host puts the pages after it.

use std::fs;
use std::io::{self, Cursor};

use raw_bytes::{ByteOrder, LongSize};
use tracedat::{
    Compression, Contents, EventFormat, Formats, Header, TraceDatWriter, Version, id, option,
};
use tracefs::{Clock, EventText, Texts};

/// Writes the file. The host adds its clock data, and a buffer with the pages.
pub(super) fn file(texts: &Texts, clock: &Clock, cpus: u32, trace_id: u64) -> io::Result<Vec<u8>> {
    let big = cfg!(target_endian = "big");
    let header = Header {
        version: Version::V7,
        order: if big { ByteOrder::Big } else { ByteOrder::Little },
        user_long: LongSize::from_bytes(size_of::<usize>() as u64).unwrap_or(LongSize::Eight),
        page_size: texts.page_size(),
        compression: Compression::None,
        compression_version: String::new(),
    };
    let order = header.order;
    let text = |text: &str| [text.as_bytes(), b"\0"].concat();
    let contents = Contents {
        header,
        formats: formats(texts),
        kallsyms: texts.kallsyms.clone(),
        printk: texts.printk.clone(),
        cmdlines: names_of_threads(),
        options: vec![
            (id::TRACECLOCK, text(&clock.line)),
            (id::UNAME, text(&uname())),
            (id::VERSION, text(concat!("hyperscope-agent ", env!("CARGO_PKG_VERSION")))),
            (id::TRACEID, option::trace_id(order, trace_id)),
            (id::CPUCOUNT, option::cpu_count(order, cpus)),
        ],
        cpus,
        buffers: Vec::new(),
    };
    Ok(TraceDatWriter::new(Cursor::new(Vec::new()), &contents)?.finish()?.into_inner())
}

fn formats(texts: &Texts) -> Formats {
    let format = |event: &EventText| EventFormat {
        system: event.system.as_str().into(),
        text: event.text.clone(),
    };
    Formats {
        header_page: texts.header_page.clone(),
        header_event: texts.header_event.clone(),
        ftrace: texts.ftrace.clone(),
        events: texts.events.iter().map(format).collect(),
    }
}

/// Names of all current threads, in the format of `saved_cmdlines`: the protocol can't send the names that the kernel
/// saves during the recording.
fn names_of_threads() -> Vec<u8> {
    let numbers = |path: &str| {
        let entries = fs::read_dir(path).into_iter().flatten();
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).collect::<Vec<_>>()
    };
    let mut lines = String::new();
    for process in numbers("/proc") {
        for thread in numbers(&format!("/proc/{process}/task")) {
            let comm = fs::read_to_string(format!("/proc/{process}/task/{thread}/comm"));
            // A thread that has ended meanwhile has no name.
            if let Ok(comm) = comm {
                lines.push_str(&format!("{thread} {}\n", comm.trim_end()));
            }
        }
    }
    lines.into_bytes()
}

fn uname() -> String {
    let name = rustix::system::uname();
    let parts = [name.sysname(), name.nodename(), name.release(), name.machine()];
    parts.map(|part| part.to_string_lossy().into_owned()).join(" ")
}
