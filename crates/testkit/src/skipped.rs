//! Tests that cannot run on this machine report that they are skipped; `make test` lists and counts
//! them.

use std::env;
use std::fmt::Arguments;
use std::fs::OpenOptions;
use std::io::Write;
use std::thread;

/// Reports that the running test cannot run here, and why; takes the arguments of `format!`. The
/// test returns right after it.
#[macro_export]
macro_rules! skip {
    ($($why:tt)*) => { $crate::skipped(format_args!($($why)*)) };
}

/// Implements [`skip!`](crate::skip): writes a line to standard error, and to the file that
/// `HYPERSCOPE_SKIPPED` names, if it is set.
pub fn skipped(why: Arguments<'_>) {
    eprintln!("skipped: {why}");
    let Some(list) = env::var_os("HYPERSCOPE_SKIPPED") else { return };
    // The test harness names each thread after its test.
    let line = format!("{}: {why}\n", thread::current().name().unwrap_or("a test"));
    // A single write, so that test programs do not mix their lines.
    let noted = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&list)
        .and_then(|mut list| list.write_all(line.as_bytes()));
    if let Err(error) = noted {
        panic!("cannot note a skipped test in {}: {error}", list.display());
    }
}
