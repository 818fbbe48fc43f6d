//! Trino's statement protocol: a statement is posted, and what it gives is fetched page by page, within bounds.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use datafusion::error::{DataFusionError, Result};
use serde::Deserialize;
use serde_json::Value;
use ureq::http::Response;
use ureq::{Agent, Body};
use url::Url;

use super::catalog::Catalog;

/// How long all statements of a question may take.
const MOST_TIME: Duration = Duration::from_secs(3600);
/// How long a connection may take to come about.
const MOST_CONNECT_TIME: Duration = Duration::from_secs(10);
/// How long one page may take to come: while a query runs, a page without rows comes every second.
const MOST_PAGE_TIME: Duration = Duration::from_secs(60);
/// Bytes of one page; Trino's own are of 1 MB, or of one row.
const MOST_PAGE_BYTES: u64 = 32 << 20;
/// Bytes of all pages of an answer.
const MOST_ANSWER_BYTES: u64 = 4 << 30;
/// How long to wait before a server is asked once more that is busy, as the protocol has it.
const PAUSE: Duration = Duration::from_millis(100);

/// A server, and the schema that is asked.
#[derive(Debug)]
pub(super) struct Client {
    agent: Agent,
    server: Url,
    catalog: String,
    user: String,
    schema: String,
    until: Instant,
    /// What goes on with the statement that runs.
    next: Mutex<Option<Url>>,
}

/// A column of an answer.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
}

/// Rows of an answer.
pub(super) type Rows = Vec<Vec<Value>>;

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The statement is at fault, and where: line and column from 1.
    Said { why: String, place: Option<(u64, u64)> },
    /// The server is.
    Failed(String),
    /// What came can't be kept here.
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
    /// A client; nothing is sent yet.
    pub(super) fn new(catalog: &Catalog, schema: &str) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            // A proxy of the environment is one to the internet.
            .proxy(None)
            .timeout_connect(Some(MOST_CONNECT_TIME))
            .timeout_resolve(Some(MOST_CONNECT_TIME))
            .timeout_global(Some(MOST_PAGE_TIME))
            .user_agent(concat!("hyperscope/", env!("CARGO_PKG_VERSION")))
            .build();
        Self {
            agent: config.new_agent(),
            server: catalog.server.clone(),
            catalog: catalog.name.clone(),
            user: catalog.user.clone(),
            schema: schema.to_owned(),
            until: Instant::now() + MOST_TIME,
            next: Mutex::new(None),
        }
    }

    /// Runs a statement; each page's columns and rows are given to `rows`, the columns also without any.
    ///
    /// # Errors
    /// When it is not answered within the bounds, or `rows` fails.
    pub(super) fn run(
        &self,
        statement: &str,
        rows: &mut dyn FnMut(&[Column], Rows) -> Result<()>,
    ) -> std::result::Result<(), Refusal> {
        let first = self.server.join("v1/statement").map_err(|error| self.failed(&error))?;
        let post = || {
            let request = self.agent.post(first.as_str()).header("X-Trino-User", &self.user);
            let request = request.header("X-Trino-Source", "hyperscope");
            let request = request.header("X-Trino-Catalog", &self.catalog);
            request.header("X-Trino-Schema", &self.schema).send(statement)
        };
        let (mut page, mut bytes) = self.page(&post)?;
        let mut columns = Vec::new();
        loop {
            let next = page.next_uri.take().map(|uri| self.own(&uri)).transpose()?;
            self.next.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&next);
            if let Some(fault) = page.error {
                return Err(fault.into());
            }
            columns = page.columns.unwrap_or(columns);
            if !columns.is_empty() {
                rows(&columns, page.data.unwrap_or_default()).map_err(Refusal::Here)?;
            }
            let Some(next) = next else { return Ok(()) };
            let get = || self.agent.get(next.as_str()).header("X-Trino-User", &self.user).call();
            let read;
            (page, read) = self.page(&get)?;
            bytes += read;
            if bytes > MOST_ANSWER_BYTES {
                let gib = MOST_ANSWER_BYTES >> 30;
                self.cancel();
                return Err(Refusal::Failed(format!(
                    "the answer has more than {gib} GiB: ask for fewer rows, or for sums of them"
                )));
            }
        }
    }

    /// A page, and its bytes. A server that is busy is asked once more.
    fn page(
        &self,
        ask: &dyn Fn() -> std::result::Result<Response<Body>, ureq::Error>,
    ) -> std::result::Result<(Page, u64), Refusal> {
        loop {
            if Instant::now() >= self.until {
                self.cancel();
                let minutes = MOST_TIME.as_secs() / 60;
                return Err(Refusal::Failed(format!(
                    "Trino did not answer within {minutes} minutes"
                )));
            }
            let mut response = ask().map_err(|error| self.failed(&error))?;
            let status = response.status().as_u16();
            let body = response.body_mut().with_config().limit(MOST_PAGE_BYTES).read_to_vec();
            let body = body.map_err(|error| self.failed(&error))?;
            match status {
                200 => {
                    let page = serde_json::from_slice(&body);
                    let page =
                        page.map_err(|error| self.failed(&format!("no page of Trino's: {error}")))?;
                    return Ok((page, body.len() as u64));
                }
                502..=504 => std::thread::sleep(PAUSE),
                401 | 403 => {
                    return Err(self.failed(&format!(
                        "it wants to know who asks (status {status}): give user=NAME; passwords are not spoken"
                    )));
                }
                other => {
                    let text = String::from_utf8_lossy(&body);
                    let line: String =
                        text.lines().next().unwrap_or_default().chars().take(200).collect();
                    return Err(self.failed(&format!("status {other} {line}")));
                }
            }
        }
    }

    /// An address that the server sends us on to, which must be one of its own.
    fn own(&self, uri: &str) -> std::result::Result<Url, Refusal> {
        let next = Url::parse(uri).ok().filter(|next| {
            next.origin() == self.server.origin() && next.path().starts_with("/v1/statement/")
        });
        next.ok_or_else(|| self.failed(&format!("it sends us on to {uri}, which is not its own")))
    }

    fn failed(&self, why: &dyn std::fmt::Display) -> Refusal {
        Refusal::Failed(format!(
            "Trino at {}: {why}; its coordinator is asked at http://HOST:PORT/CATALOG",
            self.server
        ))
    }

    /// Has the statement that runs end, if one does.
    pub(super) fn cancel(&self) {
        let next = self.next.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(next) = next {
            // Trino forgets a query by itself, if nobody asks for more of it.
            let _: io::Result<()> = self
                .agent
                .delete(next.as_str())
                .header("X-Trino-User", &self.user)
                .call()
                .map(drop)
                .map_err(|error| error.into_io());
        }
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        let place = fault.error_location.map(|at| (at.line_number, at.column_number));
        let why = fault.message.or(fault.error_name);
        Self::Said { why: why.unwrap_or_else(|| "it failed and did not say why".to_owned()), place }
    }
}
