//! What vCPU threads did when: no moment is missing or told twice, and all adds up to the exits.

use std::collections::BTreeMap;
use std::path::Path;

use eventfmt::EventFormat;
use proptest::prelude::*;
use sources::Recording;
use timeline::moments::{Gap, Moment, MomentSink, Wanted, each_moment};
use timeline::turns::{Stretch, Turn, TurnEnd, TurnSink, VcpuTurns};
use timeline::{Doing, Parts};

use crate::host::{Host, Seen};
use crate::random::{Case, config, lives, losses};

const V: i32 = 100;
const OTHER: i32 = 7;

/// A turn, kept.
#[derive(Clone, Debug)]
struct Kept {
    vcpu: usize,
    thread: u32,
    stretches: Vec<Stretch>,
    exit_ns: Option<u64>,
    end: TurnEnd,
}

#[derive(Default)]
struct Turns(Vec<Kept>);

impl TurnSink for Turns {
    fn turn(&mut self, turn: &Turn<'_>) {
        let exit_ns = turn.exit.map(|exit| exit.start_ns);
        let (vcpu, thread, end) = (turn.vcpu, turn.thread, turn.end);
        let stretches = turn.stretches.to_vec();
        self.0.push(Kept { vcpu, thread, stretches, exit_ns, end });
    }
}

#[derive(Default)]
struct Pass {
    turns: VcpuTurns,
    told: Turns,
}

impl MomentSink for Pass {
    fn moment(&mut self, moment: &Moment) {
        self.turns.moment(moment, &mut self.told);
    }

    fn gap(&mut self, gap: &Gap) {
        self.turns.gap(gap);
    }
}

fn turns(host: &Host) -> Vec<Kept> {
    let recording: Recording = sources::open_bytes(Path::new("made.dat"), host.file()).unwrap();
    let mut pass = Pass::default();
    let wanted = |_: usize, format: &EventFormat| -> Option<Wanted> {
        VcpuTurns::wanted(format, recording.is_nanoseconds())
    };
    each_moment(std::slice::from_ref(&recording), &wanted, &mut pass, &|_| ());
    let Pass { turns, mut told } = pass;
    turns.finish(&mut told);
    told.0
}

fn spent(turn: &Kept, counts: impl Fn(&Stretch) -> bool) -> u64 {
    let counted = turn.stretches.iter().filter(|stretch| counts(stretch));
    counted.map(|stretch| stretch.to_ns - stretch.from_ns).sum()
}

fn parts(turn: &Kept) -> Parts {
    let all = |doing: &[Doing]| spent(turn, |one| one.in_exit && doing.contains(&one.doing));
    Parts {
        kernel_ns: all(&[Doing::Kernel]),
        user_ns: all(&[Doing::User]),
        runnable_ns: all(&[Doing::Preempted, Doing::Waiting]),
        blocked_ns: all(&[Doing::Blocked]),
        halt_poll_ns: all(&[Doing::HaltPoll]),
    }
}

/// Guest, and before `kvm_exit`.
fn window(turn: &Kept) -> (u64, u64) {
    let guest_ns = spent(turn, |one| !one.in_exit && one.doing == Doing::Guest);
    let known = |one: &Stretch| one.doing != Doing::Guest && one.doing != Doing::Unknown;
    (guest_ns, spent(turn, |one| !one.in_exit && known(one)))
}

/// Stretches of a vCPU follow one another.
fn check_partition(turns: &[Kept]) -> Result<(), TestCaseError> {
    let mut ends: BTreeMap<usize, u64> = BTreeMap::new();
    for turn in turns {
        for stretch in &turn.stretches {
            prop_assert!(stretch.from_ns < stretch.to_ns, "{:?}", turn);
            let before = ends.insert(turn.vcpu, stretch.to_ns);
            prop_assert!(before.is_none_or(|end| end == stretch.from_ns), "{:?}", turn);
        }
    }
    Ok(())
}

/// Every exit that has a time has a turn with the same parts, and the other way round.
fn check_exits(turns: &[Kept], exits: &[Seen]) -> Result<(), TestCaseError> {
    let key = |thread: u32, start_ns: u64| (thread, start_ns);
    let ended = turns.iter().filter(|turn| turn.end == TurnEnd::Entry);
    let by_turn: BTreeMap<_, _> = ended
        .filter_map(|turn| Some((key(turn.thread, turn.exit_ns?), (parts(turn), window(turn)))))
        .collect();
    let paired = exits.iter().filter(|seen| seen.is_paired());
    let by_exit: BTreeMap<_, _> = paired
        .map(|seen| {
            let guest = (seen.span.guest_ns, seen.span.before_exit_ns);
            (key(seen.thread, seen.span.start_ns), (seen.span.parts, guest))
        })
        .collect();
    prop_assert_eq!(by_turn, by_exit);
    Ok(())
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn turns_have_no_gaps_and_add_up_to_the_exits(lives in lives(), losses in losses()) {
        for losses in [&[][..], &losses] {
            let mut case = Case::new(&lives, true);
            case.lose(losses);
            let turns = turns(&case.host());
            check_partition(&turns)?;
            check_exits(&turns, &case.host().exits())?;
        }
    }

    #[test]
    fn turns_add_up_without_the_scheduler(lives in lives(), losses in losses()) {
        let mut case = Case::new(&lives, false);
        case.lose(&losses);
        let turns = turns(&case.host());
        check_partition(&turns)?;
        check_exits(&turns, &case.host().exits())?;
    }
}

/// What was done, in order, with durations.
fn told(turns: &[Kept]) -> Vec<(Doing, u64)> {
    let stretches = turns.iter().flat_map(|turn| &turn.stretches);
    stretches.map(|one| (one.doing, one.to_ns - one.from_ns)).collect()
}

#[test]
fn being_woken_and_being_preempted_are_told_apart() {
    let mut host = Host::x86();
    host.entry(0, 1_000, V, 0)
        .exit(0, 1_100, V, 0x78)
        .switch(0, 1_150, V, 1, OTHER)
        .wake(1, 1_400, OTHER, V)
        .switch(0, 1_450, OTHER, 0x100, V)
        .switch(0, 1_500, V, 0x100, OTHER)
        .switch(0, 1_560, OTHER, 0x100, V)
        .entry(0, 1_570, V, 0);
    let expected = [
        (Doing::Guest, 100),
        (Doing::Kernel, 50),
        (Doing::Blocked, 250),
        (Doing::Waiting, 50),
        (Doing::Kernel, 50),
        (Doing::Preempted, 60),
        (Doing::Kernel, 10),
    ];
    assert_eq!(told(&turns(&host)), expected);
}

#[test]
fn polling_stands_where_it_was() {
    let mut host = Host::x86();
    host.entry(0, 1_000, V, 0)
        .exit(0, 1_100, V, 0x78)
        .switch(0, 1_300, V, 1, OTHER)
        .wake(1, 1_400, OTHER, V)
        .switch(0, 1_450, OTHER, 0x100, V)
        .wakeup(0, 1_460, V, 310, 1)
        .entry(0, 1_500, V, 0);
    let expected = [
        (Doing::Guest, 100),
        (Doing::Kernel, 50),
        (Doing::HaltPoll, 150),
        (Doing::Blocked, 100),
        (Doing::Waiting, 50),
        (Doing::Kernel, 10),
        (Doing::Kernel, 40),
    ];
    assert_eq!(told(&turns(&host)), expected);
}

#[test]
fn what_a_loss_hides_is_unknown() {
    let mut host = Host::x86();
    host.shape.events_per_page = 1;
    host.entry(0, 1_000, V, 0)
        .exit(0, 1_100, V, 0x78)
        .lose(0)
        .entry(0, 1_500, V, 0)
        .exit(0, 1_600, V, 0x78)
        .entry(0, 1_700, V, 0);
    let expected =
        [(Doing::Guest, 100), (Doing::Unknown, 400), (Doing::Guest, 100), (Doing::Kernel, 100)];
    assert_eq!(told(&turns(&host)), expected);
}

#[test]
fn a_thread_that_runs_several_vcpus_is_each_of_them_in_turn() {
    let mut host = Host::x86();
    host.entry(0, 1_000, V, 0)
        .exit(0, 1_100, V, 0x7b)
        .entry(0, 1_200, V, 1)
        .exit(0, 1_300, V, 0x7b)
        .entry(0, 1_400, V, 0)
        .exit(0, 1_500, V, 0x7b)
        .entry(0, 1_600, V, 0);
    let turns = turns(&host);
    let of = |vcpu: usize| -> Vec<Kept> {
        turns.iter().filter(|turn| turn.vcpu == vcpu).cloned().collect()
    };
    let (guest, unknown, kernel) = (Doing::Guest, Doing::Unknown, Doing::Kernel);
    assert_eq!(told(&of(0)), [(guest, 100), (unknown, 300), (guest, 100), (kernel, 100)]);
    assert_eq!(told(&of(1)), [(guest, 100)]);
}

/// Asks what a thread did so far whenever another thread is seen.
#[derive(Default)]
struct Impatient {
    pass: Pass,
    answers: Vec<bool>,
}

impl MomentSink for Impatient {
    fn moment(&mut self, moment: &Moment) {
        self.pass.moment(moment);
        if moment.thread == OTHER as u32 {
            let Pass { turns, told } = &mut self.pass;
            self.answers.push(turns.tell_guest(V as u32, moment.stamp_ns, told));
        }
    }

    fn gap(&mut self, gap: &Gap) {
        self.pass.gap(gap);
    }
}

#[test]
fn who_cannot_wait_for_an_exit_is_told_so_far() {
    let mut host = Host::x86();
    host.entry(0, 1_000, V, 0)
        .wake(1, 1_300, OTHER, 55)
        .wake(1, 1_500, OTHER, 55)
        .exit(0, 1_600, V, 0x78)
        .wake(1, 1_650, OTHER, 55)
        .entry(0, 1_700, V, 0);
    let recording: Recording = sources::open_bytes(Path::new("made.dat"), host.file()).unwrap();
    let mut pass = Impatient::default();
    let wanted = |_: usize, format: &EventFormat| -> Option<Wanted> {
        VcpuTurns::wanted(format, recording.is_nanoseconds())
    };
    each_moment(std::slice::from_ref(&recording), &wanted, &mut pass, &|_| ());
    assert_eq!(pass.answers, [true, true, false], "while it is in its guest");
    let ends: Vec<TurnEnd> = pass.pass.told.0.iter().map(|turn| turn.end).collect();
    assert_eq!(ends, [TurnEnd::GoesOn, TurnEnd::GoesOn, TurnEnd::Entry]);
    let guest = Doing::Guest;
    let expected = [(guest, 300), (guest, 200), (guest, 100), (Doing::Kernel, 100)];
    assert_eq!(told(&pass.pass.told.0), expected);
}
