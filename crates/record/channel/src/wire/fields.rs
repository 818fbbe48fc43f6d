//! Numbers, texts and lists in a message: little endian, with a length before each list and text.

/// The message ends early, or has an invalid value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Reads fields from the front of a payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn new(payload: &'a [u8]) -> Self {
        Self(payload)
    }

    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (head, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(head)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.take(N)?.try_into().map_err(|_| Malformed)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn flag(&mut self) -> Result<bool, Malformed> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed),
        }
    }

    pub(crate) fn text(&mut self) -> Result<String, Malformed> {
        let length = self.u16()?;
        let bytes = self.take(length.into())?;
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    /// A list: its length, then its members. A member takes at least one byte, so the message's size bounds the list.
    pub(crate) fn list<T>(
        &mut self,
        mut member: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let length = usize::from(self.u16()?);
        if length > self.0.len() {
            return Err(Malformed);
        }
        (0..length).map(|_| member(self)).collect()
    }

    pub(crate) fn option<T>(
        &mut self,
        value: impl FnOnce(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Option<T>, Malformed> {
        if self.flag()? { value(self).map(Some) } else { Ok(None) }
    }

    /// The rest of the payload.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// A payload ends with its last field: a later version with more fields has another number.
    pub(crate) fn end(self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed) }
    }
}

/// Adds fields to a payload.
#[derive(Debug, Default)]
pub(crate) struct Payload(pub(crate) Vec<u8>);

impl Payload {
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn u8(&mut self, value: u8) -> &mut Self {
        self.bytes(&[value])
    }

    pub(crate) fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn flag(&mut self, value: bool) -> &mut Self {
        self.u8(value.into())
    }

    /// A text; cut off if its length does not fit.
    pub(crate) fn text(&mut self, value: &str) -> &mut Self {
        let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
        let fits = value.as_bytes().get(..length.into()).unwrap_or_default();
        self.u16(length).bytes(fits)
    }

    /// A list; cut off if its length does not fit.
    pub(crate) fn list<T>(
        &mut self,
        values: &[T],
        mut member: impl FnMut(&mut Self, &T),
    ) -> &mut Self {
        let length = u16::try_from(values.len()).unwrap_or(u16::MAX);
        self.u16(length);
        values.iter().take(length.into()).for_each(|value| member(self, value));
        self
    }

    pub(crate) fn option<T>(
        &mut self,
        value: Option<&T>,
        write: impl FnOnce(&mut Self, &T),
    ) -> &mut Self {
        self.flag(value.is_some());
        if let Some(value) = value {
            write(self, value);
        }
        self
    }
}
