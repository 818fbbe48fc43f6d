//! Kernel event formats to field layouts and print programs.
