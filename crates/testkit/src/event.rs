//! Encodes an event record from values given by field name.

use raw_bytes::Abi;

use crate::bytes;
use crate::format::{Field, Format};

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number, truncated to the size of the field.
    Number(u64),
    /// The bytes of an array or of a dynamic field, including the NUL of a string.
    Bytes(Vec<u8>),
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl From<$number> for Value {
            fn from(number: $number) -> Self {
                // C sign-extends a negative number in the same way.
                Self::Number(number as u64)
            }
        }
    )*};
}
numbers!(u8, u16, u32, u64, i32, i64, bool);

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Bytes([text.as_bytes(), b"\0"].concat())
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.to_vec())
    }
}

/// Builds the payload of a record; fields that are not set are zero.
#[derive(Clone, Debug)]
pub struct EventBuilder<'a> {
    abi: Abi,
    format: &'a Format,
    record: Vec<u8>,
}

impl<'a> EventBuilder<'a> {
    /// A record of `format` with only its event id set.
    #[must_use]
    pub fn new(abi: Abi, format: &'a Format) -> Self {
        let end = |field: &Field| field.offset + field.size;
        let len = format.common.iter().chain(&format.fields).map(end).max().unwrap_or(0);
        Self { abi, format, record: vec![0; len] }.set("common_type", format.id)
    }

    /// Sets `common_pid`.
    #[must_use]
    pub fn pid(self, pid: i32) -> Self {
        self.set("common_pid", pid)
    }

    /// Sets a field. `name[2]` is an element of an array. Dynamic fields are laid out in the order
    /// in which they are set. Panics if the event has no such field, or if the value has another
    /// kind or is too long.
    #[must_use]
    pub fn set(mut self, name: &str, value: impl Into<Value>) -> Self {
        if let Some((array, index)) = name.strip_suffix(']').and_then(|name| name.split_once('[')) {
            let index =
                index.parse().unwrap_or_else(|_| panic!("`{index}` is no place in an array"));
            return self.set_element(array, index, value.into());
        }
        let field = self
            .format
            .field(name)
            .unwrap_or_else(|| panic!("{} has no field `{name}`", self.format.name));
        let bytes = match value.into() {
            Value::Number(_) if field.size > field.align => panic!("`{name}` is an array"),
            Value::Number(number) => bytes::uint(self.abi.order, number, field.size),
            Value::Bytes(bytes) if field.is_dynamic() => self.place(&bytes),
            Value::Bytes(bytes) => bytes,
        };
        assert!(bytes.len() <= field.size, "`{name}` has {} bytes", field.size);
        self.record[field.offset..field.offset + bytes.len()].copy_from_slice(&bytes);
        self
    }

    /// Sets an element of an array of numbers; the array's alignment is the element size.
    fn set_element(mut self, array: &str, index: usize, value: Value) -> Self {
        let field = self.format.field(array);
        let field = field.unwrap_or_else(|| panic!("{} has no field `{array}`", self.format.name));
        let Value::Number(number) = value else { panic!("`{array}` has numbers") };
        let from = index * field.align;
        assert!(from + field.align <= field.size, "`{array}` has no element {index}");
        let bytes = bytes::uint(self.abi.order, number, field.align);
        self.record[field.offset + from..field.offset + from + bytes.len()].copy_from_slice(&bytes);
        self
    }

    /// The record, with the padding that C adds at the end of a struct.
    #[must_use]
    pub fn build(mut self) -> Vec<u8> {
        let align = self.format.fields.iter().map(|field| field.align).max().unwrap_or(4);
        let len = self.record.len().next_multiple_of(align.max(4));
        self.record.resize(len, 0);
        self.record
    }

    /// Appends the value of a dynamic field, and returns its offset and length, which the field
    /// stores.
    fn place(&mut self, value: &[u8]) -> Vec<u8> {
        let place = (value.len() as u64) << 16 | self.record.len() as u64;
        self.record.extend_from_slice(value);
        bytes::uint(self.abi.order, place, 4)
    }
}
