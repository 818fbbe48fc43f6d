//! The probes of `@virtio`: buffers that drivers pass to virtqueues and get back, notifications of the host, and
//! interrupts (`drivers/virtio/virtio_ring.c`).
//!
//! `vq` and `token` are the lower halves of addresses, enough to tell queues and buffers apart. Names are recorded as
//! numbers with eight characters each, since readers expect numbers. Names and sizes need the kernel's BTF.
//!
//! All functions that add a buffer call `virtqueue_add_split` or `virtqueue_add_packed`, which the kernel can't probe:
//! they are declared inline, and so notrace.

use super::KernelProbes;
use crate::struct_layouts::StructLayouts;

/// Modules that may define these types.
const MODULES: [&str; 2] = ["virtio", "virtio_ring"];
const STRUCTURES: [&str; 5] = ["virtqueue", "virtio_device", "device", "kobject", "scatterlist"];

/// Adds a buffer of several scatterlists.
const ADD_LISTS: &str = "virtqueue_add_sgs";
const OF_LISTS: &str = "vq=$arg1:x32 token=$arg5:x32 out=$arg3:u32 in=$arg4:u32";
/// Functions that add a buffer of one scatterlist.
const ADD_LIST: [(&str, &str); 6] = [
    ("virtqueue_add_outbuf", OUT),
    ("virtqueue_add_outbuf_premapped", OUT),
    ("virtqueue_add_inbuf", IN),
    ("virtqueue_add_inbuf_ctx", IN),
    ("virtqueue_add_inbuf_premapped", IN),
    ("virtqueue_add_inbuf_cache_clean", IN),
];
const OUT: &str = "vq=$arg1:x32 token=$arg4:x32 parts=$arg3:u32 out=\\1:u32 in=\\0:u32";
const IN: &str = "vq=$arg1:x32 token=$arg4:x32 parts=$arg3:u32 out=\\0:u32 in=\\1:u32";

/// Functions that get a buffer back; others call these. (Notifications are returns of `virtqueue_kick_prepare`: some
/// kernels inline `virtqueue_notify` into `virtqueue_kick`.)
const GET: [&str; 2] = ["virtqueue_get_buf_ctx_split", "virtqueue_get_buf_ctx_packed"];
const OTHER_GETS: [&str; 2] = ["virtqueue_get_buf_ctx", "virtqueue_get_buf"];

/// Number of bytes that the device reports as written: a variable of the caller, which the function sets.
const WRITTEN: &str = " len=+0($arg2):u32";

/// Scatterlists whose part sizes are recorded, and the number of parts.
const LISTS: [(char, u32); 3] = [('a', 6), ('b', 6), ('c', 1)];
const POINTER_BYTES: u32 = 8;

/// Member offsets from the kernel's BTF.
pub(super) fn layouts() -> StructLayouts {
    StructLayouts::of_this_kernel(&MODULES, &STRUCTURES)
}

/// The probes for those functions that the kernel has.
pub(super) fn probes(layouts: &StructLayouts, kernel: &KernelProbes<'_>) -> Vec<String> {
    let can_probe = kernel.can_probe;
    let names = names(layouts).unwrap_or_default();
    let lists = sizes(layouts, |list| format!("+{}($arg2)", list * POINTER_BYTES), &LISTS);
    let list = sizes(layouts, |_| "$arg2".to_owned(), &LISTS[..1]);
    let (lists, list) = (lists.unwrap_or_default(), list.unwrap_or_default());
    let mut all = vec![(ADD_LISTS, format!("{OF_LISTS}{names}{lists}"))];
    all.extend(ADD_LIST.map(|(function, fields)| (function, format!("{fields}{names}{list}"))));
    let has_get = GET.iter().any(|function| can_probe(function));
    let written = if kernel.have_arguments_at_return { WRITTEN } else { "" };
    for function in if has_get { GET } else { OTHER_GETS } {
        all.push((function, "vq=$arg1:x32".to_owned()));
        all.push((function, format!("%return token=$retval:x32{written}")));
    }
    all.extend(
        [
            ("virtqueue_kick_prepare", "vq=$arg1:x32"),
            ("virtqueue_kick_prepare", "%return needed=$retval:u8"),
            ("vring_interrupt", "vq=$arg2:x32"),
            ("vring_interrupt", "%return handled=$retval:u8"),
        ]
        .map(|(function, fields)| (function, fields.to_owned())),
    );
    let there = all.into_iter().filter(|(function, _)| can_probe(function));
    let line = |(function, fields): (&str, String)| {
        if fields.starts_with('%') {
            format!("{function}{fields}")
        } else {
            format!("{function} {fields}")
        }
    };
    there.map(line).collect()
}

/// Arguments with the names of a queue and its device.
fn names(layouts: &StructLayouts) -> Option<String> {
    let member = |structure, name| layouts.member(structure, name);
    let (name, device) = (member("virtqueue", "name")?, member("virtqueue", "vdev")?);
    let of_device = member("virtio_device", "dev")?
        .checked_add(member("device", "kobj")?)?
        .checked_add(member("kobject", "name")?)?;
    let queue = format!("(+{name}($arg1)):u64");
    let device = format!("(+{of_device}(+{device}($arg1))):u64");
    Some(format!(" n0=+0{queue} n1=+8{queue} d0=+0{device} d1=+8{device}"))
}

/// Arguments with the lengths of parts: `a1` is the second part of the first list, `ma1` its flags: 1, the list
/// continues elsewhere, and 2, it is the last part (`SG_CHAIN` and `SG_END` of `include/linux/scatterlist.h`).
fn sizes(
    layouts: &StructLayouts,
    address: impl Fn(u32) -> String,
    lists: &[(char, u32)],
) -> Option<String> {
    let member = |name| layouts.member("scatterlist", name);
    let (marks, length) = (member("page_link")?, member("length")?);
    let entry = layouts.size("scatterlist")?;
    let mut fields = String::new();
    for (&(list, parts), at) in lists.iter().zip(0..) {
        let address = address(at);
        for part in 0..parts {
            let place = entry.checked_mul(part)?;
            let (marks, length) = (place.checked_add(marks)?, place.checked_add(length)?);
            fields += &format!(" m{list}{part}=+{marks}({address}):u8");
            fields += &format!(" {list}{part}=+{length}({address}):u32");
        }
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(can_probe: &dyn Fn(&str) -> bool) -> KernelProbes<'_> {
        KernelProbes { can_probe, have_arguments_at_return: false }
    }

    #[test]
    fn bytes_that_a_device_wrote_are_read_where_returns_have_arguments() {
        let kernel = KernelProbes { have_arguments_at_return: true, ..kernel(&|_| true) };
        let all = probes(&StructLayouts::default(), &kernel);
        let written: Vec<&String> = all.iter().filter(|probe| probe.contains("len=")).collect();
        let return_probe =
            |name: &str| format!("{name}%return token=$retval:x32 len=+0($arg2):u32");
        assert_eq!(written, [&return_probe(GET[0]), &return_probe(GET[1])]);
    }

    #[test]
    fn what_a_kernel_lacks_is_left_out_or_done_by_others() {
        let none = StructLayouts::default();
        let all = probes(&none, &kernel(&|_| true));
        assert_eq!(
            all[0],
            "virtqueue_add_sgs vq=$arg1:x32 token=$arg5:x32 out=$arg3:u32 in=$arg4:u32"
        );
        assert_eq!(all.len(), 7 + 4 + 4, "{all:?}");
        let few = |function: &str| ["virtqueue_add_sgs", "virtqueue_get_buf"].contains(&function);
        let found = probes(&none, &kernel(&few));
        let functions: Vec<&str> =
            found.iter().filter_map(|probe| probe.split(' ').next()).collect();
        assert_eq!(
            functions,
            ["virtqueue_add_sgs", "virtqueue_get_buf", "virtqueue_get_buf%return"]
        );
        assert_eq!(probes(&none, &kernel(&|_| false)), [""; 0]);
    }

    #[test]
    fn sizes_are_read_where_the_kernel_has_them() {
        let layouts = StructLayouts::made(&[("page_link", 0), ("length", 12)], "scatterlist", 32);
        let all = probes(&layouts, &kernel(&|_| true));
        let has = |probe: usize, field: &str| all[probe].split(' ').any(|word| word == field);
        assert!(has(0, "a1=+44(+0($arg2)):u32") && has(0, "mb0=+0(+8($arg2)):u8"), "{}", all[0]);
        assert!(has(1, "a1=+44($arg2):u32") && !all[1].contains(" b0="), "{}", all[1]);
        for probe in &all {
            // Limits: MAX_ARGSTR_LEN, and the size of a probe's line.
            assert!(probe.split(' ').all(|word| word.len() < 63) && probe.len() < 2048, "{probe}");
        }
    }
}
