//! `header_page`: the page header of the recorded ring buffer.

use raw_bytes::LongSize;

use crate::eventfmt::error::FormatError;
use crate::eventfmt::field::Field;

/// The header of every page of the ring buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderPage {
    /// Size of the time stamp at the start of the page.
    pub timestamp_size: u32,
    /// Offset of the commit word, which has the size of the page's data.
    pub commit_offset: u32,
    /// Size of the commit word: a `long` of the recorded kernel, independent of the recording
    /// program's `long`.
    pub long: LongSize,
    /// Offset of the first record.
    pub data_offset: u32,
    /// Bytes for records in a page of default size.
    pub data_size: u32,
}

impl HeaderPage {
    /// Parses the `header_page` text.
    ///
    /// `overwrite` is ignored: only some kernels have it.
    ///
    /// # Errors
    /// If the time stamp, commit or data is not described.
    pub fn parse(text: &[u8]) -> Result<Self, FormatError> {
        let text = String::from_utf8_lossy(text);
        let (mut timestamp, mut commit, mut data) = (None, None, None);
        for line in text.lines().map(str::trim).filter(|line| line.starts_with("field:")) {
            let field = Field::parse(line)?;
            match &*field.name {
                "timestamp" => timestamp = Some(field),
                "commit" => commit = Some(field),
                "data" => data = Some(field),
                _ => {}
            }
        }
        let timestamp = timestamp.ok_or(FormatError::Missing("timestamp"))?;
        let commit = commit.ok_or(FormatError::Missing("commit"))?;
        let data = data.ok_or(FormatError::Missing("data"))?;
        let long = LongSize::from_bytes(u64::from(commit.size))
            .ok_or(FormatError::Number { key: "commit", text: commit.size.to_string() })?;
        Ok(Self {
            timestamp_size: timestamp.size,
            commit_offset: commit.offset,
            long,
            data_offset: data.offset,
            data_size: data.size,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commit_size_is_the_long_size() {
        let text = b"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
            \tfield: local_t commit;\toffset:8;\tsize:4;\tsigned:1;\n\
            \tfield: char data;\toffset:12;\tsize:4084;\tsigned:1;\n";
        let page = HeaderPage::parse(text).unwrap();
        assert_eq!(page.long, LongSize::Four);
        assert_eq!((page.data_offset, page.data_size), (12, 4084));
        assert_eq!((page.timestamp_size, page.commit_offset), (8, 8));
    }

    #[test]
    fn a_page_without_commit_is_an_error() {
        let text = b"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n";
        assert_eq!(HeaderPage::parse(text), Err(FormatError::Missing("commit")));
    }
}
