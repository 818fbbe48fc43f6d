//! A server of the tests' own that calls itself Trino, over http or https.

#![allow(clippy::unwrap_used, clippy::expect_used, dead_code)]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::alike::{self, FIXTURES};

/// Where a server is, and what it was sent: head and body of each request.
pub struct Server {
    pub at: String,
    pub requests: Receiver<(String, String)>,
}

/// A server that answers each request by what a function makes of its address and of its number.
pub fn server(respond: impl Fn(&str, usize) -> (u16, String) + Send + 'static) -> Server {
    serve(None, respond)
}

/// The same by https.
pub fn tls_server(
    tls: Arc<ServerConfig>,
    respond: impl Fn(&str, usize) -> (u16, String) + Send + 'static,
) -> Server {
    serve(Some(tls), respond)
}

fn serve(
    tls: Option<Arc<ServerConfig>>,
    respond: impl Fn(&str, usize) -> (u16, String) + Send + 'static,
) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let scheme = if tls.is_some() { "https" } else { "http" };
    let at = format!("{scheme}://{}", listener.local_addr().unwrap());
    let (sender, requests) = channel();
    let address = at.clone();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            match &tls {
                None => answer(stream, &address, &sender, &respond),
                Some(tls) => {
                    let connection = ServerConnection::new(Arc::clone(tls)).unwrap();
                    answer(StreamOwned::new(connection, stream), &address, &sender, &respond);
                }
            }
        }
    });
    Server { at, requests }
}

/// One request, if one comes: who refuses a certificate sends none.
fn answer(
    mut stream: impl Read + Write,
    address: &str,
    sender: &std::sync::mpsc::Sender<(String, String)>,
    respond: &impl Fn(&str, usize) -> (u16, String),
) {
    thread_local!(static NUMBER: std::cell::Cell<usize> = const { std::cell::Cell::new(0) });
    let Some(found) = request(&mut stream) else { return };
    let (status, text) = respond(address, NUMBER.replace(NUMBER.get() + 1));
    let _ = sender.send(found);
    let length = text.len();
    let head =
        format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    let _ = stream.write_all((head + &text).as_bytes()).and_then(|()| stream.flush());
}

fn request(stream: &mut impl Read) -> Option<(String, String)> {
    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.to_ascii_lowercase();
            let length = length.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse::<usize>().unwrap()) {
                return Some((head.to_owned(), body.to_owned()));
            }
        }
        match stream.read(&mut part) {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend_from_slice(&part[..read]),
        }
    }
}

/// What is asked of a server, `rest` being what stands behind its address.
pub fn asking(at: &str, rest: &str) -> Command {
    let engine = format!("trino={at}/lake{rest}");
    let query = "SELECT a, b FROM exits";
    let mut command =
        alike::command(&["sql", "--format", "csv", "--engine", &engine, query, FIXTURES[0]]);
    command.env_remove("HYPERSCOPE_TRINO_PASSWORD").env_remove("HYPERSCOPE_TRINO_TOKEN");
    command
}

/// Exit code, standard output and standard error.
pub fn run(command: &mut Command) -> (i32, String, String) {
    let done = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (done.status.code().unwrap_or(-1), text(&done.stdout), text(&done.stderr))
}
