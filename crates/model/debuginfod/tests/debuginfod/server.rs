//! A server made by hand: it answers each request by a function, and counts them.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use parking_lot::Mutex;

/// A server on this machine.
pub(crate) struct Server {
    pub(crate) url: String,
    count: Arc<AtomicUsize>,
    paths: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Answers requests, by their paths, one after the other.
    pub(crate) fn start(answer: impl Fn(&str, &mut TcpStream) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (count, paths) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let (counted, noted) = (Arc::clone(&count), Arc::clone(&paths));
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let Some(Ok(request)) = lines.next() else { continue };
                while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
                counted.fetch_add(1, Ordering::Relaxed);
                noted.lock().push(path.clone());
                answer(&path, &mut stream);
            }
        });
        Self { url, count, paths }
    }

    /// Requests so far.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        self.paths.lock().clone()
    }
}

/// An answer with a body.
pub(crate) fn give(stream: &mut TcpStream, status: &str, body: &[u8]) {
    let len = body.len();
    let _ =
        write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n");
    let _ = stream.write_all(body);
}

/// One that says elsewhere.
pub(crate) fn send_on(stream: &mut TcpStream, to: &str) {
    let _ = write!(
        stream,
        "HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
}

/// Sends parts of a body of unknown length until the other side goes.
pub(crate) fn give_for_ever(stream: &mut TcpStream, part: &[u8], pause: std::time::Duration) {
    let head = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
    let mut sent = stream.write_all(head.as_bytes());
    while sent.is_ok() {
        thread::sleep(pause);
        sent = stream.write_all(part);
    }
}
