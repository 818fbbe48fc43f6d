//! Texts that are appended very often, with copies of constant size.

/// Bytes per copy.
const STEP: usize = 16;
/// Maximum bytes of a text with constant-size copies.
const ROOM: usize = 3 * STEP;

/// A frequent text, appended without a function call: a short text is copied with padding, and the
/// excess is truncated.
#[derive(Clone, Debug)]
pub struct OftenText {
    short: [u8; ROOM],
    len: usize,
    /// The text, if it is too long for `short`.
    long: Box<[u8]>,
}

impl OftenText {
    /// Prepares a text.
    #[must_use]
    pub fn new(text: &[u8]) -> Self {
        let mut short = [0; ROOM];
        let long = match short.get_mut(..text.len()) {
            Some(place) => {
                place.copy_from_slice(text);
                Box::default()
            }
            None => text.into(),
        };
        Self { short, len: text.len(), long }
    }

    /// Appends the text.
    #[inline]
    pub fn append(&self, out: &mut Vec<u8>) {
        if self.len <= STEP {
            self.append_of::<STEP>(out);
        } else if self.len <= ROOM {
            self.append_of::<ROOM>(out);
        } else {
            out.extend_from_slice(&self.long);
        }
    }

    #[inline]
    fn append_of<const N: usize>(&self, out: &mut Vec<u8>) {
        if let Some(bytes) = self.short.first_chunk::<N>() {
            let end = out.len().saturating_add(self.len);
            out.extend_from_slice(bytes);
            out.truncate(end);
        }
    }
}

impl Default for OftenText {
    fn default() -> Self {
        Self::new(b"")
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_any_length_are_appended_whole() {
        let all: Vec<u8> = (1..=100).collect();
        for len in 0..=all.len() {
            let mut out = b"before".to_vec();
            let text = OftenText::new(&all[..len]);
            text.append(&mut out);
            text.append(&mut out);
            assert_eq!(out, [b"before", &all[..len], &all[..len]].concat());
        }
    }
}
