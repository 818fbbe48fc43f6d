//! Names of kernel addresses, from a recorded `/proc/kallsyms`.

use std::fmt;

/// Symbols at the end of the kernel's own code (`include/asm-generic/sections.h`): padding, or
/// nothing, follows until the next symbol.
const ENDS: [&[u8]; 3] = [b"_etext", b"_einittext", b"_end"];

/// The last function of a module, or of the kernel before its modules, has no following symbol that
/// marks its end. As in perf, it ends at the latest with the page after its start.
const PAGE: u64 = 4096;

/// Symbols at the start of any kernel's code (`include/asm-generic/sections.h`): a list without
/// both is partial.
const BEGINNINGS: [&[u8]; 2] = [b"_stext", b"_text"];

/// Completeness of a symbol list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coverage {
    /// There is no list.
    #[default]
    Missing,
    /// All addresses are 0: the kernel hides them from all users, or from the recording user
    /// (`kernel.kptr_restrict`).
    Hidden,
    /// Some symbols are missing: their code would be attributed to other symbols.
    Partial,
    /// All of the kernel's code from its start.
    Whole,
}

/// Symbols of the recorded kernel, by address.
#[derive(Clone, Default)]
pub struct Kallsyms {
    text: Box<[u8]>,
    symbols: Vec<Entry>,
    /// Sorted addresses of the [`ENDS`] symbols.
    ends: Vec<u64>,
    coverage: Coverage,
}

/// A symbol as positions in the text.
#[derive(Clone, Copy)]
struct Entry {
    address: u64,
    name: (u32, u32),
    module: (u32, u32),
}

/// The symbol of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// The symbol's name.
    pub name: &'a [u8],
    /// Distance of the address from the start of the symbol.
    pub offset: u64,
    /// The module of the symbol; `None` for the kernel itself.
    pub module: Option<&'a [u8]>,
}

impl Kallsyms {
    /// Parses lines of `address type name [module]`; skips other lines.
    ///
    /// Absolute symbols (per-CPU offsets on x86) and the `$x` marks of arm are ignored because they
    /// do not name code, as are symbols with address 0: unprivileged users see all addresses as 0.
    /// Text past 4 GiB is ignored.
    #[must_use]
    pub fn parse(text: &[u8]) -> Self {
        let text = text.get(..u32::MAX as usize).unwrap_or(text);
        let mut symbols = Vec::new();
        let mut start = 0usize;
        for line in text.split(|&byte| byte == b'\n') {
            symbols.extend(entry(line, start));
            start = start.saturating_add(line.len()).saturating_add(1);
        }
        let all = symbols.len();
        symbols.retain(|entry: &Entry| entry.address != 0);
        symbols.sort_by_key(|entry| entry.address);
        let mut kallsyms = Self { text: text.into(), symbols, ..Self::default() };
        let ends = kallsyms.symbols.iter().filter(|entry| kallsyms.is_one_of(entry, &ENDS));
        kallsyms.ends = ends.map(|entry| entry.address).collect();
        let begins = |entry| kallsyms.is_one_of(entry, &BEGINNINGS);
        kallsyms.coverage = match (all, kallsyms.len()) {
            (0, _) => Coverage::Missing,
            (_, 0) => Coverage::Hidden,
            _ if kallsyms.symbols.iter().any(begins) => Coverage::Whole,
            _ => Coverage::Partial,
        };
        kallsyms
    }

    /// The function at `address`. In a complete list it is that of [`Kallsyms::lookup`]; in other
    /// lists only a symbol with exactly this address.
    #[must_use]
    pub fn function(&self, address: u64) -> Option<Symbol<'_>> {
        let is_whole = self.coverage == Coverage::Whole;
        self.lookup(address).filter(|symbol| is_whole || symbol.offset == 0)
    }

    /// The symbol with the highest address up to `address`, if it can contain `address`.
    ///
    /// The text has no sizes. A symbol ends at the next symbol of its module. The last symbol of a
    /// module, or of the kernel itself before a module, ends at the latest with the page after its
    /// start. After `_etext`, `_einittext` and `_end`, addresses up to the next symbol have no
    /// name.
    #[must_use]
    pub fn lookup(&self, address: u64) -> Option<Symbol<'_>> {
        let after = self.symbols.partition_point(|entry| entry.address <= address);
        let entry = self.symbols.get(after.checked_sub(1)?)?;
        if address != entry.address && !self.reaches(entry, self.symbols.get(after), address) {
            return None;
        }
        let module = self.slice(entry.module);
        Some(Symbol {
            name: self.slice(entry.name),
            offset: address.wrapping_sub(entry.address),
            module: (!module.is_empty()).then_some(module),
        })
    }

    /// As [`Kallsyms::lookup`], but the last symbol of a partial list matches only its own address,
    /// because its size and its successor are unknown.
    #[must_use]
    pub fn lookup_within(&self, address: u64) -> Option<Symbol<'_>> {
        let last = self.symbols.last().map(|entry| entry.address);
        let is_past_end = last.is_none_or(|last| address > last);
        let is_known = self.coverage == Coverage::Whole || !is_past_end;
        self.lookup(address).filter(|_| is_known)
    }

    /// Symbols with their addresses, sorted; several can share an address.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.symbols.iter().map(|entry| (entry.address, self.slice(entry.name)))
    }

    /// The number of symbols.
    #[must_use]
    pub fn len(&self) -> usize {
        self.symbols.len()
    }

    /// Whether there are no symbols.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// The completeness of the list.
    #[must_use]
    pub const fn coverage(&self) -> Coverage {
        self.coverage
    }

    /// Whether `entry` extends to `address`, which lies between its own and that of `next`.
    fn reaches(&self, entry: &Entry, next: Option<&Entry>, address: u64) -> bool {
        if self.ends.binary_search(&entry.address).is_ok() {
            return false;
        }
        let module = self.slice(entry.module);
        let goes_on = next.is_some_and(|next| self.slice(next.module) == module);
        let pages = entry.address.div_ceil(PAGE).saturating_add(1);
        goes_on || address < pages.saturating_mul(PAGE)
    }

    /// Whether it is a symbol of the kernel itself with one of these names.
    fn is_one_of(&self, entry: &Entry, names: &[&[u8]]) -> bool {
        entry.module == (0, 0) && names.contains(&self.slice(entry.name))
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
        assert_eq!(symbols.lookup(0xffff_0100).unwrap().name, b"last");
        assert_eq!(symbols.lookup(0xffff_1fff).unwrap().name, b"last");
        assert_eq!(symbols.lookup(0xffff_2000), None);
        assert!(Kallsyms::parse(b"").lookup(0).is_none());
    }

    const LAID_OUT: &[u8] = b"ffffffff81000000 T _text\nffffffff81e01000 t last_function\n\
        ffffffff81e01ef2 T _etext\nffffffff81e01ef2 T __indirect_thunk_end\n\
        ffffffff82000000 D __start_rodata\nffffffff83830000 B _end\n\
        ffffffffc0201000 t scsi_one\t[scsi]\nffffffffc0203010 t scsi_last\t[scsi]\n\
        ffffffffc0249000 t kvm_one\t[kvm]\n";

    #[test]
    fn nothing_is_named_between_the_end_of_code_and_what_comes_next() {
        let symbols = Kallsyms::parse(LAID_OUT);
        let name = |address| symbols.lookup(address).map(|found| found.name);
        assert_eq!(name(0xffff_ffff_81e0_1ef1), Some(&b"last_function"[..]));
        for address in [0xffff_ffff_81e0_1ef3, 0xffff_ffff_81ff_ffff, 0xffff_ffff_9000_0000] {
            assert_eq!(name(address), None, "{address:#x}");
        }
        assert_eq!(name(0xffff_ffff_8200_0010), Some(&b"__start_rodata"[..]));
    }

    #[test]
    fn the_last_function_of_a_module_does_not_reach_into_what_follows() {
        let symbols = Kallsyms::parse(LAID_OUT);
        let name = |address| symbols.lookup(address).map(|found| found.name);
        assert_eq!(name(0xffff_ffff_c020_2fff), Some(&b"scsi_one"[..]));
        assert_eq!(name(0xffff_ffff_c020_4fff), Some(&b"scsi_last"[..]));
        assert_eq!(name(0xffff_ffff_c020_5000), None);
        assert_eq!(name(0xffff_ffff_c024_8fff), None);
        assert_eq!(name(0xffff_ffff_c024_9fff), Some(&b"kvm_one"[..]));
        assert_eq!(name(0xffff_ffff_c024_a000), None);
    }

    #[test]
    fn hidden_addresses_name_nothing() {
        let text = b"0000000000000000 A fixed_percpu_data\n0000000000000000 T _stext\n\
            0000000000000000 t vcpu_run\t[kvm]\n";
        let symbols = Kallsyms::parse(text);
        assert_eq!((symbols.coverage(), symbols.len()), (Coverage::Hidden, 0));
        assert_eq!(symbols.lookup(0), None);
        assert_eq!(symbols.lookup(u64::MAX), None);
        let percpu = Kallsyms::parse(b"0000000000000000 A fixed_percpu_data\n");
        assert_eq!(percpu.coverage(), Coverage::Missing);
    }

    #[test]
    fn a_part_of_a_list_names_no_code_between_its_symbols() {
        let (part, complete) = (Kallsyms::parse(TEXT), Kallsyms::parse(LAID_OUT));
        assert_eq!((part.coverage(), complete.coverage()), (Coverage::Partial, Coverage::Whole));
        assert!(part.lookup(0xffff_0001).is_some() && part.function(0xffff_0001).is_none());
        assert_eq!(part.function(0xffff_0010).unwrap().name, b"second");
        assert_eq!(part.lookup_within(0xffff_0011).unwrap().name, b"second");
        let last = part.iter().last().unwrap().0;
        assert!(
            part.lookup_within(last).is_some()
                && part.lookup_within(last.wrapping_add(1)).is_none()
        );
        assert_eq!(complete.function(0xffff_ffff_8100_0001).unwrap().name, b"_text");
    }
}
