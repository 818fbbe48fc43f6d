//! Zstandard, which is built from C sources: programs that neither read nor write it do without
//! (feature `zstd`, on by default).

#[cfg(feature = "zstd")]
mod built {
    use crate::output_room::{first_room, give_room};
    use crate::zstd_bound::most_unpacked;
    use std::io;

    /// Effort of the compressor; trace-cmd uses zstd's default too.
    const LEVEL: i32 = zstd::DEFAULT_COMPRESSION_LEVEL;

    /// Unpacks pieces one after the other, with the library's memory kept between them.
    pub(crate) struct Zstandard(Option<zstd::bulk::Decompressor<'static>>);

    impl Zstandard {
        pub(crate) fn new() -> Self {
            Self(None)
        }

        /// Unpacks to the beginning of `out`, at most `declared` bytes; how many.
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
            // zstd's codes are not reachable through its crate: "too small" and "corrupt" are told
            // apart by trying again with more room, which must not go on to whatever a lie declares.
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

    /// Packs a piece.
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
