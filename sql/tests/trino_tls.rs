//! Trino by https: a server that is not the one that was named gets no question, and nobody gets a password but it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod alike;
mod server;

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use server::{Server, asking, run, tls_server};

const PASSWORD: &str = "HYPERSCOPE_TRINO_PASSWORD";
const TOKEN: &str = "HYPERSCOPE_TRINO_TOKEN";

/// A certificate authority; its certificate is in a file.
struct Authority {
    folder: tempfile::TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        Self::named("a CA")
    }

    fn named(name: &str) -> Self {
        let mut about = CertificateParams::new(Vec::new()).unwrap();
        about.distinguished_name.push(DnType::CommonName, name);
        about.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = about.self_signed(&key).unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("ca.pem"), certificate.pem()).unwrap();
        Self { folder, issuer: Issuer::new(about, key) }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What stands behind a server's address for it to be trusted.
    fn rest(&self, more: &str) -> String {
        format!("?ca={}{more}", self.file("ca.pem").display())
    }

    /// A server of a name whose certificate ends in a year.
    fn identity(&self, name: &str, ends: i32) -> Arc<ServerConfig> {
        let mut about = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (about.not_before, about.not_after) =
            (date_time_ymd(2020, 1, 1), date_time_ymd(ends, 1, 1));
        let key = KeyPair::generate().unwrap();
        let signed = about.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![signed.der().clone()], key)
            .unwrap();
        Arc::new(config)
    }

    fn valid_identity(&self) -> Arc<ServerConfig> {
        self.identity("127.0.0.1", 2090)
    }

    /// A file that its owner alone can read.
    fn secret(&self, text: &str, mode: u32) -> String {
        let path = self.file("secret");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path.display().to_string()
    }
}

/// The statements before the query, the query in two pages, and the one after it.
fn pages(address: &str, number: usize) -> (u16, String) {
    let columns = r#""columns":[{"name":"a","type":"bigint"},{"name":"b","type":"varchar"}]"#;
    let text = match number {
        3 => format!(r#"{{"nextUri":"{address}/v1/statement/executing/1"}}"#),
        4 => format!(r#"{{{columns},"data":[[1,"x"]]}}"#),
        _ => "{}".to_owned(),
    };
    (200, text)
}

/// What each request says of who asks: `Authorization` and `X-Trino-User`.
fn signs(server: &Server) -> Vec<(Option<String>, Option<String>)> {
    let sign = |(head, _): (String, String)| {
        let line = |name: &str| {
            head.lines().find_map(|line| {
                let (key, value) = line.split_once(": ")?;
                key.eq_ignore_ascii_case(name).then(|| value.to_owned())
            })
        };
        (line("authorization"), line("x-trino-user"))
    };
    server.requests.try_iter().map(sign).collect()
}

#[test]
fn every_request_says_who_asks() {
    let authority = Authority::new();
    let some_text = |text: &str| Some(text.to_owned());
    let basic = some_text("Basic YW5uOnMzY3JldA==");
    let file = authority.secret("s3cret\n", 0o600);
    for (rest, variable, sign) in [
        ("&user=ann".to_owned(), Some((PASSWORD, "s3cret")), (basic.clone(), some_text("ann"))),
        (format!("&user=ann&password-file={file}"), None, (basic, some_text("ann"))),
        (String::new(), Some((TOKEN, "t0.ken")), (some_text("Bearer t0.ken"), None)),
        (
            format!("&user=bob&token-file={file}"),
            None,
            (some_text("Bearer s3cret"), some_text("bob")),
        ),
        ("&user=ann".to_owned(), None, (None, some_text("ann"))),
    ] {
        let server = tls_server(authority.valid_identity(), pages);
        let mut command = asking(&server.at, &authority.rest(&rest));
        command.envs(variable);
        let (code, out, err) = run(&mut command);
        assert_eq!((code, &*out), (0, "a,b\n1,x\n"), "{err}");
        assert_eq!(signs(&server), vec![sign; 6], "{rest}");
    }
}

/// The name on the certificate, who signed it, and until when it is good: nothing is sent before all is right.
#[test]
fn a_server_that_is_not_the_named_one_is_sent_nothing() {
    let (authority, other) = (Authority::new(), Authority::named("another"));
    let trusted = authority.rest("");
    let empty = format!("?ca={}", authority.secret("no PEM", 0o644));
    for (tls, rest, why) in [
        (other.valid_identity(), &*trusted, "its certificate is not by a CA of "),
        (Authority::new().valid_identity(), &*trusted, "its certificate is not by a CA of "),
        (
            authority.valid_identity(),
            "",
            "its certificate is by no CA that this system trusts; name its CA's by ?ca=FILE",
        ),
        (authority.identity("127.0.0.1", 2021), &*trusted, "its certificate has expired"),
        (
            authority.identity("localhost", 2090),
            &*trusted,
            "its certificate is not one of 127.0.0.1",
        ),
        (authority.valid_identity(), &*empty, "has no certificates in PEM"),
        (authority.valid_identity(), "?ca=/nonexistent", "cannot read /nonexistent"),
    ] {
        let server = tls_server(tls, pages);
        let (code, out, err) = run(asking(&server.at, rest).env(PASSWORD, "hush"));
        assert!(
            code == 1 && err.contains(why) && !err.contains("hush"),
            "{why}: {code} {out} {err}"
        );
        assert_eq!(signs(&server), [], "{why}");
    }
}

#[test]
fn who_is_not_believed_learns_why() {
    let authority = Authority::new();
    for (variable, why) in [
        (
            None,
            "it is ann who asks (status 401): give a password in HYPERSCOPE_TRINO_PASSWORD or by &password-file=FILE",
        ),
        (Some((PASSWORD, "hush")), "it refuses ann with what was given (status 401)"),
        (Some((TOKEN, "hush")), "it refuses ann with what was given (status 401)"),
    ] {
        let server = tls_server(authority.valid_identity(), |_, _| (401, String::new()));
        let mut command = asking(&server.at, &authority.rest("&user=ann"));
        let (code, _, err) = run(command.envs(variable));
        assert!(code == 1 && err.contains(why) && !err.contains("hush"), "{why}: {err}");
    }
    // What a server says of what it was sent is not shown either.
    for status in [200, 500] {
        let server = tls_server(authority.valid_identity(), move |_, _| {
            (status, r#"{"error":{"message":"no YW5uOmh1c2g= of hush"}}"#.to_owned())
        });
        let mut command = asking(&server.at, &authority.rest("&user=ann"));
        let (code, _, err) = run(command.env(PASSWORD, "hush"));
        assert!(code == 1 && err.contains("no … of …") && !err.contains("hush"), "{err}");
    }
}

#[test]
fn nothing_is_sent_on_to_others_or_as_plain_text() {
    let authority = Authority::new();
    // One that would take the password, by http.
    let plain = server::server(|_, _| (200, "{}".to_owned()));
    let (tls, at) = (authority.valid_identity(), plain.at.clone());
    let server = tls_server(tls, move |_, _| {
        (200, format!(r#"{{"nextUri":"{at}/v1/statement/queued/1"}}"#))
    });
    let mut command = asking(&server.at, &authority.rest("&user=ann"));
    let (code, _, err) = run(command.env(PASSWORD, "hush"));
    assert!(code == 1 && err.contains("which is not encrypted"), "{err}");
    // The same server's own port, by http.
    let server = tls_server(authority.valid_identity(), |address, _| {
        let plain = address.replace("https", "http");
        (200, format!(r#"{{"nextUri":"{plain}/v1/statement/queued/1"}}"#))
    });
    let mut command = asking(&server.at, &authority.rest("&user=ann"));
    let (code, _, err) = run(command.env(PASSWORD, "hush"));
    assert!(code == 1 && err.contains("which is not encrypted"), "{err}");
    assert_eq!(signs(&server).len(), 1);
    // Another server by https.
    let other = tls_server(authority.valid_identity(), pages);
    let at = other.at.clone();
    let server = tls_server(authority.valid_identity(), move |_, _| {
        (200, format!(r#"{{"nextUri":"{at}/v1/statement/queued/1"}}"#))
    });
    let (code, _, err) = run(asking(&server.at, &authority.rest("")).env(TOKEN, "hush"));
    assert!(code == 1 && err.contains("which is not its own"), "{err}");
    assert_eq!((signs(&plain), signs(&other)), (vec![], vec![]));
    // A redirection is none of Trino's.
    let server = tls_server(authority.valid_identity(), |_, _| (307, String::new()));
    let (code, _, err) = run(asking(&server.at, &authority.rest("")).env(TOKEN, "hush"));
    assert!(code == 1 && err.contains("status 307"), "{err}");
}

#[test]
fn secrets_that_others_could_read_are_refused() {
    let authority = Authority::new();
    let server = tls_server(authority.valid_identity(), pages);
    let file = authority.secret("hush\n", 0o640);
    let rest = authority.rest(&format!("&token-file={file}"));
    let (code, _, err) = run(&mut asking(&server.at, &rest));
    assert!(code == 1 && err.contains("chmod 600") && !err.contains("hush"), "{err}");
    // No name of this machine's: nothing is looked up before that is seen.
    let (code, _, err) = run(asking("http://trino.invalid", "?user=ann").env(PASSWORD, "hush"));
    let why = "what HYPERSCOPE_TRINO_PASSWORD has would go to trino.invalid as plain text: ask by https://";
    assert!(code == 1 && err.contains(why) && !err.contains("hush"), "{err}");
    assert_eq!(signs(&server), []);
}

/// Who accepts a connection and then says nothing, and who speaks no TLS.
#[test]
fn who_never_shows_a_certificate_is_given_up() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("https://{}", silent.local_addr().unwrap());
    let start = Instant::now();
    let (code, _, err) = run(&mut asking(&at, ""));
    assert!(code == 1 && err.contains("it took too long (connect)"), "{err}");
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    let plain = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("https://{}", plain.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = plain.accept().unwrap();
        stream.read_exact(&mut [0; 5]).unwrap();
        stream.write_all(b"HTTP/1.1 400 X\r\n\r\n").unwrap();
    });
    let (code, _, err) = run(&mut asking(&at, ""));
    assert!(code == 1 && err.contains("is https spoken at this port?"), "{err}");
}
