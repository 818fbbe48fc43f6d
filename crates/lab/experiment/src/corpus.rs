//! A corpus of recordings with planted causes of slowness, and of healthy ones: what tools that name causes are measured on.
//!
//! A cause is a file in `causes/`: the machines it needs, how a program or a setting plants it, and which counters must move if it
//! took effect. Parameters are drawn from a seed. Events are recorded, never written. Labels are kept apart from the recordings,
//! whose names and folders tell nothing.

mod cause;
mod draw;
mod effect;
mod kind;
mod label;
mod machines;
mod plan;
mod recorder;
mod render;
mod run;
mod window;

pub use cause::CauseFile;
pub use kind::RecordingKind;
pub use label::{Corpus, Failure, Label, Planted};
pub use plan::{CorpusItem, CorpusPlan, plan};
pub use run::{first_machines, run};
