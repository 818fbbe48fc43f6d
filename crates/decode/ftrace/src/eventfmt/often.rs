//! Texts that are appended again and again, by copies whose size is known in advance.

/// Bytes of one copy.
const STEP: usize = 16;
/// Bytes that a text may have to be copied so.
const ROOM: usize = 3 * STEP;

/// A text that many lines have, appended without a function being called for the copy: a short one
/// is copied with room after it, and what is too much is cut off again.
#[derive(Clone, Debug)]
pub struct OftenText {
    short: [u8; ROOM],
    len: usize,
    /// The text, where there is no room for it above.
    long: Box<[u8]>,
}

impl OftenText {
    /// The text, ready to be appended.
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
