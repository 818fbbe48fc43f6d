//! Downloads a file from a server, within bounds of time and size.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ureq::http::{Response, Uri};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body};

/// A server that takes longer than its timeout for this many bytes is abandoned, as in elfutils'
/// client.
const STEP_BYTES: u64 = 100 << 10;
/// Maximum time to establish a connection.
const MAX_CONNECT_TIME: Duration = Duration::from_secs(15);
/// Maximum number of consecutive redirects.
const MAX_REDIRECTS: usize = 5;
/// Bytes per read.
const PART_BYTES: usize = 64 << 10;

/// Bounds of a download.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// See [`STEP_BYTES`].
    pub(crate) timeout: Duration,
    pub(crate) time: Duration,
    pub(crate) bytes: u64,
}

/// Why a download failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The server does not have the file.
    NotThere,
    /// The file exceeds the maximum size.
    TooLarge,
    /// The file exceeds the maximum time.
    TooLong,
    /// The server does not work.
    Server(String),
    /// The file cannot be written.
    Here(String),
}

/// A client for all downloads over HTTP and HTTPS, with the system's trusted certificates.
pub(crate) fn agent() -> Agent {
    let found = rustls_native_certs::load_native_certs();
    let roots = found
        .certs
        .iter()
        .map(|certificate| Certificate::from_der(certificate.as_ref()).to_owned());
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::from(roots))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build();
    let config = Agent::config_builder()
        .tls_config(tls)
        .http_status_as_error(false)
        // Redirects are followed by our own code, and only on the same server.
        .max_redirects(0)
        .user_agent(concat!("hyperscope/", env!("CARGO_PKG_VERSION")))
        .build();
    config.new_agent()
}

/// Downloads an address to `to`; `progress` receives the number of bytes so far and, if the server
/// states it, the total.
pub(crate) fn download(
    agent: &Agent,
    url: &str,
    bounds: &Bounds,
    to: &mut impl Write,
    progress: &mut dyn FnMut(u64, Option<u64>),
) -> Result<(), Failure> {
    let start = Instant::now();
    let failed = |error: ureq::Error| failure(&error, start, bounds);
    let response = answer(agent, url, bounds, start).map_err(failed)??;
    match response.status().as_u16() {
        200 => {}
        404 => return Err(Failure::NotThere),
        // The server's own size limit, or the requested one.
        406 | 413 => return Err(Failure::TooLarge),
        other => return Err(Failure::Server(format!("it answered with status {other}"))),
    }
    let body = response.into_body();
    let total = body.content_length();
    if total.is_some_and(|total| total > bounds.bytes) {
        return Err(Failure::TooLarge);
    }
    let mut pace = Pace { since: start, bytes: 0, timeout: bounds.timeout };
    let (mut body, mut part, mut received) = (body.into_reader(), vec![0; PART_BYTES], 0_u64);
    loop {
        let len = match body.read(&mut part) {
            Ok(0) => return Ok(()),
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(failure(&error.into(), start, bounds)),
        };
        received = received.saturating_add(len as u64);
        if received > bounds.bytes {
            return Err(Failure::TooLarge);
        }
        if start.elapsed() >= bounds.time {
            return Err(Failure::TooLong);
        }
        pace.check(received)?;
        let some = part.get(..len).unwrap_or_default();
        to.write_all(some).map_err(|error| Failure::Here(error.to_string()))?;
        progress(received, total);
    }
}

/// The response of a server, after redirects on the same server.
fn answer(
    agent: &Agent,
    url: &str,
    bounds: &Bounds,
    start: Instant,
) -> Result<Result<Response<Body>, Failure>, ureq::Error> {
    let mut url = url.to_owned();
    for _ in 0..=MAX_REDIRECTS {
        let connect = bounds.timeout.min(MAX_CONNECT_TIME);
        let request = agent
            .get(&url)
            .config()
            .timeout_global(Some(bounds.time.saturating_sub(start.elapsed())))
            .timeout_resolve(Some(connect))
            .timeout_connect(Some(connect))
            .timeout_recv_response(Some(bounds.timeout))
            .timeout_per_read(Some(bounds.timeout))
            .timeout_per_write(Some(bounds.timeout))
            .build();
        let response = request.header("X-DEBUGINFOD-MAXSIZE", bounds.bytes.to_string()).call()?;
        if !response.status().is_redirection() {
            return Ok(Ok(response));
        }
        let location = response.headers().get("location").and_then(|to| to.to_str().ok());
        match location.and_then(|to| of_same_server(&url, to)) {
            Some(next) => url = next,
            None => {
                let text = "it redirects to another server, which is not used unless DEBUGINFOD_URLS names it";
                return Ok(Err(Failure::Server(text.into())));
            }
        }
    }
    let text = format!("it redirects more than {MAX_REDIRECTS} times");
    Ok(Err(Failure::Server(text)))
}

/// The target of a redirect from a server at `url`, if it is on the same server. Other targets,
/// such as internal services, are not requested.
fn of_same_server(url: &str, to: &str) -> Option<String> {
    let (scheme, host) = origin(url)?;
    let path = to.strip_prefix('/').filter(|rest| !rest.starts_with(['/', '\\']));
    if path.is_some() {
        let authority = url.split_once("://")?.1.split(['/', '?', '#']).next()?;
        return Some(format!("{scheme}://{authority}{to}"));
    }
    let (to_scheme, to_host) = origin(to)?;
    let is_upgraded = scheme == "http" && to_scheme == "https" && !host.contains(':');
    ((is_upgraded || scheme == to_scheme) && host == to_host).then(|| to.to_owned())
}

/// Scheme and host of an address, with its port unless it is the default.
fn origin(url: &str) -> Option<(String, String)> {
    let uri: Uri = url.parse().ok()?;
    let scheme = uri.scheme_str()?.to_ascii_lowercase();
    let usual = match &*scheme {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    let host = uri.host()?.to_ascii_lowercase();
    let port = uri.port_u16().filter(|port| *port != usual);
    Some((scheme, port.map_or_else(|| host.clone(), |port| format!("{host}:{port}"))))
}

fn failure(error: &ureq::Error, start: Instant, bounds: &Bounds) -> Failure {
    let timed_out = match error {
        ureq::Error::Timeout(_) => true,
        ureq::Error::Io(error) => error.kind() == io::ErrorKind::TimedOut,
        _ => false,
    };
    if timed_out && start.elapsed() >= bounds.time {
        return Failure::TooLong;
    }
    Failure::Server(error.to_string())
}

/// The speed of a download.
#[derive(Clone, Copy, Debug)]
struct Pace {
    since: Instant,
    /// Bytes received at the start of the step.
    bytes: u64,
    timeout: Duration,
}

impl Pace {
    fn check(&mut self, received: u64) -> Result<(), Failure> {
        if received.saturating_sub(self.bytes) >= STEP_BYTES {
            (self.since, self.bytes) = (Instant::now(), received);
        } else if self.since.elapsed() > self.timeout {
            let seconds = self.timeout.as_secs();
            return Err(Failure::Server(format!("it sent less than 100 KiB in {seconds} s")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_send_on_to_addresses_of_their_own_alone() {
        let from = "http://user:secret@a.example:8002/x";
        let same_server = [
            ("/y?z", "http://user:secret@a.example:8002/y?z"),
            ("http://A.example:8002/y", "http://A.example:8002/y"),
        ];
        for (to, expected) in same_server {
            assert_eq!(of_same_server(from, to).as_deref(), Some(expected), "{to}");
        }
        let others = [
            "http://a.example/y",
            "https://a.example:8002/y",
            "http://a.example:8002@127.0.0.1/y",
            "http://127.0.0.1:8002/y",
            "http://[fe80::1]/y",
            "//b.example/y",
            "/\\b.example/y",
            "y",
            "",
            "file:///etc/passwd",
        ];
        for to in others {
            assert_eq!(of_same_server(from, to), None, "{to}");
        }
        let encrypted = "https://a.example/y";
        assert_eq!(of_same_server("http://a.example:80/x", encrypted).as_deref(), Some(encrypted));
        assert_eq!(of_same_server("https://a.example/x", "http://a.example/y"), None);
    }
}
