//! The trace.dat container, versions 6 and 7.
