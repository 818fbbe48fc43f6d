//! Trino's statement protocol: a statement is posted, and its result is fetched page by page, within limits.

use std::io;
use std::time::{Duration, Instant};

use datafusion::error::{DataFusionError, Result};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use ureq::http::Response;
use ureq::{Agent, Body, RequestBuilder};
use url::Url;

use super::catalog::Catalog;
use super::connection::{agent, in_words};
use super::credentials::Credentials;

/// Timeout for all statements of a query.
const MAX_TIME: Duration = Duration::from_secs(3600);
/// Timeout for canceling an abandoned query.
const MAX_CANCEL_TIME: Duration = Duration::from_secs(5);
/// Max bytes of a page; Trino's pages have 1 MB, or one row.
const MAX_PAGE_BYTES: u64 = 32 << 20;
/// Max bytes of all pages of a result.
const MAX_ANSWER_BYTES: u64 = 4 << 30;
/// Max characters of a server's text in a message.
const MAX_SHOWN: usize = 200;
/// Delay before a retry if the server is busy, as the protocol defines it.
const PAUSE: Duration = Duration::from_millis(100);

/// A server, and the schema in use.
#[derive(Debug)]
pub(super) struct Client {
    agent: Agent,
    catalog: Catalog,
    credentials: Credentials,
    schema: String,
    until: Instant,
    /// The next URL of the running statement.
    next: Mutex<Option<Url>>,
}

/// A column of a result.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
}

/// Rows of a result.
pub(super) type Rows = Vec<Vec<Value>>;

/// Why there is no result.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The statement has an error at this position: line and column from 1.
    Said { why: String, place: Option<(u64, u64)> },
    /// The server failed.
    Failed(String),
    /// The received result can't be stored here.
    Here(DataFusionError),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    next_uri: Option<String>,
    columns: Option<Vec<Column>>,
    data: Option<Rows>,
    error: Option<Fault>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fault {
    message: Option<String>,
    error_name: Option<String>,
    error_location: Option<Location>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    line_number: u64,
    column_number: u64,
}

impl Client {
    /// A client; sends nothing yet.
    ///
    /// # Errors
    /// When the server's certificate can't be checked, or credentials can't be read or sent.
    pub(super) fn new(catalog: &Catalog, schema: &str) -> std::result::Result<Self, String> {
        Ok(Self {
            agent: agent(catalog)?,
            catalog: catalog.clone(),
            credentials: Credentials::for_catalog(catalog, |name| std::env::var(name).ok())?,
            schema: schema.to_owned(),
            until: Instant::now() + MAX_TIME,
            next: Mutex::new(None),
        })
    }

    /// Adds the credentials to a request.
    fn signed<B>(&self, mut request: RequestBuilder<B>) -> RequestBuilder<B> {
        if let Some(user) = &self.credentials.user {
            request = request.header("X-Trino-User", user);
        }
        match &self.credentials.header {
            Some(header) => request.header("Authorization", header),
            None => request,
        }
    }

    /// Runs a statement; passes each page's columns and rows to `rows`, even without any row.
    ///
    /// # Errors
    /// When the result exceeds the limits, or `rows` fails.
    pub(super) fn run(
        &self,
        statement: &str,
        rows: &mut dyn FnMut(&[Column], Rows) -> Result<()>,
    ) -> std::result::Result<(), Refusal> {
        let first = self.catalog.server.join("v1/statement");
        let first = first.map_err(|error| self.failed(&error))?;
        let post = || {
            let request = self.signed(self.agent.post(first.as_str()));
            let request = request.header("X-Trino-Source", "hyperscope");
            let request = request.header("X-Trino-Catalog", &self.catalog.name);
            request.header("X-Trino-Schema", &self.schema).send(statement)
        };
        let (mut page, mut bytes) = self.page(&post)?;
        let mut columns = Vec::new();
        loop {
            let next = page.next_uri.take().map(|uri| self.checked_url(&uri)).transpose()?;
            self.next.lock().clone_from(&next);
            if let Some(fault) = page.error {
                return Err(self.refused(fault));
            }
            columns = page.columns.unwrap_or(columns);
            if !columns.is_empty() {
                rows(&columns, page.data.unwrap_or_default()).map_err(Refusal::Here)?;
            }
            let Some(next) = next else { return Ok(()) };
            let get = || self.signed(self.agent.get(next.as_str())).call();
            let read;
            (page, read) = self.page(&get)?;
            bytes += read;
            if bytes > MAX_ANSWER_BYTES {
                let gib = MAX_ANSWER_BYTES >> 30;
                self.cancel();
                return Err(Refusal::Failed(format!(
                    "the answer has more than {gib} GiB: ask for fewer rows, or for sums of them"
                )));
            }
        }
    }

    /// A page and its bytes. Repeats the request if the server is busy.
    fn page(
        &self,
        ask: &dyn Fn() -> std::result::Result<Response<Body>, ureq::Error>,
    ) -> std::result::Result<(Page, u64), Refusal> {
        loop {
            if Instant::now() >= self.until {
                self.cancel();
                let minutes = MAX_TIME.as_secs() / 60;
                return Err(Refusal::Failed(format!(
                    "Trino did not answer within {minutes} minutes"
                )));
            }
            let unreached = |error: ureq::Error| self.failed(&in_words(&error, &self.catalog));
            let mut response = ask().map_err(unreached)?;
            let status = response.status().as_u16();
            let body = response.body_mut().with_config().limit(MAX_PAGE_BYTES).read_to_vec();
            let body = body.map_err(unreached)?;
            match status {
                200 => {
                    let page = serde_json::from_slice(&body);
                    let page = page.map_err(|error| {
                        self.no_trino(&format!(
                            "no page of Trino's: {}",
                            self.shown(&error.to_string())
                        ))
                    })?;
                    return Ok((page, body.len() as u64));
                }
                502..=504 => std::thread::sleep(PAUSE),
                401 | 403 => return Err(self.failed(&self.unknown(status))),
                other => {
                    let text = String::from_utf8_lossy(&body);
                    let line = self.shown(text.lines().next().unwrap_or_default());
                    return Err(self.no_trino(&format!("status {other} {line}")));
                }
            }
        }
    }

    /// Why the server rejects the credentials.
    fn unknown(&self, status: u16) -> String {
        let user = self.credentials.user.as_deref().unwrap_or("who has the token");
        match (&self.credentials.header, self.catalog.is_private()) {
            (Some(_), _) => format!("it refuses {user} with what was given (status {status})"),
            (None, true) => format!(
                "it wants to know that it is {user} who asks (status {status}): give a password in \
                 HYPERSCOPE_TRINO_PASSWORD or by &password-file=FILE, or a token"
            ),
            (None, false) => format!(
                "it refuses {user} (status {status}): ask by https://, with a password or a token"
            ),
        }
    }

    /// A URL from the server, which must belong to the same server.
    fn checked_url(&self, uri: &str) -> std::result::Result<Url, Refusal> {
        let server = &self.catalog.server;
        let next = Url::parse(uri).ok();
        if let Some(next) = next.as_ref().filter(|next| {
            next.origin() == server.origin() && next.path().starts_with("/v1/statement/")
        }) {
            return Ok(next.clone());
        }
        let is_plain =
            next.is_some_and(|next| next.scheme() == "http") && server.scheme() == "https";
        // A coordinator behind a proxy that terminates TLS does so.
        let why = if is_plain {
            "which is not encrypted: set http-server.process-forwarded there"
        } else {
            "which is not its own"
        };
        let uri = self.shown(uri);
        Err(self.failed(&format!("it sends us on to {uri}, {why}")))
    }

    fn failed(&self, why: &dyn std::fmt::Display) -> Refusal {
        Refusal::Failed(format!("Trino at {}: {why}", self.catalog.server))
    }

    /// A server's text in a message.
    fn shown(&self, text: &str) -> String {
        self.credentials.without_secrets(text).chars().take(MAX_SHOWN).collect()
    }

    /// The error for a server that may not be Trino.
    fn no_trino(&self, why: &str) -> Refusal {
        let scheme = self.catalog.server.scheme();
        self.failed(&format!("{why}; its coordinator is asked at {scheme}://HOST:PORT/CATALOG"))
    }

    /// The server's error.
    fn refused(&self, fault: Fault) -> Refusal {
        let place = fault.error_location.map(|at| (at.line_number, at.column_number));
        let why = fault.message.or(fault.error_name);
        let why = why.unwrap_or_else(|| "it failed and did not say why".to_owned());
        Refusal::Said { why: self.credentials.without_secrets(&why), place }
    }

    /// Cancels the running statement, if any.
    pub(super) fn cancel(&self) {
        let next = self.next.lock().take();
        if let Some(next) = next {
            let request = self.signed(self.agent.delete(next.as_str()));
            let request = request.config().timeout_global(Some(MAX_CANCEL_TIME)).build();
            // Trino drops a query by itself if no client fetches its pages.
            let _: io::Result<()> = request.call().map(drop).map_err(|error| error.into_io());
        }
    }
}
