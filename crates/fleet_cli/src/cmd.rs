//! One file per verb.

pub(crate) mod fleet;
pub(crate) mod lake;
pub(crate) mod sql;
