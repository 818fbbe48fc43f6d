//! Options of verbs, and their help.

pub(crate) use command::args::{FormatArg, MethodArgs, OutputArgs, memory, part};
pub(crate) use part::PartArgs;
pub(crate) use session_tables::args as tables;

pub(crate) mod fleet;
pub(crate) mod lake;
pub(crate) mod sql;
