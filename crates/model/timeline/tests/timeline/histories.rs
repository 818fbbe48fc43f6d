//! Exits of recordings made for one case each, and of random histories whose truth is known.

mod architectures;
mod buffers;
mod containers;
mod cycles;
mod history;
mod host;
mod losses;
mod nested;
mod parts;
mod random;
mod real;
mod steps_back;
mod threads;
mod trace_events;
