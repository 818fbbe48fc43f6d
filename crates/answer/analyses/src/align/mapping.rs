//! Which vCPU each CPU of a guest is, found by where its events fit, and the lines from clock to
//! clock that come with it.

use timeline::VmVcpu;
use timeline::align::{Away, Piece, Unsolved};

use super::stamps::CpuStamps;
use super::{GuestOf, Question};

/// A CPU of a guest and the vCPU that is it.
#[derive(Clone, Debug)]
pub(super) struct CpuOnVcpu {
    pub(super) guest_cpu: u32,
    /// Index of the vCPU on the host.
    pub(super) index: usize,
    /// Its number within the VM.
    pub(super) vcpu: u32,
    /// The host's thread that runs it.
    pub(super) thread: u32,
    /// What the windows say; empty where they do not.
    pub(super) pieces: Vec<Piece>,
}

/// What is found for a guest.
#[derive(Clone, Debug)]
pub(super) struct Solved {
    pub(super) vm: String,
    pub(super) cpus: Vec<CpuOnVcpu>,
    /// Why the windows give no answer.
    pub(super) unsolved: Option<Unsolved>,
    /// CPUs of the guest that fit no vCPU.
    lonely: Vec<u32>,
}

impl Solved {
    /// What the answer lacks.
    pub(super) fn reason(&self) -> Option<String> {
        let lonely: Vec<String> = self.lonely.iter().map(u32::to_string).collect();
        let some = (!lonely.is_empty()).then(|| lonely.join(", "));
        some.map(|cpus| format!("no vCPU fits CPU {cpus} of the guest"))
    }
}

/// CPUs that are tried in turn for a beginning, busiest first.
const MOST_ANCHORS: usize = 3;
/// An answer that covers less of a CPU's events than this may be chance.
const LEAST_COVERED: f64 = 0.5;
/// A CPU's events fit a vCPU if no more than this part of them is outside.
const MOST_OUTSIDE: f64 = 0.002;

/// Finds the vCPUs of a guest, and how its clock relates to theirs.
pub(super) fn solve_guest(question: &Question<'_>, pair: &GuestOf) -> Solved {
    let vms = candidates(question, pair);
    let mut busiest: Vec<&CpuStamps> = question.guest.cpus().collect();
    busiest.sort_by_key(|cpu| std::cmp::Reverse(cpu.own_ns.len()));
    let mut unsolved = Unsolved::NothingRecorded;
    for anchor in busiest.iter().take(MOST_ANCHORS) {
        for &vm in &vms {
            match place_anchor(question, pair, anchor, vm) {
                Ok(mapped) => return place_others(question, pair, vm, mapped, &busiest),
                Err(why) => unsolved = why,
            }
        }
    }
    Solved { unsolved: Some(unsolved), ..by_number(question, pair) }
}

/// [`solve_guest`]; where the clocks can't be compared, CPUs are matched by number.
pub(super) fn solve(question: &Question<'_>, pair: &GuestOf, comparable: bool) -> Solved {
    if comparable { solve_guest(question, pair) } else { by_number(question, pair) }
}

/// Numbers of the VMs the guest may be: the one that the host names, else all.
fn candidates(question: &Question<'_>, pair: &GuestOf) -> Vec<usize> {
    let vms = question.host.vms.iter().enumerate();
    let threads = pair.named.as_ref().map(|(_, vcpus)| vcpus.as_slice()).unwrap_or_default();
    let is_named = |thread| threads.iter().any(|(_, named)| *named == thread);
    let named: Vec<usize> = vms
        .clone()
        .filter(|(_, vm)| vm.vcpus.iter().any(|vcpu| is_named(vcpu.thread)))
        .map(|(at, _)| at)
        .collect();
    if named.is_empty() { vms.map(|(at, _)| at).collect() } else { named }
}

/// vCPUs of a VM in the order in which they are likely to be a CPU of the guest.
fn likely(question: &Question<'_>, pair: &GuestOf, vm: usize, cpu: u32) -> Vec<VmVcpu> {
    let vcpus = question.host.vms.get(vm).map(|vm| vm.vcpus.clone()).unwrap_or_default();
    let threads = pair.named.as_ref().map(|(_, vcpus)| vcpus.as_slice()).unwrap_or_default();
    let named = threads.iter().find(|(named, _)| *named == cpu).map(|(_, thread)| *thread);
    let mut likely = vcpus;
    likely.sort_by_key(|vcpu| (Some(vcpu.thread) != named, vcpu.vcpu != cpu));
    likely
}

fn place_anchor(
    question: &Question<'_>,
    pair: &GuestOf,
    anchor: &CpuStamps,
    vm: usize,
) -> Result<CpuOnVcpu, Unsolved> {
    let mut unsolved = Unsolved::NothingRecorded;
    let mut best: Option<(f64, CpuOnVcpu)> = None;
    for vcpu in likely(question, pair, vm, anchor.cpu) {
        let Some(away) = question.host.away(vcpu.index) else { continue };
        match solve_one(&anchor.own_ns, away) {
            Ok((covered, pieces)) => {
                if best.as_ref().is_none_or(|(most, _)| covered > *most) {
                    best = Some((covered, on(anchor.cpu, vcpu, pieces)));
                }
                if covered > 0.9 {
                    break;
                }
            }
            Err(why) => unsolved = why,
        }
    }
    best.map(|(_, mapped)| mapped).ok_or(unsolved)
}

fn on(guest_cpu: u32, vcpu: VmVcpu, pieces: Vec<Piece>) -> CpuOnVcpu {
    CpuOnVcpu { guest_cpu, index: vcpu.index, vcpu: vcpu.vcpu, thread: vcpu.thread, pieces }
}

/// The lines, and which part of the events they cover.
fn solve_one(stamps: &[i64], away: &Away) -> Result<(f64, Vec<Piece>), Unsolved> {
    let pieces = timeline::align::solve(stamps, away)?;
    let covered = |piece: &Piece| {
        stamps.partition_point(|&stamp| stamp <= piece.to_ns)
            - stamps.partition_point(|&stamp| stamp < piece.from_ns)
    };
    let covered: usize = pieces.iter().map(covered).sum();
    let part = covered as f64 / stamps.len().max(1) as f64;
    if part < LEAST_COVERED { Err(Unsolved::NoOffsetFits) } else { Ok((part, pieces)) }
}

/// CPUs of a guest that have found their vCPUs.
struct MappedCpus<'q> {
    question: &'q Question<'q>,
    /// The clock that CPUs of a guest share, mostly.
    shared: Vec<Piece>,
    sharing: Vec<CpuOnVcpu>,
    /// CPUs with clocks of their own.
    others: Vec<CpuOnVcpu>,
    lonely: Vec<u32>,
}

impl MappedCpus<'_> {
    fn is_taken(&self, vcpu: &VmVcpu) -> bool {
        self.sharing.iter().chain(&self.others).any(|cpu| cpu.index == vcpu.index)
    }

    /// Gives a CPU one of these vCPUs: what is known of the clock is tried first, and made more
    /// exact by all that it fits.
    fn place(&mut self, cpu: &CpuStamps, free: &[VmVcpu]) {
        let away = |vcpu: &VmVcpu| self.question.host.away(vcpu.index);
        let fits = |vcpu: &&VmVcpu| {
            away(vcpu).is_some_and(|away| outside(cpu, away, &self.shared) <= MOST_OUTSIDE)
        };
        if let Some(vcpu) = free.iter().find(fits) {
            if let Some(away) = away(vcpu) {
                for piece in &mut self.shared {
                    // A segment whose line the CPU contradicts somewhere stays as wide as it is.
                    let _ = piece.narrow_by(&cpu.own_ns, away);
                }
            }
            self.sharing.push(on(cpu.cpu, *vcpu, Vec::new()));
            return;
        }
        let own_clock = free.iter().find_map(|vcpu| {
            let (_, pieces) = solve_one(&cpu.own_ns, away(vcpu)?).ok()?;
            Some(on(cpu.cpu, *vcpu, pieces))
        });
        match own_clock {
            Some(mapped) => self.others.push(mapped),
            None => self.lonely.push(cpu.cpu),
        }
    }

    fn finish(mut self, vm: String) -> Solved {
        for cpu in &mut self.sharing {
            cpu.pieces.clone_from(&self.shared);
        }
        let mut cpus = self.sharing;
        cpus.extend(self.others);
        cpus.sort_by_key(|cpu| cpu.guest_cpu);
        self.lonely.sort_unstable();
        Solved { vm, cpus, unsolved: None, lonely: self.lonely }
    }
}

/// Gives the other CPUs of the guest their vCPUs.
fn place_others(
    question: &Question<'_>,
    pair: &GuestOf,
    vm: usize,
    anchor: CpuOnVcpu,
    busiest: &[&CpuStamps],
) -> Solved {
    let first = anchor.guest_cpu;
    let mut mapped = MappedCpus {
        question,
        shared: anchor.pieces.clone(),
        sharing: vec![anchor],
        others: Vec::new(),
        lonely: Vec::new(),
    };
    for cpu in busiest.iter().filter(|cpu| cpu.cpu != first) {
        let mut free = likely(question, pair, vm, cpu.cpu);
        free.retain(|vcpu| !mapped.is_taken(vcpu));
        mapped.place(cpu, &free);
    }
    mapped.finish(question.host.vms.get(vm).map(|vm| vm.name.clone()).unwrap_or_default())
}

/// Which part of a CPU's events lie where the vCPU was away, by more than the bounds.
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

/// CPUs and vCPUs matched as the host names them or by number, in the VM that it names or the only one.
fn by_number(question: &Question<'_>, pair: &GuestOf) -> Solved {
    let empty = Solved { vm: String::new(), cpus: Vec::new(), unsolved: None, lonely: Vec::new() };
    let vms = candidates(question, pair);
    let [vm] = vms.as_slice() else {
        let name = pair.named.as_ref().map(|(name, _)| name.clone());
        return Solved { vm: name.unwrap_or_default(), ..empty };
    };
    let name = question.host.vms.get(*vm).map(|vm| vm.name.clone()).unwrap_or_default();
    let by_name = |cpu: &CpuStamps| {
        likely(question, pair, *vm, cpu.cpu)
            .into_iter()
            .next()
            .map(|vcpu| on(cpu.cpu, vcpu, Vec::new()))
    };
    Solved { vm: name, cpus: question.guest.cpus().filter_map(by_name).collect(), ..empty }
}
