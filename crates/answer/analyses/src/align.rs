//! Relates guests' clocks to their host's. There are three methods: the TSC offsets that KVM recorded, the offsets
//! that the recorder measured (TIME_SHIFT), and the windows in which vCPUs were in the guest. The windows also
//! check the other two.

mod apply;
mod guests;
mod host;
mod judge;
mod mapping;
mod stamps;
mod time_shift;
mod tsc_offset;
mod tsc_writes;

use std::collections::HashMap;

use sources::Recording;
use timeline::align::{Budget, Piece, Unsolved};

use host::Host;
use judge::Relation;
use mapping::CpuOnVcpu;
use stamps::GuestStamps;

use guests::{GuestOf, guests};

/// A method to convert a guest's times to its host's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Method {
    /// TSC offsets that KVM set; needs recordings of host and guest with the clock `x86-tsc`.
    TscOffset,
    /// Offsets that the recorder measured: TIME_SHIFT in the guest's file.
    TimeShift,
    /// Guest events can only lie between an entry and the next exit of their vCPU.
    Windows,
}

impl Method {
    /// All methods in the order of preference.
    pub const ALL: [Self; 3] = [Self::TscOffset, Self::TimeShift, Self::Windows];

    /// Name in options and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TscOffset => "tsc_offset",
            Self::TimeShift => "time_shift",
            Self::Windows => "windows",
        }
    }
}

/// Offset between one CPU of a guest and the host over a time range.
#[derive(Clone, Debug, PartialEq)]
pub struct AlignRow {
    /// CPU number in the guest.
    pub guest_cpu: u32,
    /// Number of the vCPU that runs this CPU.
    pub vcpu: u32,
    /// The vCPU's thread on the host.
    pub thread: u32,
    /// Start of the range, on the host's clock.
    pub from_ns: i64,
    /// End of the range.
    pub to_ns: i64,
    /// Host's clock minus guest's clock in the middle of the range.
    pub offset_ns: i64,
    /// Max error of the offset in the range; `None` if the method has no bound.
    pub bound_ns: Option<u64>,
    /// Change of the offset, in nanoseconds per second.
    pub drift_ppb: f64,
    /// Min and max drift, if the method bounds it.
    pub drifts_ppb: Option<(f64, f64)>,
    /// Events checked against the vCPU's windows.
    pub events: u64,
    /// Events outside all windows by more than the bound.
    pub violations: u64,
    /// Largest distance of an event from its window.
    pub worst_ns: u64,
}

/// Result of one method for one guest.
#[derive(Clone, Debug, PartialEq)]
pub struct MethodResult {
    pub method: Method,
    /// Offsets by CPU and time; empty if the method is unusable.
    pub rows: Vec<AlignRow>,
    /// Why the method is unusable, for all or some CPUs.
    pub reason: Option<String>,
    /// Max difference from the windows' offsets, and whether it is within the bounds of both.
    pub from_windows: Option<(u64, bool)>,
}

impl MethodResult {
    fn unusable(method: Method, reason: impl Into<String>) -> Self {
        Self { method, rows: Vec::new(), reason: Some(reason.into()), from_windows: None }
    }

    /// Events checked against the windows.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.rows.iter().map(|row| row.events).sum()
    }

    /// Events outside all windows by more than the bound.
    #[must_use]
    pub fn violations(&self) -> u64 {
        self.rows.iter().map(|row| row.violations).sum()
    }
}

/// Alignment of one guest's recording to its host's.
#[derive(Clone, Debug)]
pub struct GuestAlignment {
    /// Index of the host's recording.
    pub host: usize,
    /// Index of the guest's recording.
    pub guest: usize,
    /// The VM's name in the exits report.
    pub vm: String,
    /// Whether times are nanoseconds; else they are ticks.
    pub nanoseconds: bool,
    /// Results in the order of [`Method::ALL`].
    pub methods: Vec<MethodResult>,
    /// The method chosen: the first without violations, else the windows; `None` if none is usable.
    pub chosen: Option<Method>,
    /// Guest events in no time range of the windows' result: near its breaks, or where it has none.
    pub unplaced: u64,
    /// Whether the host has windows to check methods against.
    pub checked: bool,
    relation: Option<Relation>,
}

impl GuestAlignment {
    /// Whether the windows have a result.
    #[must_use]
    pub fn has_windows(&self) -> bool {
        let windows = self.methods.iter().find(|result| result.method == Method::Windows);
        windows.is_some_and(|result| !result.rows.is_empty())
    }

    /// Result of the chosen method.
    #[must_use]
    pub fn result(&self) -> Option<&MethodResult> {
        self.methods.iter().find(|result| Some(result.method) == self.chosen)
    }
}

/// Aligns all guests among `recordings` to their hosts. If `method` is given and usable, it is chosen. `progress`
/// receives the number of bytes read: hosts and guests are read once.
#[must_use]
pub fn align(
    recordings: &[Recording],
    method: Option<Method>,
    progress: &(dyn Fn(u64) + Sync),
) -> Vec<GuestAlignment> {
    let mut hosts: HashMap<usize, Host> = HashMap::new();
    let mut all = Vec::new();
    // All guests share one budget, so recordings cannot multiply it.
    let mut budget = Budget::default();
    let pairs = guests(recordings, progress);
    for (at, pair) in pairs.iter().enumerate() {
        let (Some(host_recording), Some(guest_recording)) =
            (recordings.get(pair.host), recordings.get(pair.guest))
        else {
            continue;
        };
        let host = hosts.entry(pair.host).or_insert_with(|| Host::read(host_recording, progress));
        let guest = GuestStamps::read(guest_recording, progress);
        let question = Question { host_recording, guest_recording, host, guest: &guest };
        let answer = |budget: &mut Budget| question.answer(pair, method, budget);
        all.push(budget.share(pairs.len() - at, answer));
    }
    all
}

/// A host and a guest after they were read.
struct Question<'r> {
    host_recording: &'r Recording,
    guest_recording: &'r Recording,
    host: &'r Host,
    guest: &'r GuestStamps,
}

impl Question<'_> {
    fn answer(
        &self,
        pair: &GuestOf,
        method: Option<Method>,
        budget: &mut Budget,
    ) -> GuestAlignment {
        let same_unit =
            self.host_recording.is_nanoseconds() == self.guest_recording.is_nanoseconds();
        let solved = mapping::solve(self, pair, same_unit, budget);
        let relations = [
            tsc_offset::relation(self, &solved.cpus),
            time_shift::relation(self, &solved.cpus),
            windows(&solved, same_unit),
        ];
        let methods = self.results(&solved, &relations);
        let chosen = choose(&methods, method);
        let placed = methods.iter().find(|result| result.method == Method::Windows);
        let placed = placed.map_or(0, MethodResult::events);
        let events: u64 = solved.cpus.iter().map(|cpu| self.judged(cpu)).sum();
        let is_checked =
            |cpu: &CpuOnVcpu| self.host.away(cpu.index).is_some_and(|away| !away.is_empty());
        let by_method = Method::ALL.into_iter().zip(relations);
        let relation = by_method.filter(|(method, _)| Some(*method) == chosen);
        GuestAlignment {
            host: pair.host,
            guest: pair.guest,
            vm: solved.vm.clone(),
            nanoseconds: self.host_recording.is_nanoseconds(),
            methods,
            chosen,
            unplaced: events.saturating_sub(placed),
            checked: solved.cpus.iter().any(is_checked),
            relation: relation.into_iter().find_map(|(_, relation)| relation.ok()),
        }
    }

    /// Judges each relation and compares it with the windows' relation, which is the last.
    fn results(
        &self,
        solved: &mapping::Solved,
        relations: &[Result<Relation, String>],
    ) -> Vec<MethodResult> {
        let by_windows = relations.last().and_then(|relation| relation.as_ref().ok());
        let result = |(method, relation): (Method, &Result<Relation, String>)| {
            let relation = match relation {
                Ok(relation) => relation,
                Err(reason) => return MethodResult::unusable(method, reason),
            };
            let is_windows = method == Method::Windows;
            let others = by_windows.filter(|_| !is_windows);
            MethodResult {
                method,
                rows: judge::rows(self, &solved.cpus, relation),
                reason: solved.reason().filter(|_| is_windows),
                from_windows: others.and_then(|windows| judge::compare(relation, windows)),
            }
        };
        Method::ALL.into_iter().zip(relations).map(result).collect()
    }

    /// Number of a CPU's events to check against windows.
    fn judged(&self, cpu: &CpuOnVcpu) -> u64 {
        self.guest.cpu_stamps(cpu.guest_cpu).map_or(0, |stamps| stamps.own_ns.len() as u64)
    }
}

/// The first method without violations, else the windows, else the first usable method.
fn choose(methods: &[MethodResult], wanted: Option<Method>) -> Option<Method> {
    let usable = || methods.iter().filter(|result| !result.rows.is_empty());
    if wanted.is_some() {
        return usable().map(|result| result.method).find(|method| Some(*method) == wanted);
    }
    let sound = usable().find(|result| result.violations() == 0);
    let windows = || usable().find(|result| result.method == Method::Windows);
    sound.or_else(windows).or_else(|| usable().next()).map(|result| result.method)
}

fn windows(solved: &mapping::Solved, same_unit: bool) -> Result<Relation, String> {
    let pieces: Vec<(u32, &[Piece])> = solved
        .cpus
        .iter()
        .filter(|cpu| !cpu.pieces.is_empty())
        .map(|cpu| (cpu.guest_cpu, cpu.pieces.as_slice()))
        .collect();
    if !pieces.is_empty() {
        return Ok(Relation::of_pieces(&pieces));
    }
    Err(match solved.unsolved {
        _ if !same_unit => {
            "one recording's clock counts nanoseconds, the other's counts ticks".to_owned()
        }
        Some(unsolved) => why(unsolved).to_owned(),
        None => "no vCPU of the host matches a CPU of the guest".to_owned(),
    })
}

fn why(unsolved: Unsolved) -> &'static str {
    match unsolved {
        Unsolved::NothingRecorded => {
            "alignment needs kvm_entry and kvm_exit from the host, and guest events from the same time"
        }
        Unsolved::NoOffsetFits => {
            "with every offset, some guest events fall outside the windows of their vCPUs"
        }
        Unsolved::SeveralOffsetsFit => "several offsets that are far apart fit all events",
        Unsolved::TooFewEvents => "there are too few events: an offset could fit them by chance",
        Unsolved::OverBudget => {
            "the search for an offset reached the step limit of one command; --vm NAME searches the vCPUs of one VM only, --from \
             and --to a shorter time"
        }
    }
}
