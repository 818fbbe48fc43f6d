//! Checks whether any record of a recording can be read; otherwise gives the reason in a sentence.

use std::fmt;

use crate::stream::BlockReader;
use crate::{Damage, Recording};

/// A truncated file, according to its own section table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutFile {
    /// Its actual size in bytes.
    pub has_bytes: u64,
    /// Its original size in bytes, at least.
    pub least_bytes: u64,
}

impl CutFile {
    /// The truncation that the damages of a file of this size prove; `None` if they prove none.
    pub(crate) fn from_damages<'d>(
        damages: impl IntoIterator<Item = &'d raw_bytes::Damage>,
        has_bytes: usize,
    ) -> Option<Self> {
        let has_bytes = has_bytes as u64;
        let least_bytes = raw_bytes::claimed_len(damages, has_bytes)?;
        Some(Self { has_bytes, least_bytes })
    }
}

impl fmt::Display for CutFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (has, least) = (grouped(self.has_bytes), grouped(self.least_bytes));
        write!(f, "cut short: {has} of at least {least} bytes; copy it again")
    }
}

/// A number with thousands separators.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut groups: Vec<&str> = Vec::new();
    let mut rest = digits.as_str();
    while let Some((head, group)) =
        rest.len().checked_sub(3).and_then(|at| rest.split_at_checked(at))
    {
        groups.push(group);
        rest = head;
    }
    groups.push(rest);
    groups.retain(|group| !group.is_empty());
    groups.reverse();
    groups.join(",")
}

/// Why no record of a recording can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NothingReadable {
    cut: Option<CutFile>,
    detail: Option<Damage>,
}

impl fmt::Display for NothingReadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let detail = self.detail.as_ref().map(|damage| format!("; {damage}")).unwrap_or_default();
        match self.cut {
            Some(cut) => write!(f, "{cut} (nothing in it can be read{detail})"),
            None => write!(
                f,
                "damaged; copy it again from where it was recorded (nothing in it can be read{detail})"
            ),
        }
    }
}

impl Recording {
    /// Why no record can be read. `None` if a record can be read, or if nothing was recorded and
    /// nothing is damaged. Reads up to the first record.
    #[must_use]
    pub fn nothing_readable(&self) -> Option<NothingReadable> {
        if !self.info.samples.is_empty() {
            return None;
        }
        let in_pages = self.first_record().err()?;
        let cut = self.info.cut;
        // The first damage is the truncation itself.
        let others = self.damage.iter().skip(usize::from(cut.is_some()));
        let detail = others.cloned().chain(in_pages).next();
        (cut.is_some() || detail.is_some()).then_some(NothingReadable { cut, detail })
    }

    /// Searches for a record.
    ///
    /// # Errors
    /// If there is none: the first unreadable place, if any.
    fn first_record(&self) -> Result<(), Option<Damage>> {
        let (mut reader, mut bad) = (BlockReader::default(), None);
        for stream in &self.streams {
            for index in 0..stream.block_count() {
                let block = match reader.read(&self.files, stream, index) {
                    Ok(block) => block,
                    Err(damage) => {
                        bad.get_or_insert(damage);
                        continue;
                    }
                };
                for (offset, packet) in block.packets() {
                    let mut records = 0_u64;
                    let read = packet.map_err(|bad| bad.to_string()).and_then(|packet| {
                        packet.for_each(|_| records += 1).map_err(|bad| bad.to_string())
                    });
                    if records > 0 {
                        return Ok(());
                    }
                    if let Err(what) = read {
                        bad.get_or_insert(Damage::on_cpu(stream.cpu(), offset, what));
                    }
                }
            }
        }
        Err(bad)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_grouped() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (909_441, "909,441")] {
            assert_eq!(grouped(number), text);
        }
        let cut = CutFile { has_bytes: 200_000, least_bytes: 1_909_441 };
        assert_eq!(
            cut.to_string(),
            "cut short: 200,000 of at least 1,909,441 bytes; copy it again"
        );
    }
}
