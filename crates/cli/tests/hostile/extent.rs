//! The extent of a campaign: a sample with the other tests, or everything on request.

/// `all` for `make test-hostile`, otherwise `sample`.
#[allow(dead_code, reason = "campaigns of this folder use it")]
pub(crate) fn extent<T>(sample: T, all: T) -> T {
    if std::env::var_os("HYPERSCOPE_HOSTILE_ALL").is_some() { all } else { sample }
}
