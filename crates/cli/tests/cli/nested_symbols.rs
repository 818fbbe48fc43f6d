//! `profile --nested`: functions of nested guests, from lists of their symbols.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::profile::{amount, json, rows};
use crate::tool::hyperscope;

const NESTED: &str = "fixtures/x86-svm/nested.dat";

/// The innermost frame of a row, if it is in a kernel.
fn leaf(row: &Value) -> Option<&Value> {
    row["stack"].as_array().unwrap().last().filter(|leaf| leaf["module"] != "[user]")
}

fn with(nested: &str) -> Value {
    json("profile", &["--nested", nested, NESTED])
}

/// A list in which each sampled address of the nested guest's kernel begins a function.
fn list_of(profile: &Value) -> (String, BTreeSet<u64>) {
    let inner = rows(profile).iter().filter(|row| row["level"] == 2);
    let seen: BTreeSet<u64> =
        inner.filter_map(leaf).filter_map(|frame| frame["offset"].as_u64()).collect();
    let symbols = seen.iter().map(|address| format!("{address:016x} t fn_{address:x}\n"));
    let begin = seen.first().unwrap() - 1;
    (format!("{begin:016x} T _stext\n{}", symbols.collect::<String>()), seen)
}

/// Each function has the time of its address; nothing else changes.
#[test]
fn a_list_names_the_inner_guests_functions_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kallsyms");
    let plain = json("profile", &[NESTED]);
    let (list, seen) = list_of(&plain);
    assert!(seen.len() > 50, "{seen:?}");
    fs::write(&path, list).unwrap();
    let path = path.to_str().unwrap();
    for nested in [path.to_owned(), format!("vm-102={path}")] {
        let named = with(&nested);
        let mut times = std::collections::BTreeMap::new();
        for row in rows(&named) {
            let symbol = leaf(row).and_then(|frame| frame["symbol"].as_str());
            assert!(symbol.is_none() || row["level"] == 2, "{row}");
            if let Some(symbol) = symbol {
                *times.entry(symbol.to_owned()).or_insert(0) += amount(row, "time");
            }
        }
        let mut expected = std::collections::BTreeMap::new();
        for row in rows(&plain).iter().filter(|row| row["level"] == 2) {
            if let Some(address) = leaf(row).and_then(|frame| frame["offset"].as_u64()) {
                *expected.entry(format!("fn_{address:x}")).or_insert(0) += amount(row, "time");
            }
        }
        assert_eq!(times, expected);
        let sum =
            |profile: &Value| rows(profile).iter().map(|row| amount(row, "time")).sum::<u64>();
        assert_eq!(sum(&named), sum(&plain));
    }
}

#[test]
fn what_can_name_nothing_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let symbols = file("whole", "ffffffff81000000 T _stext\nffffffff81000010 t f\n");
    let cases = [
        (file("hidden", "0000000000000000 T _stext\n"), "have no addresses"),
        (file("part", "ffffffff81000010 t f\n"), "only some of"),
        (file("else", "nothing of the kind\n"), "neither a list"),
        (file("empty", ""), "neither a list"),
        (folder.path().join("gone").to_str().unwrap().to_owned(), "gone"),
        (format!("web={symbols}"), "no VM has the name web; use one of: vm-102"),
        ("fixtures/x86-svm/host-guest.dat".to_owned(), "only some of the kernel's symbols"),
    ];
    for (nested, message) in cases {
        let run = hyperscope(&["profile", "--nested", &nested, NESTED]);
        assert!(run.code == 1 && run.err.contains(message), "{nested}: {} {}", run.code, run.err);
        assert_eq!(run.out, "", "{nested}");
    }
}
