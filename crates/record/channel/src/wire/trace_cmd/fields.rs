//! Numbers and texts in the bytes of a message.

/// The unread rest of a message.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.0
    }

    pub(super) fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(head)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    pub(super) fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_be_bytes)
    }

    /// A NUL-terminated text.
    pub(super) fn text(&mut self) -> Option<String> {
        let end = self.0.iter().position(|&byte| byte == 0)?;
        let text = self.take(end)?;
        self.take(1)?;
        Some(String::from_utf8_lossy(text).into_owned())
    }

    /// `count` decimal numbers, each a text.
    pub(super) fn ports(&mut self, count: u32) -> Option<Vec<u32>> {
        // Each takes at least a byte: this bounds the count before memory is allocated.
        let max = usize::try_from(count).ok().filter(|&count| count <= self.0.len())?;
        (0..max).map(|_| self.text()?.trim().parse().ok()).collect()
    }
}

/// A text and its NUL; the text ends at its first NUL.
pub(super) fn put_text(text: &str, to: &mut Vec<u8>) {
    let end = text.find('\0').unwrap_or(text.len());
    to.extend_from_slice(text.get(..end).unwrap_or_default().as_bytes());
    to.push(0);
}

pub(super) fn put_u32(value: u32, to: &mut Vec<u8>) {
    to.extend_from_slice(&value.to_be_bytes());
}

/// A count of items that fit a message; the encoder refuses a message with too many by its size.
pub(super) fn put_count(count: usize, to: &mut Vec<u8>) {
    put_u32(u32::try_from(count).unwrap_or(u32::MAX), to);
}

pub(super) fn put_ports(ports: &[u32], to: &mut Vec<u8>) {
    ports.iter().for_each(|port| put_text(&port.to_string(), to));
}
