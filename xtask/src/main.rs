//! Checks and chores of the repository: `cargo xtask help` lists them.
fn main() {}
