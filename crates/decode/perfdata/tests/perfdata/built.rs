//! Reads back generated files of both forms and byte orders.

use perfdata::{Body, CpuMode, Form, PerfData, PerfDataError, ip_is_marker};

use crate::support::{ORDERS, bodies, builder};

#[test]
fn both_forms_in_both_byte_orders_say_the_same() {
    for order in ORDERS {
        let built = builder(order);
        for (form, file) in [(Form::File, built.file()), (Form::Pipe, built.pipe())] {
            let perf = PerfData::parse(&file).unwrap();
            assert_eq!((perf.form, perf.order, &perf.damage), (form, order, &vec![]));
            let names: Vec<_> = perf.events.list().iter().map(|event| event.name()).collect();
            assert_eq!(names, ["kvm:kvm_exit", "cpu-clock"]);
            let [exit, clock] = perf.events.list() else { panic!("two events") };
            assert!(exit.attr.is_tracepoint() && exit.attr.flags.exclude_guest());
            assert!(!clock.attr.flags.exclude_guest() && clock.attr.flags.sample_id_all());
            assert_eq!((&exit.ids, &clock.ids), (&vec![105, 106], &vec![107, 108]));
            let features = &perf.features;
            assert_eq!(features.hostname.as_deref(), Some("l1"));
            assert_eq!(features.os_release.as_deref(), Some("6.1.0"));
            assert_eq!(features.arch.as_deref(), Some("aarch64"));
            assert_eq!((features.cpus_available, features.cpus_online), (Some(4), Some(2)));
            assert_eq!(features.tracing_data.unwrap().bytes_in(&file), b"formats!");
            says_what_was_written(&perf, &file);
        }
    }
}

fn says_what_was_written(perf: &PerfData, file: &[u8]) {
    // Those of a pipe's header are not of this test.
    let (all, damage) = bodies(perf, perf.records(file));
    assert_eq!(damage, None);
    let all: Vec<_> = all.into_iter().filter(|body| *body != Body::Other).collect();
    let [comm, mapping, exit, clock, lost, lost_samples, throttle, fork, Body::FinishedRound] =
        &all[..]
    else {
        panic!("nine records, not {all:?}");
    };
    let Body::Comm(comm) = comm else { panic!("{comm:?}") };
    assert_eq!((comm.tid, comm.name, comm.exec), (8, &b"qemu"[..], true));
    let Body::Mapping(mapping) = mapping else { panic!("{mapping:?}") };
    assert_eq!((mapping.addr, mapping.len, mapping.file_offset), (0x4000, 0x1000, 0x200));
    assert_eq!((mapping.path, mapping.protection), (&b"/usr/bin/qemu"[..], Some(5)));
    let Body::Sample(exit) = exit else { panic!("{exit:?}") };
    assert_eq!((exit.id, exit.pid, exit.tid), (Some(105), Some(7), Some(8)));
    assert_eq!((exit.time, exit.cpu, exit.ip), (Some(1000), Some(1), Some(0xffff_0010)));
    assert_eq!((exit.raw, exit.cpu_mode), (Some(&b"a tracepoint"[..]), CpuMode::HostKernel));
    let Body::Sample(clock) = clock else { panic!("{clock:?}") };
    assert_eq!((clock.cpu_mode, clock.exact_ip, clock.period), (CpuMode::GuestUser, true, Some(4)));
    let chain: Vec<u64> = clock.callchain.unwrap().iter().filter(|ip| !ip_is_marker(*ip)).collect();
    assert_eq!(chain, [0x4010, 0x4020]);
    let Body::Lost(lost) = lost else { panic!("{lost:?}") };
    assert_eq!((lost.id, lost.count), (Some(106), 33));
    let Body::LostSamples(lost) = lost_samples else { panic!("{lost_samples:?}") };
    assert_eq!((lost.id, lost.count), (None, 5));
    let Body::Throttle(throttle) = throttle else { panic!("{throttle:?}") };
    assert_eq!((throttle.time, throttle.id), (1025, 107));
    let Body::Fork(fork) = fork else { panic!("{fork:?}") };
    assert_eq!((fork.pid, fork.tid, fork.parent_tid, fork.time), (7, 9, 8, 1030));
}

#[test]
fn records_other_than_samples_say_where_and_when_at_their_end() {
    for order in ORDERS {
        let file = builder(order).file();
        let perf = PerfData::parse(&file).unwrap();
        let ends: Vec<_> = perf.records(&file).flatten().collect();
        let lost = perf.events.sample_id(&ends[4]).unwrap();
        assert_eq!((lost.pid, lost.tid, lost.time), (Some(7), Some(8), Some(1020)));
        assert_eq!((lost.cpu, lost.id), (Some(1), Some(106)));
        assert_eq!(perf.events.index_of(&ends[4]), Some(0));
        assert_eq!(perf.events.index_of(&ends[6]), Some(1));
    }
}

#[test]
fn all_records_of_a_killed_recorder_are_read() {
    for order in ORDERS {
        let file = builder(order).killed();
        let perf = PerfData::parse(&file).unwrap();
        assert_eq!(perf.records(&file).flatten().count(), 9);
        assert!(perf.damage[0].what.contains("killed"), "{:?}", perf.damage);
        // Names were never written: those of the kernel's own are known.
        let names: Vec<_> = perf.events.list().iter().map(|event| event.name()).collect();
        assert_eq!(names, ["tracepoint 61", "cpu-clock"]);
    }
}

#[test]
fn hardware_traces_are_skipped() {
    for order in ORDERS {
        let mut built = builder(order);
        let before = PerfData::parse(&built.file()).unwrap().records(&built.file()).count();
        let head = testkit::PerfBytes::new(order).u64s(&[24, 0, 0]).u32s(&[0, 0, 0, 0]);
        built.record(71, 0, &head.bytes);
        built.bytes(&[0; 24]);
        built.record(68, 0, &[]);
        let file = built.file();
        let perf = PerfData::parse(&file).unwrap();
        let records: Vec<_> = perf.records(&file).map(Result::unwrap).collect();
        assert_eq!(records.len(), before + 2);
        assert_eq!(records[before].payload.len(), 24);
    }
}

#[test]
fn what_is_no_single_file_is_refused() {
    let mut built = builder(ORDERS[0]);
    built.feature(24, vec![1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(PerfData::parse(&built.file()).unwrap_err(), PerfDataError::Folder);
    assert_eq!(PerfData::parse(b"PERFFILE").unwrap_err(), PerfDataError::Old);
    assert_eq!(PerfData::parse(b"\x17\x08\x44tracing").unwrap_err(), PerfDataError::NotPerfData);
    let mut file = builder(ORDERS[0]).file();
    file[8] = 105;
    let size = PerfDataError::HeaderSize { size: 105 };
    assert_eq!(PerfData::parse(&file).unwrap_err(), size);
}
