//! Number of passes over recordings for a page; and questions that share a pass give the same answers as separate
//! ones.

use std::collections::HashSet;
use std::path::Path;

use analyses::cpu::cpu;
use analyses::exit_question::ask;
use analyses::exits::{ExitsBy, exits};
use analyses::group::By;
use analyses::irqs::{self, has_handlers, irqs};
use analyses::lanes::{LaneMachine, LaneRoom};
use analyses::latencies::LatenciesOf;
use analyses::nested::{OfLevelTwo, nested};
use analyses::over_time::{KnownOfAll, PageRoom, over_time};
use analyses::path::{DoneRequest, DoneRequestSink, PathEnds, Paths, done_requests, paths};
use analyses::profile::{GuestStacks, ProfileQuestion, profile};
use analyses::view::View;
use sources::Recording;

const ROOM: PageRoom = PageRoom {
    lanes: LaneRoom { spans: 100_000, bytes: 1 << 26 },
    code_bytes: 1 << 24,
    arrow_bytes: 1 << 22,
    requests: 100_000,
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
        let known = KnownOfAll { samples: &[], vms: &vms, processes: &[], machines: &[machine] };
        let all = std::slice::from_ref(&recording);
        let mut found = over_time(View::on_own_clocks(all), known, ROOM, &quiet);
        assert_eq!(recording.bytes_read(), 2 * recording.stored_len(), "{name}");
        // Each question alone needs a separate pass, and gives the same result.
        let alone = (exits(&recording, &By::DEFAULT, &quiet), nested(&recording, &quiet));
        assert_eq!(shown(&(of_exits, of_level_two)), shown(&alone), "{name}");
        assert!(latencies.unwrap().heat.columns().is_some(), "{name}");
        assert_eq!(shown(&found.cpu), shown(&cpu(View::on_own_clocks(all), &[], &quiet)), "{name}");
        let alone = has_handlers(&recording)
            .then(|| irqs(View::on_own_clocks(all), irqs::By::Handler, &quiet));
        assert_eq!(shown(&found.irqs), shown(&alone), "{name}");
        let mut alone = profile(
            View::on_own_clocks(all),
            ProfileQuestion { samples: &[], given: &[], stacks: GuestStacks::Corrected },
            &quiet,
        );
        assert!(alone.slices.is_none(), "{name}");
        alone.slices.clone_from(&found.profile.slices);
        assert_eq!(shown(&found.profile), shown(&alone), "{name}");
        let alone = paths(View::on_own_clocks(all), &PathEnds::default(), &quiet).unwrap();
        lists_each_request(&found.paths, all);
        found.paths.are_listed = false;
        found.paths.paths.iter_mut().for_each(|path| path.listed.clear());
        assert_eq!(shown(&found.paths), shown(&alone), "{name}");
    }
}

/// Results of [`done_requests`]: VM, start and length.
#[derive(Default)]
struct Each(Vec<(Option<String>, u64, u64)>);

impl DoneRequestSink for Each {
    fn request(&mut self, request: &DoneRequest<'_>) {
        let (first, last) = (request.steps.first().unwrap(), request.steps.last().unwrap());
        let vm = request.vm.map(str::to_owned);
        self.0.push((vm, first.ts_ns, last.ts_ns - first.ts_ns));
    }
}

fn lists_each_request(paths: &Paths, recordings: &[Recording]) {
    let mut each = Each::default();
    done_requests(View::on_own_clocks(recordings), &mut each, &|_| ());
    each.0.sort();
    assert!(paths.are_listed);
    let mut listed = Vec::new();
    for path in &paths.paths {
        assert_eq!(path.listed.len() as u64, path.total.count(), "{}", path.name);
        assert!(path.listed.is_sorted(), "{}", path.name);
        listed.extend(
            path.listed
                .iter()
                .map(|request| (path.vm.clone(), request.begin_ns, request.length_ns)),
        );
    }
    listed.sort();
    assert_eq!(listed, each.0);
}

#[test]
fn of_more_requests_than_there_is_room_for_none_is_listed() {
    let recording = open("x86-vmx/smp.dat");
    let all = std::slice::from_ref(&recording);
    let vms = [exits(&recording, &By::DEFAULT, &|_| ()).vms];
    let machine =
        LaneMachine { name: String::new(), is_guest: false, vcpu_threads: HashSet::new() };
    let machines = [machine];
    let known = KnownOfAll { samples: &[], vms: &vms, processes: &[], machines: &machines };
    let paths_with = |requests| {
        over_time(View::on_own_clocks(all), known, PageRoom { requests, ..ROOM }, &|_| ()).paths
    };
    let requests = usize::try_from(paths_with(0).requests).unwrap();
    assert!(requests > 10);
    for (room, are_listed) in [(0, false), (requests - 1, false), (requests, true)] {
        let paths = paths_with(room);
        assert_eq!(paths.are_listed, are_listed, "{room}");
        assert_eq!(paths.paths.iter().all(|path| path.listed.is_empty()), !are_listed, "{room}");
    }
}

fn shown(answer: &impl std::fmt::Debug) -> String {
    format!("{answer:?}")
}
