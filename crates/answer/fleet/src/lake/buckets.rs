//! The buckets of histograms: the same for all recordings, from the function that `exits` uses.

use std::io::{self, Write};

use analyses::distribution::{bucket, upper_end};
use lake_store::tables::BUCKETS;
use lake_store::{Files, TableWriter};

use crate::lake::convert::Output;

/// Number of buckets whose values fit INT64.
fn count() -> usize {
    bucket(i64::MAX.unsigned_abs()) + 1
}

pub(crate) fn write<F: Files>(output: &mut Output<'_, F>) -> io::Result<()> {
    let mut table = output.begin(&BUCKETS)?;
    write_buckets(&mut table)?;
    output.end(&BUCKETS, table)
}

/// Writes the rows of [`BUCKETS`].
///
/// # Errors
/// When they can't be written.
pub fn write_buckets<W: Write + Send>(table: &mut TableWriter<W>) -> io::Result<()> {
    let mut lo_ns = 0;
    for number in 0..count() {
        let hi_ns = upper_end(number);
        let shown = i32::try_from(number).unwrap_or(i32::MAX);
        table.row().int(shown).count(lo_ns).count(hi_ns);
        table.end_row()?;
        lo_ns = hi_ns.saturating_add(1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bucket_ends_where_int64_does() {
        assert_eq!(upper_end(count() - 1), i64::MAX.unsigned_abs());
        assert!(upper_end(count() - 2) < i64::MAX.unsigned_abs());
    }
}
