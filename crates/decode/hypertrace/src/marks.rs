//! Texts that programs in a guest add to the host's recording, in one hypercall per piece.

/// Bytes of text in one hypercall.
const PIECE_BYTES: usize = 28;
/// Maximum pieces of a text.
const MAX_PIECES: usize = 16;
/// Maximum incomplete texts; only a malicious guest has more than a few.
const MAX_OPEN: usize = 64;

/// Maximum bytes of a text; longer ones are truncated.
pub const MARK_BYTES: usize = PIECE_BYTES * MAX_PIECES;

/// A text from a program in a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Time of its first piece on the host's clock.
    pub stamp_ns: u64,
    /// The text; invalid UTF-8 is replaced.
    pub text: String,
}

/// The arguments of the hypercalls for a text. `id` distinguishes simultaneous texts.
#[must_use]
pub fn mark_words(id: u16, text: &str) -> Vec<[u64; 4]> {
    let bytes = text.as_bytes().get(..MARK_BYTES).unwrap_or(text.as_bytes());
    let pieces: Vec<&[u8]> = match bytes.len() {
        0 => vec![&[]],
        _ => bytes.chunks(PIECE_BYTES).collect(),
    };
    let count = u8::try_from(pieces.len()).unwrap_or(u8::MAX);
    let words = |(index, piece): (u8, &&[u8])| {
        let [low, high] = id.to_le_bytes();
        let head = [low, high, index, count];
        let mut bytes = head.iter().chain(piece.iter()).copied();
        std::array::from_fn(|_| {
            u64::from_le_bytes(std::array::from_fn(|_| bytes.next().unwrap_or(0)))
        })
    };
    (0..).zip(&pieces).map(words).collect()
}

/// Reassembles texts from pieces.
#[derive(Debug, Default)]
pub struct Marks {
    open: Vec<Open>,
    /// Pieces without a text, and abandoned texts.
    damaged: u64,
}

#[derive(Debug)]
struct Open {
    /// The guest, and the id of the text.
    key: (u64, u16),
    count: u8,
    next: u8,
    stamp_ns: u64,
    bytes: Vec<u8>,
}

impl Marks {
    /// Adds a hypercall's arguments; returns the text if it is complete. `guest` distinguishes
    /// guests.
    pub fn piece(&mut self, guest: u64, words: [u64; 4], stamp_ns: u64) -> Option<Mark> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let [low, high, index, count, text @ ..] = bytes.as_slice() else { return None };
        let key = (guest, u16::from_le_bytes([*low, *high]));
        if *count == 0 || usize::from(*count) > MAX_PIECES || index >= count {
            self.damaged = self.damaged.saturating_add(1);
            return None;
        }
        if *index == 0 {
            self.begin(key, *count, stamp_ns);
        }
        let fits = |open: &Open| open.key == key && open.next == *index && open.count == *count;
        let Some(at) = self.open.iter().position(fits) else {
            self.damaged = self.damaged.saturating_add(1);
            return None;
        };
        let open = self.open.get_mut(at)?;
        open.bytes.extend_from_slice(text);
        open.next = open.next.saturating_add(1);
        if open.next < open.count {
            return None;
        }
        let Open { bytes, stamp_ns, .. } = self.open.swap_remove(at);
        let end =
            bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last.saturating_add(1));
        let text = String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned();
        Some(Mark { stamp_ns, text })
    }

    fn begin(&mut self, key: (u64, u16), count: u8, stamp_ns: u64) {
        let before = self.open.len();
        self.open.retain(|open| open.key != key);
        if self.open.len() >= MAX_OPEN {
            self.open.remove(0);
        }
        let given_up = u64::try_from(before.saturating_sub(self.open.len())).unwrap_or(0);
        self.damaged = self.damaged.saturating_add(given_up);
        self.open.push(Open { key, count, next: 0, stamp_ns, bytes: Vec::new() });
    }

    /// Pieces without a text, and abandoned or incomplete texts.
    #[must_use]
    pub fn damaged(&self) -> u64 {
        self.damaged.saturating_add(u64::try_from(self.open.len()).unwrap_or(0))
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_whole_also_when_their_pieces_mix() {
        let long = "a text that needs more than one hypercall, and then some";
        let long_words = mark_words(1, long);
        let other = mark_words(2, "short");
        assert_eq!((long_words.len(), other.len()), (2, 1));
        let mut marks = Marks::default();
        assert_eq!(marks.piece(9, long_words[0], 100), None);
        let short = Mark { stamp_ns: 150, text: "short".into() };
        assert_eq!(marks.piece(9, other[0], 150), Some(short));
        // A piece with the same id from another guest belongs to another text.
        assert_eq!(marks.piece(8, long_words[1], 160), None);
        let text = long.to_owned();
        assert_eq!(marks.piece(9, long_words[1], 200), Some(Mark { stamp_ns: 100, text }));
        assert_eq!(marks.damaged(), 1);
    }

    #[test]
    fn the_longest_text_is_cut_and_the_shortest_is_empty() {
        let long = "x".repeat(1000);
        let mut marks = Marks::default();
        let mark = mark_words(3, &long).iter().find_map(|words| marks.piece(0, *words, 0));
        assert_eq!(mark.unwrap().text.len(), MARK_BYTES);
        let empty = mark_words(3, "");
        assert_eq!(marks.piece(0, empty[0], 7).unwrap().text, "");
    }

    #[test]
    fn a_guest_that_begins_texts_without_end_takes_no_memory() {
        let mut marks = Marks::default();
        for id in 0..1000_u32 {
            marks.piece(0, [u64::from(id) | 2 << 24, 0, 0, 0], 0);
        }
        assert_eq!(marks.open.len(), MAX_OPEN);
        assert_eq!(marks.damaged(), 1000);
    }
}
