//! A lake in an object store: a run is killed at every call, or another run changes the lake before the call. No row is
//! lost, and none counts twice.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, SystemTime};

use fleet::lake::store::{
    Entry, LocalFolder, ObjectLake, Objects, ObjectsByProcess, Storage, compact, counted, gc, list,
    serve, verify,
};
use parquet::file::reader::{ChunkReader, FileReader, Length, SerializedFileReader};

use crate::cached_tables::add_kept;
use crate::lake_contents::{self, BEGUN_NS, add, temporary};
use crate::memory_store::{Bucket, Client, Event};

const DAY_NS: i64 = 86_400_000_000_000;

type Counts = BTreeMap<String, usize>;

/// By host, the number of valid exits, as a join over the rows of all files finds it.
fn exits_of_all(bucket: &Bucket) -> Counts {
    let folder = temporary();
    bucket.write_to(folder.path());
    lake_contents::counted(folder.path())
}

/// The same for a reader that applies the rules: of several rows of a session, that with the highest generation is
/// valid, and of equal ones the first by name. Written for this test, without the lake's code.
fn exits_of(bucket: &Bucket) -> Counts {
    let folder = temporary();
    bucket.write_to(folder.path());
    let mut latest: BTreeMap<String, (u64, String)> = BTreeMap::new();
    for name in bucket.names().into_iter().filter(|name| name.starts_with("v1/sessions/")) {
        let path = folder.path().join(&name);
        let file = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let metadata = file.metadata().file_metadata();
        if metadata.num_rows() == 0 {
            continue;
        }
        let all = metadata.key_value_metadata().unwrap();
        let entry = all.iter().find(|entry| entry.key == "hyperscope.generation");
        let generation = entry.map_or(0, |entry| entry.value.as_deref().unwrap().parse().unwrap());
        let session = name.rsplit_once('/').unwrap().1.to_owned();
        match latest.get(&session) {
            Some((known, _)) if *known >= generation => std::fs::remove_file(path).unwrap(),
            other => {
                if let Some((_, name)) = other {
                    std::fs::remove_file(folder.path().join(name)).unwrap();
                }
                latest.insert(session, (generation, name));
            }
        }
    }
    lake_contents::counted(folder.path())
}

/// The number of exits in the sessions that this program's readers list.
fn exits_listed(bucket: &Bucket) -> u64 {
    list(&lake_of(bucket)).unwrap().sessions.iter().map(|session| session.rows["exits"]).sum()
}

fn lake_of(bucket: &Bucket) -> ObjectLake<Client> {
    ObjectLake::change(Client::new(bucket))
}

type Change<'c> = dyn Fn(&ObjectLake<Client>) -> io::Result<()> + 'c;

fn all_days(lake: &ObjectLake<Client>) -> io::Result<()> {
    compact(lake, &|_| true).map(|_| ())
}

fn clean(lake: &ObjectLake<Client>) -> io::Result<()> {
    gc(lake, Duration::ZERO, &[], SystemTime::now() + Duration::from_secs(1)).map(|_| ())
}

/// The number of calls of an undisturbed change.
fn calls(bucket: &Bucket, change: &Change<'_>) -> usize {
    let client = Client::new(&bucket.duplicate());
    let lake = ObjectLake::change(client);
    change(&lake).unwrap();
    lake.objects().calls.load(Relaxed)
}

#[track_caller]
fn assert_sound(bucket: &Bucket, when: &str) {
    clean(&lake_of(bucket)).unwrap();
    let found = verify(&lake_of(bucket), &[]).unwrap();
    assert_eq!((found.orphans, found.faults.as_slice()), (0, &[][..]), "{when}");
}

/// Applies a change to copies of a bucket, killed before or after each of its calls, and then applies it again.
/// Meanwhile the valid rows are those before or those after the change.
fn killed_at_every_call(bucket: &Bucket, after: &Counts, change: &Change<'_>) -> usize {
    let before = exits_of(bucket);
    let calls = calls(bucket, change);
    for at in 0..calls {
        for event in [Event::KilledBefore, Event::KilledAfter] {
            let copy = bucket.duplicate();
            let lake = ObjectLake::change(Client::killed(&copy, at, event));
            assert!(change(&lake).is_err(), "{event:?} call {at}");
            let now = exits_of(&copy);
            assert!(now == before || now == *after, "{event:?} call {at}: {now:?}");
            change(&lake_of(&copy)).unwrap();
            assert_eq!(exits_of(&copy), *after, "done again, {event:?} call {at}");
            assert_sound(&copy, "done again and cleaned up");
            assert_eq!(exits_of_all(&copy), *after, "cleaned up, {event:?} call {at}");
        }
    }
    calls
}

#[test]
fn killed_at_every_call_nothing_is_lost_or_doubled() {
    let bucket = Bucket::default();
    add_kept(&lake_of(&bucket), ("web1", "a", BEGUN_NS)).unwrap();
    let exits = exits_of(&bucket)["web1"];
    let both: Counts = ["web1", "web2"].map(|host| (host.to_owned(), exits)).into();
    let second = |lake: &ObjectLake<Client>| add_kept(lake, ("web2", "a", BEGUN_NS)).map(|_| ());
    let adding = killed_at_every_call(&bucket, &both, &second);
    second(&lake_of(&bucket)).unwrap();
    let newer = |lake: &ObjectLake<Client>| add_kept(lake, ("web2", "b", BEGUN_NS)).map(|_| ());
    let replacing = killed_at_every_call(&bucket, &both, &newer);
    newer(&lake_of(&bucket)).unwrap();
    let compacting = killed_at_every_call(&bucket, &both, &all_days);
    all_days(&lake_of(&bucket)).unwrap();
    let cleaning = killed_at_every_call(&bucket, &both, &clean);
    assert!(
        adding >= 5 && replacing >= 6 && compacting >= 12 && cleaning >= 12,
        "{adding} {replacing} {compacting} {cleaning}"
    );
}

/// A store has no rename, so for a time a session has rows at both days. The later one is valid, whenever the run is
/// killed.
#[test]
fn a_row_that_moves_to_another_day_counts_once() {
    let bucket = Bucket::default();
    for host in ["web1", "web2"] {
        add_kept(&lake_of(&bucket), (host, "a", BEGUN_NS)).unwrap();
    }
    let (exits, before) = (exits_listed(&bucket), exits_of(&bucket));
    // A day later and a day earlier, so that either row may be the first by name.
    for day in [1, -1] {
        let moved = move |lake: &ObjectLake<Client>| {
            add_kept(lake, ("web2", "a", BEGUN_NS + day * DAY_NS)).map(|_| ())
        };
        let mut at_both = 0;
        for at in 0..calls(&bucket, &moved) {
            for event in [Event::KilledBefore, Event::KilledAfter] {
                let copy = bucket.duplicate();
                let when = format!("{event:?} call {at}, day {day}");
                assert!(moved(&ObjectLake::change(Client::killed(&copy, at, event))).is_err());
                let days = copy.names().iter().filter(|name| name.contains("sessions/")).count();
                at_both += usize::from(days == 3);
                assert_eq!(exits_listed(&copy), exits, "{when}");
                let sessions = counted(&lake_of(&copy)).unwrap().remove(0).files;
                assert_eq!(sessions.len(), 2, "{when}");
                let cleaned = copy.duplicate();
                assert_sound(&cleaned, &when);
                let all = (exits_listed(&cleaned), exits_of_all(&cleaned));
                assert_eq!(all, (exits, before.clone()), "{when}");
                moved(&lake_of(&copy)).unwrap();
                let all = (exits_listed(&copy), exits_of_all(&copy));
                assert_eq!(all, (exits, before.clone()), "{when}");
                assert_sound(&copy, &when);
            }
        }
        // Otherwise the test would never see both rows.
        assert!(at_both >= 2, "{at_both}");
    }
}

/// Two concurrent runs, one of which runs completely before each call of the other. One may fail with a message about
/// the other; repeating both gives the expected rows.
#[test]
fn two_runs_at_a_time_double_nothing() {
    let bucket = Bucket::default();
    for host in ["web1", "web2"] {
        add_kept(&lake_of(&bucket), (host, "a", BEGUN_NS)).unwrap();
    }
    let counts = exits_of(&bucket);
    let newer = |lake: &ObjectLake<Client>| add_kept(lake, ("web2", "b", BEGUN_NS)).map(|_| ());
    let later =
        |lake: &ObjectLake<Client>| add_kept(lake, ("web2", "c", BEGUN_NS + DAY_NS)).map(|_| ());
    // With the real grace period: recent files stay.
    let clean = |lake: &ObjectLake<Client>| {
        gc(lake, Duration::from_secs(86_400), &[], SystemTime::now()).map(|_| ())
    };
    type Run = fn(&ObjectLake<Client>) -> io::Result<()>;
    let changes: [(&str, Run); 4] =
        [("newer", newer), ("later", later), ("compact", all_days), ("gc", clean)];
    let mut refused = 0;
    for (first, change) in changes {
        for (second, other) in changes {
            for at in 0..calls(&bucket, &change) {
                let copy = bucket.duplicate();
                let theirs = copy.clone();
                // The other run is undisturbed, so that all faults come from the interaction.
                let disturb = move || other(&lake_of(&theirs)).unwrap();
                let when = format!("{second} before call {at} of {first}");
                let lake = ObjectLake::change(Client::disturbed(&copy, at, disturb));
                if let Err(error) = change(&lake) {
                    refused += 1;
                    let is_said = matches!(
                        error.kind(),
                        io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound
                    ) || error.to_string().contains("another");
                    assert!(is_said, "{when}: {error}");
                }
                assert_eq!(exits_of(&copy), counts, "{when}");
                change(&lake_of(&copy)).unwrap();
                assert_eq!(exits_of(&copy), counts, "done again, {when}");
                assert_sound(&copy, &when);
                assert_eq!(exits_of_all(&copy), counts, "cleaned up, {when}");
            }
        }
    }
    assert!(refused > 0, "no two runs were ever in each other's way");
}

/// Another run writes rows of an earlier conversion again while gc is about to remove them.
#[test]
fn what_counts_again_while_gc_runs_stays() {
    let bucket = Bucket::default();
    for hash in ["a", "b"] {
        add_kept(&lake_of(&bucket), ("web1", hash, BEGUN_NS)).unwrap();
    }
    let counts = exits_of_all(&bucket);
    let before = bucket.names().len();
    // One removal per file. gc checks again before removals; after that, a store has no safe way.
    let removals = 3;
    let calls = calls(&bucket, &clean);
    for at in 0..calls - removals {
        let copy = bucket.duplicate();
        let theirs = copy.clone();
        let again = move || {
            add_kept(&lake_of(&theirs), ("web1", "a", BEGUN_NS)).unwrap();
        };
        clean(&ObjectLake::change(Client::disturbed(&copy, at, again))).unwrap();
        assert_eq!(exits_of_all(&copy), counts, "call {at} of {calls}");
        assert!(verify(&lake_of(&copy), &[]).unwrap().faults.is_empty(), "call {at} of {calls}");
    }
    clean(&lake_of(&bucket)).unwrap();
    assert!(bucket.names().len() < before);
}

/// A store whose objects are files of a folder, read in arbitrary parts, is the same lake.
#[test]
fn a_lake_is_the_same_in_a_store_and_over_pipes() {
    let (folder, bucket) = (temporary(), Bucket::default());
    let local = LocalFolder::change(folder.path()).unwrap();
    let (ours, theirs) = UnixStream::pair().unwrap();
    let client = Client::new(&bucket);
    let served = std::thread::spawn({
        let theirs = theirs.try_clone().unwrap();
        move || serve(Ok(client), theirs.try_clone().unwrap(), theirs)
    });
    let by_pipes = ObjectsByProcess::over(ours.try_clone().unwrap(), ours.try_clone().unwrap());
    let piped = ObjectLake::change(by_pipes);
    fn change<S: Storage>(storage: &S) {
        for host in ["web1", "web2", "web3"] {
            add(storage, host, "a").unwrap();
        }
        assert_eq!(compact(storage, &|_| true).unwrap().parts, 1);
        add(storage, "web3", "b").unwrap();
    }
    change(&local);
    change(&piped);
    let names: Vec<String> =
        local.list("v1").unwrap().into_iter().map(|entry| entry.name).collect();
    assert_eq!(bucket.names(), names);
    assert!(piped.list("v1/none").unwrap().is_empty());
    let as_local = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    let copy = temporary();
    bucket.write_to(copy.path());
    for name in &names {
        assert!(std::fs::read(copy.path().join(name)).unwrap() == as_local(name), "{name}");
    }
    assert_eq!(verify(&piped, &[]).unwrap(), verify(&local, &[]).unwrap());
    let gone = Entry { name: "v1/none".to_owned(), ..piped.list("v1").unwrap().remove(0) };
    assert_eq!(piped.open(&[&gone]).unwrap_err().kind(), io::ErrorKind::NotFound);
    // The other end disappears: the caller must not wait forever.
    ours.shutdown(Shutdown::Both).unwrap();
    let error = add(&piped, "web4", "a").unwrap_err();
    assert!(error.to_string().contains("has exited"), "{error}");
    drop(piped);
    let _ = served.join().unwrap();
}

/// Without a store, every reply is the reason, also to a call that is followed by an object's bytes.
#[test]
fn without_a_store_every_call_says_why() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let served = std::thread::spawn(move || {
        let no_store: io::Result<Client> = Err(io::Error::from(io::ErrorKind::PermissionDenied));
        serve(no_store, theirs.try_clone().unwrap(), theirs)
    });
    let lake = ObjectLake::change(ObjectsByProcess::over(ours.try_clone().unwrap(), ours));
    for _ in 0..2 {
        let mut file = lake.begin().unwrap();
        io::Write::write_all(&mut file, &[7; 100_000]).unwrap();
        let refused = [
            lake.list("v1").unwrap_err(),
            lake.put(file, "v1/x").unwrap_err(),
            lake.remove(&["v1/x"]).unwrap_err(),
        ];
        assert!(refused.iter().all(|error| error.kind() == io::ErrorKind::PermissionDenied));
    }
    drop(lake);
    served.join().unwrap().unwrap();
}

/// An object too large for one request is read in blocks.
#[test]
fn large_objects_are_read_in_parts() {
    let bucket = Bucket::default();
    add_kept(&lake_of(&bucket), ("web1", "a", BEGUN_NS)).unwrap();
    let client = Client::new(&bucket);
    let exits = client.list("v1/exits").unwrap().remove(0);
    let large = Bucket::default();
    let filler: Vec<u8> = (0..9_000_000_u32).map(|at| (at / 7 % 251) as u8).collect();
    let client = Client::new(&large);
    client
        .put("v1/large", filler.len() as u64, &mut &*filler, &fleet::lake::store::Before::Nothing)
        .unwrap();
    let lake = ObjectLake::change(client);
    let entry = lake.list("v1").unwrap().remove(0);
    let file = lake.open(&[&entry]).unwrap().remove(0);
    assert_eq!(file.len(), filler.len() as u64);
    for (from, length) in [(0, 10), (5, 3 << 20), (8_999_990, 10), (0, 9_000_000), (4 << 20, 1)] {
        let read = file.get_bytes(from as u64, length).unwrap();
        assert!(*read == filler[from..from + length], "{from} {length}");
        let mut reader = file.get_read(from as u64).unwrap();
        let mut some = vec![0; length.min(2_000_000)];
        io::Read::read_exact(&mut reader, &mut some).unwrap();
        assert!(some == filler[from..from + some.len()], "{from} {length}");
    }
    assert!(file.get_bytes(8_999_991, 10).is_err() && file.get_bytes(u64::MAX, 10).is_err());
    let mut rest = Vec::new();
    io::Read::read_to_end(&mut file.get_read(8_999_000).unwrap(), &mut rest).unwrap();
    assert!(rest == filler[8_999_000..]);
    let small = lake_of(&bucket).open(&[&exits]).unwrap().remove(0);
    assert!(SerializedFileReader::new(small).unwrap().metadata().num_row_groups() > 0);
}
