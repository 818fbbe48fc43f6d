//! Which recording of a session a file is, by its name.

use std::path::Path;

/// What a guest's files are called before its name.
const GUEST: &str = "guest-";
/// What the host's are called.
const HOST: &str = "host";
/// What recordings end in: a whole one, and the folder of pages that a recorder leaves in its place that was killed.
const RECORDINGS: [&str; 2] = ["dat", "pages"];

/// Which recording of a session one is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SessionMember<'p> {
    Host,
    Guest(&'p str),
}

impl<'p> SessionMember<'p> {
    /// `host.dat`, `guest-NAME.dat`, or the folders of pages in their places.
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
