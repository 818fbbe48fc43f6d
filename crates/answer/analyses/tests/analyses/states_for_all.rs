//! Several sinks on a second thread receive the same calls as a sink that runs during the pass.

use std::path::Path;

use analyses::states::{
    GuestCpu, OccupantSpan, StateSink, StateSpan, VcpuRef, states, states_for_all,
};
use analyses::view::View;
use sources::Recording;
use timeline::reading::Reading;

/// A recorded call of the sink.
#[derive(Clone, Debug, PartialEq)]
enum Given {
    Vcpu(VcpuRef, StateSpan),
    RunsIn(VcpuRef, u32),
    Task(GuestCpu, u32, StateSpan),
    Cpu(GuestCpu, OccupantSpan),
}

#[derive(Default)]
struct All(Vec<Given>);

impl StateSink for All {
    fn vcpu(&mut self, vcpu: VcpuRef, span: &StateSpan) {
        self.0.push(Given::Vcpu(vcpu, *span));
    }

    fn runs_in(&mut self, vcpu: VcpuRef, thread: u32) {
        // Repetitions have no effect.
        let runs = Given::RunsIn(vcpu, thread);
        let last = self.0.iter().rev().find(|given| matches!(given, Given::RunsIn(..)));
        if last != Some(&runs) {
            self.0.push(runs);
        }
    }

    fn task(&mut self, guest: GuestCpu, task: u32, span: &StateSpan) {
        self.0.push(Given::Task(guest, task, *span));
    }

    fn cpu(&mut self, cpu: GuestCpu, span: &OccupantSpan) {
        self.0.push(Given::Cpu(cpu, *span));
    }
}

#[test]
fn it_is_given_the_same_in_the_same_order() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures");
    let mut max = 0;
    for name in ["arm64/D.dat", "arm64/A.guest.dat", "x86-vmx/smp.dat", "x86-svm/host-guest.dat"] {
        let recording: [Recording; 1] = [sources::open(&fixtures.join(name)).unwrap()];
        let view = View::on_own_clocks(&recording);
        let mut alone = All::default();
        let found = states(view, &mut alone, &|_| ());
        let (mut first, mut second) = (All::default(), All::default());
        let reading = Reading::on_one_clock(&recording);
        let sinks: Vec<&mut dyn StateSink> = vec![&mut first, &mut second];
        let found_for_all = states_for_all(view, sinks, (&reading, &mut []), &|_| ());
        assert!(!alone.0.is_empty(), "{name}");
        assert!(alone.0 == first.0 && alone.0 == second.0, "{name}");
        assert_eq!(found.pass.spans_ns, found_for_all.pass.spans_ns, "{name}");
        max = max.max(alone.0.len());
    }
    // More than the max number of queued batches.
    assert!(max > 4 * 8192, "{max}");
}
