//! Strings of the recorded kernel by address, from `printk_formats`.

use std::collections::BTreeMap;

/// Format strings and other constant strings of the recorded kernel, by address.
#[derive(Clone, Debug, Default)]
pub struct PrintkFormats {
    strings: BTreeMap<u64, Box<[u8]>>,
}

impl PrintkFormats {
    /// Parses lines of `0xaddress : "string"`; skips other lines.
    #[must_use]
    pub fn parse(text: &[u8]) -> Self {
        let lines = text.split(|&byte| byte == b'\n');
        Self { strings: lines.filter_map(parse_line).collect() }
    }

    /// The string at exactly this address.
    #[must_use]
    pub fn get(&self, address: u64) -> Option<&[u8]> {
        self.strings.get(&address).map(|string| &**string)
    }

    /// The number of strings.
    #[must_use]
    pub fn len(&self) -> usize {
        self.strings.len()
    }

    /// Whether there are no strings.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.strings.is_empty()
    }
}

fn parse_line(line: &[u8]) -> Option<(u64, Box<[u8]>)> {
    let colon = line.iter().position(|&byte| byte == b':')?;
    let (address, string) = line.split_at_checked(colon)?;
    let address = std::str::from_utf8(address).ok()?.trim();
    let address = u64::from_str_radix(address.strip_prefix("0x").unwrap_or(address), 16).ok()?;
    let string = string.strip_prefix(b":")?.trim_ascii();
    let string = string.strip_prefix(b"\"").unwrap_or(string);
    let string = string.strip_suffix(b"\"").unwrap_or(string);
    // The newline at the end of a trace_printk() is dropped, because reports add their own.
    let string = string.strip_suffix(b"\\n").unwrap_or(string);
    Some((address, string.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_found_by_address() {
        let formats = PrintkFormats::parse(
            b"0xffff10 : \"took %d: ns\\n\"\nnonsense\n0xffff20 : \"OSLAR_EL1\"\n",
        );
        assert_eq!(formats.len(), 2);
        assert_eq!(formats.get(0xff_ff10), Some(&b"took %d: ns"[..]));
        assert_eq!(formats.get(0xff_ff20), Some(&b"OSLAR_EL1"[..]));
        assert_eq!(formats.get(0xff_ff11), None);
    }
}
