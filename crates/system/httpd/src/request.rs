//! Reads a client's request within a deadline and a size limit, and validates it.

use std::io::{self, Read};
use std::net::SocketAddr;
use std::time::Instant;

use crate::answer::{Answer, Body};
use crate::connection::Connection;
use crate::guard::{Token, is_same};

/// Maximum bytes of a request line and its headers.
const MAX_BYTES: usize = 8 << 10;

/// Maximum headers of a request; browsers send about fifteen.
const MAX_HEADERS: usize = 64;

/// A request: a name below the address, and parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// The path after the token; empty for the address itself.
    pub name: String,
    /// The header `Accept`; empty if there is none.
    pub accept: String,
    /// The posted body; `None` for GET.
    pub body: Option<Vec<u8>>,
    parameters: Vec<(String, String)>,
}

impl Query {
    /// A parameter, if it was given.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A numeric parameter.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.parse().ok()
    }
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Invalid HTTP/1.1.
    Malformed,
    /// Too long.
    TooLong,
    /// Not complete by the deadline.
    TooSlow,
    /// A method other than GET.
    Method,
    Body,
    /// The posted body is too large.
    TooMuch,
    /// The posted body is not declared as JSON.
    Type,
    /// The host name is wrong.
    Host,
    /// The token in the header is missing or wrong.
    Unauthorized,
    /// The token in the path is wrong, or the resource does not exist.
    Unknown,
    /// Too many connections.
    Busy,
}

impl Refusal {
    pub(crate) fn answer(self) -> Answer {
        let (status, words) = match self {
            Self::Malformed => (400, "this is not an HTTP request"),
            Self::TooLong => (431, "the request is too long"),
            Self::TooSlow => (408, "the request did not arrive in time"),
            Self::Method => (405, "only GET is allowed"),
            Self::Body => (400, "a request for a page must not have a body"),
            Self::TooMuch => (413, "the posted data is too large"),
            Self::Type => (415, "only application/json may be posted"),
            Self::Host => (421, "this server answers only requests for its own address"),
            Self::Unauthorized => {
                (401, "Authorization: Bearer TOKEN is missing or has the wrong token")
            }
            Self::Unknown => (404, "there is no such page"),
            Self::Busy => (503, "too many connections"),
        };
        let body = Body::Bytes(format!("{words}\n").into_bytes());
        Answer { status, content_type: "text/plain; charset=utf-8", body }
    }
}

/// The access rules for requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules<'s> {
    /// The server's own address.
    pub(crate) at: SocketAddr,
    /// Token at the start of paths, if there is one; otherwise paths are names.
    pub(crate) path_token: Option<&'s str>,
    /// Token that requests must have in a header.
    pub(crate) bearer: Option<&'s Token>,
    /// Maximum bytes of a posted body.
    pub(crate) body_bytes: usize,
}

/// The relevant parts of a request header.
#[derive(Debug)]
pub(crate) struct Head {
    method: String,
    target: String,
    host: Option<String>,
    accept: String,
    authorization: Option<String>,
    has_body: bool,
    /// The declared length of the body; `None` if missing.
    body_bytes: Option<usize>,
    content_type: String,
}

/// Reads a request up to the end of its headers; returns it with the part of the body that has
/// arrived.
pub(crate) fn read(
    stream: &mut Connection,
    until: Instant,
) -> io::Result<Result<(Head, Vec<u8>), Refusal>> {
    let mut bytes = [0u8; MAX_BYTES];
    let mut filled = 0;
    loop {
        match read_some(stream, bytes.get_mut(filled..).unwrap_or_default(), until)? {
            Ok(read) => filled += read,
            Err(refusal) => return Ok(Err(refusal)),
        }
        match Head::parse(bytes.get(..filled).unwrap_or_default()) {
            Ok(Some((head, end))) => {
                return Ok(Ok((head, bytes.get(end..filled).unwrap_or_default().to_vec())));
            }
            Ok(None) if filled == MAX_BYTES => return Ok(Err(Refusal::TooLong)),
            Ok(None) => {}
            Err(refusal) => return Ok(Err(refusal)),
        }
    }
}

/// Reads a posted body, whose length [`Head::query`] has checked; `None` for GET.
pub(crate) fn body(
    stream: &mut Connection,
    head: &Head,
    mut body: Vec<u8>,
    until: Instant,
) -> io::Result<Result<Option<Vec<u8>>, Refusal>> {
    let Some(bytes) = head.body_bytes.filter(|_| head.is_post()) else { return Ok(Ok(None)) };
    let mut part = [0u8; MAX_BYTES];
    while body.len() < bytes {
        let max = (bytes - body.len()).min(part.len());
        match read_some(stream, part.get_mut(..max).unwrap_or_default(), until)? {
            Ok(read) => body.extend_from_slice(part.get(..read).unwrap_or_default()),
            Err(refusal) => return Ok(Err(refusal)),
        }
    }
    body.truncate(bytes);
    Ok(Ok(Some(body)))
}

/// Reads available data, at least a byte; the buffer must have space, and the deadline must not
/// have passed.
fn read_some(
    stream: &mut Connection,
    room: &mut [u8],
    until: Instant,
) -> io::Result<Result<usize, Refusal>> {
    loop {
        stream.end_by(until);
        match stream.read(room) {
            // The client has closed its side.
            Ok(0) => return Ok(Err(Refusal::Malformed)),
            Ok(read) => return Ok(Ok(read)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                return Ok(Err(Refusal::TooSlow));
            }
            Err(error) => return Err(error),
        }
    }
}

impl Head {
    /// `None` if the header is incomplete.
    fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, Refusal> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        let end = match request.parse(bytes) {
            Ok(httparse::Status::Partial) => return Ok(None),
            Ok(httparse::Status::Complete(end)) => end,
            Err(httparse::Error::TooManyHeaders) => return Err(Refusal::TooLong),
            Err(_) => return Err(Refusal::Malformed),
        };
        let (Some(method), Some(target)) = (request.method, request.path) else {
            return Err(Refusal::Malformed);
        };
        let headers_named = |name: &str| {
            let has_name =
                move |header: &&httparse::Header<'_>| header.name.eq_ignore_ascii_case(name);
            request.headers.iter().filter(has_name).collect::<Vec<_>>()
        };
        let hosts = headers_named("host");
        if hosts.len() > 1 {
            return Err(Refusal::Malformed);
        }
        let host = hosts.first().map(|header| String::from_utf8_lossy(header.value).into_owned());
        let lengths = headers_named("content-length");
        let body_bytes = match *lengths {
            [header] if headers_named("transfer-encoding").is_empty() => {
                std::str::from_utf8(header.value).ok().and_then(|text| text.trim().parse().ok())
            }
            _ => None,
        };
        let types = headers_named("content-type");
        let content_type =
            types.first().map(|header| String::from_utf8_lossy(header.value).into_owned());
        let content_type = content_type.unwrap_or_default();
        let has_length = headers_named("content-length").iter().any(|header| header.value != b"0");
        let has_body = has_length || !headers_named("transfer-encoding").is_empty();
        let accepted =
            headers_named("accept").into_iter().map(|header| String::from_utf8_lossy(header.value));
        let accept = accepted.collect::<Vec<_>>().join(",");
        let credentials = headers_named("authorization");
        let authorization = match *credentials {
            [header] => std::str::from_utf8(header.value).ok().map(str::to_owned),
            _ => None,
        };
        let (method, target) = (method.to_owned(), target.to_owned());
        Ok(Some((
            Self {
                method,
                target,
                host,
                accept,
                authorization,
                has_body,
                body_bytes,
                content_type,
            },
            end,
        )))
    }

    /// Whether the request names this address as its host.
    fn names(&self, at: SocketAddr) -> bool {
        let own_hosts = [at.to_string(), format!("localhost:{}", at.port())];
        self.host.as_ref().is_some_and(|host| own_hosts.contains(host))
    }

    fn has_token(&self, token: &Token) -> bool {
        let given = self.authorization.as_deref().and_then(|text| text.split_once(' '));
        given.is_some_and(|(scheme, rest)| {
            scheme.eq_ignore_ascii_case("bearer") && token.is(rest.trim())
        })
    }

    fn is_post(&self) -> bool {
        self.method == "POST"
    }

    /// Checks that the body is present and valid if required, and absent otherwise.
    fn check_body(&self, most_bytes: usize) -> Result<(), Refusal> {
        if !self.is_post() || most_bytes == 0 {
            return match (&*self.method, self.has_body) {
                ("GET", false) => Ok(()),
                ("GET", true) => Err(Refusal::Body),
                _ => Err(Refusal::Method),
            };
        }
        let kind = self.content_type.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            return Err(Refusal::Type);
        }
        match self.body_bytes {
            Some(bytes) if bytes <= most_bytes => Ok(()),
            Some(_) => Err(Refusal::TooMuch),
            None => Err(Refusal::Malformed),
        }
    }

    /// The query, if the client has access.
    pub(crate) fn query(&self, rules: &Rules<'_>) -> Result<Query, Refusal> {
        match rules.bearer {
            // No web page can send this header, whatever host name it uses.
            Some(token) if self.has_token(token) => {}
            Some(_) => return Err(Refusal::Unauthorized),
            None if self.names(rules.at) => {}
            None => return Err(Refusal::Host),
        }
        self.check_body(rules.body_bytes)?;
        let path = self.target.strip_prefix('/').ok_or(Refusal::Unknown)?;
        let rest = match rules.path_token {
            Some(token) => below(path, token).ok_or(Refusal::Unknown)?,
            None => path,
        };
        let (name, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric();
        if !name.bytes().all(is_plain) {
            return Err(Refusal::Unknown);
        }
        let pairs = parameters.split('&').filter(|pair| !pair.is_empty());
        let pair = |pair: &str| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(key), decoded(value))
        };
        let parameters = pairs.map(pair).collect();
        Ok(Query { name: name.to_owned(), accept: self.accept.clone(), body: None, parameters })
    }
}

/// The path after the token.
fn below<'p>(path: &'p str, token: &str) -> Option<&'p str> {
    let (given, rest) = path.split_once('/')?;
    is_same(given.as_bytes(), token.as_bytes()).then_some(rest)
}

/// Decodes text in the format of a browser's `URLSearchParams`.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        let hex = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let escaped = hex.filter(|two| two.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match (first, escaped.and_then(|two| u8::from_str_radix(two, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            (b'+', _) => bytes.push(b' '),
            _ => bytes.push(first),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(request: &str) -> Result<Query, Refusal> {
        asked_at("127.0.0.1:80", Some("secret"), request)
    }

    fn asked_at(at: &str, token: Option<&str>, request: &str) -> Result<Query, Refusal> {
        asked_within(0, at, token, request)
    }

    fn asked_within(
        body_bytes: usize,
        at: &str,
        token: Option<&str>,
        request: &str,
    ) -> Result<Query, Refusal> {
        let (head, _) = Head::parse(request.as_bytes())?.ok_or(Refusal::Malformed)?;
        let at = at.parse().unwrap();
        head.query(&Rules { at, path_token: token, bearer: None, body_bytes })
    }

    #[test]
    fn json_of_a_length_that_may_be_is_taken_where_it_may_be_posted() {
        let post = |more: &str| {
            let request = format!("POST /alert HTTP/1.1\r\nHost: 127.0.0.1:80\r\n{more}\r\n");
            asked_within(100, "127.0.0.1:80", None, &request).map(|query| query.name)
        };
        let json = "Content-Type: application/json; charset=utf-8\r\n";
        assert_eq!(post(&format!("{json}Content-Length: 100\r\n")).as_deref(), Ok("alert"));
        for (more, refusal) in [
            (format!("{json}Content-Length: 101\r\n"), Refusal::TooMuch),
            (format!("{json}Content-Length: -1\r\n"), Refusal::Malformed),
            (format!("{json}Content-Length: 1\r\nContent-Length: 2\r\n"), Refusal::Malformed),
            (
                format!("{json}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"),
                Refusal::Malformed,
            ),
            (json.to_owned(), Refusal::Malformed),
            // Requests that a web page of another site can cause a browser to post.
            ("Content-Type: text/plain\r\nContent-Length: 1\r\n".to_owned(), Refusal::Type),
            ("Content-Length: 1\r\n".to_owned(), Refusal::Type),
        ] {
            assert_eq!(post(&more), Err(refusal), "{more}");
        }
        let options = "OPTIONS /alert HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n";
        assert_eq!(asked_within(100, "127.0.0.1:80", None, options), Err(Refusal::Method));
    }

    #[test]
    fn parameters_come_as_they_were_written() {
        let request = "GET /secret/events?from=5&words=MSR+0x80b%20%2B&none&from=6 HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n";
        let query = ask(request).unwrap();
        assert_eq!(query.name, "events");
        assert_eq!(query.number("from"), Some(5));
        assert_eq!(query.get("words"), Some("MSR 0x80b +"));
        assert_eq!((query.get("none"), query.get("to")), (Some(""), None));
    }

    #[test]
    fn only_whom_the_address_was_given_is_answered() {
        let with = |line: &str, more: &str| ask(&format!("{line} HTTP/1.1\r\n{more}\r\n"));
        let own_host = "Host: localhost:80\r\n";
        assert!(with("GET /secret/", own_host).is_ok());
        for (line, more, refusal) in [
            ("POST /secret/", own_host, Refusal::Method),
            ("HEAD /secret/", own_host, Refusal::Method),
            ("GET /secret/", "", Refusal::Host),
            ("GET /secret/", "Host: evil.example\r\n", Refusal::Host),
            ("GET /secret/", "Host: localhost\r\n", Refusal::Host),
            ("GET /secret/", "Host: localhost:80\r\nHost: evil\r\n", Refusal::Malformed),
            ("GET /secret/", "Host: localhost:80\r\nContent-Length: 5\r\n", Refusal::Body),
            ("GET /secret/", "Host: localhost:80\r\nTransfer-Encoding: chunked\r\n", Refusal::Body),
            ("GET /secreT/", own_host, Refusal::Unknown),
            ("GET /secret", own_host, Refusal::Unknown),
            ("GET /", own_host, Refusal::Unknown),
            ("GET /secret/../etc/passwd", own_host, Refusal::Unknown),
            ("GET http://x/secret/", own_host, Refusal::Unknown),
        ] {
            assert_eq!(with(line, more), Err(refusal), "{line} {more}");
        }
    }

    #[test]
    fn an_open_address_has_names_alone_and_its_own_hosts() {
        let with = |at: &str, line: &str, more: &str| {
            asked_at(at, None, &format!("GET {line} HTTP/1.1\r\n{more}\r\n"))
        };
        let accept = "Accept: text/plain;q=0.5\r\naccept: */*\r\n";
        let query =
            with("127.0.0.2:80", "/metrics?x=1", &format!("Host: 127.0.0.2:80\r\n{accept}"));
        let query = query.unwrap();
        assert_eq!((query.name.as_str(), query.get("x")), ("metrics", Some("1")));
        assert_eq!(query.accept, "text/plain;q=0.5,*/*");
        assert_eq!(with("[::1]:80", "/", "Host: [::1]:80\r\n").unwrap(), Query::default());
        let refused = with("127.0.0.1:80", "/metrics", "Host: evil.example:80\r\n");
        assert_eq!(refused, Err(Refusal::Host));
        let refused = with("127.0.0.1:80", "/../metrics", "Host: localhost:80\r\n");
        assert_eq!(refused, Err(Refusal::Unknown));
    }

    #[test]
    fn any_escape_is_some_text() {
        for (text, expected) in
            [("%41%", "A%"), ("%4", "%4"), ("%zz", "%zz"), ("%+1", "% 1"), ("%ff", "\u{fffd}")]
        {
            assert_eq!(decoded(text), expected);
        }
    }
}
