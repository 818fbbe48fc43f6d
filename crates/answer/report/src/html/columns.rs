//! Columns of numbers in a page: LEB128, gzip, base64.

use std::io::{self, Write};

use base64::engine::general_purpose::{GeneralPurpose, STANDARD};
use base64::write::EncoderWriter;

use raw_bytes::seven_bits;

use super::gzip::GzipPieces;

/// An element under construction: other threads compress its content meanwhile.
pub(super) struct Columns<'o> {
    packed: GzipPieces<EncoderWriter<'static, GeneralPurpose, &'o mut dyn Write>>,
    /// Bytes to compress.
    bytes: Vec<u8>,
}

/// Bytes per compressed piece. Pieces are independent: larger ones compress better, smaller ones need
/// less memory while in progress.
const PIECE_BYTES: usize = 256 << 10;

impl<'o> Columns<'o> {
    /// Begins the element with this id.
    pub(super) fn begin(id: &str, out: &'o mut dyn Write) -> io::Result<Self> {
        write!(out, "<script type=\"application/gzip;base64\" id=\"{id}\">")?;
        let packed = GzipPieces::begin(EncoderWriter::new(out, &STANDARD))?;
        Ok(Self { packed, bytes: Vec::new() })
    }

    /// Adds a number of one byte.
    #[inline]
    pub(super) fn byte(&mut self, value: u8) -> io::Result<()> {
        self.bytes.push(value);
        self.pack_if_full()
    }

    /// Adds a number of any size: seven bits per byte, the lowest first; the eighth bit says that more
    /// follow.
    #[inline]
    pub(super) fn number(&mut self, value: u64) -> io::Result<()> {
        seven_bits::put(&mut self.bytes, value);
        self.pack_if_full()
    }

    /// Adds numbers that are bytes already.
    pub(super) fn bytes(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let fits = bytes.len().min(PIECE_BYTES - self.bytes.len());
            let (now, rest) = bytes.split_at(fits);
            self.bytes.extend_from_slice(now);
            self.pack_if_full()?;
            bytes = rest;
        }
        Ok(())
    }

    /// Ends the element.
    pub(super) fn end(mut self) -> io::Result<()> {
        self.packed.put(self.bytes)?;
        let out = self.packed.end()?.finish()?;
        writeln!(out, "</script>")
    }

    #[inline]
    fn pack_if_full(&mut self) -> io::Result<()> {
        if self.bytes.len() < PIECE_BYTES {
            return Ok(());
        }
        let next = Vec::with_capacity(PIECE_BYTES + seven_bits::NUMBER_BYTES);
        self.packed.put(std::mem::replace(&mut self.bytes, next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn columns_come_back() {
        let mut out = Vec::new();
        let mut columns = Columns::begin("x", &mut out).unwrap();
        for value in [0, 127, 128, 300, u64::MAX] {
            columns.number(value).unwrap();
        }
        columns.byte(255).unwrap();
        columns.end().unwrap();
        let text = String::from_utf8(out).unwrap();
        let inner = text.split_once('>').unwrap().1.split_once('<').unwrap().0;
        let mut bytes = Vec::new();
        let packed = base64::Engine::decode(&STANDARD, inner).unwrap();
        flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.get(..5), Some([0, 127, 0x80, 1, 0xac].as_slice()));
        assert_eq!(bytes.last(), Some(&255));
        assert_eq!(bytes.len(), 1 + 1 + 2 + 2 + 10 + 1);
    }
}
