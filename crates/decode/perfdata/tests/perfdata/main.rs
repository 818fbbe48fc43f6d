//! Tests of the perf.data reader: files made byte by byte, damaged ones, and real ones.

#![allow(clippy::unwrap_used)]

mod built;
mod compressed;
mod damaged;
mod fields;
mod real;
mod support;
