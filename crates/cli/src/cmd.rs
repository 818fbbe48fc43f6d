//! One file per verb.

pub(crate) mod events;
pub(crate) mod exits;
pub(crate) mod info;
pub(crate) mod nested;
