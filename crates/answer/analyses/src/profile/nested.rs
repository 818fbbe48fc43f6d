//! Symbols of guests inside guests, which no recording of a host or its guests has.

use eventfmt::Kallsyms;

/// The symbols of the kernel that runs inside a VM's guest.
#[derive(Clone, Debug)]
pub struct NestedSymbols {
    /// The VM's name; `None`: of every VM.
    pub vm: Option<String>,
    /// Its list.
    pub kallsyms: Kallsyms,
}

impl NestedSymbols {
    /// Those of the guest inside a VM's guest: what names the VM comes before what names none.
    pub(super) fn of<'n>(all: &'n [Self], vm: &str) -> Option<&'n Kallsyms> {
        let named = all.iter().find(|one| one.vm.as_deref() == Some(vm));
        named.or_else(|| all.iter().find(|one| one.vm.is_none())).map(|one| &one.kallsyms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_of_a_vm_come_before_those_of_all() {
        let of = |vm: Option<&str>, name: &str| NestedSymbols {
            vm: vm.map(str::to_owned),
            kallsyms: Kallsyms::parse(format!("ffffffff81000000 T {name}\n").as_bytes()),
        };
        let all = [of(None, "any"), of(Some("web"), "webs")];
        let first = |vm| {
            let found = NestedSymbols::of(&all, vm)?.iter().next()?.1;
            Some(String::from_utf8_lossy(found).into_owned())
        };
        assert_eq!(first("web").as_deref(), Some("webs"));
        assert_eq!(first("db").as_deref(), Some("any"));
        assert!(NestedSymbols::of(&all[1..], "db").is_none());
    }
}
