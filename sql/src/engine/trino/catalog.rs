//! Where Trino is, as `--engine trino=` names it: `http://HOST:PORT/CATALOG?at=LOCATION&user=NAME`.

use url::Url;

/// A catalog of Trino's Hive connector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Catalog {
    /// `http://HOST:PORT/`.
    pub(super) server: Url,
    pub(super) name: String,
    /// Where the catalog finds the lake; without one it is its path here, in a file system of its own machine.
    pub(super) at: Option<String>,
    pub(super) user: String,
}

impl Catalog {
    /// Reads a text.
    ///
    /// # Errors
    /// When it names no catalog.
    pub(crate) fn of(text: &str) -> Result<Self, String> {
        let url = Url::parse(text).map_err(|error| format!("{text} is no URL: {error}"))?;
        if url.scheme() != "http" || url.cannot_be_a_base() {
            return Err(format!(
                "Trino is asked over http:// alone; reach a server with https by way of a tunnel or a proxy that ends on \
                 this machine, not by {}://",
                url.scheme()
            ));
        }
        if url.password().is_some() {
            return Err("a password would be sent as it is: over http Trino takes none".to_owned());
        }
        let name = url.path().trim_matches('/');
        if !is_name(name) && !name.is_empty() {
            return Err(format!("{name} is no catalog: give http://HOST:PORT/CATALOG"));
        }
        let name = if name.is_empty() { "hive" } else { name }.to_owned();
        let user = std::env::var("USER").ok().filter(|user| is_plain(user) && !user.is_empty());
        let mut catalog = Self {
            server: url.join("/").map_err(|error| error.to_string())?,
            name,
            at: None,
            user: user.unwrap_or_else(|| "hyperscope".to_owned()),
        };
        for (key, value) in url.query_pairs() {
            match &*key {
                "at" if value.contains(":/") && is_plain(&value) => {
                    catalog.at = Some(value.into_owned())
                }
                "user" if !value.is_empty() && is_plain(&value) => {
                    catalog.user = value.into_owned()
                }
                _ => {
                    return Err(format!(
                        "{key}={value} is nothing to Trino; there are: at=LOCATION, user=NAME"
                    ));
                }
            }
        }
        catalog.server.set_query(None);
        Ok(catalog)
    }
}

/// A name that needs no quotes.
fn is_name(text: &str) -> bool {
    let is_part = |one: char| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '_';
    text.starts_with(|one: char| one.is_ascii_lowercase()) && text.chars().all(is_part)
}

/// Whether it can be in a header.
fn is_plain(text: &str) -> bool {
    text.chars().all(|one| one.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_catalog_is_one_of_a_server() {
        let catalog = Catalog::of("http://c:8080/lake?at=s3://b/fleet&user=ann").unwrap();
        assert_eq!(catalog.server.as_str(), "http://c:8080/");
        assert_eq!((&*catalog.name, &*catalog.user), ("lake", "ann"));
        assert_eq!(catalog.at.as_deref(), Some("s3://b/fleet"));
        assert_eq!(Catalog::of("http://c").unwrap().name, "hive");
        for (text, why) in [
            ("https://c:8443/lake", "over http:// alone"),
            ("c:8080", "over http:// alone"),
            ("http://a:b@c/", "a password"),
            ("http://c/a/b", "a/b is no catalog"),
            ("http://c/?at=x", "at=x is nothing"),
            ("http://c/?user=%0aX", "is nothing"),
            ("c", "is no URL"),
        ] {
            assert!(Catalog::of(text).unwrap_err().contains(why), "{text}");
        }
    }
}
