//! A folder that is written by its descriptor: links are not followed, existing files not replaced.
//!
//! What runs as root writes into places that others may have prepared: a symbolic link where a file
//! is to be, a folder of somebody else's, a file that another user can open. A [`Folder`] is opened
//! once, without following a link, and checked by `fstat`: this user's, and writable for nobody else.
//! All in it is made relative to its descriptor, so renaming it, or a folder above it, changes
//! nothing. An [`Observer`] sees each operation before it is done and may have it fail: tests only.

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
