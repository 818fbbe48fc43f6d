//! Finds the vCPU of each guest CPU by matching its events with windows, and the lines from clock to clock.

use std::collections::{HashMap, HashSet};

use timeline::VmVcpu;
use timeline::align::{Away, Budget, Piece, Unsolved};

use super::stamps::CpuStamps;
use super::{GuestOf, Question};

/// A guest CPU and its vCPU.
#[derive(Clone, Debug)]
pub(super) struct CpuOnVcpu {
    pub(super) guest_cpu: u32,
    pub(super) index: usize,
    /// Number of the vCPU in the VM.
    pub(super) vcpu: u32,
    /// The vCPU's thread on the host.
    pub(super) thread: u32,
    /// Pieces that the windows give; empty if there are none.
    pub(super) pieces: Vec<Piece>,
}

/// Result for a guest.
#[derive(Clone, Debug)]
pub(super) struct Solved {
    pub(super) vm: String,
    pub(super) cpus: Vec<CpuOnVcpu>,
    /// Why the windows give no result.
    pub(super) unsolved: Option<Unsolved>,
    /// Guest CPUs without a vCPU.
    lonely: Vec<u32>,
    /// Whether the search for vCPUs reached its limit.
    gave_up: bool,
}

impl Solved {
    /// Explains an incomplete result.
    pub(super) fn reason(&self) -> Option<String> {
        let lonely: Vec<String> = self.lonely.iter().map(u32::to_string).collect();
        let cpus = (!lonely.is_empty()).then(|| lonely.join(", "))?;
        Some(if self.gave_up {
            format!(
                "the search reached its limit before it found a vCPU for CPU {cpus} of the guest"
            )
        } else {
            format!("no vCPU matches CPU {cpus} of the guest")
        })
    }
}

/// Max CPUs to try as the first, busiest first.
const MAX_ANCHORS: usize = 3;
/// A match that covers less of a CPU's events can be a coincidence.
const MIN_COVERED: f64 = 0.5;
/// A vCPU matches if at most this share of the CPU's events is outside its windows.
const MAX_OUTSIDE: f64 = 0.002;

/// Finds the vCPUs of a guest, and the relation of its clock to the host's.
pub(super) fn solve_guest(question: &Question<'_>, pair: &GuestOf, budget: &mut Budget) -> Solved {
    let vms: Vec<VmVcpus<'_>> = candidates(question, pair)
        .into_iter()
        .filter_map(|vm| VmVcpus::new(question, pair, vm))
        .collect();
    let mut busiest: Vec<&CpuStamps> = question.guest.cpus().collect();
    busiest.sort_by_key(|cpu| std::cmp::Reverse(cpu.own_ns.len()));
    let anchors = busiest.get(..MAX_ANCHORS).unwrap_or(&busiest);
    let vcpus: usize = vms.iter().map(|vm| vm.all.len()).sum();
    let mut remaining = anchors.len() * vcpus;
    let mut unsolved = Unsolved::NothingRecorded;
    for anchor in anchors {
        for vm in &vms {
            match place_anchor(question, anchor, vm, (&mut remaining, budget)) {
                Ok(mapped) => return place_others(question, vm, mapped, &busiest, budget),
                Err(_) if unsolved == Unsolved::OverBudget => {}
                Err(why) => unsolved = why,
            }
        }
    }
    Solved { unsolved: Some(unsolved), ..by_number(question, pair) }
}

/// [`solve_guest`]; if the clocks have different units, matches CPUs by number.
pub(super) fn solve(
    question: &Question<'_>,
    pair: &GuestOf,
    comparable: bool,
    budget: &mut Budget,
) -> Solved {
    if comparable { solve_guest(question, pair, budget) } else { by_number(question, pair) }
}

/// Indexes of the VMs that the guest may be: the one that the host's recording names, otherwise all.
fn candidates(question: &Question<'_>, pair: &GuestOf) -> Vec<usize> {
    let vms = question.host.vms.iter().enumerate();
    let threads = pair.named.as_ref().map(|(_, vcpus)| vcpus.as_slice()).unwrap_or_default();
    let threads: HashSet<u32> = threads.iter().map(|(_, thread)| *thread).collect();
    let named: Vec<usize> = vms
        .clone()
        .filter(|(_, vm)| vm.vcpus.iter().any(|vcpu| threads.contains(&vcpu.thread)))
        .map(|(at, _)| at)
        .collect();
    if named.is_empty() { vms.map(|(at, _)| at).collect() } else { named }
}

/// The vCPUs of a VM, and hints which guest CPU each is.
struct VmVcpus<'q> {
    name: &'q str,
    all: &'q [VmVcpu],
    by_number: HashMap<u32, VmVcpu>,
    /// vCPUs by guest CPU, as named in the host's recording.
    named: HashMap<u32, VmVcpu>,
}

impl<'q> VmVcpus<'q> {
    fn new(question: &Question<'q>, pair: &GuestOf, vm: usize) -> Option<Self> {
        let vm = question.host.vms.get(vm)?;
        let mut by_number = HashMap::new();
        for vcpu in &vm.vcpus {
            by_number.entry(vcpu.vcpu).or_insert(*vcpu);
        }
        let by_thread: HashMap<u32, VmVcpu> =
            vm.vcpus.iter().map(|vcpu| (vcpu.thread, *vcpu)).collect();
        let threads = pair.named.as_ref().map(|(_, vcpus)| vcpus.as_slice()).unwrap_or_default();
        let mut named = HashMap::new();
        for (cpu, thread) in threads {
            if let Some(vcpu) = by_thread.get(thread) {
                named.entry(*cpu).or_insert(*vcpu);
            }
        }
        Some(Self { name: &vm.name, all: &vm.vcpus, by_number, named })
    }

    /// The vCPU that the recording names for a guest CPU, then the one with its number.
    fn expected(&self, cpu: u32) -> impl Iterator<Item = VmVcpu> {
        let named = self.named.get(&cpu).copied();
        let by_number = self.by_number.get(&cpu).copied();
        named.into_iter().chain(by_number.filter(move |vcpu| Some(*vcpu) != named))
    }

    /// All vCPUs, the most probable first, and whether each is an expected one.
    fn likely(&self, cpu: u32) -> impl Iterator<Item = (VmVcpu, bool)> {
        let expected: Vec<VmVcpu> = self.expected(cpu).collect();
        let others = self.all.iter().copied();
        let first = expected.clone().into_iter().map(|vcpu| (vcpu, true));
        first.chain(others.filter(move |vcpu| !expected.contains(vcpu)).map(|vcpu| (vcpu, false)))
    }
}

/// `remaining` is the number of searches left, including this one.
fn place_anchor(
    question: &Question<'_>,
    anchor: &CpuStamps,
    vm: &VmVcpus<'_>,
    (remaining, budget): (&mut usize, &mut Budget),
) -> Result<CpuOnVcpu, Unsolved> {
    let mut unsolved = Unsolved::NothingRecorded;
    let mut best: Option<(f64, CpuOnVcpu)> = None;
    for (vcpu, _) in vm.likely(anchor.cpu) {
        let count = *remaining;
        *remaining = remaining.saturating_sub(1);
        let Some(away) = question.host.away(vcpu.index) else { continue };
        match budget.share(count, |budget| solve_one(&anchor.own_ns, away, budget)) {
            Ok((covered, pieces)) => {
                if best.as_ref().is_none_or(|(max, _)| covered > *max) {
                    best = Some((covered, on(anchor.cpu, vcpu, pieces)));
                }
                if covered > 0.9 {
                    break;
                }
            }
            Err(_) if unsolved == Unsolved::OverBudget => {}
            Err(why) => unsolved = why,
        }
    }
    best.map(|(_, mapped)| mapped).ok_or(unsolved)
}

fn on(guest_cpu: u32, vcpu: VmVcpu, pieces: Vec<Piece>) -> CpuOnVcpu {
    CpuOnVcpu { guest_cpu, index: vcpu.index, vcpu: vcpu.vcpu, thread: vcpu.thread, pieces }
}

/// The pieces, and the share of events that they cover.
fn solve_one(
    stamps: &[i64],
    away: &Away,
    budget: &mut Budget,
) -> Result<(f64, Vec<Piece>), Unsolved> {
    let pieces = timeline::align::solve(stamps, away, budget)?;
    let covered = |piece: &Piece| {
        stamps.partition_point(|&stamp| stamp <= piece.to_ns)
            - stamps.partition_point(|&stamp| stamp < piece.from_ns)
    };
    let covered: usize = pieces.iter().map(covered).sum();
    let part = covered as f64 / stamps.len().max(1) as f64;
    if part < MIN_COVERED { Err(Unsolved::NoOffsetFits) } else { Ok((part, pieces)) }
}

/// Guest CPUs with their vCPUs.
struct MappedCpus<'q> {
    question: &'q Question<'q>,
    vm: &'q VmVcpus<'q>,
    /// The clock that most CPUs of the guest share.
    shared: Vec<Piece>,
    sharing: Vec<CpuOnVcpu>,
    /// CPUs with a clock of their own.
    others: Vec<CpuOnVcpu>,
    lonely: Vec<u32>,
    /// Indexes of vCPUs that already have a guest CPU.
    assigned_vcpus: HashSet<usize>,
    gave_up: bool,
}

impl<'q> MappedCpus<'q> {
    fn away(&self, vcpu: VmVcpu) -> Option<&'q Away> {
        self.question.host.away(vcpu.index)
    }

    /// Finds the vCPU of a CPU. Tries the shared clock first, and narrows its pieces if the CPU matches.
    fn place(&mut self, cpu: &CpuStamps, budget: &mut Budget) {
        if let Some((vcpu, away)) = self.on_shared_clock(cpu, budget) {
            for piece in &mut self.shared {
                // If the CPU contradicts a piece, the piece keeps its bound.
                let _ = piece.narrow_by(&cpu.own_ns, away);
            }
            self.assigned_vcpus.insert(vcpu.index);
            self.sharing.push(on(cpu.cpu, vcpu, Vec::new()));
        } else if let Some(mapped) = self.on_own_clock(cpu, budget) {
            self.assigned_vcpus.insert(mapped.index);
            self.others.push(mapped);
        } else {
            self.gave_up |= budget.is_spent();
            self.lonely.push(cpu.cpu);
        }
    }

    /// The vCPU whose windows contain the CPU's events on the shared clock. Tests of expected vCPUs do not count
    /// against the budget, because there are only two per CPU.
    fn on_shared_clock(&self, cpu: &CpuStamps, budget: &mut Budget) -> Option<(VmVcpu, &'q Away)> {
        for (vcpu, is_expected) in self.vm.likely(cpu.cpu) {
            let is_taken = self.assigned_vcpus.contains(&vcpu.index);
            if !is_expected {
                budget.spend(if is_taken { 1 } else { cpu.own_ns.len() });
                if budget.is_spent() {
                    break;
                }
            }
            let Some(away) = self.away(vcpu).filter(|_| !is_taken) else { continue };
            if outside(cpu, away, &self.shared) <= MAX_OUTSIDE {
                return Some((vcpu, away));
            }
        }
        None
    }

    fn on_own_clock(&self, cpu: &CpuStamps, budget: &mut Budget) -> Option<CpuOnVcpu> {
        let mut remaining = self.vm.all.len().saturating_sub(self.assigned_vcpus.len());
        for (vcpu, _) in self.vm.likely(cpu.cpu) {
            budget.spend(1);
            if budget.is_spent() {
                break;
            }
            if self.assigned_vcpus.contains(&vcpu.index) {
                continue;
            }
            let count = remaining;
            remaining = remaining.saturating_sub(1);
            let Some(away) = self.away(vcpu) else { continue };
            let solved = budget.share(count, |budget| solve_one(&cpu.own_ns, away, budget));
            if let Ok((_, pieces)) = solved {
                return Some(on(cpu.cpu, vcpu, pieces));
            }
        }
        None
    }

    fn finish(mut self) -> Solved {
        for cpu in &mut self.sharing {
            cpu.pieces.clone_from(&self.shared);
        }
        let mut cpus = self.sharing;
        cpus.extend(self.others);
        cpus.sort_by_key(|cpu| cpu.guest_cpu);
        self.lonely.sort_unstable();
        let (vm, lonely, gave_up) = (self.vm.name.to_owned(), self.lonely, self.gave_up);
        Solved { vm, cpus, unsolved: None, lonely, gave_up }
    }
}

/// Finds the vCPUs of the remaining guest CPUs.
fn place_others(
    question: &Question<'_>,
    vm: &VmVcpus<'_>,
    anchor: CpuOnVcpu,
    busiest: &[&CpuStamps],
    budget: &mut Budget,
) -> Solved {
    let first = anchor.guest_cpu;
    let mut mapped = MappedCpus {
        question,
        vm,
        shared: anchor.pieces.clone(),
        assigned_vcpus: HashSet::from([anchor.index]),
        sharing: vec![anchor],
        others: Vec::new(),
        lonely: Vec::new(),
        gave_up: false,
    };
    let others: Vec<&CpuStamps> = busiest.iter().copied().filter(|cpu| cpu.cpu != first).collect();
    for (at, cpu) in others.iter().enumerate() {
        budget.share(others.len() - at, |budget| mapped.place(cpu, budget));
    }
    mapped.finish()
}

/// The share of a CPU's events at times when the vCPU was not in the guest, by more than the bounds.
fn outside(cpu: &CpuStamps, away: &Away, pieces: &[Piece]) -> f64 {
    let (mut events, mut outside) = (0_u64, 0_u64);
    for piece in pieces {
        let begin = cpu.own_ns.partition_point(|&stamp| stamp < piece.from_ns);
        let end = cpu.own_ns.partition_point(|&stamp| stamp <= piece.to_ns);
        for &stamp in cpu.own_ns.get(begin..end).unwrap_or_default() {
            let host_ns = stamp.saturating_add(piece.line.offset_at(stamp));
            let bound = i64::try_from(piece.bound_ns).unwrap_or(i64::MAX);
            events += 1;
            let possible =
                away.possible(host_ns.saturating_sub(bound), host_ns.saturating_add(bound));
            outside += u64::from(possible.is_none());
        }
    }
    outside as f64 / events.max(1) as f64
}

/// Matches CPUs and vCPUs by the host's names or by number, in the named VM or the only one.
fn by_number(question: &Question<'_>, pair: &GuestOf) -> Solved {
    let empty = Solved {
        vm: String::new(),
        cpus: Vec::new(),
        unsolved: None,
        lonely: Vec::new(),
        gave_up: false,
    };
    let vms = candidates(question, pair);
    let only = match vms.as_slice() {
        [vm] => VmVcpus::new(question, pair, *vm),
        _ => None,
    };
    let Some(vm) = only else {
        let name = pair.named.as_ref().map(|(name, _)| name.clone());
        return Solved { vm: name.unwrap_or_default(), ..empty };
    };
    let found =
        |cpu: &CpuStamps| vm.likely(cpu.cpu).next().map(|(vcpu, _)| on(cpu.cpu, vcpu, Vec::new()));
    let cpus = question.guest.cpus().filter_map(found).collect();
    Solved { vm: vm.name.to_owned(), cpus, ..empty }
}
