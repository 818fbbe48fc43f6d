//! Intervals of synthetic snapshots.

use super::*;
use timeline::VcpuActivity;

struct Fixed;

impl Names for Fixed {
    fn vm(&self, process: u32) -> String {
        format!("vm{process}")
    }

    fn isa(&self, _: u8) -> Isa {
        Isa::Svm
    }

    fn reason(&mut self, _: u8, code: u64) -> String {
        format!("reason{code:#x}")
    }
}

fn vcpu_of(process: u32, thread: u32, born_ns: u64, guest_ns: u64) -> VcpuState {
    let mut did = States::default();
    did.give(VcpuActivity::Guest, guest_ns);
    VcpuState {
        process,
        thread,
        vcpu: Some(thread),
        gone: false,
        born_ns,
        latest_ns: born_ns + guest_ns,
        now: VcpuActivity::Blocked,
        in_nested: false,
        woken_ns: None,
        did,
        saved: States::default(),
        saved_ns: born_ns,
    }
}

fn exits(thread: u32, code: u64, kernel_ns: u64) -> (RowKey, Sums) {
    let mut sums = Sums { count: 2, paired: 1, time_ns: kernel_ns, ..Sums::default() };
    sums.parts.kernel_ns = kernel_ns;
    (RowKey { thread, level: 1, isa: 2, code }, sums)
}

#[test]
fn vcpus_of_a_vm_are_put_together_and_what_costs_most_comes_first() {
    let snapshot = Snapshot {
        rows: vec![exits(1, 0x78, 900), exits(1, 0x72, 10), exits(2, 0x72, 20), exits(3, 0x72, 50)],
        vcpus: vec![vcpu_of(7, 1, 0, 10), vcpu_of(7, 2, 0, 10), vcpu_of(8, 3, 0, 10)],
        ..Snapshot::default()
    };
    let by_vm = Before::default().interval((0, 1000), &snapshot, By::Vm, &mut Fixed);
    let shown: Vec<_> = by_vm
        .rows
        .iter()
        .map(|row| (row.vm.as_deref().unwrap(), row.waiting, row.sums.count, row.sums.time_ns))
        .collect();
    // HLT takes longest, but does not count as cost.
    assert_eq!(shown, [("vm8", false, 2, 50), ("vm7", false, 4, 30), ("vm7", true, 2, 900)]);
    assert_eq!(by_vm.cost.exits, 8);
    let by_vcpu = Before::default().interval((0, 1000), &snapshot, By::Vcpu, &mut Fixed);
    assert_eq!(by_vcpu.rows.len(), 4);
    assert!(by_vcpu.rows.iter().all(|row| row.vcpu.is_some()));
}

#[test]
fn states_of_an_interval_add_up_to_it_and_a_new_thread_begins_again() {
    let mut before = Before::default();
    let first = Snapshot { vcpus: vec![vcpu_of(7, 1, 100, 300)], ..Snapshot::default() };
    let interval = before.interval((0, 1000), &first, By::Vm, &mut Fixed);
    assert_eq!(interval.vcpus[0].states.total_ns(), 900);
    // The vCPU has done nothing else since.
    let interval = before.interval((1000, 2500), &first, By::Vm, &mut Fixed);
    assert_eq!(interval.vcpus[0].states.time_ns(VcpuActivity::Blocked), 1500);
    assert_eq!(interval.vcpus[0].states.total_ns(), 1500);
    let again = Snapshot { vcpus: vec![vcpu_of(9, 1, 2600, 50)], ..Snapshot::default() };
    let interval = before.interval((2500, 3000), &again, By::Vm, &mut Fixed);
    assert_eq!((interval.vcpus[0].vm.as_str(), interval.vcpus[0].states.total_ns()), ("vm9", 400));
    // Began after the end: it belongs to the next interval.
    let later = Snapshot { vcpus: vec![vcpu_of(9, 4, 3600, 50)], ..Snapshot::default() };
    assert!(before.interval((3000, 3500), &later, By::Vm, &mut Fixed).vcpus.is_empty());
}

#[test]
fn what_had_no_room_is_told_apart_and_counted_once() {
    let mut before = Before::default();
    let (_, other) = exits(0, 0, 40);
    let snapshot = Snapshot { other, without_state: 5, pieces_left_out: 1, ..Snapshot::default() };
    let interval = before.interval((0, 10), &snapshot, By::Vm, &mut Fixed);
    assert_eq!((interval.rows[0].reason.as_str(), interval.rows[0].vm.as_ref()), ("other", None));
    assert_eq!(interval.left_out, LeftOut { without_state: 5, pieces: 1, ..LeftOut::default() });
    assert_eq!(interval.cost.exits, 2 + 5);
    let none = Snapshot { without_state: 5, pieces_left_out: 1, ..Snapshot::default() };
    let interval = before.interval((10, 20), &none, By::Vm, &mut Fixed);
    assert!(interval.rows.is_empty() && interval.left_out == LeftOut::default());
}
