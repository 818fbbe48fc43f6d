//! Symbols of guests' kernels that the user provides: no recording has those of nested guests.

use ftrace::eventfmt::Kallsyms;

/// Symbols of a guest's kernel.
#[derive(Clone, Debug)]
pub struct GuestSymbols {
    /// Name of the VM; `None` for every VM.
    pub vm: Option<String>,
    /// 1: the VM's guest; 2: its nested guest.
    pub level: u8,
    pub kallsyms: Kallsyms,
}

impl GuestSymbols {
    /// The symbols for a level of a VM: symbols for this VM take precedence over symbols for every VM.
    pub(super) fn find<'n>(all: &'n [Self], vm: &str, level: u8) -> Option<&'n Kallsyms> {
        let mut of_level = all.iter().filter(|symbols| symbols.level == level);
        let named = of_level.clone().find(|symbols| symbols.vm.as_deref() == Some(vm));
        named
            .or_else(|| of_level.find(|symbols| symbols.vm.is_none()))
            .map(|symbols| &symbols.kallsyms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_of_a_vm_come_before_those_of_all() {
        let guest_symbols = |vm: Option<&str>, level: u8, name: &str| GuestSymbols {
            vm: vm.map(str::to_owned),
            level,
            kallsyms: Kallsyms::parse(format!("ffffffff81000000 T {name}\n").as_bytes()),
        };
        let all = [
            guest_symbols(None, 2, "any"),
            guest_symbols(Some("web"), 1, "own"),
            guest_symbols(Some("web"), 2, "webs"),
        ];
        let first = |vm, level| {
            let found = GuestSymbols::find(&all, vm, level)?.iter().next()?.1;
            Some(String::from_utf8_lossy(found).into_owned())
        };
        assert_eq!(first("web", 2).as_deref(), Some("webs"));
        assert_eq!(first("web", 1).as_deref(), Some("own"));
        assert_eq!(first("db", 2).as_deref(), Some("any"));
        assert_eq!(first("db", 1), None);
    }
}
