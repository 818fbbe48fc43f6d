//! How often recordings are read for a page, and that questions asked together get the answers of each.

use std::path::Path;

use analyses::cpu::cpu;
use analyses::exit_question::ask;
use analyses::exits::{ExitsBy, exits};
use analyses::group::By;
use analyses::lanes::{LaneMachine, LaneRoom};
use analyses::latencies::LatenciesOf;
use analyses::nested::{OfLevelTwo, nested};
use analyses::over_time::{KnownOfAll, PageRoom, over_time};
use analyses::path::{PathEnds, paths};
use analyses::profile::{GuestStacks, profile};
use sources::Recording;

const ROOM: PageRoom = PageRoom {
    lanes: LaneRoom { spans: 100_000, bytes: 1 << 26 },
    code_bytes: 1 << 24,
    arrow_bytes: 1 << 22,
};

fn open(name: &str) -> Recording {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures");
    sources::open(&fixtures.join(name)).unwrap()
}

#[test]
fn a_recording_is_read_twice_for_all_of_a_page() {
    for name in ["arm64/D.dat", "x86-vmx/smp.dat", "x86-vmx/nested.dat"] {
        let recording = open(name);
        let quiet = |_| ();
        let question = ((ExitsBy(&By::DEFAULT), OfLevelTwo), Some(LatenciesOf(0)));
        let ((of_exits, of_level_two), latencies) = ask(&recording, &question, &quiet);
        assert_eq!(recording.bytes_read(), recording.stored_len(), "{name}");
        let machine = LaneMachine {
            name: "host".to_owned(),
            is_guest: false,
            vcpu_threads: of_exits.vms[0].vcpus.iter().map(|vcpu| vcpu.thread).collect(),
        };
        let vms = [of_exits.vms.clone()];
        let known = KnownOfAll {
            guests: &[],
            samples: &[],
            vms: &vms,
            processes: &[],
            machines: &[machine],
        };
        let found = over_time(std::slice::from_ref(&recording), known, ROOM, &quiet);
        assert_eq!(recording.bytes_read(), 2 * recording.stored_len(), "{name}");
        // Each question by itself reads again, and says the same.
        let alone = (exits(&recording, &By::DEFAULT, &quiet), nested(&recording, &quiet));
        assert_eq!(shown(&(of_exits, of_level_two)), shown(&alone), "{name}");
        assert!(latencies.unwrap().heat.columns().is_some(), "{name}");
        let all = std::slice::from_ref(&recording);
        assert_eq!(shown(&found.cpu), shown(&cpu(all, &[], &[], &quiet)), "{name}");
        let mut alone = profile(all, &[], &[], GuestStacks::Corrected, &quiet);
        assert!(alone.slices.is_none(), "{name}");
        alone.slices.clone_from(&found.profile.slices);
        assert_eq!(shown(&found.profile), shown(&alone), "{name}");
        let alone = paths(all, &[], &PathEnds::default(), &quiet).unwrap();
        assert_eq!(shown(&found.paths), shown(&alone), "{name}");
    }
}

fn shown(answer: &impl std::fmt::Debug) -> String {
    format!("{answer:?}")
}
