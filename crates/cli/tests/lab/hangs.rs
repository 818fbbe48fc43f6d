//! Repeats work in new machines if one of them hung, as guests of an emulated machine do now and
//! then, recorded or not (`docs/lab.md`). A failure while they respond is a fault.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use crate::patience::Patient;
use crate::recorded::Recorded;
use crate::tool::{TestLab, can_run_all};

/// Max hanging machines in one test.
const MOST: u32 = 3;
/// Messages of `hyperscope lab` about a machine that hangs.
const SILENT: [&str; 2] = ["does not answer", "hangs"];
/// Timeout for a machine to run an empty command on each of its CPUs.
const ANSWER: Duration = Duration::from_secs(60);
/// If one CPU of a guest hangs, the other one may continue.
const NOTHING: &str = "left=$(grep -c ^processor /proc/cpuinfo); mask=1; \
    while [ $left -gt 0 ]; do taskset $(printf %x $mask) busybox true || exit 1; \
    mask=$((mask * 2)); left=$((left - 1)); done";

/// Machines to work in, created on demand.
pub(crate) struct Machines<M> {
    make: M,
    up: Option<Recorded>,
    hung: u32,
}

impl<M: Fn() -> Recorded> Machines<M> {
    pub(crate) fn new(make: M) -> Self {
        Self { make, up: None, hung: 0 }
    }

    /// Works in them, repeatedly until none hangs; `level` is the one that may hang.
    pub(crate) fn work(&mut self, level: u8, work: impl Fn(&Recorded)) {
        loop {
            let machines = self.up.take().unwrap_or_else(|| self.made());
            let Err(fault) = catch_unwind(AssertUnwindSafe(|| work(&machines))) else {
                self.up = Some(machines);
                return;
            };
            if self.hung == MOST || !hangs(&machines.lab, level) {
                resume_unwind(fault);
            }
            self.note(&format!("level {level} hangs"));
        }
    }

    /// New machines that did not hang while they received their programs.
    fn made(&mut self) -> Recorded {
        loop {
            let fault = match catch_unwind(AssertUnwindSafe(&self.make)) {
                Ok(machines) => return machines,
                Err(fault) => fault,
            };
            let message = fault.downcast_ref::<String>().map_or("", String::as_str);
            if self.hung == MOST || !SILENT.iter().any(|silent| message.contains(silent)) {
                resume_unwind(fault);
            }
            self.note(message);
        }
    }

    fn note(&mut self, what: &str) {
        self.hung += 1;
        eprintln!("{what}: {} of {MOST} that may; once more", self.hung);
    }
}

fn hangs(lab: &TestLab, level: u8) -> bool {
    let command = lab.command(&["exec", &level.to_string(), "--", "sh", "-c", NOTHING]);
    let ended = Patient::start(command).end_within(ANSWER);
    !ended.is_some_and(|ended| ended.success())
}

#[test]
fn what_fails_while_machines_answer_is_a_fault() {
    if !can_run_all() {
        return;
    }
    let mut machines = Machines::new(|| Recorded::up("guests-hang"));
    let tries = Cell::new(0);
    let count = || tries.replace(tries.get() + 1);
    machines.work(2, |machines| {
        if count() == 0 {
            machines.lab.run(&["monitor", "2", "stop"]).done();
            panic!("level 2 hangs");
        }
    });
    assert_eq!((tries.get(), machines.hung), (2, 1));
    let fail = || -> () {
        machines.work(2, |_| {
            count();
            panic!("this one does not");
        });
    };
    assert!(catch_unwind(AssertUnwindSafe(fail)).is_err());
    assert_eq!(tries.get(), 3);
}
