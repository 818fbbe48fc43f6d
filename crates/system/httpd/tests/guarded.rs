//! Addresses with TLS and a token: who has both is answered, everybody else is not.

#![allow(clippy::unwrap_used)]

use std::fs::{self, Permissions};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use httpd::{Answer, Body, Bounds, Guard, Server, Tls, Token};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const LARGE: usize = 3 << 20;

/// Certificate, key and token in files that are nobody else's.
struct Secrets {
    folder: tempfile::TempDir,
    certificate: CertificateDer<'static>,
}

impl Secrets {
    fn new() -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let secrets = Self { folder, certificate: made.cert.der().clone() };
        secrets.put("cert.pem", &made.cert.pem(), 0o644);
        secrets.put("key.pem", &made.signing_key.serialize_pem(), 0o600);
        secrets.put("token", &format!("{TOKEN}\n"), 0o600);
        secrets
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn put(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    fn tls(&self) -> io::Result<Tls> {
        Tls::read(&self.path("cert.pem"), &self.path("key.pem"))
    }

    /// A server at any address of this machine, whoever reaches it.
    fn serve(&self) -> u16 {
        let token = Some(Token::read(&self.path("token")).unwrap());
        let guard = Guard { token, tls: Some(self.tls().unwrap()) };
        let bounds = Bounds {
            connections: 4,
            request_within: Duration::from_millis(500),
            ..Bounds::default()
        };
        let server = Server::open("0.0.0.0:0".parse().unwrap(), guard, bounds).unwrap();
        let address = server.address();
        assert!(address.starts_with("https://0.0.0.0:"), "{address}");
        let port = address.trim_end_matches('/').rsplit_once(':').unwrap().1.parse().unwrap();
        std::thread::spawn(move || {
            server.serve(&|query| match query.name.as_str() {
                "large" => {
                    let body = Body::Bytes(vec![b'x'; LARGE]);
                    Answer { status: 200, content_type: "text/plain", body }
                }
                name => Answer::sentence(200, name),
            });
        });
        port
    }

    fn client(&self, port: u16) -> StreamOwned<ClientConnection, TcpStream> {
        let mut known = RootCertStore::empty();
        known.add(self.certificate.clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(known)
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").unwrap();
        let session = ClientConnection::new(Arc::new(config), name).unwrap();
        StreamOwned::new(session, connect(port))
    }

    fn ask(&self, port: u16, request: &str) -> String {
        let mut stream = self.client(port);
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }
}

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

fn get(path: &str, more: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: any.example:9797\r\n{more}\r\n")
}

#[test]
fn who_has_the_token_is_answered_over_tls_by_any_name() {
    let secrets = Secrets::new();
    let port = secrets.serve();
    let authorized = format!("Authorization: Bearer {TOKEN}\r\n");
    let text = secrets.ask(port, &get("/metrics", &authorized));
    assert!(text.starts_with("HTTP/1.1 200 ") && text.ends_with("\r\n\r\nmetrics\n"), "{text}");
    let text = secrets.ask(port, &get("/large", &authorized.replace("Bearer", "bearer")));
    assert_eq!(text.split_once("\r\n\r\n").unwrap().1.len(), LARGE);
    for more in [
        String::new(),
        format!("Authorization: Bearer {TOKEN}0\r\n"),
        format!("Authorization: Bearer {}\r\n", TOKEN.replace('f', "e")),
        format!("Authorization: Basic {TOKEN}\r\n"),
        format!("Authorization: {TOKEN}\r\n"),
        format!("{authorized}{authorized}"),
    ] {
        let text = secrets.ask(port, &get("/metrics", &more));
        assert!(text.starts_with("HTTP/1.1 401 "), "{more}: {text}");
        assert!(text.contains("WWW-Authenticate: Bearer\r\n"), "{text}");
    }
}

#[test]
fn what_is_no_tls_is_no_request_and_nobody_is_kept_out() {
    let secrets = Secrets::new();
    let port = secrets.serve();
    let mut clear = connect(port);
    let authorized = format!("Authorization: Bearer {TOKEN}\r\n");
    clear.write_all(get("/metrics", &authorized).as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = clear.read_to_end(&mut answer);
    assert!(!answer.windows(4).any(|part| part == b"HTTP"), "{answer:?}");
    // Handshakes that never end: one deadline is for the request as a whole.
    let mut slow: Vec<TcpStream> = (0..4).map(|_| connect(port)).collect();
    let start = Instant::now();
    // The head of a record that announces more than comes.
    let hello = [0x16, 3, 1, 0x3f, 0];
    for stream in &mut slow {
        stream.write_all(&hello).unwrap();
    }
    let mut trickles = 0;
    while start.elapsed() < Duration::from_millis(900) {
        trickles += slow.iter_mut().filter_map(|stream| stream.write_all(&[0]).ok()).count();
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(trickles > 0);
    // Their deadline has passed: there is room again.
    let text = secrets.ask(port, &get("/metrics", &authorized));
    assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
}

#[test]
fn a_handshake_that_stands_still_ends_with_the_requests_deadline() {
    let secrets = Secrets::new();
    let port = secrets.serve();
    let start = Instant::now();
    let mut slow = connect(port);
    slow.write_all(&[0x16, 3, 1, 0x3f, 0]).unwrap();
    // Nothing more: the server closes, well before an answer's deadline of a minute.
    let _ = slow.read_to_end(&mut Vec::new());
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

#[test]
fn an_address_that_others_reach_takes_both() {
    let secrets = Secrets::new();
    let token = || Some(Token::read(&secrets.path("token")).unwrap());
    for guard in [
        Guard::default(),
        Guard { token: token(), tls: None },
        Guard { token: None, tls: Some(secrets.tls().unwrap()) },
    ] {
        let error = Server::open("0.0.0.0:0".parse().unwrap(), guard, Bounds::default());
        let error = error.unwrap_err().to_string();
        assert_eq!(error, "0.0.0.0:0 is not a loopback address: it requires TLS and a token");
    }
}

#[test]
fn secrets_that_others_read_or_guess_are_refused() {
    let secrets = Secrets::new();
    let refused = |path: &Path| Token::read(path).unwrap_err().to_string();
    for mode in [0o644, 0o640, 0o604, 0o620, 0o610] {
        let error = refused(&secrets.put("open", TOKEN, mode));
        assert!(error.contains("chmod go= "), "{mode:o}: {error}");
    }
    // What is nobody's file is not waited for.
    let pipe = secrets.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert!(refused(&pipe).ends_with("is not a regular file"));
    assert!(refused(secrets.folder.path()).ends_with("is not a regular file"));
    let foreign = secrets.put("foreign", TOKEN, 0o600);
    if std::os::unix::fs::chown(&foreign, Some(65_534), None).is_ok() {
        assert!(refused(&foreign).contains("belongs to user 65534"));
    }
    for text in ["", "short\n", &" ".repeat(40), &format!("{TOKEN}\u{e4}")] {
        let error = refused(&secrets.put("weak", text, 0o600));
        assert!(error.contains("has no token"), "{text}: {error}");
    }
    assert!(refused(&secrets.path("none")).starts_with("cannot read "));
    secrets.put("key.pem", "", 0o600);
    assert!(secrets.tls().unwrap_err().to_string().ends_with("has no private key in PEM"));
    let other = rcgen::KeyPair::generate().unwrap().serialize_pem();
    secrets.put("key.pem", &other, 0o600);
    assert!(secrets.tls().unwrap_err().to_string().contains("are not a valid server certificate"));
    secrets.put("key.pem", &other, 0o604);
    assert!(
        secrets.tls().unwrap_err().to_string().contains("other users of this machine can access")
    );
    secrets.put("cert.pem", "nothing", 0o644);
    assert!(secrets.tls().unwrap_err().to_string().ends_with("has no certificate in PEM"));
}
