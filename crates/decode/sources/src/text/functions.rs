//! Function names in a text, which get synthetic addresses.

use std::collections::HashMap;

/// Address of the first function: no kernel has code at the highest addresses.
const FIRST: u64 = 0xffff_ffff_ffe0_0000;
/// Distance between two functions.
const APART: u64 = 16;
/// Maximum functions: recordings have a few thousand.
const MAX_FUNCTIONS: usize = 1 << 16;

/// Names of functions in order of appearance.
#[derive(Debug, Default)]
pub(super) struct Functions {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Functions {
    /// Returns the index of a name, and adds it if it is new; `None` if there are too many.
    pub(super) fn add(&mut self, name: &str) -> Option<u32> {
        let name = without_offset(name);
        if let Some(number) = self.numbers.get(name) {
            return Some(*number);
        }
        let room = !name.is_empty() && self.names.len() < MAX_FUNCTIONS;
        let number = u32::try_from(self.names.len()).ok().filter(|_| room)?;
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        Some(number)
    }

    pub(super) fn name(&self, number: u32) -> Option<&str> {
        self.names.get(usize::try_from(number).ok()?).map(String::as_str)
    }

    /// The synthetic address of a name; 0 if it has none.
    pub(super) fn address(&self, name: &str) -> u64 {
        self.numbers.get(without_offset(name)).copied().map_or(0, address)
    }

    /// All functions in the format of `/proc/kallsyms`; `None` if there are none.
    pub(super) fn kallsyms(&self) -> Option<Vec<u8>> {
        let symbol = |(number, name): (u32, &String)| {
            let name = name.replacen(" [", "\t[", 1);
            format!("{:x} t {name}\n", address(number))
        };
        let symbols: String = (0..).zip(&self.names).map(symbol).collect();
        (!symbols.is_empty()).then(|| symbols.into_bytes())
    }
}

fn address(number: u32) -> u64 {
    FIRST + APART * u64::from(number)
}

/// Gives `vcpu_run` for `vcpu_run+0x5/0x10`.
fn without_offset(name: &str) -> &str {
    name.split_once("+0x").map_or(name, |(name, _)| name).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_an_address_and_the_address_has_its_symbol() {
        let mut functions = Functions::default();
        let numbers =
            ["vcpu_run [kvm]", "schedule", "schedule+0x5/0x10", ""].map(|name| functions.add(name));
        assert_eq!(numbers, [Some(0), Some(1), Some(1), None]);
        assert_eq!((functions.name(1), functions.name(2)), (Some("schedule"), None));
        let symbols = ftrace::eventfmt::Kallsyms::parse(&functions.kallsyms().unwrap());
        let vcpu_run = symbols.lookup(functions.address("vcpu_run [kvm]")).unwrap();
        assert_eq!((vcpu_run.name, vcpu_run.module), (&b"vcpu_run"[..], Some(&b"kvm"[..])));
        assert_eq!(symbols.lookup(functions.address("schedule")).unwrap().name, b"schedule");
        assert_eq!(functions.address("other"), 0);
        assert_eq!(Functions::default().kallsyms(), None);
    }
}
