//! Exit codes besides success (0) and failure (1). Scripts rely on them.

/// Wrong usage, or files that can't belong together.
pub const MISUSE: u8 = 2;

/// A condition of `--fail-if` holds.
pub const CONDITION_HOLDS: u8 = 3;
