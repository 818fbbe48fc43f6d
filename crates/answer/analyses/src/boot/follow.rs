//! Converts a kernel's boot events to phases and initcalls.

use std::collections::HashMap;

use sources::Recording;

use super::events::{BootEvent, BootEventKind, BootEvents};
use super::initcalls::Table;
use super::{BootMarks, BootedMachine, InPhase, Initcall, MAX_LEVELS, Phase, PhaseKind, phases};

/// The first process, which runs initcalls and becomes init.
const FIRST: u32 = 1;
/// The first level; code without a level follows it.
const CONSOLE: &str = "console";
/// The last level.
const LATE: &str = "late";
/// Programs that shut down a machine.
const DOWN: [&str; 4] = ["reboot", "poweroff", "halt", "shutdown"];

/// Max depth of nested initcalls; the real max is an initcall that loads a module.
const MAX_DEPTH: usize = 64;

pub(super) fn follow(guest: &Recording, events: &BootEvents, marks: &BootMarks) -> BootedMachine {
    let mut machine =
        BootedMachine { nanoseconds: guest.is_nanoseconds(), ..BootedMachine::default() };
    let Some((first_ns, last_ns)) = events.span_ns else { return machine };
    let mut calls = Calls::new(guest);
    for event in &events.events {
        calls.take(event);
    }
    calls.initcalls.extend(calls.open.drain().flat_map(|(_, open)| open));
    calls.initcalls.sort_by_key(|initcall| initcall.from_ns);
    machine.strays = calls.strays;
    machine.initcalls = calls.initcalls;
    let boundaries = Boundaries::find(events, marks, &mut machine);
    machine.phases = boundaries.phases(first_ns, last_ns);
    for event in &events.events {
        count(&mut machine.phases, event);
    }
    for initcall in &machine.initcalls {
        if let Some(phase) = phase_at(&mut machine.phases, initcall.from_ns) {
            add(phase, initcall);
        }
    }
    machine
}

/// Matches starts and ends of initcalls.
struct Calls<'g> {
    guest: &'g Recording,
    table: Table,
    level: Option<String>,
    /// The thread that runs the level's initcalls.
    of_level: u32,
    /// By thread: the module that it just loaded.
    loaded: HashMap<u32, String>,
    /// By thread: open initcalls, the innermost last.
    open: HashMap<u32, Vec<Initcall>>,
    initcalls: Vec<Initcall>,
    strays: u64,
}

impl<'g> Calls<'g> {
    fn new(guest: &'g Recording) -> Self {
        Self {
            guest,
            table: Table::new(guest),
            level: None,
            of_level: 0,
            loaded: HashMap::new(),
            open: HashMap::new(),
            initcalls: Vec::new(),
            strays: 0,
        }
    }

    fn take(&mut self, event: &BootEvent) {
        match &event.what {
            BootEventKind::Level(level) => {
                (self.level, self.of_level) = (Some(level.clone()), event.thread);
            }
            // Levels end with the first program.
            BootEventKind::Exec(_) if event.thread == FIRST => self.level = None,
            BootEventKind::Module(name) => drop(self.loaded.insert(event.thread, name.clone())),
            BootEventKind::Start(address) => self.start(event, *address),
            BootEventKind::Finish(address, result) => self.finish(event, *address, *result),
            _ => {}
        }
    }

    fn start(&mut self, event: &BootEvent, address: u64) {
        let loaded = self.loaded.remove(&event.thread);
        let level =
            self.level.clone().filter(|_| event.thread == self.of_level && loaded.is_none());
        let symbol = self.guest.kallsyms().lookup(address).filter(|symbol| symbol.offset == 0);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        // When the symbols are read, the address of a module's function may already belong to another function.
        let is_its = |owner: Option<&[u8]>| match &loaded {
            Some(module) => owner == Some(module.as_bytes()),
            None => owner.is_none() && level.is_some(),
        };
        let function =
            symbol.filter(|symbol| is_its(symbol.module)).map(|symbol| text(symbol.name));
        let entry = function.as_deref().zip(level.as_deref());
        let entry = entry.and_then(|(function, level)| self.table.take(function, level));
        let open = self.open.entry(event.thread).or_default();
        if open.len() >= MAX_DEPTH {
            // No kernel nests this deep, so these will not end.
            self.initcalls.append(open);
        }
        open.push(Initcall {
            function,
            address,
            is_loaded: level.is_none(),
            module: loaded.or(entry.as_ref().map(|entry| entry.module.clone())),
            section: entry.map(|entry| entry.section),
            level,
            from_ns: event.ns,
            to_ns: None,
            result: None,
            depth: open.len(),
            weight: None,
            host: None,
        });
    }

    fn finish(&mut self, event: &BootEvent, address: u64, result: i64) {
        let open = self.open.entry(event.thread).or_default();
        // The ends of nested initcalls are missing.
        let Some(at) = open.iter().rposition(|initcall| initcall.address == address) else {
            self.strays += 1;
            return;
        };
        let mut ended = open.split_off(at);
        if let Some(initcall) = ended.first_mut() {
            (initcall.to_ns, initcall.result) = (Some(event.ns), Some(result));
        }
        self.initcalls.extend(ended);
    }
}

/// Starts of phases.
#[derive(Debug, Default)]
struct Boundaries {
    all: Vec<(u64, PhaseKind, String)>,
    /// Phases outside of initcalls, and steps of a shutdown: each is recorded once.
    events: Vec<&'static str>,
    goes_down: bool,
    /// Number of levels so far.
    levels: usize,
}

impl Boundaries {
    fn find(events: &BootEvents, marks: &BootMarks, machine: &mut BootedMachine) -> Self {
        let mut found = Self::default();
        for event in &events.events {
            match &event.what {
                BootEventKind::Level(_) if found.levels == MAX_LEVELS => {}
                BootEventKind::Level(level) => {
                    found.levels += 1;
                    found.after_last(machine, event.ns);
                    found.all.push((event.ns, PhaseKind::Level, level.clone()));
                }
                BootEventKind::Exec(program) if event.thread == FIRST && machine.init.is_none() => {
                    found.after_last(machine, event.ns);
                    machine.init = Some((program.clone(), event.ns));
                    found.all.push((event.ns, PhaseKind::User, program.clone()));
                }
                BootEventKind::Exec(program) if !found.goes_down && shuts_down(program) => {
                    found.go_down(event.ns, program);
                }
                BootEventKind::Mark(text) => found.mark(event.ns, text, marks, machine),
                BootEventKind::Down(step) => found.down(event.ns, step),
                _ => {}
            }
        }
        found
    }

    /// Adds a phase after the initcalls of the first and of the last level.
    fn after_last(&mut self, machine: &BootedMachine, next_ns: u64) {
        let Some((from_ns, PhaseKind::Level, level)) = self.all.last() else { return };
        let name = match level.as_str() {
            CONSOLE => "start_kernel",
            LATE => "before init",
            _ => return,
        };
        if self.events.contains(&name) {
            return;
        }
        let is_its = |initcall: &&Initcall| {
            initcall.level.as_ref() == Some(level) && initcall.from_ns >= *from_ns
        };
        let ends = machine.initcalls.iter().filter(is_its).filter_map(|initcall| initcall.to_ns);
        if let Some(end_ns) = ends.max().filter(|end_ns| *end_ns < next_ns) {
            self.all.push((end_ns, PhaseKind::Kernel, name.to_owned()));
        }
        self.events.push(name);
    }

    fn go_down(&mut self, ns: u64, name: &str) {
        self.goes_down = true;
        self.all.push((ns, PhaseKind::Shutdown, name.to_owned()));
    }

    fn mark(&mut self, ns: u64, text: &str, marks: &BootMarks, machine: &mut BootedMachine) {
        if marks.is_down(text) && !self.goes_down {
            self.go_down(ns, text);
        } else if marks.is_until(text) && machine.mark.is_none() && machine.init.is_some() {
            machine.mark = Some((text.to_owned(), ns));
            self.all.push((ns, PhaseKind::Running, text.to_owned()));
        }
    }

    fn down(&mut self, ns: u64, step: &'static str) {
        if !self.events.contains(&step) {
            self.events.push(step);
            self.go_down(ns, step);
        }
    }

    /// The phases from the guest's first event to its last.
    fn phases(mut self, first_ns: u64, last_ns: u64) -> Vec<Phase> {
        let first = self.all.first();
        if first.is_none_or(|(ns, ..)| *ns > first_ns) {
            let is_of_boot = |kind| matches!(kind, PhaseKind::Level | PhaseKind::User);
            let boots = self.all.iter().any(|(_, kind, _)| is_of_boot(*kind));
            let (kind, name) = if boots {
                (PhaseKind::Kernel, "start_kernel")
            } else {
                (PhaseKind::Running, "recorded")
            };
            self.all.insert(0, (first_ns, kind, name.to_owned()));
        }
        phases(self.all, last_ns, Some(&InPhase::default()))
    }
}

/// Whether a program shuts down the machine.
fn shuts_down(program: &str) -> bool {
    DOWN.contains(&program.rsplit('/').next().unwrap_or(program))
}

fn phase_at(phases: &mut [Phase], ns: u64) -> Option<&mut Phase> {
    let after = phases.partition_point(|phase| phase.from_ns <= ns);
    phases.get_mut(after.checked_sub(1)?)
}

fn count(phases: &mut [Phase], event: &BootEvent) {
    let Some(guest) = phase_at(phases, event.ns).and_then(|phase| phase.guest.as_mut()) else {
        return;
    };
    match event.what {
        BootEventKind::Fork => guest.forks += 1,
        BootEventKind::Exec(_) => guest.execs += 1,
        BootEventKind::Module(_) => guest.modules += 1,
        _ => {}
    }
}

fn add(phase: &mut Phase, initcall: &Initcall) {
    let end_ns = initcall.to_ns.map(|to_ns| to_ns.min(phase.to_ns));
    let time_ns = end_ns.map_or(0, |end_ns| end_ns.saturating_sub(initcall.from_ns));
    let Some(guest) = &mut phase.guest else { return };
    guest.initcalls += 1;
    guest.unfinished += u64::from(initcall.to_ns.is_none());
    if initcall.depth > 0 {
        return;
    }
    guest.initcalls_ns = guest.initcalls_ns.saturating_add(time_ns);
    let Some(section) = &initcall.section else { return };
    match guest.sections.iter_mut().find(|(name, ..)| name == section) {
        Some((_, count, sum)) => (*count, *sum) = (*count + 1, sum.saturating_add(time_ns)),
        None => guest.sections.push((section.clone(), 1, time_ns)),
    }
}
