//! Names of threads that the recording's own list lacks.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;

use raw_bytes::{Abi, ByteOrder, LongSize};
use report::events::{Machine, Style, write_events};
use sources::Recording;
use testkit::{HEADER_EVENT, KernelFormats, StreamBuilder, Value};
use timeline::event_filter::Filter;
use tracedat::{
    BufferSpec, Compression, Contents, EventFormat, Formats, Header, TraceDatWriter, Version,
};

const ABI: Abi = Abi { order: ByteOrder::Little, long: LongSize::Eight };
/// A block of stored pages holds 256 KiB: four pages of this size.
const PAGE_SIZE: usize = 65_536;

/// A machine whose events are recorded one by one.
struct Host {
    formats: KernelFormats,
    saved: &'static str,
    cpus: BTreeMap<u32, StreamBuilder>,
}

impl Host {
    /// `saved` is the recording's own list: lines of an id, a space and a name.
    fn new(saved: &'static str) -> Self {
        let formats = KernelFormats::new(testkit::Machine::X86, ABI);
        Self { formats, saved, cpus: BTreeMap::new() }
    }

    fn event(&mut self, cpu: u32, ns: u64, pid: i32, name: &str, fields: &[(&str, Value)]) {
        let mut event = self.formats.event(name).pid(pid);
        for (field, value) in fields {
            event = event.set(field, value.clone());
        }
        let stream = self.cpus.entry(cpu).or_insert_with(|| StreamBuilder::new(ABI, PAGE_SIZE));
        stream.event(ns, &event.build());
    }

    /// Adds a line of thread `pid`.
    fn work(&mut self, cpu: u32, ns: u64, pid: i32) -> &mut Self {
        self.event(cpu, ns, pid, "softirq_entry", &[]);
        self
    }

    fn switch(&mut self, cpu: u32, ns: u64, prev: (i32, &str), next: (i32, &str)) -> &mut Self {
        let fields = [
            ("prev_pid", prev.0.into()),
            ("prev_comm", prev.1.into()),
            ("next_pid", next.0.into()),
            ("next_comm", next.1.into()),
        ];
        self.event(cpu, ns, prev.0, "sched_switch", &fields);
        self
    }

    fn wakeup(&mut self, cpu: u32, ns: u64, (pid, comm): (i32, &str)) -> &mut Self {
        self.event(cpu, ns, 1, "sched_wakeup", &[("pid", pid.into()), ("comm", comm.into())]);
        self
    }

    fn recording(&self) -> Recording {
        let events = self.formats.systems().into_iter().flat_map(|(system, texts)| {
            texts.into_iter().map(move |text| EventFormat { system: system.into(), text })
        });
        let contents = Contents {
            header: Header {
                version: Version::V7,
                order: ABI.order,
                user_long: ABI.long,
                page_size: PAGE_SIZE as u32,
                compression: Compression::None,
                compression_version: String::new(),
            },
            formats: Formats {
                header_page: self.formats.header_page(PAGE_SIZE),
                header_event: HEADER_EVENT.to_owned(),
                ftrace: Vec::new(),
                events: events.collect(),
            },
            kallsyms: Vec::new(),
            printk: Vec::new(),
            cmdlines: self.saved.into(),
            options: Vec::new(),
            cpus: 2,
            buffers: vec![BufferSpec {
                name: String::new(),
                clock: "local".to_owned(),
                page_size: PAGE_SIZE as u32,
            }],
        };
        let mut writer = TraceDatWriter::new(Cursor::new(Vec::new()), &contents).unwrap();
        for (cpu, stream) in &self.cpus {
            writer.write_cpu("", *cpu, &stream.clone().bytes()[..]).unwrap();
        }
        let bytes = writer.finish().unwrap().into_inner();
        sources::open_bytes(Path::new("made up"), bytes).unwrap()
    }

    fn printed(&self, filter: &Filter, style: Style<'_>) -> String {
        printed(&self.recording(), filter, style)
    }

    /// The names of the threads of all lines, in order.
    fn threads(&self) -> Vec<String> {
        threads(&self.printed(&Filter::default(), Style::Text))
    }
}

fn printed(recording: &Recording, filter: &Filter, style: Style<'_>) -> String {
    let machine = Machine { name: "host".to_owned(), level: 0, threads: None };
    let (recordings, mut out) = (std::slice::from_ref(recording), Vec::new());
    write_events(recordings, &[machine], filter, style, &mut out, &|_| ()).unwrap();
    String::from_utf8(out).unwrap()
}

/// Name and id of the thread of each line.
fn threads(text: &str) -> Vec<String> {
    let thread = |line: &str| Some(line.split_once(" [")?.0.trim().to_owned());
    text.lines().filter_map(thread).collect()
}

fn only(event: &str) -> Filter {
    Filter { events: vec![event.to_owned()], ..Filter::default() }
}

#[test]
fn a_thread_is_called_what_the_switch_to_it_says() {
    let mut host = Host::new("1 init\n");
    host.switch(0, 100, (1, "init"), (42, "worker")).work(0, 200, 42);
    assert_eq!(host.threads(), ["init-1", "worker-42"]);
}

#[test]
fn a_thread_that_ran_from_the_start_is_called_what_the_switch_away_from_it_says() {
    let mut host = Host::new("1 init\n");
    host.work(0, 100, 42).work(0, 150, 42).switch(0, 200, (42, "worker"), (1, "init"));
    assert_eq!(host.threads(), ["worker-42", "worker-42", "worker-42"]);
}

#[test]
fn a_thread_that_nothing_names_stays_without_a_name() {
    let mut host = Host::new("1 init\n");
    host.work(0, 100, 42).work(0, 150, 1);
    assert_eq!(host.threads(), ["<...>-42", "init-1"]);
    let json = host.printed(&Filter::default(), Style::Jsonl);
    assert!(
        json.starts_with(
            r#"{"ts_ns":100,"machine":"host","level":0,"cpu":0,"pid":42,"comm":null,"#
        )
    );
}

#[test]
fn the_recordings_own_names_come_first() {
    let mut host = Host::new("42 saved\n");
    host.work(0, 100, 7).switch(0, 200, (7, "seven"), (42, "named")).work(0, 300, 42);
    assert_eq!(host.threads(), ["seven-7", "seven-7", "saved-42"]);
}

#[test]
fn a_thread_that_is_renamed_is_called_what_it_was_at_the_time() {
    let mut host = Host::new("");
    host.switch(0, 100, (0, "swapper/0"), (42, "sh")).work(0, 150, 42);
    host.switch(0, 200, (42, "sh"), (0, "swapper/0"));
    host.switch(0, 300, (0, "swapper/0"), (42, "make")).work(0, 350, 42);
    assert_eq!(host.threads(), ["<idle>-0", "sh-42", "sh-42", "<idle>-0", "make-42"]);
}

#[test]
fn wake_ups_name_threads_too() {
    let mut host = Host::new("1 init\n");
    host.wakeup(0, 100, (42, "worker")).work(0, 200, 42);
    assert_eq!(host.threads(), ["init-1", "worker-42"]);
}

/// The thread moves: its name was seen on another CPU, where a line lacked it as well.
#[test]
fn names_seen_on_another_cpu_count_from_their_time_on() {
    let mut host = Host::new("1 init\n");
    host.switch(0, 100, (1, "init"), (42, "worker")).work(0, 200, 42);
    host.work(1, 50, 42).work(1, 300, 42);
    assert_eq!(host.threads(), ["<...>-42", "init-1", "worker-42", "worker-42"]);
    let json = host.printed(&only("softirq_entry"), Style::Jsonl);
    let comms: Vec<&str> =
        json.lines().filter_map(|line| line.split("\"comm\":").nth(1)?.split(',').next()).collect();
    assert_eq!(comms, ["null", "\"worker\"", "\"worker\""]);
}

/// Names are learned from filtered events as well, and lines stay the same.
#[test]
fn filters_change_no_name() {
    let mut host = Host::new("1 init\n");
    host.switch(0, 100, (1, "init"), (42, "worker")).work(0, 200, 42).work(0, 300, 42);
    host.work(1, 250, 42);
    let all = host.printed(&Filter::default(), Style::Text);
    let late = Filter { from_ns: Some(180), ..Filter::default() };
    for filter in [only("softirq_entry"), late] {
        let some = host.printed(&filter, Style::Text);
        let rest: Vec<&str> = some.lines().skip(1).collect();
        assert!(rest.len() == 3 && rest.iter().all(|line| all.contains(line)), "{some}\n{all}");
    }
}

/// A thread is switched to in one block, and runs throughout others.
#[test]
fn names_last_from_block_to_block() {
    let mut host = Host::new("1 init\n");
    host.switch(0, 100, (1, "init"), (42, "worker"));
    for number in 0..60_000 {
        host.work(0, 200 + number, 42);
    }
    let recording = host.recording();
    assert!(recording.streams()[0].block_count() > 2);
    let threads = threads(&printed(&recording, &Filter::default(), Style::Text));
    assert_eq!(threads.len(), 60_001);
    assert!(threads[1..].iter().all(|thread| thread == "worker-42"));
}

/// The merger fills in blanks of the decoder: the number of threads of either makes no difference.
#[test]
fn lines_do_not_depend_on_the_number_of_threads() {
    let mut host = Host::new("");
    for number in 0..40_000_u64 {
        let (cpu, ns) = ((number % 2) as u32, 100 * number);
        let (pid, other) = ((number / 7 % 90) as i32 + 2, (number / 5 % 90) as i32 + 2);
        let name = |pid: i32| format!("t{pid}.{}", number / 9_000);
        if number % 11 == 0 {
            host.switch(cpu, ns, (pid, &name(pid)), (other, &name(other)));
        } else {
            host.work(cpu, ns, pid);
        }
    }
    let recording = host.recording();
    let with = |threads: usize, style: Style<'_>| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| printed(&recording, &Filter::default(), style))
    };
    for style in [Style::Text, Style::Raw, Style::Jsonl] {
        let expected = with(1, style);
        assert!(expected.contains("t7.1") && expected.contains("t7.3"));
        for threads in [2, 5] {
            assert!(with(threads, style) == expected, "{style:?} by {threads} threads");
        }
    }
}
