//! Options of verbs, and their help.

pub(crate) use command::args::OutputArgs;

pub(crate) mod ab;
pub(crate) mod bench;
pub(crate) mod lab;
pub(crate) mod lab_corpus;
pub(crate) mod lab_workload;
pub(crate) mod sensitivity;
