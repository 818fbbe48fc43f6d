//! The greatest of several: of equal ones the first, where `max_by_key` gives the last.

/// The first of those with the greatest number.
pub(crate) fn greatest<T>(all: impl IntoIterator<Item = (u64, T)>) -> Option<(u64, T)> {
    all.into_iter().reduce(|most, next| if next.0 > most.0 { next } else { most })
}
