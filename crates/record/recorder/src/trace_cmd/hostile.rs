//! Malicious or fake agents: none can stop, crash or fill the host that records them.

use std::io::{Cursor, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use channel::wire::trace_cmd::{MAX_DATA_BYTES, Message, Response};
use channel::{HostAddress, Stream, TraceCmd};
use os::folder::{Folder, Modes};
use os::waits::{Deadline, Signal, Wait};
use raw_bytes::{ByteOrder, LongSize};
use tracedat::{Compression, Contents, EventFormat, Formats, Header, TraceDatWriter, Version};

use super::Ready;
use crate::ending::{Ending, StartLimit};
use crate::error::Result;
use crate::guest::{GuestRecorded, ReadyGuest as _};
use crate::in_guests::InGuests;
use vms::GuestAddress;

const LONG: Duration = Duration::from_secs(20);
const PAGE: usize = 4096;
const QUOTA: u64 = 1 << 20;
/// Time to wait for agents after the end.
const REST: Duration = Duration::from_secs(1);

fn limit() -> StartLimit {
    StartLimit::within(LONG, &Signal::new().unwrap())
}

/// An agent that was asked to record.
struct Agent {
    host: TraceCmd,
    /// The listener for the pages of its one CPU.
    pages: TcpListener,
}

impl Agent {
    fn answer(&mut self, change: impl Fn(&mut Response)) {
        let port = self.pages.local_addr().unwrap().port().into();
        let mut response = Response { page_size: 4096, ports: vec![port], ..Response::default() };
        change(&mut response);
        // The host may have gone by then.
        let _ = self.host.send(&Message::Response(response));
    }

    fn send_file(&mut self, file: &[u8]) {
        for part in file.chunks(MAX_DATA_BYTES) {
            if self.host.send(&Message::Data(part.to_vec())).is_err() {
                return;
            }
        }
        let _ = self.host.send(&Message::EndOfData);
    }

    /// Does everything that an agent does before it records.
    fn begin(&mut self) -> TcpStream {
        self.answer(|_| {});
        self.send_file(&metadata());
        self.pages.accept().unwrap().0
    }

    fn until_closed(&mut self) {
        while !matches!(self.host.receive(Wait::at_most(LONG)), Ok(Some(Message::Close)) | Err(_)) {
        }
    }
}

/// A trace.dat without pages.
fn metadata() -> Vec<u8> {
    metadata_of(Version::V7, 0)
}

/// A trace.dat of a version, with this many events.
pub(super) fn metadata_of(version: Version, events: usize) -> Vec<u8> {
    let header_page = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
    let event = |id| EventFormat { system: "s".into(), text: format!("name: e{id}\nID: {id}\n") };
    let contents = Contents {
        header: Header {
            version,
            order: ByteOrder::Little,
            user_long: LongSize::Eight,
            page_size: 4096,
            compression: Compression::None,
            compression_version: String::new(),
        },
        formats: Formats {
            header_page: header_page.into(),
            events: (0..events).map(event).collect(),
            ..Formats::default()
        },
        kallsyms: Vec::new(),
        printk: Vec::new(),
        cmdlines: b"1 init\n".to_vec(),
        options: Vec::new(),
        cpus: 1,
        buffers: Vec::new(),
    };
    let writer = TraceDatWriter::new(Cursor::new(Vec::new()), &contents).unwrap();
    writer.finish().unwrap().into_inner()
}

struct Played {
    folder: tempfile::TempDir,
    result: Result<GuestRecorded>,
    took: Duration,
}

/// Runs `act` as an agent that was asked to record; the host ends after `time`.
fn play(act: fn(&mut Agent), time: Duration) -> Played {
    let listen = || TcpListener::bind("127.0.0.1:0").unwrap();
    let (listener, folder) = (listen(), tempfile::tempdir().unwrap());
    let to = listener.local_addr().unwrap().to_string();
    let guest = thread::spawn(move || {
        let stream = Stream::new(listener.accept().unwrap().0).unwrap();
        let mut agent = Agent { host: TraceCmd::new(stream), pages: listen() };
        let request = agent.host.receive(Wait::at_most(LONG));
        assert!(matches!(request, Ok(Some(Message::Request(_)))), "{request:?}");
        act(&mut agent);
    });
    let address = GuestAddress { name: "g".into(), channel: HostAddress::Tcp { to }, vm: None };
    let events = vec!["all".into()];
    let what = InGuests { events, quota_bytes: Some(QUOTA), ..InGuests::default() };
    let before = Instant::now();
    let (limit, ending) = (limit(), Ending::of_one().unwrap());
    let result = Ready::connect(address, &what, "local", 7, &limit).and_then(|ready| {
        let to = Folder::open(folder.path(), Modes::default()).unwrap();
        let recorded = Box::new(ready).begin(&what, "local", &to, &limit, &ending)?;
        thread::sleep(time);
        ending.begin(Deadline::after(REST));
        Ok(recorded.end())
    });
    let took = before.elapsed();
    guest.join().unwrap();
    Played { folder, result, took }
}

fn refusal(act: fn(&mut Agent)) -> String {
    let played = play(act, Duration::ZERO);
    assert!(played.took < LONG, "{:?}", played.took);
    std::error::Error::source(&played.result.unwrap_err()).unwrap().to_string()
}

fn faults(played: &Played) -> String {
    played.result.as_ref().unwrap().summary().faults.join("; ")
}

#[test]
fn answers_that_cannot_be_are_refused() {
    let none = refusal(|agent| agent.answer(|response| response.ports.clear()));
    assert!(none.contains("0 CPUs") && none.contains("not plausible"), "{none}");
    let fifos = refusal(|agent| agent.answer(|response| response.use_fifos = true));
    assert!(fifos.contains("FIFOs"), "{fifos}");
    let other = refusal(|agent| {
        agent.answer(|response| response.time_sync_protocol = "kvm".into());
    });
    assert!(other.contains("\"kvm\"") && other.contains("not offered"), "{other}");
    let other = refusal(|agent| agent.host.send(&Message::Close).unwrap());
    assert!(other.contains("does not contain the ports"), "{other}");
}

#[test]
fn refusals_say_where_to_look() {
    let refused = refusal(|agent| agent.host.send(&Message::NotSupported).unwrap());
    assert!(refused.contains("refused the request"), "{refused}");
    let closed = refusal(|_| {});
    assert!(closed.contains("the agent's own output"), "{closed}");
    let silent = refusal(|_| thread::sleep(Duration::from_secs(3)));
    assert!(silent.contains("no answer") && silent.contains("trace-cmd's agent"), "{silent}");
}

#[test]
fn programs_that_are_no_agents_are_recognized() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap().to_string();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"SSH-2.0-OpenSSH_9.2p1\r\n").unwrap();
        thread::sleep(Duration::from_millis(500));
    });
    let what = InGuests { events: vec!["all".into()], ..InGuests::default() };
    let connect = |to: String| {
        let address = GuestAddress { name: "g".into(), channel: HostAddress::Tcp { to }, vm: None };
        let error = Ready::connect(address, &what, "local", 7, &limit()).unwrap_err();
        std::error::Error::source(&error).unwrap().to_string()
    };
    let faults = connect(to.clone());
    assert!(faults.contains("not trace-cmd's protocol, version 3"), "{faults}");
    server.join().unwrap();
    // Nobody listens there any more.
    let faults = connect(to.clone());
    assert!(faults.contains(&to) && faults.contains("start `trace-cmd agent`"), "{faults}");
}

#[test]
fn what_pages_are_read_with_has_an_end_and_a_form() {
    let garbage = refusal(|agent| {
        agent.answer(|_| {});
        agent.send_file(&[0xff; 100_000]);
    });
    assert!(garbage.contains("invalid metadata"), "{garbage}");
    let cut = refusal(|agent| {
        agent.answer(|_| {});
        agent.send_file(&metadata()[..200]);
    });
    assert!(cut.contains("invalid metadata"), "{cut}");
    let endless = refusal(|agent| {
        agent.answer(|_| {});
        let part = Message::Data(vec![0; MAX_DATA_BYTES]);
        while agent.host.send(&part).is_ok() {}
    });
    assert!(endless.contains("more metadata than any machine can have"), "{endless}");
    let gone = refusal(|agent| agent.answer(|_| {}));
    assert!(gone.contains("closed the connection before it started"), "{gone}");
}

#[test]
fn pages_are_kept_up_to_the_quota() {
    let act = |agent: &mut Agent| {
        let mut pages = agent.begin();
        for _ in 0..1024 {
            pages.write_all(&[0; PAGE]).unwrap();
        }
        // Half a page does not count.
        pages.write_all(&[1; PAGE / 2]).unwrap();
        drop(pages);
        agent.until_closed();
        agent.host.send(&Message::CloseResponse).unwrap();
    };
    let played = play(act, Duration::from_secs(1));
    let recorded = played.result.as_ref().unwrap();
    let summary = recorded.summary();
    let cpu = summary.cpus[0].clone();
    assert!(cpu.bytes <= QUOTA && cpu.bytes > QUOTA / 2, "{cpu:?}");
    assert_eq!(cpu.bytes + cpu.over_quota_bytes, 1024 * PAGE as u64, "{cpu:?}");
    assert_eq!(summary.senseless_bytes, PAGE as u64 / 2);
    assert!(summary.faults.is_empty(), "{summary:?}");
    let file = played.folder.path().join("guest-g.pages/cpu0");
    assert_eq!(std::fs::metadata(file).unwrap().len(), cpu.bytes);
}

#[test]
fn pages_of_an_agent_that_vanished_are_kept() {
    let act = |agent: &mut Agent| {
        let mut pages = agent.begin();
        pages.write_all(&[0; 3 * PAGE]).unwrap();
    };
    let played = play(act, Duration::from_secs(1));
    let faults = faults(&played);
    assert!(faults.contains("its agent or the guest disconnected"), "{faults}");
    let recorded = played.result.unwrap();
    assert_eq!(recorded.summary().cpus[0].bytes, 3 * PAGE as u64);
    assert!(recorded.is_readable() && played.took < LONG);
}

#[test]
fn floods_of_messages_end_the_conversation() {
    let act = |agent: &mut Agent| {
        let _pages = agent.begin();
        while agent.host.send(&Message::Continue).is_ok() {}
    };
    let played = play(act, Duration::from_secs(2));
    assert!(faults(&played).contains("too many messages"), "{}", faults(&played));
    assert!(played.took < LONG);
}

#[test]
fn an_agent_that_never_ends_holds_nobody_up() {
    let act = |agent: &mut Agent| {
        let pages = agent.begin();
        agent.until_closed();
        thread::sleep(Duration::from_secs(8));
        drop(pages);
    };
    let played = play(act, Duration::from_millis(100));
    let faults = faults(&played);
    assert!(faults.contains("did not confirm in time"), "{faults}");
    assert!(played.took < LONG, "{:?}", played.took);
}

#[test]
fn no_agent_holds_the_end_up() {
    let drips: [fn(&mut Agent); 3] = [
        |agent| {
            let _pages = agent.begin();
            agent.until_closed();
            while agent.host.send(&Message::Continue).is_ok() {
                thread::sleep(Duration::from_millis(50));
            }
        },
        |agent| {
            let mut pages = agent.begin();
            agent.until_closed();
            let _ = agent.host.send(&Message::CloseResponse);
            while pages.write_all(b"x").is_ok() {
                thread::sleep(Duration::from_millis(50));
            }
        },
        |agent| {
            let mut pages = agent.begin();
            while pages.write_all(&[0; PAGE]).is_ok() {}
        },
    ];
    for act in drips {
        let played = play(act, Duration::from_millis(100));
        assert!(played.result.is_ok() && played.took < LONG, "{:?}", played.took);
    }
}
