//! Buffer space for an unpacked chunk, based on the size of its input and not on the size that it declares.

/// First guess at how much a compressed byte grows; real kallsyms grow 4 times, trace pages 10.
const FIRST_RATIO: usize = 32;
/// Output memory taken at first, however little the input.
const MIN_OUTPUT: usize = 256 << 10;

/// Makes `out` exactly `room` bytes long; memory is taken for no more than that.
pub(crate) fn give_room(out: &mut Vec<u8>, room: usize) {
    out.reserve_exact(room.saturating_sub(out.len()));
    out.resize(room, 0);
}

pub(crate) fn first_room(input: usize, declared: usize) -> usize {
    input.saturating_mul(FIRST_RATIO).max(MIN_OUTPUT).min(declared)
}
