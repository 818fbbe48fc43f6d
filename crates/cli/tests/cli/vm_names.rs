//! `--name`: VMs of recordings that have no names for them.

use std::fs::{self, File};
use std::path::Path;

use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;

use crate::tool::{hyperscope, output_of};

const HOST: &str = "fixtures/x86-svm/host-guest.dat";
const GUEST: &str = "fixtures/x86-svm/host-guest.guest.dat";
const SMP: &str = "fixtures/x86-vmx/smp.dat";

#[test]
fn every_verb_takes_the_given_name_of_a_vm() {
    for (args, files) in [
        (&["info"][..], &[HOST][..]),
        (&["exits"], &[HOST]),
        (&["exits", "--by", "vm,reason", "--format", "json"], &[HOST]),
        (&["nested"], &[HOST]),
        (&["advice"], &[HOST]),
        (&["why"], &[HOST]),
        (&["cpu", "--by", "vm,vcpu,taken,thread"], &[HOST]),
        (&["profile", "--by", "vm"], &[HOST]),
        (&["irqs"], &[HOST, GUEST]),
        (&["virtio"], &[HOST, GUEST]),
        (&["vmm"], &[HOST]),
        (&["path", "--format", "json"], &[HOST, GUEST]),
        (&["critical", "--task", "web vCPU 0"], &[HOST]),
        (&["critical"], &[HOST, GUEST]),
        (&["align"], &[HOST, GUEST]),
        (&["events", "--vm", "web", "-e", "kvm_exit"], &[HOST, GUEST]),
        (&["export", "--format", "csv", "-e", "sched_switch"], &[HOST, GUEST]),
        (&["boot"], &[HOST, GUEST]),
        (&["calls"], &[HOST]),
    ] {
        let named = [args, &["--name", "vm-119=web"], files].concat();
        let run = hyperscope(&named);
        assert_eq!(run.code, 0, "{args:?}: {}", run.err);
        let (out, plain) = (run.out, args.iter().map(|arg| arg.replace("web", "vm-119")));
        assert!(!out.contains("vm-119"), "{args:?}: {out}");
        let plain: Vec<String> = plain.chain(files.iter().map(|&file| file.to_owned())).collect();
        let plain = hyperscope(&plain.iter().map(String::as_str).collect::<Vec<_>>()).out;
        assert_eq!(out.contains("web"), plain.contains("vm-119"), "{args:?}: {out}");
    }
}

/// In a lake, the VM has the name under which it was added. (Tests of `hyperscope sql` query the same tables.)
#[test]
fn a_lake_has_the_given_names() {
    let folder = tempfile::tempdir().unwrap();
    let lake = folder.path().join("lake");
    let add = |options: &[&str]| {
        let place = ["lake", "add", lake.to_str().unwrap(), "--begun", "1795305600"];
        let run = hyperscope(&[&place, options, &[HOST]].concat());
        assert_eq!(run.code, 0, "{}", run.err);
    };
    add(&["--name", "vm-119=web"]);
    let tables = folder.path().join("tables");
    let to = tables.to_str().unwrap();
    let run = hyperscope(&["export", "--to", "parquet", "-o", to, "--name", "vm-119=web", HOST]);
    assert_eq!(run.code, 0, "{}", run.err);
    for place in [&lake, &tables] {
        let texts = parquet_bytes(place);
        let has = |name: &str| texts.windows(name.len()).any(|bytes| bytes == name.as_bytes());
        assert!(has("web") && !has("vm-119"), "{}", place.display());
    }
}

/// All columns of all tables below a folder, as text.
fn parquet_bytes(folder: &Path) -> Vec<u8> {
    let mut text = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text.extend(parquet_bytes(&path));
        } else if path.extension().is_some_and(|kind| kind == "parquet") {
            let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
            for row in reader.get_row_iter(None).unwrap() {
                text.extend(row.unwrap().to_string().into_bytes());
            }
        }
    }
    text
}

#[test]
fn both_sides_of_a_comparison_may_have_vms_of_their_own() {
    let args = ["diff", "--name", "vm-732=web", "--name", "vm-556=web", "--format", "json"];
    let sides = ["fixtures/arm64/B-vhost-off.dat", "fixtures/arm64/B-vhost-on.dat"];
    let text = output_of(&[&args[..], &sides].concat());
    assert!(text.contains("\"web\"") && !text.contains("vm-732"), "{}", &text[..500]);
}

#[test]
fn names_that_fit_no_vm_are_refused() {
    for (names, words) in [
        (&["vm-1=web"][..], &["no VM is called vm-1", "vm-118"][..]),
        (&["web"], &["VM=NAME"]),
        (&["=web"], &["VM=NAME"]),
        (&["vm-118=a", "vm-118=b"], &["vm-118 two names"]),
        (&["vm-118=a", "vm-123=a"], &["two of its VMs the name a"]),
        (&["vm-118=vm-123"], &["two of its VMs the name vm-123"]),
    ] {
        let mut args = vec!["exits", SMP];
        names.iter().for_each(|name| args.extend(["--name", name]));
        let run = hyperscope(&args);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{names:?}: {}", run.err);
        for word in words {
            assert!(run.err.contains(word), "{names:?}: no {word:?} in {}", run.err);
        }
    }
    // Two VMs may swap names.
    let swapped = output_of(&["exits", "--name", "vm-118=vm-123", "--name", "vm-123=vm-118", SMP]);
    assert!(swapped.contains("vm-118") && swapped.contains("vm-123"));
}
