//! What confined threads can do, and what the kernel does not let them do.

#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Command;
use std::sync::mpsc;
use std::thread;

use os::confine::{CapabilitySet, Confined, Unconfined, apart, failure, keep_only};
use rustix::mount::{UnmountFlags, unmount};

/// Said by an error of a call that is not allowed.
const EPERM: Option<i32> = Some(1);

/// A line of what the kernel says of a thread of this process.
fn status(thread: i32, key: &str) -> String {
    let text = fs::read_to_string(format!("/proc/self/task/{thread}/status")).unwrap();
    let line = text.lines().find(|line| line.starts_with(key)).unwrap();
    line.split_once(':').unwrap().1.trim().to_owned()
}

#[test]
fn a_reader_opens_connects_and_starts_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "x").unwrap();
    let refused = apart(Confined::Reader, "reader", || {
        Ok([
            ("open", File::open(&path).err()),
            ("create", File::create(folder.path().join("new")).err()),
            ("remove", fs::remove_file(&path).err()),
            ("connect", TcpStream::connect(at).err()),
            ("bind", UdpSocket::bind("127.0.0.1:0").err()),
            ("accept", listener.accept().err()),
            ("thread", thread::Builder::new().spawn(|| ()).err()),
            ("program", Command::new("true").spawn().err()),
        ])
    });
    for (what, error) in refused.unwrap() {
        assert_eq!(error.unwrap().raw_os_error(), EPERM, "{what}");
    }
    assert_eq!(failure(), None);
}

#[test]
fn a_reader_uses_what_it_was_given() {
    let mut file = tempfile::tempfile().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut out = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut inside, _) = listener.accept().unwrap();
    let read = apart(Confined::Reader, "reader", || {
        out.set_nodelay(true).unwrap();
        out.write_all(&[7; 100]).unwrap();
        let mut read = [0; 100];
        inside.read_exact(&mut read).unwrap();
        // More than an allocator has at hand, in many pieces and in large ones.
        let many: Vec<Vec<u8>> = (0..2000).map(|at| vec![1; at * 64]).collect();
        file.write_all(&read).unwrap();
        file.sync_data().unwrap();
        file.rewind().unwrap();
        let caught = std::panic::catch_unwind(|| std::panic::resume_unwind(Box::new(())));
        Ok((many.len(), file.read(&mut read)?, caught.is_err()))
    });
    assert_eq!(read.unwrap(), (2000, 100, true));
}

#[test]
fn a_listener_takes_connections_and_what_it_starts_is_confined() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let client = thread::spawn(move || TcpStream::connect(at).unwrap());
    let refused = apart(Confined::Listener, "listener", || {
        let accepted = listener.accept().map(drop);
        let started = thread::Builder::new().spawn(move || {
            let before = TcpStream::connect(at).err();
            Confined::Reader.enter();
            [before, thread::Builder::new().spawn(|| ()).err()]
        });
        let of_started = started.unwrap().join().unwrap();
        let opened = File::open("/proc/self/status").err();
        let connected = TcpStream::connect(at).err();
        Ok((accepted.is_ok(), of_started, opened, connected))
    });
    let (accepted, [first, other], opened, connected) = refused.unwrap();
    assert!(accepted);
    for error in [first, other, opened, connected] {
        assert_eq!(error.unwrap().raw_os_error(), EPERM);
    }
    client.join().unwrap();
}

#[test]
fn what_nobody_has_a_reason_to_call_ends_the_process() {
    const ALONE: &str = "CONFINE_ALONE";
    let confined = match std::env::var(ALONE).as_deref() {
        Ok("reader") => Confined::Reader,
        Ok("listener") => Confined::Listener,
        Ok("tracefs") => Confined::TracefsWorker(CapabilitySet::empty()),
        Ok(_) => Confined::WORKER,
        Err(_) => {
            for role in ["reader", "listener", "tracefs", "worker"] {
                let mut again = Command::new(std::env::current_exe().unwrap());
                again.args(["--exact", "what_nobody_has_a_reason_to_call_ends_the_process"]);
                let ended = again.env(ALONE, role).output().unwrap();
                // SIGSYS.
                assert_eq!(ended.status.signal(), Some(31), "{role}: {ended:?}");
            }
            return;
        }
    };
    let _ = apart(confined, "tries", || Err::<(), _>(Command::new("true").exec()));
}

#[test]
fn who_looks_for_tracefs_is_refused_to_mount_it_and_lives() {
    let all = CapabilitySet::all();
    let refused = apart(Confined::TracefsWorker(all), "mounts", || {
        let folder = tempfile::tempdir()?;
        // Without the filter: EINVAL, as nothing is mounted there.
        Ok(unmount(folder.path(), UnmountFlags::empty()).err())
    });
    assert_eq!(refused.unwrap(), Some(rustix::io::Errno::PERM));
}

#[test]
fn confined_threads_have_no_capability_and_a_filter() {
    let of_tracefs = Confined::TracefsWorker(CapabilitySet::empty());
    for (confined, filters) in
        [(Confined::Reader, 2), (Confined::Listener, 3), (Confined::WORKER, 1), (of_tracefs, 2)]
    {
        let (sent, received) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            let own_tid = rustix::thread::gettid().as_raw_nonzero().get();
            confined.enter();
            sent.send(own_tid).unwrap();
            let _ = ended.recv();
        });
        let tid = received.recv().unwrap();
        for set in ["CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb"] {
            let mask = status(tid, set);
            let is_root = rustix::process::geteuid().is_root();
            assert!(
                mask.chars().all(|digit| digit == '0') || (set == "CapBnd" && !is_root),
                "{set}"
            );
        }
        assert_eq!(status(tid, "NoNewPrivs"), "1");
        assert_eq!(status(tid, "Seccomp"), "2");
        assert_eq!(status(tid, "Seccomp_filters"), filters.to_string());
        drop(end);
        thread.join().unwrap();
    }
    // Others are as they were.
    let own_tid = rustix::thread::gettid().as_raw_nonzero().get();
    assert_eq!(
        (status(own_tid, "NoNewPrivs"), status(own_tid, "Seccomp")),
        ("0".into(), "0".into())
    );
}

#[test]
fn a_thread_keeps_the_capabilities_that_it_names() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root has capabilities to keep");
        return;
    }
    let thread = thread::spawn(|| {
        keep_only(CapabilitySet::CHOWN).unwrap();
        let own_tid = rustix::thread::gettid().as_raw_nonzero().get();
        ["CapEff", "CapPrm", "CapBnd", "CapInh"].map(|set| status(own_tid, set))
    });
    let [effective, permitted, bounding, inheritable] = thread.join().unwrap();
    let chown = "0000000000000001";
    assert_eq!([&*effective, &*permitted, &*bounding], [chown; 3]);
    assert_eq!(inheritable, "0000000000000000");
}

#[test]
fn an_unconfined_thread_opens_for_a_confined_one() {
    let opener = Unconfined::start("opens").unwrap();
    let read = apart(Confined::Reader, "reader", || {
        let mut file = opener.run(|| File::open("/proc/self/comm")).unwrap().unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text)
    });
    assert!(read.unwrap() > 0);
    let panicked = opener.run(|| std::panic::resume_unwind(Box::new(())));
    assert!(panicked.is_err() && opener.run(|| ()).is_err());
}
