//! Columns of numbers as a page carries them: LEB128, gzip, base64.

use std::io::{self, Write};

use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Bytes in the making.
#[derive(Debug, Default)]
pub(super) struct Columns(Vec<u8>);

impl Columns {
    /// A number of one byte.
    pub(super) fn byte(&mut self, value: u8) {
        self.0.push(value);
    }

    /// A number of any size: seven bits a byte, the lowest first, the eighth says that more follow.
    pub(super) fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// Writes them as an element of the page.
    pub(super) fn write(&self, id: &str, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "<script type=\"application/gzip;base64\" id=\"{id}\">")?;
        let text = EncoderWriter::new(&mut *out, &STANDARD);
        let mut packed = GzEncoder::new(text, Compression::default());
        packed.write_all(&self.0)?;
        packed.finish()?.finish()?;
        writeln!(out, "</script>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn columns_come_back() {
        let mut columns = Columns::default();
        for value in [0, 127, 128, 300, u64::MAX] {
            columns.number(value);
        }
        columns.byte(255);
        let mut out = Vec::new();
        columns.write("x", &mut out).unwrap();
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
