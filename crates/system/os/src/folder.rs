//! A folder that is used through its descriptor: symbolic links are not followed, and existing
//! files are not replaced.
//!
//! A program that runs as root writes to places that other users may have prepared: a symbolic link in place of
//! a file, another user's folder, a file that another user can open. A [`Folder`] is opened once, without
//! following a link, and checked by `fstat`: it belongs to this user, and no other user can write to it. All
//! its files are created relative to its descriptor, so renaming it, or a folder above it, changes nothing. An
//! [`Observer`] sees each operation in advance and can make it fail; only tests use that.

mod file;
mod modes;
mod observer;
mod open;
mod remove;
mod replace;
mod sync;

pub use file::OutFile;
pub use modes::Modes;
pub use observer::{Observer, Operation};
pub use open::{Folder, Made};
pub use sync::Syncer;
