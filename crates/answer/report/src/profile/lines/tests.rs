//! Combines synthetic rows into lines.

use analyses::profile::{Profile, ProfileSlices};

use super::*;

fn row(symbol: Option<&str>, address: Option<u64>, evidence: Evidence, ns: u64) -> ProfileRow {
    let module = symbol.is_none().then(|| USER_MODULE.to_owned());
    let user_space = symbol.is_none();
    let symbol = symbol.map(str::to_owned);
    let frame = CodeFrame { symbol, module, address, user_space, ..CodeFrame::default() };
    ProfileRow {
        vcpu: 0,
        level: 1,
        state: VcpuState::GuestKernel,
        reason: None,
        comm: None,
        stack: vec![frame],
        host_code: false,
        evidence,
        time: SampledTime { ns, samples: 1, low_ns: ns / 2, high_ns: ns * 2 },
    }
}

fn report(rows: Vec<ProfileRow>) -> ProfileReport {
    let time_ns = rows.iter().map(|row| row.time.ns).sum();
    let vcpu = ProfileVcpu {
        vm: "web".to_owned(),
        vcpu: 0,
        comm: None,
        thread: 7,
        time_ns,
        states: [(VcpuState::GuestKernel, time_ns)].into(),
    };
    let profile = Profile {
        vcpus: vec![vcpu],
        rows,
        threads: Vec::new(),
        machines: Vec::new(),
        slices: None::<ProfileSlices>,
        differences: BTreeMap::new(),
        losses: Vec::new(),
        symbols: BTreeMap::new(),
        by_address: false,
        nanoseconds: true,
    };
    ProfileReport {
        sources: Vec::new(),
        profile,
        by: ProfileBy::Symbol,
        symbol: None,
        top: 30,
        idle: false,
        threads: false,
        raw: false,
        recorder_cost: None,
    }
}

#[test]
fn a_function_is_one_line_whatever_says_so() {
    let report = report(vec![
        row(Some("f"), None, Evidence::Agent, 700),
        row(Some("f"), None, Evidence::Host, 200),
        row(Some("g"), None, Evidence::Host, 100),
    ]);
    for lines in [lines(&report), shown(&report)] {
        let found = lines.iter().map(|line| (line.time.ns, line.evidence.name()));
        let expected = [(900, "agent+host".to_owned()), (100, "host".to_owned())];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn tables_put_places_in_programs_together_that_have_little_time() {
    let scattered = (0..50).map(|at| row(None, Some(0x1000 + at), Evidence::Exits, 5));
    let hot = row(None, Some(0x4010), Evidence::Exits, 750);
    let report = report(scattered.chain([hot]).collect());
    let name = |line: &Line<'_>| (line.function().unwrap().name(), line.time.ns);
    let table: Vec<_> = shown(&report).iter().map(name).collect();
    assert_eq!(table, [("[user]+0x4010".to_owned(), 750), ("[user]".to_owned(), 250)]);
    assert_eq!(lines(&report).len(), 51);
}
