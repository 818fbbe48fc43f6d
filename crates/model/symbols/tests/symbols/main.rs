//! Names of places, held against what other programs say of the same files and recordings.

mod addresses;
mod files;
mod programs;
mod recordings;
