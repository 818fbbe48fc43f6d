//! The page of `hyperscope vmm`: bars of the parts of VMMs' time, for each device, lock and thread, and all numbers.

use analyses::vmm::ThreadSplit;

use super::row::{self, Row};
use super::{
    CALL_TITLE, CODE_TITLE, LOCK_TITLE, THREAD_TITLE, VmmReport, VmmSource, calls, code, exits,
    head, locks, notes, threads,
};
use crate::column::{self, Column};
use crate::figures::{Bar, BarPart, Page, bars, table};
use crate::table::Table;
use crate::units::time;

const fn part(name: &'static str, class: &'static str) -> BarPart {
    BarPart { name, class }
}

/// Running parts of exits, then their waits; related parts share a colour.
const RETURN: BarPart = part("return from the kernel", "c4");
const SIGNALS: BarPart = part("signals", "c5");
const DEVICE: BarPart = part("the VMM’s own code", "c0");
const LOCKS: BarPart = part("locks", "c3");
const CALLS: BarPart = part("system calls", "c1");
const BACK: BarPart = part("way back", "c2");
const NOT_SPLIT: BarPart = part("not split", "c4 waits");
const IN_LOCKS: BarPart = part("asleep in locks", "c3 waits");
const IN_CALLS: BarPart = part("asleep in calls", "c1 waits");
const BLOCKED: BarPart = part("asleep elsewhere", "c0 waits");
const RUN_QUEUE: BarPart = part("run queue", "c5 waits");
/// Further activities of threads.
const POLL: BarPart = part("poll", "c2");
const SUBMIT: BarPart = part("submit", "c6");
const IN_SUBMIT: BarPart = part("asleep in submit", "c6 waits");

/// In the order of [`ExitSplit::all`](analyses::vmm::ExitSplit::all).
const OF_EXITS: [BarPart; 11] = [
    RETURN, SIGNALS, DEVICE, LOCKS, CALLS, BACK, NOT_SPLIT, IN_LOCKS, IN_CALLS, BLOCKED, RUN_QUEUE,
];

impl VmmReport {
    /// A page with a figure for the exits and one for the threads of each recording, in one file that works offline;
    /// `part` describes what was read, if that is not all.
    #[must_use]
    pub fn page(&self, part: Option<&str>) -> String {
        let mut page = Page::new("What VMMs do with exits");
        if let Some(part) = part {
            page.paragraph("note", &format!("Covers a part of the recordings: {part}."));
        }
        for source in &self.sources {
            page.heading(&source.path);
            page.paragraph("lead", &head(source));
            self.exits_figure(&mut page, source);
            self.threads_figure(&mut page, source);
            self.numbers(&mut page, source);
            for note in notes(&source.vmm) {
                page.paragraph("note", note.trim());
            }
        }
        if let Some(cost) = &self.recorder_cost {
            page.paragraph("note", &cost.note());
        }
        page.html()
    }

    fn exits_figure(&self, page: &mut Page, source: &VmmSource) {
        let vmm = &source.vmm;
        let bar = |group: &analyses::vmm::VmmExits| Bar {
            name: format!("{} {}", group.vm, row::exits(group)),
            parts: OF_EXITS.into_iter().zip(group.split.all()).collect(),
        };
        // Otherwise running can't be distinguished from waiting.
        let exits = vmm.exits.iter().filter(|_| vmm.is_split);
        let all: Vec<Bar> = exits.take(self.top).map(bar).collect();
        self.figure(page, source, ("Time of exits in the VMM", &OF_EXITS), &all);
    }

    fn threads_figure(&self, page: &mut Page, source: &VmmSource) {
        let bar = |thread: &analyses::vmm::VmmThread| Bar {
            name: format!("{} {}", thread.vm, row::thread(&thread.thread)),
            parts: thread_parts(&thread.split).to_vec(),
        };
        let all: Vec<Bar> = source.vmm.threads.iter().take(self.top).map(bar).collect();
        let parts = thread_parts(&ThreadSplit::default()).map(|(part, _)| part);
        self.figure(page, source, ("Work of threads that run no vCPU", &parts), &all);
    }

    fn figure(
        &self,
        page: &mut Page,
        source: &VmmSource,
        (title, parts): (&str, &[BarPart]),
        all: &[Bar],
    ) {
        if all.is_empty() {
            return;
        }
        let is_there = |part: &&BarPart| {
            let name = part.name;
            all.iter()
                .flat_map(|bar| &bar.parts)
                .any(|(bar_part, value)| bar_part.name == name && *value > 0)
        };
        let nanoseconds = source.vmm.nanoseconds;
        let words = |value: f64| time(value.round() as u64, nanoseconds);
        page.heading(title);
        page.bar_key(&parts.iter().filter(is_there).copied().collect::<Vec<_>>());
        page.figure(&bars(all, &words, title));
    }

    fn numbers(&self, page: &mut Page, source: &VmmSource) {
        let (vmm, top) = (&source.vmm, self.top);
        let (exits, code, calls) = (exits::columns(), code::columns(), calls::columns());
        let (locks, threads) = (locks::columns(), threads::columns());
        numbers(page, source, ("Exits", &vmm.exits), (&exits, exits::TABLE), top);
        numbers(page, source, (CODE_TITLE, &vmm.code), (&code, code::TABLE), top);
        if vmm.has_calls {
            numbers(page, source, (CALL_TITLE, &vmm.calls), (&calls, calls::TABLE), top);
            numbers(page, source, (LOCK_TITLE, &vmm.locks), (&locks, locks::TABLE), top);
            numbers(page, source, (THREAD_TITLE, &vmm.threads), (&threads, threads::TABLE), top);
        }
    }
}

/// One table, if it has rows.
fn numbers<'r, T>(
    page: &mut Page,
    source: &'r VmmSource,
    (title, all): (&str, &'r [T]),
    (columns, name): (&[Column<Row<'r, T>>], &'static str),
    top: usize,
) {
    let rows: Vec<Row<'r, T>> =
        all.iter().take(top).map(|subject| Row { source, subject }).collect();
    if !rows.is_empty() {
        page.heading(title);
        let mut drawn = Table::default();
        column::draw(columns, &mut drawn, name, &rows);
        page.table(&table(&drawn.lines()));
    }
}

/// All parts except idle and unknown time.
const fn thread_parts(split: &ThreadSplit) -> [(BarPart, u64); 12] {
    [
        (POLL, split.poll_ns),
        (DEVICE, split.dispatch_ns),
        (SUBMIT, split.submit_ns),
        (LOCKS, split.lock_ns),
        (SIGNALS, split.signals_ns),
        (CALLS, split.calls_ns),
        (NOT_SPLIT, split.not_split_ns),
        (IN_SUBMIT, split.submit_wait_ns),
        (IN_LOCKS, split.lock_wait_ns),
        (IN_CALLS, split.call_wait_ns),
        (BLOCKED, split.blocked_ns),
        (RUN_QUEUE, split.run_queue_ns),
    ]
}
