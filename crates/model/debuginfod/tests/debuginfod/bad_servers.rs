//! Whatever servers do, it ends in time, and nothing is kept but what was asked for.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use symbols::{BuildId, Fetch, WantedFile};

use crate::programs::{build, client, settings, with};
use crate::server::{Server, give, give_for_ever, send_on};

const OTHER: BuildIdBytes = [7; 20];
type BuildIdBytes = [u8; 20];

/// Files of the cache, and how long they are.
fn cached_files(cache: &Path) -> Vec<(String, u64)> {
    let folders = fs::read_dir(cache).into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| fs::read_dir(folder.path()).unwrap().flatten());
    files
        .map(|file| (file.file_name().into_string().unwrap(), file.metadata().unwrap().len()))
        .collect()
}

#[test]
fn the_first_server_that_has_it_gives_it_and_it_is_asked_for_once() {
    let at = tempfile::tempdir().unwrap();
    let (program, cache) = (build(at.path(), 1), at.path().join("cache"));
    let bytes = fs::read(&program.debug).unwrap();
    let expected = bytes.clone();
    let empty = Server::start(|_, stream| give(stream, "404 Not Found", b""));
    let has = Server::start(move |_, stream| give(stream, "200 OK", &bytes));
    let last = Server::start(|_, stream| give(stream, "500 Oh", b""));
    let urls = [&empty, &has, &last].map(|server| server.url.clone());
    let (mut client, log) = client(&urls, &cache);
    for _ in 0..2 {
        let path = client.fetch("program", &program.build_id, WantedFile::DebugFile).unwrap();
        assert_eq!(path, cache.join(program.build_id.to_string()).join("debuginfo"));
        assert_eq!(fs::read(path).unwrap(), expected);
    }
    assert_eq!([empty.count(), has.count(), last.count()], [1, 1, 0]);
    assert_eq!(has.paths(), [format!("/buildid/{}/debuginfo", program.build_id)]);
    assert_eq!((log.lines(), log.0.lock().1), (vec![], expected.len() as u64));
}

#[test]
fn what_no_server_has_is_not_asked_for_again_for_a_while() {
    let at = tempfile::tempdir().unwrap();
    let server = Server::start(|_, stream| give(stream, "404 Not Found", b"no"));
    let urls = [server.url.clone()];
    let id = BuildId::new(&OTHER);
    for _ in 0..2 {
        let (mut client, log) = client(&urls, at.path());
        assert_eq!(client.fetch("a", &id, WantedFile::Either), None);
        assert_eq!(client.fetch("a", &id, WantedFile::Either), None);
        assert_eq!(log.lines(), Vec::<String>::new());
    }
    let paths = ["debuginfo", "executable"].map(|kind| format!("/buildid/{id}/{kind}"));
    assert_eq!(server.paths(), paths);
    let mut files = cached_files(at.path());
    files.sort();
    assert_eq!(files, [("debuginfo".to_owned(), 0), ("executable".to_owned(), 0)]);
    fs::write(at.path().join("cache_miss_s"), "0").unwrap();
    std::thread::sleep(Duration::from_millis(20));
    let (mut again, _) = client(&urls, at.path());
    again.fetch("a", &id, WantedFile::DebugFile);
    assert_eq!(server.count(), 3);
}

#[test]
fn without_a_debug_file_the_program_itself_will_do() {
    let at = tempfile::tempdir().unwrap();
    let program = build(at.path(), 2);
    let bytes = fs::read(&program.stripped).unwrap();
    let server = Server::start(move |path, stream| {
        let has = path.ends_with("/executable");
        give(stream, if has { "200 OK" } else { "404 No" }, if has { &bytes } else { b"" });
    });
    let (mut client, _) = client(std::slice::from_ref(&server.url), &at.path().join("cache"));
    assert_eq!(client.fetch("p", &program.build_id, WantedFile::DebugFile), None);
    let path = client.fetch("p", &program.build_id, WantedFile::Either).unwrap();
    assert!(path.ends_with("executable"));
}

#[test]
fn files_of_another_build_id_and_what_is_none_are_not_kept() {
    let at = tempfile::tempdir().unwrap();
    let (program, cache) = (build(at.path(), 3), at.path().join("cache"));
    for body in [fs::read(&program.debug).unwrap(), b"<html>".to_vec(), Vec::new()] {
        let server = Server::start(move |_, stream| give(stream, "200 OK", &body));
        let (mut client, log) = client(std::slice::from_ref(&server.url), &cache);
        assert_eq!(client.fetch("p", &BuildId::new(&OTHER), WantedFile::Either), None);
        // It is asked for nothing more: not for the program either.
        assert_eq!(client.fetch("p", &program.build_id, WantedFile::DebugFile), None);
        assert_eq!(server.count(), 1);
        let [line] = &log.lines()[..] else { panic!("{log:?}") };
        assert!(line.contains(&server.url) && line.contains("is ignored from now on"), "{line}");
        assert_eq!(cached_files(&cache), []);
    }
}

#[test]
fn a_body_without_end_is_cut_at_the_size_that_is_allowed() {
    let at = tempfile::tempdir().unwrap();
    let part = vec![0x7f; 64 << 10];
    let server = Server::start(move |_, stream| give_for_ever(stream, &part, Duration::ZERO));
    let mut bounds = settings(std::slice::from_ref(&server.url), at.path());
    bounds.most_file_bytes = 4 << 20;
    let (mut client, log) = with(bounds);
    assert_eq!(client.fetch("p", &BuildId::new(&OTHER), WantedFile::DebugFile), None);
    assert!(log.lines()[0].contains("larger than 4194304 bytes"), "{log:?}");
    assert_eq!(cached_files(at.path()), []);
    assert!(log.0.lock().1 <= 4 << 20);
}

#[test]
fn a_server_that_announces_too_much_sends_nothing() {
    let at = tempfile::tempdir().unwrap();
    let server = Server::start(|_, stream| give(stream, "200 OK", &vec![0; 1 << 20]));
    let mut bounds = settings(std::slice::from_ref(&server.url), at.path());
    bounds.most_file_bytes = 1000;
    let (mut client, log) = with(bounds);
    assert_eq!(client.fetch("p", &BuildId::new(&OTHER), WantedFile::DebugFile), None);
    assert_eq!((log.lines().len(), log.0.lock().1), (1, 0));
}

/// Servers that say nothing, and those that say a byte now and then: given up in time, and once for all.
#[test]
fn slow_servers_are_given_up() {
    let at = tempfile::tempdir().unwrap();
    let silent = Server::start(|_, _| std::thread::sleep(Duration::from_secs(3600)));
    let drips = Server::start(|_, stream| give_for_ever(stream, b"x", Duration::from_millis(300)));
    for server in [silent, drips] {
        let start = Instant::now();
        let (mut client, log) = client(std::slice::from_ref(&server.url), at.path());
        for number in 0..3 {
            let id = BuildId::new(&[number; 20]);
            assert_eq!(client.fetch("p", &id, WantedFile::Either), None);
        }
        let took = start.elapsed();
        assert!(took > Duration::from_secs(1) && took < Duration::from_secs(20), "{took:?}");
        assert_eq!((server.count(), log.lines().len()), (1, 1), "{log:?}");
        assert_eq!(cached_files(at.path()), []);
    }
}

#[test]
fn all_downloads_together_have_a_deadline() {
    let at = tempfile::tempdir().unwrap();
    let part = vec![0; 200 << 10];
    let steady = Server::start(move |_, stream| {
        give_for_ever(stream, &part, Duration::from_millis(100));
    });
    let mut bounds = settings(std::slice::from_ref(&steady.url), at.path());
    bounds.most_time = Duration::from_secs(3);
    bounds.most_file_time = Duration::from_secs(1);
    bounds.most_file_bytes = 1 << 40;
    let (mut client, log) = with(bounds);
    let start = Instant::now();
    for number in 0..20 {
        assert_eq!(client.fetch("p", &BuildId::new(&[number; 20]), WantedFile::DebugFile), None);
    }
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    let lines = log.lines();
    assert!(lines.last().unwrap().contains("time for all downloads, 3 s, is over"), "{lines:?}");
    assert!(lines[0].contains("takes too long") && steady.count() < 20, "{lines:?}");
}

#[test]
fn servers_may_send_on_but_to_themselves_alone_and_not_for_ever() {
    let at = tempfile::tempdir().unwrap();
    let (program, cache) = (build(at.path(), 4), at.path().join("cache"));
    let bytes = fs::read(&program.debug).unwrap();
    let sends_on = Server::start(move |path, stream| match path {
        "/elsewhere" => give(stream, "200 OK", &bytes),
        _ => send_on(stream, "/elsewhere"),
    });
    let (mut first, _) = client(std::slice::from_ref(&sends_on.url), &cache);
    assert!(first.fetch("p", &program.build_id, WantedFile::DebugFile).is_some());
    // Another server of this machine, as one of an inner network.
    let inner = Server::start(|_, stream| give(stream, "200 OK", b"secret"));
    let to = format!("{}/latest", inner.url);
    let leads = Server::start(move |_, stream| send_on(stream, &to));
    let (mut led, log) = client(std::slice::from_ref(&leads.url), &cache);
    assert_eq!(led.fetch("p", &BuildId::new(&OTHER), WantedFile::DebugFile), None);
    assert_eq!((inner.count(), log.lines().len()), (0, 1), "{log:?}");
    assert!(log.lines()[0].contains("redirects to another server"), "{log:?}");
    let round = Server::start(|path, stream| send_on(stream, path));
    let (mut other, log) = client(std::slice::from_ref(&round.url), &cache);
    assert_eq!(other.fetch("p", &BuildId::new(&OTHER), WantedFile::DebugFile), None);
    assert!(round.count() < 20 && log.lines().len() == 1, "{} {log:?}", round.count());
    // Files of this machine are no servers.
    let file = format!("file://{}", program.debug.display());
    let local = Server::start(move |_, stream| send_on(stream, &file));
    let (mut third, log) = client(std::slice::from_ref(&local.url), &cache);
    assert_eq!(third.fetch("p", &BuildId::new(&OTHER), WantedFile::DebugFile), None);
    assert_eq!(log.lines().len(), 1);
}

#[test]
fn a_server_that_is_not_there_is_said_once_and_nothing_is_remembered() {
    let at = tempfile::tempdir().unwrap();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let urls = [format!("http://user:secret@{gone}"), "https://127.0.0.1:1".to_owned()];
    let (mut client, log) = client(&urls, at.path());
    for number in 0..3 {
        assert_eq!(client.fetch("p", &BuildId::new(&[number; 20]), WantedFile::Either), None);
    }
    let lines = log.lines();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].starts_with(&format!("http://{gone} is ignored from now on")), "{lines:?}");
    assert_eq!(cached_files(at.path()), []);
}

#[test]
fn a_cache_that_cannot_be_written_is_said_once() {
    let at = tempfile::tempdir().unwrap();
    let server = Server::start(|_, stream| give(stream, "404 No", b""));
    let file = at.path().join("file");
    fs::write(&file, b"").unwrap();
    let (mut client, log) = client(std::slice::from_ref(&server.url), &file.join("cache"));
    for number in 0..3 {
        assert_eq!(client.fetch("p", &BuildId::new(&[number; 20]), WantedFile::Either), None);
    }
    assert_eq!((server.count(), log.lines().len()), (0, 1), "{log:?}");
}
