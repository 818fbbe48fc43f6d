//! Clients that mean harm: slow, endless, many, malformed, from elsewhere. The server goes on answering.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use httpd::{Answer, Body, Bounds, Guard, Server};

const LARGE: usize = 8 << 20;

/// A server with short deadlines; it ends with the test's process.
fn server() -> (String, String) {
    server_that_takes(0)
}

/// The same, to which as many bytes may be posted.
fn server_that_takes(body_bytes: usize) -> (String, String) {
    server_of(Bounds { body_bytes, ..short() })
}

fn short() -> Bounds {
    Bounds {
        connections: 4,
        body_bytes: 0,
        request_within: Duration::from_millis(400),
        answer_within: Duration::from_millis(600),
    }
}

fn server_of(bounds: Bounds) -> (String, String) {
    let server = Server::bind(0, bounds).unwrap();
    let address = server.address();
    let name = address.replace(['/', ':'], "-");
    let file = std::env::temp_dir().join(format!("httpd-{}-{name}", std::process::id()));
    std::fs::write(&file, vec![b'x'; LARGE]).unwrap();
    let large = Arc::new(std::fs::File::open(&file).unwrap());
    std::fs::remove_file(&file).unwrap();
    std::thread::spawn(move || {
        server.serve(&|query| match query.name.as_str() {
            "" => Answer::json(b"{}".to_vec()),
            "posted" => {
                let text = query.body.clone().map(|body| String::from_utf8(body).unwrap());
                Answer::sentence(200, &text.unwrap_or_default())
            }
            "words" => Answer::sentence(200, query.get("w").unwrap_or_default()),
            "large" => Answer {
                status: 200,
                content_type: "text/plain",
                body: Body::File(Arc::clone(&large), LARGE as u64),
            },
            _ => Answer::sentence(404, "there is no such page"),
        });
    });
    let rest = address.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    (host.to_owned(), format!("/{path}"))
}

fn connect(host: &str) -> TcpStream {
    let stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream
}

/// What comes back; a reset counts as an end.
fn answer(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8(bytes).unwrap()
}

fn get(host: &str, target: &str) -> String {
    let mut stream = connect(host);
    // A server that is busy may have closed by then.
    let _ = write!(stream, "GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    answer(stream)
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("none")
}

#[test]
fn the_address_is_answered_and_nothing_else() {
    let (host, path) = server();
    let good = get(&host, &path);
    assert!(good.starts_with("HTTP/1.1 200 OK\r\n") && good.ends_with("\r\n\r\n{}"), "{good}");
    assert!(good.contains("Referrer-Policy: no-referrer\r\n"));
    assert!(!good.to_ascii_lowercase().contains("access-control"));
    assert!(
        get(&host, &format!("{path}words?w=a+b%0d%0aX:%201")).ends_with("\r\n\r\na b\r\nX: 1\n")
    );
    assert!(host.starts_with("127.0.0.1:"));
    for target in ["/", "/0123456789abcdef0123456789abcdef/", "*", "//", &path[..path.len() - 1]] {
        assert_eq!(status(&get(&host, target)), "404", "{target}");
    }
    let (other, other_path) = server();
    assert_ne!(path, other_path);
    assert_eq!(status(&get(&other, &path)), "404");
}

#[test]
fn whoever_asks_otherwise_gets_a_reason() {
    // One for each request: on a busy machine those before may not have ended yet.
    let (host, path) = server_of(Bounds { connections: 16, ..short() });
    for (request, expected) in [
        (format!("POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 3\r\n\r\nabc"), "405"),
        (format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 3\r\n\r\nabc"), "400"),
        (format!("GET {path} HTTP/1.1\r\nHost: evil.example:80\r\n\r\n"), "421"),
        (format!("GET {path} HTTP/1.1\r\n\r\n"), "421"),
        (format!("GET {path}\r\n\r\n"), "400"),
        ("\0\0\0\0\r\n\r\n".to_owned(), "400"),
        (format!("GET {path} HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(100)), "431"),
        (format!("GET {path} HTTP/1.1\r\nA: {}", "b".repeat(20_000)), "431"),
    ] {
        let mut stream = connect(&host);
        let _ = stream.write_all(request.as_bytes());
        assert_eq!(status(&answer(stream)), expected, "{request:.60}");
    }
}

#[test]
fn a_request_has_one_deadline_however_it_trickles() {
    let (host, path) = server();
    let start = Instant::now();
    let mut stream = connect(&host);
    for byte in format!("GET {path} HTTP/1.1\r\n").bytes().chain(std::iter::repeat(b'a')) {
        if stream.write_all(&[byte]).is_err() || start.elapsed() > Duration::from_secs(3) {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
        if start.elapsed() > Duration::from_millis(900) {
            break;
        }
    }
    let response = answer(stream);
    assert!(response.is_empty() || status(&response) == "408", "{response}");
    assert!(start.elapsed() < Duration::from_secs(3));
    assert_eq!(status(&get(&host, &path)), "200");
}

/// Who takes no answer loses it in time, and leaves the place to others.
#[test]
fn what_is_posted_comes_whole_or_not_at_all() {
    let (host, path) = server_that_takes(100);
    let post = |length: usize, parts: &[&str]| {
        let mut stream = connect(&host);
        let head = format!(
            "POST {path}posted HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        for part in parts {
            std::thread::sleep(Duration::from_millis(20));
            let _ = stream.write_all(part.as_bytes());
        }
        answer(stream)
    };
    let complete = post(10, &["{\"a\": ", "[1]}", "and more"]);
    assert!(
        complete.starts_with("HTTP/1.1 200 ") && complete.ends_with("\r\n\r\n{\"a\": [1]}\n"),
        "{complete}"
    );
    let began = Instant::now();
    let half = post(10, &["{\"a\": "]);
    assert!(half.starts_with("HTTP/1.1 408 "), "{half}");
    assert!(began.elapsed() < Duration::from_secs(3));
    assert!(post(101, &[]).starts_with("HTTP/1.1 413 "));
}

#[test]
fn an_answer_that_is_not_taken_ends() {
    let (host, path) = server();
    let mut idle = Vec::new();
    for _ in 0..4 {
        let mut stream = connect(&host);
        write!(stream, "GET {path}large HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        idle.push(stream);
    }
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(status(&get(&host, &path)), "503");
    let start = Instant::now();
    while status(&get(&host, &path)) != "200" {
        assert!(start.elapsed() < Duration::from_secs(5), "the places are never free again");
        std::thread::sleep(Duration::from_millis(50));
    }
    let cut = answer(idle.pop().unwrap());
    assert!(cut.len() < LARGE, "{}", cut.len());
    let complete = get(&host, &format!("{path}large"));
    assert!(complete.len() > LARGE && complete.ends_with('x'));
}

#[test]
fn many_that_say_nothing_keep_nobody_out_for_long() {
    let (host, path) = server();
    let _silent: Vec<TcpStream> = (0..40).map(|_| connect(&host)).collect();
    let start = Instant::now();
    while status(&get(&host, &path)) != "200" {
        assert!(start.elapsed() < Duration::from_secs(5), "nobody is answered any more");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// One program asks without end, over many connections; another asks now and then.
#[test]
fn a_flood_of_requests_keeps_nobody_out() {
    let (host, path) = server();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    get(&host, &path);
                }
            });
        }
        std::thread::sleep(Duration::from_millis(50));
        let refused = (0..50).filter(|_| status(&get(&host, &path)) != "200").count();
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(refused <= 5, "{refused} of 50");
    });
}

#[test]
fn an_address_without_a_token_is_this_machines_alone() {
    let refused = Server::open("0.0.0.0:0".parse().unwrap(), Guard::default(), Bounds::default())
        .unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::InvalidInput);
    let server =
        Server::open("127.0.0.1:0".parse().unwrap(), Guard::default(), Bounds::default()).unwrap();
    let address = server.address();
    let host = address.strip_prefix("http://").and_then(|rest| rest.strip_suffix('/')).unwrap();
    std::thread::spawn(move || server.serve(&|query| Answer::sentence(200, &query.name)));
    assert!(get(host, "/metrics").ends_with("\r\n\r\nmetrics\n"));
    assert_eq!(status(&get(host, "/metrics/more")), "404");
}
