//! All kinds in a machine on this system's own KVM, where it has one that this process may use.

#![allow(clippy::unwrap_used, clippy::print_stderr)]
#![cfg(target_arch = "x86_64")]

use std::fs::OpenOptions;

use labguest::exitcost::{ExitSource, HandledBy, Kind, MeasureOptions, measure};

#[test]
fn every_kind_has_a_row_and_user_space_sees_what_is_its_own() {
    if OpenOptions::new().read(true).write(true).open("/dev/kvm").is_err() {
        testkit::skip!("no KVM that this process may use");
        return;
    }
    let plan =
        MeasureOptions { way: ExitSource::Vm, kinds: Kind::ALL.to_vec(), runs: 2, run_ms: 2 };
    let sheet = measure(&plan).unwrap();
    let kinds: Vec<Kind> = sheet.rows.iter().map(|row| row.kind).collect();
    assert_eq!(kinds, Kind::ALL);
    for row in &sheet.rows {
        let measured = row.cycles.len() == 2;
        assert_eq!(measured, row.not_measured.is_none(), "{row:#?}");
        let is_users = [Kind::PortUser, Kind::MmioUser].contains(&row.kind);
        if measured {
            assert_eq!(row.handled_by == Some(HandledBy::User), is_users, "{row:#?}");
            assert_eq!(row.user_exits_per_operation, Some(f64::from(u8::from(is_users))));
        }
    }
}

#[test]
fn without_kvm_every_row_says_so() {
    if OpenOptions::new().read(true).write(true).open("/dev/kvm").is_ok() {
        testkit::skip!("there is a KVM that this process may use");
        return;
    }
    let plan = MeasureOptions {
        way: ExitSource::Vm,
        kinds: vec![Kind::Cpuid, Kind::HltWake],
        runs: 2,
        run_ms: 2,
    };
    let sheet = measure(&plan).unwrap();
    assert_eq!(sheet.rows.len(), 2);
    for row in &sheet.rows {
        assert!(row.cycles.is_empty(), "{row:#?}");
        assert!(row.not_measured.as_ref().unwrap().contains("/dev/kvm"), "{row:#?}");
    }
}
