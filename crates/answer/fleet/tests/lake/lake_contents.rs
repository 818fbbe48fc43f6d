//! Counts the content of a lake from its files alone, and adds recordings to lakes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;

use analyses::view::View;
use fleet::lake::store::{Added, Addition, LocalFolder, Storage, verify};
use fleet::lake::tables::{EXIT_ROLLUP, EXITS, MACHINES, SESSIONS};
use fleet::lake::{Ids, Origin, Question, SourceHash, Table, UnixClock, identify, write_tables};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use report::events::Machine;
use sources::TimeRange;
use timeline::event_filter::Filter;

/// A few tables: enough to distinguish them, and few enough to try every step.
const TABLES: [&Table; 4] = [&SESSIONS, &MACHINES, &EXITS, &EXIT_ROLLUP];

/// The assumed time of the recording.
pub(crate) const BEGUN_NS: i64 = 1_795_305_600_000_000_000;

/// Adds the recording under any host name.
pub(crate) fn add<S: Storage>(storage: &S, host: &str, hash: &str) -> io::Result<Added> {
    add_of(storage, host, hash, Some(BEGUN_NS))
}

/// The same, with another start or an unknown one.
pub(crate) fn add_of<S: Storage>(
    storage: &S,
    host: &str,
    hash: &str,
    offset_ns: Option<i64>,
) -> io::Result<Added> {
    with_question(host, hash, offset_ns, |question, ids| {
        let mut addition = Addition::new(storage, ids.clone())?;
        let outcome = addition.outcome();
        if matches!(outcome, Added::New | Added::Replaced) {
            write_tables(question, ids, &mut addition, &|_| ())?;
        }
        Ok(outcome)
    })
}

/// The question about the recording, and the name of its session.
pub(crate) fn with_question<T>(
    host: &str,
    hash: &str,
    offset_ns: Option<i64>,
    ask: impl FnOnce(Question<'_>, Ids) -> T,
) -> T {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures/arm64/B-vhost-off.dat");
    let mut recordings = [sources::open(&path).unwrap()];
    // A few exits are enough.
    let (from_ns, _) = recordings[0].first_and_last_ns().unwrap();
    recordings[0].set_range(TimeRange { from_ns, to_ns: from_ns + 300_000_000 });
    let machines = [Machine { name: "host".to_owned(), level: 0, threads: None }];
    let origin = Origin {
        source_uri: host.to_owned(),
        source: Some(SourceHash { sha256: hash.to_owned(), bytes: 1 }),
        host_id: Some(host.to_owned()),
        clock: UnixClock { offset_ns, error_ns: None },
        sample_weight: 1.0,
        ..Origin::default()
    };
    let events = Filter::default();
    let question = Question {
        view: View::on_own_clocks(&recordings),
        machines: &machines,
        processes: &[],
        origin: &origin,
        range_ns: None,
        tables: &TABLES,
        written: &TABLES,
        events: &events,
    };
    let ids = identify(&question);
    ask(question, ids)
}

/// A folder in memory if there is one: the tests check the order of steps, not the disk.
pub(crate) fn temporary() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// A column of all files below a folder.
fn texts(root: &Path, table: &str, column: &str) -> Vec<Vec<String>> {
    let storage = LocalFolder::open(root).unwrap();
    let files = storage.list(&format!("v1/{table}")).unwrap();
    files
        .iter()
        .map(|file| {
            let reader =
                SerializedFileReader::new(File::open(root.join(&file.name)).unwrap()).unwrap();
            let schema = reader.metadata().file_metadata().schema_descr();
            let has_name = |at: &usize| schema.column(*at).name() == column;
            let at = (0..schema.num_columns()).find(has_name).unwrap();
            let rows = reader.get_row_iter(None).unwrap();
            rows.map(|row| row.unwrap().get_string(at).unwrap().clone()).collect()
        })
        .collect()
}

/// By host, the number of valid exits, as a query that joins `exits` with `sessions` finds it. Written for this
/// test, without the lake's code.
pub(crate) fn counted(root: &Path) -> BTreeMap<String, usize> {
    let all = |table, column| texts(root, table, column).into_iter().flatten();
    let sessions: BTreeMap<(String, String), String> = all("sessions", "session_id")
        .zip(all("sessions", "ingest_id"))
        .zip(all("sessions", "host_id"))
        .collect();
    let mut hosts = BTreeMap::new();
    for row in all("exits", "session_id").zip(all("exits", "ingest_id")) {
        if let Some(host) = sessions.get(&row) {
            *hosts.entry(host.clone()).or_default() += 1;
        }
    }
    hosts
}

/// Asserts that there are no faults and no invalid rows.
#[track_caller]
pub(crate) fn assert_sound(root: &Path) {
    let found = verify(&LocalFolder::open(root).unwrap(), &[]).unwrap();
    assert_eq!((found.orphans, found.faults.as_slice()), (0, &[][..]));
}

#[test]
fn adding_again_changes_nothing_and_other_bytes_replace_the_rows() {
    let folder = temporary();
    let storage = LocalFolder::change(folder.path()).unwrap();
    assert_eq!(add(&storage, "web1", "a").unwrap(), Added::New);
    let before = storage.list("v1").unwrap();
    let counts = counted(folder.path());
    assert!(counts["web1"] > 20, "{counts:?}");
    assert_eq!(add(&storage, "web1", "a").unwrap(), Added::There);
    assert_eq!(storage.list("v1").unwrap(), before);
    assert_eq!(add(&storage, "web1", "b").unwrap(), Added::Replaced);
    assert_eq!(counted(folder.path()), counts);
    let found = verify(&storage, &[]).unwrap();
    assert_eq!((found.sessions, found.orphans, found.faults.len()), (1, 3, 0));
}

/// A recording is one session, whatever start is given; a known start stays.
#[test]
fn a_recording_is_one_session_on_the_day_that_is_known() {
    let folder = temporary();
    let storage = LocalFolder::change(folder.path()).unwrap();
    let days = || -> Vec<String> {
        let all = storage.list("v1/sessions").unwrap();
        all.iter().map(|file| file.name.split('/').nth(2).unwrap().to_owned()).collect()
    };
    assert_eq!(add_of(&storage, "web1", "a", None).unwrap(), Added::New);
    let counts = counted(folder.path());
    assert_eq!(days(), ["date=1970-01-01"]);
    assert_eq!(add(&storage, "web1", "a").unwrap(), Added::Replaced);
    assert_eq!(days(), ["date=2026-11-22"]);
    assert_eq!(counted(folder.path()), counts);
    assert_eq!(add_of(&storage, "web1", "a", None).unwrap(), Added::Dated);
    assert_eq!(days(), ["date=2026-11-22"]);
    let day_ns = 86_400_000_000_000;
    assert_eq!(add_of(&storage, "web1", "a", Some(BEGUN_NS + day_ns)).unwrap(), Added::Replaced);
    assert_eq!(days(), ["date=2026-11-23"]);
    assert_eq!(counted(folder.path()), counts);
    assert!(verify(&storage, &[]).unwrap().faults.is_empty());
}

#[test]
fn a_damaged_lake_is_reported() {
    let folder = temporary();
    let storage = LocalFolder::change(folder.path()).unwrap();
    add(&storage, "web1", "a").unwrap();
    let files = storage.list("v1/exits").unwrap();
    std::fs::remove_file(folder.path().join(&files[0].name)).unwrap();
    let found = verify(&storage, &[]).unwrap();
    assert_eq!(found.faults.len(), 1);
    assert!(found.faults[0].contains("0 rows in exits"), "{:?}", found.faults);
    assert!(verify(&storage, &[&EXITS]).unwrap().faults.is_empty());
    let rollup = storage.list("v1/exit_rollup").unwrap();
    let path = folder.path().join(&rollup[0].name);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    assert_eq!(verify(&storage, &[&EXITS]).unwrap().faults.len(), 2);
}
