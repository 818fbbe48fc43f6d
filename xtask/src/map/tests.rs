//! Tests of the list of crates, and of missing files.

use super::*;

#[test]
fn crates_are_listed_by_folder_with_what_they_say_of_themselves() {
    let text = list(&layers::packages().unwrap());
    let decode = text.split_once("\n## decode\n").unwrap().1;
    let decode = decode.split_once("\n## ").unwrap().0;
    assert!(decode.starts_with("\nUses system.\n"), "{decode}");
    assert!(
        decode.contains("| [`ftrace`](../crates/decode/ftrace) | The kernel's own trace formats")
    );
    assert!(!decode.contains("`timeline`"));
}

#[test]
fn a_list_that_is_stale_is_written_again() {
    let page = format!("Text.\n{BEGIN}old\n{END}More.\n");
    assert_eq!(with_list(&page, "new\n").unwrap(), format!("Text.\n{BEGIN}new\n{END}More.\n"));
    assert_eq!(with_list("Text.\n", "new\n"), None);
}

#[test]
fn a_file_of_a_change_must_be_there() {
    let root = repository::root();
    let (rows, faults) =
        missing(&root, "| a verb | `xtask/src/map.rs`, `docs/NAME.md` | - |\nText\n");
    assert_eq!((rows, faults), (1, Vec::new()));
    let (_, faults) =
        missing(&root, "| a verb | `xtask/src/no.rs`, `no/NAME.md` | [no](no.md) |\n");
    assert_eq!(faults.len(), 3, "{faults:?}");
    assert_eq!(missing(&root, "| a verb | nothing | - |\n").1.len(), 1);
}

#[test]
fn a_path_into_a_crate_must_lead_somewhere() {
    let names = names::CrateNames::read(&repository::root()).unwrap();
    assert_eq!(
        names.stale("`timeline::rounds`, `std::io::Read` and `timeline::rounds::run()`"),
        [""; 0]
    );
    // A word in a source is not an item.
    assert_eq!(names.stale("`timeline::moments`, `rounds`"), ["timeline::moments"]);
}
