//! Ring-buffer pages to records and losses.
