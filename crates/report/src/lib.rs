//! Results as tables, JSON and CSV.
