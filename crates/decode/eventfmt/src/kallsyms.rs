//! Names of kernel addresses, from a recorded `/proc/kallsyms`.

use std::fmt;

/// Symbols of the recorded kernel, by address.
#[derive(Clone, Default)]
pub struct Kallsyms {
    text: Box<[u8]>,
    symbols: Vec<Entry>,
}

/// A symbol as places in the text.
#[derive(Clone, Copy)]
struct Entry {
    address: u64,
    name: (u32, u32),
    module: (u32, u32),
}

/// The symbol an address belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// The symbol's name.
    pub name: &'a [u8],
    /// How far past the symbol's own address the address is.
    pub offset: u64,
    /// The module the symbol belongs to; `None` in the kernel itself.
    pub module: Option<&'a [u8]>,
}

impl Kallsyms {
    /// Parses lines of `address type name [module]`; lines of another shape are passed over.
    ///
    /// Absolute symbols (per-CPU offsets on x86) and the `$x` marks of arm are left out: they name
    /// no code. Text past 4 GiB is not read.
    #[must_use]
    pub fn parse(text: &[u8]) -> Self {
        let text = text.get(..u32::MAX as usize).unwrap_or(text);
        let mut symbols = Vec::new();
        let mut start = 0usize;
        for line in text.split(|&byte| byte == b'\n') {
            symbols.extend(entry(line, start));
            start = start.saturating_add(line.len()).saturating_add(1);
        }
        symbols.sort_by_key(|entry| entry.address);
        Self { text: text.into(), symbols }
    }

    /// The symbol with the greatest address that is not above `address`.
    ///
    /// Behind the last symbol nothing is known: an address there has a name only when it is that
    /// symbol's own.
    #[must_use]
    pub fn lookup(&self, address: u64) -> Option<Symbol<'_>> {
        let after = self.symbols.partition_point(|entry| entry.address <= address);
        let entry = self.symbols.get(after.checked_sub(1)?)?;
        if after == self.symbols.len() && entry.address != address {
            return None;
        }
        let module = self.slice(entry.module);
        Some(Symbol {
            name: self.slice(entry.name),
            offset: address.wrapping_sub(entry.address),
            module: (!module.is_empty()).then_some(module),
        })
    }

    /// Symbols by address, each with that; several may have the same.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.symbols.iter().map(|entry| (entry.address, self.slice(entry.name)))
    }

    /// How many symbols there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.symbols.len()
    }

    /// Whether there are none, as when the recorder was not allowed to read addresses.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    fn slice(&self, (start, end): (u32, u32)) -> &[u8] {
        self.text.get(start as usize..end as usize).unwrap_or(&[])
    }
}

impl fmt::Debug for Kallsyms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kallsyms").field("symbols", &self.symbols.len()).finish_non_exhaustive()
    }
}

fn entry(line: &[u8], start: usize) -> Option<Entry> {
    let mut words = line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
    let address = std::str::from_utf8(words.next()?).ok()?;
    let address = u64::from_str_radix(address.strip_prefix("0x").unwrap_or(address), 16).ok()?;
    let kind = words.next()?;
    let name = words.next()?;
    if matches!(kind, b"a" | b"A") || name.starts_with(b"$") {
        return None;
    }
    let module = words.next().and_then(|word| word.strip_prefix(b"[")?.strip_suffix(b"]"));
    let place = |word: &[u8]| -> Option<(u32, u32)> {
        let within = (word.as_ptr() as usize).checked_sub(line.as_ptr() as usize)?;
        let from = start.checked_add(within)?;
        let to = from.checked_add(word.len())?;
        Some((u32::try_from(from).ok()?, u32::try_from(to).ok()?))
    };
    let module = module.map_or(Some((0, 0)), place)?;
    Some(Entry { address, name: place(name)?, module })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"ffff0000 T first\nffff0010 t second\t[kvm]\n\
        00000010 A percpu\nffff0018 t $x\ngarbage\nffff0100 T last\n";

    #[test]
    fn an_address_belongs_to_the_symbol_before_it() {
        let symbols = Kallsyms::parse(TEXT);
        assert_eq!(symbols.len(), 3);
        let all: Vec<_> = symbols.iter().map(|(_, name)| name).collect();
        assert_eq!(all, [&b"first"[..], b"second", b"last"]);
        let found = symbols.lookup(0xffff_0020).unwrap();
        assert_eq!((found.name, found.offset), (&b"second"[..], 0x10));
        assert_eq!(found.module, Some(&b"kvm"[..]));
        assert_eq!(symbols.lookup(0xffff_0000).unwrap().name, b"first");
        assert_eq!(symbols.lookup(0xffff_0000).unwrap().module, None);
    }

    #[test]
    fn addresses_outside_have_no_name() {
        let symbols = Kallsyms::parse(TEXT);
        assert_eq!(symbols.lookup(0xfffe_ffff), None);
        assert_eq!(symbols.lookup(0xffff_0101), None);
        assert_eq!(symbols.lookup(0xffff_0100).unwrap().name, b"last");
        assert!(Kallsyms::parse(b"").lookup(0).is_none());
    }
}
