//! Settings from the environment, with the variable names of elfutils' client, and built-in bounds.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Maximum number of servers.
const MAX_SERVERS: usize = 16;
/// Maximum bytes of a file; QEMU's debug file has 100 MB, a browser's a few GB.
const MAX_FILE_BYTES: u64 = 4 << 30;
/// Maximum time of all downloads of a command.
const MAX_TIME: Duration = Duration::from_secs(4 * 60);
/// Default time for 100 KiB from a server.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// The servers, the limits of downloads, and the folder of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Servers in order of use, as addresses without a trailing slash.
    pub servers: Vec<String>,
    /// The folder of the cache.
    pub cache: PathBuf,
    /// Maximum time for 100 KiB from a server.
    pub timeout: Duration,
    /// Maximum time of a file.
    pub most_file_time: Duration,
    /// Maximum time of all files.
    pub most_time: Duration,
    pub most_file_bytes: u64,
}

/// There is no folder for downloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "DEBUGINFOD_URLS is set, but there is no folder for downloads: set DEBUGINFOD_CACHE_PATH or HOME"
)]
pub struct NoCache;

impl Settings {
    /// Settings from this process's environment; `None` if it names no server.
    ///
    /// # Errors
    /// If it names servers, but there is no folder for downloads.
    pub fn of_environment() -> Result<Option<Self>, NoCache> {
        Self::from_variables(|name| std::env::var_os(name))
    }

    fn from_variables(
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Option<Self>, NoCache> {
        let text = |name| variable(name)?.into_string().ok();
        let number = |name| text(name)?.trim().parse::<i64>().ok();
        let servers = servers(&text("DEBUGINFOD_URLS").unwrap_or_default());
        if servers.is_empty() {
            return Ok(None);
        }
        // Zero means no bound for elfutils; here the built-in bounds apply.
        let positive = |name| {
            number(name).and_then(|value| u64::try_from(value).ok()).filter(|value| *value > 0)
        };
        let timeout = match number("DEBUGINFOD_TIMEOUT") {
            None => DEFAULT_TIMEOUT,
            Some(_) => positive("DEBUGINFOD_TIMEOUT").map_or(MAX_TIME, Duration::from_secs),
        };
        let most_file_time = positive("DEBUGINFOD_MAXTIME").map_or(MAX_TIME, Duration::from_secs);
        let most_file_bytes = positive("DEBUGINFOD_MAXSIZE").unwrap_or(MAX_FILE_BYTES);
        Ok(Some(Self {
            servers,
            cache: cache(|name| variable(name).filter(|value| !value.is_empty())).ok_or(NoCache)?,
            timeout: timeout.min(MAX_TIME),
            most_file_time: most_file_time.min(MAX_TIME),
            most_time: MAX_TIME,
            most_file_bytes: most_file_bytes.min(MAX_FILE_BYTES),
        }))
    }
}

/// Splits addresses at spaces; words for package signatures (`ima:…`) can be in between.
fn servers(urls: &str) -> Vec<String> {
    let is_server = |url: &&str| url.starts_with("http://") || url.starts_with("https://");
    let mut servers: Vec<String> = Vec::new();
    for url in urls.split_ascii_whitespace().filter(is_server) {
        let url = url.trim_end_matches('/').to_owned();
        if servers.len() < MAX_SERVERS && !servers.contains(&url) {
            servers.push(url);
        }
    }
    servers
}

fn cache(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let home = |below: &str| Some(PathBuf::from(variable("HOME")?).join(below));
    let named = variable("DEBUGINFOD_CACHE_PATH").map(PathBuf::from);
    let old = || home(".debuginfod_client_cache").filter(|folder| folder.is_dir());
    let xdg = || Some(PathBuf::from(variable("XDG_CACHE_HOME")?).join("debuginfod_client"));
    named.or_else(old).or_else(xdg).or_else(|| home(".cache/debuginfod_client"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings_of(variables: &[(&str, &str)]) -> Result<Option<Settings>, NoCache> {
        let value = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| OsString::from(value))
        };
        Settings::from_variables(value)
    }

    #[test]
    fn without_servers_nothing_is_set() {
        for urls in ["", "  ", "ima:enforcing", "file:///srv ftp://a"] {
            assert_eq!(
                settings_of(&[("DEBUGINFOD_URLS", urls), ("HOME", "/h")]),
                Ok(None),
                "{urls:?}"
            );
        }
        assert_eq!(settings_of(&[("HOME", "/h")]), Ok(None));
    }

    #[test]
    fn servers_are_asked_in_their_order_and_once() {
        let urls = "http://a:8002/ ima:ignore https://b/x//  http://a:8002";
        let found = settings_of(&[("DEBUGINFOD_URLS", urls), ("HOME", "/h")]).unwrap().unwrap();
        assert_eq!(found.servers, ["http://a:8002", "https://b/x"]);
        assert_eq!((found.timeout, found.most_file_bytes), (DEFAULT_TIMEOUT, MAX_FILE_BYTES));
    }

    #[test]
    fn the_cache_is_where_elfutils_has_it() {
        let urls = ("DEBUGINFOD_URLS", "http://a");
        let folder = |more: &[(&str, &str)]| {
            settings_of(&[&[urls], more].concat())
                .map(|found| found.unwrap().cache.display().to_string())
        };
        let (home, xdg) = (("HOME", "/h"), ("XDG_CACHE_HOME", "/x"));
        assert_eq!(folder(&[home]).unwrap(), "/h/.cache/debuginfod_client");
        assert_eq!(folder(&[home, xdg]).unwrap(), "/x/debuginfod_client");
        assert_eq!(folder(&[home, xdg, ("DEBUGINFOD_CACHE_PATH", "/c")]).unwrap(), "/c");
        assert_eq!(folder(&[home, ("XDG_CACHE_HOME", "")]).unwrap(), "/h/.cache/debuginfod_client");
        assert_eq!(folder(&[]), Err(NoCache));
    }

    #[test]
    fn bounds_are_the_environments_within_our_own() {
        let with = |name, value| {
            let variables = [("DEBUGINFOD_URLS", "http://a"), ("HOME", "/h"), (name, value)];
            settings_of(&variables).unwrap().unwrap()
        };
        assert_eq!(with("DEBUGINFOD_TIMEOUT", "3").timeout, Duration::from_secs(3));
        assert_eq!(with("DEBUGINFOD_TIMEOUT", "0").timeout, MAX_TIME);
        assert_eq!(with("DEBUGINFOD_TIMEOUT", "-1").timeout, MAX_TIME);
        assert_eq!(with("DEBUGINFOD_TIMEOUT", "often").timeout, DEFAULT_TIMEOUT);
        assert_eq!(with("DEBUGINFOD_MAXTIME", "7").most_file_time, Duration::from_secs(7));
        assert_eq!(with("DEBUGINFOD_MAXTIME", "9999999").most_file_time, MAX_TIME);
        assert_eq!(with("DEBUGINFOD_MAXSIZE", "1000").most_file_bytes, 1000);
        assert_eq!(with("DEBUGINFOD_MAXSIZE", "0").most_file_bytes, MAX_FILE_BYTES);
    }
}
