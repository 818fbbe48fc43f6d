//! Which recording of a session a file is, according to its name.

use std::path::Path;

/// Prefix of a guest's files.
const GUEST: &str = "guest-";
/// Name of the host's files.
const HOST: &str = "host";
/// Extensions of recordings: a complete one, and the folder of pages that a killed recorder leaves.
const RECORDINGS: [&str; 2] = ["dat", "pages"];

/// A recording's role in its session.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SessionMember<'p> {
    Host,
    Guest(&'p str),
}

impl<'p> SessionMember<'p> {
    /// From `host.dat`, `guest-NAME.dat`, or the folders of pages with these names.
    pub(crate) fn from_path(path: &'p Path) -> Option<Self> {
        let kind = path.extension()?;
        if !RECORDINGS.iter().any(|extension| kind == *extension) {
            return None;
        }
        let is_host = || path.file_stem().is_some_and(|name| name == HOST);
        guest_named(path).map(Self::Guest).or_else(|| is_host().then_some(Self::Host))
    }
}

/// The NAME of a session's file `guest-NAME.KIND`.
#[must_use]
pub fn guest_named(path: &Path) -> Option<&str> {
    path.file_stem()?.to_str()?.strip_prefix(GUEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_of_a_session_are_known_by_their_names() {
        let member = |path| SessionMember::from_path(Path::new(path));
        assert_eq!(member("s/guest-web.1.dat"), Some(SessionMember::Guest("web.1")));
        assert_eq!(member("host.dat"), Some(SessionMember::Host));
        assert_eq!(member("s/guest-web.pages"), Some(SessionMember::Guest("web")));
        for other in ["s/guest.dat", "s/A.dat", "s/guest-web.data", "host", "s"] {
            assert_eq!(member(other), None, "{other}");
        }
        assert_eq!(guest_named(Path::new("s/guest-web.data")), Some("web"));
    }
}
