//! A way to a store on which something happens at one request.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use parking_lot::{Condvar, Mutex};

/// What happens at a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The store is busy, once.
    Busy,
    /// The connection is closed before the store has the request, once.
    Lost,
    /// The same before its answer arrives.
    Unanswered,
    /// The caller is killed before the store has the request.
    KilledBefore,
    /// The caller is killed before the answer arrives.
    KilledAfter,
    /// The store allows nothing from here on.
    Denied,
    /// Nothing of that.
    None,
}

/// The way; requests are counted.
pub struct Way {
    pub at: String,
    shared: Arc<Shared>,
}

struct Shared {
    store: String,
    fault: (usize, Fault),
    requests: AtomicUsize,
    /// The process group of whoever calls, once it is known.
    caller: (Mutex<Option<u32>>, Condvar),
}

impl Way {
    /// To a store, with a fault at a request.
    pub fn new(store: &str, fault: (usize, Fault)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap().to_string();
        let shared = Arc::new(Shared {
            store: store.to_owned(),
            fault,
            requests: AtomicUsize::new(0),
            caller: Default::default(),
        });
        let listener_shared = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&listener_shared);
                thread::spawn(move || shared.pass(stream));
            }
        });
        Self { at, shared }
    }

    pub fn called_by(&self, group: u32) {
        *self.shared.caller.0.lock() = Some(group);
        self.shared.caller.1.notify_all();
    }

    pub fn requests(&self) -> usize {
        self.shared.requests.load(Relaxed)
    }
}

impl Shared {
    /// One request of a connection, which then ends.
    fn pass(&self, mut client: TcpStream) -> Option<()> {
        let request = whole_request(&mut client)?;
        let number = self.requests.fetch_add(1, Relaxed);
        let (at, fault) = self.fault;
        let fault = match fault {
            Fault::Denied if number >= at => fault,
            fault if number == at => fault,
            _ => Fault::None,
        };
        match fault {
            Fault::Busy => {
                let body = "<Error><Code>SlowDown</Code></Error>";
                return answer(&mut client, "503 Slow Down", body);
            }
            Fault::Denied => {
                let body = "<Error><Code>AccessDenied</Code></Error>";
                return answer(&mut client, "403 Forbidden", body);
            }
            Fault::Lost => return None,
            Fault::KilledBefore => return self.kill(),
            Fault::Unanswered | Fault::KilledAfter | Fault::None => (),
        }
        let mut store = TcpStream::connect(&self.store).ok()?;
        store.write_all(&request).ok()?;
        let mut response = Vec::new();
        store.read_to_end(&mut response).ok()?;
        match fault {
            Fault::Unanswered => None,
            Fault::KilledAfter => self.kill(),
            _ => client.write_all(&response).ok(),
        }
    }

    fn kill(&self) -> Option<()> {
        let mut group = self.caller.0.lock();
        while group.is_none() {
            self.caller.1.wait(&mut group);
        }
        let group = format!("-{}", group.unwrap());
        let killed = Command::new("kill").args(["-KILL", "--", &group]).status();
        assert!(killed.unwrap().success());
        None
    }
}

fn answer(client: &mut TcpStream, status: &str, body: &str) -> Option<()> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    client.write_all((head + body).as_bytes()).ok()
}

/// A request with its body, which asks for its connection to be closed after it.
fn whole_request(client: &mut TcpStream) -> Option<Vec<u8>> {
    let (mut bytes, mut part) = (Vec::new(), [0; 65536]);
    loop {
        if let Some(head) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
            let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length = length.map_or(0, |length| length.parse::<usize>().unwrap());
            if bytes.len() >= head + 4 + length {
                bytes.splice(head..head, *b"\r\nConnection: close");
                return Some(bytes);
            }
        }
        match client.read(&mut part) {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend_from_slice(&part[..read]),
        }
    }
}
