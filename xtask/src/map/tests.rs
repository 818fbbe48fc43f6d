//! The map of a small table, and files that are not there.

use super::*;

fn table() -> Table<'static> {
    BTreeMap::from([
        ("bytes", &[] as &[&str]),
        ("pages", &["bytes"]),
        ("model", &["bytes", "pages"]),
    ])
}

#[test]
fn levels_rise_and_uses_that_follow_from_others_are_left_out() {
    let table = table();
    assert_eq!(level(&table, "model"), 2);
    assert_eq!(direct(&table, "model"), ["pages"]);
    let groups = Groups::from([("pages".to_owned(), "decode".to_owned())]);
    let text = for_terminal(&table, &groups);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.get(2), Some(&"  top  cli            any crate"));
    assert_eq!(lines.get(3), Some(&"    2  model          pages"));
    assert_eq!(lines.get(4), Some(&"    1  pages  decode  bytes"));
    assert_eq!(lines.get(5), Some(&"    0  bytes          -"));
    let graph = for_browser(&table, &groups);
    assert!(graph.contains("  subgraph in-decode [decode]\n    pages\n  end\n"));
    assert!(graph.contains("  pages --> model\n") && graph.contains("  model --> cli\n"));
    assert!(!graph.contains("bytes --> model") && !graph.contains("pages --> cli"));
}

#[test]
fn a_map_that_is_stale_is_drawn_again() {
    let page = format!("Text.\n{BEGIN}old\n{END}More.\n");
    assert_eq!(drawn(&page, "new\n").unwrap(), format!("Text.\n{BEGIN}new\n{END}More.\n"));
    assert_eq!(drawn("Text.\n", "new\n"), None);
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
    // A word of the sources is no item.
    assert_eq!(names.stale("`timeline::moments`, `rounds`"), ["timeline::moments"]);
}
