//! One file per question asked of a timeline.
