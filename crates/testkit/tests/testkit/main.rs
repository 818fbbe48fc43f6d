//! What recordings for tests are made of.

mod formats;
mod pages;
