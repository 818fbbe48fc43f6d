//! The value of a field in a record.

use raw_bytes::ByteOrder;

use crate::eventfmt::number::NumberAt;

/// The value of a field in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'r> {
    /// An unsigned number.
    Unsigned(u64),
    /// A signed number.
    Signed(i64),
    /// A boolean.
    Bool(bool),
    /// An address in the recorded kernel.
    Pointer(u64),
    /// A string, without its NUL; not always UTF-8.
    Text(&'r [u8]),
    /// Elements of an array, or the bytes of a struct.
    Array(Elements<'r>),
}

/// The elements of an array field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elements<'r> {
    /// Size in bytes of one element.
    pub element_size: u32,
    /// Whether elements are signed.
    pub signed: bool,
    /// All elements, as recorded.
    pub bytes: &'r [u8],
}

impl<'r> Elements<'r> {
    /// The elements as numbers; empty if no number has the element size.
    pub fn numbers(self, order: ByteOrder) -> impl Iterator<Item = i64> + 'r {
        let size = u8::try_from(self.element_size).unwrap_or(0);
        let at = NumberAt { offset: 0, size, signed: self.signed };
        let chunks = self.bytes.chunks_exact(usize::from(size).max(1));
        chunks.map_while(move |chunk| at.read_signed(chunk, order))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_read_in_order() {
        let elements = Elements { element_size: 2, signed: true, bytes: &[1, 0, 0xff, 0xff, 9] };
        assert!(elements.numbers(ByteOrder::Little).eq([1, -1]));
        let odd = Elements { element_size: 3, signed: false, bytes: &[1, 2, 3] };
        assert_eq!(odd.numbers(ByteOrder::Little).count(), 0);
    }
}
