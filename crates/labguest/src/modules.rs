//! Loads kernel modules from the initramfs.

use std::fs::File;
use std::io;

use labwire::GuestConfig;
use rustix::io::Errno;
use rustix::system::finit_module;

/// Loads all, in their order; a module that doesn't load is told of on the console.
pub(crate) fn load(config: &GuestConfig) {
    for path in &config.modules {
        if let Err(error) = load_one(path) {
            println!("hyperscope-lab: {path} doesn't load: {error}");
        }
    }
    // One of these is for another processor, and fails.
    let loads = |path: &String| load_one(path).is_ok();
    if !config.one_of.is_empty() && !config.one_of.iter().any(loads) {
        println!("hyperscope-lab: none of {} loads: no KVM here", config.one_of.join(", "));
    }
}

fn load_one(path: &str) -> io::Result<()> {
    let file = File::open(path)?;
    match finit_module(&file, c"", 0) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
