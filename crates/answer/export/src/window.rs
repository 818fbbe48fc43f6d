//! The part of a recording that is exported.

/// An interval on the host's clock; the default is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// First time.
    pub from_ns: Option<u64>,
    /// End, exclusive.
    pub until_ns: Option<u64>,
}

impl Window {
    /// Whether a moment lies in it.
    #[must_use]
    pub fn has(&self, stamp_ns: u64) -> bool {
        self.from_ns.is_none_or(|from_ns| stamp_ns >= from_ns)
            && self.until_ns.is_none_or(|until_ns| stamp_ns < until_ns)
    }

    /// The part of a span that lies in it.
    #[must_use]
    pub fn cut(&self, from_ns: u64, to_ns: u64) -> Option<(u64, u64)> {
        let from_ns = self.from_ns.map_or(from_ns, |first_ns| from_ns.max(first_ns));
        let to_ns = self.until_ns.map_or(to_ns, |end_ns| to_ns.min(end_ns));
        (from_ns < to_ns).then_some((from_ns, to_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_cut_at_both_ends() {
        let window = Window { from_ns: Some(10), until_ns: Some(20) };
        assert_eq!(window.cut(0, 100), Some((10, 20)));
        assert_eq!(window.cut(12, 15), Some((12, 15)));
        assert_eq!((window.cut(0, 10), window.cut(20, 30)), (None, None));
        assert!(window.has(10) && !window.has(20) && !window.has(9));
        assert_eq!(Window::default().cut(1, 2), Some((1, 2)));
    }
}
