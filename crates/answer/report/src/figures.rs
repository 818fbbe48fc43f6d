//! Figures of experiments, in pages that work offline and without scripts.

mod axis;
mod bars;
mod page;
mod plot;

pub(crate) use self::axis::Axis;
pub(crate) use self::bars::{Bar, BarPart, bars};
pub(crate) use self::page::{Page, table};
pub(crate) use self::plot::{Mark, Plot};
