//! Builds synthetic recordings byte by byte and decodes them naively.
