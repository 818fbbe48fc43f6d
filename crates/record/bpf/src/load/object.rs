//! Loads an object file, and attaches its programs.

use aya::maps::{Map, MapError};
use aya::programs::raw_trace_point::RawTracePointLink;
use aya::programs::{ProgramError, RawTracePoint};
use aya::{Ebpf, EbpfLoader};

use crate::load::error::{LoadError, Result};

/// Creates an object's maps, and prepares its programs for loading.
///
/// # Errors
/// When the kernel lacks support, or the user lacks permission.
pub fn load_object(loader: &mut EbpfLoader<'_>, object: &[u8]) -> Result<Ebpf> {
    loader.load(object).map_err(LoadError::of_load)
}

/// Finds a program by name.
///
/// # Errors
/// When the object has no such program on a raw tracepoint.
pub fn program<'o>(object: &'o mut Ebpf, name: &'static str) -> Result<&'o mut RawTracePoint> {
    let program = object.program_mut(name).ok_or(LoadError::Missing(name))?;
    program.try_into().map_err(|error| LoadError::of_program(name, error))
}

/// Loads a program, which the kernel verifies.
///
/// # Errors
/// When the kernel refuses it.
pub fn load_program(object: &mut Ebpf, name: &'static str) -> Result<()> {
    program(object, name)?.load().map_err(|error| LoadError::of_program(name, error))
}

/// Attaches a program to a tracepoint.
///
/// # Errors
/// When there is no such tracepoint, or its arguments differ from those the program reads.
pub fn attach(object: &mut Ebpf, name: &'static str, tracepoint: &'static str) -> Result<()> {
    let attached = program(object, name)?.attach(tracepoint);
    attached.map(|_| ()).map_err(|error| LoadError::of_attaching(tracepoint, error))
}

/// Like [`attach`], until the returned link is dropped.
///
/// # Errors
/// As [`attach`].
pub fn attach_for(
    object: &mut Ebpf,
    name: &'static str,
    tracepoint: &'static str,
) -> Result<RawTracePointLink> {
    let program = program(object, name)?;
    let link = program.attach(tracepoint).and_then(|link| program.take_link(link));
    link.map_err(|error| LoadError::of_attaching(tracepoint, error))
}

/// Like [`attach`], if the kernel has the tracepoint with these arguments; false if not.
///
/// # Errors
/// Those of [`attach`], except for a missing tracepoint and other arguments.
pub fn attach_optional(
    object: &mut Ebpf,
    name: &'static str,
    tracepoint: &'static str,
) -> Result<bool> {
    match attach(object, name, tracepoint) {
        Ok(()) => Ok(true),
        Err(LoadError::NoTracepoint(_)) => Ok(false),
        Err(LoadError::Refused { source, .. }) if has_other_arguments(&source) => Ok(false),
        Err(error) => Err(error),
    }
}

/// EINVAL: the program reads an argument that the tracepoint doesn't have.
fn has_other_arguments(error: &ProgramError) -> bool {
    let invalid = rustix::io::Errno::INVAL.raw_os_error();
    matches!(error, ProgramError::SyscallError(call) if call.io_error.raw_os_error() == Some(invalid))
}

/// Takes a map out of the object by name.
///
/// # Errors
/// When there is none, or it has another type.
pub fn take_map<M>(object: &mut Ebpf, name: &'static str) -> Result<M>
where
    M: TryFrom<Map, Error = MapError>,
{
    Ok(object.take_map(name).ok_or(LoadError::Missing(name))?.try_into()?)
}
