//! Symbols of guests' kernels that are given besides recordings: of guests inside guests no recording has any.

use ftrace::eventfmt::Kallsyms;

/// The symbols of the kernel of a guest.
#[derive(Clone, Debug)]
pub struct GuestSymbols {
    /// The VM's name; `None`: of every VM.
    pub vm: Option<String>,
    /// 1: of the VM's guest; 2: of the guest inside that.
    pub level: u8,
    /// Its list.
    pub kallsyms: Kallsyms,
}

impl GuestSymbols {
    /// Those of a VM's guest at a level: what names the VM comes before what names none.
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
