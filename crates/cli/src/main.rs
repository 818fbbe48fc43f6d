//! The `hyperscope` command.
fn main() {}
