//! Random events of a vCPU's thread and its VMM's main thread, split by a second implementation that walks event
//! by event.

use analyses::vmm::ExitSplit;
use testkit::Random;

use super::checked_vmm;
use super::made::{MAIN, Made};

/// Activity of the vCPU's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Guest,
    Kernel,
    Returning,
    Code,
    /// A call: about signals, of a futex, or another one.
    Signals,
    Futex,
    Other,
    Back,
}

/// Generates random events, and sums the expected split. Every exit ends with an entry.
struct Life {
    made: Made,
    dice: Random,
    at: At,
    is_away: Option<bool>,
    was_woken: bool,
    was_in_vmm: bool,
    now_ns: u64,
    split: ExitSplit,
    exits: u64,
}

impl Life {
    fn new(seed: u64) -> Self {
        let mut made = Made::new();
        made.entry(1);
        Self {
            made,
            dice: Random(seed),
            at: At::Guest,
            is_away: None,
            was_woken: false,
            was_in_vmm: false,
            now_ns: 1,
            split: ExitSplit::default(),
            exits: 0,
        }
    }

    /// Time passes.
    fn wait(&mut self) {
        let ns = 1 + self.dice.below(300);
        self.now_ns += ns;
        if matches!(self.at, At::Guest | At::Kernel) {
            return;
        }
        let split = &mut self.split;
        *match (self.is_away, self.at) {
            (Some(true), _) if self.was_woken => &mut split.run_queue_ns,
            (Some(true), At::Futex) => &mut split.lock_wait_ns,
            (Some(true), At::Signals | At::Other) => &mut split.call_wait_ns,
            (Some(true), _) => &mut split.blocked_ns,
            (Some(false), _) => &mut split.run_queue_ns,
            (None, At::Returning) => &mut split.return_ns,
            (None, At::Code) => &mut split.device_ns,
            (None, At::Signals) => &mut split.signals_ns,
            (None, At::Futex) => &mut split.lock_ns,
            (None, At::Other) => &mut split.calls_ns,
            (None, _) => &mut split.back_ns,
        } += ns;
    }

    fn step(&mut self) {
        self.wait();
        let ns = self.now_ns;
        match self.is_away {
            Some(true) if !self.was_woken => {
                self.made.wakes(ns);
                self.was_woken = true;
            }
            Some(_) => {
                self.made.back(ns);
                self.is_away = None;
            }
            None if self.at != At::Guest && self.dice.below(6) == 0 => self.leave_cpu(ns),
            None => self.go_on(ns),
        }
    }

    fn leave_cpu(&mut self, ns: u64) {
        let sleeps = self.dice.below(2) == 0;
        if sleeps {
            self.made.sleeps(ns)
        } else {
            self.made.preempted(ns)
        };
        (self.is_away, self.was_woken) = (Some(sleeps), false);
    }

    fn go_on(&mut self, ns: u64) {
        let choice = self.dice.below(5);
        let made = &mut self.made;
        self.at = match (self.at, choice) {
            (At::Guest, _) => {
                made.exit(ns, 0x7b).port(ns, 0x3f8 + choice);
                self.was_in_vmm = false;
                At::Kernel
            }
            (At::Kernel, 0 | 1) => {
                made.entry(ns);
                self.exits += u64::from(self.was_in_vmm);
                At::Guest
            }
            (At::Kernel, _) => {
                made.user_exit(ns);
                self.was_in_vmm = true;
                At::Returning
            }
            (At::Code, 0) => {
                made.enters(ns, 14, [0; 3]);
                At::Signals
            }
            (At::Code, 1) => {
                made.enters(ns, 202, [0x7000, 128, 0]);
                At::Futex
            }
            (At::Code, 2) => {
                made.enters(ns, 20, [3, 0, 0]);
                At::Other
            }
            (At::Code, _) => {
                made.enters(ns, 16, [9, 0xae80, 0]);
                At::Back
            }
            (At::Back, _) => {
                made.loaded(ns);
                At::Kernel
            }
            (At::Returning | At::Signals | At::Futex | At::Other, _) => {
                made.leaves(ns);
                At::Code
            }
        };
    }

    /// Continues to the end of the current exit.
    fn finish(&mut self) {
        while self.at != At::Guest || self.is_away.is_some() {
            self.step();
        }
    }
}

#[test]
fn any_life_is_split_as_its_events_say() {
    let mut sum = ExitSplit::default();
    for seed in 1..80 {
        let mut life = Life::new(seed * 31);
        (0..300).for_each(|_| life.step());
        life.finish();
        let found = checked_vmm(&life.made.recording());
        let mut all = ExitSplit::default();
        found.exits.iter().for_each(|row| all += row.split);
        assert_eq!(all, life.split, "{seed}");
        assert_eq!(found.exits.iter().map(|row| row.exits).sum::<u64>(), life.exits, "{seed}");
        assert_eq!(all.not_split_ns, 0);
        sum += all;
    }
    let rare = sum.all().into_iter().enumerate().filter(|(at, ns)| *at != 6 && *ns < 10_000);
    assert_eq!(rare.collect::<Vec<_>>(), [], "{sum:?}");
}

/// With losses and random events of both threads, sums hold, and threads' times add up to their wall time.
#[test]
fn parts_add_up_whatever_was_lost() {
    let mut split_exits = 0;
    for seed in 1..80 {
        let mut life = Life::new(seed * 17);
        life.made.other(1, MAIN);
        for _ in 0..400 {
            life.step();
            let (ns, choice) = (life.now_ns, life.dice.below(12));
            match choice {
                0 => drop(life.made.main_enters(ns, 271, [0; 3])),
                1 => drop(life.made.main_leaves(ns)),
                2 => drop(life.made.main_enters(ns, 202, [0x7000, 129, 1])),
                3 => drop(life.made.main_sleeps(ns)),
                4 => drop(life.made.main_woken(ns)),
                5 => drop(life.made.main_back(ns)),
                6 if life.dice.below(10) == 0 => drop(life.made.lose()),
                _ => {}
            }
        }
        let found = checked_vmm(&life.made.recording());
        split_exits += found.exits.iter().map(|row| row.exits).sum::<u64>();
        let [main] = &found.threads[..] else { panic!("{:?}", found.threads) };
        assert_eq!(main.split.wall_ns(), life.now_ns - 1, "{seed}");
    }
    assert!(split_exits > 500, "{split_exits}");
}
