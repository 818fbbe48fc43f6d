//! The address of Trino in `--engine trino=`: `https://HOST:PORT/CATALOG?at=LOCATION&user=NAME`.

use std::path::PathBuf;

use url::{Host, Url};

use super::credentials::SecretFile;

/// The parameters after the `?`.
const PARTS: &str = "at=LOCATION, user=NAME, ca=FILE, password-file=FILE, token-file=FILE";

/// A catalog of Trino's Hive connector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Catalog {
    /// `http://HOST:PORT/` or `https://HOST:PORT/`.
    pub(super) server: Url,
    pub(super) name: String,
    /// Where the catalog finds the lake; by default the local path, on Trino's own file system.
    pub(super) at: Option<String>,
    /// The user, if given.
    pub(super) user: Option<String>,
    /// Trusted certificates, instead of the system's.
    pub(super) ca: Option<PathBuf>,
    pub(super) secret: Option<SecretFile>,
}

impl Catalog {
    /// Parses a text; errors don't repeat parts that may be secret.
    ///
    /// # Errors
    /// When it names no catalog.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let url =
            Url::parse(text).map_err(|error| format!("what trino= names is no URL: {error}"))?;
        if !["http", "https"].contains(&url.scheme()) || url.host().is_none() {
            return Err(format!(
                "Trino is asked at https://HOST:PORT/CATALOG or http://, not by {}:",
                url.scheme()
            ));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(
                "a password in a command line is no secret: give ?user=NAME, and the password in \
                        HYPERSCOPE_TRINO_PASSWORD or by &password-file=FILE"
                    .to_owned(),
            );
        }
        let name = url.path().trim_matches('/');
        if !is_name(name) && !name.is_empty() {
            return Err(format!("{name} is no catalog: give {}://HOST:PORT/CATALOG", url.scheme()));
        }
        let name = if name.is_empty() { "hive" } else { name }.to_owned();
        let server = url.join("/").map_err(|error| error.to_string())?;
        let mut catalog = Self { server, name, at: None, user: None, ca: None, secret: None };
        for (key, value) in url.query_pairs() {
            catalog.add(&key, &value)?;
        }
        Ok(catalog)
    }

    /// Adds a parameter.
    fn add(&mut self, key: &str, value: &str) -> Result<(), String> {
        let secret = |kind: fn(PathBuf) -> SecretFile| Some(kind(value.into()));
        match key {
            "at" if value.contains(":/") && is_plain(value) => self.at = Some(value.to_owned()),
            "user" if !value.is_empty() && is_plain(value) => self.user = Some(value.to_owned()),
            "ca" | "password-file" | "token-file" if value.is_empty() => {
                return Err(format!("{key}= names no file"));
            }
            "ca" if self.server.scheme() != "https" => {
                return Err(
                    "ca=FILE is for https://: over http there are no certificates".to_owned()
                );
            }
            "ca" => self.ca = Some(value.into()),
            "password-file" | "token-file" if self.secret.is_some() => {
                return Err(
                    "one of password-file=FILE and token-file=FILE says who asks".to_owned()
                );
            }
            "password-file" => self.secret = secret(SecretFile::Password),
            "token-file" => self.secret = secret(SecretFile::Token),
            "at" | "user" => {
                return Err(format!("{key}={value} is nothing to Trino; there are: {PARTS}"));
            }
            // The value may be a secret.
            _ => return Err(format!("{key}= is nothing to Trino; there are: {PARTS}")),
        }
        Ok(())
    }

    /// Whether no third party can read the traffic: it is encrypted, or stays on this machine.
    pub(super) fn is_private(&self) -> bool {
        let is_here = match self.server.host() {
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            Some(Host::Domain(name)) => name == "localhost",
            None => false,
        };
        is_here || self.server.scheme() == "https"
    }

    /// The given user, or the user of this process.
    pub(super) fn user_or_own(&self) -> String {
        let current_user =
            || std::env::var("USER").ok().filter(|user| is_plain(user) && !user.is_empty());
        self.user.clone().or_else(current_user).unwrap_or_else(|| "hyperscope".to_owned())
    }
}

/// A name that needs no quotes.
fn is_name(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(is_part)
}

/// Whether a header can contain it.
fn is_plain(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_catalog_is_one_of_a_server() {
        let catalog = Catalog::parse("http://c:8080/lake?at=s3://b/fleet&user=ann").unwrap();
        assert_eq!(catalog.server.as_str(), "http://c:8080/");
        assert_eq!((&*catalog.name, catalog.user.as_deref()), ("lake", Some("ann")));
        assert_eq!(catalog.at.as_deref(), Some("s3://b/fleet"));
        assert_eq!(Catalog::parse("http://c").unwrap().name, "hive");
        let catalog = Catalog::parse("https://c:8443/lake?ca=/a/b.pem&token-file=t").unwrap();
        assert_eq!(catalog.server.as_str(), "https://c:8443/");
        assert_eq!(catalog.ca, Some(PathBuf::from("/a/b.pem")));
        assert_eq!(catalog.secret, Some(SecretFile::Token("t".into())));
        for (text, why) in [
            ("ftp://c:8443/lake", "not by ftp:"),
            ("c:8080", "not by c:"),
            ("http://a:hush@c/", "is no secret"),
            ("https://hush@c/", "is no secret"),
            ("https://a:hush@c:x/", "is no URL"),
            ("http://c/a/b", "a/b is no catalog"),
            ("http://c/?at=x", "at=x is nothing"),
            ("http://c/?user=%0aX", "is nothing"),
            ("https://c/?password=hush", "password= is nothing"),
            ("https://c/?password-file=", "names no file"),
            ("https://c/?password-file=a&token-file=b", "one of"),
            ("http://c/?ca=a", "for https://"),
            ("c", "is no URL"),
        ] {
            let error = Catalog::parse(text).unwrap_err();
            assert!(error.contains(why) && !error.contains("hush"), "{text}: {error}");
        }
    }
}
