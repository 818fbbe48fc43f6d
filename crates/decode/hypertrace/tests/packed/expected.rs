//! Events as the packing program gets them, and as they must come back.

use hypertrace::{Call, Event, Interrupt, Kind, Syscall, Task, Wake};
use proptest::prelude::*;

/// A task: pid, priority, name.
pub(crate) type Who = (u32, i16, String);

/// What happened, with all its content.
#[derive(Clone, Debug)]
pub(crate) enum ExpectedKind {
    Switch(u8, Who),
    Wake(u8, Who, u16),
    IrqEntry(u32, String),
    IrqExit(u32, bool),
    SysEnter(i32),
    SysExit(i32, i64),
    Call(bool, u64),
}

/// An event, some units after the one before.
#[derive(Clone, Debug)]
pub(crate) struct ExpectedEvent {
    pub(crate) after: u64,
    pub(crate) running: Who,
    pub(crate) what: ExpectedKind,
}

/// A task whose pid shares its place in tables with others.
pub(crate) fn who() -> impl Strategy<Value = Who> {
    let pid =
        prop_oneof![Just(0_u32), 1..40_u32, (1..6_u32).prop_map(|at| at * 32), 1..1_u32 << 22];
    // What a task with a pid is called seldom changes.
    (pid, prop_oneof![9 => Just(120_i16), 1 => -1..140_i16], 0..10_u8).prop_map(
        |(pid, prio, new)| match pid {
            0 => (0, 120, "swapper/3".into()),
            _ if new == 0 => (pid, prio, format!("renamed/{pid}")),
            _ => (pid, prio, format!("task-{pid}")),
        },
    )
}

fn what() -> impl Strategy<Value = ExpectedKind> {
    let result = prop_oneof![Just(0_i64), 1..70_000_i64, -5000..0_i64, any::<i64>()];
    let number = || prop_oneof![0..700_i32, any::<i32>()];
    let irq = || prop_oneof![0..30_u32, any::<u32>()];
    prop_oneof![
        4 => (prop_oneof![0..9_u8, Just(15)], who()).prop_map(|(state, next)| ExpectedKind::Switch(state, next)),
        2 => (0..3_u8, who(), prop_oneof![Just(3_u16), any::<u16>()])
            .prop_map(|(wake, woken, cpu)| ExpectedKind::Wake(wake, woken, cpu)),
        1 => irq().prop_map(|irq| ExpectedKind::IrqEntry(irq, format!("irq-{}", irq % 1000))),
        1 => (irq(), any::<bool>()).prop_map(|(irq, handled)| ExpectedKind::IrqExit(irq, handled)),
        1 => number().prop_map(ExpectedKind::SysEnter),
        1 => (number(), result).prop_map(|(number, result)| ExpectedKind::SysExit(number, result)),
        1 => (any::<bool>(), 0..400_u64)
            .prop_map(|(exit, at)| ExpectedKind::Call(exit, 0xffff_ffff_8100_0000 + at * 0x30)),
    ]
}

/// A history of events.
pub(crate) fn history(max: usize) -> impl Strategy<Value = Vec<ExpectedEvent>> {
    let after = prop_oneof![
        4 => 0..100_u64,
        4 => 0..5_000_u64,
        1 => 0..1_000_000_u64,
        // More than a second.
        1 => 0..200_000_000_u64,
    ];
    let expected = (after, who(), what());
    let expected =
        expected.prop_map(|(after, running, what)| ExpectedEvent { after, running, what });
    proptest::collection::vec(expected, 0..max)
}

impl ExpectedEvent {
    /// The line for the packing program.
    pub(crate) fn line(&self, unit: u64) -> String {
        let running = spelled(&self.running);
        match &self.what {
            ExpectedKind::Switch(state, next) => {
                format!("switch {unit} {running} {state} {}", spelled(next))
            }
            ExpectedKind::Wake(wake, woken, cpu) => {
                format!("wake {unit} {running} {wake} {} {cpu}", spelled(woken))
            }
            ExpectedKind::IrqEntry(irq, name) => format!("irq_entry {unit} {running} {irq} {name}"),
            ExpectedKind::IrqExit(irq, handled) => {
                format!("irq_exit {unit} {running} {irq} {}", u8::from(*handled))
            }
            ExpectedKind::SysEnter(number) => {
                format!("sys_enter {unit} {running} {}", number.cast_unsigned())
            }
            ExpectedKind::SysExit(number, result) => {
                let (number, result) = (number.cast_unsigned(), result.cast_unsigned());
                format!("sys_exit {unit} {running} {number} {result}")
            }
            ExpectedKind::Call(exit, address) => {
                format!("call {unit} {running} {} {address}", u8::from(*exit))
            }
        }
    }

    /// Whether it is what came back.
    pub(crate) fn assert_is(&self, event: &Event) {
        assert_eq!(event.running, Some(task(&self.running)), "{self:?}");
        match (&self.what, event.kind.clone()) {
            (ExpectedKind::Switch(expected, who), Kind::Switch { state, next }) => {
                assert_eq!(next, Some(task(who)));
                let raw = match expected {
                    0 => 0,
                    15 => 0x100,
                    place => 1 << (place - 1),
                };
                assert_eq!((state.raw(), state.is_preempted()), (raw, *expected == 15));
            }
            (
                ExpectedKind::Wake(expected, who, cpu),
                Kind::Wake { wake, task: woken, target_cpu },
            ) => {
                assert_eq!(wake, [Wake::Waking, Wake::Wakeup, Wake::New][usize::from(*expected)]);
                assert_eq!((woken, target_cpu), (Some(task(who)), *cpu));
            }
            (ExpectedKind::IrqEntry(expected, name), Kind::Interrupt { irq, what }) => {
                let mut named = [0; 16];
                if *expected < 256 {
                    named[..name.len()].copy_from_slice(name.as_bytes());
                }
                assert_eq!((irq, what), (*expected, Interrupt::Entry(named)));
            }
            (ExpectedKind::IrqExit(expected, handled), Kind::Interrupt { irq, what }) => {
                assert_eq!((irq, what), (*expected, Interrupt::Exit { handled: *handled }));
            }
            (ExpectedKind::SysEnter(expected), Kind::Syscall { number, what }) => {
                assert_eq!((number, what), (*expected, Syscall::Enter));
            }
            (ExpectedKind::SysExit(expected, result), Kind::Syscall { number, what }) => {
                assert_eq!((number, what), (*expected, Syscall::Exit(*result)));
            }
            (ExpectedKind::Call(exit, expected), Kind::Call { address, name, what }) => {
                assert_name(*expected, name.as_deref());
                let expected_what = if *exit { Call::Exit } else { Call::Entry };
                assert_eq!((address, what), (Some(*expected), expected_what));
            }
            (expected, came) => panic!("{expected:?} came back as {came:?}"),
        }
    }
}

/// As the packing program makes them up, cut to what the format carries; or none yet, where the
/// function shares its place among sent ones with another.
pub(crate) fn assert_name(address: u64, name: Option<&str>) {
    let at = address % 1_000_000_007;
    let Some(name) = name else { return };
    assert_ne!(at % 3, 0, "{address:#x} has no name, and was sent {name}");
    let begin = format!("f_{at}");
    let length = begin.len() + usize::try_from(at % 97).unwrap();
    assert_eq!(name, format!("{begin:x<length$}").chars().take(120).collect::<String>());
}

/// pid, priority as it is packed, name.
fn spelled((pid, prio, name): &Who) -> String {
    format!("{pid} {} {name}", prio + 1)
}

fn task((pid, prio, name): &Who) -> Task {
    Task::new(*pid, *prio, name.as_bytes())
}
