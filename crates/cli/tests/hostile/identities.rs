//! Guests that connect on their own: their identity, their names, and their disk quota.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use channel::wire::{ControlDecoder, GuestHello, Message, PageHead, encode};
use serde_json::Value;

use crate::agent::{Agent, signal};
use crate::extent::extent;
use crate::tool::{command, lock_tracing, run, wait_until};

/// `listen`, with its messages in a file.
struct Listening {
    folder: tempfile::TempDir,
    at: String,
    child: Child,
}

impl Listening {
    fn begin(channel: impl Fn(&Path, &str) -> String, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let to = folder.path().join("guests");
        let stderr = File::create(folder.path().join("said")).unwrap();
        let address = channel(folder.path(), &at);
        let words = ["listen", &address, "-e", "sched_process_exec", "-o", to.to_str().unwrap()];
        let child = command(&[&words[..], more].concat()).stderr(stderr).spawn().unwrap();
        let listening = Self { folder, at, child };
        wait_until("it does not listen", || listening.stderr().contains("waiting for agents"));
        listening
    }

    fn plain(more: &[&str]) -> Self {
        Self::begin(|_, at| format!("tcp-plain:{at}"), more)
    }

    fn stderr(&self) -> String {
        fs::read_to_string(self.folder.path().join("said")).unwrap()
    }

    /// The folders with sessions.
    fn sessions(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path().join("guests")).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn bytes(&self) -> u64 {
        bytes(&self.folder.path().join("guests"))
    }

    fn session(&self, name: &str) -> Value {
        let path = self.folder.path().join("guests").join(name).join("session.json");
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    }

    fn end(&mut self) {
        signal(self.child.id(), "INT");
        assert!(self.child.wait().unwrap().success(), "{}", self.stderr());
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Bytes on disk.
fn bytes(path: &Path) -> u64 {
    let about = fs::symlink_metadata(path).unwrap();
    let inside = fs::read_dir(path).into_iter().flatten();
    inside.map(|entry| bytes(&entry.unwrap().path())).sum::<u64>() + about.blocks() * 512
}

/// A guest that sends this many bytes of pages and leaves; returns whether it was recorded.
fn visit(at: &str, host_name: &str, page_bytes: usize) -> bool {
    visit_for(Duration::from_millis(300), at, host_name, page_bytes)
}

/// A guest that sends this many bytes of pages, then stays silent for `stay`, whatever it is asked.
fn visit_for(stay: Duration, at: &str, host_name: &str, page_bytes: usize) -> bool {
    let connect = || {
        let stream = TcpStream::connect(at).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    };
    let mut control = connect();
    let hello = GuestHello {
        version: channel::wire::VERSION,
        uname: "Linux guest 6.12.0 #1 x86_64".into(),
        host_name: host_name.into(),
        agent: "0.1.0".into(),
        long_bytes: 8,
        page_bytes: 4096,
        cpus: 1,
        streams: 1,
        ..GuestHello::default()
    };
    let mut decoder = ControlDecoder::new();
    control.write_all(&encode(0, &Message::GuestHello(hello.clone())).unwrap()).unwrap();
    let Some((session, Message::HostHello)) = next(&mut control, &mut decoder) else {
        return false;
    };
    control.write_all(&encode(session, &Message::GuestHello(hello)).unwrap()).unwrap();
    let Some((_, Message::Start(_))) = next(&mut control, &mut decoder) else { return false };
    let mut pages = connect();
    pages.write_all(&encode(session, &Message::Attach(0)).unwrap()).unwrap();
    for offset in (0..page_bytes).step_by(65536) {
        let head = PageHead { cpu: 0, session, offset: offset as u64, bytes: 65536 };
        let sent = pages.write_all(&head.encode()).and_then(|()| pages.write_all(&[1; 65536]));
        if sent.is_err() {
            break;
        }
    }
    std::thread::sleep(stay);
    true
}

fn next(from: &mut TcpStream, decoder: &mut ControlDecoder) -> Option<(u64, Message)> {
    let mut buffer = [0; 4096];
    loop {
        if let Some(found) = decoder.next() {
            return Some(found);
        }
        let read = from.read(&mut buffer).ok().filter(|read| *read > 0)?;
        decoder.push(&buffer[..read]);
    }
}

#[test]
fn all_sessions_of_a_guest_are_within_one_quota() {
    let mut listening = Listening::plain(&["--quota", "2M"]);
    let mut recorded = 0;
    for at in 1..=extent(6, 40) {
        recorded += usize::from(visit(&listening.at, "web", 1 << 20));
        let ended = || listening.stderr().matches("session: ").count();
        wait_until("the session does not end", || ended() == recorded);
        assert!(listening.bytes() < 5 << 19, "{} bytes after {at}", listening.bytes());
    }
    assert!((2..=8).contains(&recorded), "{recorded}: {}", listening.stderr());
    // A refused guest learns of it before its host has printed the reason.
    wait_until("it is not said why", || listening.stderr().contains("fill its quota"));
    // Freed space is used again.
    fs::remove_dir_all(listening.folder.path().join("guests/tcp-127.0.0.1.hscope")).unwrap();
    if extent(true, false) {
        assert!(visit(&listening.at, "web", 1 << 16), "{}", listening.stderr());
    }
    listening.end();
    assert!(listening.bytes() < 5 << 19);
}

#[test]
fn a_guest_that_comes_again_and_again_is_not_recorded_each_time() {
    let mut listening = Listening::plain(&[]);
    let visits = extent(14, 100);
    let recorded = (0..visits).filter(|_| visit(&listening.at, "web", 0)).count();
    listening.end();
    assert!(recorded < visits, "{}", listening.stderr());
    assert!(listening.stderr().contains("too often"), "{}", listening.stderr());
    // Not every refusal is reported.
    let refusals = listening.stderr().matches("too often").count();
    assert!(refusals <= 5 + visits / 20, "{refusals}");
}

#[test]
fn a_guest_is_called_by_its_address_and_what_it_claims_is_a_label() {
    let mut listening = Listening::plain(&[]);
    let claimed = format!("web\u{1b}]0;owned\u{7}\u{202e}/../{}", "x".repeat(5000));
    assert!(visit(&listening.at, &claimed, 4096));
    listening.end();
    assert_eq!(listening.sessions(), ["tcp-127.0.0.1.hscope"]);
    let session = listening.session("tcp-127.0.0.1.hscope");
    let guest = &session["recorded"]["guests"][0];
    assert_eq!(guest["name"], "tcp-127.0.0.1");
    assert_eq!(guest["identity"], "tcp:127.0.0.1");
    let label = guest["label"].as_str().unwrap();
    assert!(label.starts_with("web\\u{1b}]0;owned\\u{7}\\u{202e}/../x"), "{label}");
    assert!(label.chars().count() <= 65, "{label}");
    let title = session["title"].as_str().unwrap();
    assert!(title.contains("tcp-127.0.0.1 (calls itself web"), "{title}");
    assert!(!listening.stderr().contains('\u{1b}'), "{:?}", listening.stderr());
}

#[test]
fn a_guest_with_a_key_is_called_by_its_certificate() {
    let Some(_lock) = lock_tracing() else { return };
    let channel = |folder: &Path, at: &str, side: &str, other: &str| {
        let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let (identity, peers) = (file(&format!("{side}.pem")), file(&format!("{other}.crt")));
        format!("tls:{at},identity={identity},peers={peers}")
    };
    let mut listening = Listening::begin(
        |folder, at| {
            for name in ["guest", "host"] {
                let made = run(&["keys", "-o", folder.to_str().unwrap(), name]);
                assert_eq!(made.code, Some(0), "{}", made.stderr);
            }
            channel(folder, at, "host", "guest")
        },
        &[],
    );
    let of_agent = channel(listening.folder.path(), &listening.at, "guest", "host");
    let agent = Agent::start(&format!("connect:{of_agent}"));
    wait_until("it is not recorded", || listening.stderr().contains("recording guest"));
    listening.end();
    drop(agent);
    let sessions = listening.sessions();
    let name = sessions[0].strip_suffix(".hscope").unwrap();
    let digits = name.strip_prefix("tls-").unwrap();
    assert!(digits.len() == 16 && digits.bytes().all(|c| c.is_ascii_hexdigit()), "{name}");
    let identity = listening.session(&sessions[0])["recorded"]["guests"][0]["identity"].clone();
    assert!(identity.as_str().unwrap().starts_with(&format!("tls:sha256:{digits}")), "{identity}");
}

#[test]
fn sessions_of_guests_have_a_mode_a_lock_and_an_end() {
    let Some(_lock) = lock_tracing() else { return };
    let mut listening = Listening::plain(&["--mode", "640", "--guest-wait", "200ms"]);
    let at = listening.at.clone();
    // It stays connected after it is asked to stop.
    let stays = Duration::from_secs(8);
    std::thread::spawn(move || visit_for(stays, &at, "web", 1 << 16));
    let session = listening.folder.path().join("guests/tcp-127.0.0.1.hscope");
    wait_until("it is not recorded", || listening.stderr().contains("recording guest"));
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
    assert_eq!([mode(&session), mode(&session.join(".identity"))], [0o750, 0o640]);
    let ran = run(&["record", "--for", "1ms", "-o", session.to_str().unwrap()]);
    let holder = format!("process {}", listening.child.id());
    assert!(ran.code == Some(1) && ran.stderr.contains(&holder), "{}", ran.stderr);
    let start = Instant::now();
    listening.end();
    let took = start.elapsed();
    // Half a second for threads to finish; without the option, it is five more.
    assert!(took < Duration::from_secs(4), "{took:?}");
    assert!(!session.join(".recorder").exists());
    assert_eq!(mode(&session.join("session.json")), 0o640);
}
