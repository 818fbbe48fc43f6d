//! One file per verb.

pub(crate) mod advice;
pub(crate) mod align;
pub(crate) mod bench;
pub(crate) mod boot;
pub(crate) mod calls;
pub(crate) mod completions;
pub(crate) mod cpu;
pub(crate) mod diff;
pub(crate) mod events;
pub(crate) mod exits;
pub(crate) mod export;
pub(crate) mod hypertrace;
pub(crate) mod info;
pub(crate) mod keys;
pub(crate) mod lab;
pub(crate) mod listen;
pub(crate) mod man;
pub(crate) mod mark;
pub(crate) mod nested;
pub(crate) mod path;
pub(crate) mod profile;
pub(crate) mod publish;
pub(crate) mod record;
pub(crate) mod report;
pub(crate) mod top;
pub(crate) mod virtio;
