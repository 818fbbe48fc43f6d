//! Byte order, size of `long`, bounds-checked reading of recorded bytes, and damage.
//!
//! The recorded machine can have another byte order and word size than the machine that reads the
//! recording. Every reader of the workspace uses this crate, so that no offset or length from a
//! file reaches a slice unchecked.

#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod counted;
mod cursor;
mod damage;
mod order;
pub mod seven_bits;
pub mod slice;

pub use counted::{bytes, counted};
pub use cursor::{Cursor, Truncated};
pub use damage::{Damage, Damages, claimed_len};
pub use order::{Abi, ByteOrder, LongSize};
