//! Zstandard, which is built from C sources: programs that do not need it can disable the feature
//! `zstd`, which is on by default.

#[cfg(feature = "zstd")]
mod built {
    use crate::output_room::{first_room, give_room};
    use crate::zstd_bound::most_unpacked;
    use std::io;

    /// Compression level; trace-cmd also uses zstd's default.
    const LEVEL: i32 = zstd::DEFAULT_COMPRESSION_LEVEL;

    /// Decompresses pieces, and keeps the library's memory between them.
    pub(crate) struct Zstandard(Option<zstd::bulk::Decompressor<'static>>);

    impl Zstandard {
        pub(crate) fn new() -> Self {
            Self(None)
        }

        /// Decompresses to the beginning of `out`, at most `declared` bytes; returns the number of
        /// bytes.
        pub(crate) fn unpack(
            &mut self,
            input: &[u8],
            declared: usize,
            out: &mut Vec<u8>,
        ) -> Result<usize, String> {
            let context = match &mut self.0 {
                Some(context) => context,
                none => none.insert(zstd::bulk::Decompressor::new().map_err(|e| e.to_string())?),
            };
            // The crate does not expose zstd's error codes: more space distinguishes "too small"
            // from "corrupt". The space must be bounded independently of a wrong declared size.
            let max = usize::try_from(most_unpacked(input)).unwrap_or(usize::MAX).min(declared);
            let mut room = first_room(input.len(), max);
            loop {
                give_room(out, room);
                match context.decompress_to_buffer(input, out.as_mut_slice()) {
                    Ok(size) => return Ok(size),
                    Err(_) if room < max => room = room.saturating_mul(2).min(max),
                    Err(error) => return Err(format!("zstd: {error}")),
                }
            }
        }
    }

    /// Compresses a piece.
    pub(crate) fn pack(data: &[u8]) -> io::Result<Vec<u8>> {
        zstd::bulk::compress(data, LEVEL)
    }
}

#[cfg(not(feature = "zstd"))]
mod built {
    use std::io;

    const WITHOUT: &str = "this program was built without Zstandard";

    pub(crate) struct Zstandard;

    impl Zstandard {
        pub(crate) fn new() -> Self {
            Self
        }

        #[expect(clippy::unused_self, reason = "as the one that unpacks")]
        pub(crate) fn unpack(
            &mut self,
            _input: &[u8],
            _declared: usize,
            _out: &mut Vec<u8>,
        ) -> Result<usize, String> {
            Err(WITHOUT.into())
        }
    }

    pub(crate) fn pack(_data: &[u8]) -> io::Result<Vec<u8>> {
        Err(io::Error::new(io::ErrorKind::Unsupported, WITHOUT))
    }
}

pub(crate) use built::{Zstandard, pack};
