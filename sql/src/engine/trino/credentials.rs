//! Credentials for Trino: a password or a token, from the environment or a file that only its owner can read. They are
//! never printed.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::catalog::Catalog;

/// The variables that are used if the URL names no file.
const PASSWORD: &str = "HYPERSCOPE_TRINO_PASSWORD";
const TOKEN: &str = "HYPERSCOPE_TRINO_TOKEN";
/// Max bytes of a password or token.
const MAX_BYTES: u64 = 16 << 10;

/// A file with a password or a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SecretFile {
    Password(PathBuf),
    Token(PathBuf),
}

/// The user and its credentials.
pub(super) struct Credentials {
    /// The user; a token contains its own.
    pub(super) user: Option<String>,
    /// The value of `Authorization`.
    pub(super) header: Option<String>,
    /// The text that no message may contain.
    secret: Option<String>,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "Credentials of {:?}", self.user)
    }
}

impl Credentials {
    /// The credentials for a catalog, from the files in its URL or from `variable`s of the environment.
    ///
    /// # Errors
    /// When others can read a file, there are two credentials, or they would be sent unencrypted.
    pub(super) fn for_catalog(
        catalog: &Catalog,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let value_of = |name: &str| variable(name).filter(|text| !text.is_empty());
        let (password, token, from) = match &catalog.secret {
            Some(SecretFile::Password(path)) => {
                (Some(read(path)?), None, path.display().to_string())
            }
            Some(SecretFile::Token(path)) => (None, Some(read(path)?), path.display().to_string()),
            None => match (value_of(PASSWORD), value_of(TOKEN)) {
                (Some(_), Some(_)) => {
                    return Err(format!("{PASSWORD} and {TOKEN} are set: unset one"));
                }
                (None, token @ Some(_)) => (None, token, TOKEN.to_owned()),
                (password, None) => (password, None, PASSWORD.to_owned()),
            },
        };
        if (password.is_some() || token.is_some()) && !catalog.is_private() {
            let host = catalog.server.host_str().unwrap_or_default();
            return Err(format!(
                "what {from} has would go to {host} as plain text: ask by https://, or without it"
            ));
        }
        match (password, token) {
            (Some(password), _) => Self::by_password(catalog, password),
            (None, Some(token)) => Self::by_token(catalog, token, &from),
            (None, None) => {
                Ok(Self { user: Some(catalog.user_or_own()), header: None, secret: None })
            }
        }
    }

    fn by_password(catalog: &Catalog, password: String) -> Result<Self, String> {
        let user = catalog.user_or_own();
        if user.contains(':') {
            return Err(format!("{user}: who has a password is no name with a colon"));
        }
        let header = format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}")));
        Ok(Self { user: Some(user), header: Some(header), secret: Some(password) })
    }

    fn by_token(catalog: &Catalog, token: String, from: &str) -> Result<Self, String> {
        if !token.chars().all(|c| c.is_ascii_graphic()) {
            return Err(format!("what {from} has is no token: it is one word of ASCII"));
        }
        let header = Some(format!("Bearer {token}"));
        Ok(Self { user: catalog.user.clone(), header, secret: Some(token) })
    }

    /// A server's text without the secret.
    pub(super) fn without_secrets(&self, text: &str) -> String {
        let coded = self.header.as_deref().and_then(|header| header.split(' ').next_back());
        let known = [coded, self.secret.as_deref()];
        known.into_iter().flatten().fold(text.to_owned(), |text, secret| text.replace(secret, "…"))
    }
}

/// The first line of a file that only its owner can read.
fn read(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let failed = |why: &dyn std::fmt::Display| format!("cannot read {shown}: {why}");
    let file = File::open(path).map_err(|error| failed(&error))?;
    let about = file.metadata().map_err(|error| failed(&error))?;
    if !about.is_file() {
        return Err(failed(&"it is no file"));
    }
    if about.mode() & 0o077 != 0 {
        return Err(format!("{shown} is open to other users of this machine: chmod 600 {shown}"));
    }
    let mut text = String::new();
    let read = file.take(MAX_BYTES + 1).read_to_string(&mut text);
    let read = read.map_err(|error| failed(&error))?;
    let line = text.lines().next().unwrap_or_default();
    if line.is_empty() || read as u64 > MAX_BYTES {
        return Err(format!("{shown} has no password or token in its first line"));
    }
    Ok(line.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn credentials_for(url: &str, variables: &[(&str, &str)]) -> Result<Credentials, String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, text)| (*text).to_owned())
        };
        Credentials::for_catalog(&Catalog::parse(url).unwrap(), variable)
    }

    #[test]
    fn a_password_and_a_token_become_a_header_that_is_not_shown() {
        let found = credentials_for("https://c/?user=ann", &[(PASSWORD, "s3:cret")]).unwrap();
        assert_eq!(found.header.as_deref(), Some("Basic YW5uOnMzOmNyZXQ="));
        assert_eq!(found.user.as_deref(), Some("ann"));
        assert!(!format!("{found:?}").contains("cret"));
        assert_eq!(found.without_secrets("a s3:cret b YW5uOnMzOmNyZXQ= c"), "a … b … c");
        let found = credentials_for("https://c/", &[(TOKEN, "t0ken"), (PASSWORD, "")]).unwrap();
        assert_eq!((found.header.as_deref(), found.user), (Some("Bearer t0ken"), None));
        let found = credentials_for("http://c/?user=ann", &[]).unwrap();
        assert_eq!((found.header, found.user.as_deref()), (None, Some("ann")));
    }

    #[test]
    fn nothing_goes_where_others_can_read_it() {
        for (url, variables, why) in [
            ("http://c/", &[(PASSWORD, "x")][..], "would go to c as plain text"),
            ("http://127.1.2.3.example/", &[(TOKEN, "x")], "as plain text"),
            ("http://10.0.0.1/", &[(TOKEN, "x")], "as plain text"),
            ("https://c/", &[(TOKEN, "x"), (PASSWORD, "y")], "unset one"),
            ("https://c/", &[(TOKEN, "x\r\nY: z")], "is no token"),
            ("https://c/?user=a:b", &[(PASSWORD, "x")], "no name with a colon"),
        ] {
            let error = credentials_for(url, variables).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        for url in ["http://127.0.0.1:8080", "http://localhost", "http://[::1]"] {
            assert!(credentials_for(url, &[(PASSWORD, "x")]).is_ok(), "{url}");
        }
    }

    #[test]
    fn a_file_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        let url = format!("https://c/?user=ann&password-file={}", path.display());
        assert!(credentials_for(&url, &[]).unwrap_err().contains("cannot read"));
        for (text, mode, why) in [
            ("secret\n", 0o640, "chmod 600"),
            ("secret\n", 0o604, "chmod 600"),
            ("\nsecret", 0o600, "no password or token in its first line"),
            (&*"x".repeat(20_000), 0o600, "no password or token"),
        ] {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let error = credentials_for(&url, &[]).unwrap_err();
            assert!(error.contains(why) && !error.contains("secret"), "{error}");
        }
        fs::write(&path, "secret\r\nmore\n").unwrap();
        // A named file precedes a variable.
        let found = credentials_for(&url, &[(TOKEN, "x")]).unwrap();
        assert_eq!(found.header.as_deref(), Some("Basic YW5uOnNlY3JldA=="));
    }
}
