//! Follows requests and finds VMs in one pass: assumes that the first part of the recording shows all VMs. In the
//! rare case that there are others, the caller follows requests in a second pass.

use std::slice::from_ref;

use rustc_hash::FxHashSet;
use sources::Recording;
use timeline::reading::Reading;
use timeline::{VcpuInfo, Vm, group_vms, guess_vcpus};

use super::Paths;
use super::events::Events;
use super::follow::Follower;
use super::machines::Machines;
use super::table::{self, PathTable};
use crate::view::View;

/// The paths of requests in a single recording; `None` if VMs must be found first.
pub(super) fn paths(
    recordings: &[Recording],
    events: &Events,
    progress: &(dyn Fn(u64) + Sync),
) -> Option<Paths> {
    let [recording] = recordings else { return None };
    paths_with(recording, &guess_vcpus(recording)?, events, progress)
}

/// The paths for guessed vCPUs; `None` if the guess is wrong.
fn paths_with(
    recording: &Recording,
    guess: &[VcpuInfo],
    events: &Events,
    progress: &(dyn Fn(u64) + Sync),
) -> Option<Paths> {
    let threads: FxHashSet<u32> = guess.iter().map(|vcpu| vcpu.thread).collect();
    let is_expected = |thread| threads.contains(&thread);
    let vms = group_vms(recording, guess);
    let view = View::on_own_clocks(from_ref(recording));
    let machines = Machines::with_vms(view, from_ref(&vms));
    let mut follower = Follower::new(events, &machines, PathTable::default());
    let reading = Reading::on_one_clock(from_ref(recording));
    let mut vcpu_task = reading.expected_vcpus(recording, &is_expected);
    let mut event_task = reading.trace_events(&mut follower);
    reading.run(&mut [&mut vcpu_task, &mut event_task], progress);
    let pass = event_task.finish();
    let vcpus = vcpu_task.finish()?;
    let found = follower.finish(recording.is_nanoseconds(), pass.losses);
    are_same(&vms, &group_vms(recording, &vcpus)).then(|| table::paths(found, &machines))
}

/// Whether both lists have the same VMs with the same threads and vCPUs.
fn are_same(some: &[Vm], others: &[Vm]) -> bool {
    let threads = |vm: &Vm| -> Vec<(u32, u32)> {
        vm.vcpus.iter().map(|vcpu| (vcpu.vcpu, vcpu.thread)).collect()
    };
    let is_same = |(vm, other): (&Vm, &Vm)| {
        (&vm.name, &vm.comm) == (&other.name, &other.comm) && threads(vm) == threads(other)
    };
    some.len() == others.len() && some.iter().zip(others).all(is_same)
}

#[cfg(test)]
mod tests {
    use timeline::find_vcpus;

    use super::*;
    use crate::path::follow;

    #[test]
    fn a_right_guess_gives_what_finding_vms_first_gives_and_a_wrong_one_nothing() {
        for file in ["x86-svm/host-guest.dat", "x86-vmx/smp.dat"] {
            let path = format!("{}/../../../fixtures/{file}", env!("CARGO_MANIFEST_DIR"));
            let recordings = [sources::open(path.as_ref()).unwrap()];
            let events = Events::of_hosts(&recordings);
            let machines = Machines::new(View::on_own_clocks(&recordings));
            let found = follow(&recordings, &events, &machines, PathTable::default(), &|_| ());
            let expected = table::paths(found, &machines);
            assert!(expected.requests > 0);
            let [recording] = &recordings;
            let all = find_vcpus(recording, &|_| ());
            let with = |guess: &[VcpuInfo]| paths_with(recording, guess, &events, &|_| ());
            assert_eq!(format!("{:?}", with(&all)), format!("{:?}", Some(expected)));
            let [.., last] = all.as_slice() else { panic!("no vCPUs") };
            // One vCPU too few, and one too many.
            assert!(with(&all[..all.len() - 1]).is_none());
            let more = VcpuInfo { thread: u32::MAX, ..last.clone() };
            assert!(with(&[all.as_slice(), &[more]].concat()).is_none());
            let vms = group_vms(recording, &all);
            let mut others = vms.clone();
            others[0].vcpus[0].vcpu += 1;
            assert!(are_same(&vms, &vms) && !are_same(&vms, &others));
        }
    }
}
