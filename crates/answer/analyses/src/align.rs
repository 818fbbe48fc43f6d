//! How guests' clocks relate to their host's: by the TSC offsets that KVM recorded, by what the
//! recorder measured (TIME_SHIFT), and by the times at which vCPUs were in their guests, which the
//! other two are held against.

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

/// A way to bring a guest's times to its host's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Method {
    /// The TSC offsets that KVM set, where host and guest were recorded with `x86-tsc`.
    TscOffset,
    /// What the recorder measured: TIME_SHIFT in the guest's file.
    TimeShift,
    /// Guest events lie between the entries and exits of their vCPU.
    Windows,
}

impl Method {
    /// All methods, the one to be preferred first.
    pub const ALL: [Self; 3] = [Self::TscOffset, Self::TimeShift, Self::Windows];

    /// Its name in options and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TscOffset => "tsc_offset",
            Self::TimeShift => "time_shift",
            Self::Windows => "windows",
        }
    }
}

/// How one CPU of a guest relates to its host, for a stretch of time.
#[derive(Clone, Debug, PartialEq)]
pub struct AlignRow {
    /// CPU number in the guest.
    pub guest_cpu: u32,
    /// Number of the vCPU that is it.
    pub vcpu: u32,
    /// The host's thread that runs it.
    pub thread: u32,
    /// The stretch, on the host's clock.
    pub from_ns: i64,
    /// Its end.
    pub to_ns: i64,
    /// Host's clock less guest's, in the middle of the stretch.
    pub offset_ns: i64,
    /// The truth is no further off in the stretch; `None`: the method doesn't say.
    pub bound_ns: Option<u64>,
    /// How the offset changes: nanoseconds a second.
    pub drift_ppb: f64,
    /// The least and the greatest drift, where the method bounds it.
    pub drifts_ppb: Option<(f64, f64)>,
    /// Events held against the windows of the vCPU.
    pub events: u64,
    /// Those of them that lie outside by more than the bound.
    pub violations: u64,
    /// How far outside the one lies that is furthest.
    pub worst_ns: u64,
}

/// What one method gives for one guest.
#[derive(Clone, Debug, PartialEq)]
pub struct MethodResult {
    pub method: Method,
    /// By CPU and time; empty if the method can't be used.
    pub rows: Vec<AlignRow>,
    /// Why it can't be used, or not for all.
    pub reason: Option<String>,
    /// How far it is from the windows at most, and whether that is within the bounds of both.
    pub from_windows: Option<(u64, bool)>,
}

impl MethodResult {
    fn unusable(method: Method, reason: impl Into<String>) -> Self {
        Self { method, rows: Vec::new(), reason: Some(reason.into()), from_windows: None }
    }

    /// Events held against the windows.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.rows.iter().map(|row| row.events).sum()
    }

    /// Events outside by more than the bound.
    #[must_use]
    pub fn violations(&self) -> u64 {
        self.rows.iter().map(|row| row.violations).sum()
    }
}

/// How one guest's recording relates to its host's.
#[derive(Clone, Debug)]
pub struct GuestAlignment {
    /// Numbers of the recordings: the host's, and the guest's.
    pub host: usize,
    /// See `host`.
    pub guest: usize,
    /// The VM, as the exits report calls it.
    pub vm: String,
    /// Whether times are nanoseconds; else they are ticks.
    pub nanoseconds: bool,
    /// What each method gives, in the order of [`Method::ALL`].
    pub methods: Vec<MethodResult>,
    /// The method chosen: the first without violations, else the windows; `None` if none is usable.
    pub chosen: Option<Method>,
    /// Events of the guest that lie in no stretch of the windows' answer: near its breaks, or
    /// where it has none.
    pub unplaced: u64,
    /// Whether the host has windows to check methods against.
    pub checked: bool,
    relation: Option<Relation>,
}

impl GuestAlignment {
    /// Whether the windows give an answer.
    #[must_use]
    pub fn has_windows(&self) -> bool {
        let windows = self.methods.iter().find(|result| result.method == Method::Windows);
        windows.is_some_and(|result| !result.rows.is_empty())
    }

    /// What the chosen method gives.
    #[must_use]
    pub fn result(&self) -> Option<&MethodResult> {
        self.methods.iter().find(|result| Some(result.method) == self.chosen)
    }
}

/// Aligns all guests among `recordings` to their hosts; with `method`, by that one if it can be
/// used. `tick` receives the number of bytes read: hosts and guests are read once.
#[must_use]
pub fn align(
    recordings: &[Recording],
    method: Option<Method>,
    progress: &(dyn Fn(u64) + Sync),
) -> Vec<GuestAlignment> {
    let mut hosts: HashMap<usize, Host> = HashMap::new();
    let mut all = Vec::new();
    // One for all guests, whatever their recordings hold.
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

/// A host and its guest, read.
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

    /// Each relation, judged and compared with that of the windows, which is the last.
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

    /// Events of a CPU that can be held against windows.
    fn judged(&self, cpu: &CpuOnVcpu) -> u64 {
        self.guest.cpu_stamps(cpu.guest_cpu).map_or(0, |stamps| stamps.own_ns.len() as u64)
    }
}

/// The first method without violations, else the windows, else what there is.
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
