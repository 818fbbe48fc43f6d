//! Tests that can't run on this machine: they say so, and `make test` lists and counts them.

use std::env;
use std::fmt::Arguments;
use std::fs::OpenOptions;
use std::io::Write;
use std::thread;

/// Says that the running test can't run here, and why; takes what `format!` takes. The test returns
/// right after it.
#[macro_export]
macro_rules! skip {
    ($($why:tt)*) => { $crate::skipped(format_args!($($why)*)) };
}

/// What [`skip!`](crate::skip) does: a line on standard error, and one in the file that
/// `HYPERSCOPE_SKIPPED` names, where it is set.
pub fn skipped(why: Arguments<'_>) {
    eprintln!("skipped: {why}");
    let Some(list) = env::var_os("HYPERSCOPE_SKIPPED") else { return };
    // The harness names a test's thread after it.
    let line = format!("{}: {why}\n", thread::current().name().unwrap_or("a test"));
    // One write, so that tests of several programs don't mix their lines.
    let noted = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&list)
        .and_then(|mut list| list.write_all(line.as_bytes()));
    if let Err(error) = noted {
        panic!("cannot note a skipped test in {}: {error}", list.display());
    }
}
