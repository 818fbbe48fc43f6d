//! How much of a campaign runs: a sample with the other tests, all of it when that is asked for.

/// `all` for `make test-hostile`, else `sample`.
#[allow(dead_code, reason = "campaigns of this folder use it")]
pub(crate) fn extent<T>(sample: T, all: T) -> T {
    if std::env::var_os("HYPERSCOPE_HOSTILE_ALL").is_some() { all } else { sample }
}
