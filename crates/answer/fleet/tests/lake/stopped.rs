//! A run is killed after every step of a change: no row is lost, and none counts twice.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use fleet::lake::store::{LocalFolder, Storage, compact, gc};

use crate::lake_contents::{BEGUN_NS, add, add_of, assert_sound, counted, temporary};
use crate::stopping::StoppingFolder;

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let place = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &place);
        } else {
            std::fs::copy(entry.path(), place).unwrap();
        }
    }
}

type Counts = BTreeMap<String, usize>;

/// Applies a change to copies of a lake, killed after each of its steps, and then applies it again. In the end the lake
/// holds `after`; meanwhile it holds that, or the previous content. Returns the number of steps, and the number of
/// steps that left unfinished files.
fn killed_at_every_step(
    root: &Path,
    after: &Counts,
    change: &dyn Fn(&StoppingFolder) -> std::io::Result<()>,
) -> (usize, usize) {
    let (before, mut left_behind) = (counted(root), 0);
    for steps in 0.. {
        let folder = temporary();
        copy(root, folder.path());
        let storage = StoppingFolder::after(steps, folder.path());
        let done = change(&storage);
        let steps_taken = storage.steps_taken();
        drop(storage);
        let now = counted(folder.path());
        assert!(now == before || now == *after, "after step {steps}: {now:?}");
        if done.is_ok() {
            assert_eq!(now, *after);
            return (steps_taken, left_behind);
        }
        let unfinished = LocalFolder::open(folder.path()).unwrap().unfinished().unwrap();
        left_behind += usize::from(!unfinished.is_empty());
        let again = StoppingFolder::after(usize::MAX, folder.path());
        change(&again).unwrap();
        assert_eq!(counted(folder.path()), *after, "done again after step {steps}");
        drop(again);
        let storage = LocalFolder::change(folder.path()).unwrap();
        gc(&storage, Duration::ZERO, &[], SystemTime::now() + Duration::from_secs(1)).unwrap();
        assert_eq!(counted(folder.path()), *after, "cleaned up after step {steps}");
        assert!(storage.unfinished().unwrap().is_empty());
        assert_sound(folder.path());
    }
    unreachable!("a change ends")
}

/// The start is corrected to another day: if a run is killed while the row moves, compaction still finds the rows.
#[test]
fn moving_to_another_day_loses_and_doubles_nothing() {
    let folder = temporary();
    let root = folder.path();
    let storage = LocalFolder::change(root).unwrap();
    for host in ["web1", "web2"] {
        add(&storage, host, "a").unwrap();
    }
    drop(storage);
    let before = counted(root);
    let later = |storage: &StoppingFolder| {
        add_of(storage, "web2", "a", Some(BEGUN_NS + 86_400_000_000_000)).map(|_| ())
    };
    let whole_folder = temporary();
    copy(root, whole_folder.path());
    let storage = StoppingFolder::after(usize::MAX, whole_folder.path());
    later(&storage).unwrap();
    let steps = storage.steps_taken();
    assert_eq!(counted(whole_folder.path()), before);
    // The last steps: the row is renamed, and then replaced.
    for step in steps - 6..steps {
        let folder = temporary();
        copy(root, folder.path());
        let storage = StoppingFolder::after(step, folder.path());
        assert!(later(&storage).is_err());
        drop(storage);
        assert_eq!(counted(folder.path()), before, "after step {step}");
        let storage = LocalFolder::change(folder.path()).unwrap();
        compact(&storage, &|_| true).unwrap();
        assert_eq!(counted(folder.path()), before, "compacted after step {step}");
        drop(storage);
        later(&StoppingFolder::after(usize::MAX, folder.path())).unwrap();
        assert_eq!(counted(folder.path()), before, "done again after step {step}");
    }
}

#[test]
fn adding_replacing_compacting_and_cleaning_up_lose_and_double_nothing() {
    let folder = temporary();
    let root = folder.path();
    let storage = LocalFolder::change(root).unwrap();
    add(&storage, "web1", "a").unwrap();
    drop(storage);
    let counts = counted(root);
    let exits = counts["web1"];
    let both: Counts = ["web1", "web2"].map(|host| (host.to_owned(), exits)).into();
    let second = |storage: &StoppingFolder| add(storage, "web2", "a").map(|_| ());
    let (adding, unfinished_adding) = killed_at_every_step(root, &both, &second);

    second(&StoppingFolder::after(usize::MAX, root)).unwrap();
    let newer = |storage: &StoppingFolder| add(storage, "web2", "b").map(|_| ());
    let (replacing, unfinished_replacing) = killed_at_every_step(root, &both, &newer);

    newer(&StoppingFolder::after(usize::MAX, root)).unwrap();
    let all = |storage: &StoppingFolder| compact(storage, &|_| true).map(|_| ());
    let (compacting, unfinished_compacting) = killed_at_every_step(root, &both, &all);

    all(&StoppingFolder::after(usize::MAX, root)).unwrap();
    let (cleaning, _) = killed_at_every_step(root, &both, &|storage| {
        let now = SystemTime::now() + Duration::from_secs(1);
        gc(storage, Duration::ZERO, &[], now).map(|_| ())
    });
    assert!(adding > 20 && replacing > 20 && compacting > 20, "{adding} {replacing} {compacting}");
    assert!(cleaning >= 9, "{cleaning}");
    // Otherwise the test would not show that gc removes files of killed runs.
    assert!(unfinished_adding > 0 && unfinished_replacing > 0 && unfinished_compacting > 0);

    // A third host after a compaction, and a second compaction next to the first part.
    let storage = LocalFolder::change(root).unwrap();
    for host in ["web3", "web4"] {
        add(&storage, host, "a").unwrap();
    }
    assert_eq!(compact(&storage, &|date| date < "2026-11-22").unwrap().parts, 0);
    assert_eq!(compact(&storage, &|date| date < "2026-11-23").unwrap().parts, 1);
    let four: Counts = ["web1", "web2", "web3", "web4"].map(|host| (host.to_owned(), exits)).into();
    assert_eq!(counted(root), four);
}
