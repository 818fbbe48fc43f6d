//! A gzip stream whose pieces are compressed in parallel.
//!
//! Each piece is raw deflate that ends on a byte boundary (a sync flush, RFC 1951 3.2.4), so their concatenation
//! is one stream (RFC 1952) that any reader unpacks.
//!
//! Must not be used on a thread of rayon's pool: it waits for pieces that those threads compress.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, sync_channel};

use crc32fast::Hasher;
use flate2::{Compress, CompressError, Compression, FlushCompress};

/// Magic, deflate, no flags, no time, no level, unknown system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// An empty last block of deflate, with fixed codes.
const LAST_BLOCK: [u8; 2] = [3, 0];

/// Compression level: a higher one takes half as long again, and makes pages a twentieth smaller.
const LEVEL: u32 = 2;

/// Max pieces in progress per thread.
const PIECES_PER_THREAD: usize = 2;

/// A gzip stream under construction.
pub(super) struct GzipPieces<W> {
    out: W,
    /// In the order of the stream.
    under_way: VecDeque<Receiver<Result<Piece, CompressError>>>,
    /// Checksum of the uncompressed bytes written so far.
    checksum: Hasher,
    unpacked_bytes: u64,
}

struct Piece {
    packed: Vec<u8>,
    checksum: Hasher,
    unpacked_bytes: u64,
}

impl<W: Write> GzipPieces<W> {
    /// Begins a stream.
    pub(super) fn begin(mut out: W) -> io::Result<Self> {
        out.write_all(&HEADER)?;
        let checksum = Hasher::new();
        Ok(Self { out, under_way: VecDeque::new(), checksum, unpacked_bytes: 0 })
    }

    /// Adds bytes; waits for earlier ones if too many are in progress.
    pub(super) fn put(&mut self, bytes: Vec<u8>) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        while self.under_way.len() >= PIECES_PER_THREAD * rayon::current_num_threads() {
            self.write_first()?;
        }
        let (done, piece) = sync_channel(1);
        rayon::spawn(move || {
            // After a write error there is no receiver.
            let _ = done.send(pack(&bytes));
        });
        self.under_way.push_back(piece);
        Ok(())
    }

    /// Ends the stream; returns the destination.
    pub(super) fn end(mut self) -> io::Result<W> {
        while !self.under_way.is_empty() {
            self.write_first()?;
        }
        self.out.write_all(&LAST_BLOCK)?;
        self.out.write_all(&self.checksum.finalize().to_le_bytes())?;
        // RFC 1952: the length modulo 2^32.
        self.out.write_all(&(self.unpacked_bytes as u32).to_le_bytes())?;
        Ok(self.out)
    }

    fn write_first(&mut self) -> io::Result<()> {
        let Some(piece) = self.under_way.pop_front() else { return Ok(()) };
        let piece = piece.recv().map_err(io::Error::other)?.map_err(io::Error::other)?;
        self.out.write_all(&piece.packed)?;
        self.checksum.combine(&piece.checksum);
        self.unpacked_bytes = self.unpacked_bytes.wrapping_add(piece.unpacked_bytes);
        Ok(())
    }
}

fn pack(bytes: &[u8]) -> Result<Piece, CompressError> {
    let mut packer = Compress::new(Compression::new(LEVEL), false);
    let mut packed = Vec::with_capacity(bytes.len() / 2 + 64);
    // Unused capacity means that the compressor holds nothing back.
    while packed.len() == packed.capacity() || packer.total_in() < bytes.len() as u64 {
        packed.reserve(bytes.len() / 4 + 64);
        let rest = bytes.get(packer.total_in() as usize..).unwrap_or_default();
        packer.compress_vec(rest, &mut packed, FlushCompress::Sync)?;
    }
    let mut checksum = Hasher::new();
    checksum.update(bytes);
    Ok(Piece { packed, checksum, unpacked_bytes: bytes.len() as u64 })
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    /// A number that depends on all bits of another one.
    fn mixed(number: u64) -> u64 {
        (number ^ (number >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }

    #[test]
    fn pieces_of_any_kind_are_one_stream() {
        let noise = |len| (0..len).map(|at| (mixed(at) >> 40) as u8).collect::<Vec<_>>();
        let pieces = [vec![], vec![7; 1], noise(1000), vec![0; 300_000], noise(400_000), vec![1]];
        for count in 0..=pieces.len() {
            let mut stream = GzipPieces::begin(Vec::new()).unwrap();
            for piece in &pieces[..count] {
                stream.put(piece.clone()).unwrap();
            }
            let packed = stream.end().unwrap();
            let mut unpacked = Vec::new();
            let mut reader = flate2::read::GzDecoder::new(packed.as_slice());
            reader.read_to_end(&mut unpacked).unwrap();
            assert!(unpacked == pieces[..count].concat(), "{count}");
            assert_eq!(reader.into_inner(), &[] as &[u8], "{count}");
        }
    }

    #[test]
    fn a_place_that_takes_no_more_ends_it() {
        let mut room = [0u8; 2000];
        let mut stream = GzipPieces::begin(room.as_mut_slice()).unwrap();
        let all: io::Result<Vec<()>> = (0..100)
            .map(|at| stream.put((0..5000).map(|i| mixed(at * i) as u8).collect()))
            .collect();
        assert_eq!(all.unwrap_err().kind(), io::ErrorKind::WriteZero);
    }
}
