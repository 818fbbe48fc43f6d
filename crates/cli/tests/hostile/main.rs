//! What hostile guests, hostile neighbours, hostile files and pulled plugs may do to `hyperscope`, from
//! outside. `make test` runs a sample; `make test-hostile`, which sets `HYPERSCOPE_HOSTILE_ALL`, all of it.

#![allow(clippy::unwrap_used)]

mod extent;
