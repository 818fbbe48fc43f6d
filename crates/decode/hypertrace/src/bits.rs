//! Reads numbers of any bit width from words, lowest bit first.

/// Reads words from their lowest bit on.
#[derive(Clone, Debug)]
pub(crate) struct Bits<'w> {
    words: &'w [u64],
    at: u32,
    end: u32,
}

impl<'w> Bits<'w> {
    pub(crate) fn new(words: &'w [u64]) -> Self {
        let end = u32::try_from(words.len()).unwrap_or(0).saturating_mul(64);
        Self { words, at: 0, end }
    }

    /// Limits the reader to `bits` bits.
    pub(crate) fn up_to(self, bits: u32) -> Self {
        Self { end: self.end.min(bits), ..self }
    }

    /// Whether all bits have been read.
    pub(crate) fn is_over(&self) -> bool {
        self.at == self.end
    }

    /// The next `count` bits, at most 64; `None` at the end.
    pub(crate) fn take(&mut self, count: u32) -> Option<u64> {
        let (word, shift) = (usize::try_from(self.at / 64).ok()?, self.at % 64);
        let end = self.at.checked_add(count)?;
        if end > self.end {
            return None;
        }
        self.at = end;
        if count == 0 {
            return Some(0);
        }
        let low = self.words.get(word)?.checked_shr(shift)?;
        // The remaining bits are in the next word, starting at its lowest bit.
        let high = match self.words.get(word.checked_add(1)?) {
            Some(next) if shift > 0 => next.checked_shl(64_u32.checked_sub(shift)?)?,
            _ => 0,
        };
        let mask = u64::MAX.checked_shr(64_u32.checked_sub(count)?)?;
        Some((low | high) & mask)
    }

    /// The next bit.
    pub(crate) fn flag(&mut self) -> Option<bool> {
        Some(self.take(1)? == 1)
    }

    /// The next `count` bits, at most 32.
    pub(crate) fn take_u32(&mut self, count: u32) -> Option<u32> {
        u32::try_from(self.take(count)?).ok()
    }

    /// The next `count` bits, at most 16.
    pub(crate) fn take_u16(&mut self, count: u32) -> Option<u16> {
        u16::try_from(self.take(count)?).ok()
    }

    /// The next `count` bits, at most 8.
    pub(crate) fn take_u8(&mut self, count: u32) -> Option<u8> {
        u8::try_from(self.take(count)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_over_the_end_of_a_word() {
        let words = [0xf000_0000_0000_0001, 0x5];
        let mut bits = Bits::new(&words);
        assert_eq!(bits.take(60), Some(1));
        assert_eq!(bits.take(6), Some(0b01_1111));
        assert_eq!(bits.take(62), Some(1));
        assert_eq!(bits.take(0), Some(0));
        assert_eq!(bits.take(1), None);
    }

    #[test]
    fn a_whole_word_is_a_number() {
        let mut bits = Bits::new(&[u64::MAX, 7]);
        assert_eq!(bits.take(64), Some(u64::MAX));
        assert_eq!(bits.take(65), None);
        assert_eq!(bits.take(64), Some(7));
    }
}
