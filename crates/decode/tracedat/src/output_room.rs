//! Buffer space for a decompressed chunk, based on the size of its input and not on its declared
//! size.

/// First guess of the compression ratio; real kallsyms have 4, trace pages 10.
const FIRST_RATIO: usize = 32;
/// Minimum initial output size.
const MIN_OUTPUT: usize = 256 << 10;

/// Sets the length of `out` to exactly `room` bytes, without larger allocations.
pub(crate) fn give_room(out: &mut Vec<u8>, room: usize) {
    out.reserve_exact(room.saturating_sub(out.len()));
    out.resize(room, 0);
}

pub(crate) fn first_room(input: usize, declared: usize) -> usize {
    input.saturating_mul(FIRST_RATIO).max(MIN_OUTPUT).min(declared)
}
