//! One file per verb.

pub(crate) mod ab;
pub(crate) mod bench;
pub(crate) mod lab;
pub(crate) mod sensitivity;
