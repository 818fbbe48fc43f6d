//! Requests files from servers in order, and reports the results.

use std::collections::HashSet;
use std::fmt;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use symbols::{BuildId, ElfFunctions, Fetch, WantedFile};
use sys::FileMap;
use tempfile::NamedTempFile;
use ureq::Agent;

use crate::cache::{Cache, Cached};
use crate::download::{self, Bounds, Failure, download};
use crate::settings::Settings;

/// Maximum number of requested files: recordings name the files of guests, which are not trusted.
const MAX_ASKED: usize = 1024;

/// The server's name for debug files.
const DEBUG_FILE: &str = "debuginfo";
const PROGRAM: &str = "executable";

/// A download in progress.
#[derive(Clone, Copy, Debug)]
pub struct Coming<'c> {
    /// The file's name where it was mapped: not trusted.
    pub name: &'c str,
    /// The server's address without a password.
    pub server: &'c str,
    /// Bytes received.
    pub bytes: u64,
    /// Total bytes, if the server states them.
    pub total: Option<u64>,
}

/// Receives the progress of downloads, and warnings.
pub trait Watch: Send {
    fn coming(&mut self, file: &Coming<'_>);
    /// The download has ended, successfully or not.
    fn over(&mut self);
    /// A warning as a line of text, which may contain text from a server.
    fn warn(&mut self, line: &str);
}

#[derive(Clone, Debug)]
struct Server {
    url: String,
    /// The server is not used any more.
    is_dropped: bool,
}

/// Downloads files from servers.
pub struct Debuginfod {
    settings: Settings,
    servers: Vec<Server>,
    cache: Cache,
    agent: Option<Agent>,
    watch: Box<dyn Watch>,
    /// Files that were requested in this run and are not available.
    missed: HashSet<(BuildId, &'static str)>,
    request_count: usize,
    /// Time of the first request.
    start: Option<Instant>,
    is_over: bool,
}

impl fmt::Debug for Debuginfod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Debuginfod").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Fetch for Debuginfod {
    fn fetch(&mut self, name: &str, build_id: &BuildId, wanted: WantedFile) -> Option<PathBuf> {
        if build_id.bytes().is_empty() {
            return None;
        }
        let kinds = match wanted {
            WantedFile::DebugFile => &[DEBUG_FILE][..],
            WantedFile::Either => &[DEBUG_FILE, PROGRAM],
        };
        kinds.iter().find_map(|kind| self.file(name, build_id, kind))
    }
}

impl Debuginfod {
    /// Creates a client; contacts no server yet.
    #[must_use]
    pub fn new(settings: Settings, watch: Box<dyn Watch>) -> Self {
        let server = |url: &String| Server { url: url.clone(), is_dropped: false };
        Self {
            servers: settings.servers.iter().map(server).collect(),
            cache: Cache::new(settings.cache.clone()),
            settings,
            agent: None,
            watch,
            missed: HashSet::new(),
            request_count: 0,
            start: None,
            is_over: false,
        }
    }

    /// A file of a kind from the cache, or from the first server that has it.
    fn file(&mut self, name: &str, build_id: &BuildId, kind: &'static str) -> Option<PathBuf> {
        if self.missed.contains(&(*build_id, kind)) {
            return None;
        }
        let found = match self.cache.look(&build_id.to_string(), kind) {
            Cached::File(path) => Some(path),
            Cached::Missed => None,
            Cached::Unknown => self.ask_all(name, build_id, kind),
        };
        if found.is_none() && self.missed.len() < MAX_ASKED {
            self.missed.insert((*build_id, kind));
        }
        found
    }

    fn ask_all(&mut self, name: &str, build_id: &BuildId, kind: &'static str) -> Option<PathBuf> {
        if self.is_over {
            return None;
        }
        if self.request_count >= MAX_ASKED {
            self.end(&format!("the limit of {MAX_ASKED} requested files is reached"));
            return None;
        }
        self.request_count = self.request_count.saturating_add(1);
        let mut is_nowhere = true;
        for at in 0..self.servers.len() {
            let Some(server) = self.servers.get(at) else { break };
            if server.is_dropped {
                is_nowhere = false;
                continue;
            }
            let url = server.url.clone();
            match self.ask(&url, name, build_id, kind) {
                Ok(path) => return Some(path),
                Err(Failure::NotThere) => {}
                Err(failure) => {
                    is_nowhere = false;
                    self.explain(at, &url, name, failure);
                }
            }
            if self.is_over {
                return None;
            }
        }
        if is_nowhere {
            // If this fails, the file is requested again next time.
            let _ = self.cache.note_missed(&build_id.to_string(), kind);
        }
        None
    }

    /// Requests a file from one server.
    fn ask(
        &mut self,
        url: &str,
        name: &str,
        build_id: &BuildId,
        kind: &'static str,
    ) -> Result<PathBuf, Failure> {
        let hex = build_id.to_string();
        let here = |error: std::io::Error| Failure::Here(error.to_string());
        let mut file = self.cache.begin(&hex, kind).map_err(here)?;
        let bounds = self.bounds();
        let agent = self.agent.get_or_insert_with(download::agent);
        let (watch, server) = (&mut self.watch, without_password(url));
        let mut coming = |bytes, total| {
            watch.coming(&Coming { name, server: &server, bytes, total });
        };
        coming(0, None);
        let address = format!("{url}/buildid/{hex}/{kind}");
        let got = download(agent, &address, &bounds, &mut file, &mut coming);
        self.watch.over();
        got?;
        file.flush().map_err(here)?;
        check_build_id(&file, build_id)?;
        self.cache.keep(file, &hex, kind).map_err(here)
    }

    fn bounds(&mut self) -> Bounds {
        let Settings { timeout, most_file_time, most_time, most_file_bytes, .. } = self.settings;
        let start = *self.start.get_or_insert_with(Instant::now);
        let remaining = most_time.saturating_sub(start.elapsed());
        Bounds { timeout, time: most_file_time.min(remaining), bytes: most_file_bytes }
    }

    /// Reports why a server sent no file, and stops using a server that does not work.
    fn explain(&mut self, at: usize, url: &str, name: &str, failure: Failure) {
        let server = without_password(url);
        let line = match failure {
            Failure::NotThere => return,
            Failure::TooLarge => {
                let max = self.settings.most_file_bytes;
                format!("{server}: the debug file of {name} is larger than {max} bytes")
            }
            // A timeout that the remaining time caused is not the server's fault.
            Failure::TooLong | Failure::Server(_) if self.bounds().time.is_zero() => {
                let seconds = self.settings.most_time.as_secs();
                self.end(&format!("the time for all downloads, {seconds} s, is over"));
                return;
            }
            Failure::TooLong => {
                format!("{server}: the debug file of {name} takes too long to download to download")
            }
            Failure::Here(why) => {
                let folder = self.cache.folder().display().to_string();
                self.end(&format!("cannot write to {folder}: {why}"));
                return;
            }
            Failure::Server(why) => {
                if let Some(server) = self.servers.get_mut(at) {
                    server.is_dropped = true;
                }
                format!("{server} is ignored from now on: {why}")
            }
        };
        self.watch.warn(&line);
        if self.servers.iter().all(|server| server.is_dropped) {
            self.is_over = true;
        }
    }

    /// Stops all requests; files in the cache are still used.
    fn end(&mut self, why: &str) {
        self.is_over = true;
        self.watch.warn(&format!("downloads stop: {why}"));
    }
}

/// Checks that the file has the requested build id.
fn check_build_id(file: &NamedTempFile, build_id: &BuildId) -> Result<(), Failure> {
    let map = FileMap::open(file.path());
    let found = map.ok().and_then(|map| ElfFunctions::build_id_of(&map));
    match found {
        Some(found) if found == *build_id => Ok(()),
        Some(found) => {
            Err(Failure::Server(format!("it sent the file {found} instead of {build_id}")))
        }
        None => {
            Err(Failure::Server(format!("the file that it sent for {build_id} has no build id")))
        }
    }
}

/// An address for messages, without its password.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (host, path) = rest.split_once('/').map_or((rest, None), |(host, path)| (host, Some(path)));
    let host = host.rsplit('@').next().unwrap_or_default();
    path.map_or_else(|| format!("{scheme}://{host}"), |path| format!("{scheme}://{host}/{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        for (url, shown) in [
            ("http://a:8002", "http://a:8002"),
            ("https://user:secret@host/x/y", "https://host/x/y"),
            ("https://us@er:sec@host", "https://host"),
            ("https://host/a@b", "https://host/a@b"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }
}
