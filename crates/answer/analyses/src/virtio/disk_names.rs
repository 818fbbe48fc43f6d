//! Kernel names of a guest's disks, by device number.

/// Minor numbers per disk and its partitions: `PART_BITS` of virtio_blk.c, `SD_MINORS` of sd.c.
const MINOR_SHIFT: u32 = 4;
/// `MINORBITS` of include/linux/kdev_t.h.
const MAJOR_SHIFT: u32 = 20;
/// Majors of SCSI disks in the kernel's order (`sd_major`).
const SCSI_MAJORS: [u32; 16] =
    [8, 65, 66, 67, 68, 69, 70, 71, 128, 129, 130, 131, 132, 133, 134, 135];

/// Name of a disk (`vda`), by device number and a queue's name; `None` if unknown.
pub(super) fn disk_name(queue: &str, dev: u32) -> Option<String> {
    let (major, minor) = (dev >> MAJOR_SHIFT, dev & ((1 << MAJOR_SHIFT) - 1));
    let place = minor >> MINOR_SHIFT;
    if queue.starts_with("req.") {
        // virtio_blk uses a dynamic major.
        return Some(format!("vd{}", letters(place)));
    }
    let of_major = SCSI_MAJORS.iter().position(|scsi_major| *scsi_major == major)?;
    let of_major = u32::try_from(of_major).ok()?;
    // Disks after the first 256 start at the first major again, with larger minors.
    let (round, within) = (place >> 4, place & 0xf);
    Some(format!("sd{}", letters(round * 256 + of_major * 16 + within)))
}

/// Letters of a disk name: `a` to `z`, `aa` and so on.
fn letters(place: u32) -> String {
    let (mut letters, mut rest) = (Vec::new(), u64::from(place) + 1);
    while rest > 0 {
        let digit = (rest - 1) % 26;
        letters.push(char::from(b'a' + u8::try_from(digit).unwrap_or(0)));
        rest = (rest - 1) / 26;
    }
    letters.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_are_called_as_the_kernel_calls_them() {
        let name = |queue, major: u32, minor: u32| disk_name(queue, major << 20 | minor);
        assert_eq!(name("req.0", 254, 0).as_deref(), Some("vda"));
        assert_eq!(name("req.1", 253, 25 << 4).as_deref(), Some("vdz"));
        assert_eq!(name("req.0", 254, 26 << 4).as_deref(), Some("vdaa"));
        assert_eq!(name("request", 8, 16).as_deref(), Some("sdb"));
        assert_eq!(name("request", 65, 0).as_deref(), Some("sdq"));
        assert_eq!(name("request", 254, 0), None);
        assert!(name("req.0", 0xfff, 0xf_ffff).is_some());
    }
}
