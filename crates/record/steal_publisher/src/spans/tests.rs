//! Synthetic histories, from pages to what a guest reads.

use std::sync::Arc;

use ftrace::eventfmt::EventFormat;
use ftrace::ringbuf::PageLayout;
use proptest::prelude::*;
use raw_bytes::{Abi, ByteOrder, LongSize};
use shmring::spans::{News, SpanReader};
use shmring::{Access, SharedMap};
use sources::FormatTable;
use testkit::{KernelFormats, Machine, MissedEvents, PageBuilder};
use timeline::reasons::ReasonNames;
use timeline::trace_events::LiveTraceEvents;
use vms::{Vcpu as RunningVcpu, Vm};

use super::*;

const ABI: Abi = Abi { order: ByteOrder::Little, long: LongSize::Eight };
const PAGE: usize = 4096;
/// The vCPUs' threads; the guest's TSC is ahead of the host's by this much.
const THREADS: [i32; 2] = [50, 51];
const AHEAD: u64 = 1_000_000;

struct Publishing {
    formats: KernelFormats,
    live: LiveTraceEvents,
    spans: Spans,
    reader: SpanReader,
}

impl Publishing {
    fn new() -> Self {
        Self::over(SharedMap::of_bytes(&vec![0; 1 << 20]).unwrap())
    }

    fn over(map: SharedMap) -> Self {
        let formats = KernelFormats::new(Machine::X86, ABI);
        let table: FormatTable = formats
            .systems()
            .into_iter()
            .flat_map(|(system, texts)| texts.into_iter().map(move |text| (system, text)))
            .map(|(system, text)| EventFormat::parse(system, text.as_bytes()).unwrap())
            .collect();
        let layout = PageLayout { order: ABI.order, commit: ABI.long, page_size: PAGE };
        let live =
            LiveTraceEvents::new(&table, layout, 2, |format| VcpuCycles::wanted(format, false));
        let vcpu = |(vcpu, tid): (u32, i32)| RunningVcpu {
            vcpu,
            tid: tid.cast_unsigned(),
            tsc_offset: Some(AHEAD.cast_signed()),
            tsc_scaling_ratio: None,
            tsc_scaling_bits: None,
        };
        let vcpus: Vec<RunningVcpu> = (0..).zip(THREADS).map(vcpu).collect();
        let clocks: Vec<GuestClock> =
            vcpus.iter().map(|vcpu| GuestClock::for_vcpu(vcpu).unwrap()).collect();
        // No such process: only vCPUs belong to the VM.
        let (name, program, pid) = ("web".into(), "qemu".into(), u32::MAX);
        let vm = Vm {
            name,
            pid,
            program,
            vcpus,
            threads: Vec::new(),
            vsock_cid: None,
            channels: Vec::new(),
        };
        let map = Arc::new(map);
        let writer = SpanWriter::lay_out(Arc::clone(&map), &[0, 1], 0, 0).unwrap();
        let names = Names::new(ReasonNames::of_formats(&table, ABI));
        let spans = Spans::new(&vm, &clocks, writer, names);
        let reader = SpanReader::attach(map, true).unwrap();
        Self { formats, live, spans, reader }
    }

    fn event(&self, what: &HostEvent, tid: i32, vcpu: u32) -> Vec<u8> {
        let event = |name: &str| self.formats.event(name).pid(tid);
        let switch = |prev: i32, state: u64, next: i32| {
            let switch = self.formats.event("sched_switch").pid(prev).set("prev_pid", prev);
            switch.set("prev_state", state).set("next_pid", next).build()
        };
        match *what {
            HostEvent::Exit(code) => {
                event("kvm_exit").set("exit_reason", code).set("isa", 2).build()
            }
            HostEvent::Entry => event("kvm_entry").set("vcpu_id", vcpu).build(),
            HostEvent::User => event("kvm_userspace_exit").build(),
            HostEvent::Back => event("kvm_fpu").set("load", 1).build(),
            HostEvent::Preempted(by) => switch(tid, 0, by),
            HostEvent::Sleeps => switch(tid, 1, 0),
            HostEvent::Woken => self.formats.event("sched_waking").pid(0).set("pid", tid).build(),
            HostEvent::Runs => switch(0, 0, tid),
        }
    }

    fn page(&mut self, cpu: u16, events: &[(u64, HostEvent)], missed: Option<MissedEvents>) {
        let Some(&(begin, _)) = events.first() else { return };
        let mut page = PageBuilder::new(ABI, PAGE, begin);
        if let Some(missed) = missed {
            page.missed(missed);
        }
        let mut now = begin;
        for (at, what) in events {
            let bytes = self.event(what, THREADS[usize::from(cpu)], cpu.into());
            page.event(u32::try_from(at - now).unwrap(), &bytes);
            now = *at;
        }
        self.live.page(cpu.into(), cpu, &page.build().bytes);
    }

    fn publish_until(&mut self, until: u64) {
        self.live.give(until, &mut self.spans);
        assert_eq!(self.spans.publish(until, self.live.lost()), Ok(()));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostEvent {
    Exit(u32),
    Entry,
    User,
    Back,
    Preempted(i32),
    Sleeps,
    Woken,
    Runs,
}

/// Spans with their times on the host's TSC.
fn plain(news: News) -> Vec<(u64, u64, Activity, By, bool, Option<u32>)> {
    let plain_span = |span: &Span| {
        let (from, to) = (span.start_tsc - AHEAD, span.end_tsc() - AHEAD);
        (from, to, span.activity, span.by, span.begins_exit, span.code)
    };
    news.spans.iter().map(plain_span).collect()
}

#[test]
fn exits_sleep_and_preemptions_are_published_as_they_happen() {
    let mut publishing = Publishing::new();
    publishing.page(
        0,
        &[
            (100, HostEvent::Entry),
            (200, HostEvent::Exit(0x60)),
            (210, HostEvent::Preempted(99)),
            (400, HostEvent::Runs),
            (420, HostEvent::Entry),
            (500, HostEvent::Exit(0x7b)),
            (510, HostEvent::User),
            (600, HostEvent::Back),
            (650, HostEvent::Entry),
            (700, HostEvent::Exit(0x78)),
            (710, HostEvent::Sleeps),
        ],
        None,
    );
    publishing.publish_until(800);
    let news = publishing.reader.read(0);
    assert_eq!((news.coverage.from_tsc, news.coverage.to_tsc), (AHEAD + 100, AHEAD + 800));
    let (kernel, user, asleep) = (Activity::Kernel, Activity::User, Activity::Asleep);
    let none = By::Unknown;
    assert_eq!(
        plain(news),
        [
            (200, 210, kernel, none, true, Some(0x60)),
            (210, 400, Activity::Preempted, By::Others, false, Some(0x60)),
            (400, 420, kernel, none, false, Some(0x60)),
            (500, 510, kernel, none, true, Some(0x7b)),
            (510, 600, user, none, false, Some(0x7b)),
            (600, 650, kernel, none, false, Some(0x7b)),
            (700, 710, kernel, none, true, Some(0x78)),
            (710, 800, asleep, none, false, Some(0x78)),
        ]
    );
    // The same exit continues, and does not begin again.
    publishing.page(
        0,
        &[
            (900, HostEvent::Woken),
            (910, HostEvent::Runs),
            (950, HostEvent::Entry),
            (960, HostEvent::Exit(0x60)),
            (970, HostEvent::Preempted(THREADS[1])),
        ],
        None,
    );
    publishing.publish_until(1000);
    let news = publishing.reader.read(0);
    assert_eq!(
        plain(news),
        [
            (800, 900, asleep, none, false, Some(0x78)),
            (900, 910, Activity::Waiting, none, false, Some(0x78)),
            (910, 950, kernel, none, false, Some(0x78)),
            (960, 970, kernel, none, true, Some(0x60)),
            (970, 1000, Activity::Preempted, By::OwnVcpu, false, Some(0x60)),
        ]
    );
    assert_eq!(
        publishing.reader.read(1),
        News { coverage: publishing.reader.read(1).coverage, ..News::default() }
    );
    let names: Vec<String> = publishing.reader.names().into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["interrupt", "io", "hlt"]);
}

#[test]
fn what_was_lost_is_published_as_unknown() {
    let mut publishing = Publishing::new();
    publishing.page(0, &[(100, HostEvent::Entry), (200, HostEvent::Exit(0x60))], None);
    publishing.publish_until(250);
    let lost = Some(MissedEvents::Counted(7));
    publishing.page(
        0,
        &[(400, HostEvent::Entry), (450, HostEvent::Exit(0x60)), (460, HostEvent::Entry)],
        lost,
    );
    publishing.publish_until(500);
    let news = publishing.reader.read(0);
    assert_eq!(news.coverage.lost_events, 7);
    let unknown: u64 = news
        .spans
        .iter()
        .filter(|span| span.activity == Activity::Unknown)
        .map(|span| span.ticks)
        .sum();
    assert_eq!(unknown, 150, "{:?}", news.spans);
    assert_eq!(
        plain(news).last(),
        Some(&(450, 460, Activity::Kernel, By::Unknown, true, Some(0x60)))
    );
}

/// A valid random life of a vCPU, step by step.
fn life(picks: &[(u8, u32)]) -> Vec<(u64, HostEvent)> {
    let (mut now, mut events) = (100, vec![(100, HostEvent::Entry)]);
    let mut put = |step: u32, what| {
        now += u64::from(step) + 1;
        events.push((now, what));
    };
    for &(pick, step) in picks {
        put(step, HostEvent::Exit(0x60 + u32::from(pick >> 4)));
        if pick & 1 != 0 {
            put(step / 3, HostEvent::Preempted(99));
            put(step, HostEvent::Runs);
        }
        if pick & 2 != 0 {
            put(step / 5, HostEvent::User);
            put(step / 2, HostEvent::Back);
        }
        if pick & 4 != 0 {
            put(step, HostEvent::Sleeps);
            put(step / 7, HostEvent::Woken);
            put(step, HostEvent::Runs);
        }
        put(step / 4, HostEvent::Entry);
    }
    events
}

/// Ticks per activity, and number of exits; checks that spans are in order and don't overlap.
fn sums(spans: &[Span]) -> (Vec<(Activity, u64)>, usize) {
    assert!(spans.windows(2).all(|two| two[0].end_tsc() <= two[1].start_tsc));
    let ticks_of = |activity| {
        spans.iter().filter(|span| span.activity == activity).map(|span| span.ticks).sum()
    };
    let exits = spans.iter().filter(|span| span.begins_exit).count();
    (Activity::ALL.into_iter().map(|activity| (activity, ticks_of(activity))).collect(), exits)
}

#[test]
fn memory_that_is_cut_ends_it_and_is_named() {
    for to_bytes in [0, 4096] {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        let mut publishing =
            Publishing::over(SharedMap::open(file.path(), Access::ReadWrite).unwrap());
        publishing.publish_until(100);
        file.as_file().set_len(to_bytes).unwrap();
        let ended = publishing.spans.publish(200, 0).err();
        assert_eq!(ended, Some("its memory was truncated during use"), "{to_bytes} bytes left");
        publishing.spans.end();
    }
}

proptest! {
    /// However a history is cut into pages and intervals, the published spans are the same.
    #[test]
    fn looks_change_nothing(
        lives in prop::array::uniform2(prop::collection::vec((any::<u8>(), 0..500_u32), 1..20)),
        looks in prop::collection::vec(1..2000_u64, 0..20),
    ) {
        let lives = lives.map(|picks| life(&picks));
        let end = lives.iter().filter_map(|life| Some(life.last()?.0)).max().unwrap() + 1;
        let publish_until = |until: &[u64]| {
            let (mut publishing, mut from) = (Publishing::new(), 0);
            for &until in until {
                for (cpu, life) in (0..).zip(&lives) {
                    let part: Vec<_> =
                        life.iter().filter(|(at, _)| (from..until).contains(at)).copied().collect();
                    // Full pages and the rest, as from the kernel.
                    part.chunks(7).for_each(|page| publishing.page(cpu, page, None));
                }
                publishing.publish_until(until);
                from = until;
            }
            [0, 1].map(|vcpu| sums(&publishing.reader.read(vcpu).spans))
        };
        let mut cuts: Vec<u64> = looks.iter().scan(0, |at, step| {
            *at += step;
            Some(*at)
        }).filter(|at| *at < end).collect();
        cuts.push(end);
        prop_assert_eq!(publish_until(&cuts), publish_until(&[end]));
    }
}
