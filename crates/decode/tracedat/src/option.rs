//! Encodes options with numbers, for writing files.

use crate::peers::{Guest, Tsc2Nsec};
use crate::time_shift::TimeShift;
use crate::writer::Encoder;
use raw_bytes::ByteOrder;

/// TRACEID: the identity of a recording.
#[must_use]
pub fn trace_id(order: ByteOrder, value: u64) -> Vec<u8> {
    Encoder::new(order).u64(value).to_vec()
}

/// CPUCOUNT: the number of CPUs of the recorded machine.
#[must_use]
pub fn cpu_count(order: ByteOrder, value: u32) -> Vec<u8> {
    Encoder::new(order).u32(value).to_vec()
}

/// TSC2NSEC: conversion from TSC ticks to nanoseconds.
#[must_use]
pub fn tsc2nsec(order: ByteOrder, value: &Tsc2Nsec) -> Vec<u8> {
    let encoder = Encoder::new(order);
    let factors = [encoder.u32(value.mult), encoder.u32(value.shift)];
    [factors.as_flattened(), &encoder.u64(value.offset)].concat()
}

/// GUEST: a guest recorded at the same time.
#[must_use]
pub fn guest(order: ByteOrder, value: &Guest) -> Vec<u8> {
    let encoder = Encoder::new(order);
    let mut data = value.name.as_bytes().to_vec();
    data.push(0);
    data.extend(encoder.u64(value.trace_id));
    data.extend(encoder.u32(count(value.vcpus.len())));
    for vcpu in &value.vcpus {
        data.extend(encoder.u32(vcpu.cpu));
        data.extend(encoder.u32(vcpu.pid));
    }
    data
}

/// TIME_SHIFT: conversion of times to a peer's clock; every CPU has its own number of samples.
#[must_use]
pub fn time_shift(order: ByteOrder, value: &TimeShift) -> Vec<u8> {
    let encoder = Encoder::new(order);
    let mut data = encoder.u64(value.peer).to_vec();
    data.extend(encoder.u32(value.flags));
    data.extend(encoder.u32(count(value.cpus.len())));
    for samples in &value.cpus {
        data.extend(encoder.u32(count(samples.len())));
        data.extend(samples.iter().flat_map(|sample| encoder.u64(sample.time)));
        data.extend(samples.iter().flat_map(|sample| encoder.u64(sample.offset.cast_unsigned())));
        data.extend(samples.iter().flat_map(|sample| encoder.u64(sample.scaling)));
    }
    let samples = value.cpus.iter().flatten();
    data.extend(samples.flat_map(|sample| encoder.u64(sample.fraction)));
    data
}

/// A count as stored in the file; more than 2^32 items do not fit into memory.
fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
