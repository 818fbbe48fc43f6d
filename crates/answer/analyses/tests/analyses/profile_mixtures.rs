//! Profiles of a program with known shares of functions, from mixtures of evidence: samples of the host, samples
//! of the guest, and exits, each available for a part of the time, with random time ranges.

use std::collections::BTreeMap;

use analyses::align::{Method, align};
use analyses::profile::{
    Evidence, GuestStacks, Profile, ProfileQuestion, ProfileRow, SampledTime, profile,
    profile_of_instructions,
};
use analyses::view::View;
use perfdata::{Attr, Flags, PipeWriter, event_type, kind, marker, sample_type};
use proptest::prelude::*;
use raw_bytes::ByteOrder::Little;
use sources::{Recording, Samples, TimeRange};
use testkit::{Machine, Random};
use tracedat::{Guest, GuestCpu, ShiftSample, TimeShift, id, option};

use crate::machinery::Machinery;

const VCPU: i32 = 100;
const TASK: i32 = 7;
const HOST_ID: u64 = 0xbeef;
const GUEST_ID: u64 = 0xfeed;
const INTERRUPT: u64 = 0x60;
const KERNEL: u64 = 0xffff_ffff_8100_0000;
const GUEST_KERNEL: u16 = 4;
const BEGIN_NS: u64 = 1_000_000;
const WHOLE_NS: u64 = 2_000_000_000;
const EXIT_NS: u64 = 2_000;
/// Typical time between samples, and between exits.
const HOST_PERIOD_NS: u64 = 1_000_000_000 / 1009;
const GUEST_PERIOD_NS: u64 = 1_000_000_000 / 797;
const EXIT_PERIOD_NS: u64 = 1_000_000;
/// Functions of the program with their shares of a round; the last one runs with interrupts off.
const FUNCTIONS: [(&str, u64); 3] = [("fifty", 50), ("thirty", 30), ("off", 20)];
const OFF: usize = 2;

/// Evidence in addition to the host's recording.
#[derive(Clone, Debug)]
struct Mixture {
    seed: u64,
    has_host_samples: bool,
    /// Ranges of time in thousandths: the guest was recorded, it sampled itself, and it did not within that.
    recorded: (u64, u64),
    sampled: (u64, u64),
    gap: (u64, u64),
    range: (u64, u64),
}

fn at_ns(thousandth: u64) -> u64 {
    BEGIN_NS + WHOLE_NS / 1000 * thousandth
}

/// Functions over time: start and index.
struct Program(Vec<(u64, usize)>);

impl Program {
    fn new(random: &mut Random) -> Self {
        let (mut blocks, mut now_ns) = (Vec::new(), 0);
        while now_ns < BEGIN_NS + WHOLE_NS {
            for (function, (_, share)) in FUNCTIONS.iter().enumerate() {
                blocks.push((now_ns, function));
                now_ns += share * (1_000 + random.below(8_000));
            }
        }
        Self(blocks)
    }

    fn place(&self, at_ns: u64) -> usize {
        self.0.partition_point(|(from_ns, _)| *from_ns <= at_ns) - 1
    }

    fn function(&self, at_ns: u64) -> usize {
        self.0[self.place(at_ns)].1
    }

    /// A guest's timer interrupt is delayed until interrupts are on again; `None` if the program ends before.
    fn interruptible_ns(&self, at_ns: u64) -> Option<u64> {
        let place = self.place(at_ns);
        match self.0[place].1 {
            OFF => self.0.get(place + 1).map(|(from_ns, _)| *from_ns),
            _ => Some(at_ns),
        }
    }

    /// Time in each function within spans.
    fn times(&self, spans: &[(u64, u64)]) -> [u64; 3] {
        let mut times = [0; 3];
        for &(from_ns, to_ns) in spans {
            let mut now_ns = from_ns;
            while now_ns < to_ns {
                let next = self.0.get(self.place(now_ns) + 1).map_or(to_ns, |(next, _)| *next);
                times[self.function(now_ns)] += next.min(to_ns) - now_ns;
                now_ns = next.min(to_ns);
            }
        }
        times
    }
}

fn address(function: usize) -> u64 {
    KERNEL + 0x1000 * (function as u64 + 1) + 0x10
}

/// Times with about a period between them.
fn times(random: &mut Random, period_ns: u64) -> Vec<u64> {
    let mut now_ns = BEGIN_NS + 5_000;
    let mut all = Vec::new();
    while now_ns < BEGIN_NS + WHOLE_NS {
        all.push(now_ns);
        now_ns += period_ns / 2 + random.below(period_ns);
    }
    all
}

fn perf_data(samples: &[(u64, u16, i32, u64)]) -> Vec<u8> {
    let attr = Attr {
        kind: event_type::SOFTWARE,
        config: 0,
        sample_period: 1000,
        sample_type: sample_type::IP
            | sample_type::TID
            | sample_type::TIME
            | sample_type::CPU
            | sample_type::CALLCHAIN,
        read_format: 0,
        flags: Flags::with_bits(&[]),
        wakeup: 0,
        branch_sample_type: 0,
        sample_regs_user: 0,
        sample_regs_intr: 0,
        clock_id: 0,
    };
    let mut bytes = Vec::new();
    PipeWriter::new(&mut bytes, &attr).head(&attr, &[], &[]);
    for &(time_ns, mode, thread, ip) in samples {
        let tids = [thread, thread].into_iter().flat_map(i32::to_ne_bytes);
        let words = [time_ns, 0, 2, marker::KERNEL, ip].into_iter().flat_map(u64::to_ne_bytes);
        let body: Vec<u8> = ip.to_ne_bytes().into_iter().chain(tids).chain(words).collect();
        bytes.extend(kind::SAMPLE.to_ne_bytes());
        let size = u16::try_from(body.len() + 8).unwrap();
        bytes.extend([mode, size].into_iter().flat_map(u16::to_ne_bytes));
        bytes.extend(body);
    }
    bytes
}

/// Recordings of a host and its guest with their samples, and the times at which the guest ran.
struct Made {
    recordings: [Recording; 2],
    samples: [Option<Samples>; 2],
    guest_ran: Vec<(u64, u64)>,
    program: Program,
}

fn made(mixture: &Mixture) -> Made {
    let mut random = Random(mixture.seed);
    let program = Program::new(&mut random);
    let mut host = Machinery::for_machine(Machine::X86, "local");
    let (mut from_ns, mut guest_ran) = (BEGIN_NS, Vec::new());
    let entry =
        |host: &mut Machinery, at_ns| host.event(0, at_ns, VCPU, "kvm_entry", &[("vcpu_id", 0)]);
    entry(&mut host, from_ns);
    for exit_ns in times(&mut random, EXIT_PERIOD_NS) {
        let rip = address(program.function(exit_ns));
        let fields = [("exit_reason", INTERRUPT), ("isa", 2), ("guest_rip", rip)];
        host.event(0, exit_ns, VCPU, "kvm_exit", &fields);
        guest_ran.push((from_ns, exit_ns));
        from_ns = exit_ns + EXIT_NS;
        entry(&mut host, from_ns);
    }
    host.event(
        0,
        BEGIN_NS + WHOLE_NS + EXIT_NS,
        VCPU,
        "kvm_exit",
        &[("exit_reason", 0x7c), ("isa", 2)],
    );
    guest_ran.push((from_ns, BEGIN_NS + WHOLE_NS + EXIT_NS));
    let runs = |at_ns: u64| guest_ran.iter().any(|&(from, to)| from <= at_ns && at_ns < to);
    let in_part = |at: u64, (from, to): (u64, u64)| at_ns(from) <= at && at < at_ns(to);

    let mut guest = Machinery::for_machine(Machine::X86, "local");
    guest.cmdlines = format!("{TASK} program\n");
    guest.kallsyms = format!("{KERNEL:x} T _stext\n");
    for (function, (name, _)) in FUNCTIONS.iter().enumerate() {
        guest.kallsyms += &format!("{:x} t {name}\n", address(function) - 0x10);
    }
    let switch = [("prev_pid", 0), ("next_pid", TASK as u64)];
    guest.event(0, at_ns(mixture.recorded.0).max(BEGIN_NS), 0, "sched_switch", &switch);
    guest.event(0, at_ns(mixture.recorded.1), TASK, "sched_waking", &[("pid", 9)]);
    let recordings = two(host, guest);

    let of_host = times(&mut random, HOST_PERIOD_NS).into_iter().filter(|&at| runs(at));
    let of_host: Vec<_> =
        of_host.map(|at| (at, GUEST_KERNEL, VCPU, address(program.function(at)))).collect();
    let of_guest = times(&mut random, GUEST_PERIOD_NS)
        .into_iter()
        .filter(|&at| in_part(at, mixture.sampled) && !in_part(at, mixture.gap) && runs(at));
    let of_guest: Vec<_> = of_guest
        .filter_map(|at| program.interruptible_ns(at))
        .map(|at| (at, 1, TASK, address(program.function(at))))
        .collect();
    let host_samples =
        Samples::of_bytes(&recordings[0], "h".as_ref(), perf_data(&of_host)).unwrap();
    let guest_samples =
        Samples::of_guest_bytes(&recordings[1], "g".as_ref(), perf_data(&of_guest)).unwrap();
    let samples = [Some(host_samples).filter(|_| mixture.has_host_samples), Some(guest_samples)];
    Made { recordings, samples, guest_ran, program }
}

fn two(mut host: Machinery, mut guest: Machinery) -> [Recording; 2] {
    let vcpus = vec![GuestCpu { cpu: 0, pid: VCPU as u32 }];
    let named = Guest { name: "web".to_owned(), trace_id: GUEST_ID, vcpus };
    host.options.push((id::TRACEID, option::trace_id(Little, HOST_ID)));
    host.options.push((id::GUEST, option::guest(Little, &named)));
    guest.options.push((id::TRACEID, option::trace_id(Little, GUEST_ID)));
    let sample = |time| ShiftSample { time, offset: 0, scaling: 1, fraction: 0 };
    let cpus = vec![vec![sample(0), sample(1 << 40)]];
    let shift = TimeShift { peer: HOST_ID, flags: 1, cpus };
    guest.options.push((id::TIME_SHIFT, option::time_shift(Little, &shift)));
    [host.recording(), guest.recording()]
}

/// Kind of the requested profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Functions,
    Raw,
    Instructions,
}

/// The profile of a mixture in its range, and the true time in each function.
fn found(mixture: &Mixture, mode: Asked) -> (Profile, [u64; 3], Vec<(u64, u64)>) {
    let Made { mut recordings, samples, guest_ran, program } = made(mixture);
    let guests = align(&recordings, Some(Method::TimeShift), &|_| ());
    assert_eq!(guests.len(), 1);
    guests[0].apply(&mut recordings[1]);
    let range = (at_ns(mixture.range.0), at_ns(mixture.range.1));
    for recording in &mut recordings {
        recording.set_range(TimeRange { from_ns: range.0, to_ns: range.1 });
    }
    let view = View::new(&recordings, &guests);
    let stacks = if mode == Asked::Raw { GuestStacks::Raw } else { GuestStacks::Corrected };
    let question = ProfileQuestion { samples: &samples, given: &[], stacks };
    let profile = match mode {
        Asked::Instructions => profile_of_instructions(view, question, (&[None, None], 0), &|_| ()),
        _ => profile(view, question, &|_| ()),
    };
    let first = profile.rows.iter().map(|row| row.time.ns).sum::<u64>();
    assert_eq!(first, profile.vcpus[0].time_ns, "rows add up");
    let clipped = guest_ran.iter().map(|&(from, to)| (from.max(range.0), to.min(range.1)));
    let clipped: Vec<_> = clipped.filter(|(from, to)| from < to).collect();
    let truth = program.times(&clipped);
    (profile, truth, clipped)
}

fn of_function<'p>(profile: &'p Profile, name: &str) -> impl Iterator<Item = &'p ProfileRow> {
    let leaf = |row: &ProfileRow| row.stack.last().and_then(|leaf| leaf.symbol.clone());
    profile.rows.iter().filter(move |row| leaf(row).as_deref() == Some(name))
}

/// Time with its interval by function, summed over rows.
fn by_function(profile: &Profile) -> BTreeMap<&'static str, SampledTime> {
    let mut all = BTreeMap::new();
    for (name, _) in FUNCTIONS {
        let sum: &mut SampledTime = all.entry(name).or_default();
        of_function(profile, name).for_each(|row| sum.add(&row.time));
    }
    all
}

fn mixtures() -> impl Strategy<Value = Mixture> {
    let part = |min: u64| {
        (0..=1000 - min, 0..=1000_u64)
            .prop_map(move |(from, more)| (from, (from + min + more).min(1000)))
    };
    let gap = (0..1000_u64, 0..400_u64).prop_map(|(from, length)| (from, from + length));
    (any::<u32>(), any::<bool>(), part(100), part(30), gap, part(350)).prop_map(
        |(seed, has_host_samples, recorded, sampled, gap, range)| {
            let seed = u64::from(seed) + 1;
            Mixture { seed, has_host_samples, recorded, sampled, gap, range }
        },
    )
}

/// Max error in units of half a 95% interval, in addition to a hundredth of the time: with some hundreds of
/// intervals, a larger error has a probability of one in 100,000.
const FAR: f64 = 2.3;

fn assert_is_near(name: &str, time: &SampledTime, truth_ns: u64, whole_ns: u64, what: &str) {
    let half = (time.high_ns - time.low_ns) as f64 / 2.0;
    let off = time.ns.abs_diff(truth_ns) as f64;
    let max = FAR * half + whole_ns as f64 * 0.01;
    assert!(off <= max, "{what}: {name} {time:?} is {truth_ns} of {whole_ns}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn shares_stay_within_their_intervals_whatever_the_evidence(mixture in mixtures()) {
        for mode in [Asked::Functions, Asked::Instructions] {
            let (profile, truth, ran) = found(&mixture, mode);
            let whole_ns = ran.iter().map(|(from, to)| to - from).sum();
            for ((name, time), truth_ns) in FUNCTIONS.iter().map(|(name, _)| (*name, by_function(&profile)[name])).zip(truth) {
                assert_is_near(name, &time, truth_ns, whole_ns, &format!("{mixture:?} {mode:?}"));
            }
        }
    }

    /// A guest's samples only represent the time in which it sampled itself; a single sample represents little
    /// more than its period.
    #[test]
    fn samples_of_a_guest_stand_for_the_time_in_which_it_sampled_itself(mixture in mixtures()) {
        let (profile, _, ran) = found(&mixture, Asked::Raw);
        let agent_rows = profile.rows.iter().filter(|row| row.evidence == Evidence::Agent);
        let (mut own_ns, mut samples) = (0, 0);
        for row in agent_rows {
            let most_ns = (row.time.samples + 9) * GUEST_PERIOD_NS * 4;
            prop_assert!(row.time.ns <= most_ns, "{mixture:?} {row:?}");
            own_ns += row.time.ns;
            samples += row.time.samples;
        }
        let part = |(from, to): (u64, u64)| (at_ns(from), at_ns(to));
        let within = |(from, to): (u64, u64)| -> u64 {
            ran.iter().map(|&(a, b)| b.min(to).saturating_sub(a.max(from))).sum()
        };
        let (sampled, gap) = (part(mixture.sampled), part(mixture.gap));
        let in_gap = within((gap.0.max(sampled.0), gap.1.min(sampled.1).max(gap.0.max(sampled.0))));
        let is_long = gap.1 - gap.0 > 10 * GUEST_PERIOD_NS;
        let covered_ns = within(sampled) - if is_long { in_gap } else { 0 };
        let slack_ns = 12 * GUEST_PERIOD_NS;
        prop_assert!(own_ns <= covered_ns + slack_ns, "{mixture:?}: {own_ns} of {covered_ns}");
        prop_assert!(samples == 0 || own_ns + slack_ns >= covered_ns, "{mixture:?}: {own_ns} of {covered_ns}");
    }
}

/// The guest's recording ends before its host's, and a few more samples follow: they only represent what they saw.
#[test]
fn a_sample_after_the_guests_recording_does_not_stand_for_all_that_follows() {
    let mixture = Mixture {
        seed: 5,
        has_host_samples: true,
        recorded: (0, 600),
        sampled: (0, 603),
        gap: (0, 0),
        range: (400, 1000),
    };
    for mode in [Asked::Functions, Asked::Raw] {
        let (profile, truth, _) = found(&mixture, mode);
        let times = by_function(&profile);
        let total_ns: u64 = truth.iter().sum();
        for (at, share) in [("fifty", 0.5), ("thirty", 0.3)] {
            let off = times[at].ns as f64 / total_ns as f64 - share;
            let max = if mode == Asked::Raw { 0.12 } else { 0.05 };
            assert!(off.abs() < max, "{mode:?} {at}: {off}");
        }
        let agent_rows = profile.rows.iter().filter(|row| row.evidence == Evidence::Agent);
        let own_ns: u64 = agent_rows.map(|row| row.time.ns).sum();
        let most_ns = at_ns(mixture.sampled.1) - at_ns(mixture.range.0) + 10 * GUEST_PERIOD_NS;
        assert!(own_ns > 0 && own_ns <= most_ns, "{mode:?} {own_ns} {most_ns}");
    }
}

/// Code with interrupts off has its share of instructions as well.
#[test]
fn instructions_are_found_where_no_timer_of_the_guest_comes() {
    let mixture = Mixture {
        seed: 9,
        has_host_samples: true,
        recorded: (0, 1000),
        sampled: (0, 1000),
        gap: (0, 0),
        range: (0, 1000),
    };
    let (profile, truth, _) = found(&mixture, Asked::Instructions);
    let off: Vec<&ProfileRow> = of_function(&profile, "off").collect();
    let ns: u64 = off.iter().map(|row| row.time.ns).sum();
    assert!(ns.abs_diff(truth[OFF]) < truth[OFF] / 8, "{ns} of {}", truth[OFF]);
    let into = |row: &ProfileRow| row.stack.last()?.instruction.as_ref().map(|at| at.into);
    assert!(off.iter().all(|row| into(row) == Some(0x10)), "{off:?}");
    let (raw, ..) = found(&mixture, Asked::Raw);
    assert!(of_function(&raw, "off").all(|row| row.evidence != Evidence::Agent));
}
